"""The type of numpy's legacy random generator, ``numpy.random.RandomState``."""

from __future__ import annotations

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
            f"{data!r} is not a numpy.random.RandomState: give numpy.random.RandomState(seed)"
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
