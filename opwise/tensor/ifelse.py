"""IfElse: returns the values of one of two branches; the other one is not computed."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from opwise.config import config
from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type, is_disconnected, is_null
from opwise.graph.op import Op
from opwise.graph.variable import Var, Variable
from opwise.tensor.elemwise import cast, zeros_like
from opwise.tensor.type import TensorType
from opwise.tensor.variable import TensorLike, as_tensor_variable

#: theano.tensor does not have them; theano.ifelse does
__all__: list[str] = []

# variables of any type, those with operators among them


class IfElse(Op):
    """Returns the values of the first branch if the condition is true, else those of the second.

    ``IfElse(n_outs)(condition, *then_branch, *else_branch)``: a scalar, then ``n_outs`` variables
    of each branch, which have the same types. A VM computes only the branch that is taken.
    as_view: the outputs are views of the first branch if it is taken; otherwise they are copies, or
    the values themselves if nothing else reads these. gpu: variables are not converted to tensors.
    name: printed.
    """

    accepts_none = True  # values of the branch that is not taken

    def __init__(
        self, n_outs: int, as_view: bool = False, gpu: bool = False, name: str | None = None
    ) -> None:
        self.n_outs = n_outs
        self.as_view = as_view
        self.gpu = gpu
        self.name = name
        if as_view:
            self.view_map = {i: [1 + i] for i in range(n_outs)}

    @property
    def branches(self) -> tuple[range, range]:  # type: ignore[override]
        """The indices of the inputs of each branch."""
        middle = 1 + self.n_outs
        return range(1, middle), range(middle, middle + self.n_outs)

    def values(self, inputs: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the inputs of each branch."""
        then, other = self.branches
        return inputs[then.start : then.stop], inputs[other.start : other.stop]

    # --- building graphs --------------------------------------------------------------------------

    def make_node(self, condition: TensorLike, *inputs: Any) -> Apply:
        if len(inputs) != 2 * self.n_outs:
            raise AssertionError(
                f"Wrong number of arguments to make_node: expected {2 * self.n_outs}, got "
                f"{len(inputs)}: give {self.n_outs} variables for each branch"
            )
        condition = as_tensor_variable(condition)
        given = list(inputs) if self.gpu else [_as_variable(x) for x in inputs]
        for one, other in zip(given[: self.n_outs], given[self.n_outs :], strict=True):
            if one.type != other.type:
                raise TypeError(
                    "IfElse requires same types for true and false return values", one, other,
                    one.type, other.type,
                )  # fmt: skip
        if condition.type.ndim > 0:
            raise TypeError(
                "Condition given to the op has to be a scalar with 0 standing for False, anything "
                f"else for True, but {condition} is of {condition.type}: reduce it with T.any or "
                "T.all, or choose elementwise with T.switch"
            )
        outputs = [var.type.make_variable() for var in given[: self.n_outs]]
        return Apply(self, [condition, *given], outputs)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        differing: list[tuple[int, int]] = []
        then, other = self.values(shapes)
        for k, (one, two) in enumerate(zip(then, other, strict=True)):
            if one is None or two is None:
                found.append(None)
                continue
            found.append(list(one))
            differing += [(k, d) for d, n in enumerate(one) if n is not two[d]]
        if differing:
            lengths = [cast(shape[k][d], "int64") for shape in (then, other) for k, d in differing]
            name = "shape" if self.name is None else f"shape_{self.name}"
            chosen = IfElse(len(differing), name=name)(node.inputs[0], *lengths, return_list=True)
            for (k, d), n in zip(differing, chosen, strict=True):
                found[k][d] = n
        return [shape if shape is None else tuple(shape) for shape in found]

    def do_constant_folding(self, node: Apply) -> bool:
        return False  # a rule takes the branch

    # --- running ----------------------------------------------------------------------------------

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        condition, *values = inputs
        is_view = self.as_view and bool(condition)
        taken = values[: self.n_outs] if condition else values[self.n_outs :]
        for storage, value in zip(output_storage, taken, strict=True):
            storage[0] = value if is_view else copied(value)

    # --- derivatives ------------------------------------------------------------------------------

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        own = [[i == k for k in range(self.n_outs)] for i in range(self.n_outs)]
        return [[True] * self.n_outs, *own, *own]

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> list[Var]:
        condition = inputs[0]
        # an infinitesimal change of the condition does not change the branch
        terms = [zeros_like(condition, dtype=config.floatX)]
        for branch, values in enumerate(self.values(inputs)):
            known = [
                k for k, g in enumerate(output_gradients) if not (is_disconnected(g) or is_null(g))
            ]
            gradients = [output_gradients[k] for k in known]
            zeros = [zeros_like(values[k], dtype=g.type.dtype)
                     for k, g in zip(known, gradients, strict=True)]  # fmt: skip
            found: list[Var] = list(output_gradients)  # undefined ones, and disconnected ones
            if known:
                name = None if self.name is None else f"{self.name}_grad_{'tf'[branch]}"
                op = IfElse(len(known), as_view=self.as_view, gpu=self.gpu, name=name)
                pair = (zeros, gradients) if branch else (gradients, zeros)
                chosen = op(condition, *pair[0], *pair[1], return_list=True)
                for k, term in zip(known, chosen, strict=True):
                    found[k] = term
            terms += [disconnected_type.make_variable() if is_disconnected(g) else g for g in found]
        return terms

    def R_op(self, inputs: Sequence[Var], eval_points: Sequence[Var]) -> list[Var]:
        found: list[Var] = [None] * self.n_outs
        pairs = zip(*self.values(inputs), *self.values(eval_points), strict=True)
        moving: dict[int, tuple[Var, Var]] = {}
        for k, (one, two, first, second) in enumerate(pairs):
            if first is not None or second is not None:
                moving[k] = (
                    zeros_like(one) if first is None else first,
                    zeros_like(two) if second is None else second,
                )
        if moving:
            then, other = zip(*moving.values(), strict=True)
            chosen = IfElse(len(moving), name=self.name)(inputs[0], *then, *other, return_list=True)
            for k, term in zip(moving, chosen, strict=True):
                found[k] = term
        return found

    # --- identity ---------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._settings() == other._settings()

    def __hash__(self) -> int:
        return hash((type(self), self._settings()))

    def _settings(self) -> tuple[Any, ...]:
        return self.n_outs, self.as_view, self.gpu

    def __str__(self) -> str:
        parts = [] if self.name is None else [self.name]
        parts += ["inplace"] if self.as_view else []
        parts += ["gpu"] if self.gpu else []
        return f"if{{{','.join(parts)}}}"


def copied(value: Any) -> Any:
    """Return a copy of a value of any type."""
    return value.copy() if isinstance(value, np.ndarray) else deepcopy(value)


def _as_variable(x: TensorLike) -> Var:
    if hasattr(x, "_as_TensorVariable"):
        return x._as_TensorVariable()
    return x if isinstance(x, Variable) else as_tensor_variable(x)


def ifelse(condition: Any, then_branch: Any, else_branch: Any, name: str | None = None) -> Var:
    """Return the values of ``then_branch`` if ``condition`` is true, else those of ``else_branch``.

    Only the branch that is taken is computed. Use ``T.switch`` to choose for each element of a
    tensor; it computes both branches.

    condition: a scalar; 0 stands for false. then_branch, else_branch: a variable of any type, or a
    list or tuple of variables; those of both branches have the same types in pairs. name: of the
    Apply, which is printed. Returns a list or a tuple if ``then_branch`` is one.

    Raises TypeError if the types of a pair differ or the condition is no scalar; ValueError if the
    branches are not equally long.
    """
    then = list(then_branch) if isinstance(then_branch, list | tuple) else [then_branch]
    other = list(else_branch) if isinstance(else_branch, list | tuple) else [else_branch]
    # as in Theano, a pair of different types is reported before different lengths
    pairs = [_same_types(*pair) for pair in zip(then, other, strict=False)]
    if len(then) != len(other):
        raise ValueError(
            "The number of values on the `then` branch should have the same number of variables as "
            f"the `else` branch : (variables on `then` {len(then)}, variables on `else` "
            f"{len(other)})"
        )
    ones, others = [one for one, _ in pairs], [two for _, two in pairs]
    chosen = IfElse(len(pairs), name=name)(condition, *ones, *others, return_list=True)
    if isinstance(then_branch, tuple):
        return tuple(chosen)
    return chosen if isinstance(then_branch, list) else chosen[0]


def _same_types(one: Any, other: Any) -> tuple[Var, Var]:
    """Return two variables of one type; a tensor may convert what is no tensor."""
    one, other = (x if isinstance(x, Variable) else as_tensor_variable(x) for x in (one, other))
    if one.type != other.type:
        if isinstance(one.type, TensorType) and not isinstance(other.type, TensorType):
            other = one.type.filter_variable(other)
        elif isinstance(other.type, TensorType) and not isinstance(one.type, TensorType):
            one = other.type.filter_variable(one)
    if one.type != other.type:
        raise TypeError(
            f"The two branches should have identical types, but they are {one.type} and "
            f"{other.type} respectively. This error could be raised if for example you provided a "
            "one element list on the `then` branch but a tensor on the `else` branch. Cast one of "
            "them, or change which dimensions are broadcastable (T.patternbroadcast)."
        )
    return one, other
