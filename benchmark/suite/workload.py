"""What a workload is: a program, its data, and the least that computing it must move and multiply.

A program is written once, against a namespace ``xp`` that every contender supplies
(``contenders/base.py`` lists what is in it). It takes its inputs and its state by name and returns
the outputs and, by name, the new state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

SEED = 20250807

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Data:
    """What a program is given: inputs, the same at every call, and a state that calls change."""

    inputs: Arrays
    state: Arrays

    @property
    def all(self) -> Arrays:
        return {**self.inputs, **self.state}

    def astype(self, dtype: str) -> Data:
        """A copy with floats, or complex numbers, of that dtype; integers stay as they are."""

        def cast(arrays: Arrays) -> Arrays:
            kind = np.dtype(dtype).kind
            return {
                name: np.array(value, dtype if value.dtype.kind == kind else value.dtype)
                for name, value in arrays.items()
            }

        return Data(cast(self.inputs), cast(self.state))


@dataclass(frozen=True)
class Least:
    """What no implementation gets around: bytes read, bytes written, flops in matrix products."""

    read: int
    written: int
    flops: int


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One line of the table.

    draw: ``draw(rng, **sizes)`` gives the inputs and the state, in float64.
    by_hand: the program for arrays of numpy, where it contains a gradient; overwrites the state.
    numexpr: the program as expressions, one an output, where it is elementwise.
    loop: the program as loops of Python over numbers, which returns the outputs, for compilers of
        these; where it is a recurrence of numbers.
    unrolled: names of sizes that the program itself has to know.
    flops: ``flops(**sizes)``, of the matrix products alone.
    moved: ``moved(itemsize, **sizes)``, bytes read and written, where not all of every input is
        read or not all of the state is changed.
    holds: the caller still holds the previous result during a call.
    random: the outputs are random numbers, whose mean and standard deviation are those of numpy's.
    user_code: the language of the code that the user of the library has written, if any.
    images: it contains a convolution or a pooling of images with channels.
    """

    name: str
    what: str
    dtype: str
    sizes: dict[str, int]
    draw: Callable[..., tuple[Arrays, Arrays]]
    program: Callable
    by_hand: Callable | None = None
    numexpr: tuple[str, ...] = ()
    loop: Callable | None = None
    unrolled: tuple[str, ...] = ()
    flops: Callable[..., int] | None = None
    moved: Callable[..., tuple[int, int]] | None = None
    holds: bool = False
    random: bool = False
    user_code: str = ""
    images: bool = False

    def data(self) -> Data:
        return Data(*self.draw(np.random.default_rng(SEED), **self.sizes)).astype(self.dtype)

    def bind(self, xp, values: dict) -> Callable[[], tuple[tuple, dict]]:
        """What returns outputs and new state, over one library's values."""
        return partial(self.program, xp, **values, **self._known())

    def bind_by_hand(self, xp, values: Arrays) -> Callable[[], tuple[tuple, Arrays]]:
        """The same for numpy, which has no gradients; the state in ``values`` is overwritten."""
        if self.by_hand is None:
            return self.bind(xp, values)
        return partial(self.by_hand, **values, **self._known())

    def bind_loop(self, compiled: Callable, values: Arrays) -> Callable[[], object]:
        """What calls a compiled ``loop``."""
        return partial(compiled, **values, **self._known())

    def _known(self) -> dict[str, int]:
        return {name: self.sizes[name] for name in self.unrolled}

    def least(self, outputs: list[np.ndarray]) -> Least:
        """Every input and all state read once, every output and all state written once."""
        itemsize = np.dtype(self.dtype).itemsize
        if self.moved is not None:
            read, written = self.moved(itemsize, **self.sizes)
        else:
            data = self.data()
            state = sum(value.nbytes for value in data.state.values())
            read = state + sum(value.nbytes for value in data.inputs.values())
            written = state + sum(np.size(value) for value in outputs) * itemsize
        return Least(read, written, self.flops(**self.sizes) if self.flops else 0)

    def reduced(self) -> Workload:
        """The same at sizes that take no time, no two dimensions alike."""
        sizes = {
            name: min(size, 4 + 3 * place) for place, (name, size) in enumerate(self.sizes.items())
        }
        return replace(self, sizes=sizes)
