"""DebugVM: runs a graph Apply by Apply, each checked, and the replay of its rewrites before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opwise.errors import BadOptimization, DebugModeError, with_message
from opwise.graph import aliasing
from opwise.graph.apply import Apply
from opwise.graph.variable import Variable
from opwise.linkers.opwise_c import PythonVM
from opwise.linkers.vm import PlainVM
from opwise.modes.debugging import findings
from opwise.modes.debugging.checkedapply import CheckedApply, Trial
from opwise.modes.debugging.replay import Replay, in_replay
from opwise.modes.debugging.values import comparison, finite, fitting, misfit, private_copies
from opwise.optimizers.history import NewOp, Replacement

if TYPE_CHECKING:
    from opwise.modes.debugmode import DebugMode


class DebugVM(PythonVM):
    """Runs each call in every implementation and compares the values.

    vm: a plain VM, whose program and storages are used. trials: what runs Applys on a device.
    """

    def __init__(
        self, settings: DebugMode, vm: PlainVM, replay: Replay, trials: Mapping[Apply, Trial]
    ) -> None:
        self.settings = settings
        self.program, self.storages, self.thunks = vm.program, vm.storages, vm.thunks
        self.thunk_groups = vm.thunk_groups
        self.on_error = vm.on_error
        self.replay = replay
        program = self.program
        replayed = {run.node: run for run in replay.runs}
        self.applys = [
            CheckedApply(settings, thunk, replay, replayed.get(thunk.node), trials.get(thunk.node))
            for thunk in vm.thunks
        ]
        self.inputs = [(program.variables[c], self.storages[c]) for c in program.inputs]
        self.fits = [fitting(var) for var, _ in self.inputs]
        self.outputs = [self.storages[c] for c in program.outputs]
        self.agree = [
            comparison(new, old)
            for new, old in zip(replay.outputs, replay.history.written, strict=True)
        ]
        kept = {id(storage) for storage in self.outputs}
        constant = {id(self.storages[c]) for c in program.constants}
        self.intermediate = self.outputs
        self.temporary = [c for c in self.storages if id(c) not in kept | constant]

    def call(self) -> None:
        given = [storage[0] for _, storage in self.inputs]
        # Applys run on copies; afterwards the inputs hold the values that they were given
        self.restored = [
            (storage, value) for (_, storage), value in zip(self.inputs, given, strict=True)
        ]
        try:
            # Python, C and the replay compute the same NaN and infinities, which the checks report
            with np.errstate(all="ignore"):
                if in_replay():
                    self._run_unchecked()
                else:
                    self._run(given)
        finally:
            self.replay.forget()

    def _run_unchecked(self) -> None:
        for k, thunk in enumerate(self.thunks):
            try:
                thunk()
            except BaseException as error:
                inputs = self.program.steps[k].inputs
                self.on_error(k, error, [self.storages[c][0] for c in inputs])
                raise

    def _run(self, given: Sequence[Any]) -> None:
        for (var, _), fits, value in zip(self.inputs, self.fits, given, strict=True):
            self._check_input(var, fits(value), value)
        self.replay(given)
        for (_, storage), value in zip(self.inputs, private_copies(given), strict=True):
            storage[0] = value
        for k, checked in enumerate(self.applys):
            try:
                checked()
            except DebugModeError:
                raise
            except BaseException as error:
                values = [storage[0] for storage in checked.input_storages]
                self.on_error(k, self._naming_rewrite(error, checked.node), values)
                raise
            if checked.different is not None:
                raise self._bad_value(k, *checked.different)
        if self.replay.error is not None:  # the graph as written fails, the optimized one does not
            raise self._dropped(self.replay.error)
        self._compare_with_written()

    def _naming_rewrite(self, error: BaseException, node: Apply) -> BaseException:
        """Return the error of an Apply, naming the rewrite that made it, or one before that failed.

        The error itself is returned if the user wrote the Apply, or the graph as written fails too.
        """
        pair = self.replay.history.made_by(self.replay.failing or node)
        if pair is None or self.replay.error is not None or not isinstance(error, Exception):
            return error
        text = (
            f"The graph as written ran without an error: the rewrite {pair.reason}, of the stage "
            f"{pair.stage}, made the Apply that fails. Correct the rewrite, or exclude it."
        )
        return with_message(error, f"{error}\n{text}", text).with_traceback(error.__traceback__)

    def _dropped(self, error: BaseException) -> BaseException:
        """Return the error of an Apply as written, naming the rewrite that drops the Apply."""
        pair = self.replay.first_without_error()
        if pair is None:
            return error
        text = (
            f"\nOther modes return a result here: the rewrite {pair.reason}, of the stage "
            f"{pair.stage}, replaces {self.replay.copies.get(pair.old, pair.old)} and drops the "
            "Apply that fails."
        )
        if isinstance(error, ValueError):
            text += " Set the flag keep_shape_checks=True to check shapes in every mode."
        new = with_message(error, f"{error}\n{text}", text)
        vars(new).update(_opwise_annotated=True, node=getattr(error, "node", None))
        return new.with_traceback(error.__traceback__)

    def _check_input(self, var: Variable, fits: bool, value: Any) -> None:
        if value is None:
            return
        specific: object = None
        if not fits:
            specific = misfit(var.type, value)
        elif self.settings.check_isfinite and not finite(var, value):
            specific = "none"
        if specific is not None:
            hint = f"Graph Input '{var}' has invalid value {value}"
            raise findings.invalid_value(var, value, hint, specific)

    def _compare_with_written(self) -> None:
        """Raise BadOptimization unless the outputs are those of the graph as written."""
        written = self.replay.history.written
        for k, (agree, storage) in enumerate(zip(self.agree, self.outputs, strict=True)):
            expected = self.replay.value(written[k])
            if expected is None or agree(expected, storage[0]):
                continue
            if self.replay.excuses(written[k], expected, storage[0]):
                continue
            new = self.replay.outputs[k]
            details, cause = self._overwritten(new, len(self.applys))
            raise findings.bad_optimization(
                self.replay.copies.get(written[k], written[k]), new, expected, storage[0],
                cause.reason if cause else "all rewrites together", cause.stage if cause else "",
                written[k].owner or new.owner, f"  Output {k} of the function\n" + details,
            )  # fmt: skip

    def _bad_value(self, k: int, out: Variable, expected: Any, value: Any) -> BadOptimization:
        """Return the error for an Apply of the optimized graph that computed another value.

        The rewrites before it were right and C agrees with Python. So its inputs were overwritten,
        or it went wrong when it overwrote them itself.
        """
        checked = self.applys[k]
        history = self.replay.history
        cause: NewOp | Replacement | None = history.reason_of(checked.node)
        details = ""
        for i, var in enumerate(checked.node.inputs):
            known = self.replay.value(var)
            if known is None or comparison(var)(known, checked.before[i].restored()):
                continue
            text, overwriter = self._overwritten(var, k)
            details = f"  Input {i}, {var}, has changed since it was computed\n" + text
            cause = overwriter or cause
            break
        reason = "the order of execution, or memory that is still in use"
        if cause is not None:
            reason = cause.reason
        return findings.bad_optimization(
            self.replay.copies.get(out, out), out, expected, value, reason,
            cause.stage if cause is not None else "", checked.node,
            f"  First Apply that differs: {checked.node}, Apply {k} of the optimized graph\n"
            + details,
        )  # fmt: skip

    def _overwritten(self, var: Variable, end: int) -> tuple[str, NewOp | Replacement | None]:
        """Return (text, rewrite) on the Apply before the one at ``end`` that overwrote ``var``."""
        root, history = aliasing.root(var), self.replay.history
        for checked in reversed(self.applys[:end]):
            if var in checked.node.outputs:
                break
            destroyed = (checked.node.inputs[i] for i in checked.memory.destroyed)
            if any(aliasing.root(other) is root for other in destroyed):
                cause = history.reason_of(checked.node) or history.made_by(checked.node)
                return f"  The memory of {var} was overwritten by {checked.node}\n", cause
        return "", None

    def free(self) -> None:
        """Forget every value between inputs and outputs."""
        if self.running:
            raise RuntimeError("The function is running: its memory cannot be freed")
        for checked in self.applys:
            checked.last = {}
