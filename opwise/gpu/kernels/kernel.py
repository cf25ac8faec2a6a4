"""Kernels as texts, and launches of them as plain numbers: nothing here needs a device.

The runtime compiles the ``module_text`` of a function's kernels once. It makes each Launch of a
Plan: the addresses of its arrays are the first arguments, its numbers are the others.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

#: options of NVRTC. --fmad=false: a * b + c rounds twice, as in the C kernels, so that arithmetic
#: gives the same bits on both sides. By default denormal numbers, division and roots are exact.
OPTIONS = ("--std=c++17", "--fmad=false")
#: part of the name of each kernel: change it when the meaning of texts changes
VERSION = 1
#: threads in a block
THREADS = 256
#: the most blocks for each multiprocessor of a device: more would only queue up
_BLOCKS_PER_PROCESSOR = 32


@dataclass(frozen=True)
class Kernel:
    """A CUDA function."""

    name: str
    #: its definition
    text: str
    #: definitions that must come before it
    needs: tuple[str, ...] = ()
    #: (C type, name) of each parameter
    parameters: tuple[tuple[str, str], ...] = ()
    #: whether its indices have 64 bits, for arrays of 2**31 elements or more
    wide: bool = False


class ForBothWidths:
    """Base of kernels that a method writes for indices of 32 bits and for those of 64 bits."""

    @cached_property
    def kernel(self) -> dict[bool, Kernel]:
        """The kernel by whether its indices have 64 bits."""
        return {wide: self._text(wide) for wide in (False, True)}

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(self.kernel.values())

    def _text(self, wide: bool) -> Kernel:
        """Return the kernel, with indices of 64 bits if ``wide``."""
        raise NotImplementedError


class Layout(NamedTuple):
    """An array without its elements."""

    shape: tuple[int, ...]
    #: in bytes
    strides: tuple[int, ...]
    itemsize: int
    #: a power of 2 that divides its address, at most 16
    alignment: int = 16

    @classmethod
    def of(cls, array: Any) -> Layout:
        """Return the layout of a numpy or CuPy array."""
        address = array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr
        aligned = min(16, address & -address) if address else 16
        return cls(array.shape, array.strides, array.dtype.itemsize, aligned)

    @classmethod
    def contiguous(cls, shape: Sequence[int], itemsize: int) -> Layout:
        """Return the layout of new memory in C order."""
        strides, step = [], itemsize
        for n in reversed(shape):
            strides.append(step)
            step *= n
        return cls(tuple(shape), tuple(reversed(strides)), itemsize)

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for n in self.shape:
            size *= n
        return size


class Slice(NamedTuple):
    """A Python slice that can be a key of a dictionary, as slices cannot before Python 3.12."""

    start: int | None
    stop: int | None
    step: int | None


#: what plans know of an input: the layout of an array on the device, or the value of one on the
#: host (see ``on_host``)
PlanInput = Any


def on_host(value: Any) -> PlanInput:
    """Return what plans know of an input on the host.

    It is a number, a tuple of the numbers of a vector, a Slice, or None.
    """
    if value is None:
        return None
    if isinstance(value, slice):
        return Slice(value.start, value.stop, value.step)
    value = np.asarray(value)
    return value.item() if value.ndim == 0 else tuple(value.tolist())


class Array(NamedTuple):
    """An array of a launch."""

    #: "in" or "out" (of the Apply), "scratch" (memory of the plan), or "error_flag"
    kind: str
    #: its number among those of its kind
    position: int = 0
    #: bytes from the array's address to where the kernel begins
    offset: int = 0


class Launch(NamedTuple):
    """One launch of a kernel."""

    kernel: Kernel
    #: blocks
    grid: int
    #: (x, y) threads of a block
    block: tuple[int, int]
    #: arrays whose addresses are the first arguments
    arrays: tuple[Array, ...]
    #: the other arguments; ``Kernel.parameters`` gives their types
    numbers: tuple[int, ...]
    #: bytes of shared memory of a block
    shared: int = 0


_NUMPY_TYPES: dict[str, type[np.number]] = {
    "ow_i32": np.int32, "ow_u32": np.uint32, "ow_i64": np.int64, "ow_u64": np.uint64,
    "float": np.float32, "double": np.float64,
}  # fmt: skip


def arguments(launch: Launch, address: Callable[[Array], int]) -> list[np.number]:
    """Return the arguments of a launch as numpy scalars of the types of the kernel's parameters.

    address: from an Array to its address. Raises OverflowError if a number does not fit its type.
    """
    of_numbers = launch.kernel.parameters[len(launch.arrays) :]
    return [
        *(np.uint64(address(array)) for array in launch.arrays),
        *(_NUMPY_TYPES[t](n) for (t, _), n in zip(of_numbers, launch.numbers, strict=True)),
    ]


class Plan(NamedTuple):
    """The launches of an Apply, in order."""

    launches: tuple[Launch, ...]
    #: bytes of each piece of scratch memory
    scratch: tuple[int, ...] = ()


class DeviceLimits(NamedTuple):
    """What plans need to know about a device."""

    #: multiprocessors
    processors: int = 132
    #: bytes of shared memory that a block can have; the runtime must request more than 48 KiB for
    #: each kernel (CuPy: ``max_dynamic_shared_size_bytes``)
    shared: int = 49152


def capped(blocks: int, limits: DeviceLimits) -> int:
    """Return the size of a grid for so many blocks: at least 1, and no more than the device needs.

    Each block of a smaller grid computes several blocks in turn.
    """
    return max(1, min(blocks, limits.processors * _BLOCKS_PER_PROCESSOR))


def grid_of(size: int, limits: DeviceLimits, each: int = THREADS) -> int:
    """Return the size of a grid for ``size`` elements; a block computes ``each`` at once."""
    return capped(-(-size // each), limits)


@dataclass(frozen=True)
class Implementation:
    """How kernels run an Apply.

    ``shapes`` and ``plan`` are pure functions. Their inputs and outputs are Layouts, except for
    the inputs in ``host``, whose values are given (see ``on_host``). Inputs may have any strides.
    Outputs are in C order, except for those that overwrite an input (the Op's ``destroy_map``).
    """

    #: all kernels that ``plan`` may launch
    kernels: tuple[Kernel, ...]
    #: inputs -> the shapes of the outputs; raises what ``perform`` raises if inputs do not fit
    shapes: Callable[[list[PlanInput]], list[tuple[int, ...]]]
    #: (inputs, outputs, limits) -> the launches
    plan: Callable[[list[PlanInput], list[Layout], DeviceLimits], Plan]
    #: positions of the inputs that must lie on the host
    host: tuple[int, ...] = ()
    #: {output: input}: outputs that hold a copy of an input, or are it, before the launches
    copied: dict[int, int] = field(default_factory=dict)
    #: {output: input}: outputs that are the input itself if it is contiguous
    aliases: dict[int, int] = field(default_factory=dict)
    #: (position, inputs) -> the error to raise if the error flag is not 0 after the launches;
    #: position: see ``error_position``; inputs: numpy arrays for those in ``error_inputs``
    wrong: Callable[[int, list[Any]], Exception] | None = None
    #: positions of the inputs whose values ``wrong`` needs
    error_inputs: tuple[int, ...] = ()
    #: kernels that contiguous inputs need; the others may be compiled when they are first launched
    expected: tuple[Kernel, ...] = ()


def error_position(flag: int) -> int:
    """Return the position that a kernel reported in its error flag (see csupport/device.h)."""
    return 0xFFFFFFFF - int(flag)


#: stands for the name of a kernel in its own text, since the name depends on the text
NAME = "@"


def make_kernel(
    stem: str,
    parameters: Iterable[tuple[str, str]],
    body: Iterable[str],
    needs: Sequence[str] = (),
    wide: bool = False,
    threads: int = THREADS,
    blocks: int | None = None,
) -> Kernel:
    """Return a Kernel whose name is ``stem`` and a hash of its text and of what it needs.

    parameters: (C type, name) of each; body: its lines; threads: the most threads of a block.
    blocks: the fewest blocks that must fit on a multiprocessor, which limits registers.
    """
    bounds = str(threads) if blocks is None else f"{threads}, {blocks}"
    text = "\n".join([
        f'extern "C" __global__ void __launch_bounds__({bounds}) {NAME}(',
        *_listed([f"{type_} {name}".replace("* ", "*") for type_, name in parameters]),
        "{",
        *(f"    {line}" for line in body),
        "}",
        "",
    ])  # fmt: skip
    name = f"ow_{stem}_{digest(text, *needs)}"
    return Kernel(name, text.replace(NAME, name), tuple(needs), tuple(parameters), wide)


def _listed(declarations: list[str]) -> list[str]:
    """Return the lines of a parameter list."""
    whole = ", ".join(d.replace(" ", "\0") for d in declarations) + ")"
    lines = textwrap.wrap(whole, 92, initial_indent="    ", subsequent_indent="    ")
    return [line.replace("\0", " ") for line in lines]


def in_braces(lines: Iterable[str]) -> list[str]:
    """Return lines as one block."""
    return ["{", *(f"    {line}" for line in lines), "}"]


def without_braces(block: Sequence[str]) -> list[str]:
    """Return the lines inside a block of ``in_braces``."""
    return [line[4:] for line in block[1:-1]]


def with_head(head: str, block: Sequence[str]) -> list[str]:
    """Return a block of ``in_braces`` behind the head of a loop or a condition."""
    return [f"{head} {block[0]}", *block[1:]]


def is_used(name: str, lines: Iterable[str]) -> bool:
    """Return whether lines mention a variable. Compilers warn of variables that nobody reads."""
    return re.search(rf"\b{name}\b", "\n".join(lines)) is not None


#: from an index to (lines, (C type, name, expression) of each load)
Loads = Callable[[str], tuple[list[str], list[tuple[str, str, str]]]]
#: from a suffix of the loaded names and an index to a block of ``in_braces``
Use = Callable[[str, str], list[str]]


def batched(count: int, end: str, loads: Loads, use: Use) -> list[str]:
    """Return a loop of index ``j`` up to ``end`` by ``step`` that takes ``count`` turns at once.

    It loads all of a batch before it uses any of it. Compilers do not do this by themselves: they
    leave each load behind the test whether its turn comes at all.
    """
    lines, found = loads("j")
    one = [*lines, *(f"const {type_} {name} = {text};" for type_, name, text in found)]
    single = in_braces([*one, *without_braces(use("", "j"))])
    rest = with_head(f"for (; j < {end}; j += step)", single)
    if count == 1:
        return rest
    lines, found = loads("i")

    def turns(lines: list[str]) -> list[str]:
        named = ["const auto i = j + u * step;"] if is_used("i", lines) else []
        head = f"for (int u = 0; u < {count}; u++)"
        return ["OW_UNROLL", *with_head(head, in_braces(named + lines))]

    several = [
        *(f"{type_} {name}[{count}];" for type_, name, _ in found),
        *turns([*lines, *(f"{name}[u] = {text};" for _, name, text in found)]),
        *turns(without_braces(use("[u]", "i"))),
    ]
    more = f"for (; j + {count - 1} * step < {end}; j += {count} * step)"
    return [*with_head(more, in_braces(several)), *rest]


def digest(*texts: str) -> str:
    """Return a short hash of texts and of the version of all texts."""
    whole = "\0".join([str(VERSION), *texts]).encode()
    return hashlib.blake2b(whole, digest_size=8).hexdigest()


def module_text(kernels: Iterable[Kernel]) -> str:
    """Return one CUDA text with kernels and all that they need, without repetitions."""
    kernels = list(kernels)
    needs = dict.fromkeys(text for kernel in kernels for text in kernel.needs)
    return "\n".join([*needs, *dict.fromkeys(kernel.text for kernel in kernels)])
