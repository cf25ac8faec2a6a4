"""The variants of a function that are worth trying, as a list; compiles and runs nothing."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from opwise.compile.executable import Function
from opwise.compile.io import In
from opwise.config import change_flags, config
from opwise.errors import DeviceError
from opwise.graph import provenance
from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.linkers import resources
from opwise.linkers.convsteps import ALGORITHMS
from opwise.linkers.wrap import DualLinker, WrapLinker
from opwise.modes.mode import Mode, get_mode, predefined_modes
from opwise.optimizers.database import Query
from opwise.optimizers.unfused import named
from opwise.scalar.composite import Composite
from opwise.tensor.conv.epilogue import ConvElemwise
from opwise.tensor.conv.ops import BaseAbstractConv
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.gathered import Gathered
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.rowwise import Rowwise
from opwise.tensor.type import TensorType
from opwise.tuning.candidate import Candidate
from opwise.tuning.copies import as_written, converted, copied, private_mode
from opwise.tuning.tips import Finding

#: in calls that take more seconds, the cost of checking arguments does not show
_SHORT_CALL = 1e-4
_WITH_ALGORITHMS = (BaseAbstractConv, ConvElemwise)


@dataclass(frozen=True)
class Variant:
    """A change to try."""

    #: the change, in a few words
    title: str
    #: the flag or line to write
    do: str
    #: returns the Candidate; its ``note`` says what else is to be written
    make: Callable[[], Candidate]
    #: whether ``make`` compiles
    compiles: bool = True
    #: what it is compared with, if not with the original
    against: Candidate | None = None


class Subject:
    """A function, and the call of it that should become faster."""

    def __init__(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.given = _given(function, args, kwargs)
        self.mode, self.calls_back = private_mode(function.maker.mode)
        #: the Candidate that others are compared with: a copy under the same mode
        self.original = Candidate(copied(function, self.mode), args, kwargs)

    @cached_property
    def plain(self) -> Candidate:
        """The original with arguments that need no conversion."""
        return self.with_arguments(self.converted())

    def with_arguments(self, values: Sequence[Any]) -> Candidate:
        """Return the original with other arguments, keyword arguments last."""
        args, kwargs = self._split(values)
        return self.original.with_settings(args=args, kwargs=kwargs)

    def _split(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        n = len(self.args)
        return tuple(values[:n]), dict(zip(self.kwargs, values[n:], strict=True))

    def under(self, mode: Mode) -> Candidate:
        """Return a Candidate of the same graph under another mode."""
        return Candidate(copied(self.function, mode), self.args, self.kwargs)

    def retyped(self, change: dict[str, str], note: Callable[[Apply], object]) -> Candidate:
        """Return a Candidate that computes in other dtypes; see ``copies.maker_of``."""
        function = copied(self.function, self.mode, change, note)
        return Candidate(function, *self._split(self.converted(change)))

    def converted(self, change: dict[str, str] | None = None) -> list[Any]:
        """Return all arguments in the dtypes of the inputs, keyword arguments last."""
        return [converted(spec, value, change) for spec, value in self.given]

    @property
    def query(self) -> Query | None:
        """The Query of the mode's rewrites, or None if its optimizer is not a Query."""
        return self.mode._optimizer if isinstance(self.mode._optimizer, Query) else None


def _given(
    function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[In, Any]]:
    """Return [(In, value)] of a call. Raises TypeError if they do not fit the function."""
    specs = function.maker.inputs
    explicit = [specs[i] for i in function._explicit]
    names = [spec.name or f"<{spec.variable.type}>" for spec in explicit]
    if len(args) > len(explicit):
        raise TypeError(
            f"advise: the function takes {_arguments(names)}, but {len(args)} were given"
        )
    by_name = {spec.name: spec for spec in explicit}
    unknown = [name for name in kwargs if name not in by_name]
    if unknown:
        raise TypeError(f"advise: the function has no argument {unknown[0]}, only {names}")
    missing = [
        name
        for i, name in list(zip(function._explicit, names, strict=True))[len(args) :]
        if function.defaults[i][0] and name not in kwargs
    ]
    if missing:
        raise TypeError(
            f"advise: the function takes {_arguments(names)}; missing: {', '.join(missing)}. "
            "Write opwise.advise(f, value, ...), as in a call of f."
        )
    return [*zip(explicit, args, strict=False), *((by_name[k], v) for k, v in kwargs.items())]


def _arguments(names: list[str]) -> str:
    many = "no arguments" if not names else "1 argument" if len(names) == 1 else None
    many = many or f"{len(names)} arguments"
    return f"{many} ({', '.join(names)})" if names else many


def variants(subject: Subject, call: float) -> tuple[list[Variant], list[Finding]]:
    """Return the variants to try, and findings about what cannot be tried.

    call: seconds of one call of the original.
    """
    found: list[Variant] = []
    findings: list[Finding] = []
    for made in (
        *_of_arguments(subject, call), *_of_dtypes(subject), *_of_threads(subject),
        *_of_modes(subject), *_of_rewrites(subject), *_of_algorithms(subject),
        *_on_the_gpu(subject), *_in_python(subject),
    ):  # fmt: skip
        if isinstance(made, Finding):
            findings.append(made)
        else:
            found.append(made)
    return found, findings


# --- arguments ------------------------------------------------------------------------------------


def _of_arguments(subject: Subject, call: float) -> Iterator[Variant]:
    given = subject.given
    values = subject.converted()
    changed = [
        f"{spec.name or 'argument'} = numpy.asarray({spec.name or '...'}, {v.dtype.name!r})"
        for (spec, old), v in zip(given, values, strict=True)
        if v is not old and isinstance(v, np.ndarray)
    ]
    if changed:
        yield Variant(
            "arguments in the dtypes of the inputs",
            f"convert them once, before the calls: {'; '.join(changed)}",
            lambda: subject.plain,
            compiles=False,
        )
    strided = [
        spec.name or str(spec.variable.type)
        for (spec, _), v in zip(given, values, strict=True)
        if isinstance(v, np.ndarray) and not v.flags.c_contiguous
    ]
    if strided:
        yield Variant(
            "C-contiguous arguments",
            f"call numpy.ascontiguousarray once for {', '.join(strided)}",
            lambda: subject.with_arguments([_contiguous(v) for v in values]),
            compiles=False,
            against=subject.plain,
        )
    if call < _SHORT_CALL and values and not subject.kwargs and not subject.function.trust_input:
        yield Variant(
            "unchecked arguments",
            "f.trust_input = True, if all arguments are arrays of the right dtype and rank",
            lambda: subject.plain.with_settings(trust=True),
            compiles=False,
            against=subject.plain,
        )


def _contiguous(value: Any) -> Any:
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) and value.ndim else value


# --- modes ----------------------------------------------------------------------------------------


def _of_modes(subject: Subject) -> Iterator[Variant | Finding]:
    for name in ("FAST_RUN", "FAST_COMPILE"):
        if not same(get_mode(name), subject.mode):
            yield Variant(f"mode {name}", f"mode={name!r}", partial(subject.under, get_mode(name)))
    if subject.query is None:
        yield Finding("not tried", "other rewrites: the optimizer of the mode is not a Query")
        return
    if getattr(subject.mode.linker, "allow_gc", False) and type(subject.mode) is Mode:
        keeping = subject.mode.clone(link_kwargs={"allow_gc": False})
        yield Variant(
            "keep intermediate arrays between calls", "OPWISE_FLAGS=allow_gc=False",
            lambda: subject.under(keeping),
        )  # fmt: skip


def _in_python(subject: Subject) -> Iterator[Variant]:
    # comes last: the threads of numpy's BLAS and of scipy's slow each other down
    python = Mode("py", "fast_run")
    if getattr(subject.mode.linker, "implementations", ()) != ("perform",):
        yield Variant(
            "linker py", "mode=opwise.Mode('py', 'fast_run')", lambda: subject.under(python)
        )


def _of_rewrites(subject: Subject) -> Iterator[Variant]:
    """Yield a variant without each kind of rewrite that changed the graph."""
    if subject.query is None:
        return
    ops = [node.op for node in subject.original.function.maker.fgraph.apply_nodes]
    for tag, applied in (
        ("fusion", any(_is_fused(op) for op in ops)),
        ("map_reduce_fusion", any(isinstance(op, MapReduce) for op in ops)),
        ("gather_fusion", any(isinstance(op, Gathered) for op in ops)),
        ("row_fusion", any(isinstance(op, Rowwise) for op in ops)),
        ("conv_elemwise_fusion", any(isinstance(op, ConvElemwise) for op in ops)),
        ("inplace", any(getattr(op, "destroy_map", None) for op in ops)),
    ):
        if applied:
            yield Variant(
                f"without {tag}", f"{_written(subject.mode)}.excluding({tag!r})",
                partial(subject.under, subject.mode.excluding(tag)),
            )  # fmt: skip


def _of_algorithms(subject: Subject) -> Iterator[Variant]:
    """Yield a variant with each algorithm of convolutions that not all of them take already."""
    if "c" not in getattr(subject.mode.linker, "implementations", ()):
        return
    nodes = subject.original.function.maker.fgraph.apply_nodes
    if not any(isinstance(n.op, _WITH_ALGORITHMS) for n in nodes):
        return
    vm: Any = subject.original.function.linked.vm
    noted = vm.algorithms() if hasattr(vm, "algorithms") else ()
    taken = {name for name, _ in noted if name in ALGORITHMS}
    for name in ALGORITHMS:
        if name != config.conv.algo and taken != {name}:
            yield Variant(
                f"algorithm {name} for convolutions", f"OPWISE_FLAGS=conv.algo={name}",
                partial(_with_algorithm, subject, name),
            )  # fmt: skip


def _with_algorithm(subject: Subject, name: str) -> Candidate:
    with change_flags({"conv.algo": name}):
        return subject.under(subject.mode)


def _is_fused(op: Op) -> bool:
    return isinstance(op, Gathered | MapReduce | Rowwise | ConvElemwise) or (
        isinstance(op, Elemwise) and isinstance(op.scalar_op, Composite)
    )


def _written(mode: Mode) -> str:
    """Return the argument ``mode=...`` that a program writes for a mode."""
    for name, known in predefined_modes.items():
        if isinstance(known, Mode) and same(known, mode):
            return f"mode=opwise.get_mode({name!r})"
    return "mode=mode"


def same(one: Mode, other: Mode) -> bool:
    """Return whether two modes certainly compile alike."""
    if not (type(one) is type(other) is Mode):
        return False
    if not (isinstance(one._optimizer, Query) and isinstance(other._optimizer, Query)):
        return False
    if any(isinstance(m.linker, WrapLinker | DualLinker) for m in (one, other)):
        return False
    return one._optimizer.key() == other._optimizer.key() and all(
        getattr(one.linker, name, None) == getattr(other.linker, name, None)
        for name in ("implementations", "vm", "allow_gc", "schedule")
    )


# --- dtypes ---------------------------------------------------------------------------------------


def _of_dtypes(subject: Subject) -> Iterator[Variant | Finding]:
    types = _types(subject.function)
    if "float64" in types:
        how = "OPWISE_FLAGS=floatX=float32, and T.matrix, not T.dmatrix"
        if config.floatX == "float32":
            how = "floatX is float32 already: declare these variables with T.matrix, not T.dmatrix"
        yield _retyped(subject, "float64", "float32", how)
    else:
        yield Finding("not tried", "float32: nothing in the function is float64")
    if "float16" in types:
        yield _retyped(
            subject,
            "float16",
            "float32",
            "declare the variables float32: C loops round float16 after each operation",
        )


def _types(function: Function) -> set[str]:
    """Return the dtypes of all arrays in a function's graph, as the user wrote it."""
    variables = {v for node in as_written(function) for v in (*node.inputs, *node.outputs)}
    variables.update(spec.variable for spec in function.maker.inputs)
    return {str(v.type.dtype) for v in variables if isinstance(v.type, TensorType)}


def _retyped(subject: Subject, old: str, new: str, how: str) -> Variant:
    """Return the variant in dtype ``new`` instead of ``old``. how: what to write for that."""
    function = subject.function
    wide: list[Apply] = []
    arguments: list[str] = []
    state: list[str] = []
    for i, spec in enumerate(function.maker.inputs):
        if getattr(spec.variable.type, "dtype", None) == old:
            kind = arguments if i in function._explicit else state
            kind.append(spec.name or str(spec.variable.type))
    do = [how]
    do += [f"{new} arrays for {', '.join(arguments)}"] * bool(arguments)
    do += [f"{new} values for the shared {', '.join(state)}"] * bool(state)

    def make() -> Candidate:
        candidate = subject.retyped({old: new}, wide.append)
        if wide:
            ops = ", ".join(dict.fromkeys(f"{named(node.op)}{where(node)}" for node in wide))
            candidate.note = f"these stay {old} unless you cast them to {new}: {ops}"
        return candidate

    return Variant(f"{new} instead of {old}", "; ".join(do), make, against=subject.plain)


def where(node: Apply) -> str:
    """Return ' (file:line)' of the user's line of an Apply, or "" if it is not known."""
    for origin in node.origins:
        line = provenance.user_line(origin)
        if line is not None:
            return f" ({os.path.basename(line[0])}:{line[1]})"
    return ""


# --- threads and devices --------------------------------------------------------------------------


def _of_threads(subject: Subject) -> Iterator[Variant | Finding]:
    now, most = resources.threads(), resources.available()
    if "c" not in getattr(subject.mode.linker, "implementations", ()):
        yield Finding("not tried", "threads: the linker runs everything in Python")
        return
    if now == most == 1:
        yield Finding("not tried", "threads: there is one processor")
    for n in sorted({1, most // 2, most} - {0, now}):
        yield Variant(
            f"{n} thread{'s' * (n > 1)} instead of {now}", f"OPWISE_FLAGS=threads={n}",
            partial(subject.original.with_settings, threads=n), compiles=False,
        )  # fmt: skip


def _on_the_gpu(subject: Subject) -> Iterator[Variant | Finding]:
    try:
        importlib.import_module("opwise.gpu.runtime.device").device()
    except DeviceError as error:
        yield Finding("not tried", f"GPU: {str(error).partition(':')[0]}")
        return
    if "cuda" not in subject.mode.used_linker.implementations:
        device = Mode("cupy", subject.mode.provided_optimizer)
        yield Variant("the GPU", "mode=opwise.Mode('cupy')", lambda: subject.under(device))
