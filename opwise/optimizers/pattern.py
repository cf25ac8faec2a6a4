"""Rules written as patterns: replace an Op, remove an Op, replace an expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.op import Op
from opwise.graph.variable import Constant, Var, Variable
from opwise.optimizers.rule import LocalOptimizer, Replacements, Tracked
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.knownvalues import constant_number
from opwise.tensor.variable import constant


class OpSub(LocalOptimizer):
    """Replaces every Apply of ``op1`` by one of ``op2`` on the same inputs."""

    def __init__(self, op1: Op, op2: Op, transfer_tags: bool = True) -> None:
        self.op1, self.op2 = op1, op2
        self.name = f"{op1} -> {op2}"

    def op_key(self) -> Op:
        return self.op1

    def tracks(self) -> Sequence[Tracked] | None:
        return [self.op1]

    def transform(self, node: Apply) -> Replacements:
        return self.op2.make_node(*node.inputs).outputs


class OpRemove(LocalOptimizer):
    """Replaces the outputs of every Apply of ``op`` by its inputs, one for one."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.name = f"{op}(x) -> x"

    def op_key(self) -> Op:
        return self.op

    def tracks(self) -> Sequence[Tracked] | None:
        return [self.op]

    def transform(self, node: Apply) -> Replacements:
        if len(node.inputs) != len(node.outputs):
            raise ValueError(
                f"OpRemove needs as many inputs as outputs: {node} has {len(node.inputs)} and "
                f"{len(node.outputs)}"
            )
        return list(node.inputs)


class PatternSub(LocalOptimizer):
    """Replaces an expression by another: ``PatternSub((log, (exp, "x")), "x")``.

    A pattern is one of: a tuple of an Op and the patterns of its operands; a string, which stands
    for any variable, the same one wherever it occurs; a number or a constant, for that value; a
    dict ``{"pattern": p, "constraint": function of a variable}``. ``out_pattern`` is built of the
    same parts. The two operands of a commutative elementwise Op match in either order.

    allow_multiple_clients: whether to replace an expression with inner results that others read
    as well, which then are computed twice. skip_identities_fn: function of (variable, pattern) that
    returns the variable to match. get_nodes: function of an Apply that returns the Applys to match;
    ``tracks`` then are the Ops that it is called for. values_eq_approx: put on the tag of the new
    variable, for DebugMode.
    """

    def __init__(
        self,
        in_pattern: Any,
        out_pattern: Any,
        allow_multiple_clients: bool = False,
        skip_identities_fn: Callable[[Variable, Any], Variable | None] | None = None,
        name: str | None = None,
        tracks: Sequence[Tracked] = (),
        get_nodes: Callable[[Apply], Sequence[Apply]] | None = None,
        values_eq_approx: Callable[..., bool] | None = None,
    ) -> None:
        if not isinstance(in_pattern, tuple | dict) or not isinstance(_head(in_pattern), Op):
            raise TypeError(
                "The pattern to search for must start with a specific Op instance, not "
                f"{in_pattern!r}"
            )
        self.in_pattern = in_pattern
        self.out_pattern = out_pattern
        self.op: Op = _head(in_pattern)
        self.allow_multiple_clients = allow_multiple_clients
        self.skip_identities_fn = skip_identities_fn
        self.name = name or f"{_text(in_pattern)} -> {_text(out_pattern)}"
        self.get_nodes = get_nodes
        self._tracks = list(tracks) if get_nodes is not None else [self.op]
        #: an Op that some operand must have: most Applys fail this fast test
        self._inner = [] if skip_identities_fn or get_nodes else _inner_kinds(in_pattern)
        self.values_eq_approx = values_eq_approx

    def op_key(self) -> Op:
        return self.op

    def tracks(self) -> Sequence[Tracked] | None:
        return self._tracks

    def __call__(self, fgraph: FunctionGraph | None, node: Apply) -> Replacements:
        for kind in self._inner:
            for x in node.inputs:
                if x.owner is not None and _kind(x.owner.op) == kind:
                    break
            else:
                return None
        return self.transform(node)

    def transform(self, node: Apply) -> Replacements:
        if self.get_nodes is None:
            return self._rewritten(node)
        for candidate in self.get_nodes(node):
            found = self._rewritten(candidate)
            if found:
                return dict(zip(candidate.outputs, found, strict=True))
        return None

    def _rewritten(self, node: Apply) -> list[Var] | None:
        if not _is_op(node.op, self.op) or len(node.outputs) != 1:
            return None
        (out,) = node.outputs
        bound = self._match(self.in_pattern, out, {}, first=True)
        if bound is None:
            return None
        new = _build(self.out_pattern, bound)
        if new.type != out.type:
            return None
        if self.values_eq_approx is not None:
            new.tag.values_eq_approx = self.values_eq_approx
        return [new]

    def _match(
        self, pattern: Any, var: Var, bound: dict[Any, Any], first: Any = False
    ) -> dict[Any, Any] | None:
        """Return ``bound`` with the strings of a pattern bound to variables, or None."""
        if self.skip_identities_fn is not None and not first:
            skipped = self.skip_identities_fn(var, pattern)
            var = var if skipped is None else skipped
        if isinstance(pattern, dict):
            found = self._match(pattern["pattern"], var, bound, first)
            return found if found is not None and pattern["constraint"](var) else None
        if isinstance(pattern, str):
            known = bound.get(pattern, var)
            return {**bound, pattern: var} if _same(known, var) else None
        if isinstance(pattern, tuple):
            return self._match_apply(pattern, var, bound, first)
        return bound if _is_value(var, pattern) else None

    def _match_apply(
        self, pattern: Any, var: Var, bound: dict[Any, Any], first: Any
    ) -> dict[Any, Any] | None:
        node = var.owner
        if node is None or not _is_op(node.op, pattern[0]) or len(node.inputs) != len(pattern) - 1:
            return None
        if not first and not self.allow_multiple_clients and len(var._clients or ()) > 1:
            return None
        orders = [pattern[1:]]
        if _commutes(node.op) and len(pattern) == 3:
            orders.append(pattern[:0:-1])
        for order in orders:
            found: dict[Any, Any] | None = bound
            for operand, part in zip(node.inputs, order, strict=True):
                found = None if found is None else self._match(part, operand, found)
                if found is None:
                    break
            else:
                return found
        return None


def _is_op(op: Op, wanted: Op) -> bool:
    return op is wanted or op == wanted


def _kind(op: Op) -> str | type:
    """Return a key that is equal for equal Ops, and differs for most others."""
    return getattr(op, "row_name", None) or type(op)


def _inner_kinds(pattern: Any) -> list[str | type]:
    """Return the keys of the Ops of a pattern's operands."""
    while isinstance(pattern, dict):
        pattern = pattern["pattern"]
    return [_kind(head) for head in map(_head, pattern[1:]) if head is not None]


def _head(pattern: Any) -> Any:
    while isinstance(pattern, dict):
        pattern = pattern["pattern"]
    return pattern[0] if isinstance(pattern, tuple) and pattern else None


def _commutes(op: Op) -> bool:
    row = op.scalar_op.row if isinstance(op, Elemwise) else None
    return row is not None and row.commutative


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    return isinstance(a, Constant) and isinstance(b, Constant) and a.equals(b)


def _is_value(var: Var, value: Any) -> Any:
    if not isinstance(var, Constant):
        return False
    if isinstance(value, Constant):
        return var.equals(value)
    return constant_number(var) == value


def _build(pattern: Any, bound: dict[Any, Any]) -> Var:
    if isinstance(pattern, tuple):
        return pattern[0](*(_build(part, bound) for part in pattern[1:]))
    if isinstance(pattern, str):
        return bound[pattern]
    if isinstance(pattern, dict):
        return _build(pattern["pattern"], bound)
    return pattern if isinstance(pattern, Variable) else constant(pattern)


def _text(pattern: Any) -> str:
    if isinstance(pattern, tuple):
        return f"{pattern[0]}({', '.join(map(_text, pattern[1:]))})"
    if isinstance(pattern, dict):
        return f"{_text(pattern['pattern'])} subject to {pattern.get('constraint', 'no condition')}"
    return str(pattern)
