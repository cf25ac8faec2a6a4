"""Random numbers, with the arguments of numpy's Generator: ``normal(loc, scale, size)``.

Each function returns a variable whose values are drawn anew at every call of a compiled function.
They come from one stream of the process, which begins at a random place; what is made after
``seed(n)`` draws the same numbers in every process. ``RandomStreams(seed)`` is a stream of its own,
of numpy's Mersenne Twister. Threads and GPUs draw the numbers of ``MRG_RandomStreams(seed)``, and
gradients pass through them. The methods of both take ``size`` first.
"""

from __future__ import annotations

import sys as _sys
from typing import Any

from opwise.compile.mrg_streams import MRG_RandomStreams
from opwise.compile.streams import RandomStreams
from opwise.tensor import elsewhere as _elsewhere
from opwise.tensor.variable import Tensor, TensorLike

__all__ = [
    "MRG_RandomStreams",
    "RandomStreams",
    "binomial",
    "choice",
    "integers",
    "multinomial",
    "normal",
    "permutation",
    "poisson",
    "seed",
    "uniform",
]


class _Streams:
    """The stream that the functions draw from."""

    def __init__(self) -> None:
        self.current = RandomStreams()

    def draw(self, distribution: str, *args: Any, **options: Any) -> Tensor:
        """Return what a method of the stream gives; the stream does not keep it alive."""
        drawn: Tensor = getattr(self.current, distribution)(*args, **options)
        self.current.state_updates.clear()
        return drawn


_streams = _Streams()


def seed(seed: int | None = None) -> None:
    """Begin a stream anew, at a random place if ``seed`` is None.

    Variables that were made before keep their numbers.
    """
    _streams.current = RandomStreams(seed)


def uniform(
    low: TensorLike = 0.0, high: TensorLike = 1.0, size: Any = None, dtype: str | None = None
) -> Tensor:
    """Return numbers from low, included, to high, excluded.

    size: the shape (default: that of low and high); dtype (default: floatX).
    """
    return _streams.draw("uniform", size, low, high, dtype=dtype)


def normal(
    loc: TensorLike = 0.0, scale: TensorLike = 1.0, size: Any = None, dtype: str | None = None
) -> Tensor:
    """Return numbers of the normal distribution of mean loc and standard deviation scale.

    size: the shape (default: that of loc and scale); dtype (default: floatX).
    """
    return _streams.draw("normal", size, loc, scale, dtype=dtype)


def integers(
    low: TensorLike, high: TensorLike | None = None, size: Any = None, dtype: str = "int64"
) -> Tensor:
    """Return integers from low, included, to high, excluded; from 0 to low without high."""
    first, end = (0, low) if high is None else (low, high)
    return _streams.draw("random_integers", size, first, end - 1, dtype=dtype)  # type: ignore[operator]


def binomial(
    n: TensorLike = 1, p: TensorLike = 0.5, size: Any = None, dtype: str = "int64"
) -> Tensor:
    """Return how many of n trials succeed, each with probability p; 0 or 1 for one trial."""
    return _streams.draw("binomial", size, n, p, dtype=dtype)


def poisson(lam: TensorLike = 1.0, size: Any = None, dtype: str = "int64") -> Tensor:
    """Return numbers of the Poisson distribution of mean lam."""
    return _streams.draw("poisson", size, lam, dtype=dtype)


def multinomial(
    n: TensorLike = 1, pvals: TensorLike = (0.5, 0.5), size: Any = None, dtype: str = "int64"
) -> Tensor:
    """Return how many of n trials have each outcome, of probabilities pvals."""
    return _streams.draw("multinomial", size, n, pvals, dtype=dtype)


def choice(
    a: TensorLike, size: Any = None, replace: bool = True, p: TensorLike | None = None
) -> Tensor:
    """Return elements of the vector a, or integers below the number a, of probabilities p."""
    return _streams.draw("choice", size, a, replace, p)


def permutation(n: TensorLike) -> Tensor:
    """Return the integers below n in a random order."""
    return _streams.draw("permutation", (), n)


def __getattr__(name: str) -> object:
    """Raise AttributeError that says where a name is, or what to write."""
    raise _elsewhere.no_attribute(_sys.modules[__name__], name)
