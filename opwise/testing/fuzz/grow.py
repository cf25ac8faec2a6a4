"""Grower: grows a random program, statement by statement, and computes each value at once.

Comparisons, roundings and indices use only exact numbers (``Perturbed.exact``). Statements whose
result depends on rounding are rejected. NaN and infinity go through at most one arithmetic
operation, since rewrites turn x - x into 0 whatever x is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, NoReturn, TypeVar

import numpy as np

import opwise.tensor as T
from opwise import gradient
from opwise.compile.mrg_streams import MRG_RandomStreams
from opwise.compile.shared import SharedVariable, shared
from opwise.compile.streams import RandomStreams
from opwise.config import change_flags
from opwise.graph.traversal import ancestors
from opwise.loops import foldl, foldr, reduce, scan, until
from opwise.loops.checkpoints import scan_checkpoints
from opwise.loops.jacobians import jacobian
from opwise.modes.debugging.perturbation import Perturbed, beyond
from opwise.tensor import extra_ops, selection
from opwise.tensor.conv import functions as abstract_conv
from opwise.tensor.conv import pool
from opwise.tensor.ifelse import ifelse
from opwise.testing.configurations import REFERENCE
from opwise.testing.fuzz import userops
from opwise.testing.fuzz.layouts import LAYOUTS
from opwise.testing.fuzz.program import MOST_STEPS, Leaf, RandomProgram

#: returns a random integer in 0 to n-1
Below = Callable[[int], int]
Thing = TypeVar("Thing")

#: exceptions that refuse operands; any other exception is a fault
REFUSALS = (TypeError, ValueError, NotImplementedError, IndexError)
#: the largest floats by dtype: rewrites may multiply what was divided, and so overflow
_LARGEST = {"e": 200.0, "f": 1e6, "d": 1e9, "F": 1e6, "D": 1e9}
_DTYPES = (
    "float64", "float32", "int64", "float64", "int32", "float32", "bool", "int8", "uint8",
    "float16", "int16", "uint16", "uint32", "uint64", "complex128", "complex64",
)  # fmt: skip
#: the largest result, unless the lengths of leaves are large
MOST_ELEMENTS = 400
LARGEST_LEAF = 20000
#: flags by which graphs inside Ops are computed as they are written
_UNREWRITTEN = {"mode": "Mode", "optimizer": "None", "linker": "py"}


class Fault(AssertionError):
    """opwise computes a wrong result.

    outputs: the names of the program's outputs that are wrong.
    """

    def __init__(
        self,
        text: str,
        program: RandomProgram | None = None,
        configuration: str = REFERENCE,
        outputs: Sequence[str] = (),
    ) -> None:
        super().__init__(text)
        self.program, self.configuration, self.outputs = program, configuration, outputs


class Rejected(Exception):
    """A statement was rejected, and nothing was added."""


class Grower:
    """Draws statements, and keeps those that can be computed."""

    names: dict[str, Any] = {
        "T": T, "np": np, "theano": SimpleNamespace(
            gradient=gradient, scan=scan, scan_module=SimpleNamespace(until=until),
            reduce=reduce, foldl=foldl, foldr=foldr, scan_checkpoints=scan_checkpoints),
        "MRG_RandomStreams": MRG_RandomStreams, "RandomStreams": RandomStreams,
        "jacobian": jacobian, "abstract_conv": abstract_conv, "pool": pool,
        "bincount": extra_ops.bincount,
        "compress": selection.compress, "diff": extra_ops.diff, "ifelse": ifelse,
        "searchsorted": extra_ops.searchsorted, "to_one_hot": extra_ops.to_one_hot,
        "userops": userops,
    }  # fmt: skip

    def __init__(
        self, below: Below, special: bool = False, most_dtypes: int = 3, runs: int = 3
    ) -> None:
        """``runs``: with random roundings, of each statement."""
        self.below = below
        self.program = RandomProgram(perturbed=Perturbed({}, runs=runs, most_steps=MOST_STEPS))
        self.special = special
        self.numbers = np.random.RandomState(below(1 << 16))
        self.dtypes = [self._dtype() for _ in range(1 + below(most_dtypes))]
        sizes = [0, 1, 1, 2, 3, 4, 5] if self.chance(30) else [1, 2, 3, 4]
        if self.chance(4):
            sizes = [1, 3, 17, 130]
        self.sizes = [self.choice(sizes) for _ in range(3)]
        self.names = dict(Grower.names)
        #: the names of all variables, the oldest first
        self.order: list[str] = []
        #: for each name: 0, finite; 1, with NaN and infinity of a leaf; 2, after arithmetic on them
        self.level: dict[str, int] = {}
        #: how often each statement was refused
        self.refused: dict[str, int] = {}

    # --- draws ------------------------------------------------------------------------------------

    def chance(self, percent: int) -> bool:
        """Return True in so many percent of calls."""
        return self.below(100) >= 100 - percent  # the simplest draw is 0: no

    def choice(self, things: Iterable[Thing]) -> Thing:
        """Return one of some things; raise Rejected if there is none."""
        found = list(things)
        if not found:
            raise Rejected
        return found[self.below(len(found))]

    def between(self, low: int, high: int) -> int:
        """Return an integer in low to high."""
        return low + self.below(high - low + 1)

    def _dtype(self) -> str:
        """Return a dtype: mostly floats and the usual integers."""
        return _DTYPES[self.below(6) if self.chance(60) else self.below(len(_DTYPES))]

    # --- the variables ----------------------------------------------------------------------------

    def var(self, name: str) -> Any:
        return self.program.variables[name]

    def value(self, name: str) -> Any:
        return self.program.value(name)

    def shape(self, name: str) -> tuple[int, ...]:
        return np.shape(self.value(name))

    def ndim(self, name: str) -> int:
        return int(self.var(name).type.ndim)

    def dtype(self, name: str) -> str:
        return str(self.var(name).type.dtype)

    def kind(self, name: str) -> str:
        return np.dtype(self.dtype(name)).kind

    def exact(self, name: str) -> bool:
        return bool(self.program.perturbed.exact[self.var(name)])

    def pick(
        self,
        kinds: str = "biufc",
        low: int = 0,
        high: int = 4,
        exact: bool = False,
        level: int = 2,
        where: Callable[[str], bool] | None = None,
    ) -> str:
        """Return the name of a tensor of ``low`` to ``high`` dimensions, its dtype of some kinds.

        Half of the time it is one of the latest, so that statements build on each other.
        """
        fitting = [
            name
            for name in self.order
            if self.kind(name) in kinds
            and low <= self.ndim(name) <= high
            and (not exact or self.exact(name))
            and self.level[name] <= level
            and (where is None or where(name))
        ]
        if not fitting or self.chance(12):
            shape = [self.choice(self.sizes) for _ in range(self.between(low, min(high, 3)))]
            dtypes = [d for d in self.dtypes if np.dtype(d).kind in kinds]
            dtype = self.choice(dtypes or [d for d in _DTYPES if np.dtype(d).kind in kinds])
            name = self.leaf(dtype, shape, exact, finite=not level)
            if where is not None and not where(name):
                raise Rejected
            return name
        return fitting[-1 - self.below(min(3, len(fitting)))] if self.chance(55) else self.choice(
            fitting)  # fmt: skip

    def beside(
        self,
        *names: str,
        kinds: str = "biufc",
        exact: bool = False,
        level: int = 2,
        same_dtype: bool = False,
    ) -> str:
        """Return the name of an operand that can be broadcast with the named ones."""
        name = names[0]
        shape = np.broadcast_shapes(*map(self.shape, names))

        def fits(other: str) -> bool:
            return not (same_dtype and self.dtype(other) != self.dtype(name)) and all(
                self._broadcasts(other, one) for one in names
            )

        fitting = [
            other
            for other in self.order
            if self.kind(other) in kinds and (not exact or self.exact(other))
            and self.level[other] <= level and fits(other)
        ]  # fmt: skip
        if fitting and self.chance(80):
            return self.choice(fitting)
        kept = self.below(len(shape) + 1)
        new = [1 if self.chance(25) else n for n in shape[kept:]]
        dtypes = [self.dtype(name)] if same_dtype else [
            d for d in [*self.dtypes, self.dtype(name)] if np.dtype(d).kind in kinds
        ]  # fmt: skip
        dtype = self.choice(dtypes or [d for d in _DTYPES if np.dtype(d).kind in kinds])
        ones = [True if n == 1 and s != 1 else None for n, s in zip(new, shape[kept:], strict=True)]
        return self.leaf(dtype, new, exact, ones, finite=not level)

    def _broadcasts(self, a: str, b: str) -> bool:
        sides = zip(
            self.shape(a)[::-1], self.shape(b)[::-1], self.var(a).type.broadcastable[::-1],
            self.var(b).type.broadcastable[::-1], strict=False,
        )  # fmt: skip
        return all(n == m or (n == 1 and one) or (m == 1 and two) for n, m, one, two in sides)

    def like(self, name: str, same_dtype: bool = False) -> str:
        """Return the name of a tensor of the same shape, possibly the same one."""
        return self.choice(
            [o for o in self.order if self.shape(o) == self.shape(name)
             and (not same_dtype or self.dtype(o) == self.dtype(name))]
        )  # fmt: skip

    # --- additions --------------------------------------------------------------------------------

    def leaf(
        self,
        dtype: str,
        shape: Iterable[int],
        exact: bool = False,
        broadcast: Sequence[bool | None] | None = None,
        finite: bool = False,
        kind: str | None = None,
    ) -> str:
        """Add an input or a shared variable, and return its name.

        broadcast: for each dimension True, False, or None to draw it. finite: without NaN and
        infinity. kind: see Leaf (default: drawn).
        """
        shape = tuple(shape)
        if np.prod(shape, dtype=int) > LARGEST_LEAF:
            raise Rejected
        name = f"v{len(self.program.variables)}"
        pattern = [
            one if one is not None else n == 1 and self.chance(50)
            for n, one in zip(shape, broadcast or [None] * len(shape), strict=True)
        ]
        value, level = self._numbers(dtype, shape, exact, finite)
        draw = self.below(100)
        kind = kind or ("shared" if draw >= 82 else "mutable" if draw >= 76 else "input")
        layout = self.choice(LAYOUTS) if self.chance(35) else "plain"
        if kind == "shared":
            if layout == "read-only":
                layout = "plain"  # updates overwrite it
            declaration = (
                f"theano.shared({{value}}, {name!r}, borrow=True, broadcastable={tuple(pattern)})"
                if shape else f"theano.shared({{value}}, {name!r})"
            )  # fmt: skip
        else:
            declaration = f"T.TensorType({dtype!r}, {tuple(pattern)})({name!r})"
        leaf = Leaf(name, declaration, value, layout, kind)
        with change_flags(compute_test_value="off"):
            if kind == "shared":
                options: dict[str, Any] = {"broadcastable": tuple(pattern)} if shape else {}
                var = shared(leaf.argument(), name, borrow=True, **options)
            else:
                var = T.TensorType(dtype, tuple(pattern))(name)
        self.program.leaves[name] = leaf
        self._known(name, var, level)
        self.program.perturbed.add(var, value)
        return name

    def _known(self, name: str, var: Any, level: int) -> None:
        self.program.variables[name] = self.names[name] = var
        self.level[name] = level
        self.order.append(name)

    def _numbers(
        self, dtype: str, shape: tuple[int, ...], exact: bool, finite: bool
    ) -> tuple[Any, int]:
        """Return a random array and its level, see ``self.level``."""
        kind, r = np.dtype(dtype).kind, self.numbers
        if kind == "b":
            return np.asarray(r.randint(0, 2, shape)).astype(bool), 0
        if kind in "iu":
            values = np.asarray(r.randint(0 if kind == "u" else -4, 6, shape)).astype(dtype)
            if self.chance(8) and values.size:
                info = np.iinfo(dtype)
                values = r.choice(np.array([info.min, info.max, 0, 1], dtype), shape)
            return np.asarray(values), 0
        style = self.below(4)
        if exact or style == 1:
            values = np.asarray(r.randint(-3, 5, shape), float)
        elif style == 2:
            values = np.asarray(r.randint(-8, 9, shape)) / (2.0 if dtype != "float16" else 1.0)
        else:
            values = np.asarray(r.uniform(-2, 2, shape))
        if kind == "c":
            values = values + 1j * r.randint(-2, 3, shape)
        values = np.asarray(values).astype(dtype)
        if self.special and not finite and kind == "f" and values.size and self.chance(40):
            chosen = r.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], shape)
            values = np.where(r.randint(0, 3, shape) == 0, chosen, values).astype(dtype)
            return values, int(not np.isfinite(values).all())
        return values, 0

    def add(
        self, text: str, arithmetic: bool = True, reference: str | None = None, loose: bool = False
    ) -> str:
        """Add a statement if opwise accepts it and its value is sound, and return its name.

        arithmetic: it computes with its operands, so special values must not go through it twice.
        reference: numpy text for the same value, which is compared. loose: accept a value that
        depends on rounding.
        """
        read = [n for n in dict.fromkeys(re.findall(r"\bv\d+\b", text)) if n in self.names]
        level = max((self.level[n] for n in read), default=0)
        if arithmetic and level > 1:
            raise Rejected
        if arithmetic and level == 1:
            if any(n in self.program.statements for n in read) or len(set(read)) < len(
                re.findall(r"\bv\d+\b", text)
            ):
                raise Rejected
            level = 2
        name = f"v{len(self.program.variables)}"
        try:
            with change_flags(compute_test_value="off"):
                var = eval(text, self.names)
        except REFUSALS as error:
            self._refuse(text, error)
        except Exception as error:
            raise Fault(f"{text} raises {type(error).__name__}: {error}", self.only(name, text),
                        REFERENCE) from error  # fmt: skip
        if not isinstance(var, T.TensorVariable) or var.type.ndim > 5 or var.owner is None:
            raise Rejected
        if var in self.program.perturbed.values and var in self.program.variables.values():
            raise Rejected
        for state in ancestors([var], blockers=list(self.program.variables.values())):
            if isinstance(state, SharedVariable) and state not in self.program.perturbed.values:
                self.program.perturbed.add(state, state.get_value())  # of a random stream
        try:
            with np.errstate(all="ignore"), change_flags(**_UNREWRITTEN):
                [value] = self.program.perturbed.compute([var])
        except REFUSALS as error:
            self._refuse(text, error)
        except Exception as error:
            raise Fault(f"{text}: perform raises {type(error).__name__}: {error}",
                        self.only(name, text), REFERENCE) from error  # fmt: skip
        self._check_sound(name, text, var, value, level, loose)
        if reference is not None:
            self._check_reference(name, text, var, value, reference)
        self.program.statements[name] = text
        self._known(name, var, level)
        return name

    def _refuse(self, text: str, error: Exception) -> NoReturn:
        key = f"{re.sub(r'v[0-9]+', 'v', text)[:50]}: {str(error).splitlines()[0][:90]}"
        self.refused[key] = self.refused.get(key, 0) + 1
        raise Rejected from error

    def only(self, name: str, text: str) -> RandomProgram:
        """Return the program of one statement and what it needs."""
        program = self.program
        program.statements[name] = text
        program.outputs = [name]
        program.updates = {}
        return program.without([name])

    def _check_sound(
        self, name: str, text: str, var: Any, value: Any, level: int, loose: bool
    ) -> None:
        """Raise Fault if a value does not fit its type, Rejected if it is too large or inexact."""
        wrong = None
        if not isinstance(value, np.ndarray):
            wrong = f"perform gives a {type(value).__name__}"
        elif value.dtype.name != var.type.dtype:
            wrong = f"the type has dtype {var.type.dtype}, the value {value.dtype}"
        elif value.ndim != var.type.ndim:
            wrong = f"the type has {var.type.ndim} dimensions, the value {value.ndim}"
        elif any(one and n != 1 for one, n in zip(var.broadcastable, value.shape, strict=True)):
            wrong = f"the type broadcasts {var.broadcastable}, the shape is {value.shape}"
        if wrong:
            raise Fault(f"{text}: {wrong}", self.only(name, text), REFERENCE)
        if (value.size > MOST_ELEMENTS and max(self.sizes) < 10) or value.size > 2 * LARGEST_LEAF:
            raise Rejected
        if value.dtype.kind in "fc":
            finite = np.isfinite(value)
            if not level and not finite.all():
                raise Rejected
            if finite.any() and np.abs(value[finite]).max() > _LARGEST[value.dtype.char]:
                raise Rejected
        spread = self.program.perturbed.spread(var)
        if not np.isfinite(spread).all():
            raise Rejected
        if spread.size and value.dtype.kind in "fc" and not loose:
            size = np.abs(np.where(np.isfinite(value), value, 0)).max(initial=0)
            if spread.max() > 1e-3 * size + 1e-30 and not self.exact_value(var):
                raise Rejected  # cancellation left no significant digits

    def exact_value(self, var: Any) -> bool:
        return bool(self.program.perturbed.exact[var])

    def _check_reference(self, name: str, text: str, var: Any, value: Any, reference: str) -> None:
        """Raise Fault if a value differs from numpy's."""
        names = {n: self.value(n) for n in self.order} | {"np": np}
        try:
            with np.errstate(all="ignore"):
                expected = np.asarray(eval(reference, names))
        except REFUSALS:
            return  # numpy refuses it
        how = None
        if expected.shape != value.shape:
            how = f"the shape is {value.shape}, numpy's {expected.shape}"
        elif value.dtype.kind in "fc":
            dtypes = [d for d in (value.dtype, expected.dtype) if d.kind in "fc"]
            eps = max(float(np.finfo(d).eps) for d in dtypes)
            wide = np.complex128 if "c" in (value.dtype.kind, expected.dtype.kind) else np.float64
            with np.errstate(all="ignore"):
                size = np.abs(np.where(np.isfinite(expected), expected, 0)).max(initial=0)
                allowed = np.full(value.shape, 200 * eps * float(size) + 1e-300)
                allowed = np.maximum(allowed, self.program.perturbed.allowed(var))
                how = beyond(expected.astype(wide), value.astype(wide), allowed)
        elif expected.dtype.kind in "biu":
            with np.errstate(all="ignore"):
                how = beyond(expected.astype(value.dtype), value, np.zeros(value.shape))
        if how is not None:
            raise Fault(f"{text} against {reference}: {how}", self.only(name, text),
                        REFERENCE)  # fmt: skip
