"""In-place rewrites: results overwrite operands that are not read later.

An Apply may overwrite an operand if all other readers of the memory come before it in one fixed
order of the graph. All decisions are made against that order, so no cycle can arise and one pass
suffices.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from opwise.errors import InconsistencyError
from opwise.graph import aliasing
from opwise.graph.apply import Apply
from opwise.graph.features import DestroyHandler
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.op import Op
from opwise.graph.variable import Constant, Var
from opwise.optimizers.passes import Optimizer
from opwise.scalar.composite import Composite
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
from opwise.tensor.gathered import Gathered
from opwise.tensor.linalg.factor import Cholesky
from opwise.tensor.linalg.systems import Solve
from opwise.tensor.random.generator import GeneratorDraw
from opwise.tensor.random.mrg import mrg_uniform_base
from opwise.tensor.random.raw_random import RandomFunction
from opwise.tensor.subtensor import IncSubtensor


class InplacePass(Optimizer):
    """Goes once through the graph and lets Applys overwrite operands.

    classes: the Op classes that it is tried on. candidates(node): yields (output index, input
    index), the best first. overwriting(op, pairs): returns the in-place variant of an Op, where
    pairs is a dict from outputs to inputs.
    """

    classes: tuple[type, ...] = ()

    def candidates(self, node: Apply) -> list[tuple[int, int]]:
        raise NotImplementedError

    def overwriting(self, op: Any, pairs: dict[int, int]) -> Any:
        raise NotImplementedError

    def apply(self, fgraph: FunctionGraph) -> Any:
        if not any(isinstance(op, self.classes) for op in fgraph.ops().values()):
            return
        order = _late_updates(fgraph, fgraph.toposort())
        books = _Books(fgraph, order)
        # features of programs may refuse what the books allow
        refusing = [
            feature
            for feature in fgraph._features
            if hasattr(feature, "validate") and not isinstance(feature, DestroyHandler)
        ]
        for node in order:
            if not isinstance(node.op, self.classes):
                continue
            pairs: dict[Any, Any] = {}
            for k, i in self.candidates(node):
                if k not in pairs and i not in pairs.values() and books.allows(node, i):
                    pairs[k] = i
                    books.overwritten(node, k, i)
            if pairs:
                plain: Any = node.op
                fgraph.change_op(node, self.overwriting(plain, pairs), reason=str(self))
                if not _all_accept(refusing, fgraph):
                    fgraph.change_op(node, plain, reason="undo")


def _all_accept(features: Sequence[Any], fgraph: FunctionGraph) -> bool:
    """Return whether the graph passes the checks of features."""
    try:
        for feature in features:
            feature.validate(fgraph)
    except InconsistencyError:
        return False
    return True


def _late_updates(fgraph: FunctionGraph, order: list[Apply]) -> list[Apply]:
    """Return the order with Applys that only compute updates moved to the end.

    There, most readers of the old value come before them, so that it can be overwritten.
    """
    if not fgraph.interface.mutable:
        return order
    last = {out.owner for out in fgraph.outputs if out.owner is not None}
    late = {
        node
        for node in last
        if all(client == "output" for out in node.outputs for client, _ in out._clients)
        and any(aliasing.root(v) in fgraph.interface.mutable for v in node.inputs)
    }
    # an Apply that must run before one of them, since it overwrites memory, stays before it
    late.difference_update(*fgraph.orderings().values())
    return [n for n in order if n not in late] + [n for n in order if n in late]


class _Books:
    """The readers of each variable's memory in order, kept up to date as Applys are replaced."""

    def __init__(self, fgraph: FunctionGraph, order: Sequence[Apply]) -> None:
        self.fgraph = fgraph
        self.position = {node: k for k, node in enumerate(order)}
        self.roots = roots = aliasing.groups(fgraph, order)
        #: root -> the variables that share its memory, if there are others
        self.members: dict[Any, Any] = {}
        for var, root in roots.items():
            if var is not root:
                self.members.setdefault(root, [root]).append(var)
        self.last = {}
        for k, node in enumerate(order):
            for var in node.inputs:
                self.last[roots[var]] = k
        for out in fgraph.outputs:
            self.last[roots.get(out, out)] = len(order)

    def allows(self, node: Apply, i: int) -> bool:
        """Return whether ``node`` may overwrite its input ``i``."""
        var = node.inputs[i]
        root = self.roots[var]
        if isinstance(root, Constant):
            return False
        if root.owner is None and root not in self.fgraph.interface.mutable:
            return False
        if self.last[root] > self.position[node]:
            return False
        # the Apply itself may read the memory twice only if it is elementwise, and as one variable
        same = isinstance(node.op, Elemwise)
        return all(
            j == i or self.roots[other] is not root or (same and other is var)
            for j, other in enumerate(node.inputs)
        )

    def overwritten(self, node: Apply, k: int, i: int) -> None:
        """Note that output ``k`` of ``node`` took the memory of its input ``i``."""
        root = self.roots[node.inputs[i]]
        out = node.outputs[k]
        old_root = self.roots[out]
        shared = self.members.setdefault(root, [root])
        for var in self.members.pop(old_root, (out,)):
            self.roots[var] = root
            shared.append(var)
        here = self.position[node]
        self.last[root] = max(here, self.last.pop(old_root, here))


class InplaceElemwiseOptimizer(InplacePass):
    """Lets elementwise results overwrite an operand of their dtype and shape."""

    name = "inplace_elemwise_optimizer"
    classes = (Elemwise, Gathered)

    def candidates(self, node: Apply) -> list[tuple[int, int]]:
        kept: set[int] = set()  # tables and indices are no operands of the loop
        op = node.op
        if isinstance(op, Gathered):
            kept = {k for k, _ in op.taken}
            kept.update(range(len(node.inputs) - op.n_indices, len(node.inputs)))
            op = op.loop
        if not isinstance(op, Elemwise) or op.inplace_pattern:
            return []
        if len(node.outputs) > 1 and not _computes_all(op.scalar_op):
            return []
        pairs = [
            (k, i)
            for k, out in enumerate(node.outputs)
            for i, x in enumerate(node.inputs)
            if (x.type is out.type or x.type == out.type) and i not in kept
        ]
        if len(pairs) > 1:
            preferred = [_updated_input(out) for out in node.outputs]
            pairs.sort(key=lambda pair: node.inputs[pair[1]] is not preferred[pair[0]])
        return pairs

    def overwriting(self, op: Any, pairs: dict[int, int]) -> Any:
        if isinstance(op, Gathered):
            return Gathered(self.overwriting(op.loop, pairs), op.taken)
        return _overwriting(op, tuple(sorted(pairs.items())))


def _computes_all(op: Op) -> bool:
    """Return whether no output of a scalar op is an input itself, which must be kept."""
    return isinstance(op, Composite) and all(slot >= op.nin for slot in op.outs)


@lru_cache(maxsize=256)
def _overwriting(op: Any, pairs: tuple[tuple[int, int], ...]) -> Elemwise:
    """Return an Elemwise as one whose outputs overwrite inputs, by pairs (output, input)."""
    # rewrites print the class (Elemwise{Add}[(0, 0)]), users' Ops the name of the operation
    label = op.scalar_op.row.cls if op.scalar_op.row is not None else str(op.scalar_op)
    return Elemwise(op.scalar_op, dict(pairs), name=f"Elemwise{{{label}}}{list(pairs)}")


def _updated_input(out: Var) -> Any:
    """Return the input of the graph that an output of an Apply is an update of, or None."""
    fgraph = out.owner.fgraph
    updates = fgraph.interface.updates
    for client, k in out._clients:
        if client == "output" and k in updates:
            return fgraph.inputs[updates[k]]
    return None


class InplaceBlas(InplacePass):
    """Lets the Ops of BLAS accumulate in place, and those of LAPACK overwrite an operand."""

    name = "InplaceBlasOpt"

    _inplace = {Gemm: gemm_inplace, Gemv: gemv_inplace, CGemv: cgemv_inplace,
                Ger: ger_destructive, CGer: cger_inplace}  # fmt: skip
    #: the input that is overwritten, if it is not the first
    _overwritten = {Solve: 1}
    classes = (*_inplace, Cholesky, Solve)

    def apply(self, fgraph: FunctionGraph) -> Any:
        _separate_empties(fgraph)
        super().apply(fgraph)

    def candidates(self, node: Apply) -> list[tuple[int, int]]:
        i = self._overwritten.get(type(node.op), 0)
        fits = type(node.op) in self.classes and node.inputs[i].type == node.outputs[0].type
        return [(0, i)] if fits and not node.op.destroy_map else []

    def overwriting(self, op: Any, pairs: dict[int, int]) -> Any:
        return self._inplace[type(op)] if type(op) in self._inplace else op.overwriting()


def _separate_empties(fgraph: FunctionGraph) -> None:
    """Give each reader of an AllocEmpty one of its own, so that it can overwrite it.

    It has the origins of its reader.
    """
    if not any(isinstance(op, AllocEmpty) for op in fgraph.ops().values()):
        return
    for node in fgraph.toposort():
        if isinstance(node.op, AllocEmpty):
            for k, (client, i) in enumerate(list(node.outputs[0]._clients)):
                if client == "output":
                    continue
                fresh = node.clone() if k else node
                fresh._origins = client.origins
                if k:
                    fgraph.change_input(client, i, fresh.outputs[0], reason="InplaceBlasOpt")


class InplaceSubtensor(InplacePass):
    """Sets and increments parts of arrays in place."""

    name = "local_inplace_setsubtensor"
    classes = (IncSubtensor, AdvancedIncSubtensor1, BaseAdvancedIncSubtensor)

    def candidates(self, node: Apply) -> list[tuple[int, int]]:
        return [] if node.op.inplace else [(0, 0)]

    def overwriting(self, op: Any, pairs: dict[int, int]) -> Any:
        if isinstance(op, IncSubtensor):
            return IncSubtensor(
                op.idx_list, inplace=True, set_instead_of_inc=op.set_instead_of_inc,
                destroyhandler_tolerate_aliased=op.destroyhandler_tolerate_aliased,
            )  # fmt: skip
        return type(op)(inplace=True, set_instead_of_inc=op.set_instead_of_inc)


class InplaceDraws(InplacePass):
    """Base of passes that let draws of random numbers advance the states in place.

    A state that is an input of the graph is overwritten only if no Apply reads the numbers. Applys
    that read them would have to run after all others, and on copies of all inputs that the call
    overwrites, which a call that fails must leave as they were. A Generator of numpy that is an
    input is never overwritten: the VM advances it, and puts its few numbers back if a call fails.
    """

    def candidates(self, node: Apply) -> list[tuple[int, int]]:
        state, numbers = node.inputs[0], node.outputs[1]
        is_read = any(client != "output" for client, _ in numbers._clients)
        is_kept = is_read or isinstance(node.op, GeneratorDraw)
        if node.op.inplace or (is_kept and aliasing.root(state).owner is None):
            return []
        return [(0, 0)]


class InplaceRandom(InplaceDraws):
    """Lets draws from numpy's generators advance these, not copies."""

    name = "random_make_inplace"
    classes = (RandomFunction, GeneratorDraw)

    def overwriting(self, op: Any, pairs: dict[int, int]) -> Any:
        if isinstance(op, GeneratorDraw):
            return op.overwriting()
        return RandomFunction(op.fn, op.outtype, inplace=True, ndim_added=op.ndim_added)


class InplaceStreams(InplaceDraws):
    """Lets draws from random streams advance the states in place."""

    name = "random_make_inplace_mrg"
    classes = (mrg_uniform_base,)

    def overwriting(self, op: Any, pairs: dict[int, int]) -> Any:
        return type(op)(op.output_type, inplace=True)
