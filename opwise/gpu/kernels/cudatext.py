"""CUDA text of scalar programs, from the same table and the same printer as the C text.

Kernels hold a float16 as a float, and round it when they store it or cast to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from types import SimpleNamespace

import numpy as np

from opwise.gpu.kernels.kernel import NAME, THREADS, digest
from opwise.scalar import csource, loops
from opwise.scalar.op import Cast, ScalarOp
from opwise.scalar.program import Instruction, Literal, Program

DEVICE_H = os.path.join(os.path.dirname(__file__), "csupport", "device.h")
#: the most bytes that one instruction loads
VECTOR_BYTES = 16


# --- types --------------------------------------------------------------------------------------


def has_text(dtype: str) -> bool:
    """Return whether kernels can hold values of ``dtype``. They cannot hold complex numbers."""
    return dtype == "float16" or csource.is_plain(dtype)


def held(dtype: str) -> str:
    """Return the dtype in which kernels hold values of ``dtype``."""
    return "float32" if dtype == "float16" else dtype


def c_type(dtype: str) -> str:
    """Return the C type in which kernels hold a value of ``dtype``."""
    return csource.c_type(held(dtype))


def stored(dtype: str) -> str:
    """Return the C type of an element of an array of ``dtype``."""
    return "ow_f16" if dtype == "float16" else csource.c_type(dtype)


def load(text: str, dtype: str) -> str:
    """Return the expression that converts an element, as stored, to the value that is held."""
    return f"ow_from_f16({text})" if dtype == "float16" else text


def store(text: str, dtype: str) -> str:
    """Return the expression that converts a held value to an element, as stored."""
    return f"ow_to_f16({text})" if dtype == "float16" else text


def itemsize(dtype: str) -> int:
    """Return the bytes of an element of an array."""
    return np.dtype(dtype).itemsize


def vector(dtype: str, count: int) -> tuple[str, str]:
    """Return (name, definition) of the C type of ``count`` elements that are loaded at once."""
    if count == 1:
        return stored(dtype), ""
    size = min(VECTOR_BYTES, itemsize(dtype) * count)
    name = f"ow_{'f16' if dtype == 'float16' else csource.short(dtype)}x{count}"
    return name, f"struct __align__({size}) {name} {{ {stored(dtype)} at[{count}]; }};\n"


def support(*names: str, dtypes: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the parts of csupport with these names, and the part with types."""
    return tuple(csource.support_parts(names, dtypes, DEVICE_H))


# --- indices ------------------------------------------------------------------------------------


def index_type(wide: bool) -> str:
    """Return the C type of indices and steps: 64 bits if ``wide``, else 32."""
    return "ow_i64" if wide else "ow_i32"


def count_type(wide: bool) -> str:
    """Return the C type of divisors of indices: unsigned, since these divide faster."""
    return "ow_u64" if wide else "ow_u32"


def lengths(name: str, ndim: int, wide: bool) -> list[tuple[str, str]]:
    """Return the parameters for the lengths of all dimensions but the first.

    ``position`` reads them, and ``layouts.lengths`` gives their numbers. name: prefix of theirs.
    """
    names = [f"{name}{d}" for d in range(1, ndim)]
    if wide:
        return [(count_type(wide), name) for name in names]
    return [("ow_u32", part) for name in names for part in (name, f"{name}_times", f"{name}_shift")]


def position(of: str, name: str, ndim: int, lengths: str, wide: bool) -> list[str]:
    """Return the lines that compute indices name0, name1, ... of element number ``of`` in C order.

    lengths: prefix of the parameters of ``lengths``.
    """
    index, lines, rest = index_type(wide), [], of
    for d in reversed(range(1, ndim)):
        n, whole = f"{lengths}{d}", f"{name}0" if d == 1 else f"{name}_{d}"
        quotient = f"(ow_u64){rest} / {n}" if wide else f"ow_divide({rest}, {n}_times, {n}_shift)"
        lines.append(f"const {index} {whole} = {quotient};")
        lines.append(f"const {index} {name}{d} = {rest} - {whole} * {n};")
        rest = whole
    return [f"const {index} {name}0 = {rest};"] if ndim == 1 else lines


def for_each(
    wide: bool, lines: Iterable[str], below: str = "n", threads: int = THREADS
) -> list[str]:
    """Return a grid-stride loop of ``lines`` over each number i below ``below``.

    threads: those of a block.
    """
    index = index_type(wide)
    return [
        f"for ({index} i = ({index})blockIdx.x * {threads} + ({index})threadIdx.x; i < {below};"
        f" i += ({index})gridDim.x * {threads}) {{",
        *(f"    {line}" for line in lines),
        "}",
    ]


# --- expressions --------------------------------------------------------------------------------


def step_c(
    op: ScalarOp, args: Sequence[str], in_dtypes: Sequence[str], out_dtype: str
) -> str | None:
    """Return the CUDA expression of a scalar operation, or None if there is none.

    See ``csource.step_c``.
    """
    if not all(map(has_text, (*in_dtypes, out_dtype))):
        return None
    if isinstance(op, Literal):
        return csource.literal(np.asarray(op.value).astype(out_dtype), held(out_dtype))
    if isinstance(op, Cast):
        if out_dtype == "float16" and in_dtypes[0] != "float16":
            return f"ow_round_f16({args[0]})"
    return csource.step_c(op, args, list(map(held, in_dtypes)), held(out_dtype), cuda=True)


class ScalarProgram(Program):
    """A program of scalar operations that device functions compute."""

    @classmethod
    def identity(cls, dtype: str) -> ScalarProgram:
        """Return the program that returns its input."""
        return cls((dtype,), (), (0,))

    @classmethod
    def constant(cls, value: np.ndarray) -> ScalarProgram:
        """Return the program without inputs that returns a number, given as a 0-d array."""
        return cls((), (Instruction(Literal(value), (), value.dtype.name),), (0,))

    def missing(self) -> str | None:
        """Return the reason why kernels cannot compute it, or None."""
        for dtype in self.dtypes:
            if not has_text(dtype):
                return f"there are no kernels for {dtype}"
        for instruction in self.instructions:
            args = self.arguments(instruction)
            if step_c(instruction.op, ["x"] * len(args), args, instruction.dtype) is None:
                op = instruction.op
                name = type(op).__name__ if op.row is None else op.row.name
                return f"{name} has no CUDA expression for {', '.join(args)}"
        return None

    def function(self) -> tuple[str, tuple[str, ...]]:
        """Return (name, definitions) of the device function that computes it.

        See ``loops.body_text``.
        """
        text = loops.body_text(NAME, self, _PRINTER)
        assert text is not None, self.missing()
        supported = self._support()
        name = f"ow_{digest(text, *supported)}"
        return f"{name}_one", (*supported, text.replace(NAME, name) + "\n")

    def _support(self):
        names, used = set(), set()
        if "float16" in self.dtypes:
            names.add("half")
        for instruction in self.instructions:
            args = self.arguments(instruction)
            needed, _, computing = csource.requirements(
                instruction.op, list(map(held, args)), held(instruction.dtype)
            )
            names |= needed
            used |= computing
        return support(*names, dtypes=used)


_PRINTER = SimpleNamespace(step_c=step_c, c_type=c_type)
