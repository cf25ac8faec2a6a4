"""Fusion: elementwise Applys that follow each other become one Composite, one loop over memory; and
a reduction takes in the elementwise Apply that it alone reads."""

from __future__ import annotations

import heapq

from opwise.config import config
from opwise.optimizers.passes import Optimizer
from opwise.scalar import csource, loops
from opwise.scalar.composite import Composite, Step
from opwise.scalar.op import Cast
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.reduce import CAReduce

#: operands of a Composite, its output included: what a kernel takes
MAX_OPERANDS = 32
MAX_STEPS = 80
#: what C steps can walk over
MAX_DIMENSIONS = 8


class AddMulFusion(Optimizer):
    """Sums of sums, and products of products, become one Apply with all the terms."""

    name = "local_add_mul_fusion"

    def apply(self, fgraph):
        if not config.tensor.local_elemwise_fusion:
            return
        for node in fgraph.toposort():
            if node not in fgraph.apply_nodes or not _is_associative(node):
                continue
            flat = self._flat(node)
            if len(flat) > len(node.inputs):
                new = Elemwise(node.op.scalar_op, name=node.op.name)(*flat)
                fgraph.replace_all([(node.outputs[0], new)], reason=self.name)

    @staticmethod
    def _flat(node):
        """Return the terms of a node with those of operands that only it reads in their place."""
        out = node.outputs[0].type
        flat = []
        for x in node.inputs:
            inner = x.owner
            if (
                inner is not None
                and inner.op == node.op
                and len(x._clients) == 1
                and x.type == out
                and len(flat) + len(inner.inputs) < MAX_OPERANDS - len(node.inputs)
            ):
                flat.extend(inner.inputs)
            else:
                flat.append(x)
        return flat


def _is_associative(node):
    op = node.op
    return (
        isinstance(op, Elemwise)
        and not op.inplace_pattern
        and op.scalar_op.row is not None
        and op.scalar_op.row.nin < 0
        and op.scalar_op.row.associative
    )


class FusionOptimizer(Optimizer):
    """Each elementwise Apply takes in those that only it, or others that it took in, reads.

    Only Applys of the same broadcast pattern join, so nothing is computed twice; only those with
    a C expression, so that no other falls back to Python. One pass, from the outputs.
    """

    name = "composite_elemwise_fusion"

    def apply(self, fgraph):
        if not config.tensor.local_elemwise_fusion:
            return
        order = fgraph.toposort()
        position = {node: k for k, node in enumerate(order)}
        taken = set()
        for node in reversed(order):
            if not isinstance(node.op, Elemwise) or node in taken or not _joins(node):
                continue
            group = self._group(node, position)
            if len(group) > 1:
                taken.update(group)
                new = _composite(node, group)
                fgraph.replace_all([(node.outputs[0], new)], reason=self.name)

    @staticmethod
    def _group(root, position):
        """Return the Applys that ``root`` takes in, itself included."""
        pattern = root.outputs[0].type.broadcastable
        group = {root}
        operands = set(root.inputs)
        steps = _n_steps(root)
        waiting = []

        def offer(node):
            for var in node.inputs:
                owner = var.owner
                if owner is not None and isinstance(owner.op, Elemwise) and owner in position:
                    heapq.heappush(waiting, (-position[owner], id(owner), owner))

        offer(root)
        # the latest first: when an Apply's turn comes, all its readers have had theirs
        while waiting:
            node = heapq.heappop(waiting)[2]
            if node in group or not _joins(node):
                continue
            out = node.outputs[0]
            if out.type.broadcastable != pattern:
                continue
            if any(client == "output" or client not in group for client, _ in out._clients):
                continue
            wider = (operands - {out}) | set(node.inputs)
            if len(wider) >= MAX_OPERANDS or steps + _n_steps(node) > MAX_STEPS:
                continue
            operands = wider
            steps += _n_steps(node)
            group.add(node)
            offer(node)
        return group


class MapReduceOptimizer(Optimizer):
    """A reduction and the elementwise Apply that only it reads become one loop over memory."""

    name = "map_reduce_fusion"

    def apply(self, fgraph):
        if not config.tensor.local_elemwise_fusion:
            return
        for node in fgraph.toposort():
            if _reduces_in_c(node) and (mapped := node.inputs[0].owner) is not None:
                alone = len(node.inputs[0]._clients) == 1
                if alone and _joins(mapped) and mapped.outputs[0].type.ndim <= MAX_DIMENSIONS:
                    new = MapReduce(mapped.op.scalar_op, node.op)(*mapped.inputs)
                    fgraph.replace_all([(node.outputs[0], new)], reason=self.name)


def _reduces_in_c(node):
    """Return whether a loop can do the reduction, and has something to reduce."""
    op = node.op
    if not isinstance(op, CAReduce) or op.scalar_op.row is None or op.axis == ():
        return False
    element, out = node.inputs[0].type.dtype, node.outputs[0].type.dtype
    acc = getattr(op, "acc_dtype", None) or out
    return (op.scalar_op.row.name, element, acc) in loops.REDUCTIONS and (
        acc == out or (acc, out) == ("float64", "float32")
    )


def _joins(node):
    op = node.op
    return (
        isinstance(op, Elemwise)
        and not op.inplace_pattern
        and len(node.outputs) == 1
        and _has_c(op.scalar_op, node)
    )


def _has_c(op, node):
    dtypes = [v.type.dtype for v in node.inputs]
    out = node.outputs[0].type.dtype
    if not all(map(csource.has_c, (*dtypes, out))):
        return False
    if isinstance(op, Composite | Cast):
        return True
    row = op.row
    return row is not None and row.c_expression(row.compute_dtype(dtypes, out)) is not None


def _n_steps(node):
    op = node.op.scalar_op
    return len(op.steps) if isinstance(op, Composite) else 1


def _composite(root, group):
    """Return the output of a group's Composite; operands in the order in which they are read."""
    operands = {}
    _operands_in_order(root, group, operands)
    inputs = list(operands)
    n = len(inputs)
    slots = dict(operands)
    steps = []
    _emit(root, group, slots, steps, n)
    op = Composite.from_program([v.type.dtype for v in inputs], steps, [slots[root.outputs[0]]])
    return Elemwise(op)(*inputs)


def _operands_in_order(root, group, operands):
    stack = [root]
    visited = {root}
    pending = [iter(root.inputs)]
    while stack:
        var = next(pending[-1], None)
        if var is None:
            stack.pop()
            pending.pop()
            continue
        owner = var.owner
        if owner is not None and owner in group:
            if owner not in visited:
                visited.add(owner)
                stack.append(owner)
                pending.append(iter(owner.inputs))
        elif var not in operands:
            operands[var] = len(operands)


def _emit(root, group, slots, steps, n):
    """Add the steps of the group in an order in which each comes after those it reads."""
    stack = [root]
    while stack:
        node = stack[-1]
        out = node.outputs[0]
        if out in slots:
            stack.pop()
            continue
        missing = [v.owner for v in node.inputs if v not in slots]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        args = [slots[v] for v in node.inputs]
        op = node.op.scalar_op
        if isinstance(op, Composite):
            offset = n + len(steps) - op.nin
            for step in op.steps:
                moved = tuple(args[a] if a < op.nin else a + offset for a in step.args)
                steps.append(Step(step.op, moved, step.dtype))
            at = op.outs[0]
            slots[out] = args[at] if at < op.nin else at + offset
        else:
            steps.append(Step(op, tuple(args), out.type.dtype))
            slots[out] = n + len(steps) - 1
