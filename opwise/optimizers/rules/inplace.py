"""Overwriting: results take the memory of operands that nobody needs any more.

An operand may be overwritten by an Apply if, in one fixed order of the graph, everybody else who
reads its memory comes before. All decisions are made against that order, so no cycle can arise and
one pass suffices.
"""

from __future__ import annotations

from functools import lru_cache

from opwise.graph import aliasing
from opwise.graph.variable import Constant
from opwise.optimizers.passes import Optimizer
from opwise.tensor.advanced_subtensor import AdvancedIncSubtensor1, BaseAdvancedIncSubtensor
from opwise.tensor.blas import (
    CGemv,
    CGer,
    Gemm,
    Gemv,
    Ger,
    cgemv_inplace,
    cger_inplace,
    gemm_inplace,
    gemv_inplace,
    ger_destructive,
)
from opwise.tensor.creation import AllocEmpty
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.subtensor import IncSubtensor


class InplacePass(Optimizer):
    """Goes once through the graph and lets Applys overwrite operands.

    classes: of the Ops that it looks at. candidates(node): yields (input index, the Op that
    overwrites that input), the best first.
    """

    classes: tuple[type, ...] = ()

    def candidates(self, node):
        raise NotImplementedError

    def apply(self, fgraph):
        if not any(isinstance(op, self.classes) for op in fgraph.ops().values()):
            return
        order = _late_updates(fgraph, fgraph.toposort())
        books = _Books(fgraph, order)
        for node in order:
            if not isinstance(node.op, self.classes):
                continue
            for i, op in self.candidates(node):
                if books.allows(node, i):
                    fgraph.change_op(node, op, reason=str(self))
                    books.overwritten(node, i)
                    break


def _late_updates(fgraph, order):
    """Return the order with what only makes an update moved to the end.

    There most others have read the old value, and it can be overwritten.
    """
    if not fgraph.mutable_inputs:
        return order
    last = {out.owner for out in fgraph.outputs if out.owner is not None}
    late = {
        node
        for node in last
        if all(client == "output" for out in node.outputs for client, _ in out._clients)
        and any(aliasing.root(v) in fgraph.mutable_inputs for v in node.inputs)
    }
    # what must come before one of them (it overwrites memory already) stays before
    late.difference_update(*fgraph.orderings().values())
    return [n for n in order if n not in late] + [n for n in order if n in late]


class _Books:
    """Who reads the memory behind each variable, and when; kept while Applys are replaced."""

    def __init__(self, fgraph, order):
        self.fgraph = fgraph
        self.position = {node: k for k, node in enumerate(order)}
        self.roots = roots = aliasing.groups(fgraph, order)
        #: the variables that share memory with each root, where there are others than itself
        self.members = {}
        for var, root in roots.items():
            if var is not root:
                self.members.setdefault(root, [root]).append(var)
        self.last = {}
        for k, node in enumerate(order):
            for var in node.inputs:
                self.last[roots[var]] = k
        for out in fgraph.outputs:
            self.last[roots.get(out, out)] = len(order)

    def allows(self, node, i):
        """Return whether ``node`` may overwrite its input ``i``."""
        var = node.inputs[i]
        root = self.roots[var]
        if isinstance(root, Constant):
            return False
        if root.owner is None and root not in self.fgraph.mutable_inputs:
            return False
        if self.last[root] > self.position[node]:
            return False
        # the Apply itself may read the memory again only as the very same variable, elementwise
        same = isinstance(node.op, Elemwise)
        return all(
            j == i or self.roots[other] is not root or (same and other is var)
            for j, other in enumerate(node.inputs)
        )

    def overwritten(self, node, i):
        """Note that the output of ``node`` took the memory of its input ``i``."""
        root = self.roots[node.inputs[i]]
        latest = self.position[node]
        shared = self.members.setdefault(root, [root])
        for out in node.outputs:
            old_root = self.roots[out]
            latest = max(latest, self.last.pop(old_root, latest))
            for var in self.members.pop(old_root, (out,)):
                self.roots[var] = root
                shared.append(var)
        self.last[root] = latest


class InplaceElemwiseOptimizer(InplacePass):
    """An elementwise result takes the memory of an operand of its dtype and shape."""

    name = "inplace_elemwise_optimizer"
    classes = (Elemwise,)

    def candidates(self, node):
        op = node.op
        if op.inplace_pattern or len(node.outputs) != 1:
            return
        out = node.outputs[0].type
        fitting = [i for i, x in enumerate(node.inputs) if x.type is out or x.type == out]
        if len(fitting) > 1:
            preferred = _updated_input(node)
            fitting.sort(key=lambda i: node.inputs[i] is not preferred)
        for i in fitting:
            yield i, _overwriting(op, i)


@lru_cache(maxsize=1024)
def _overwriting(op, i):
    """Return an Elemwise as one that overwrites its input ``i``."""
    # a rewrite prints the class (Elemwise{Add}[(0, 0)]), what a user makes the operation
    label = op.scalar_op.row.cls if op.scalar_op.row is not None else str(op.scalar_op)
    return Elemwise(op.scalar_op, {0: i}, name=f"Elemwise{{{label}}}[(0, {i})]")


def _updated_input(node):
    """Return the input of the graph that the output of ``node`` is an update of, or None."""
    fgraph = node.fgraph
    updates = getattr(fgraph, "update_mapping", None) or {}
    for client, k in node.outputs[0]._clients:
        if client == "output" and k in updates:
            return fgraph.inputs[updates[k]]
    return None


class InplaceBlas(InplacePass):
    """BLAS adds into the array that it is given."""

    name = "InplaceBlasOpt"

    _inplace = {Gemm: gemm_inplace, Gemv: gemv_inplace, CGemv: cgemv_inplace,
                Ger: ger_destructive, CGer: cger_inplace}  # fmt: skip
    classes = tuple(_inplace)

    def apply(self, fgraph):
        _separate_empties(fgraph)
        super().apply(fgraph)

    def candidates(self, node):
        inplace = self._inplace.get(type(node.op))
        if inplace is not None and not node.op.destroy_map:
            yield 0, inplace


def _separate_empties(fgraph):
    """Give every reader of uninitialised memory memory of its own, so that it can overwrite it."""
    if not any(isinstance(op, AllocEmpty) for op in fgraph.ops().values()):
        return
    for node in fgraph.toposort():
        if isinstance(node.op, AllocEmpty):
            for client, i in list(node.outputs[0]._clients)[1:]:
                if client != "output":
                    fresh = node.clone()
                    fgraph.change_input(client, i, fresh.outputs[0], reason="InplaceBlasOpt")


class InplaceSubtensor(InplacePass):
    """Setting or adding to a part of an array overwrites it."""

    name = "local_inplace_setsubtensor"
    classes = (IncSubtensor, AdvancedIncSubtensor1, BaseAdvancedIncSubtensor)

    def candidates(self, node):
        op = node.op
        if isinstance(op, IncSubtensor) and not op.inplace:
            new = IncSubtensor(
                op.idx_list, inplace=True, set_instead_of_inc=op.set_instead_of_inc,
                destroyhandler_tolerate_aliased=op.destroyhandler_tolerate_aliased,
            )  # fmt: skip
            yield 0, new
        elif isinstance(op, AdvancedIncSubtensor1 | BaseAdvancedIncSubtensor) and not op.inplace:
            yield 0, type(op)(inplace=True, set_instead_of_inc=op.set_instead_of_inc)
