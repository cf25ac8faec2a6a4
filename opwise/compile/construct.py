"""From the arguments of ``function`` to one closed graph: givens, updates, shared variables.

``construct`` returns the record that FunctionMaker compiles; ``clone`` and
``rebuild_collect_shared`` are Theano's functions that copy expressions. Nothing here optimizes or
runs a graph.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from opwise.compile.io import In, Input, Outputs, SymbolicInput, SymbolicOutput, as_input
from opwise.compile.shared import SharedVariable, shared
from opwise.config import config
from opwise.errors import MissingInputError, UnusedInputError
from opwise.gradient import differentiated
from opwise.graph import traversal
from opwise.graph.apply import Apply
from opwise.graph.fgraph import missing_input
from opwise.graph.null import is_null
from opwise.graph.provenance import format_trace, warn
from opwise.graph.variable import Constant, Variable
from opwise.linkers.storage import Container

#: (variable, expression) pairs in a dict or a list; one that is updated, or given another value
Pairs = Mapping[Any, Any] | Iterable[Sequence[Any]]
#: {container of a shared variable: (the variable, the expression of its next value)}
Updates = dict[Container, tuple[SharedVariable, Variable]]


class Graph:
    """The inputs and outputs of a closed graph; its variables belong to no FunctionGraph."""

    def __init__(self, inputs: list[Variable], outputs: list[Variable]) -> None:
        self.inputs = inputs
        self.outputs = outputs


class WrittenGraph:
    """A closed graph that is a copy of the user's; the copy is made when it is first read.

    inputs: variables of the copy. written: outputs, of the user's graph unless they are inputs.
    order: the user's Applys, each after those that it reads. copies: {variable of the user: its
    copy, or itself until there is one}.
    """

    def __init__(
        self,
        inputs: list[Variable],
        written: list[Variable],
        order: list[Apply],
        copies: dict[Variable, Variable],
    ) -> None:
        self.inputs = inputs
        self.written = written
        self.order = order
        self.copies = copies
        #: copies of the Applys of ``order``, once they are made
        self.copied_order: list[Apply] = []

    @cached_property
    def outputs(self) -> list[Variable]:
        """The outputs, in the copy."""
        copies = self.copies
        for node in self.order:
            new = node.clone()
            new.inputs = [self._copy(var) for var in node.inputs]
            new._origins = node.origins
            for old_out, new_out in zip(node.outputs, new.outputs, strict=True):
                if copies[old_out] is old_out:  # it is not an input of the function
                    copies[old_out] = new_out
            self.copied_order.append(new)
        return [self._copy(var) if var in copies else var for var in self.written]

    def _copy(self, var: Variable) -> Variable:
        """Return the copy of a variable whose owner, if any, was copied."""
        copied = self.copies[var]
        if copied is var:
            copied = self.copies[var] = var.clone()
        return copied


@dataclass(frozen=True, eq=False, repr=False)
class Construction:
    """The graph of a function, and the options of its inputs and outputs.

    All variables and Applys of the graph are copies that belong to no FunctionGraph, so
    ``FunctionGraph(graph_inputs, graph_outputs, clone=False)`` may own them. The ``origins`` of
    each Apply are the user's. Givens are applied.
    """

    #: the inputs that the user listed, in that order, then an implicit one for each shared variable
    #: that is read or updated. ``In.variable`` and ``In.update`` are the user's own variables, to
    #: which names, messages and ``f[variable]`` refer
    inputs: list[In]
    #: the outputs; ``Out.variable`` is the user's own variable
    outputs: list[SymbolicOutput]
    #: its inputs are for ``inputs``, its outputs for ``outputs``, then the update expressions
    graph: Graph | WrittenGraph
    #: {index of an update expression in the graph's outputs: index in inputs of what it replaces}
    update_of: dict[int, int]
    #: whether a call returns the only output itself, not a list
    unpack_single: bool
    #: the keys of the dict that a call returns, in the order of the outputs; None for other results
    keys: list[str] | None
    #: ``construct(**arguments)`` makes the same graph again, for copies and pickles
    arguments: dict[str, Any]

    @property
    def graph_inputs(self) -> list[Variable]:
        """The variables of the graph for ``inputs``, in that order."""
        return self.graph.inputs

    @property
    def graph_outputs(self) -> list[Variable]:
        """The variables of the graph for ``outputs``, then the update expressions."""
        return self.graph.outputs


def construct(
    inputs: Sequence[Input],
    outputs: Outputs = None,
    updates: Pairs | None = None,
    givens: Pairs | None = None,
    no_default_updates: bool | Sequence[Variable] = False,
    rebuild_strict: bool = True,
    on_unused_input: str | None = None,
    allow_input_downcast: bool | None = None,
    swap: Mapping[SharedVariable, SharedVariable] | None = None,
) -> Construction:
    """Return the graph of a function, and the options of its inputs and outputs.

    The arguments are those of ``opwise.function``. swap: {shared variable: another of its type,
    which is read and updated in its place, by the same expression}. Raises TypeError for an
    argument that is not a variable or has the wrong type, UnusedInputError for an input that no
    output or update depends on, and MissingInputError for a variable without a value.
    """
    if isinstance(inputs, Variable | SymbolicInput):
        warn(
            f"The inputs of a function are a list: {inputs} is taken as a list of one. Write "
            f"[{inputs}]."
        )
        inputs = [inputs]
    specs = _input_specs(inputs, allow_input_downcast)
    outs, unpack_single, keys = _output_specs(outputs)
    arguments = {
        "inputs": list(inputs),
        "outputs": copy.copy(outputs) if isinstance(outputs, list | dict) else outputs,
        "updates": _pairs("updates", updates),
        "givens": _pairs("givens", givens),
        "no_default_updates": no_default_updates,
        "rebuild_strict": rebuild_strict,
        "on_unused_input": "ignore",  # the first construction has checked
        "allow_input_downcast": allow_input_downcast,
        "swap": dict(swap or {}),
    }
    given = _given_pairs(cast(list[Any], arguments["givens"]), specs)
    listed = len(specs)

    graph = _FunctionCopy(
        [spec.variable for spec in specs], rebuild_strict, swap or {}, deferred=not given
    )
    wanted = _explicit_updates(
        (graph.swap.get(var, var), expression)
        for var, expression in cast(list[Any], arguments["updates"])
    )
    for old, new in given:
        graph.replace(old, new)
    graph_inputs = [graph.copies[spec.variable] for spec in specs]
    graph_outputs = graph.copy([out.variable for out in outs])
    update_of: dict[int, int] = {}
    for i, spec in enumerate(specs):
        if spec.update is not None:
            update_of[len(graph_outputs)] = i
            graph_outputs += graph.copy_updates([(spec.variable, spec.update)])
    next_values = _copy_shared_updates(graph, wanted, _default_update_filter(no_default_updates))
    for container, (var, var_copy) in graph.shared.items():
        _, update = wanted.get(container, (var, None))
        if update is not None:
            update_of[len(graph_outputs)] = len(specs)
            graph_outputs.append(next_values[container])
        specs.append(_shared_input(var, update))
        graph_inputs.append(var_copy)

    closed = graph.closed(graph_inputs, graph_outputs)
    written = [out.variable for out in outs] + [new for _, new in wanted.values()]
    _check_unused(specs[:listed], graph_inputs[:listed], graph.read, written, on_unused_input)
    _check_missing(closed, graph.read)
    return Construction(specs, outs, closed, update_of, unpack_single, keys, arguments)


def _shared_input(var: SharedVariable, update: Variable | None) -> In:
    return In(
        var,
        value=var.container,
        update=update,
        mutable=update is not None,
        borrow=True,
        implicit=True,
        shared=True,
    )


# --- reading the arguments ----------------------------------------------------------------------


def _input_specs(inputs: Any, allow_downcast: bool | None) -> list[In]:
    if not isinstance(inputs, list | tuple):
        raise Exception(
            "Input variables of a Theano function should be contained in a list, even when there "
            f"is a single input. Give a list of variables, as [x], not {inputs!r}."
        )
    specs: list[In] = []
    seen: dict[Variable, int] = {}
    for i, item in enumerate(inputs):
        try:
            spec = as_input(item)
        except TypeError as error:
            error.args = (f"{error} (input {i} of the function)",)
            raise
        var = spec.variable
        _refuse_shared(var)
        if var in seen:
            raise UnusedInputError(
                f"Variable {var} is used twice in inputs to theano.function, at indices "
                f"{seen[var]} and {i}.  This would result in values provided for it being ignored. "
                "Please do not duplicate variables in the inputs list."
            )
        seen[var] = i
        if spec is not item and isinstance(item, Variable):
            spec.allow_downcast = allow_downcast
        # the user may pass an In to several functions
        specs.append(copy.copy(spec))
    return specs


def _refuse_shared(var: Variable) -> None:
    if isinstance(var, SharedVariable):
        raise TypeError(
            f"Cannot use a shared variable ({var}) as explicit input. Consider substituting a "
            "non-shared variable via the `givens` parameter. A function reads shared variables "
            "without arguments: leave it out of the inputs."
        )


def _output_specs(outputs: Any) -> tuple[list[SymbolicOutput], bool, list[str] | None]:
    """Return (outputs, whether a call returns the only output itself, keys of a dict or None)."""
    if outputs is None:
        return [], False, None
    if isinstance(outputs, dict):
        for key in outputs:
            if not isinstance(key, str):
                raise AssertionError(
                    f"The keys of a dict of outputs must be strings, not {key!r}: write "
                    f"{str(key)!r}."
                )
        keys = sorted(outputs)
        return [_as_output(outputs[key]) for key in keys], False, keys
    if isinstance(outputs, list | tuple):
        return [_as_output(out) for out in outputs], False, None
    return [_as_output(outputs)], True, None


def _as_output(out: Any) -> SymbolicOutput:
    if isinstance(out, SymbolicOutput):
        return out
    if isinstance(out, Variable):
        return SymbolicOutput(out)
    advice = "Write T.constant(value) for a value."
    if isinstance(out, list | tuple):
        advice = "Give all outputs in one list, without lists inside it."
    raise TypeError(
        f"Outputs must be theano Variable or Out instances. Received {out} of type {type(out)}. "
        + advice
    )


def _pairs(what: str, mapping: Pairs | None) -> list[tuple[Any, Any]]:
    """Return the pairs of a dict or of an iterable of pairs. what: its name in messages."""
    if mapping is None:
        return []
    if hasattr(mapping, "items"):
        return list(mapping.items())
    try:
        pairs: list[Any] = [tuple(pair) for pair in mapping]
    except TypeError:
        raise TypeError(
            f"{what} must be a dict or a list of pairs, not {mapping!r} of type {type(mapping)}: "
            f"write {what}=[(variable, expression)]."
        ) from None
    for pair in pairs:
        if len(pair) != 2:
            raise ValueError(
                f"{what} must hold pairs: expected 2 values, got {len(pair)} in {pair!r}. Write "
                f"{what}=[(variable, expression)]."
            )
    return pairs


def _given_pairs(pairs: list[tuple[Any, Any]], specs: Iterable[In]) -> list[tuple[Any, Any]]:
    """Return the givens; raise RuntimeError if one replaces an input."""
    names = {spec.variable for spec in specs}
    for old, _ in pairs:
        if old in names:
            raise RuntimeError(
                f"You are trying to replace variable '{old}' through the `givens` parameter, but "
                "this variable is an input to your function. Replacing inputs is currently "
                "forbidden because it has no effect. One way to modify an input `x` to a function "
                "evaluating f(x) is to define a new input `y` and use `theano.function([y], f(x), "
                "givens={x: g(y)})`. Another solution consists in using `theano.clone`, e.g. like "
                "this: `theano.function([x], theano.clone(f(x), replace={x: g(x)}))`."
            )
    return pairs


# --- updates ------------------------------------------------------------------------------------


def _explicit_updates(pairs: Iterable[tuple[Any, Any]]) -> Updates:
    """Return the updates that the user listed."""
    wanted: Updates = {}
    for var, expression in pairs:
        if not isinstance(var, SharedVariable):
            raise TypeError(
                f"update target must be a SharedVariable, not {var}: write shared(value), or "
                "In(variable, value=..., update=...) for an input that keeps its value."
            )
        if var.container in wanted:
            raise ValueError(
                "this shared variable already has an update expression: "
                f"{var} <= {wanted[var.container][1]}. Combine the two into one expression."
            )
        wanted[var.container] = var, update_expression(var, expression)
    return wanted


def update_expression(var: Variable, expression: Any) -> Variable:
    """Return an expression of the type of ``var``; a value becomes a constant.

    Raises TypeError if the types differ.
    """
    try:
        return var.type.filter_variable(expression, allow_convert=False)
    except TypeError as error:
        raise _update_type_error(var, expression) from error


def _update_type_error(var: Variable, expression: Any) -> TypeError:
    advice = "Update it with a value or expression of that type."
    wanted: Any = var.type
    got: Any = getattr(expression, "type", None)
    if getattr(got, "ndim", None) == getattr(wanted, "ndim", ()) and got.dtype != wanted.dtype:
        advice = f"Cast it: T.cast(update, {wanted.dtype!r})."
    return TypeError(
        "An update must have the same type as the original shared variable "
        f"(shared_var={var}, shared_var.type={var.type}, update_val={expression}, "
        f"update_val.type={getattr(expression, 'type', None)}). If the difference is related to "
        "the broadcast pattern, you can call the tensor.unbroadcast(var, axis_to_unbroadcast[, "
        f"...]) function to remove broadcastable dimensions. {advice}"
    )


def _default_update_filter(no_default_updates: Any) -> Callable[[SharedVariable], bool]:
    """Return a function that returns whether to apply the default update of a shared variable."""
    if isinstance(no_default_updates, bool):
        return lambda var: not no_default_updates
    if isinstance(no_default_updates, list | tuple | set | frozenset):
        excluded = set(no_default_updates)
        return lambda var: var not in excluded
    raise TypeError(
        "no_default_update should be either a boolean or a list of shared variables, not "
        f"{no_default_updates}"
    )


def _copy_shared_updates(
    graph: _FunctionCopy, updates: Updates, takes_default: Callable[[SharedVariable], bool]
) -> dict[Container, Variable]:
    """Return {container: copy of the expression of its next value}.

    Adds default updates of the shared variables in the graph to ``updates``, also of variables that
    only another update reads.
    """
    copied: dict[Container, Variable] = {}
    seen = 0
    while True:
        met = list(graph.shared.items())
        for container, (var, _) in met[seen:]:
            written = graph.written.get(var, var)
            if container in updates or written.default_update is None or not takes_default(written):
                continue
            updates[container] = var, update_expression(var, written.default_update)
        seen = len(met)
        new = [container for container in updates if container not in copied]
        if not new:
            return copied
        pairs = [updates[container] for container in new]
        copied.update(zip(new, graph.copy_updates(pairs), strict=True))
        for var, _ in pairs:
            graph.shared_input(var)


# --- checks -------------------------------------------------------------------------------------


def _check_missing(graph: Graph | WrittenGraph, read: Iterable[Variable]) -> None:
    """Raise MissingInputError if a variable in ``read`` has no value.

    Raises TypeError if it is an undefined gradient, which can have none.
    """
    known = set(graph.inputs)

    def is_missing(var: Variable) -> bool:
        return var.owner is None and var not in known and not isinstance(var, Constant)

    missing = [var for var in read if is_missing(var)]
    if not missing:
        return
    for var in missing:
        if is_null(var):
            raise TypeError(
                f"Computation graph contains a NaN. {var.type.why_null} Stop the gradient there "
                "with consider_constant or disconnected_grad, or define the gradient of the Op."
            )
    for node in traversal.io_toposort(graph.inputs, graph.outputs):
        for i, var in enumerate(node.inputs):
            if is_missing(var):
                raise missing_input(node, i, graph.outputs, created(var))
    var = next(out for out in graph.outputs if is_missing(out))
    raise MissingInputError(
        f"Undeclared input: {var} is an output or an update, but it is not an input, and nothing "
        "computes it. Add it to the inputs, or give it a value by givens." + created(var),
        variable=var,
    )


def created(var: Variable) -> str:
    """Return a paragraph of a message on where a variable was made, '' if that is unknown."""
    trace = format_trace(var.made_at)
    return f"\n\nBacktrace when that variable is created:\n\n{trace}" if trace else ""


def _check_unused(
    specs: Sequence[In], graph_inputs: Sequence[Variable], read: Iterable[Variable],
    written: list[Variable], on_unused_input: str | None,
) -> None:  # fmt: skip
    """Raise UnusedInputError, or warn, if an input is neither read nor updated.

    written: the user's variables of the outputs and updates. What only their Rop differentiates
    counts as read.
    """
    action = config.on_unused_input if on_unused_input is None else on_unused_input
    if action not in ("raise", "warn", "ignore"):
        raise ValueError(
            f"Invalid value for keyword on_unused_input of theano.function: '{action}'.\n"
            "Valid values are 'raise', 'warn', and 'ignore'."
        )
    if action == "ignore":
        return
    used = set(read)
    for i, (spec, var) in enumerate(zip(specs, graph_inputs, strict=True)):
        if var in used or spec.update is not None:
            continue
        if spec.variable in traversal.ancestors(differentiated(written)):
            continue
        message = (
            "theano.function was asked to create a function computing outputs given certain "
            f"inputs, but the provided input variable at index {i} is not part of the "
            f"computational graph needed to compute the outputs: {spec.variable}.\n"
        )
        made = created(spec.variable).rstrip("\n")
        if action == "raise":
            raise UnusedInputError(
                f"{message}To make this error into a warning, you can pass the parameter "
                "on_unused_input='warn' to theano.function. To disable it completely, use "
                f"on_unused_input='ignore'.{made}"
            )
        warn(
            f"{message}To make this warning into an error, you can pass the parameter "
            "on_unused_input='raise' to theano.function. To disable it completely, use "
            f"on_unused_input='ignore'.{made}"
        )


# --- copying ------------------------------------------------------------------------------------


class _Copy:
    """Copies expressions, each Apply once. Subclasses decide how to copy variables without owner.

    strict: convert the copied inputs of an Apply to the types that the Apply had, or raise
    TypeError; otherwise make a new Apply for other types.
    """

    def __init__(self, strict: bool = True) -> None:
        #: {variable: its copy}
        self.copies: dict[Variable, Variable] = {}
        self.strict = strict

    def leaf(self, var: Variable) -> Variable:
        """Return a copy of a variable without an owner, at its first occurrence."""
        raise NotImplementedError

    def variable(self, var: Variable) -> Variable:
        """Return the copy of a variable whose owner, if any, was copied."""
        copied = self.copies.get(var)
        if copied is None:
            copied = self.copies[var] = self.leaf(var)
        return copied

    def copy(self, expressions: Sequence[Variable]) -> list[Variable]:
        """Return copies of variables, with copies of the Applys that compute them."""
        copies = self.copies
        for node in traversal.io_toposort(copies, expressions):
            inputs = []
            for var in node.inputs:
                copied = copies.get(var)
                inputs.append(self.variable(var) if copied is None else copied)
            new = node.clone_with_new_inputs(inputs, self.strict)
            new._origins = node.origins
            new.trace = node.trace
            for old_out, new_out in zip(node.outputs, new.outputs, strict=True):
                copies.setdefault(old_out, new_out)
        return [self.variable(var) for var in expressions]

    def replace(self, old: Any, new: Any) -> None:
        """Replace ``old`` by ``new`` in later copies."""
        if not isinstance(old, Variable):
            raise TypeError(f"given keys must be Variable, not {old!r}: give the variable itself.")
        if not isinstance(new, Variable):
            new = shared(new)
        if old in self.copies:
            raise AssertionError(
                "When using 'givens' or 'replace' with several (old_v, new_v) replacement pairs, "
                "you can not have a new_v variable depend on an old_v one. For instance, givens = "
                f"{{a:b, b:(a+1)}} is not allowed. Here, the old_v {old} is used to compute other "
                f"new_v's, but it is scheduled to be replaced by {new}. Use the "
                f"replacement of {old} there."
            )
        (self.copies[old],) = self.copy([new])


class _FunctionCopy(_Copy):
    """Copies the graph of one function; the copy shares only the data of constants with the user's.

    Two shared variables with the same container are one input, as they have one storage. swap: see
    ``construct``. deferred: only find what is to be copied, for a WrittenGraph: the types of all
    variables stay, as nothing is replaced.
    """

    def __init__(
        self,
        inputs: Iterable[Variable],
        strict: bool,
        swap: Mapping[SharedVariable, SharedVariable],
        deferred: bool,
    ) -> None:
        super().__init__(strict)
        self.swap = swap
        self.deferred = deferred
        #: the Applys to copy, if deferred
        self._order: list[Apply] = []
        #: the copied variables without an owner, and inputs, that the copied expressions read
        self.read: dict[Variable, None] = {}
        #: {shared variable that is read: the one that the program wrote in its place}
        self.written = {new: old for old, new in swap.items()}
        for var in inputs:
            self.copies[var] = var.clone()
        #: {container of a shared variable: (the variable, its copy)}, in the order of occurrence
        self.shared: dict[Container, tuple[SharedVariable, Variable]] = {}

    def leaf(self, var: Variable) -> Variable:
        if isinstance(var, SharedVariable):
            return self.shared_input(self.swap.get(var, var))
        if self.deferred and isinstance(var, Constant):
            return var
        return var.clone()

    def copy(self, expressions: Sequence[Variable]) -> list[Variable]:
        if not self.deferred:
            return super().copy(expressions)
        copies, read = self.copies, self.read
        for node in traversal.io_toposort(copies, expressions):
            for var in node.inputs:
                copied = copies.get(var)
                if copied is None:
                    copied = self.variable(var)
                if copied is not var:
                    read[copied] = None
            for out in node.outputs:
                copies.setdefault(out, out)
            self._order.append(node)
        found = [self.variable(var) for var in expressions]
        for var, copied in zip(expressions, found, strict=True):
            if copied is not var:
                read[copied] = None
        return found

    def closed(self, inputs: list[Variable], outputs: list[Variable]) -> Graph | WrittenGraph:
        """Return the graph with these inputs and outputs, which were copied."""
        if self.deferred:
            return WrittenGraph(inputs, outputs, self._order, self.copies)
        self.read = dict.fromkeys(traversal.inputs(outputs, blockers=inputs))
        return Graph(inputs, outputs)

    def shared_input(self, var: SharedVariable) -> Variable:
        """Return the input of the graph for a shared variable that is read or updated."""
        if var.container not in self.shared:
            self.shared[var.container] = var, var.clone()
        return self.shared[var.container][1]

    def copy_updates(self, pairs: Sequence[tuple[Variable, Variable]]) -> list[Variable]:
        """Return copies of the expressions in (variable, expression) pairs."""
        copies = self.copy([expression for _, expression in pairs])
        for (var, expression), new in zip(pairs, copies, strict=True):
            if new.type != var.type:
                # possible only with rebuild_strict=False: givens may change types
                raise _update_type_error(var, expression)
        return copies


class _LegacyCopy(_Copy):
    """Copies expressions for ``rebuild_collect_shared``, and collects shared variables."""

    def __init__(self, strict: bool, copy_leaves: bool) -> None:
        super().__init__(strict)
        #: whether to copy variables without an owner
        self.copy_leaves = copy_leaves
        self.shared: list[SharedVariable] = []

    def leaf(self, var: Variable) -> Variable:
        if isinstance(var, SharedVariable):
            self.shared.append(var)
        if self.copy_leaves or (isinstance(var, Constant) and var.fgraph is not None):
            return var.clone()
        return var


def rebuild_collect_shared(
    outputs: Any,
    inputs: Iterable[Variable] | None = None,
    replace: Pairs | None = None,
    updates: Pairs | None = None,
    rebuild_strict: bool = True,
    copy_inputs_over: bool = True,
    no_default_updates: Any = False,
) -> tuple[list[Variable], Any, list[Any]]:
    """Return copies of ``outputs``, and the shared variables and updates that they depend on.

    outputs: a variable, an Out, or a list of these. replace: as givens of ``opwise.function``.
    copy_inputs_over: do not copy variables without an owner.

    Returns (inputs, outputs, [{original: copy}, {shared variable: copy of its update}, list of
    (shared variable, its update), list of shared variables]).
    """
    copier = _LegacyCopy(rebuild_strict, not copy_inputs_over)
    for old, new in _pairs("replace", replace):
        copier.replace(old, new)
    input_copies = [
        copier.copies.setdefault(var, var if copy_inputs_over else var.clone())
        for var in inputs or ()
    ]
    for var in input_copies:
        _refuse_shared(var)
    wanted: dict[SharedVariable, Variable] = dict(
        _explicit_updates(_pairs("updates", updates)).values()
    )
    single = not isinstance(outputs, list | tuple)
    outs = [_as_output(out) for out in ([outputs] if single else outputs)]
    copies = copier.copy([out.variable for out in outs])
    copied_updates = _copy_legacy_updates(
        copier, wanted, _default_update_filter(no_default_updates)
    )
    results = [
        SymbolicOutput(new, out.borrow, out.place, out.becomes)
        if isinstance(given, SymbolicOutput)
        else new
        for given, out, new in zip([outputs] if single else outputs, outs, copies, strict=True)
    ]
    collected: list[Any] = [copier.copies, copied_updates, list(wanted.items()), copier.shared]
    return input_copies, results[0] if single else results, collected


def _copy_legacy_updates(
    copier: _LegacyCopy, wanted: MutableMapping[SharedVariable, Variable],
    takes_default: Callable[[SharedVariable], bool],
) -> dict[SharedVariable, Variable]:  # fmt: skip
    """Return {shared variable: copy of its update}; adds default updates to ``wanted``."""
    copied: dict[SharedVariable, Variable] = {}
    while True:
        for var in copier.shared:
            if var not in wanted and var.default_update is not None and takes_default(var):
                wanted[var] = update_expression(var, var.default_update)
        new = [var for var in wanted if var not in copied]
        if not new:
            return copied
        copied.update(zip(new, copier.copy([wanted[var] for var in new]), strict=True))
        copier.shared += [var for var in new if var not in copier.shared]


def clone(
    output: Any,
    replace: Pairs | None = None,
    strict: bool = True,
    share_inputs: bool = True,
    copy_inputs: bool | None = None,
) -> Any:
    """Return a copy of an expression, or of a list of them, with some variables replaced.

    replace: dict or list of pairs from a variable to its replacement, which is not copied and may
    depend on replaced variables. strict: convert a replacement to the type of the variable, or
    raise TypeError; otherwise the Applys that read it are made for the new type. share_inputs:
    False copies variables without an owner too, except constants and shared variables.
    copy_inputs: the former name of share_inputs.
    """
    if copy_inputs is not None:
        warnings.warn(
            "In `clone()` function, the argument `copy_inputs` has been deprecated and renamed "
            "into `share_inputs`",
            stacklevel=2,
        )
        share_inputs = copy_inputs
    if replace is not None and not isinstance(replace, dict | list | tuple):
        raise ValueError(
            "replace is neither a dictionary, list, tuple or None ! The value provided is "
            f"{replace}, of type {type(replace)}"
        )
    copier = _Clone(strict, not share_inputs)
    for old, new in _pairs("replace", replace):
        if not isinstance(old, Variable):
            raise TypeError(f"given keys must be Variable, not {old!r}")
        copier.copies[old] = new if isinstance(new, Variable) else shared(new)
    if isinstance(output, list | tuple):
        return copier.copy(output)
    return copier.copy([output])[0]


class _Clone(_LegacyCopy):
    """Copies expressions for ``clone``, which does not copy shared variables."""

    def leaf(self, var: Variable) -> Variable:
        return var if isinstance(var, SharedVariable) else super().leaf(var)
