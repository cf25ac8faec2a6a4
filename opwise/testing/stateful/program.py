"""Program: a random program, with its reference in numpy, which computes in two precisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import special

import opwise.tensor as T
from opwise.compile.shared import shared
from opwise.config import change_flags
from opwise.loops import scan
from opwise.tensor.ifelse import ifelse
from opwise.tensor.linalg.inverse import matrix_inverse
from opwise.testing.fuzz.layouts import array_text
from opwise.testing.stateful import operations
from opwise.testing.stateful.operations import OPERATIONS, PARAMETERS, Array, Below, Operation

_DTYPES = (
    "float64", "float32", "int64", "float64", "int32", "bool", "float32", "float16", "int8",
    "uint8", "uint64", "int16", "complex128", "complex64", "uint16", "uint32",
)  # fmt: skip
#: the characters of the dtypes that the letters of operands stand for
_INTEGERS, _FLOATS = "bhilqBHILQ", "efd"
_KINDS = {
    "d": "d", "f": _FLOATS, "c": _FLOATS + "FD", "i": _INTEGERS, "b": "?",
    "r": _INTEGERS + _FLOATS, "n": _INTEGERS + _FLOATS + "FD",
    "a": "?" + _INTEGERS + _FLOATS + "FD",
}  # fmt: skip
_HIGHER: dict[str, Any] = {
    "float16": np.float32, "float32": np.float64, "float64": np.longdouble,
    "complex64": np.complex128, "complex128": np.clongdouble,
}  # fmt: skip
_SPECIAL = (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, "tiny", "max", "smallest_subnormal")
#: the largest result, in elements
_LARGEST = 3000
_SYMBOLIC: dict[str, Any] = {
    "T": T, "np": np, "ifelse": ifelse, "matrix_inverse": matrix_inverse,
    "theano": SimpleNamespace(scan=scan),
}  # fmt: skip


@dataclass(frozen=True)
class Leaf:
    """An input or a shared variable."""

    name: str
    #: "input", or "shared"
    kind: str
    dtype: str
    #: for each dimension the number of its length in ``Program.sizes``; -1: of length 1, broadcast
    dims: tuple[int, ...]

    def declaration(self) -> str:
        """Return text that makes the variable of an input."""
        broadcast = tuple(d < 0 for d in self.dims)
        return f"T.TensorType({self.dtype!r}, {broadcast})({self.name!r})"

    def shape(self, sizes: list[int]) -> tuple[int, ...]:
        return tuple(1 if d < 0 else sizes[d] for d in self.dims)


@dataclass(frozen=True)
class Statement:
    """``name = text``, in both languages."""

    name: str
    symbolic: str
    numpy: str
    operands: tuple[str, ...]
    operation: Operation
    #: of the result
    dtype: str

    def evaluated(self, values: dict[str, Array], up: Callable[[Any, Any], Array]) -> Array:
        """Return the value of the text for numpy. up: converts an array to a dtype, or a higher."""
        operands = {name: values[name] for name in self.operands}
        if self.operation.cast == "common":
            common = np.result_type(*operands.values())
            operands = {name: x.astype(common) for name, x in operands.items()}
        elif self.operation.cast:
            kept = self.operands[:1] if self.operation.cast == "branches" else ()
            operands = {n: x if n in kept else up(x, self.dtype) for n, x in operands.items()}
        if self.operation.double:  # neither scipy nor LAPACK has long doubles
            lower = {"g": np.float64, "G": np.complex128, "e": np.float32}
            operands = {n: x.astype(lower.get(x.dtype.char, x.dtype)) for n, x in operands.items()}
        names = {**vars(operations), "np": np, "special": special, "up": up}
        return up(eval(self.numpy, names, operands), self.dtype)


@dataclass
class Program:
    """A random program."""

    leaves: list[Leaf] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    #: {name of a shared variable: name of its new value}
    updates: dict[str, str] = field(default_factory=dict)
    #: the lengths of dimensions
    sizes: list[int] = field(default_factory=list)
    #: whether leaves have NaN, infinities and other special values
    special: bool = False
    #: the variables, by name
    variables: dict[str, Any] = field(default_factory=dict)
    #: the first values of the shared variables
    shared_values: dict[str, Array] = field(default_factory=dict)

    def inputs(self) -> list[Leaf]:
        return [leaf for leaf in self.leaves if leaf.kind == "input"]

    def shared(self) -> list[Leaf]:
        return [leaf for leaf in self.leaves if leaf.kind == "shared"]

    def results(self) -> list[str]:
        """Return the names of the outputs, then of the new values of shared variables."""
        return [*self.outputs, *self.updates.values()]

    def without(self, outputs: Iterable[str]) -> None:
        """Keep only some outputs, and what they and the updates need."""
        self.outputs = list(outputs)
        wanted: set[str] = set()
        stack = [*self.results(), *self.updates]
        while stack:
            name = stack.pop()
            if name not in wanted:
                wanted.add(name)
                stack += [n for s in self.statements if s.name == name for n in s.operands]
        self.statements = [s for s in self.statements if s.name in wanted]
        self.leaves = [leaf for leaf in self.leaves if leaf.name in wanted]

    def kinds(self) -> set[str]:
        """Return the dtypes of all leaves and statements."""
        return {leaf.dtype for leaf in self.leaves} | {s.dtype for s in self.statements}

    # --- the reference ----------------------------------------------------------------------------

    def computed(
        self, given: dict[str, Array], high: bool = False, rng: Any = None
    ) -> dict[str, Array]:
        """Return the values of all names for values of the leaves.

        high: in the next higher precision. rng: change each value by up to two roundings, except
        those from which others jump. Raises what numpy raises.
        """

        def up(x: Any, dtype: Any) -> Array:
            return np.asarray(x, _HIGHER.get(str(dtype), dtype) if high else dtype)

        def rounded(name: str, x: Array, dtype: str) -> Array:
            if rng is None or dtype[0] not in "fc" or name in fixed:
                return x
            return np.asarray(x * (1 + rng.randint(-2, 3, x.shape) * float(np.finfo(dtype).eps)))

        fixed = self.sources({n for s in self.statements if s.operation.exact for n in s.operands})
        values = {
            leaf.name: rounded(leaf.name, up(given[leaf.name], leaf.dtype), leaf.dtype)
            for leaf in self.leaves
        }
        with np.errstate(all="ignore"):
            for s in self.statements:
                value = s.evaluated(values, up)
                values[s.name] = rounded(s.name, value, s.dtype) if s.operation.computes else value
        return values

    def bounds(self, given: dict[str, Array], seed: int) -> dict[str, tuple[Array, Array]]:
        """Return, for each result, its exact value and how far rounding may take it from that.

        The bound is NaN where a result is not to be compared: one precision overflows, or NaN and
        infinity are lost by a rewrite such as x - x = 0. Raises what numpy raises.
        """
        low, high = self.computed(given), self.computed(given, high=True)
        rng = np.random.RandomState(seed)
        others = [high] * 3 if self.special else [
            self.computed(given, high=True, rng=rng) for _ in range(3)
        ]  # fmt: skip
        finite = {name: x.dtype.kind not in "fc" or bool(np.isfinite(x).all())
                  for name, x in low.items()}  # fmt: skip
        lost = any(
            not finite[s.name] and (not self.special or all(finite[n] for n in s.operands))
            for s in self.statements
        )
        eps = max((float(np.finfo(d).eps) for x in self.kinds() if (d := np.dtype(x)).kind in "fc"),
                  default=0.0)  # fmt: skip
        rough = 1000 if any(s.operation.double for s in self.statements) else 0
        found = {}
        with np.errstate(all="ignore"):
            for name in self.results():
                exact = high[name]
                if low[name].dtype.kind not in "fc":
                    found[name] = exact, np.zeros(exact.shape)
                    continue
                spread = [abs(low[name] - exact), *(abs(o[name] - exact) for o in others)]
                info = np.finfo(low[name].dtype)
                bound = 6 * np.max(spread, axis=0, initial=0) + 16 * eps * abs(exact)
                bound = np.asarray(bound + 4 * float(info.smallest_subnormal), float)
                if rough and exact.size:
                    bound += rough * eps * float(np.max(abs(exact)))
                both = np.isfinite(exact)
                bound[~both] = 0
                bound[both != np.isfinite(low[name])] = np.nan
                bound[~both & (low[name] != exact) & ~np.isnan(exact)] = np.nan
                if lost:
                    bound[...] = np.nan
                found[name] = exact, bound
        return found

    def sources(self, names: set[str]) -> set[str]:
        """Return some names and all that they are computed from."""
        wanted, by_name = set(names), {s.name: s for s in self.statements}
        for s in reversed(self.statements):
            if s.name in wanted:
                wanted.update(by_name[s.name].operands)
        return wanted

    # --- text -------------------------------------------------------------------------------------

    def source(self) -> list[str]:
        """Return the lines of the program in opwise's language."""
        lines = []
        for leaf in self.leaves:
            made = leaf.declaration()
            if leaf.kind == "shared":
                value = array_text(self.shared_values[leaf.name], "plain")
                made = f"theano.shared({value}, {leaf.name!r}, broadcastable="
                made += f"{tuple(d < 0 for d in leaf.dims)})"
            lines.append(f"{leaf.name} = {made}")
        return lines + [f"{s.name} = {s.symbolic}" for s in self.statements]


class Rejected(Exception):
    """Operands do not fit."""


class Drawing:
    """Draws a Program from a source of choices."""

    def __init__(self, below: Below, special: bool = False) -> None:
        self.below = below
        self.rng = np.random.RandomState(below(1 << 16))
        self.program = Program(special=special)
        self.program.sizes = [2 + below(6) for _ in range(3)]
        if below(12) == 11:
            self.program.sizes[below(3)] = (0, 40, 300)[below(3)]
        self.dtypes = [_DTYPES[below(5) if below(3) else below(len(_DTYPES))] for _ in range(2)]
        self.values: dict[str, Array] = {}
        #: names whose values were not rounded
        self.exact: set[str] = set()
        #: how many operations NaN and infinity went through
        self.level: dict[str, int] = {}

    def drawn(self, most: int) -> Program | None:
        """Return a program of up to ``most`` statements; None if none was accepted."""
        for _ in range(1 + self.below(3)):
            self.leaf()
        for _ in range(1 + self.below(most)):
            try:
                self.statement()
            except Rejected:
                continue
        program = self.program
        if not program.statements:
            return None
        read = {n for s in program.statements for n in s.operands}
        ends = [s.name for s in program.statements if s.name not in read]
        outputs = [ends[-1], *(n for n in ends[:-1] if self.below(3))]
        if not self.below(6):
            outputs.append(self.choice([leaf.name for leaf in program.leaves]))
        for leaf in program.shared():
            fitting = [
                s.name
                for s in program.statements
                if program.variables[s.name].type == program.variables[leaf.name].type
                and self.values[s.name].shape == self.values[leaf.name].shape
            ]
            if fitting and self.below(4):
                program.updates[leaf.name] = self.choice(fitting)
        program.without(outputs)
        return program

    def choice(self, things: list[Any]) -> Any:
        if not things:
            raise Rejected
        return things[self.below(len(things))]

    def leaf(self) -> None:
        program = self.program
        name = f"v{len(self.values)}"
        dims = tuple(self.below(4) - 1 for _ in range((2, 1, 2, 0, 3)[self.below(5)]))
        leaf = Leaf(name, "input" if self.below(3) else "shared", self.choice(self.dtypes), dims)
        value = random_values(leaf, program.sizes, self.rng, program.special)
        if leaf.kind == "shared":
            program.shared_values[name] = value
            program.variables[name] = shared(
                value.copy(), name, broadcastable=tuple(d < 0 for d in dims)
            )
        else:
            program.variables[name] = eval(leaf.declaration(), _SYMBOLIC)
        program.leaves.append(leaf)
        self.values[name] = value
        self.exact.add(name)
        self.level[name] = int(program.special and leaf.dtype[0] in "fc")

    def statement(self) -> None:
        """Add a statement; raise Rejected if the operands do not fit."""
        operation: Operation = OPERATIONS[self.below(len(OPERATIONS))]
        names = tuple(self.operand(letters, operation) for letters in operation.operands)
        shapes = [self.values[n].shape for n in names]
        s, t = shapes[0], shapes[-1]
        if operation.shapes == "broadcast":
            self.check_broadcast(names)
        elif operation.shapes != "any" and not eval(operation.shapes, {"s": s, "t": t}):
            raise Rejected
        level = max(self.level[n] for n in names)
        if level and operation.computes:
            level += 1
            sources = [self.program.sources({n}) for n in names]
            if (
                level > 2
                or operation.double
                or operation.folds
                or len(set().union(*sources)) < sum(map(len, sources))
            ):
                raise Rejected  # rewrites make 0 of x - x, also where x is not finite
        if not level:
            with np.errstate(all="ignore"):
                x, y = self.values[names[0]], self.values[names[-1]]
                if not np.all(eval(operation.domain, {"x": x, "y": y})):
                    raise Rejected
        texts = {
            key: draw(self.below, s) for key, draw in PARAMETERS.items()
            if "{" + key + "}" in operation.symbolic
        }  # fmt: skip
        self.add(operation, names, texts, level)

    def add(
        self, operation: Operation, names: tuple[str, ...], texts: dict[str, str], level: int
    ) -> None:
        program = self.program
        name = f"v{len(self.values)}"
        symbolic = operation.symbolic.format(*names, **texts)
        numpy = operation.numpy.format(*names, **texts)
        try:
            with change_flags(compute_test_value="off"):
                variable = eval(symbolic, _SYMBOLIC, program.variables)
        except (TypeError, ValueError, NotImplementedError):
            raise Rejected from None
        statement = Statement(name, symbolic, numpy, names, operation, variable.dtype)
        try:
            with np.errstate(all="ignore"):
                value = statement.evaluated(self.values, np.asarray)
        except (TypeError, ValueError, np.linalg.LinAlgError):
            raise Rejected from None
        if value.size > _LARGEST or value.ndim != variable.ndim:
            raise Rejected
        finite = value.dtype.kind not in "fc" or np.isfinite(value).all()
        if not level and not (
            finite and np.all(abs(value) < 1e4 if value.dtype.kind in "fc" else True)
        ):
            raise Rejected
        program.statements.append(statement)
        program.variables[name] = variable
        self.values[name] = value
        self.level[name] = level
        if all(n in self.exact for n in names) and (
            not operation.computes or value.dtype.kind in "biu"
        ):
            self.exact.add(name)

    def operand(self, letters: str, operation: Operation) -> str:
        kind, rank = letters[0], letters[1:]
        found: str = self.choice([
            n for n, x in self.values.items()
            if x.dtype.char in _KINDS[kind] and (not rank or x.ndim == int(rank))
            and (n in self.exact or not operation.exact)
        ])  # fmt: skip
        return found

    def check_broadcast(self, names: tuple[str, ...]) -> None:
        """Raise Rejected unless shapes fit as opwise wants it: a length of 1 must be declared."""
        try:
            whole = np.broadcast_shapes(*(self.values[n].shape for n in names))
        except ValueError:
            raise Rejected from None
        for name in names:
            declared = self.program.variables[name].broadcastable
            shape = self.values[name].shape
            for n, m, known in zip(shape[::-1], whole[::-1], declared[::-1], strict=False):
                if n != m and not known:
                    raise Rejected


def random_values(leaf: Leaf, sizes: list[int], rng: Any, special: bool) -> Array:
    """Return a random value for a leaf."""
    shape, dtype = leaf.shape(sizes), np.dtype(leaf.dtype)
    if dtype.kind == "b":
        return np.asarray(rng.randint(0, 2, shape), dtype)
    if dtype.kind in "iu":
        low = 0 if dtype.kind == "u" else -5
        return np.asarray(rng.randint(low, 6, shape), dtype)
    value = np.asarray(rng.choice((1.0, 1.0, 0.1, 5.0)) * rng.randn(*shape))
    if rng.rand() < 0.3:
        value = abs(value) + 0.25
    if rng.rand() < 0.2:
        value = np.round(value)
    value = np.asarray(value.astype(dtype))
    if dtype.kind == "c":
        value = np.asarray(value + 1j * rng.randn(*shape), dtype)
    elif special:
        for at in np.ndindex(*shape):
            if rng.rand() < 0.4:
                chosen = _SPECIAL[rng.randint(len(_SPECIAL))]
                value[at] = getattr(np.finfo(dtype), chosen) if isinstance(chosen, str) else chosen
    return value
