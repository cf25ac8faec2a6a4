"""The variants of a function that are worth a try, as a list; nothing is compiled or run here."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opwise.config import config
from opwise.errors import DeviceError
from opwise.graph import provenance
from opwise.linkers import resources
from opwise.linkers.wrap import DualLinker, WrapLinker
from opwise.modes.mode import Mode, get_mode, predefined_modes
from opwise.optimizers.database import Query
from opwise.optimizers.rules.fusion import named
from opwise.scalar.composite import Composite
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.type import TensorType
from opwise.tuning.candidate import Candidate
from opwise.tuning.copies import as_written, converted, copied, private_mode
from opwise.tuning.tips import Finding

#: calls that take longer than so many seconds do not show what their arguments cost
_SHORT_CALL = 1e-4


@dataclass(frozen=True)
class Variant:
    """Something to try. do: the flag or line to write. make: returns the Candidate, whose ``note``
    tells what else is to be written. compiles: whether that takes a compilation. against: what it
    is measured beside, where that is not the function as it is."""

    title: str
    do: str
    make: Callable[[], Candidate]
    compiles: bool = True
    against: Candidate | None = None


class Subject:
    """A function and the call of it that is to become faster.

    original: the Candidate that everything is compared with, a copy under the same mode.
    """

    def __init__(self, function, args, kwargs):
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.given = _given(function, args, kwargs)
        self.mode, self.calls_back = private_mode(function.maker.mode)
        self.original = Candidate(copied(function, self.mode), args, kwargs)

    @cached_property
    def plain(self):
        """The original with arguments that need no conversion."""
        return self.with_arguments(self.converted())

    def with_arguments(self, values):
        """Return the original with other arguments, those by keyword last."""
        args, kwargs = self._split(values)
        return self.original.otherwise(args=args, kwargs=kwargs)

    def _split(self, values):
        n = len(self.args)
        return tuple(values[:n]), dict(zip(self.kwargs, values[n:], strict=True))

    def under(self, mode):
        """Return a Candidate of the same graph under another mode."""
        return Candidate(copied(self.function, mode), self.args, self.kwargs)

    def retyped(self, change, note):
        """Return a Candidate that computes in other dtypes; see ``copies.copied``."""
        function = copied(self.function, self.mode, change, note)
        return Candidate(function, *self._split(self.converted(change)))

    def converted(self, change=None):
        """Return all arguments, those by keyword last, as the function takes them."""
        return [converted(spec, value, change) for spec, value in self.given]

    @property
    def query(self):
        """The Query of the mode's rewrites, or None where they are no query."""
        return self.mode._optimizer if isinstance(self.mode._optimizer, Query) else None


def _given(function, args, kwargs):
    """Return [(In, value)] of a call. Raises TypeError where they do not fit the function."""
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


def _arguments(names):
    many = "no arguments" if not names else "1 argument" if len(names) == 1 else None
    many = many or f"{len(names)} arguments"
    return f"{many} ({', '.join(names)})" if names else many


def variants(subject, call):
    """Return (list of Variant, list of Finding): what to try, and what cannot be tried.

    call: seconds that a call takes as it is.
    """
    found, findings = [], []
    for made in (
        *_of_arguments(subject, call), *_of_dtypes(subject), *_of_threads(subject),
        *_of_modes(subject), *_of_rewrites(subject), *_on_the_gpu(subject),
        *_in_python(subject),
    ):  # fmt: skip
        (findings if isinstance(made, Finding) else found).append(made)
    return found, findings


# --- arguments ------------------------------------------------------------------------------------


def _of_arguments(subject, call):
    given = subject.given
    values = subject.converted()
    changed = [
        f"{spec.name or 'argument'} = numpy.asarray({spec.name or '...'}, {v.dtype.name!r})"
        for (spec, old), v in zip(given, values, strict=True)
        if v is not old and isinstance(v, np.ndarray)
    ]
    if changed:
        yield Variant(
            "arguments as the function takes them",
            f"once, before the calls: {'; '.join(changed)}",
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
            "arguments that lie row by row in memory",
            f"numpy.ascontiguousarray(...) once for {', '.join(strided)}",
            lambda: subject.with_arguments([_in_rows(v) for v in values]),
            compiles=False,
            against=subject.plain,
        )
    if call < _SHORT_CALL and values and not subject.kwargs and not subject.function.trust_input:
        yield Variant(
            "arguments unchecked",
            "f.trust_input = True, where arguments are arrays of the right dtype",
            lambda: subject.plain.otherwise(trust=True),
            compiles=False,
            against=subject.plain,
        )


def _in_rows(value):
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) and value.ndim else value


# --- modes ----------------------------------------------------------------------------------------


def _of_modes(subject):
    for name in ("FAST_RUN", "FAST_COMPILE"):
        if not same(get_mode(name), subject.mode):
            yield Variant(
                f"mode {name}", f"mode={name!r}", lambda n=name: subject.under(get_mode(n))
            )
    if subject.query is None:
        yield Finding("not tried", "other rewrites: the optimizer of the mode is no query")
        return
    if getattr(subject.mode.linker, "allow_gc", False) and type(subject.mode) is Mode:
        keeping = subject.mode.clone(link_kwargs={"allow_gc": False})
        yield Variant(
            "intermediate arrays kept between calls", "OPWISE_FLAGS=allow_gc=False",
            lambda: subject.under(keeping),
        )  # fmt: skip


def _in_python(subject):
    # comes last: numpy's BLAS and scipy's each have threads, which get in each other's way
    python = Mode("py", "fast_run")
    if getattr(subject.mode.linker, "implementations", ()) != ("perform",):
        yield Variant(
            "linker py", "mode=opwise.Mode('py', 'fast_run')", lambda: subject.under(python)
        )


def _of_rewrites(subject):
    """Yield a variant without each kind of rewrite that did something to the graph."""
    if subject.query is None:
        return
    ops = [node.op for node in subject.original.function.maker.fgraph.apply_nodes]
    for tag, applied in (
        ("fusion", any(_is_fused(op) for op in ops)),
        ("map_reduce_fusion", any(isinstance(op, MapReduce) for op in ops)),
        ("inplace", any(getattr(op, "destroy_map", None) for op in ops)),
    ):
        if applied:
            yield Variant(
                f"without {tag}", f"{_written(subject.mode)}.excluding({tag!r})",
                lambda tag=tag: subject.under(subject.mode.excluding(tag)),
            )  # fmt: skip


def _is_fused(op):
    return isinstance(op, MapReduce) or (
        isinstance(op, Elemwise) and isinstance(op.scalar_op, Composite)
    )


def _written(mode):
    """Return what a program writes for a mode."""
    for name, known in predefined_modes.items():
        if isinstance(known, Mode) and same(known, mode):
            return f"mode=opwise.get_mode({name!r})"
    return "mode=mode"


def same(one, other):
    """Return whether two modes compile alike, as far as that can be seen."""
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


def _of_dtypes(subject):
    types = _types(subject.function)
    if "float64" in types:
        how = "OPWISE_FLAGS=floatX=float32, and T.matrix, not T.dmatrix"
        if config.floatX == "float32":
            how = "floatX is float32 already"
        yield _retyped(subject, "float64", "float32", how)
    else:
        yield Finding("not tried", "float32: nothing in the function is float64")
    if "float16" in types:
        yield _retyped(subject, "float16", "float32", "no loop in C computes in float16")


def _types(function):
    """Return the dtypes of all arrays of a function, as the user wrote it."""
    variables = {v for node in as_written(function) for v in (*node.inputs, *node.outputs)}
    variables.update(spec.variable for spec in function.maker.inputs)
    return {v.type.dtype for v in variables if isinstance(v.type, TensorType)}


def _retyped(subject, old, new, how):
    function, wide = subject.function, []
    arguments, state = [], []
    for i, spec in enumerate(function.maker.inputs):
        if getattr(spec.variable.type, "dtype", None) == old:
            kind = arguments if i in function._explicit else state
            kind.append(spec.name or str(spec.variable.type))
    do = [how]
    do += [f"{new} arrays for {', '.join(arguments)}"] * bool(arguments)
    do += [f"{new} values for the shared {', '.join(state)}"] * bool(state)

    def make():
        candidate = subject.retyped({old: new}, wide.append)
        if wide:
            ops = ", ".join(dict.fromkeys(f"{named(node.op)}{where(node)}" for node in wide))
            candidate.note = f"cast to {new} what is {old} all the same: {ops}"
        return candidate

    return Variant(f"{new} instead of {old}", "; ".join(do), make, against=subject.plain)


def where(node):
    """Return ' (file:line)' of where the user wrote an Apply; '' where that is not known."""
    for origin in node.origins:
        line = provenance.user_line(origin)
        if line is not None:
            return f" ({os.path.basename(line[0])}:{line[1]})"
    return ""


# --- the machine ----------------------------------------------------------------------------------


def _of_threads(subject):
    now, most = resources.threads(), resources.available()
    if "c" not in getattr(subject.mode.linker, "implementations", ()):
        yield Finding("not tried", "threads: the linker runs everything in Python")
        return
    if now == most == 1:
        yield Finding("not tried", "threads: there is one processor")
    for n in sorted({1, most // 2, most} - {0, now}):
        yield Variant(
            f"{n} thread{'s' * (n > 1)} instead of {now}", f"OPWISE_FLAGS=threads={n}",
            lambda n=n: subject.original.otherwise(threads=n), compiles=False,
        )  # fmt: skip


def _on_the_gpu(subject):
    try:
        importlib.import_module("opwise.gpu.runtime.device").device()
    except DeviceError as error:
        yield Finding("not tried", f"GPU: {str(error).partition(':')[0]}")
        return
    if "cuda" not in subject.mode.used_linker.implementations:
        device = Mode("cupy", subject.mode.provided_optimizer)
        yield Variant("the GPU", "mode=opwise.Mode('cupy')", lambda: subject.under(device))
