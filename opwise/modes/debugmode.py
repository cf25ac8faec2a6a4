"""DebugMode: runs everything more than one way and says who broke it where the ways disagree.

Each call computes what was written and whatever rewrites made of it in numpy, and judges every
replacement by the values (``replay``). Then the optimized graph runs Apply by Apply, in numpy and
in C; values, memory and types are checked after each (``debugchecks``).
"""

from __future__ import annotations

import copy
import importlib
import logging
from dataclasses import replace

import numpy as np

from opwise.config import change_flags, config
from opwise.errors import (  # noqa: F401  (legacy programs import them from here)
    BadCLinkerOutput,
    BadDestroyMap,
    BadOptimization,
    BadThunkOutput,
    BadViewMap,
    DebugModeError,
    InvalidValueError,
    StochasticOrder,
    with_message,
)
from opwise.graph import aliasing, target
from opwise.linkers import opwise_c
from opwise.linkers.base import Linker, OpWiseCLinker
from opwise.modes import debugreports, preallocated
from opwise.modes.debugchecks import (
    Memory,
    Python,
    comparison,
    finite,
    fitting,
    is_of_the_library,
    misfit,
    private_copies,
)
from opwise.modes.mode import Mode
from opwise.modes.perturbation import explains_alone
from opwise.modes.replay import Replay
from opwise.optimizers.history import RewriteHistory, Trace
from opwise.tensor.elemwise import Elemwise

_log = logging.getLogger("opwise.debugmode")


class DebugMode(Mode):
    """A mode that checks rewrites and implementations on the values of every call.

    optimizer: which rewrites are checked. stability_patience: how often the graph is optimized, to
    see that the result is always the same. check_c_code, check_py_code: which implementations run.
    check_isfinite: whether NaN and infinities are errors. check_preallocated_output: what Ops find
    in their output storage (see ``preallocated``), a list, or a text with colons.
    require_matching_strides: whether results of C must have the strides of those of Python: 0 for
    no, 1 to warn, 2 to raise. None stands for the flag DebugMode.*.
    """

    def __init__(
        self, optimizer="fast_run", stability_patience=None, check_c_code=None,
        check_py_code=None, check_isfinite=None, check_preallocated_output=None,
        require_matching_strides=None, linker=None,
    ):  # fmt: skip
        if linker is not None and not isinstance(linker, DebugLinker):
            raise Exception(
                "DebugMode can only use its own linker! You should not provide one.", linker
            )
        flags = config.DebugMode
        self.stability_patience = _or(stability_patience, flags.patience)
        self.check_c_code = _or(check_c_code, flags.check_c)
        self.check_py_code = _or(check_py_code, flags.check_py)
        self.check_isfinite = _or(check_isfinite, flags.check_finite)
        self.check_preallocated_output = preallocated.kinds_of(
            _or(check_preallocated_output, flags.check_preallocated_output)
        )
        self.check_preallocated_output_ndim = flags.check_preallocated_output_ndim
        self.warn_input_not_reused = flags.warn_input_not_reused
        self.require_matching_strides = int(_or(require_matching_strides, flags.check_strides))
        if not (self.check_c_code or self.check_py_code):
            raise ValueError("DebugMode has to check at least one of c and py code")
        super().__init__(DebugLinker(), optimizer)

    def optimize(self, fgraph):
        """Optimize, keep what was done, and see that it is done the same way each time.

        Raises StochasticOrder if it is not.
        """
        as_written = fgraph.clone() if self.stability_patience > 1 else None
        history = _attach_history(fgraph)
        record = super().optimize(fgraph)
        # what a rewrite had to say was said the first time
        with change_flags(on_opt_error="ignore", optimizer_verbose=False):
            for number in range(1, self.stability_patience):
                again, trace = as_written.clone(), Trace()
                again.attach_feature(trace)
                super().optimize(again)
                unstable = history.differences(trace, 0, number)
                if unstable:
                    raise StochasticOrder(unstable)
        return record

    def bound_linker(self, fgraph):
        return super().bound_linker(fgraph).under(self)

    def __str__(self):
        return f"DebugMode(linker={self.linker}, optimizer={self.provided_optimizer})"

    def __getstate__(self):
        state = dict(self.__dict__)
        state["linker"] = None
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.linker = DebugLinker()


def _attach_history(fgraph):
    """Attach a new history of rewrites, in place of that of the graph of which this is a copy."""
    old, new = fgraph.find_feature(RewriteHistory), RewriteHistory()
    if old is not None:
        fgraph.remove_feature(old)
    fgraph.attach_feature(new)
    return new


def _or(value, default):
    return default if value is None else value


class DebugLinker(Linker):
    """Links a graph for DebugMode: numpy and C side by side, and everything that it was before."""

    implementations = ("c", "perform")
    #: the DebugMode that says what is checked
    settings: DebugMode

    def under(self, settings):
        """Return a linker of the same graph that checks what a DebugMode says."""
        new = copy.copy(self)
        new.settings = settings
        return new

    def link(self, input_storage=None, output_storage=None, storage_map=None):
        fgraph = self.fgraph
        inner = OpWiseCLinker().clone(vm="plain", generate_kernels=self.generate_kernels)
        linked = inner.accept(fgraph).link(input_storage, output_storage, storage_map)
        trials = {}
        if target.device_name() != "cpu":
            trials = importlib.import_module("opwise.gpu.trials").trials_of(linked.order)
        history = fgraph.find_feature(RewriteHistory)
        replay = Replay(history, fgraph.inputs, fgraph.outputs, self.settings.check_py_code)
        return replace(linked, vm=DebugVM(self.settings, linked.vm, replay, trials))


class DebugVM(opwise_c.PythonVM):
    """Runs one call every way and compares.

    vm: a plain VM, of which storages are used. trials: what runs Applys on a device.
    """

    def __init__(self, settings, vm, replay, trials):
        self.settings = settings
        self.program, self.storages, self.thunks = vm.program, vm.storages, vm.thunks
        self.thunk_groups = vm.thunk_groups
        self.on_error = vm.on_error
        self.replay = replay
        program = self.program
        replayed = {run.node: run for run in replay.runs}
        self.steps = [
            _Step(settings, thunk, replay, replayed.get(thunk.node), trials.get(thunk.node))
            for thunk in vm.thunks
        ]
        self.inputs = [(program.variables[c], self.storages[c]) for c in program.inputs]
        self.fits = [fitting(var) for var, _ in self.inputs]
        self.outputs = [self.storages[c] for c in program.outputs]
        fgraph = program.fgraph
        self.agree = [comparison(new, old) for new, old in zip(
            fgraph.outputs, replay.history.written, strict=True)]  # fmt: skip
        kept = {id(storage) for storage in self.outputs}
        constant = {id(self.storages[c]) for c in program.constants}
        self.intermediate = self.outputs
        self.temporary = [c for c in self.storages if id(c) not in kept | constant]

    def call(self):
        given = [storage[0] for _, storage in self.inputs]
        # what was given is left as it was: Applys run on copies
        self.restored = [
            (storage, value) for (_, storage), value in zip(self.inputs, given, strict=True)
        ]
        try:
            # Python, C and what was written see the same special values, and none is a surprise
            with np.errstate(all="ignore"):
                self._run(given)
        finally:
            self.replay.forget()

    def _run(self, given):
        for (var, _), fits, value in zip(self.inputs, self.fits, given, strict=True):
            self._check_input(var, fits, value)
        self.replay(given)
        for (_, storage), value in zip(self.inputs, private_copies(given), strict=True):
            storage[0] = value
        for k, step in enumerate(self.steps):
            try:
                step()
            except DebugModeError:
                raise
            except BaseException as error:
                self.on_error(k, error, [storage[0] for storage in step.input_storages])
                raise
            if step.different is not None:
                raise self._bad_value(k)
        if self.replay.error is not None:  # what was written fails, what is left of it does not
            raise self._dropped(self.replay.error)
        self._compare_with_written()

    def _dropped(self, error):
        """Return the error of an Apply as written, with the rewrite that hides it elsewhere."""
        pair = self.replay.first_without_error()
        if pair is None:
            return error
        text = (
            f"\nOther modes give a result here: the rewrite {pair.reason}, of the stage "
            f"{pair.stage}, replaces {self.replay.copies.get(pair.old, pair.old)} and drops what "
            "fails."
        )
        if isinstance(error, ValueError):
            text += " The flag keep_shape_checks=True keeps the checks of shapes in every mode."
        new = with_message(error, f"{error}\n{text}", text)
        new._opwise_annotated, new.node = True, getattr(error, "node", None)
        return new.with_traceback(error.__traceback__)

    def _check_input(self, var, fits, value):
        if value is None:
            return
        specific = None
        if not fits(value):
            specific = misfit(var.type, value)
        elif self.settings.check_isfinite and not finite(var, value):
            specific = "none"
        if specific is not None:
            hint = f"Graph Input '{var}' has invalid value {value}"
            raise debugreports.invalid_value(var, value, hint, specific)

    def _compare_with_written(self):
        fgraph, written = self.program.fgraph, self.replay.history.written
        for k, (agree, storage) in enumerate(zip(self.agree, self.outputs, strict=True)):
            expected = self.replay.value(written[k])
            if expected is None or agree(expected, storage[0]):
                continue
            if self.replay.excuses(written[k], expected, storage[0]):
                continue
            new = fgraph.outputs[k]
            story, cause = self._overwritten(new, len(self.steps))
            raise debugreports.bad_optimization(
                self.replay.copies.get(written[k], written[k]), new, expected, storage[0],
                cause.reason if cause else "all rewrites together", cause.stage if cause else "",
                written[k].owner or new.owner, f"  Output {k} of the function\n" + story,
            )  # fmt: skip

    def _bad_value(self, k):
        """Return the error for an Apply of the optimized graph that did not compute its value.

        The rewrites before it were right and C agrees with Python: what it found in its inputs, or
        its own work in place, is wrong.
        """
        step = self.steps[k]
        out, expected, value = step.different
        history = self.replay.history
        cause, story = history.reason_of(step.node), ""
        for i, var in enumerate(step.node.inputs):
            known = self.replay.value(var)
            if known is None or comparison(var)(known, step.before[i].restored()):
                continue
            told, blamed = self._overwritten(var, k)
            story = f"  Input {i}, {var}, no longer holds what was computed for it\n" + told
            cause = blamed or cause
            break
        reason = cause.reason if cause is not None else "the order of execution, or memory in use"
        return debugreports.bad_optimization(
            self.replay.copies.get(out, out), out, expected, value, reason,
            cause.stage if cause is not None else "", step.node,
            f"  First Apply that differs: {step.node}, Apply {k} of the optimized graph\n" + story,
        )  # fmt: skip

    def _overwritten(self, var, end):
        """Return (text, rewrite) on the Apply before step ``end`` that overwrote a variable."""
        root, history = aliasing.root(var), self.replay.history
        for step in reversed(self.steps[:end]):
            if var in step.node.outputs:
                break
            if any(aliasing.root(step.node.inputs[i]) is root for i in step.memory.destroyed):
                cause = history.reason_of(step.node) or history.made_by(step.node)
                return f"  The memory of {var} was overwritten by {step.node}\n", cause
        return "", None

    def free(self):
        """Forget every value between inputs and outputs."""
        if self.running:
            raise RuntimeError("The function is running: its memory cannot be freed")
        for step in self.steps:
            step.last = {}

    def start_timing(self, ignore_first_call=False):
        raise Exception("DebugMode do not support profiling.")


class _Step:
    """One Apply of the optimized graph: its implementations, run and compared."""

    def __init__(self, settings, thunk, replay, replayed, trial=None):
        self.settings, self.replay = settings, replay
        self.node = node = thunk.node
        self.input_storages, self.output_storages = thunk.inputs, thunk.outputs
        self.c = thunk if hasattr(thunk, "cthunk") and settings.check_c_code else None
        self.python = Python(node)
        #: runs it on a device, if there is one
        self.trial = trial
        self.memory = Memory(node)
        self.agree = [comparison(var) for var in node.outputs]
        # the value is known if the Apply still computes what it did when it came in
        same = replayed is not None and not replayed.c and _computes_alike(replayed.op, node.op)
        self.as_it_came = replayed if same else None
        self.checked_before = replayed is not None and not is_of_the_library(node.op)
        self.before = []
        #: (variable, expected value, value) of an output that differs from what was computed of
        #: the Apply as it came in
        self.different = None
        #: outputs of the last call, for output storage 'initial'
        self.last = {}

    def __call__(self):
        self.different, self._same_as_known = None, False
        inputs = [storage[0] for storage in self.input_storages]
        self.before = self.memory.snapshots(inputs)
        outputs = self._run_python(inputs) if self.c is None else self._run_c(inputs)
        if self.trial is not None:
            self._try_on_device(outputs)
        if self.settings.warn_input_not_reused:
            self.memory.warn_unused(inputs, outputs)
        if self.settings.check_isfinite:
            for var, value in zip(self.node.outputs, outputs, strict=True):
                if not finite(var, value):
                    raise debugreports.invalid_value(
                        var, value, "perform output", "non-finite elements not allowed"
                    )
        if not self._same_as_known:
            self._compare_with_replay(outputs)
        if preallocated.is_wanted(self.settings.check_preallocated_output):
            self._try_output_storage(outputs)
        self.before = self.before if self.different is not None else []

    def _run_python(self, inputs):
        """Run ``perform`` where nothing else runs; it works in the memory of the graph."""
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

    def _run_c(self, inputs):
        """Run C in the memory of the graph and, if it is to be checked, Python on copies."""
        expected = None
        if self.settings.check_py_code:
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

    def _try_on_device(self, outputs):
        """Run it on the device too; the results must be the same but for roundings."""
        found, after = self.trial(self._inputs())
        for k, (a, b) in enumerate(zip(outputs, found, strict=True)):
            if not self.agree[k](a, b):
                raise debugreports.bad_output(
                    self.node.outputs[k], "perform", a, "the device", b, self._inputs()
                )
        for i, (before, now) in enumerate(zip(self.before, after, strict=True)):
            if i not in self.memory.destroyed and not before.same(now):
                raise debugreports.bad_destroy_map(self.node, i, before.restored(), now, "cuda")

    def _known(self):
        """Return the outputs that the replay computed from the same inputs, or None."""
        if self.as_it_came is None:
            return None
        found = self.replay.values_of(self.as_it_came.reads)
        if found is None:
            return None
        for known, value in zip(found, self.before, strict=True):
            if not value.same(known):
                return None
        return self.replay.values_of(self.as_it_came.writes)

    def _compare_c(self, expected, outputs):
        """Compare results of C with Python's, and go on with Python's in the memory of C's.

        Otherwise a rounding that differs could turn a comparison further on.
        """
        wanted = self.settings.require_matching_strides
        for k, (a, b) in enumerate(zip(expected, outputs, strict=True)):
            var = self.node.outputs[k]
            if not self.agree[k](a, b) and not explains_alone(self.node, self._inputs(), k, a, b):
                raise debugreports.bad_output(
                    var, "perform", a, "c_code", b, self._inputs(), BadCLinkerOutput
                )
            if not isinstance(b, np.ndarray):
                self.output_storages[k][0] = a
                continue
            if wanted and a.strides != b.strides:
                if wanted > 1:
                    raise debugreports.bad_strides(var, a, b, self._inputs())
                _log.warning(debugreports.stride_text(var, a, b))
            if b.flags.writeable:
                b[...] = a

    def _inputs(self):
        """Return the inputs as they were before the Apply ran."""
        return [one.restored() for one in self.before]

    def _compare_with_replay(self, outputs):
        for var, agree, value in zip(self.node.outputs, self.agree, outputs, strict=True):
            expected = self.replay.value(var)
            if expected is None or agree(expected, value):
                continue
            if self.replay.excuses(var, expected, value):
                continue
            self.different = var, expected, value
            return

    def _try_output_storage(self, outputs):
        """Run again with output storage of every kind; the results must be the same."""
        settings = self.settings
        initial, self.last = self.last, dict(enumerate(private_copies(outputs)))
        reference = private_copies(outputs)
        for name, given in preallocated.layouts(
            self.node, reference, initial, settings.check_preallocated_output,
            settings.check_preallocated_output_ndim,
        ):  # fmt: skip
            if settings.check_py_code or self.c is None:
                storage = [[given.get(k)] for k in range(len(outputs))]
                results = self._python_with(storage, name)
                self._compare_storage(reference, results, f"py with {name} output")
            if self.c is not None and not self.memory.destroyed:
                results = self._c_with(given)
                for storage, value in zip(self.output_storages, outputs, strict=True):
                    storage[0] = value
                self._compare_storage(reference, results, f"c with {name} output")

    def _python_with(self, storage, name):
        try:
            return self.python(self._inputs(), storage)
        except Exception as error:  # whatever perform raises, it did not without this storage
            error.add_note(f"This was raised with output storage of the kind {name}.")
            raise

    def _c_with(self, given):
        for k, value in given.items():
            self.output_storages[k][0] = preallocated.filled(value)
        self.c()
        return [storage[0] for storage in self.output_storages]

    def _compare_storage(self, reference, results, name):
        for var, agree, a, b in zip(self.node.outputs, self.agree, reference, results, strict=True):
            if not agree(a, b):
                raise debugreports.bad_output(var, "Reference value", a, name, b, self._inputs())


def _computes_alike(before, now):
    """Return whether two Ops differ in nothing but where the library's own loop puts results."""
    if before is now:
        return not now.destroy_map
    return type(before) is type(now) is Elemwise and before.scalar_op == now.scalar_op


def registered_mode():
    """Return the mode named DEBUG_MODE."""
    return DebugMode(optimizer="fast_run")
