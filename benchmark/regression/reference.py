"""The same logistic regression by hand in numpy: what every mode's costs are compared with."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from benchmark.regression.cases import Case


class NumpyRegression:
    """Weights (features, 1) and biases (1,) of a regression whose derivatives were worked out."""

    def __init__(self, weights: np.ndarray, biases: np.ndarray, stepsize: float):
        self.w = weights.copy()
        self.b = biases.copy()
        self.stepsize = self.w.dtype.type(stepsize)

    def apply(self, inputs: np.ndarray) -> np.ndarray:
        return expit(inputs @ self.w + self.b)

    def update(self, inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Take one step downhill; the cost is that before the step."""
        prediction = self.apply(inputs)
        miss = prediction - targets
        grad_activation = 2 * miss * prediction * (1 - prediction)
        self.w -= self.stepsize * (inputs.T @ grad_activation)
        self.b -= self.stepsize * grad_activation.sum(axis=0)
        return (miss**2).sum()


def train(case: Case, weights: np.ndarray, biases: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cost of every update of the case, and the predictions for its held-out rows."""
    model = NumpyRegression(weights, biases, case.stepsize)
    costs = np.array([model.update(inputs, targets) for inputs, targets in case.batches()])
    return costs, model.apply(case.test_x)
