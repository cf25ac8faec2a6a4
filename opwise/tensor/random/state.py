"""The type of numpy's legacy random generator, ``numpy.random.RandomState``."""

from __future__ import annotations

import copy
import ctypes
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

# How many words of 32 bits the key of a Mersenne twister has.
_KEY_WORDS = 624


def copied(generator: Any) -> Any:
    """Return a generator that will draw the same numbers."""
    state = generator.get_state(legacy=False)
    if (
        type(generator) is not np.random.RandomState
        or state["bit_generator"] != "MT19937"
        or not _memory_is_known()
    ):
        return copy.deepcopy(generator)
    new = np.random.RandomState(MT19937())
    new.set_state(state)
    return new


class _Zeros(np.random.bit_generator.ISeedSequence):
    """A seed for generators whose state is set next; numpy reads a list fastest."""

    _words = [0] * _KEY_WORDS

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        return self._words


class MT19937(np.random.MT19937):
    """numpy's Mersenne twister, whose state is read and written as memory.

    numpy converts the words one by one, which takes longer than most draws. The class has numpy's
    name because a state names the class that it is for. Copies and pickles are numpy's class.
    """

    def __init__(self) -> None:
        seed: Any = _Zeros()
        super().__init__(seed)
        self._words = _words(self)

    @property
    def state(self) -> Any:
        words = self._words.copy()
        return {
            "bit_generator": "MT19937",
            "state": {"key": words[:_KEY_WORDS], "pos": int(words[_KEY_WORDS])},
        }

    @state.setter
    def state(self, value: Any) -> None:
        if _is_fast(value):
            words = value["state"]
            self._words[:_KEY_WORDS], self._words[_KEY_WORDS] = words["key"], words["pos"]
        else:
            of_numpy: Any = np.random.MT19937.state
            of_numpy.__set__(self, value)

    def __reduce__(self) -> Any:
        plain: Any = np.random.MT19937(0)
        plain.state = self.state
        return plain.__reduce__()


def _is_fast(state: Any) -> bool:
    """Return whether a state is one of a twister with its key as an array; numpy checks others."""
    if not isinstance(state, dict) or state.get("bit_generator") != "MT19937":
        return False
    key = state["state"]["key"]
    return isinstance(key, np.ndarray) and key.dtype == np.uint32 and key.shape == (_KEY_WORDS,)


def _words(generator: np.random.MT19937) -> np.ndarray:
    """Return the memory of a twister as an array: the words of its key, then its position."""
    memory: Any = (ctypes.c_uint32 * (_KEY_WORDS + 1)).from_address(generator.ctypes.state_address)
    return np.frombuffer(memory, np.uint32)


@cache
def _memory_is_known() -> bool:
    """Return whether this numpy lays out the state of a twister as ``_words`` reads it."""
    generator = np.random.MT19937(0)
    generator.random_raw(3)
    state, words = generator.state["state"], _words(generator)
    return bool(words[_KEY_WORDS] == state["pos"]) and np.array_equal(
        words[:_KEY_WORDS], state["key"]
    )
