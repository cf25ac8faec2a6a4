"""CheckedApply: one Apply of the optimized graph, whose implementations are run and compared."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opwise.errors import BadCLinkerOutput
from opwise.graph.op import Op
from opwise.graph.variable import Variable
from opwise.linkers import opwise_c
from opwise.linkers.storage import Storage
from opwise.linkers.userops.python import runs_in_python
from opwise.linkers.vm import Thunk
from opwise.modes.debugging import findings, preallocated
from opwise.modes.debugging.memory import MemoryCheck
from opwise.modes.debugging.perform import CheckedPerform, is_of_the_library
from opwise.modes.debugging.perturbation import roundings_explain
from opwise.modes.debugging.replay import Replay, Run
from opwise.modes.debugging.values import Snapshot, comparison, finite, private_copies
from opwise.tensor.elemwise import Elemwise

if TYPE_CHECKING:
    from opwise.modes.debugmode import DebugMode

_log = logging.getLogger("opwise.debugmode")

#: runs one Apply on a device: input values to (outputs, inputs after the run)
Trial = Callable[[Sequence[Any]], tuple[Sequence[Any], Sequence[Any]]]


class CheckedApply:
    """Runs one Apply in numpy and in C, and checks its values and its use of memory.

    settings: what to check. replayed: the same Apply in the replay, if it is there. trial: runs
    the Apply on a device, if there is one.
    """

    def __init__(
        self, settings: DebugMode, thunk: Thunk, replay: Replay, replayed: Run | None,
        trial: Trial | None = None,
    ) -> None:  # fmt: skip
        self.settings, self.replay = settings, replay
        self.node = node = thunk.node
        self.input_storages, self.output_storages = thunk.inputs, thunk.outputs
        #: whether the Apply can run in Python, and is to be checked there
        has_python = runs_in_python(node.op)
        self.check_python = settings.check_py_code and has_python
        #: runs C; None if there is none, or it is not checked
        checked = settings.check_c_code or not has_python
        self.c = thunk if hasattr(thunk, "cthunk") and checked else None
        self.python = CheckedPerform(node)
        self.trial = trial
        self.memory = MemoryCheck(node)
        self.agree = [comparison(var) for var in node.outputs]
        same = replayed is not None and not replayed.c and _compute_alike(replayed.op, node.op)
        #: the replayed Apply if it computes the same outputs from equal inputs
        self.as_it_came = replayed if same else None
        self.checked_before = replayed is not None and not is_of_the_library(node.op)
        #: the inputs before the current run
        self.before: list[Snapshot] = []
        #: (variable, expected value, value) of an output that differs from the replay
        self.different: tuple[Variable, Any, Any] | None = None
        #: outputs of the last call, for output storage 'initial'
        self.last: dict[int, Any] = {}

    def __call__(self) -> None:
        """Run the Apply on its storages; raise the DebugModeError of the first failed check."""
        self.different, self._same_as_known = None, False
        inputs = [storage[0] for storage in self.input_storages]
        self.before = self.memory.snapshots(inputs)
        outputs = self._run_python(inputs) if self.c is None else self._run_c(inputs)
        if self.trial is not None:
            self._try_on_device(self.trial, outputs)
        if self.settings.warn_input_not_reused:
            self.memory.warn_unused(inputs, outputs)
        if self.settings.check_isfinite:
            self._check_finite(outputs)
        if not self._same_as_known:
            self._compare_with_replay(outputs)
        if preallocated.is_wanted(self.settings.check_preallocated_output):
            self._try_output_storage(outputs)
        self.before = self.before if self.different is not None else []

    def _check_finite(self, outputs: Sequence[Any]) -> None:
        for var, value in zip(self.node.outputs, outputs, strict=True):
            if not finite(var, value):
                raise findings.invalid_value(
                    var, value, "perform output", "non-finite elements not allowed"
                )

    def _run_python(self, inputs: Sequence[Any]) -> list[Any]:
        """Run ``perform`` alone, in the memory of the graph."""
        known = self._known() if self.checked_before else None
        if known is not None and not self.node.op.view_map:
            self.memory.check_outputs(known)
            outputs = private_copies(known)
            self._same_as_known = True
        else:
            outputs = self.python(inputs)
            self.memory.check(self.before, inputs, outputs, "py")
        for storage, value in zip(self.output_storages, outputs, strict=True):
            storage[0] = value
        return outputs

    def _run_c(self, inputs: Sequence[Any]) -> list[Any]:
        """Run C in the memory of the graph and, if it is to be checked, Python on copies."""
        assert self.c is not None
        expected = None
        if self.check_python:
            expected = self._known()
            self._same_as_known = expected is not None
            if expected is None:
                private = private_copies(inputs)
                expected = self.python(private)
                self.memory.check(self.before, private, expected, "py")
        opwise_c.fill_new_blocks(True)
        try:
            self.c()
        finally:
            opwise_c.fill_new_blocks(False)
        outputs = [storage[0] for storage in self.output_storages]
        self.memory.check(self.before, inputs, outputs, "c")
        if expected is not None:
            self._compare_c(expected, outputs)
        return outputs

    def _try_on_device(self, trial: Trial, outputs: Sequence[Any]) -> None:
        """Run the Apply on the device too; results must agree and inputs must stay."""
        found, after = trial(self._inputs())
        for k, (a, b) in enumerate(zip(outputs, found, strict=True)):
            if not self.agree[k](a, b):
                raise findings.bad_output(
                    self.node.outputs[k], "perform", a, "the device", b, self._inputs()
                )
        for i, (before, now) in enumerate(zip(self.before, after, strict=True)):
            if i not in self.memory.destroyed and not before.same(now):
                raise findings.bad_destroy_map(self.node, i, before.restored(), now, "cuda")

    def _known(self) -> list[Any] | None:
        """Return the outputs that the replay computed from equal inputs, or None."""
        if self.as_it_came is None:
            return None
        found = self.replay.values_of(self.as_it_came.reads)
        if found is None:
            return None
        for known, value in zip(found, self.before, strict=True):
            if not value.same(known):
                return None
        return self.replay.values_of(self.as_it_came.writes)

    def _compare_c(self, expected: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Compare results of C with Python's, and put Python's into the memory of C's.

        Otherwise a difference in the last bit could change a comparison further on.
        """
        for k, (a, b) in enumerate(zip(expected, outputs, strict=True)):
            var = self.node.outputs[k]
            if not self.agree[k](a, b) and not roundings_explain(
                self.node, self._inputs(), k, a, b
            ):
                raise findings.bad_output(
                    var, "perform", a, "c_code", b, self._inputs(), BadCLinkerOutput
                )
            if not isinstance(b, np.ndarray):
                self.output_storages[k][0] = a
                continue
            self._compare_strides(var, a, b)
            if b.flags.writeable:
                b[...] = a

    def _compare_strides(self, var: Variable, expected: np.ndarray, value: np.ndarray) -> None:
        wanted = self.settings.require_matching_strides
        if not wanted or expected.strides == value.strides:
            return
        if wanted > 1:
            raise findings.bad_strides(var, expected, value, self._inputs())
        _log.warning(findings.stride_text(var, expected, value))

    def _inputs(self) -> list[Any]:
        """Return copies of the inputs as they were before the run."""
        return [one.restored() for one in self.before]

    def _compare_with_replay(self, outputs: Sequence[Any]) -> None:
        for var, agree, value in zip(self.node.outputs, self.agree, outputs, strict=True):
            expected = self.replay.value(var)
            if expected is None or agree(expected, value):
                continue
            if self.replay.excuses(var, expected, value):
                continue
            self.different = var, expected, value
            return

    # --- preallocated outputs ---------------------------------------------------------------------

    def _try_output_storage(self, outputs: Sequence[Any]) -> None:
        """Run again with preallocated outputs of every kind; the results must be the same."""
        settings = self.settings
        initial, self.last = self.last, dict(enumerate(private_copies(outputs)))
        reference = private_copies(outputs)
        for name, given in preallocated.layouts(
            self.node, reference, initial, settings.check_preallocated_output,
            settings.check_preallocated_output_ndim,
        ):  # fmt: skip
            if self.check_python or self.c is None:
                storages: list[Storage] = [[given.get(k)] for k in range(len(outputs))]
                results = self._python_with(storages, name)
                self._compare_results(reference, results, f"py with {name} output")
            if self.c is not None and not self.memory.destroyed:
                results = self._c_with(self.c, given)
                for storage, value in zip(self.output_storages, outputs, strict=True):
                    storage[0] = value
                self._compare_results(reference, results, f"c with {name} output")

    def _python_with(self, output_storage: list[Storage], name: str) -> list[Any]:
        try:
            return self.python(self._inputs(), output_storage)
        except Exception as error:  # of any class; without this storage there was none
            error.add_note(f"Raised with output storage of kind {name}.")
            raise

    def _c_with(self, c: Thunk, given: preallocated.Found) -> list[Any]:
        for k, value in given.items():
            self.output_storages[k][0] = preallocated.filled(value)
        c()
        return [storage[0] for storage in self.output_storages]

    def _compare_results(self, reference: Sequence[Any], results: Sequence[Any], name: str) -> None:
        for var, agree, a, b in zip(self.node.outputs, self.agree, reference, results, strict=True):
            if not agree(a, b):
                raise findings.bad_output(var, "Reference value", a, name, b, self._inputs())


def _compute_alike(before: Op, now: Op) -> bool:
    """Return whether two Ops compute the same values.

    They may differ in which input's memory an Elemwise of the library overwrites.
    """
    if before is now:
        return not now.destroy_map
    return type(before) is type(now) is Elemwise and before.scalar_op == now.scalar_op
