"""Apply: one application of an Op to variables, a node of the graph."""

from __future__ import annotations

from copy import copy

from opwise.graph import flat, provenance
from opwise.graph.variable import Tagged, Variable


class Apply(Tagged):
    """The application of ``op`` to ``inputs``, which makes ``outputs``.

    ``trace`` holds where the user's program made it. ``origins`` are the user's Applys that it came
    from: itself for one that the user made, those that a rewrite removed for one that it made.
    ``context``: the scope that it was made in, and what it is a gradient of.
    """

    fgraph = None
    _origins = None
    trace = None
    context = None

    def __init__(self, op, inputs, outputs):
        if not isinstance(inputs, list | tuple):
            raise TypeError(
                f"The inputs of an Apply must be a list or tuple, not {inputs!r} (make_node of "
                f"{op})"
            )
        if not isinstance(outputs, list | tuple):
            raise TypeError(
                f"The output of an Apply must be a list or tuple, not {outputs!r} (make_node of "
                f"{op})"
            )
        # all attributes from the start, as in Variable
        self.op = op
        self.inputs = list(inputs)
        self.outputs = []
        self.fgraph = self._origins = self.trace = self._tag = self.context = None
        for i, var in enumerate(self.inputs):
            if not isinstance(var, Variable):
                raise TypeError(
                    f"The 'inputs' argument to Apply must contain Variable instances, not {var!r} "
                    f"(input {i} of {op}). Let make_node convert what it is given, for instance by "
                    "as_tensor_variable."
                )
        trace = None
        for i, output in enumerate(outputs):
            if not isinstance(output, Variable):
                raise TypeError(
                    f"The 'outputs' argument to Apply must contain Variable instances with no "
                    f"owner, not {output!r} (output {i} of {op}). A type makes one when it is "
                    "called: x.type()."
                )
            if output.owner is None:
                output.owner = self
                output.index = i
                # made a moment ago by the same line: its trace is that of the Apply
                trace = trace or output._trace
                output._trace = None
            elif output.owner is not self or output.index != i:
                raise ValueError(
                    f"All output variables passed to Apply must belong to it; {output} is output "
                    f"{output.index} of {output.owner}. Let make_node make new ones: x.type()."
                )
            self.outputs.append(output)
        if provenance.recording():
            self.trace = trace or provenance.capture()
            self.context = provenance.context.get()

    @property
    def made_at(self):
        """The frames of the user's program that made this Apply, by the name variables use."""
        return self.trace

    @property
    def origins(self):
        """The user's Applys that this one computes (part of), in the order in which they ran."""
        return self._origins if self._origins is not None else (self,)

    @property
    def nin(self):
        return len(self.inputs)

    @property
    def nout(self):
        return len(self.outputs)

    @property
    def out(self):
        return self.default_output()

    def default_output(self):
        """Return the output that ``op(...)`` stands for: the only one, or ``op.default_output``."""
        index = getattr(self.op, "default_output", None)
        if index is None:
            if len(self.outputs) == 1:
                return self.outputs[0]
            raise ValueError(
                f"{self.op} has {len(self.outputs)} outputs and no default_output: "
                "say which one is meant."
            )
        if not 0 <= index < len(self.outputs):
            raise ValueError(f"{self.op}.default_output should be an index of its outputs")
        return self.outputs[index]

    def clone(self):
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

    def clone_with_new_inputs(self, inputs, strict=True):
        """Return a copy that reads ``inputs``.

        strict: the new inputs must have the types of the old ones; otherwise the Op makes a new
        Apply where they differ.
        """
        remake = False
        new_inputs = list(inputs)
        for i, (old, new) in enumerate(zip(self.inputs, new_inputs, strict=True)):
            if old.type is new.type or old.type == new.type:
                continue
            if strict:
                new_inputs[i] = old.type.filter_variable(new)
            else:
                remake = True
        if remake:
            return self.op.make_node(*new_inputs)
        new = self.clone()
        new.inputs = new_inputs
        return new

    def get_parents(self):
        return list(self.inputs)

    def __str__(self):
        return f"{self.op}({', '.join(map(_operand_text, self.inputs))})"

    def __repr__(self):
        return str(self)

    def __deepcopy__(self, memo):
        return flat.copied(self, self, memo)

    def __reduce_ex__(self, protocol):
        return flat.reduced(self, self)

    def __getstate__(self):
        state = self.__dict__.copy()
        state.pop("fgraph", None)
        if state.get("trace"):
            state["trace"] = provenance.resolve(state["trace"])
        if state.get("context"):
            state["context"] = state["context"].resolved()
        return state


def _operand_text(var):
    """Text of an operand inside an Apply's: the transpose of a named variable reads ``x.T``."""
    owner = var.owner
    if (
        var.name is None
        and owner is not None
        and getattr(owner.op, "new_order", None) == (1, 0)
        and owner.inputs[0].name
    ):
        return f"{owner.inputs[0].name}.T"
    return str(var)
