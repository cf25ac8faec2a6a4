"""From a graph of another library to a graph of opwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from opwise.frontends.opaque import Opaque
from opwise.frontends.performed import Performed
from opwise.graph import provenance
from opwise.graph.type import Type
from opwise.graph.variable import Constant, Var, Variable
from opwise.tensor.elemwise import cast
from opwise.tensor.shape import addbroadcast
from opwise.tensor.type import TensorType

#: a variable, an Apply, an Op or a type of another library
Foreign: TypeAlias = Any
#: (translator, Apply, its translated inputs) -> its outputs; or one alone
Translation: TypeAlias = Callable[..., Any]


class Untranslated(Exception):
    """A translation does not cover an Apply; the text says why, in a few words for a profile."""


@dataclass(frozen=True)
class Performance:
    """An Apply that its own library performs."""

    #: the text of its Op
    op: str
    #: why opwise has no translation of it
    reason: str


class Frontend:
    """What a library says about its graphs.

    Its Applys have ``op``, ``inputs`` and ``outputs``; its variables ``type``, ``owner`` and
    ``name``, and constants ``data``. name: of the library.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._translations: dict[type | str, Translation] = {}
        #: the translations that take values of any type
        self._of_any_type: set[Translation] = set()

    def translates(
        self, *op_classes: type | str, any_type: bool = False
    ) -> Callable[[Translation], Translation]:
        """Register a translation of Op classes; subclasses use it too unless they have their own.

        A class of a package that may not be loaded is given by its name, "package.module.Class".

        It is called with a Translator, the Apply and its translated inputs, and returns the
        outputs, a list or one variable. It raises Untranslated for an Apply that it does not cover.
        any_type: it is also called for Applys with operands or results of an Opaque type.
        """

        def register(translation: Translation) -> Translation:
            self._translations.update(dict.fromkeys(op_classes, translation))
            if any_type:
                self._of_any_type.add(translation)
            return translation

        return register

    def translation_of(self, op: Foreign) -> Translation | None:
        """Return the translation of an Op, its class's own or that of the nearest base class."""
        for cls in type(op).__mro__:
            for key in (cls, f"{cls.__module__}.{cls.__qualname__}"):
                if key in self._translations:
                    return self._translations[key]
        return None

    def covers(self, translation: Translation, node: Foreign) -> None:
        """Raise Untranslated if a translation takes no values of the types of an Apply."""
        if translation in self._of_any_type:
            return
        for var in (*node.inputs, *node.outputs):
            type_ = self.type_of(var.type)
            if isinstance(type_, Opaque):
                raise Untranslated(f"{type(node.op).__name__} of {type_} has no translation")

    # --- what a library defines -------------------------------------------------------------------

    def type_of(self, foreign: Foreign) -> Type:
        """Return the type of opwise for a type of the library."""
        raise NotImplementedError

    def constant(self, var: Foreign) -> Variable:
        """Return a constant with the value of one of the library."""
        raise NotImplementedError

    def is_constant(self, var: Foreign) -> bool:
        """Return whether a variable is a constant."""
        return var.owner is None and hasattr(var, "data")

    def trace_of(self, node: Foreign) -> provenance.Trace:
        """Return the frames that made an Apply, resolved, outermost first; () if not known."""
        return ()

    def performed(self, node: Foreign, reason: str) -> Performed:
        """Return the Op that performs an Apply as the library does."""
        raise NotImplementedError


#: an Apply that reads what more lines of the program compute belongs to none of them
_MOST_LINES = 4


def _of_program(trace: provenance.Trace) -> bool:
    """Return whether a frame, outermost first and resolved, is of the user's program."""
    return any(not provenance.library_of(frame[0]) for frame in trace)


class Translator:
    """Translates the graph of one function.

    variables: {variable of the library: that of opwise}. performed: the Applys that the library
    performs itself, with the reasons.
    """

    def __init__(self, frontend: Frontend) -> None:
        self.frontend = frontend
        self.variables: dict[Foreign, Variable] = {}
        self.performed: list[Performance] = []
        #: {variable: the frames of the Apply that computes it, where one is of the user's program}
        self._traces: dict[Foreign, provenance.Trace] = {}

    def input(self, var: Foreign) -> Variable:
        """Return a new variable for an input of the graph."""
        new: Variable = self.frontend.type_of(var.type).make_variable(var.name)
        self.variables[var] = new
        return new

    def __getitem__(self, var: Foreign) -> Variable:
        """Return the translation of a variable; constants get theirs here."""
        found = self.variables.get(var)
        if found is None:
            if not self.frontend.is_constant(var):
                raise KeyError(f"{var} is no input of the graph, and no Apply of it computes it")
            found = self.variables[var] = self.frontend.constant(var)
            if found.name is None:
                found.name = var.name
        return found

    def graph(self, order: Iterable[Foreign], outputs: Sequence[Foreign]) -> list[Variable]:
        """Translate Applys, each after those that it depends on; return the outputs."""
        for node in order:
            trace = self._trace(node)
            if _of_program(trace):
                self._traces.update(dict.fromkeys(node.outputs, trace))
            with provenance.located(trace):
                self._apply(node)
        return [self[var] for var in outputs]

    def inner(
        self,
        inputs: Sequence[Foreign],
        given: Sequence[Variable],
        order: Iterable[Foreign],
        outputs: Sequence[Foreign],
    ) -> list[Variable]:
        """Translate a graph inside an Op, for the inputs that are given; return its outputs."""
        translator = Translator(self.frontend)
        translator.performed = self.performed
        translator._traces = self._traces
        translator.variables.update(zip(inputs, given, strict=True))
        return translator.graph(order, outputs)

    def _trace(self, node: Foreign) -> provenance.Trace:
        """Return the frames that made an Apply.

        If none is of the user's program, as of an Apply that a rewrite or a library made, they
        follow those of what it reads: of several lines the last one of a file, if they are few.
        """
        own = self.frontend.trace_of(node)
        if _of_program(own):
            return own
        read = [self._traces[var] for var in node.inputs if var in self._traces]
        lines = {provenance.line_of(trace): trace for trace in read}
        if not lines or len(lines) > _MOST_LINES:
            return own
        trace = list(lines[max(lines, key=lambda line: line or ("", 0))])
        while trace and provenance.library_of(trace[-1][0]):
            trace.pop()
        return (*trace, *own[-1:])

    def _apply(self, node: Foreign) -> None:
        inputs = [self[var] for var in node.inputs]
        translation = self.frontend.translation_of(node.op)
        reason = f"{type(node.op).__name__} has no translation"
        results: Any = None
        if translation is not None:
            try:
                self.frontend.covers(translation, node)
                results = translation(self, node, *inputs)
            except Untranslated as gap:
                reason = str(gap)
        if results is None:
            results = self.perform(node, reason, inputs)
        if isinstance(results, Variable):
            results = [results]
        for var, result in zip(node.outputs, results, strict=True):
            result = self.variables[var] = self.fitted(result, var.type)
            if var.name is not None and result.name is None and not isinstance(result, Constant):
                result.name = var.name

    def perform(self, node: Foreign, reason: str, inputs: Sequence[Variable]) -> list[Variable]:
        """Return the outputs of an Apply that its library performs."""
        op = self.frontend.performed(node, reason)
        self.performed.append(Performance(str(op), reason))
        outputs: list[Variable] = op.make_node(*inputs).outputs
        return outputs

    def fitted(self, result: Var, foreign: Foreign) -> Variable:
        """Return a result with the dtype, and at least the known lengths of 1, of its type."""
        type_ = self.frontend.type_of(foreign)
        if not isinstance(type_, TensorType) or result.type == type_:
            same: Variable = result
            return same
        if result.type.ndim != type_.ndim:
            raise TypeError(f"a translation gives {result.type} where the library has {foreign}")
        if result.type.dtype != type_.dtype:
            result = cast(result, type_.dtype)
        return self.with_ones(result, type_.broadcastable)

    def with_ones(self, x: Var, ones: Sequence[bool]) -> Variable:
        """Return ``x`` with lengths that must be 1, where they are not known to be."""
        missing = [
            axis
            for axis, (wanted, known) in enumerate(
                zip(ones, getattr(x.type, "broadcastable", ones), strict=True)
            )
            if wanted and not known
        ]
        if missing:
            x = addbroadcast(x, *missing)
        known: Variable = x
        return known

    def exactly(self, result: Var, type_: Type) -> Variable:
        """Return a result as a variable of a type, forgetting which lengths are known to be 1."""
        return type_.filter_variable(result)
