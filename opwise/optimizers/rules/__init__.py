"""The rules, by subject. A rule says itself which stage of the pipeline it takes part in."""
