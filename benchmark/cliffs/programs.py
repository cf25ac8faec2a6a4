"""Programs as plain data, which numpy evaluates and opwise compiles, and what each has to move.

One expression of each operation serves both: it is written for a module ``m`` with numpy's names,
which is ``numpy`` itself or ``SYMBOLIC``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

import opwise
import opwise.tensor as T
from opwise.compile.shared import shared
from opwise.testing.fuzz.layouts import LAYOUTS, laid_out

#: symbolic functions under numpy's names
SYMBOLIC = SimpleNamespace(
    exp=T.exp, log=T.log, tanh=T.tanh, sin=T.sin, sqrt=T.sqrt, abs=abs, where=T.switch,
    maximum=T.maximum, minimum=T.minimum, floor=T.floor, dot=T.dot, cumsum=T.cumsum, sort=T.sort,
    concatenate=lambda parts, axis: T.join(axis, *parts), repeat=T.repeat, argmax=T.argmax,
    cast=T.cast, with_part=lambda x, part, y: T.set_subtensor(x[part], y), argsort=T.argsort,
)  # fmt: skip


def _with_part(x, part, y):
    result = x.copy()
    result[part] = y
    return result


NUMERIC = SimpleNamespace(**{name: getattr(np, name, None) for name in vars(SYMBOLIC)})
NUMERIC.cast = lambda x, dtype: x.astype(dtype)
NUMERIC.with_part = _with_part
#: of the dtype of x, as in Theano
NUMERIC.cumsum = lambda x, axis: np.cumsum(x, axis=axis, dtype=x.dtype)


@dataclass(frozen=True)
class Operation:
    """An operation: its expression, and what an element takes."""

    apply: Callable[..., Any]
    #: nanoseconds of an element of the largest operand or result, beside moving it, in float64
    nanoseconds: float = 0.25
    #: whether a compiler computes it together with its neighbours and stores nothing in between
    fused: bool = True
    #: bytes that each element moves beside its own: a place in memory that is hard to foresee
    scattered: int = 0
    #: whether its result shows the memory of its operand, which numpy returns at once
    is_view: bool = False


def _row(reduction):
    return lambda m, x, axis: getattr(x, reduction)(axis=axis)


#: operations by name; the arguments after ``m`` are values, then the parameters of the statement
OPERATIONS = {
    "add": Operation(lambda m, x, y: x + y),
    "sub": Operation(lambda m, x, y: x - y),
    "mul": Operation(lambda m, x, y: x * y),
    "div": Operation(lambda m, x, y: x / y, 0.7),
    "maximum": Operation(lambda m, x, y: m.maximum(x, y)),
    "minimum": Operation(lambda m, x, y: m.minimum(x, y)),
    "less": Operation(lambda m, x, y: x < y),
    "equal": Operation(lambda m, x, y: m.cast(x, "int16") & m.cast(y, "int16")),
    "where": Operation(lambda m, x, y, z: m.where(x < y, y, z)),
    "negative": Operation(lambda m, x: -x),
    "square": Operation(lambda m, x: x * x),
    "abs": Operation(lambda m, x: m.abs(x)),
    "sqrt": Operation(lambda m, x: m.sqrt(m.abs(x)), 1.5),
    "floor": Operation(lambda m, x: m.floor(x)),
    "exp": Operation(lambda m, x: m.exp(x), 1.5),
    "log": Operation(lambda m, x: m.log(m.abs(x) + 1), 2.0),
    "tanh": Operation(lambda m, x: m.tanh(x), 3.0),
    "sin": Operation(lambda m, x: m.sin(x), 3.0),
    "cast": Operation(lambda m, x, dtype: m.cast(x, dtype)),
    "sum": Operation(_row("sum")),
    "mean": Operation(_row("mean")),
    "max": Operation(_row("max")),
    "min": Operation(_row("min")),
    "prod": Operation(_row("prod")),
    "var": Operation(lambda m, x, axis: x.var(axis=axis), 0.6),
    "argmax": Operation(lambda m, x, axis: m.argmax(x, axis=axis), 0.6),
    "row max": Operation(lambda m, x: x.max(axis=-1, keepdims=True)),
    "row sum": Operation(lambda m, x: x.sum(axis=-1, keepdims=True)),
    "row mean": Operation(lambda m, x: x.mean(axis=-1, keepdims=True)),
    "column sum": Operation(lambda m, x: x.sum(axis=0, keepdims=True)),
    "transpose": Operation(lambda m, x: x.T, 0.0, is_view=True),
    "flip": Operation(lambda m, x: x[::-1], 0.0, is_view=True),
    "step": Operation(lambda m, x: x[..., ::2], 0.0, is_view=True),
    "part": Operation(lambda m, x: x[1:], 0.0, is_view=True),
    "take": Operation(lambda m, x, i: x[i], 0.5, fused=False, scattered=64),
    "take columns": Operation(lambda m, x, i: x[:, i], 1.0, fused=False, scattered=32),
    "set part": Operation(lambda m, x, y: m.with_part(x, slice(1, None), y), fused=False),
    "concatenate": Operation(lambda m, x, y, axis: m.concatenate([x, y], axis), fused=False),
    "repeat": Operation(lambda m, x, n, axis: m.repeat(x, n, axis), 0.5, fused=False),
    "cumsum": Operation(lambda m, x, axis: m.cumsum(x, axis=axis), 1.0, fused=False),
    "sort": Operation(lambda m, x: m.sort(x, axis=-1), 15.0, fused=False),
    "argsort": Operation(lambda m, x: m.argsort(x, axis=-1, kind="mergesort"), 40.0, fused=False),
    "dot": Operation(lambda m, x, y: m.dot(x, y), 0.0, fused=False),
}


COMPLEX = {"complex64", "complex128"}
#: functions of complex numbers that the C library computes one by one
ONE_BY_ONE = {"tanh", "sin"}


@dataclass(frozen=True)
class Leaf:
    """An input: ``broadcast`` in a layout means that its elements are one in memory."""

    dtype: str
    shape: tuple[int, ...]
    layout: str = "plain"
    #: of indices: one more than the largest; else 0
    below: int = 0

    def array(self, rng: np.random.Generator) -> np.ndarray:
        """Return random numbers, all small and most of them positive."""
        if self.below:
            made = rng.integers(0, self.below, self.shape)
        elif self.layout == "broadcast":
            return np.broadcast_to(np.ones((), self.dtype), self.shape)
        else:
            made = rng.random(self.shape) + 0.5
        if np.dtype(self.dtype).kind in "iu" and not self.below:
            made = made * 2
        return laid_out(np.asarray(made).astype(self.dtype), self.layout)

    def lines(self) -> float:
        """Return how many bytes of memory each byte of an element brings into the caches."""
        size = np.dtype(self.dtype).itemsize
        return min(2.0, 64 / size) if self.layout == "strided" and self.shape else 1.0


@dataclass(frozen=True)
class Statement:
    """An operation on values, numbered from the leaves on, with its parameters."""

    name: str
    args: tuple[int, ...]
    params: tuple[Any, ...] = ()

    def __str__(self) -> str:
        given = [f"v{a}" for a in self.args] + [repr(p) for p in self.params]
        return f"{self.name}({', '.join(given)})"


@dataclass(frozen=True)
class Program:
    """Leaves, statements, and the numbers of the values that are results.

    update: whether the first result becomes the new value of the first leaf, a shared variable.
    """

    leaves: tuple[Leaf, ...]
    statements: tuple[Statement, ...]
    outs: tuple[int, ...]
    update: bool = False

    def values(self, m: Any, leaves: list[Any]) -> list[Any]:
        """Return all values, by the functions of ``m``."""
        values = list(leaves)
        for s in self.statements:
            values.append(OPERATIONS[s.name].apply(m, *(values[a] for a in s.args), *s.params))
        return values

    def arrays(self, seed: int = 0) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        return [leaf.array(rng) for leaf in self.leaves]

    def numeric_values(self, arrays: list[np.ndarray]) -> list[Any]:
        """Return all values, computed by numpy."""
        return self.values(NUMERIC, arrays)

    def numeric(self, arrays: list[np.ndarray]) -> Callable[[], Any]:
        """Return a function that runs the program in numpy."""

        def run():
            values = self.values(NUMERIC, arrays)
            results = [values[o] for o in self.outs]
            if self.update:
                arrays[0][...] = results[0]
            return results

        return run

    def compiled(self, arrays: list[np.ndarray]) -> Callable[[], Any]:
        """Return a function that runs the program in opwise."""
        symbols = [
            T.TensorType(leaf.dtype, [length == 1 for length in leaf.shape])()
            for leaf in self.leaves
        ]
        if self.update:
            symbols[0] = shared(arrays[0].copy(order="K"), borrow=True)
        values = self.values(SYMBOLIC, symbols)
        results = [values[o] for o in self.outs]
        updates = [(symbols[0], results[0])] if self.update else []
        f = opwise.function(
            symbols[self.update :], results[self.update :], updates=updates,
            on_unused_input="ignore",
        )  # fmt: skip
        given = arrays[self.update :]
        return lambda: f(*given)

    def __str__(self) -> str:
        lines = [
            f"v{k} = {leaf.dtype} {'x'.join(map(str, leaf.shape)) or 'number'}"
            f"{'' if leaf.layout == 'plain' else ', ' + leaf.layout}"
            for k, leaf in enumerate(self.leaves)
        ]
        n = len(self.leaves)
        lines += [f"v{n + k} = {s}" for k, s in enumerate(self.statements)]
        results = ", ".join(f"v{o}" for o in self.outs)
        return "; ".join([*lines, ("v0 becomes " if self.update else "return ") + results])

    def is_comparable(self) -> bool:
        """Return whether it computes its results: numpy returns views and arguments themselves."""
        n = len(self.leaves)
        return all(
            o >= n and not OPERATIONS[self.statements[o - n].name].is_view for o in self.outs
        )

    def reason(self) -> str | None:
        """Return why it may be slower than its model, if that is known."""
        dtypes = {leaf.dtype for leaf in self.leaves} | {
            p for s in self.statements for p in s.params if s.name == "cast"
        }
        has_functions = any(s.name in ONE_BY_ONE for s in self.statements)
        return "functions of complex numbers" if dtypes & COMPLEX and has_functions else None

    def only_used(self) -> Program:
        """Return the program without what its results do not need."""
        n = len(self.leaves)
        needed = set(self.outs) | ({0} if self.update else set())
        for k in reversed(range(len(self.statements))):
            if n + k in needed:
                needed.update(self.statements[k].args)
        number = {old: new for new, old in enumerate(sorted(needed))}
        return replace(
            self,
            leaves=tuple(leaf for k, leaf in enumerate(self.leaves) if k in needed),
            statements=tuple(
                replace(s, args=tuple(number[a] for a in s.args))
                for k, s in enumerate(self.statements)
                if n + k in needed
            ),
            outs=tuple(number[o] for o in self.outs),
        )


#: the layouts of leaves, with those of little interest left out
LEAF_LAYOUTS = ("fortran", "reversed", "strided", "rows apart", "part of a larger one", "broadcast")
assert set(LEAF_LAYOUTS) - {"broadcast"} <= set(LAYOUTS)
