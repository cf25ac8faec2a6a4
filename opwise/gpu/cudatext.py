"""CUDA text of scalar programs, from the same table and the same printer as the C text.

A float16 is held as a float inside a kernel: it is rounded where it is stored, and by a cast.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from opwise.gpu.kernel import NAME, THREADS, digest
from opwise.scalar import csource, loops
from opwise.scalar.composite import Composite, Instruction, Literal
from opwise.scalar.op import Cast

DEVICE_H = os.path.join(os.path.dirname(__file__), "csupport", "device.h")
#: bytes that one instruction loads
VECTOR_BYTES = 16


# --- types --------------------------------------------------------------------------------------


def has_text(dtype):
    """Return whether kernels hold values of ``dtype``: complex numbers have none."""
    return dtype == "float16" or csource.has_c(dtype)


def held(dtype):
    """Return the dtype that holds values of ``dtype`` inside a kernel."""
    return "float32" if dtype == "float16" else dtype


def c_type(dtype):
    """Return the C type that holds a value of ``dtype``."""
    return csource.c_type(held(dtype))


def stored(dtype):
    """Return the C type of an element of an array of ``dtype``."""
    return "ow_f16" if dtype == "float16" else csource.c_type(dtype)


def load(text, dtype):
    """Return the expression of the value of an element."""
    return f"ow_from_f16({text})" if dtype == "float16" else text


def store(text, dtype):
    """Return the expression of the element that keeps a value."""
    return f"ow_to_f16({text})" if dtype == "float16" else text


def itemsize(dtype):
    return np.dtype(dtype).itemsize


def vector(dtype, count):
    """Return (name, definition) of the type of ``count`` elements that are loaded at once."""
    if count == 1:
        return stored(dtype), ""
    size = min(VECTOR_BYTES, itemsize(dtype) * count)
    name = f"ow_{'f16' if dtype == 'float16' else csource.short(dtype)}x{count}"
    return name, f"struct __align__({size}) {name} {{ {stored(dtype)} at[{count}]; }};\n"


def support(*names, dtypes=()):
    """Return the parts of csupport that kernels need, beside the types."""
    return tuple(csource.support_parts(names, dtypes, DEVICE_H))


# --- indices ------------------------------------------------------------------------------------


def index_type(wide):
    """Return the C type of indices and steps: of 64 bits if ``wide``, else of 32."""
    return "ow_i64" if wide else "ow_i32"


def count_type(wide):
    """Return the C type of what indices are divided by: unsigned ones are divided faster."""
    return "ow_u64" if wide else "ow_u32"


def lengths(name, ndim, wide):
    """Return the parameters for the lengths of all dimensions but the first: see ``position``.

    ``layouts.lengths`` gives the numbers.
    """
    names = [f"{name}{d}" for d in range(1, ndim)]
    if wide:
        return [(count_type(wide), name) for name in names]
    return [("ow_u32", part) for name in names for part in (name, f"{name}_times", f"{name}_shift")]


def position(of, name, ndim, lengths, wide):
    """Return the lines that make the position name0, name1, ... of the number ``of`` in C order.

    lengths: what the parameters with the lengths of all dimensions but the first begin with.
    """
    index, lines, rest = index_type(wide), [], of
    for d in reversed(range(1, ndim)):
        n, whole = f"{lengths}{d}", f"{name}0" if d == 1 else f"{name}_{d}"
        quotient = f"(ow_u64){rest} / {n}" if wide else f"ow_divide({rest}, {n}_times, {n}_shift)"
        lines.append(f"const {index} {whole} = {quotient};")
        lines.append(f"const {index} {name}{d} = {rest} - {whole} * {n};")
        rest = whole
    return [f"const {index} {name}0 = {rest};"] if ndim == 1 else lines


def for_each(wide, lines, below="n"):
    """Return the lines that do ``lines`` for each number i below one: a grid-stride loop."""
    index = index_type(wide)
    return [
        f"for ({index} i = ({index})blockIdx.x * {THREADS} + ({index})threadIdx.x; i < {below};"
        f" i += ({index})gridDim.x * {THREADS}) {{",
        *(f"    {line}" for line in lines),
        "}",
    ]


# --- expressions --------------------------------------------------------------------------------


def step_c(op, args, in_dtypes, out_dtype):
    """Return the CUDA expression of one scalar operation, or None; see ``csource.step_c``."""
    if not all(map(has_text, (*in_dtypes, out_dtype))):
        return None
    if isinstance(op, Literal):
        return csource.literal(np.asarray(op.value).astype(out_dtype), held(out_dtype))
    if isinstance(op, Cast):
        if out_dtype == "float16" and in_dtypes[0] != "float16":
            return f"ow_round_f16({args[0]})"
    return csource.step_c(op, args, list(map(held, in_dtypes)), held(out_dtype), cuda=True)


@dataclass(frozen=True)
class Program:
    """A scalar program: steps over slots, of which ``outs`` are its results (see Composite).

    unread: inputs that it does not read.
    """

    steps: tuple[Instruction, ...]
    outs: tuple[int, ...]
    in_dtypes: tuple[str, ...]
    unread: frozenset = frozenset()

    @classmethod
    def of(cls, op, in_dtypes, out_dtypes):
        """Return the program of a scalar op on operands of these dtypes."""
        if isinstance(op, Composite):
            return cls(op.instructions, op.outs, tuple(in_dtypes), frozenset(op.unread()))
        n = len(in_dtypes)
        step = Instruction(op, tuple(range(n)), out_dtypes[0])
        return cls((step,), (n,), tuple(in_dtypes), frozenset(op.unread()))

    @classmethod
    def identity(cls, dtype):
        """Return the program that gives its input."""
        return cls((), (0,), (dtype,))

    @classmethod
    def constant(cls, value):
        """Return the program without inputs that gives a number, a 0-d array."""
        return cls((Instruction(Literal(value), (), value.dtype.name),), (0,), ())

    @property
    def out_dtypes(self):
        return tuple(loops.slot_dtype(s, self.steps, self.in_dtypes) for s in self.outs)

    def missing(self):
        """Return why there is no text of it, or None."""
        slots = list(self.in_dtypes)
        for dtype in (*slots, *(step.dtype for step in self.steps)):
            if not has_text(dtype):
                return f"kernels have no {dtype}"
        for step in self.steps:
            args = [slots[a] for a in step.args]
            if step_c(step.op, ["x"] * len(args), args, step.dtype) is None:
                name = type(step.op).__name__ if step.op.row is None else step.op.row.name
                return f"{name} has no CUDA expression for {', '.join(args)}"
            slots.append(step.dtype)
        return None

    def function(self):
        """Return (name, definitions) of the device function of it: see ``loops.body_text``."""
        text = loops.body_text(NAME, self.steps, self.outs, self.in_dtypes, _PRINTER)
        supported = self._support()
        name = f"ow_{digest(text, *supported)}"
        return f"{name}_one", (*supported, text.replace(NAME, name) + "\n")

    def _support(self):
        names, used, slots = set(), set(), list(self.in_dtypes)
        if "float16" in (*slots, *(step.dtype for step in self.steps)):
            names.add("half")
        for step in self.steps:
            args = [slots[a] for a in step.args]
            needed, _, computing = csource.requirements(
                step.op, list(map(held, args)), held(step.dtype)
            )
            names |= needed
            used |= computing
            slots.append(step.dtype)
        return support(*names, dtypes=used)


_PRINTER = SimpleNamespace(step_c=step_c, c_type=c_type)
