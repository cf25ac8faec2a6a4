"""Apply: one application of an Op to variables, a node of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

from opwise.errors import MethodNotDefined
from opwise.graph import flat, provenance
from opwise.graph.variable import Tagged, Variable

if TYPE_CHECKING:
    from opwise.graph.fgraph import FunctionGraph
    from opwise.graph.op import Op


#: what ``Apply.run_params`` returns for an Op without params
NoParams = object()


class Apply(Tagged):
    """The application of ``op`` to ``inputs``, which makes ``outputs``."""

    #: an Op; for mypy any object, because each class of Ops has attributes of its own
    op: Any
    inputs: list[Variable]
    outputs: list[Variable]
    #: the FunctionGraph that it belongs to, if any
    fgraph: FunctionGraph | None = None
    #: see ``origins``; None for an Apply that the user made
    _origins: tuple[Apply, ...] | None = None
    #: where the user's program made it; None for one that a rewrite made
    trace: provenance.Trace | None = None
    #: the scope in which it was made, and of what it is a gradient
    context: provenance.Context | None = None

    def __init__(self, op: Op, inputs: Sequence[Any], outputs: Sequence[Any]):
        if not isinstance(inputs, list | tuple):
            raise _no_list("inputs", inputs, op)
        if not isinstance(outputs, list | tuple):
            raise _no_list("output", outputs, op)
        # Set all attributes here, as Variable does.
        self.op = op
        self.inputs = list(inputs)
        self.outputs = []
        self.fgraph = self._origins = self.trace = self._tag = self.context = None
        for i, var in enumerate(self.inputs):
            if not isinstance(var, Variable):
                raise _wrong_input(op, i, var)
        trace = None
        for i, output in enumerate(outputs):
            if not isinstance(output, Variable):
                raise _wrong_output(op, i, output)
            if output.owner is None:
                output.owner = self
                output.index = i
                # the same line made it just now: its trace is that of the Apply
                trace = trace or output._trace
                output._trace = None
            elif output.owner is not self or output.index != i:
                raise _foreign_output(output)
            self.outputs.append(output)
        if provenance.recording():
            self.trace = trace or provenance.capture()
            self.context = provenance.context.get()

    @property
    def made_at(self) -> provenance.Trace | None:
        """The frames of the user's program that made this Apply: ``trace``."""
        return self.trace

    @property
    def origins(self) -> tuple[Apply, ...]:
        """The user's Applys that this one computes, wholly or in part.

        An Apply of the user is its own origin; one that a rewrite made has the origins of the
        Applys that the rewrite removed.
        """
        return self._origins if self._origins is not None else (self,)

    @property
    def nin(self) -> int:
        """Number of inputs."""
        return len(self.inputs)

    @property
    def nout(self) -> int:
        """Number of outputs."""
        return len(self.outputs)

    @property
    def out(self) -> Variable:
        """The default output."""
        return self.default_output()

    @property
    def params_type(self) -> Any:
        """The type of the Op's params; None if it has none."""
        return getattr(self.op, "params_type", None)

    def run_params(self) -> Any:
        """Return the Op's params for this Apply, or NoParams."""
        try:
            return self.op.get_params(self)
        except MethodNotDefined:
            return NoParams

    def default_output(self) -> Variable:
        """Return the output that ``op(...)`` returns: the only one, or ``op.default_output``."""
        index: int | None = getattr(self.op, "default_output", None)
        if index is None:
            if len(self.outputs) == 1:
                return self.outputs[0]
            raise AttributeError(
                f"{self.op} has {len(self.outputs)} outputs and no default_output: "
                "choose one of node.outputs"
            )
        if not isinstance(index, int) or not 0 <= index < len(self.outputs):
            raise AttributeError(
                f"{self.op}.default_output should be an index of its outputs: None or 0 to "
                f"{len(self.outputs) - 1}, not {index}"
            )
        return self.outputs[index]

    def clone(self) -> Self:
        """Return a copy with the same inputs and new outputs."""
        new = object.__new__(type(self))
        new.op = self.op
        new.inputs = list(self.inputs)
        new.outputs = [out.clone() for out in self.outputs]
        for i, out in enumerate(new.outputs):
            out.owner = new
            out.index = i
        new.fgraph = None
        new._origins = self._origins
        new.trace = self.trace
        new.context = self.context
        new._tag = None if self._tag is None else copy(self._tag)
        return new

    def clone_with_new_inputs(self, inputs: Sequence[Variable], strict: bool = True) -> Apply:
        """Return a copy that reads ``inputs``.

        strict: convert the new inputs to the types of the old ones, or raise TypeError; otherwise
        the Op makes a new Apply if a type differs.
        """
        remake = False
        new_inputs = list(inputs)
        for i, (old, given) in enumerate(zip(self.inputs, new_inputs, strict=True)):
            if old.type is given.type or old.type == given.type:
                continue
            if strict:
                new_inputs[i] = old.type.filter_variable(given)
            else:
                remake = True
        if remake:
            made: Apply = self.op.make_node(*new_inputs)
            return made
        new = self.clone()
        new.inputs = new_inputs
        return new

    def get_parents(self) -> list[Variable]:
        return list(self.inputs)

    def __str__(self) -> str:
        return f"{self.op}({', '.join(map(_operand_text, self.inputs))})"

    def __repr__(self) -> str:
        return str(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return flat.copied(self, self, memo)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return flat.reduced(self, self)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("fgraph", None)
        if state.get("trace"):
            state["trace"] = provenance.resolve(state["trace"])
        if state.get("context"):
            state["context"] = state["context"].resolved()
        return state


def _no_list(name: str, value: object, op: Op) -> TypeError:
    return TypeError(
        f"The {name} of an Apply must be a list or tuple, not {value!r} (make_node of {op})"
    )


def _wrong_input(op: Op, i: int, value: object) -> TypeError:
    return TypeError(
        f"The 'inputs' argument to Apply must contain Variable instances, not {value!r} (input {i} "
        f"of {op}). Convert it in make_node, for instance with as_tensor_variable."
    )


def _wrong_output(op: Op, i: int, value: object) -> TypeError:
    return TypeError(
        f"The 'outputs' argument to Apply must contain Variable instances with no owner, not "
        f"{value!r} (output {i} of {op}). Call a type to make one: x.type()."
    )


def _foreign_output(output: Variable) -> ValueError:
    return ValueError(
        f"All output variables passed to Apply must belong to it; {output} is output "
        f"{output.index} of {output.owner}. Make new ones in make_node: x.type()."
    )


def _operand_text(var: Variable) -> str:
    """Return the text of an operand of an Apply; the transpose of a named variable is ``x.T``."""
    owner = var.owner
    if (
        var.name is None
        and owner is not None
        and getattr(owner.op, "new_order", None) == (1, 0)
        and owner.inputs[0].name
    ):
        return f"{owner.inputs[0].name}.T"
    return str(var)
