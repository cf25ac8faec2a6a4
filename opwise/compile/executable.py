"""Function: what ``opwise.function`` returns. The compiled CallPath handles plain calls."""

from __future__ import annotations

import copy as copying
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from opwise.compile.io import In, SymbolicOutput
from opwise.compile.report import CompileReport
from opwise.compile.shared import SharedVariable
from opwise.errors import AliasedMemoryError, explanation, message_of, similar, with_message
from opwise.graph import upcalls
from opwise.graph.op import Op
from opwise.graph.provenance import format_trace, warn
from opwise.graph.variable import Variable
from opwise.linkers.linked import Linked
from opwise.linkers.opwise_c import Argument, CallPath, Claim, LengthPair
from opwise.linkers.storage import Container
from opwise.modes.mode import name_of

if TYPE_CHECKING:
    from opwise.compile.maker import FunctionMaker
    from opwise.optimizers.inputlengths import Comparison

#: the index for a name that several inputs have
_AMBIGUOUS = -1
#: the dtypes of which the extension makes arrays of numbers
_NUMBERS = ("float64", "float32", "int64", "int32", "int16", "int8")


def _typed(var: Variable, name: str | None = None) -> str:
    """Return ``name: type`` of a variable, or its type if it has no name."""
    name = name or var.name
    return f"{name}: {var.type}" if name else str(var.type)


class Function(CallPath):
    """A compiled function.

    Call it with values for its inputs, by position or name; it returns the values of its outputs
    and applies its updates. ``f[name]`` and ``f[shared]`` read and set the values that it keeps.
    ``fn`` is the VM that runs it.
    """

    #: what pickling does if values that the function keeps share memory: 'warn', 'ignore', 'raise'
    pickle_aliased_memory_strategy = "warn"

    def __repr__(self) -> str:
        specs = [self.construction.inputs[k] for k in self._explicit]
        inputs = ", ".join(_typed(spec.variable, spec.name) for spec in specs)
        outputs = ", ".join(_typed(out.variable) for out in self.construction.outputs)
        name = "" if self.name is None else f" {self.name}"
        mode = name_of(self.maker.mode)
        return f"<Function{name}({inputs}) -> {outputs or 'nothing'}, mode {mode}>"

    def __init__(
        self,
        maker: FunctionMaker,
        linked: Linked,
        input_containers: list[Container],
        compile_report: CompileReport,
    ) -> None:
        self.maker = maker
        self.construction = construction = maker.construction
        self.linked = linked
        self._compile_report = compile_report
        self.name = maker.name
        #: the ProfileStats that records the calls; None or False for none
        self.profile = maker.profile
        self.unpack_single = construction.unpack_single
        #: whether calls return None, not an empty list
        self.return_none = maker.output_none
        #: whether arguments are used without a check or conversion
        self.trust_input = False
        #: the containers of all inputs and of all outputs, updates too
        self.input_storage = input_containers
        self.output_storage = outputs = list(linked.outputs)
        #: the inputs that callers may give, as indices
        self._explicit = [
            i for i, spec in enumerate(construction.inputs) if not spec.implicit and not spec.shared
        ]
        self._by_name = _names(construction.inputs)
        #: the containers of its inputs, by position, variable and name
        self.finder = _Finder(self)
        #: for each input: (whether calls must give a value, whether the default value is restored
        #: after a call, the default value)
        self.defaults = [
            (spec.value is None, spec.value is not None and spec.update is None,
             None if isinstance(spec.value, Container) else _own_container(spec).storage[0])
            for spec in construction.inputs
        ]  # fmt: skip
        n_outputs = len(construction.outputs)
        updates = [
            (outputs[k].storage, self.input_storage[i].storage)
            for k, i in sorted(construction.update_of.items())
            # an update that returns the value itself needs no move
            if outputs[k].storage is not self.input_storage[i].storage
        ]
        slow = (
            construction.keys is not None
            or any(construction.inputs[i].mutable for i in self._explicit)
            or any(not self.defaults[i][0] for i in self._explicit)
            # an implicit input before an explicit one changes positions
            or self._explicit != list(range(len(self._explicit)))
        )
        self.set_path(
            linked.vm,
            [self._argument(i) for i in self._explicit],
            # for calls that are not slow: the index of an input is its position
            {
                name: i
                for name, i in self._by_name.items()
                if name != "output_subset" and 0 <= i < len(self._explicit)
            },
            [container.storage for container in outputs[:n_outputs]],
            updates,
            construction.unpack_single,
            self.return_none,
            slow,
            self._claim(),
        )
        self.compare_lengths([self._pair(one) for one in maker.optimized.lengths])

    def _claim(self) -> Claim:
        """Return the locks of values that are kept between calls, which other functions may use."""
        updated = set(self.construction.update_of.values())
        writes = [self.input_storage[i].lock for i in sorted(updated)]
        reads = [
            container.lock
            for spec, container in zip(self.construction.inputs, self.input_storage, strict=True)
            if isinstance(spec.value, Container)
        ]
        return Claim(writes, reads)

    def _pair(self, one: Comparison) -> LengthPair:
        """Return two lengths that calls compare."""
        (i, axis), b = one.a, one.b
        storage = self.input_storage[i].storage
        if isinstance(b, int):
            return LengthPair(storage, axis, None, 0, b, one.text)
        return LengthPair(storage, axis, self.input_storage[b[0]].storage, b[1], 0, one.text)

    def warn_of_lengths(self, text: str) -> None:
        warn(text)

    def _argument(self, i: int) -> Argument:
        spec = self.construction.inputs[i]
        type_: Any = spec.variable.type
        dtype = getattr(type_, "numpy_dtype", None)
        exact = dtype is not None and not type_.filter_checks_isfinite
        ones = sum(1 << d for d, b in enumerate(getattr(type_, "broadcastable", ())) if b)
        strict, allow_downcast = spec.strict, spec.allow_downcast
        scalar = None
        if dtype is not None and exact and not strict and type_.ndim == 0:
            scalar = dtype.type if type_.dtype in _NUMBERS else None

        def convert(value: Any) -> Any:
            if value is None and dtype is not None:
                return None  # as in Theano: the first Apply that reads it raises
            return type_.filter(value, strict=strict, allow_downcast=allow_downcast)

        return Argument(
            self.input_storage[i].storage, dtype.num if dtype is not None else -1,
            getattr(type_, "ndim", 0), ones, exact, scalar,
            convert if hasattr(type_, "dtype") else type_.filter,
        )  # fmt: skip

    @property
    def compile_report(self) -> CompileReport:
        """Where the time of compiling the function went, and what was done for its kernels."""
        report = self._compile_report
        if self.linked.kernels is not report.kernels:  # they were compiled while calls ran
            report = self._compile_report = replace(report, kernels=self.linked.kernels)
        return report

    @property
    def arity(self) -> int:
        """How many arguments a call may give."""
        return len(self._explicit)

    @property
    def inv_finder(self) -> dict[Container, In]:
        """The input that each container belongs to."""
        return dict(zip(self.input_storage, self.construction.inputs, strict=True))

    @property
    def indices(self) -> list[list[Any]]:
        """Theano's list of [In, None, [In]] for each input."""
        return self.maker.indices

    @property
    def output_keys(self) -> list[str] | None:
        """The keys of the dict that calls return; None if they return no dict."""
        return self.construction.keys

    @property
    def n_returned_outputs(self) -> int:
        """How many values a call computes for its caller; updates do not count."""
        return len(self.construction.outputs)

    @property
    def nodes_with_inner_function(self) -> list[Op]:
        """The Ops of the graph that have a compiled graph inside, one for each Apply."""
        order = self.maker.fgraph.toposort()
        return [node.op for node in order if hasattr(node.op, "compile_inside")]

    @property
    def outputs(self) -> list[SymbolicOutput]:
        """The outputs as ``function`` got them."""
        return self.construction.outputs

    # --- calls that need more than positions ------------------------------------------------------

    def call_general(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call with names, defaults, a subset of the outputs, or mutable arguments."""
        subset = kwargs.pop("output_subset", None)
        specs = self.construction.inputs
        given: dict[int, Any] = {}
        if len(args) > len(self._explicit):
            hidden = [s for s in specs if s.implicit and not s.shared]
            if hidden:
                raise self._implicit(hidden[0])
            raise TypeError(
                f"Too many parameter passed to theano function: {len(args)}. {self._usage()}"
            )
        # implicit inputs have positions too, at which no argument may be given
        places = [i for i, s in enumerate(specs) if not s.shared]
        for i, value in zip(places, args, strict=False):
            if specs[i].implicit:
                raise self._implicit(specs[i])
            given[i] = value
        for key, value in kwargs.items():
            i = self._find(key)
            if i in given:
                raise TypeError(
                    f"Multiple values for input: {key}, by position and by name. {self._usage()}"
                )
            if specs[i].implicit:
                raise self._implicit(specs[i])
            given[i] = value
        values: dict[int, Any] = {}
        for i in self._explicit:
            if i in given:
                values[i] = self._converted(i, given[i])
                continue
            required, restored, _ = self.defaults[i]
            if required:
                name = specs[i].name or f"<{specs[i].variable.type}>"
                raise TypeError(f"Missing required input: {name}. {self._usage()}")
            if restored:  # the storage holds the default value, or one that f[name] = value set
                values[i] = copying.copy(self.input_storage[i].storage[0])
        self._separate_aliases(values)
        storages = [container.storage for container in self.input_storage]
        result = self.run_with(
            [(storages[i], value) for i, value in values.items()],
            [(storages[i], storages[i][0]) for i in self._explicit if specs[i].update is not None],
            [(storages[i], self.defaults[i][2]) for i in self._explicit if self.defaults[i][1]],
        )
        return self._shaped(result, subset)

    def _usage(self) -> str:
        """Return a sentence of messages on how to call the function."""
        specs = (self.construction.inputs[i] for i in self._explicit)
        shown = [
            (spec.name or f"<{spec.variable.type}>") + ("=..." if spec.value is not None else "")
            for spec in specs
        ]
        return f"The function is called as f({', '.join(shown)})."

    def _implicit(self, spec: In) -> TypeError:
        return TypeError(
            f"Tried to provide value for implicit input: {spec.name}. The function keeps its "
            f"value: leave it out. {self._usage()}"
        )

    def _shaped(self, result: Any, subset: Any) -> Any:
        """Return the results of a call as a dict, or a subset of them, if that is wanted."""
        keys = self.construction.keys
        if subset is not None:
            known: Sequence[Any] = range(len(self.construction.outputs)) if keys is None else keys
            for wanted in subset:
                if wanted not in known:
                    raise (IndexError if keys is None else KeyError)(
                        f"output_subset contains {wanted!r}; the outputs are {list(known)}"
                    )
        if keys is not None:
            results = [result] if self.unpack_single else result
            named = dict(zip(keys, results, strict=True))
            return named if subset is None else {k: named[k] for k in subset}
        if subset is not None:
            results = [result] if self.unpack_single else result
            chosen = [results[i] for i in subset]
            return chosen[0] if self.unpack_single else chosen
        return result

    def _converted(self, i: int, value: Any) -> Any:
        """Return an argument converted to the type of its input."""
        spec = self.construction.inputs[i]
        if self.trust_input or value is None:
            return value
        try:
            return spec.variable.type.filter(
                value, strict=spec.strict, allow_downcast=spec.allow_downcast
            )
        except Exception as error:  # of any class, which stays
            self.explain(error, self._explicit.index(i) if i in self._explicit else i, value)
            raise

    def check_arguments(self, values: Sequence[Any]) -> None:
        """Raise what a call with these arguments, by position, would raise before it computes.

        Every input must have one, also if it has a default value.
        """
        if len(values) != len(self._explicit):
            raise TypeError(
                f"Wrong number of arguments for {self.name or 'the function'}: got {len(values)}, "
                f"expected {len(self._explicit)}. {self._usage()}"
            )
        for i, value in zip(self._explicit, values, strict=True):
            self._converted(i, value)

    def explain(self, error: BaseException, index: int, value: Any = None) -> NoReturn:
        """Raise the error of a refused argument again, naming the input and what to pass.

        index: the position among the inputs that callers may give.
        """
        spec = self.construction.inputs[self._explicit[index]]
        var = spec.variable
        text = "Bad input argument to theano function"
        if self.name:
            text += f' with name "{self.name}"'
        text += f" at index {index} (0-based).  \n"
        if var.made_at:
            trace = format_trace(var.made_at)
            text += f"Backtrace when that variable is created:\n\n{trace}\n"
        problem = message_of(error)
        text += problem
        advice = explanation(lambda: self._advice(spec, problem, value))
        if advice:
            text += f"\n{advice}"
        raise with_message(error, text, text) from None

    def explain_stored(self, error: BaseException, index: int) -> NoReturn:
        """Raise the error of a value that the VM cannot use, naming the input.

        Values get there unchecked through trust_input, or through the storage of a container.
        index: the position among all inputs.
        """
        if index in self._explicit:
            self.explain(error, self._explicit.index(index))
        spec = self.construction.inputs[index]
        text = (
            f"{message_of(error)}\nThe function keeps this value for {spec.variable}, which must "
            f"have the type {spec.variable.type}."
        )
        raise with_message(error, text, text) from None

    @staticmethod
    def _advice(spec: In, problem: str, value: Any) -> str:
        """Return what to pass instead of a refused argument, or ''."""
        var: Any = spec.variable
        named = f"The input {spec.name}" if spec.name else "The input"
        ndim = getattr(var.type, "ndim", None)
        if ndim is None:
            return ""
        if ndim == 1 and "expected 1, got 0" in problem:
            return f"{named} takes a list or a vector: f([1., 2.]), or f([5]) for one element."
        if "inhomogeneous" in problem or problem == "setting an array element with a sequence.":
            return (
                f"{named} takes an array of {ndim} dimensions: rows of a list must have equal "
                "lengths."
            )
        if problem.startswith("Wrong number of dimensions"):
            return (
                f"{named} takes an array of {ndim} dimensions: reshape the argument, or declare "
                f"the input with another type than {var.type}."
            )
        if "broadcastable dimension" in problem:
            lengths = ", ".join("1" if b else "n" for b in var.type.broadcastable)
            return (
                f"{named} takes arrays of shape ({lengths}), as {var.type} says: if all "
                "lengths may differ, declare it with another type, such as T.matrix."
            )
        if "found a Variable" in problem:
            return (
                f"Pass a value for {value}: w.get_value() of a shared variable, or the result of "
                "another function. To compute with the variable itself, use givens."
            )
        if spec.strict and "expected a ndarray" in problem:
            return (
                f"{named} has strict=True, so arguments are not converted: pass "
                f"numpy.asarray(value, {var.type.dtype!r})."
            )
        if "you can: 1)" in problem:
            return ""  # it has been said
        if problem.startswith(("expected an array of dtype", "expected an ndarray")):
            return (
                f"{named} was not checked, since the function has trust_input=True: pass an array "
                f"of {var.type}, or set trust_input=False to have arguments converted."
            )
        is_array = hasattr(var.type, "numpy_dtype")
        wanted = f"a numpy array of dtype {var.type.dtype}" if is_array else str(var.type)
        return f"{named} must be convertible to {wanted}."

    def _find(self, key: str) -> int:
        """Return the index of the input with a name."""
        i = self._by_name.get(key)
        if i == _AMBIGUOUS:
            raise TypeError(
                f"Ambiguous name: {key} - please check the names of the inputs of your function "
                "for duplicates."
            )
        if i is None:
            names = [spec.name for spec in self.construction.inputs if spec.name]
            plural = "s" if len(names) != 1 else ""
            raise TypeError(
                f"Unknown input or state: {key}. The function has {len(names)} named input{plural} "
                f"({', '.join(names)}).{_similar_or_unnamed(key, names)}"
            )
        return i

    def _separate_aliases(self, values: dict[int, Any]) -> None:
        """Copy arguments so that no mutable one shares memory with another input.

        Of two arguments the later one is copied, as in Theano. A mutable argument is copied if it
        shares memory with a value that the function keeps.
        """
        specs = self.construction.inputs
        for i in [i for i in values if specs[i].mutable]:
            type_ = specs[i].variable.type

            def shared(j: int, value: Any, i: int = i, type_: Any = type_) -> bool:
                # a list and one of its elements may both be given, as in Theano
                alike = type(specs[j].variable.type) is type(type_)
                return i != j and alike and type_.may_share_memory(values[i], value)

            kept = [j for j in range(len(self.input_storage)) if j not in values]
            if any(shared(j, self.input_storage[j].storage[0]) for j in kept):
                values[i] = copying.copy(values[i])
            for j in values:
                if shared(j, values[j]):
                    values[max(i, j)] = copying.copy(values[max(i, j)])

    # --- kept values ------------------------------------------------------------------------------

    @property
    def value(self) -> _Values:
        return _Values(self.finder)

    @property
    def container(self) -> _Containers:
        return _Containers(self.finder)

    def __getitem__(self, item: Any) -> Any:
        return self.finder.container(item).value

    def __setitem__(self, item: Any, value: Any) -> None:
        self.finder.container(item).value = value

    def __contains__(self, item: Any) -> bool:
        return self.finder.index(item) is not None

    def get_shared(self) -> list[SharedVariable]:
        """Return the shared variables that the function reads or updates."""
        return [
            spec.variable
            for spec in self.construction.inputs
            if isinstance(spec.variable, SharedVariable)
        ]

    def free(self) -> None:
        """Free the memory that the VM keeps between calls."""
        free = getattr(self.fn, "free", None)
        if free is not None:
            free()

    def copy(
        self,
        share_memory: bool = False,
        swap: Mapping[Any, Any] | None = None,
        delete_updates: bool = False,
        name: str | None = None,
        profile: Any = None,
    ) -> Function:
        """Return a function of the same graph with its own storage for inputs.

        As in Theano, the copy returns a list of its outputs, also if this function returns a dict
        or the only output itself. share_memory: accepted for old programs; intermediate memory is
        never shared. swap: {shared variable: another of the same type, which replaces it and is
        updated in its place}. delete_updates: drop the updates. name, profile: as for
        ``opwise.function`` (default of name: this function's and " copy"). Raises ValueError if the
        function does not use a variable to swap, and AssertionError if the types differ.
        """
        return self.maker.copy_function(self, swap, delete_updates, name, profile)

    def sync_shared(self) -> None:
        """Do nothing; in Theano it waits for devices. Results are complete when a call returns."""

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        self._report_aliases()
        return self.maker.recipe(self)

    def _report_aliases(self) -> None:
        """Warn, or raise AliasedMemoryError, if values that the function keeps share memory."""
        if self.pickle_aliased_memory_strategy == "ignore":
            return
        kept = [
            (spec.name or str(spec.variable), container.storage[0])
            for spec, container in zip(self.construction.inputs, self.input_storage, strict=True)
            if isinstance(container.storage[0], np.ndarray)
        ]
        for (a, first), (b, second) in itertools.combinations(kept, 2):
            if first is second or np.shares_memory(first, second):
                text = f"{a} and {b} share memory; after unpickling they do not."
                if self.pickle_aliased_memory_strategy == "raise":
                    raise AliasedMemoryError(
                        f"{text} Set pickle_aliased_memory_strategy='warn' to pickle the function "
                        "nevertheless."
                    )
                warn(text)

    def _repr_html_(self) -> str:
        """Return what Jupyter shows: the signature, how it was compiled, and the graph."""
        return upcalls.html(self)

    def __copy__(self) -> Function:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        rebuild, args = self.maker.recipe(self)
        return rebuild(*copying.deepcopy(args, memo))


def _similar_or_unnamed(key: str, names: list[str]) -> str:
    if names:
        return similar(key, names)
    return " Pass arguments by position, or name the variables: T.scalar('x')."


def _names(specs: Iterable[In]) -> dict[str, int]:
    """Return {name: index of the input with it}."""
    names: dict[str, int] = {}
    for i, spec in enumerate(specs):
        if spec.name:
            names[spec.name] = _AMBIGUOUS if spec.name in names else i
    return names


def input_containers(specs: Sequence[In], values: Sequence[Any] | None) -> list[Container]:
    """Return a container for each input: the shared variable's own, or a new one.

    values: replace the values of the inputs; None keeps one.
    """
    containers = []
    for i, spec in enumerate(specs):
        value = spec.value if values is None or values[i] is None else values[i]
        containers.append(value if isinstance(value, Container) else _own_container(spec, value))
    return containers


def _own_container(spec: In, value: Any = None) -> Container:
    """Return a new container for an input. value: (default: that of ``spec``)."""
    container = Container(
        spec.variable, [None], strict=spec.strict, allow_downcast=spec.allow_downcast,
        name=spec.name,
    )  # fmt: skip
    if value is None:
        value = spec.value
    if spec.mutable and isinstance(value, np.ndarray):
        value = value.copy()  # the function may overwrite it
    if value is not None:
        container.data = value
    return container


class _Finder(Mapping[Any, Container]):
    """The containers of a function's inputs, by position, variable, name or In."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def index(self, item: Any) -> int | None:
        """Return the index of an input, or None."""
        specs = self.function.construction.inputs
        if isinstance(item, int):
            return item if 0 <= item < len(specs) else None
        if isinstance(item, Variable):
            return next((i for i, s in enumerate(specs) if s.variable is item), None)
        if isinstance(item, str):
            i = self.function._by_name.get(item)
            if i == _AMBIGUOUS:
                raise TypeError(f"Ambiguous name: {item} - use the variable itself instead.")
            return i
        return next((i for i, s in enumerate(specs) if s is item), None)

    def container(self, item: Any) -> Container:
        """Return the container of an input; raise TypeError for an unknown one."""
        i = self.index(item)
        if i is None:
            names = [spec.name for spec in self.function.construction.inputs if spec.name]
            raise TypeError(
                f"Unknown input or state: {item}. Named inputs: {', '.join(names) or 'none'}."
                f"{similar(item, names) if isinstance(item, str) else ''}"
            )
        return self.function.input_storage[i]

    def __getitem__(self, item: Any) -> Container:
        i = self.index(item)
        if i is None:
            raise KeyError(item)
        return self.function.input_storage[i]

    def __contains__(self, item: Any) -> bool:
        return self.index(item) is not None

    def __iter__(self) -> Iterator[Any]:
        for i, spec in enumerate(self.function.construction.inputs):
            yield i
            yield spec.variable
            if spec.name and self.function._by_name[spec.name] != _AMBIGUOUS:
                yield spec.name

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Containers:
    """The containers of a function's inputs: ``f.container``."""

    def __init__(self, finder: _Finder) -> None:
        self.finder = finder

    def __getitem__(self, item: Any) -> Any:
        return self.finder.container(item)

    def __setitem__(self, item: Any, value: Any) -> None:
        self.finder.container(item).value = value

    def __contains__(self, item: Any) -> bool:
        return item in self.finder


class _Values(_Containers):
    """The values that a function keeps: ``f.value``."""

    def __getitem__(self, item: Any) -> Any:
        return self.finder.container(item).value
