"""DebugMode: runs everything more than one way and says who broke it where the ways disagree.

Each call runs the graph as written in numpy, and the optimized graph Apply by Apply in numpy and in
C. Values are compared after every Apply, results at the end; what an Op says about the memory of
its inputs and outputs is checked.
"""

from __future__ import annotations

import numpy as np

from opwise.config import config
from opwise.errors import (
    BadCLinkerOutput,
    BadDestroyMap,
    BadOptimization,
    BadViewMap,
    InvalidValueError,
)
from opwise.graph import aliasing, provenance
from opwise.linkers.base import Linker, OpWiseCLinker, PerformLinker
from opwise.modes.mode import Mode
from opwise.scalar import dtypes


class DebugMode(Mode):
    """A mode that checks rewrites and implementations on the values of every call.

    optimizer: which rewrites are checked. check_c_code, check_py_code: which implementations run.
    check_isfinite: whether NaN and infinities are errors. stability_patience,
    check_preallocated_output and require_matching_strides are accepted and kept for further checks.
    None stands for the flag DebugMode.*.
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
        self.check_preallocated_output = _or(
            check_preallocated_output, flags.check_preallocated_output.split(":")
        )
        self.require_matching_strides = _or(require_matching_strides, flags.check_strides)
        if not (self.check_c_code or self.check_py_code):
            raise ValueError("DebugMode has to check at least one of c and py code")
        super().__init__(DebugLinker(), optimizer)

    def optimize(self, fgraph):
        """Optimize, and keep the graph as it was written to compare results with."""
        fgraph.as_written = fgraph.clone()
        return super().optimize(fgraph)

    def bound_linker(self, fgraph):
        linker = super().bound_linker(fgraph)
        linker.settings = self
        return linker

    def __str__(self):
        return f"DebugMode(linker={self.linker}, optimizer={self.provided_optimizer})"

    def __getstate__(self):
        state = dict(self.__dict__)
        state["linker"] = None
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.linker = DebugLinker()


def _or(value, default):
    return default if value is None else value


class DebugLinker(Linker):
    """Links a graph for DebugMode: numpy and C side by side, and the graph as written."""

    makers = ("c", "perform")
    settings = None

    def make_all(self, input_storage=None, output_storage=None, storage_map=None):
        python, c = PerformLinker(), OpWiseCLinker()
        c.machine = "plain"
        c.generate_kernels = self.generate_kernels
        python_all = python.accept(self.fgraph).make_all()
        c_all = c.accept(self.fgraph).make_all(input_storage, output_storage, storage_map)
        self.cimpl, self.report = c.cimpl, c.report
        reference = PerformLinker().accept(self.fgraph.as_written).make_all()
        machine = _DebugMachine(self.settings, c_all[0], python_all[0], reference, self.cimpl)
        return machine, *c_all[1:]


class _DebugMachine:
    """Runs one call every way and compares."""

    def __init__(self, settings, c, python, reference, cimpl):
        self.settings = settings
        self.c = c
        self.python = python
        self.reference, self.reference_inputs, self.reference_outputs = reference[:3]
        self.cimpl = cimpl
        c.wrapper = self._both
        self.thunk_groups = list(zip(python.thunks, c.thunks, strict=True))

    def __call__(self):
        program = self.c.program
        values = [self.c.storages[cell][0] for cell in program.inputs]
        for var, value in zip(program.fgraph.inputs, values, strict=True):
            self._check_value(var, value, "Graph Input")
        # the graph as written has inputs in the same order
        for container, value in zip(self.reference_inputs, values, strict=True):
            container.storage[0] = _copied(value)
        for cell, value in zip(self.python.program.inputs, values, strict=True):
            self.python.storages[cell][0] = _copied(value)
        self.reference()
        self.c()
        for k, cell in enumerate(program.outputs):
            self._compare_with_written(k, self.c.storages[cell][0])

    def _both(self, k, node, c_thunk):
        """Run an Apply in numpy and in C, as far as it has both, and compare."""
        python_thunk = self.python.thunks[k]
        run_python = self.settings.check_py_code or not self.cimpl[k]
        run_c = self.settings.check_c_code and self.cimpl[k]
        before = [_copied(cell[0]) for cell in python_thunk.inputs]
        if run_python:
            python_thunk()
            _check_destroy_map(node, python_thunk, before)
            _check_view_map(node, python_thunk)
        if run_c or not run_python:
            c_thunk()
        if run_python and not run_c:
            for mine, theirs in zip(c_thunk.outputs, python_thunk.outputs, strict=True):
                mine[0] = _copied(theirs[0])
        elif run_python:
            for out, expected, value in zip(
                node.outputs, python_thunk.outputs, c_thunk.outputs, strict=True
            ):
                if not _equal(out, expected[0], value[0]):
                    raise BadCLinkerOutput(
                        _report("perform", "c_code", node, out, before, expected[0], value[0])
                    )
        else:
            for mine, theirs in zip(python_thunk.outputs, c_thunk.outputs, strict=True):
                mine[0] = _copied(theirs[0])
        for out, value in zip(node.outputs, c_thunk.outputs, strict=True):
            self._check_value(out, value[0], "perform output", node)

    def _check_value(self, var, value, hint, node=None):
        if value is None:
            return
        if not var.type.is_valid_value(value):
            raise InvalidValueError(
                f"{hint} '{var}' has an invalid value: {var.type.value_validity_msg(value)}"
                + _where(node)
            )
        if (
            self.settings.check_isfinite
            and (var._tag is None or getattr(var.tag, "nan_guard_mode_check", True))
            and isinstance(value, np.ndarray)
            and value.dtype.kind in "fc"
            and not np.all(np.isfinite(value))
        ):
            raise InvalidValueError(
                f"{hint} '{var}' has invalid value {_short(value)}: non-finite elements not allowed"
                + _where(node)
            )

    def _compare_with_written(self, k, value):
        expected = self.reference_outputs[k].storage[0]
        fgraph = self.c.program.fgraph
        out, written = fgraph.outputs[k], fgraph.as_written.outputs[k]
        if _equal(out, expected, value):
            return
        raise BadOptimization(
            f"The optimized graph computes another value for output {k} than the graph as written."
            f"\n  as written: {written}\n  optimized:  {out}\n"
            + _differences(expected, value)
            + _where(written.owner)
        )

    def free(self):
        """Forget every value between inputs and outputs."""
        self.c.free()
        self.python.free()

    def start_timing(self, ignore_first_call=False):
        raise Exception("DebugMode do not support profiling.")


def _equal(var, expected, value):
    """Return whether two values of a variable agree; its tag may say how they are compared."""
    own = var._tag and getattr(var.tag, "values_eq_approx", None)
    return (own or var.type.values_eq_approx)(expected, value)


def _check_destroy_map(node, thunk, before):
    """Raise BadDestroyMap if an input changed that the Op does not say it overwrites."""
    declared = set(aliasing.destroyed_inputs(node))
    for i, (cell, old) in enumerate(zip(thunk.inputs, before, strict=True)):
        new = cell[0]
        if i in declared or not isinstance(new, np.ndarray) or new.tobytes() == old.tobytes():
            continue
        raise BadDestroyMap(
            f"\n  node: {node}\n  perform: py\n  destroy_map: {node.op.destroy_map}\n"
            f"  changed input idx: {i}\n  changed input type: {node.inputs[i].type}\n"
            f"  repr (old val): {_short(old)}\n  repr (new val): {_short(new)}\n"
            "  The Op overwrites this input: its destroy_map must say so, or it must copy.\n"
            + _where(node)
        )


def _check_view_map(node, thunk):
    """Raise BadViewMap if an output shows the memory of an input and the Op does not say so."""
    for k, cell in enumerate(thunk.outputs):
        declared = aliasing.viewed_inputs(node, k)
        value = cell[0]
        aliased = [
            i
            for i, given in enumerate(thunk.inputs)
            if i not in declared
            and isinstance(value, np.ndarray)
            and isinstance(given[0], np.ndarray)
            and np.may_share_memory(value, given[0])
        ]
        if aliased:
            raise BadViewMap(
                f"\n  node: {node}\n  view_map: {node.op.view_map}\n"
                f"  destroy_map: {node.op.destroy_map}\n  aliased output: {k}\n"
                f"  aliased to inputs: {aliased}\n"
                "  The output lies in the memory of these inputs: view_map must say so, or perform "
                "must copy.\n" + _where(node)
            )


def _copied(value):
    return np.array(value) if isinstance(value, np.ndarray) else value


def _short(value):
    text = str(value)
    return text if len(text) <= 100 else text[:100] + "..."


def _where(node):
    if node is None:
        return ""
    lines = dict.fromkeys(filter(None, map(provenance.user_line, node.origins)))
    return f"\n  Apply: {node}\n" + "".join(f'  File "{f}", line {n}\n' for f, n in lines)


def _report(first, second, node, out, inputs, expected, value):
    return (
        f"\n  Apply   : {node}\n  op      : {type(node.op)}\n"
        f"  Outputs Type: {[o.type for o in node.outputs]}\n"
        f"  Inputs Type : {[v.type for v in node.inputs]}\n"
        f"  Inputs Shape: {[getattr(v, 'shape', None) for v in inputs]}\n"
        f"  Inputs Strides: {[getattr(v, 'strides', None) for v in inputs]}\n"
        f"  Inputs values: {[_short(v) if np.size(v) <= 10 else 'not shown' for v in inputs]}\n"
        f"  Bad Variable: {out}\n  thunk1  : {first}\n  thunk2  : {second}\n"
        + _differences(expected, value)
        + _where(node)
    )


def _differences(expected, value):
    """Return shapes, dtypes and the largest difference of two arrays, also in ulp."""
    text = (
        f"  Expected: shape {expected.shape}, dtype {expected.dtype}: {_short(expected)}\n"
        f"  Value   : shape {value.shape}, dtype {value.dtype}: {_short(value)}\n"
    )
    if expected.shape != value.shape or expected.dtype != value.dtype or not expected.size:
        return text
    if expected.dtype.name in dtypes.FLOATS:
        with np.errstate(all="ignore"):
            apart = np.abs(expected - value)
            apart = np.where(np.isnan(apart), np.inf, apart)
            at = np.unravel_index(int(np.argmax(apart)), apart.shape)
            ulp = apart[at] / np.spacing(np.abs(expected[at]))
        text += (
            f"  Max Abs Diff: {apart[at]} ({ulp:.3g} ulp) at index {tuple(map(int, at))}: expected "
            f"{expected[at]}, got {value[at]}\n"
        )
    return text


def registered_mode():
    """Return the mode named DEBUG_MODE."""
    return DebugMode(optimizer="fast_run")
