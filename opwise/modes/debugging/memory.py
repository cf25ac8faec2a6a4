"""Checks of memory: an Apply overwrites and shares what its destroy_map and view_map declare."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from opwise.graph import aliasing
from opwise.graph.apply import Apply
from opwise.graph.variable import Variable
from opwise.modes.debugging import findings
from opwise.modes.debugging.values import IMMUTABLE, Snapshot

_log = logging.getLogger("opwise.debugmode")


class MemoryCheck:
    """Compares what an Apply declares of its memory with what one run of it did."""

    def __init__(self, node: Apply) -> None:
        self.node = node
        #: the inputs that it declares to overwrite
        self.destroyed = set(aliasing.destroyed_inputs(node))
        #: for each output, the inputs that it declares the output to be a view of
        self.viewed = [aliasing.viewed_inputs(node, k) for k in range(len(node.outputs))]
        self.types = [var.type for var in node.inputs]
        #: whether ``warn_unused`` has warned, or has no declaration to check
        self.warned = not (node.op.destroy_map or node.op.view_map)

    def snapshots(self, inputs: Sequence[Any]) -> list[Snapshot]:
        """Return a Snapshot of each input, to be passed to ``check`` after the run."""
        return [Snapshot(value, type_) for value, type_ in zip(inputs, self.types, strict=True)]

    def check(
        self, before: Sequence[Snapshot], inputs: Sequence[Any], outputs: Sequence[Any],
        perform: str,
    ) -> None:  # fmt: skip
        """Raise BadDestroyMap or BadViewMap if a run did something that is not declared.

        before: snapshots of the inputs before the run. perform: what ran, 'py' or 'c'.
        """
        for i, (old, new) in enumerate(zip(before, inputs, strict=True)):
            if i in self.destroyed or old.same(new):
                continue
            # it may share memory with an input that is declared as overwritten
            if not any(share(new, inputs[j]) for j in self.destroyed):
                raise findings.bad_destroy_map(self.node, i, old.restored(), new, perform)
        for k, value in enumerate(outputs):
            if isinstance(value, np.ndarray) and value.size:
                self._check_views(k, value, inputs)
        self.check_outputs(outputs)

    def _check_views(self, k: int, value: np.ndarray, inputs: Sequence[Any]) -> None:
        declared = self.viewed[k]
        if value.flags.owndata and not _is_or_is_viewed_by(value, inputs):
            return
        found = []
        for i, given in enumerate(inputs):
            if i in declared or not isinstance(given, np.ndarray) or not share(value, given):
                continue
            # an input that shares memory with a declared one is covered by that declaration
            if not any(share(inputs[j], given) for j in declared):
                found.append(i)
        if found:
            raise findings.bad_view_map(self.node, k, value, inputs=found)

    def check_outputs(self, outputs: Sequence[Any]) -> None:
        """Raise BadViewMap if two outputs that are both read share memory."""
        if len(outputs) < 2:
            return
        node = self.node
        for k, value in enumerate(outputs):
            if self.viewed[k] or not _is_read(node.outputs[k]):
                continue
            for other in range(k + 1, len(outputs)):
                if (
                    not self.viewed[other]
                    and _is_read(node.outputs[other])
                    and share(value, outputs[other])
                ):
                    raise findings.bad_view_map(node, k, value, others=[other])

    def warn_unused(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Log once if an output did not use the input memory that it declares to use."""
        if self.warned:
            return
        op = self.node.op
        for what, maps in (
            ("destroyed was not changed for", op.destroy_map),
            # an output is a view of the branch that is taken, if of any
            ("viewed but new memory allocated by", {} if op.branches else op.view_map),
        ):
            for k, indices in maps.items():
                if not indices or not _is_worth_reusing(outputs[k], inputs[indices[0]]):
                    continue
                # a view of scattered elements may be impossible, as for a Reshape
                if maps is op.destroy_map or _is_contiguous(inputs[indices[0]]):
                    self.warned = True
                    _log.warning(
                        "Optimization Warning: input idx %d marked as %s node '%s'",
                        indices[0], what, self.node,
                    )  # fmt: skip


def _is_or_is_viewed_by(value: np.ndarray, inputs: Sequence[Any]) -> bool:
    """Return whether an input is the array ``value`` itself, or a view of it."""
    return any(given is value or getattr(given, "base", None) is value for given in inputs)


def _is_worth_reusing(value: Any, given: Any) -> bool:
    """Return whether an output of two elements or more lies outside the memory of an input."""
    return isinstance(value, np.ndarray) and value.size > 1 and not share(value, given)


def _is_contiguous(value: Any) -> bool:
    return not isinstance(value, np.ndarray) or value.flags.c_contiguous


def share(a: Any, b: Any) -> bool:
    """Return whether two values share memory; True also if that takes too long to find out."""
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return a is b and not isinstance(a, IMMUTABLE)
    if not np.may_share_memory(a, b):
        return False
    try:
        # numpy's stub allows max_work of -1 and 0 only
        return bool(np.shares_memory(a, b, max_work=100_000))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _is_read(variable: Variable) -> bool:
    clients: Iterable[tuple[Any, int]] = variable._clients or ()
    return any(client != "output" for client, _ in clients)
