"""``jit``: functions of numpy that are traced, compiled and kept for each kind of arguments."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import math
import re
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from opwise import tensor as T
from opwise.compile.executable import Function
from opwise.compile.function import function as compile_function
from opwise.config import config
from opwise.errors import TracingError
from opwise.modes.mode import get_mode
from opwise.tensor.type import tensor_type
from opwise.tracing import trees
from opwise.tracing.branches import Undefined
from opwise.tracing.calling import convert_function
from opwise.tracing.control import no_loop
from opwise.tracing.generators import TracedGenerator, generator
from opwise.tracing.kinds import LoopError
from opwise.tracing.lists import Deque, Memory, TracedList, memory_of
from opwise.tracing.trace import (
    Demand,
    NeedsState,
    Trace,
    current,
    same_items,
    tracing,
    untraceable,
)
from opwise.tracing.values import (
    NUMBER_DTYPES,
    PYTHON_TYPES,
    Number,
    Root,
    Traced,
    array,
    check_dtype,
    kind_of,
)

#: what the fast path of a signature returns for arguments of another one
MISS = object()

#: how many items a list has room for at first, beyond those that it has, if only calls can tell how
#: many are added
FIRST_ROOM = 256
#: how many signatures a call tries before it looks for its own
MOST_RECENT = 4
#: how many signatures there are for arguments of the same kinds before Python runs the calls in
#: which a guess is wrong
MOST_ALIKE = 32
#: how many ways of passing arguments are kept
MOST_FORMS = 32

#: the places of which a call has already taken the other answer
_otherwise_now: ContextVar[frozenset[Any]] = ContextVar("opwise_otherwise", default=frozenset())

#: types whose values are compared by ``==``; those of others by ``is``
_COMPARED = (
    bool, str, bytes, type(None), int, float, complex, frozenset, slice, range, np.dtype
)  # fmt: skip


@dataclasses.dataclass
class _Leaf:
    """What a signature says of one leaf of the arguments."""

    #: 'array', 'scalar' (of numpy), 'number' (of Python) or 'constant'
    sort: str
    #: the dtype of arrays and scalars, the kind of a number, the value of a constant
    what: Any
    #: of an array: for each axis whether its length is 1
    ones: tuple[bool, ...] = ()
    #: the number of an earlier leaf that is the same array, or None
    same_as: int | None = None

    def key(self) -> Any:
        what = self.what
        if self.sort == "constant":
            if type(what) is slice:  # has no hash
                what = what.start, what.stop, what.step
            what = (type(what), what if isinstance(what, _COMPARED) else id(what))
        return self.sort, what, self.ones, self.same_as

    def condition(self, name: str, given: dict[str, Any]) -> str:
        """Return a Python expression that is true for leaves of this kind."""
        constant = f"c_{name}"
        if self.same_as is not None:
            return f"{name} is v{self.same_as}"
        if self.sort == "array":
            given[constant] = self.what
            # the dtypes of numpy are single objects; those of a structure or byte order are not
            text = (
                f"type({name}) is ndarray and ({name}.dtype is {constant} or "
                f"{name}.dtype == {constant})"
            )
            if not self.ones:
                return f"{text} and not {name}.shape"
            shape = f"s{name[1:]}"
            text += f" and len({shape} := {name}.shape) == {len(self.ones)}"
            if not any(self.ones):
                return f"{text} and 1 not in {shape}"
            tests = (f"{shape}[{k}] {'==' if one else '!='} 1" for k, one in enumerate(self.ones))
            return " and ".join((text, *tests))
        if self.sort == "scalar":
            given[constant] = self.what.type
            return f"type({name}) is {constant}"
        if self.sort == "generator":
            given[constant] = np.random.Generator
            return f"type({name}) is {constant}"
        if self.sort == "number":
            given[constant] = PYTHON_TYPES[self.what]
            return f"type({name}) is {constant}"
        given[constant] = self.what
        if isinstance(self.what, _COMPARED):
            given[f"t_{name}"] = type(self.what)
            return f"type({name}) is t_{name} and {name} == {constant}"
        return f"{name} is {constant}"

    def __str__(self) -> str:
        if self.same_as is not None:
            return f"the same as v{self.same_as}"
        if self.sort == "array":
            return f"{self.what}[{', '.join('1' if one else ':' for one in self.ones)}]"
        if self.sort == "scalar":
            return f"{self.what}"
        if self.sort == "generator":
            return "Generator"
        return PYTHON_TYPES[self.what].__name__ if self.sort == "number" else repr(self.what)


class Signature:
    """One kind of arguments, and the function that was compiled for it."""

    def __init__(self, structure: Any, leaves: list[_Leaf], names: list[str], trace: Trace) -> None:
        self._structure, self._leaves, self._names = structure, leaves, names
        self._trace = trace
        #: the function of opwise that calls run
        self.compiled: Function
        #: what the call path returns for arguments; MISS for those of another signature
        self.attempt: Callable[..., Any]
        #: the text of ``attempt``
        self.text = ""
        #: what ``Jit`` knows all signatures of such arguments by
        self.key: Any = None
        #: what it says of the leaves of the arguments
        self.kinds = leaves

    @property
    def denied(self) -> frozenset[Any]:
        """The places of the tests that were taken not to hold."""
        return self._trace.denied

    @property
    def guesses(self) -> list[Any]:
        """The places of the tests that were taken to hold, or not to."""
        return self._trace.guesses

    @property
    def is_in_numpy(self) -> bool:
        """Whether Python runs its calls."""
        return bool(self._trace.fallbacks)

    @property
    def demands(self) -> list[Demand]:
        """What must hold of the arguments besides dtypes and ranks, and the lines that need it."""
        return list(self._trace.demands.values())

    def __str__(self) -> str:
        named = ", ".join(f"{n}: {leaf}" for n, leaf in zip(self._names, self._leaves, strict=True))
        lines = [f"({named})"]
        for demand in self.demands:
            shown = re.sub(r"\bv(\d+)\b", lambda m: self._names[int(m[1])], demand.text)
            lines.append(f"    {demand._replace(text=shown)}")
        lines += [f"    in numpy: {what} (line {line})" for _, line, what in self._trace.fallbacks]
        return "\n".join(lines)

    __repr__ = __str__


class Signatures(list[Signature]):
    """The signatures of a function, in the order in which they were compiled."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no call yet"

    __repr__ = __str__


class Jit:
    """A function of numpy that is compiled for each kind of arguments; what ``jit`` returns."""

    def __init__(
        self,
        function: Callable[..., Any],
        static: Sequence[str] = (),
        fallback: bool = False,
        mode: Any = None,
        profile: Any = None,
        plain: Callable[..., Any] | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        #: the function of the program
        self.function = function
        #: what numpy runs, with the arguments of a call, to raise an error of the program
        self._plain = function if plain is None else plain
        #: names of arguments whose values are constants
        self.static = (static,) if isinstance(static, str) else tuple(static)
        self.fallback = fallback
        self._mode, self._profile = mode, profile
        self._parameters = inspect.signature(function)
        unknown = set(self.static) - set(self._parameters.parameters)
        if unknown:
            raise TypeError(
                f"static= names {', '.join(sorted(unknown))}, which {function.__name__} does not "
                "take as an argument"
            )
        self._by_key: dict[Any, list[Signature]] = {}
        #: the call path that fitted last, if it took the arguments as they were given
        self._last: Callable[..., Any] | None = None
        #: the call paths of signatures, the last one that fitted first
        self._recent: list[Callable[..., Any]] = []
        #: {(number of positional arguments, *names of others): what gives all arguments in order}
        self._forms: dict[Any, Callable[..., Any]] = {}
        #: the kinds of arguments that calls had: what decides, and which line needs it
        self.signatures = Signatures()
        self._stats: Any = None
        #: the same of a ProfileMode, which records calls by itself
        self._stats_of_mode: Any = None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<opwise.jit of {self.function!r}>"

    @property
    def converted(self) -> str:
        """The text of the function as it is traced: with its loops and branches as calls."""
        return convert_function(self.function).text

    @property
    def profile(self) -> Any:
        """Where the time of calls went, by line of the function: a ProfileStats.

        Recording begins with ``jit(profile=True)``, a ProfileMode, the flag profile, or the first
        use of this attribute: later calls compile the function again then. Warns if there were
        calls before.
        """
        if self._stats is None and self._stats_of_mode is not None:
            return self._stats_of_mode
        if self._stats is None:
            self._profile = True
            self._recording()
            if self.signatures:
                warnings.warn(
                    f"The calls of {self.function.__name__} until now are not in its profile; "
                    "later ones compile it again, and are recorded. To record all calls, write "
                    "opwise.jit(profile=True).",
                    stacklevel=2,
                )
            self._by_key.clear()
            self.signatures.clear()
            self._last, self._recent = None, []
        return self._stats

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        last = self._last
        if last is not None and not kwargs:
            result = last(*args)
            if result is not MISS:
                return result
        form = self._forms.get((len(args), *kwargs))
        if form is not None:
            given = form(args, kwargs)
            tried = last if given is args else None
            for attempt in self._recent:
                if attempt is not tried:
                    result = attempt(*given)
                    if result is not MISS:
                        self._try_first(attempt, given is args)
                        return result
        return self._general(args, kwargs)

    # --- calls that the last signature does not fit

    def _general(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        try:
            bound = self._parameters.bind(*args, **kwargs)
        except TypeError as error:
            name = getattr(self.function, "__name__", "the function")
            raise TypeError(f"{name}() cannot be called so: {error}") from None
        bound.apply_defaults()
        given = list(bound.arguments.values())
        leaves, structure = trees.flatten(given)
        if current() is not None:
            # inside another function that is traced: a call like any other
            return convert_function(self.function).call(*bound.args, **bound.kwargs)
        kinds = self._kinds(bound, leaves)
        key = structure, tuple(kind.key() for kind in kinds)
        for signature in self._by_key.get(key, ()):
            result = signature.attempt(*given)
            if result is not MISS:
                self._remember(signature, args, kwargs)
                return result
        try:
            signature = self._traced(bound, structure, leaves, kinds)
        except TracingError as error:
            if not self.fallback:
                raise
            signature = self._in_numpy(structure, kinds, list(bound.arguments), error)
        except Exception as error:
            if "<traced " in str(error) and self._plain is self.function:
                # an error of the program, whose text Python makes of values
                run = self._in_python(list(bound.arguments))
                run(*trees.unflatten(structure, list(map(copy.deepcopy, leaves))))
            raise
        self._add(key, signature)
        self._remember(signature, args, kwargs)
        result = signature.attempt(*given)
        if result is MISS:
            raise AssertionError(f"A new signature refuses its own arguments:\n{signature.text}")
        return result

    def _add(self, key: Any, signature: Signature) -> None:
        signature.key = key
        self._by_key.setdefault(key, []).append(signature)
        self.signatures.append(signature)

    def _otherwise(
        self, former: Signature, bound: inspect.BoundArguments, missed: int, given: Sequence[Any]
    ) -> Any:
        """Return the result of a call in which a guess of a signature is wrong.

        missed: the number of the guess. bound: arguments of the function. given: their values in
        the call. MISS if Python is to run the function.
        """
        place = former.guesses[missed - 1]
        asked = _otherwise_now.get()
        if place in asked:  # neither holds, as where the same place is reached twice
            return MISS
        denied = former.denied ^ {place}
        token = _otherwise_now.set(asked | {place})
        try:
            alike = self._by_key.get(former.key, ())
            for signature in alike:
                if signature.denied == denied:
                    result = signature.attempt(*given)
                    if result is not MISS:
                        if not signature.is_in_numpy:  # others would not come to theirs
                            self._try_first(signature.attempt, False)
                        return result
            if len(alike) >= MOST_ALIKE:
                return MISS
            call = inspect.BoundArguments(
                self._parameters,
                dict(zip(bound.arguments, given, strict=True)),  # type: ignore[arg-type]
            )
            leaves, structure = trees.flatten(list(given))
            try:
                signature = self._traced(call, structure, leaves, former.kinds, denied)
            except TracingError as error:
                names = list(bound.arguments)
                signature = self._in_numpy(structure, former.kinds, names, error, denied)
                self._add(former.key, signature)
                return signature.attempt(*given)
            except Exception:  # Python's error is the program's
                return MISS
            self._add(former.key, signature)
            self._try_first(signature.attempt, False)
            return signature.attempt(*given)
        finally:
            _otherwise_now.reset(token)

    def _remember(self, signature: Signature, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Let the next calls try a signature first, and find their arguments faster."""
        key = len(args), *kwargs
        if key not in self._forms and len(self._forms) < MOST_FORMS:
            self._forms[key] = self._form(len(args), list(kwargs))
        form = self._forms.get(key)
        self._try_first(signature.attempt, form is not None and form(args, kwargs) is args)

    def _try_first(self, attempt: Callable[..., Any], as_given: bool) -> None:
        """Let the next calls try a call path first. as_given: with the arguments as they come."""
        self._last = attempt if as_given else None
        if self._recent[:1] != [attempt]:  # a new list: another thread may go through the old one
            others = [each for each in self._recent if each is not attempt]
            self._recent = [attempt, *others][:MOST_RECENT]

    def _form(self, count: int, names: list[str]) -> Callable[..., Any]:
        """Return a function of (args, kwargs) that gives all arguments in order, with defaults."""
        rest, parts, defaults = list(names), [], {}
        for k, (name, parameter) in enumerate(self._parameters.parameters.items()):
            positional = parameter.kind in (
                parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD
            )  # fmt: skip
            if parameter.kind is parameter.VAR_POSITIONAL:
                parts.append(f"args[{k}:]")
            elif parameter.kind is parameter.VAR_KEYWORD:
                parts.append(f"{{{', '.join(f'{n!r}: kwargs[{n!r}]' for n in rest)}}}")
            elif positional and k < count:
                parts.append(f"args[{k}]")
            elif name in rest:
                rest.remove(name)
                parts.append(f"kwargs[{name!r}]")
            else:
                defaults[f"d{k}"] = parameter.default
                parts.append(f"d{k}")
        if parts == [f"args[{k}]" for k in range(count)]:
            return lambda args, kwargs: args
        text = f"lambda args, kwargs: ({', '.join(parts)},)"
        return eval(text, defaults)  # type: ignore[no-any-return]

    def _kinds(self, bound: inspect.BoundArguments, leaves: list[Any]) -> list[_Leaf]:
        static: list[bool] = []
        for name, value in bound.arguments.items():
            static += [name in self.static] * len(trees.flatten(value)[0])
        seen: dict[int, int] = {}
        kinds = []
        for k, (leaf, fixed) in enumerate(zip(leaves, static, strict=True)):
            try:
                kinds.append(_kind(leaf, fixed))
            except TypeError as error:
                structure = trees.flatten(list(bound.arguments.values()))[1]
                _, shown = _paths(list(bound.arguments), structure)[k]
                raise TypeError(f"The argument {shown}: {error}") from None
            if kinds[-1].sort in ("array", "generator"):
                if id(leaf) in seen:
                    kinds[-1].same_as = seen[id(leaf)]
                else:
                    seen[id(leaf)] = k
        return kinds

    def _traced(
        self,
        bound: inspect.BoundArguments,
        structure: Any,
        leaves: list[Any],
        kinds: list[_Leaf],
        denied: frozenset[Any] = frozenset(),
    ) -> Signature:
        """Trace the function with arguments like these, and compile it. denied: see Trace."""
        places: list[tuple[Any, Any]] = []
        while True:
            try:
                return self._traced_with(bound, structure, leaves, kinds, places, denied)
            except NeedsState as needed:
                places.append(needed.place)

    def _traced_with(
        self,
        bound: inspect.BoundArguments,
        structure: Any,
        leaves: list[Any],
        kinds: list[_Leaf],
        places: list[tuple[Any, Any]],
        denied: frozenset[Any],
    ) -> Signature:
        """Trace the function.

        places: (object, attribute or key) of what it reads from outside and changes; their values
        are leaves behind those of the arguments. denied: see Trace.
        """
        given = kinds
        trace = Trace(denied=denied, joins=not _runs_loops_in_c(self._mode))
        trace.raised = Root(T.constant(np.asarray(False)))
        trace.missed = Root(T.constant(np.asarray(0, np.int64)))
        trace.crowded = Root(T.constant(np.asarray(False)))
        inputs: list[Any] = []
        numbers: list[int] = []
        traced: list[Any] = []
        paths = _paths(list(bound.arguments), structure)
        count = len(leaves)
        for owner, name in places:
            leaves, kinds = [*leaves, _value_at(owner, name)], [*kinds]
            kinds.append(_kind(leaves[-1], False))
            if kinds[-1].sort in ("array", "generator"):
                same = [k for k, leaf in enumerate(leaves[:-1]) if leaf is leaves[-1]]
                kinds[-1].same_as = same[0] if same else None
            shown = f"{type(owner).__name__}.{name}"
            paths.append((_place_text(f"o{len(paths)}", owner, name), shown))
        for k, (leaf, kind) in enumerate(zip(leaves, kinds, strict=True)):
            if kind.same_as is not None:
                traced.append(traced[kind.same_as])
                continue
            if kind.sort == "array":
                trace.orders[_order_text(k)] = leaf.flags.c_contiguous
                trace.exact.append(f"v{k}.shape == {leaf.shape}")
            elif kind.sort == "number":
                trace.exact.append(f"v{k} != v{k}" if leaf != leaf else f"v{k} == {leaf!r}")
            made, variable = _argument(k, leaf, kind, paths[k][1])
            traced.append(made)
            if variable is not None:
                inputs.append(variable)
                numbers.append(k)
        for (owner, name), value in zip(places, traced[count:], strict=True):
            trace.state[id(owner), name] = value
            if type(value) is Traced and not value.scalar:
                trace.state_arrays[id(_value_at(owner, name))] = value
        arguments = trees.unflatten(structure, traced[:count], TracedList)
        containers = _containers(arguments, bound.arguments)
        trace.own.update((id(made), made) for made, _, _ in containers)
        call = inspect.BoundArguments(
            self._parameters,
            dict(zip(bound.arguments, arguments, strict=True)),  # type: ignore[arg-type]
        )
        signature = Signature(structure, kinds, [shown for _, shown in paths], trace)
        writer = _Writer(signature, structure, kinds, paths, len(bound.arguments))
        for k, (owner, _) in enumerate(places, count):
            writer.give(f"o{k}", owner)
        try:
            with tracing(trace):
                try:
                    result = convert_function(self.function).call(*call.args, **call.kwargs)
                except LoopError as error:  # of no loop: what it says holds for the function
                    raise no_loop(error) from error
            _check_captured(trace)
            writer.write_results(traced, result, containers)
        finally:
            trace.restore()
        for _, held in trace.captured.values():
            inputs.append(held.root.variable)
        trace.rooms.sort(key=lambda room: room.text is None)
        inputs += [room.variable for room in trace.rooms]
        stats = self._recording()
        signature.compiled = compile_function(
            inputs,
            writer.outputs,
            mode=_mode_of(self._mode),
            name=self.function.__name__,
            profile=stats,
            on_unused_input="ignore",
        )
        if not stats and signature.compiled.profile is not None:
            self._stats_of_mode = self._stats_of_mode or self._new_stats(atexit_print=False)
            self._stats_of_mode.add_all(signature.compiled.profile)
        signature.kinds = given
        writer.give("otherwise", functools.partial(self._otherwise, signature, bound))
        writer.finish(signature.compiled, numbers, self._in_python(list(bound.arguments)))
        return signature

    def _in_python(self, names: list[str]) -> Callable[..., Any]:
        """Return a function that runs the program's one in Python, with the values of a call."""
        parameters, function = self._parameters, self._plain

        def run(*args: Any) -> Any:
            call = inspect.BoundArguments(parameters, dict(zip(names, args, strict=True)))  # type: ignore[arg-type]
            return function(*call.args, **call.kwargs)

        return run

    def _in_numpy(
        self,
        structure: Any,
        kinds: list[_Leaf],
        names: list[str],
        error: TracingError,
        denied: frozenset[Any] = frozenset(),
    ) -> Signature:
        """Return a signature whose calls run the function in Python and numpy.

        error: why it is not compiled. denied: see Trace.
        """
        trace = Trace(denied=denied)
        what, *rest = str(error).split("\n")
        line = int(rest[0].rpartition("line ")[2]) if rest and "line " in rest[0] else 0
        trace.fallbacks.append(("", line, what))
        paths = _paths(names, structure)
        signature = Signature(structure, kinds, [shown for _, shown in paths], trace)
        writer = _Writer(signature, structure, kinds, paths, len(names))
        writer.finish_in_numpy(self._in_python(names), self.function.__name__)
        return signature

    def _recording(self) -> Any:
        """Return the ProfileStats of all compiled functions, or what function() takes."""
        wanted = config.profile if self._profile is None else self._profile
        if self._stats is None and wanted:
            self._stats = self._new_stats()
        return self._stats if self._stats is not None else self._profile

    def _new_stats(self, **options: Any) -> Any:
        from opwise.profiling.stats import ProfileStats

        return ProfileStats(message=self.function.__name__, **options)


def _runs_loops_in_c(mode: Any) -> bool:
    """Return whether loops of functions under a mode become C functions where they can."""
    found = get_mode(mode)
    tried = getattr(found.used_linker, "implementations", ())
    return bool(config.cxx) and found.generates_kernels and "c" in tried


def _mode_of(mode: Any) -> Any:
    """Return a mode that is given by name, or by the flags, with sums of floats as written.

    ``(x + y) - x`` is y only without rounding. A Mode that is given is taken as it is.
    """
    if isinstance(mode, str) or (mode is None and isinstance(config.mode, str)):
        return get_mode(mode).excluding("local_add_canonizer").including("sums_as_written")
    return mode


def _paths(names: list[str], structure: Any) -> list[tuple[str, str]]:
    """Return (Python expression, the same with the argument's name) for each leaf."""
    found: list[tuple[str, str]] = []

    def visit(part: Any, text: str, shown: str) -> None:
        if part is trees.LEAF:
            found.append((text, shown))
            return
        fields = hasattr(part.cls, "__dataclass_fields__")
        for k, each in enumerate(part.parts):
            if fields:
                step = f".{part.keys[k]}"
            else:
                step = f"[{part.keys[k]!r}]" if part.keys else f"[{k}]"
            visit(each, text + step, shown + step)

    for k, (name, part) in enumerate(zip(names, structure.parts, strict=True)):
        visit(part, f"a{k}", name)
    return found


def _kind(leaf: Any, fixed: bool) -> _Leaf:
    """Return what a signature says of a leaf."""
    if fixed:
        if isinstance(leaf, np.ndarray):
            raise TypeError("An array cannot be static: its values may change")
        return _Leaf("constant", leaf)
    if type(leaf) is np.ndarray:
        check_dtype(leaf.dtype)
        return _Leaf("array", leaf.dtype, tuple([n == 1 for n in leaf.shape]))
    if isinstance(leaf, np.ndarray):
        raise TypeError(
            f"opwise.jit takes plain arrays, not {type(leaf).__name__}, whose operators may mean "
            "something else: pass numpy.asarray(value)"
        )
    if isinstance(leaf, np.generic):
        check_dtype(leaf.dtype)
        return _Leaf("scalar", leaf.dtype)
    if type(leaf) is np.random.Generator:
        return _Leaf("generator", None)
    kind = kind_of(leaf)
    if kind is not None and kind != "b":
        if kind == "i" and not -(2**63) <= leaf < 2**63:
            return _Leaf("constant", leaf)
        return _Leaf("number", kind)
    return _Leaf("constant", leaf)


def _argument(k: int, leaf: Any, kind: _Leaf, name: str) -> tuple[Any, Any]:
    """Return (the traced value of an argument's leaf, its input variable or None)."""
    if kind.sort == "constant":
        return leaf, None
    if kind.sort == "generator":
        variable = generator(name)
        return TracedGenerator(variable), variable
    if kind.sort == "number":
        variable = tensor_type(NUMBER_DTYPES[kind.what], ())(name)
        return Number(kind.what, variable, leaf, f"v{k}"), variable
    variable = tensor_type(kind.what.name, kind.ones)(name)
    if kind.sort == "scalar":
        return array(variable, (), True), variable
    dims = tuple(
        1 if one else Number("i", lambda j=j: variable.shape[j], n, f"v{k}.shape[{j}]", True)
        for j, (one, n) in enumerate(zip(kind.ones, leaf.shape, strict=True))
    )
    readonly = "" if leaf.flags.writeable else "assignment destination is read-only"
    root = Root(variable, k, readonly)
    order = leaf.ndim == 0 or frozenset((_order_text(k),))
    return Traced(root, dims, (), False, order), variable


def _order_text(k: int) -> str:
    """Return the expression that says that an argument lies in C's order."""
    return f"v{k}.flags.c_contiguous"


class _Writer:
    """Writes the call path of a signature: checks, the compiled function's call, results."""

    def __init__(
        self,
        signature: Signature,
        structure: Any,
        kinds: list[_Leaf],
        paths: list[tuple[str, str]],
        count: int,
    ) -> None:
        self._signature, self._structure, self._kinds = signature, structure, kinds
        self._paths, self._count = paths, count
        #: the variables that the compiled function returns
        self.outputs: list[Any] = []
        self._places: dict[Any, int] = {}
        self._given: dict[str, Any] = {
            "ndarray": np.ndarray, "MISS": MISS, "inf": math.inf, "nan": math.nan
        }  # fmt: skip
        self._changed: dict[int, int] = {}
        #: statements that change objects, and the values that they need: {name: expression}
        self._effects: list[str] = []
        self._values: dict[str, str] = {}
        #: {id of a container that stands for one of the arguments: its expression}
        self._same: dict[int, str] = {}
        #: {name of such a container: its expression}
        self._held: dict[str, str] = {}
        self._raised: int | None = None
        self._missed: int | None = None
        #: {id of an object that the function has made: its name}; '' while its text is written
        self._made: dict[int, str] = {}
        self._crowded: int | None = None
        self._result = ""

    def give(self, name: str, value: Any) -> None:
        """Let the text of the call path use a name."""
        self._given[name] = value

    def write_results(self, traced: list[Any], result: Any, containers: list[Any]) -> None:
        """Write what the compiled function returns, and what calls change.

        containers: (what stands for it, what it held, its expression) of each of the arguments.
        """
        signature, kinds = self._signature, self._kinds
        for k, value in enumerate(traced):
            if type(value) is Traced and kinds[k].same_as is None and value.root.version:
                self._changed[k] = self._output(value.root.variable)
            if type(value) is TracedGenerator and value.root.version:
                self._output(value.root.variable)  # all draws are made, used or not
        raised = signature._trace.raised
        self._raised = self._output(raised.variable) if raised and raised.version else None
        missed = signature._trace.missed
        self._missed = self._output(missed.variable) if missed and missed.version else None
        crowded = signature._trace.crowded
        self._crowded = self._output(crowded.variable) if crowded and crowded.version else None
        self._write_effects(containers)
        self._result = self._text_of(result)

    def _write_effects(self, containers: list[Any]) -> None:
        trace = self._signature._trace
        for k, (made, _, text) in enumerate(containers):
            self._same[id(made)] = f"t{k}"
            self._held[f"t{k}"] = text
        for container, _ in trace.outside.values():
            self._same[id(container)] = self._constant(container)
        for made, before, _ in containers:
            text = self._same[id(made)]
            if dataclasses.is_dataclass(made):
                for name, old in before.items():
                    if getattr(made, name) is not old:
                        self._effects.append(f"{text}.{name} = {self._value(getattr(made, name))}")
            else:
                self._write_items(made, before, text)
        for container, before in trace.outside.values():
            self._write_items(container, before, self._same[id(container)])
        for (_, name), (owner, _, _) in trace.sets.items():
            value = getattr(owner, name)
            if value is not trace.state.get((id(owner), name), MISS):
                self._given["setattr"] = setattr
                where = self._constant(owner)
                self._effects.append(f"setattr({where}, {name!r}, {self._value(value)})")

    def _write_items(self, now: Any, before: Any, text: str) -> None:
        """Write the statements that give a list or dict its items."""
        if (memory := memory_of(now)) is not None:
            self._effects.append(f"{text}[:] = {self._values_name(self._list_text(memory))}")
            return
        if isinstance(now, dict):
            if list(now)[: len(before)] != list(before):
                self._effects.append(f"{text}.clear()")
                before = {}
            for key, value in now.items():
                if key not in before or before[key] is not value:
                    self._effects.append(f"{text}[{self._constant(key)}] = {self._value(value)}")
            return
        rest = now[len(before) :]
        if len(now) < len(before):
            before, rest = [], now
            self._effects.append(f"{text}.clear()")
        for k, (old, value) in enumerate(zip(before, now, strict=False)):
            if old is not value:
                self._effects.append(f"{text}[{k}] = {self._value(value)}")
        if rest:
            self._effects.append(f"{text}.extend([{', '.join(map(self._value, rest))}])")

    def _value(self, value: Any) -> str:
        """Return a name for a value that is computed before anything is changed."""
        return self._values_name(self._text_of(value))

    def _values_name(self, text: str) -> str:
        return self._values.setdefault(text, f"x{len(self._values)}")

    def _output(self, variable: Any) -> int:
        if variable not in self._places:
            self._places[variable] = len(self.outputs)
            self.outputs.append(variable)
        return self._places[variable]

    def _text_of(self, value: Any) -> str:
        """Return the expression of a part of the result."""
        if type(value) is Traced:
            root = value.root
            if root.origin is not None and not value._path and not value.scalar:
                return f"v{root.origin}"
            place = f"r[{self._output(value.variable)}]"
            return f"{place}[()]" if value.scalar else place
        if type(value) is Number:
            return f"r[{self._output(value.variable)}].item()"
        if isinstance(value, Undefined):
            value.fail()
        if type(value) is TracedGenerator:
            raise untraceable("A Generator cannot be returned.", "The caller has it already.")
        if id(value) in self._same:
            return self._same[id(value)]
        if isinstance(value, Deque):
            memory = value.memory
            text = self._text_of(list(value)) if memory is None else self._list_text(memory)
            return f"{self._constant(value.python)}({text})"
        if (memory := memory_of(value)) is not None:
            return self._list_text(memory)
        structure = trees.flatten(value)[1]
        if structure is not trees.LEAF:
            parts = [
                self._text_of(
                    getattr(value, key) if dataclasses.is_dataclass(value) else value[key]
                )
                for key in structure.keys or range(len(structure.parts))
            ]
            shallow = trees.Node(structure.cls, structure.keys, (trees.LEAF,) * len(parts))
            return self._tree_text(shallow, iter(parts))
        own = self._signature._trace.own.get(id(value))
        if own is value and type(getattr(value, "__dict__", None)) is dict:
            return self._instance_text(value)
        if isinstance(value, Iterator):
            raise untraceable(
                f"The function returns an iterator ({type(value).__name__}), which would give "
                "values that are not known while it is traced.",
                "Return a list, or an array.",
            )
        if isinstance(value, np.ndarray):
            # a new array each time, as the function would make one
            name = self._constant(value.copy())
            return f"{name}.copy()"
        if isinstance(value, str) and "<traced " in value:
            raise untraceable(
                "A text that the function returns would hold a value that is not known while it is "
                "traced.",
                "Return the value, and make the text of it outside.",
            )
        return repr(value) if value is None or type(value) in (int, bool) else self._constant(value)

    def _instance_text(self, value: Any) -> str:
        """Return the name of a new object like one that the function has made."""
        if id(value) not in self._made:
            self._made[id(value)] = ""
            texts = [f"{name!r}: {self._text_of(each)}" for name, each in vars(value).items()]
            self._given["rebuilt"] = _rebuilt
            text = f"rebuilt({self._constant(type(value))}, {{{', '.join(texts)}}})"
            self._made[id(value)] = self._values_name(text)
        name = self._made[id(value)]
        if not name:
            raise untraceable(
                f"The function returns or keeps a {type(value).__name__} that it has made, and "
                "that holds itself.",
                "Return the arrays in it.",
            )
        return name

    def _list_text(self, memory: Memory) -> str:
        """Return the expression of a list whose items are in arrays."""
        texts = []
        for x, part in zip(memory.data, memory.parts, strict=True):
            text = f"r[{self._output(memory.rows(x).variable)}]"
            if part.kind.sort == "number":
                texts.append(f"{text}.tolist()")
                continue
            if len(part.dims) > 1:
                raise untraceable(
                    "A list of lists of lists of numpy's numbers cannot be returned.",
                    "Return an array of it: numpy.array.",
                )
            texts.append(f"list(map(list, {text}))" if part.dims else f"list({text})")
        if memory.structure is trees.LEAF:
            return texts[0]
        rows = f"zip({', '.join(texts)})"
        if all(part is trees.LEAF for part in memory.structure.parts):
            return f"list({rows})"
        self._given["unflatten"] = trees.unflatten
        return f"[unflatten({self._constant(memory.structure)}, each) for each in {rows}]"

    def _constant(self, value: Any) -> str:
        name = f"k{len(self._given)}"
        self._given[name] = value
        return name

    def _tree_text(self, structure: Any, texts: Any) -> str:
        if structure is trees.LEAF:
            return str(next(texts))
        parts = [self._tree_text(part, texts) for part in structure.parts]
        if structure.cls is tuple:
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if structure.cls is list:
            return f"[{', '.join(parts)}]"
        if structure.cls is dict:
            keys = [self._constant(key) for key in structure.keys]
            return f"{{{', '.join(f'{k}: {p}' for k, p in zip(keys, parts, strict=True))}}}"
        shallow = trees.Node(structure.cls, structure.keys, (trees.LEAF,) * len(parts))
        self._given["unflatten"] = trees.unflatten
        return f"unflatten({self._constant(shallow)}, [{', '.join(parts)}])"

    def finish(self, compiled: Function, numbers: list[int], in_python: Any) -> None:
        """Write the call path and compile it.

        in_python: runs the function in Python, for calls that lead to an error which the program
        raises or handles.
        """
        signature, given = self._signature, self._given
        trace = signature._trace
        given["compiled"], given["in_python"] = compiled, in_python
        checks = self._structure_checks()
        lines = []
        for k, (path, _) in enumerate(self._paths):
            lines.append(f"v{k} = {path}")
        conditions = [kind.condition(f"v{k}", given) for k, kind in enumerate(self._kinds)]
        conditions += list(signature._trace.demands)
        conditions += [self._read(*read) for read in trace.reads.values()]
        given["same_items"] = same_items
        for container, before in trace.outside.values():
            text = self._same[id(container)]
            if not any(text in effect for effect in self._effects):
                conditions.append(f"same_items({text}, {self._constant(before)})")
        assumed = sorted(signature._trace.assumed)
        dropped = compiled.maker.optimized.lengths
        if dropped or any(kind.sort == "generator" for kind in self._kinds):
            # a call may succeed all the same, or one that fails has drawn already
            conditions += assumed
            assumed = []
        if self._changed:
            given["may_share"] = np.may_share_memory
            for k in self._changed:
                conditions.append(f"v{k}.flags.writeable")
        body = self._head(checks, lines, conditions)
        arrays = [k for k, kind in enumerate(self._kinds) if kind.sort == "array"]
        for k in self._changed:
            for other in arrays:
                if other != k and self._kinds[other].same_as is None:
                    body.append(f"    if may_share(v{k}, v{other}): raise overlap(v{k}, v{other})")
        given["overlap"] = _overlap
        held = [self._constant(array_) for array_, _ in signature._trace.captured.values()]
        rooms_known = [room.text for room in trace.rooms if room.text is not None]
        arguments = ", ".join([*(f"v{k}" for k in numbers), *held, *rooms_known])
        call = f"compiled({arguments})"
        if self._crowded is not None:
            rooms = [FIRST_ROOM for room in trace.rooms if room.text is None]
            given["compiled"] = _until_there_is_room(compiled, self._crowded, rooms)
        own = "".join(f"a{k}, " for k in range(self._count))
        again = f"in_python({own})"
        handled = (Exception,) if self._raised is not None else tuple(trace.handled)
        states = []
        if handled:
            for k, kind in enumerate(self._kinds):
                if kind.sort == "generator" and kind.same_as is None:
                    # Python draws again
                    body.append(f"    s{k} = v{k}.bit_generator.state")
                    states.append(f"v{k}.bit_generator.state = s{k}")
        if assumed or handled:
            body += ["    try:", f"        r = {call}"]
            if assumed:
                body += [
                    "    except Exception as error:",
                    f"        if not ({' and '.join(assumed)}): return MISS",
                    f"        if not isinstance(error, {self._constant(handled)}): raise",
                ]
            else:
                body.append(f"    except {self._constant(handled)}:")
            body += [f"        {each}" for each in (*states, f"return {again}")]
        else:
            body.append(f"    r = {call}")
        if self._raised is not None:
            body.append(f"    if r[{self._raised}]:")
            body += [f"        {each}" for each in states]
            if self._missed is not None:
                place = f"r[{self._missed}]"
                body.append(f"        if {place}:")
                body.append(f"            other = otherwise({place}.item(), ({own}))")
                body.append("            if other is not MISS: return other")
            body.append(f"        return {again}")
        used = set(re.findall(r"\bt\d+\b", " ".join((self._result, *self._effects, *self._values))))
        body += [f"    {name} = {text}" for name, text in self._held.items() if name in used]
        # the memory of an array that the caller holds is not changed by what is set
        body += [f"    {name} = {text}" for text, name in self._values.items()]
        body += [f"    v{k}[...] = r[{place}]" for k, place in self._changed.items()]
        body += [f"    {effect}" for effect in self._effects]
        body.append(f"    return {self._result}")
        self._compile(body, str(compiled.name))

    def _head(self, checks: list[str], lines: list[str], conditions: list[str]) -> list[str]:
        """Return the first lines of the call path: the checks of its arguments."""
        # calls with fewer or more arguments are left to the general path, which knows defaults
        parameters = ", ".join(f"a{k}=MISS" for k in range(self._count))
        separator = ", " if parameters else ""
        body = [f"def attempt({parameters}{separator}*more):", "    if more: return MISS"]
        if checks:
            body.append(f"    if not ({' and '.join(checks)}): return MISS")
        body += [f"    {line}" for line in lines]
        if conditions:
            body.append(f"    if not ({' and '.join(conditions)}): return MISS")
        return body

    def _compile(self, body: list[str], name: str) -> None:
        text = self._signature.text = "\n".join(body) + "\n"
        exec(compile(text, f"<opwise.jit {name}>", "exec"), self._given)
        self._signature.attempt = self._given["attempt"]

    def finish_in_numpy(self, in_python: Callable[..., Any], name: str) -> None:
        """Write a call path that runs the function in Python."""
        conditions = [k.condition(f"v{j}", self._given) for j, k in enumerate(self._kinds)]
        lines = [f"v{k} = {path}" for k, (path, _) in enumerate(self._paths)]
        body = self._head(self._structure_checks(), lines, conditions)
        self._given["in_python"] = in_python
        body.append(f"    return in_python({', '.join(f'a{k}' for k in range(self._count))})")
        self._compile(body, name)

    def _read(self, owner: Any, name: Any, value: Any) -> str:
        """Return the condition that the function still reads the same from outside."""
        text = _place_text(self._constant(owner), owner, name)
        if isinstance(value, int | float | complex | str) and value == value:
            kind = self._constant(type(value))
            return f"type({text}) is {kind} and {text} == {self._constant(value)}"
        return f"{text} is {self._constant(value)}"

    def _structure_checks(self) -> list[str]:
        """Return conditions for arguments that are containers of the same structure."""
        checks: list[str] = []

        def visit(part: Any, text: str) -> None:
            if part is trees.LEAF:
                self._leaf_checks(checks, text)
                return
            fields = hasattr(part.cls, "__dataclass_fields__")
            checks.append(f"type({text}) is {self._constant(part.cls)}")
            if not fields:
                checks.append(f"len({text}) == {len(part.parts)}")
            if part.keys and not fields:
                checks.append(f"tuple({text}) == {self._constant(part.keys)}")
            for k, each in enumerate(part.parts):
                if fields:
                    visit(each, f"{text}.{part.keys[k]}")
                else:
                    visit(each, f"{text}[{self._constant(part.keys[k])}]" if part.keys else
                          f"{text}[{k}]")  # fmt: skip

        for k, part in enumerate(self._structure.parts):
            if part is not trees.LEAF:
                visit(part, f"a{k}")
        return checks

    def _leaf_checks(self, checks: list[str], text: str) -> None:
        """Leaves are checked when they have names."""


def _rebuilt(cls: type, attributes: dict[str, Any]) -> Any:
    """Return an object of a class that has these attributes."""
    made: Any = object.__new__(cls)
    vars(made).update(attributes)
    return made


def _place_text(where: str, owner: Any, name: Any) -> str:
    """Return the expression for an attribute, an item, or what a cell holds."""
    if isinstance(owner, types.CellType):
        return f"{where}.cell_contents"
    if isinstance(owner, dict):
        return f"{where}.get({name!r})"
    return f"{where}[{name!r}]" if isinstance(owner, list) else f"{where}.{name}"


def _value_at(owner: Any, name: Any) -> Any:
    if isinstance(owner, types.CellType):
        return owner.cell_contents
    return owner[name] if isinstance(owner, dict | list) else getattr(owner, name)


def _check_captured(trace: Trace) -> None:
    """Raise NeedsState for an array that a loop read from a list whose items the function sets."""
    for container, before in trace.outside.values():
        items = before.items() if isinstance(before, dict) else enumerate(before)
        for key, value in items:
            if type(value) is np.ndarray and id(value) in trace.captured:
                there = key in container if isinstance(container, dict) else key < len(container)
                if not there or container[key] is not value:
                    raise NeedsState(container, key)


def _containers(made: list[Any], names: Any) -> list[tuple[Any, Any, str]]:
    """Return (container, what it holds, its expression) for those that the function may change."""
    found: list[tuple[Any, Any, str]] = []

    def visit(value: Any, text: str) -> None:
        if isinstance(value, dict):
            found.append((value, dict(value), text))
            for key, each in value.items():
                visit(each, f"{text}[{key!r}]")
        elif isinstance(value, list | tuple):
            if isinstance(value, list):
                found.append((value, list(value), text))
            for k, each in enumerate(value):
                visit(each, f"{text}[{k}]")
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            found.append((value, fields, text))
            for name, each in fields.items():
                visit(each, f"{text}.{name}")

    for k, value in enumerate(made[: len(names)]):
        visit(value, f"a{k}")
    return found


def _until_there_is_room(compiled: Function, crowded: int, rooms: list[int]) -> Callable[..., Any]:
    """Return a function that calls another one, with more room for lists until there is enough.

    crowded: which of its results says that there was not. rooms: its last arguments at first.
    """

    def call(*args: Any) -> Any:
        drawn = [a.bit_generator for a in args if type(a) is np.random.Generator]
        states = [each.state for each in drawn]
        while True:
            results = compiled(*args, *rooms)
            if not results[crowded]:
                return results
            rooms[:] = [4 * room for room in rooms]
            for each, state in zip(drawn, states, strict=True):
                each.state = state

    return call


def _overlap(x: np.ndarray, y: np.ndarray) -> Exception:
    return untraceable(
        "The function changes an argument in place that shares memory with another argument.",
        "Pass a copy of one of them.",
    )


def jit(
    function: Callable[..., Any] | None = None,
    *,
    static: Sequence[str] | str = (),
    fallback: bool = False,
    mode: Any = None,
    profile: Any = None,
) -> Any:
    """Compile a function of numpy as it is; a decorator.

    function: takes and returns arrays, numbers, and lists, tuples, dicts and dataclasses of them.
    static: names of arguments whose values are constants: a new value compiles again. fallback:
    whether a function that cannot be traced runs in numpy, for the arguments that lead there;
    ``signatures`` says so, and why. mode: a Mode or its name (default: the flag
    mode). profile: whether to record where the time of calls goes (default: the flag profile).

    Returns a Jit, which is called like the function. The first call with arguments of other dtypes
    or ranks runs the function once with traced arrays, and compiles what it did. ``signatures`` of
    it says what decides, ``converted`` shows the text that is traced.

    Raises TypeError for a name in ``static`` that is no argument. Calls raise TracingError, with
    the line, for what cannot be traced.
    """
    if function is None:
        return lambda f: jit(f, static=static, fallback=fallback, mode=mode, profile=profile)
    if isinstance(function, Jit):
        function = function.function
    if not callable(function):
        raise TypeError(f"jit takes a function, not {function!r}")
    return Jit(function, static, fallback, mode, profile)  # type: ignore[arg-type]
