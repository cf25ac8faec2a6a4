"""Composite: several scalar operations as one, the op of a fused elementwise Apply.

Its ``Program`` is also its identity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import Any

import numpy as np

from opwise.graph import traversal
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.hashing import HashedOnce
from opwise.graph.variable import Constant, Var, Variable
from opwise.scalar.op import OPS, SCALAR_ALGEBRA, Computation, ScalarOp
from opwise.scalar.program import Instruction, Literal, Program
from opwise.scalar.spec import Array
from opwise.scalar.types import as_scalar, constant, get_scalar_type

_MAX_TEXT = 4000


def append_inlined(
    instructions: list[Instruction], nin: int, op: ScalarOp, args: Sequence[int], dtype: str
) -> list[int]:
    """Append an operation to a program, or each instruction of a Composite; return its outputs.

    nin: how many inputs the program has. args: the slots that the operation reads. dtype: of its
    output; a Composite knows its own. Returns the slots of the outputs.
    """
    if not isinstance(op, Composite):
        instructions.append(Instruction(op, tuple(args), dtype))
        return [nin + len(instructions) - 1]
    offset = nin + len(instructions) - op.nin

    def moved(slot: int) -> int:
        return args[slot] if slot < op.nin else slot + offset

    for one in op.instructions:
        instructions.append(one._replace(args=tuple(map(moved, one.args))))
    return [moved(slot) for slot in op.outs]


class Composite(HashedOnce, ScalarOp):
    """The scalar function from ``inputs`` to ``outputs``, two lists of scalar variables."""

    profile_kind = "fused"

    def __init__(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        slots = {var: i for i, var in enumerate(inputs)}
        instructions: list[Instruction] = []

        def slot(var: Var) -> int:
            if var not in slots and isinstance(var, Constant):
                slots[var] = len(inputs) + len(instructions)
                instructions.append(Instruction(Literal(var.data), (), var.type.dtype))
            return slots[var]

        for node in traversal.io_toposort(inputs, outputs):
            args = tuple(slot(v) for v in node.inputs)
            outs = append_inlined(
                instructions, len(inputs), node.op, args, node.outputs[0].type.dtype
            )
            slots.update(zip(node.outputs, outs, strict=True))
        in_dtypes = tuple(v.type.dtype for v in inputs)
        self._set(Program(in_dtypes, tuple(instructions), tuple(map(slot, outputs))))

    @classmethod
    def from_program(
        cls, in_dtypes: Iterable[str], instructions: Iterable[Instruction], outs: Iterable[int]
    ) -> Composite:
        """Return the Composite of a program on inputs of ``in_dtypes``; outputs: slots ``outs``."""
        self = cls.__new__(cls)
        self._set(Program(tuple(in_dtypes), tuple(instructions), tuple(outs)))
        return self

    def _set(self, program: Program) -> None:
        ScalarOp.__init__(self)
        self.program = program
        self.nin = len(program.in_dtypes)
        self.nout = len(program.outs)
        self._text: str | None = None
        self._computation: Computation | None = None
        self._keep_hash()

    def _hashed(self) -> Any:
        return self.program

    @property
    def in_dtypes(self) -> tuple[str, ...]:
        return self.program.in_dtypes

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        return self.program.instructions

    @property
    def outs(self) -> tuple[int, ...]:
        return self.program.outs

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_text": None, "_computation": None}

    def make_node(self, *inputs: Var) -> Apply:
        """Apply the Composite, or the same operations on the dtypes of ``inputs``."""
        operands = [as_scalar(x) for x in inputs]
        self.check_count(len(operands))
        given = tuple(x.type.dtype for x in operands)
        op = self if given == self.in_dtypes else self._on(given)
        return ScalarOp.make_node(op, *operands)

    def _on(self, in_dtypes: tuple[str, ...]) -> Composite:
        """Return the Composite of the same operations on inputs of other dtypes."""
        inputs = [get_scalar_type(d).make_variable() for d in in_dtypes]
        return Composite(inputs, self.apply_to(inputs))

    def output_dtypes(self, in_dtypes: Sequence[str]) -> list[str]:
        if tuple(in_dtypes) != self.in_dtypes:
            raise TypeError(f"{self} takes inputs of {self.in_dtypes}, not {tuple(in_dtypes)}")
        return list(self.program.out_dtypes)

    def element_flops(self, n_inputs: int) -> int | None:
        total = 0
        for one in self.instructions:
            count = one.op.element_flops(len(one.args))
            if count is None:
                return None
            total += count
        return total

    def has_cost(self) -> bool:
        return all(one.op.has_cost() for one in self.instructions)

    def element_cost(self, n_inputs: int) -> float:
        return sum(one.op.element_cost(len(one.args)) for one in self.instructions)

    def unread(self) -> Set[int]:
        return self.program.unread

    def impl(self, *inputs: float) -> Any:
        values = [np.asarray(x, dtype=d) for x, d in zip(inputs, self.in_dtypes, strict=True)]
        results = [r[()] for r in self.on_arrays(values, self.output_dtypes(self.in_dtypes))]
        return results[0] if self.nout == 1 else results

    def computation(self, in_dtypes: Sequence[str], out_dtypes: Sequence[str]) -> Computation:
        if self._computation is None:
            self._computation = self._computing()
        return self._computation

    def _computing(self) -> Computation:
        last_use = {a: k for k, one in enumerate(self.instructions) for a in one.args}
        dying: list[list[int]] = [[] for _ in self.instructions]
        for a, k in last_use.items():
            if a not in self.outs:
                dying[k].append(a)
        plan = [
            (one.op.computation(self.program.arguments(one), [one.dtype]), one.args, d)
            for one, d in zip(self.instructions, dying, strict=True)
        ]

        def compute(arrays: Sequence[Array]) -> list[np.ndarray]:
            slots = list(arrays)
            for run, args, dies in plan:
                slots.append(run([slots[a] for a in args])[0])
                for a in dies:
                    slots[a] = None
            return [np.asarray(slots[s]) for s in self.outs]

        return compute

    @property
    def inputs(self) -> list[Var]:
        """New scalar variables for the inputs, see ``graph``."""
        return self.graph()[0]

    @property
    def outputs(self) -> list[Var]:
        return self.graph()[1]

    @property
    def fgraph(self) -> FunctionGraph:
        """A new FunctionGraph of the program."""
        inputs, outputs = self.graph()
        return FunctionGraph(inputs, outputs, clone=False)

    def graph(self) -> tuple[list[Var], list[Var]]:
        """Return the program as a graph: (input variables, output variables)."""
        inputs = [get_scalar_type(d).make_variable() for d in self.in_dtypes]
        return inputs, self.apply_to(inputs)

    def apply_to(self, inputs: Sequence[Var]) -> list[Var]:
        """Return the scalar variables that the program computes from ``inputs``."""
        slots = self._slots(inputs)
        return [slots[s] for s in self.outs]

    def _slots(self, inputs: Sequence[Var]) -> list[Var]:
        """Return the scalar variables of all slots."""
        slots = list(inputs)
        for one in self.instructions:
            if isinstance(one.op, Literal):
                slots.append(constant(one.op.value))
            else:
                slots.append(one.op(*(slots[a] for a in one.args)))
        return slots

    def L_op(
        self, inputs: Sequence[Var], outputs: Sequence[Var], output_gradients: Sequence[Var]
    ) -> Sequence[Var]:
        """Return the gradients, by reverse accumulation; None where undefined."""
        slots = self._slots(inputs)
        grads: list[Var] = [None] * len(slots)
        undefined: set[int] = set()

        def accumulate(slot: int, g: Var) -> None:
            if g is None:
                undefined.add(slot)
            elif not isinstance(g, int):
                grads[slot] = g if grads[slot] is None else OPS["add"](grads[slot], g)

        for s, g in zip(self.outs, output_gradients, strict=True):
            accumulate(s, g)
        for k in reversed(range(len(self.instructions))):
            one, g = self.instructions[k], grads[self.nin + k]
            if self.nin + k in undefined:
                undefined.update(one.args)
                continue
            if g is None or isinstance(one.op, Literal):
                continue
            args = [slots[a] for a in one.args]
            if one.op.row is not None:
                parts: Sequence[Var] = SCALAR_ALGEBRA.gradients(
                    one.op.row, args, slots[self.nin + k], g
                )
            else:
                parts = one.op.L_op(args, [slots[self.nin + k]], [g])
            for a, part in zip(one.args, parts, strict=True):
                accumulate(a, part)
        return [
            None if i in undefined else constant(0.0) if g is None else g
            for i, g in enumerate(grads[: self.nin])
        ]

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        return self.L_op(inputs, self(*inputs, return_list=True), output_gradients)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            type(self) is type(other)
            and self._hash == other._hash
            and self.program == other.program
        )

    __hash__ = HashedOnce.__hash__

    def __str__(self) -> str:
        if self._text is None:
            self._text = f"Composite{{{self._program_text()}}}"
        return self._text

    def _program_text(self) -> str:
        texts = [f"i{i}" for i in range(self.nin)]
        read = Counter(a for one in self.instructions for a in one.args) + Counter(self.outs)
        named: list[str] = []
        for slot, one in enumerate(self.instructions, self.nin):
            text = text_of(one.op, [texts[a] for a in one.args])
            # outputs share most of their instructions: a slot that is read twice gets a name, since
            # the text would double each time
            if self.nout > 1 and read[slot] > 1 and one.args:
                named.append(f"t{len(named)} = {text}; ")
                text = f"t{len(named) - 1}"
            texts.append(text if len(text) < _MAX_TEXT else f"s{slot - self.nin}")
        return "".join(named) + ", ".join(texts[slot] for slot in self.outs)


def text_of(op: ScalarOp, args: Sequence[str]) -> str:
    """Return an operation on operands as text."""
    row = op.row
    if isinstance(op, Literal):
        return str(op)
    if row is not None and row.infix and len(args) > 1:
        return f"({f' {row.infix} '.join(args)})"
    if row is not None and row.name == "neg":
        return f"(-{args[0]})"
    return f"{op}({', '.join(args)})"
