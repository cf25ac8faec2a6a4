"""The training problems of the regression benchmark: data, split, step size, number of updates.

Plain numpy: no graph is built here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

WDBC_FILE = Path(__file__).parent / "data" / "wdbc.csv"
WDBC_ROWS, WDBC_FEATURES = 569, 30


@dataclass(frozen=True)
class Case:
    """One training problem.

    train_x (rows, features) and train_y (rows, 1) are what is learned; test_x and test_y are held
    out and may have no rows. An epoch goes through the training rows once, in order, ``batch``
    rows to an update.
    """

    name: str
    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    stepsize: float
    epochs: int
    batch: int
    report_every: int

    def batches(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The (input, target) pairs of the updates of one training, in order."""
        rows = len(self.train_x)
        for _ in range(self.epochs):
            for start in range(0, rows, self.batch):
                stop = start + self.batch
                yield self.train_x[start:stop], self.train_y[start:stop]

    @property
    def updates(self) -> int:
        return self.epochs * -(-len(self.train_x) // self.batch)


def seed_case(epochs: int | None = None, batch: int | None = None, dtype: str = "float64") -> Case:
    """Four rows of ten normal numbers with coin-flip targets; nothing is held out."""
    rng = np.random.RandomState(42)
    inputs = rng.normal(size=(4, 10)).astype(dtype)
    targets = (rng.normal(size=(4, 1)) > 0).astype(dtype)
    return Case(
        name="seed",
        train_x=inputs,
        train_y=targets,
        test_x=inputs[:0],
        test_y=targets[:0],
        stepsize=0.1,
        epochs=epochs or 1000,
        batch=batch or len(inputs),
        report_every=100,
    )


def wdbc_case(epochs: int | None = None, batch: int | None = None, dtype: str = "float64") -> Case:
    """Is a breast mass malignant? 398 rows to learn from and 171 held out, 30 features.

    The split is fixed; the features are standardised by the mean and deviation of the training
    rows alone. Without ``batch`` every update sees all the training rows.
    """
    inputs, targets = read_wdbc()
    order = np.random.RandomState(42).permutation(WDBC_ROWS)
    learn, hold = order[:398], order[398:]
    mean, deviation = inputs[learn].mean(axis=0), inputs[learn].std(axis=0)
    inputs = ((inputs - mean) / deviation).astype(dtype)
    targets = targets.astype(dtype)
    return Case(
        name="wdbc",
        train_x=inputs[learn],
        train_y=targets[learn],
        test_x=inputs[hold],
        test_y=targets[hold],
        stepsize=0.001,
        epochs=epochs or 1000,
        batch=batch or len(learn),
        report_every=100,
    )


def read_wdbc() -> tuple[np.ndarray, np.ndarray]:
    """The file's features (569, 30) and its class (569, 1), 1.0 for malignant; both float64."""
    table = np.loadtxt(WDBC_FILE, delimiter=",", skiprows=1, ndmin=2)
    if table.shape != (WDBC_ROWS, WDBC_FEATURES + 1):
        raise ValueError(
            f"{WDBC_FILE} holds a table of shape {table.shape}; "
            f"{(WDBC_ROWS, WDBC_FEATURES + 1)} was expected. Restore the file from the repository."
        )
    return table[:, :-1], table[:, -1:]


CASES: dict[str, Callable[..., Case]] = {"seed": seed_case, "wdbc": wdbc_case}
