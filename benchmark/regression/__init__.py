"""The regression benchmark: logistic regression as a Module, on real data, under any mode."""
