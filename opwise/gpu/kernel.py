"""Kernels as texts, and launches of them as plain numbers: nothing here needs a device.

A linker compiles ``module_text`` of the kernels of a function once, and makes each launch that a
plan asks for: the addresses of its arrays first, then its numbers.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

#: for NVRTC: a * b + c rounds twice, as in the C kernels, so that arithmetic has the same bits on
#: both devices. Denormal numbers, division and square roots are exact unless told otherwise.
OPTIONS = ("--std=c++17", "--fmad=false")
#: part of the name of each kernel: change it when the meaning of texts changes
VERSION = 1
#: threads in a block
THREADS = 256
#: blocks for each processor of a device; more have nobody to run beside
_WAVES = 32


@dataclass(frozen=True)
class Kernel:
    """A CUDA function by the name ``name``.

    text: its definition. needs: definitions that go before it. parameters: (C type, name) of each.
    wide: whether its indices have 64 bits, for arrays of 2**31 elements or more.
    """

    name: str
    text: str
    needs: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    wide: bool = False


class Layout(NamedTuple):
    """An array without its elements: shape, strides in bytes, and a power of 2, at most 16, that
    divides its address."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    alignment: int = 16

    @classmethod
    def of(cls, array):
        """Return the layout of a numpy or CuPy array."""
        address = array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr
        aligned = min(16, address & -address) if address else 16
        return cls(array.shape, array.strides, array.dtype.itemsize, aligned)

    @classmethod
    def contiguous(cls, shape, itemsize):
        """Return the layout of new memory in C order."""
        strides, step = [], itemsize
        for n in reversed(shape):
            strides.append(step)
            step *= n
        return cls(tuple(shape), tuple(reversed(strides)), itemsize)

    @property
    def size(self):
        """The number of elements."""
        size = 1
        for n in self.shape:
            size *= n
        return size


class Slice(NamedTuple):
    """A Python slice; others are no keys of dictionaries before Python 3.12."""

    start: int | None
    stop: int | None
    step: int | None


def on_host(value):
    """Return what plans know of an input on the host: a number, a tuple of those of a vector, a
    Slice, or None."""
    if value is None:
        return None
    if isinstance(value, slice):
        return Slice(value.start, value.stop, value.step)
    value = np.asarray(value)
    return value.item() if value.ndim == 0 else tuple(value.tolist())


class Array(NamedTuple):
    """An array of a launch: of the Apply's inputs ("in"), its outputs ("out"), the plan's scratch
    memory ("scratch"), or the word that complaints go to ("wrong"); offset: bytes to its start."""

    kind: str
    index: int = 0
    offset: int = 0


class Launch(NamedTuple):
    """A kernel on a grid of so many blocks, each of (x, y) threads and bytes of shared memory.

    arrays: whose addresses are the first arguments. numbers: the other arguments;
    ``Kernel.parameters`` says how wide they are.
    """

    kernel: Kernel
    grid: int
    block: tuple[int, int]
    arrays: tuple[Array, ...]
    numbers: tuple[int, ...]
    shared: int = 0


_NUMBERS = {
    "ow_i32": np.int32, "ow_u32": np.uint32, "ow_i64": np.int64, "ow_u64": np.uint64,
    "float": np.float32, "double": np.float64,
}  # fmt: skip


def arguments(launch, address):
    """Return the arguments of a launch as numpy scalars, as wide as the kernel's parameters.

    address: function from an Array to its address. OverflowError for a number that does not fit.
    """
    of_numbers = launch.kernel.parameters[len(launch.arrays) :]
    return [
        *(np.uint64(address(array)) for array in launch.arrays),
        *(_NUMBERS[t](n) for (t, _), n in zip(of_numbers, launch.numbers, strict=True)),
    ]


class Plan(NamedTuple):
    """Launches, one after the other. scratch: bytes of each piece of memory that they need."""

    launches: tuple[Launch, ...]
    scratch: tuple[int, ...] = ()


class Device(NamedTuple):
    """What plans ask about a device.

    shared: bytes of shared memory that a block can have. More than 48 KiB must be asked for, kernel
    by kernel (CuPy: ``max_dynamic_shared_size_bytes``).
    """

    processors: int = 132
    shared: int = 49152


def at_most(blocks, device):
    """Return how many blocks start where there is work for so many; at least 1."""
    return max(1, min(blocks, device.processors * _WAVES))


def grid_of(size, device, each=THREADS):
    """Return how many blocks start for ``size`` elements, of which one has ``each`` in a turn."""
    return at_most(-(-size // each), device)


@dataclass(frozen=True)
class Implementation:
    """How an Apply runs on the device.

    kernels: all that ``plan`` may launch. expected: those that contiguous operands ask for; others
    may be compiled when they are first launched. shapes(inputs) gives the shapes of the outputs and
    raises what ``perform`` would raise for inputs that do not fit. plan(inputs, outputs, device)
    gives the launches. Inputs and outputs are Layouts: inputs may have any strides; outputs are in
    C order, but for those that are an input's memory, by the Op's destroy_map. host: inputs that
    must be known on the host; they are given as ``on_host`` has them in place of Layouts. copied:
    {output: input}: outputs that must hold a copy of an input, or be it, before the launches. same:
    {output: input}: outputs that are the input itself where that lies in C order.
    wrong(position, inputs): the error to raise where the word "wrong" is not 0 after the launches
    (``position_of`` reads it), given the host's arrays of the inputs ``told``.
    """

    kernels: tuple[Kernel, ...]
    shapes: Callable
    plan: Callable
    host: tuple[int, ...] = ()
    copied: dict = field(default_factory=dict)
    same: dict = field(default_factory=dict)
    wrong: Callable | None = None
    told: tuple[int, ...] = ()
    expected: tuple[Kernel, ...] = ()


def position_of(word):
    """Return the position that a complaint is about (see csupport/device.h)."""
    return 0xFFFFFFFF - int(word)


#: stands for the name of a kernel in its own text, which the name depends on
NAME = "@"


def make_kernel(stem, parameters, body, needs=(), wide=False, threads=THREADS):
    """Return a Kernel: its name is ``stem`` and a hash of all that it is made of.

    parameters: (C type, name); body: lines.
    """
    text = "\n".join([
        f'extern "C" __global__ void __launch_bounds__({threads}) {NAME}(',
        *_listed([f"{type_} {name}".replace("* ", "*") for type_, name in parameters]),
        "{",
        *(f"    {line}" for line in body),
        "}",
        "",
    ])  # fmt: skip
    name = f"ow_{stem}_{digest(text, *needs)}"
    return Kernel(name, text.replace(NAME, name), tuple(needs), tuple(parameters), wide)


def _listed(declarations):
    """Return the lines of a parameter list."""
    whole = ", ".join(d.replace(" ", "\0") for d in declarations) + ")"
    lines = textwrap.wrap(whole, 92, initial_indent="    ", subsequent_indent="    ")
    return [line.replace("\0", " ") for line in lines]


def in_braces(lines):
    """Return lines as one block."""
    return ["{", *(f"    {line}" for line in lines), "}"]


def inside(block):
    """Return the lines of a block of ``in_braces``."""
    return [line[4:] for line in block[1:-1]]


def loop(head, block):
    """Return the lines of a loop, or a condition, with a block of ``in_braces``."""
    return [f"{head} {block[0]}", *block[1:]]


def is_used(name, lines):
    """Return whether lines mention a variable: compilers warn of those that nobody reads."""
    return re.search(rf"\b{name}\b", "\n".join(lines)) is not None


def batched(count, end, loads, use):
    """Return the lines that go from index ``j`` up to ``end`` by ``step``, several at a time.

    All of a batch is loaded before any of it is used: compilers do not put a load before the test
    whether its turn of a loop comes at all. loads: from an index to (lines, (C type, name,
    expression) of each load); use: from what to write after these names, and an index, to a block.
    """
    lines, found = loads("j")
    one = [*lines, *(f"const {type_} {name} = {text};" for type_, name, text in found)]
    rest = loop(f"for (; j < {end}; j += step)", in_braces([*one, *inside(use("", "j"))]))
    if count == 1:
        return rest
    lines, found = loads("i")

    def turns(lines):
        named = ["const auto i = j + u * step;"] if is_used("i", lines) else []
        return ["OW_UNROLL", *loop(f"for (int u = 0; u < {count}; u++)", in_braces(named + lines))]

    several = [
        *(f"{type_} {name}[{count}];" for type_, name, _ in found),
        *turns([*lines, *(f"{name}[u] = {text};" for _, name, text in found)]),
        *turns(inside(use("[u]", "i"))),
    ]
    more = f"for (; j + {count - 1} * step < {end}; j += {count} * step)"
    return [*loop(more, in_braces(several)), *rest]


def digest(*texts):
    """Return a short hash of texts and of the version of all texts."""
    whole = "\0".join([str(VERSION), *texts]).encode()
    return hashlib.blake2b(whole, digest_size=8).hexdigest()


def module_text(kernels):
    """Return one CUDA text with kernels and all that they need, without repetitions."""
    needs = dict.fromkeys(text for kernel in kernels for text in kernel.needs)
    return "\n".join([*needs, *dict.fromkeys(kernel.text for kernel in kernels)])
