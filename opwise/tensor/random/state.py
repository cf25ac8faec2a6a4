"""The type of numpy's legacy random generator, ``numpy.random.RandomState``."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any, NoReturn

import numpy as np

from opwise.graph.type import SingletonType


class RandomStateType(SingletonType):
    """The type of generators; they are equal if they will draw equal numbers."""

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        return data if self.is_valid_value(data) else self._refuse(data)

    @staticmethod
    def _refuse(data: object) -> NoReturn:
        raise TypeError(
            f"A numpy.random.RandomState is needed, not a {type(data).__name__}: give "
            "numpy.random.RandomState(seed)."
        )

    def is_valid_value(self, a: Any) -> bool:
        return type(a) is np.random.RandomState

    @classmethod
    def values_eq(cls, a: Any, b: Any) -> bool:
        a, b = a.get_state(legacy=False), b.get_state(legacy=False)
        # without a Gaussian number in store, its value has no meaning
        names = ("bit_generator", "has_gauss", *(("gauss",) if a["has_gauss"] else ()))
        return all(a[name] == b[name] for name in names) and all(
            np.array_equal(value, b["state"][name]) for name, value in a["state"].items()
        )

    @staticmethod
    def may_share_memory(a: Any, b: Any) -> bool:
        return a is b

    def get_size(self, shape_info: Any) -> int:
        """Return the bytes of a state, which all generators share."""
        state = np.random.RandomState(0).get_state(legacy=False)
        return int(state["state"]["key"].nbytes) + 8 * 3


random_state_type = RandomStateType()


def copied(generator: Any) -> Any:
    """Return a generator that will draw the same numbers."""
    state = generator.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        return copy.deepcopy(generator)
    # a deep copy and seeding take longer than all this, and a shallow copy shares the numbers
    new = np.random.RandomState(np.random.MT19937(_no_seed()))
    new.set_state(state)
    return new


@cache
def _no_seed() -> Any:
    """Return a seed of zeros, for generators whose state is set next."""

    class Zeros(np.random.bit_generator.ISeedSequence):
        def generate_state(self, n_words, dtype=np.uint32):
            return np.zeros(n_words, dtype)

    return Zeros()
