"""What DebugMode checks of one Apply: values fit their types, memory is used as declared."""

from __future__ import annotations

import copy
import logging

import numpy as np

from opwise.graph import aliasing
from opwise.graph.type import Type
from opwise.modes import debugreports
from opwise.optimizers.folding import params
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.type import TensorType

_log = logging.getLogger("opwise.debugmode")

#: up to so many bytes it is quicker to compare two copies of memory than to compute
_SMALL = 8192
#: values that nothing can change
_FIXED = (int, float, complex, str, bytes, bool, type(None), slice, np.generic)


def copied(value):
    """Return a value in memory of its own."""
    if isinstance(value, np.ndarray):
        return np.array(value)
    return value if isinstance(value, _FIXED) else copy.deepcopy(value)


def private_copies(inputs):
    """Return copies; what is read twice is one copy."""
    copies: dict = {}
    for value in inputs:
        if id(value) not in copies:
            copies[id(value)] = value.copy("K") if type(value) is np.ndarray else copied(value)
    return [copies[id(value)] for value in inputs]


def is_of_the_library(op):
    """Return whether an Op is one that comes with opwise."""
    return type(op).__module__.partition(".")[0] == "opwise"


class Snapshot:
    """What a value is at one moment: for an array its bytes, which is quicker than another array.

    type_: of the variable that has the value.
    """

    __slots__ = ("bytes", "dtype", "shape", "strides", "type", "value")

    def __init__(self, value, type_):
        self.type = type_
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self.bytes, self.shape, self.dtype = value.tobytes(), value.shape, value.dtype
            self.strides = value.strides
            self.value = None
        else:
            self.bytes = None
            self.value = copied(value)

    def same(self, now):
        """Return whether a value is, bit for bit, what was there."""
        if self.bytes is not None:
            return (
                isinstance(now, np.ndarray)
                and self.bytes == now.tobytes()
                and self.shape == now.shape
                and self.dtype == now.dtype
            )
        before = self.value
        if before is now:
            return True
        if isinstance(before, np.ndarray) and isinstance(now, np.ndarray):
            return before.shape == now.shape and bool(self.type.values_eq(before, now))
        return not _can_compare(before, self.type) or bool(self.type.values_eq(before, now))

    def restored(self):
        """Return a value like the one that was there, in memory of its own."""
        if self.bytes is None:
            return copied(self.value)
        array = np.frombuffer(self.bytes, self.dtype).reshape(self.shape)
        # dimensions in memory as they were: the one with the largest steps first
        order = sorted(range(array.ndim), key=lambda k: -abs(self.strides[k]))
        return array.transpose(order).copy().transpose(np.argsort(order).tolist())


def _can_compare(value, type_):
    """Return whether the equality of two values of a type says anything."""
    own = type_.values_eq.__func__ if hasattr(type_.values_eq, "__func__") else type_.values_eq
    return own is not Type.values_eq.__func__ or type(value).__eq__ is not object.__eq__


def _all(truths):
    """Return whether all elements of a boolean array hold, without numpy's overhead if small."""
    return b"\0" not in truths.tobytes() if truths.size <= _SMALL else bool(truths.all())


# --- equality -------------------------------------------------------------------------------------


def comparison(*variables):
    """Return a function (expected, value) that tells whether values of variables agree.

    The first variable whose tag has ``values_eq_approx`` decides, else the type of the last one.
    """
    type_ = variables[-1].type
    for var in variables:
        own = var._tag and getattr(var.tag, "values_eq_approx", None)
        if own:
            return lambda expected, value: expected is value or bool(own(expected, value))
    if type(type_) is TensorType:
        return _close(type_)

    def agree(expected, value):
        if expected is value or not _can_compare(expected, type_):
            return True
        return bool(type_.values_eq_approx(expected, value))

    return agree


def _close(type_):
    """Return the comparison of tensors: what ``values_eq_approx`` says, sooner where they agree."""
    rtol, atol = type_.tolerances()
    is_real = type_.numpy_dtype.kind == "f"

    def agree(expected, value):
        if expected is value:
            return True
        if expected.shape != value.shape or expected.dtype != value.dtype:
            return False
        if expected.nbytes <= _SMALL and expected.tobytes() == value.tobytes():
            return True
        if is_real and _all(abs(expected - value) <= atol + rtol * abs(value)):
            return True
        return type_.values_eq_approx(expected, value)

    return agree


# --- validity -------------------------------------------------------------------------------------


def fitting(variable):
    """Return a function of a value that tells whether it is one of the variable's type."""
    type_ = variable.type
    if type(type_) is not TensorType:
        return type_.is_valid_value
    dtype, ndim, limited = type_.numpy_dtype, type_.ndim, any(type_.broadcastable)

    def fits(value):
        plain = type(value) is np.ndarray and value.dtype == dtype and value.ndim == ndim
        return (plain and not limited) or type_.is_valid_value(value)

    return fits


def misfit(type_, value):
    """Return in what a value does not fit a type."""
    if isinstance(type_, TensorType) and not isinstance(value, np.ndarray):
        return f"{type_} expected a ndarray object.", value, type(value)
    try:
        type_.filter(value, strict=True)
    except (TypeError, ValueError) as error:
        return str(error)
    return f"not a value of {type_}"


def finite(variable, value):
    """Return whether a value has neither NaN nor infinities, or may have them."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
        return True  # nothing that could be NaN
    if _all(np.isfinite(value)):
        return True
    return variable._tag is not None and not getattr(variable.tag, "nan_guard_mode_check", True)


# --- an implementation in Python ------------------------------------------------------------------


class Python:
    """Runs ``perform`` of an Apply; what it returns has been checked against the types.

    To be called where numpy's warnings are ignored.
    """

    def __init__(self, node):
        self.node = node
        self.perform = node.op.perform
        self.params = params(node)
        self.results = [_Result(var, bool(node.op.view_map.get(var.index))) for var in node.outputs]
        # what perform does, without its care for warnings: none comes out of DebugMode
        plain = type(node.op).perform is Elemwise.perform
        self.compute = node.op.computation(node) if plain else None

    def __call__(self, inputs, storage=None):
        """Return the outputs. storage: what the Op finds in its output storage."""
        for value in inputs:
            if value is None:
                self._check_given(inputs)
        if storage is None:
            if self.compute is not None:
                return [
                    check(value)
                    for check, value in zip(self.results, self.compute(inputs), strict=True)
                ]
            storage = [[None] for _ in self.results]
        self.perform(self.node, inputs, storage, *self.params)
        return [check(storage[0]) for check, storage in zip(self.results, storage, strict=True)]

    def _check_given(self, inputs):
        for value, var in zip(inputs, self.node.inputs, strict=True):
            if value is None and isinstance(var.type, TensorType):
                raise ValueError("expected an ndarray, not None")


class _Result:
    """Checks what an Op made of an output, and returns it as what follows may use it.

    is_view: whether the Op says that it lies in the memory of an input.
    """

    def __init__(self, variable, is_view):
        self.variable, self.is_view = variable, is_view
        self.fits = fitting(variable)
        type_ = variable.type
        self.is_array = isinstance(type_, TensorType)
        plain = type(type_) is TensorType
        self.dtype = type_.numpy_dtype if plain else None
        self.ndim = type_.ndim if plain else -1
        #: the dimensions that have a length of 1
        self.ones = [d for d in range(self.ndim) if type_.broadcastable[d]]

    def __call__(self, value):
        if (
            type(value) is np.ndarray
            and value.ndim == self.ndim
            and value.dtype == self.dtype
            and value.flags.writeable
        ):
            for dim in self.ones:
                if value.shape[dim] != 1:
                    break
            else:
                return value
        if self.is_array:
            if type(value) is np.ndarray:
                if not value.flags.writeable and not self.is_view:
                    value = np.array(value)  # what comes after may overwrite it
            elif isinstance(value, np.generic) and not self.variable.type.ndim:
                value = np.asarray(value)
        if not self.fits(value):
            out = self.variable
            raise debugreports.invalid_value(out, value, "perform output", misfit(out.type, value))
        return value


class Memory:
    """What an Apply says of the memory of its inputs and outputs, and whether that is so."""

    def __init__(self, node):
        self.node = node
        self.destroyed = set(aliasing.destroyed_inputs(node))
        self.viewed = [aliasing.viewed_inputs(node, k) for k in range(len(node.outputs))]
        self.types = [var.type for var in node.inputs]
        self.warned = not (node.op.destroy_map or node.op.view_map)

    def snapshots(self, inputs):
        """Return a Snapshot of each input, to be given to ``check``."""
        return [Snapshot(value, type_) for value, type_ in zip(inputs, self.types, strict=True)]

    def check(self, before, inputs, outputs, perform):
        """Raise BadDestroyMap or BadViewMap.

        before: snapshots of the inputs from before ``perform`` ('py' or 'c') ran on ``inputs``.
        """
        for i, (old, new) in enumerate(zip(before, inputs, strict=True)):
            if i in self.destroyed or old.same(new):
                continue
            # it may be, or lie in, the memory of an input that is overwritten by declaration
            if not any(share(new, inputs[j]) for j in self.destroyed):
                raise debugreports.bad_destroy_map(self.node, i, old.restored(), new, perform)
        for k, value in enumerate(outputs):
            if isinstance(value, np.ndarray) and value.size:
                self._check_views(k, value, inputs)
        self.check_outputs(outputs)

    def _check_views(self, k, value, inputs):
        declared = self.viewed[k]
        if value.flags.owndata:
            for given in inputs:
                if given is value or getattr(given, "base", None) is value:
                    break
            else:
                return  # memory that is its own, and of which no input is a view
        found = []
        for i, given in enumerate(inputs):
            if i in declared or not isinstance(given, np.ndarray) or not share(value, given):
                continue
            # inputs that lie in the same memory as the declared one are no further views
            if not any(share(inputs[j], given) for j in declared):
                found.append(i)
        if found:
            raise debugreports.bad_view_map(self.node, k, value, inputs=found)

    def check_outputs(self, outputs):
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
                    raise debugreports.bad_view_map(node, k, value, others=[other])

    def warn_unused(self, inputs, outputs):
        """Log, once, where an Op could have worked in the memory of an input and did not."""
        if self.warned:
            return
        op = self.node.op
        for what, maps in (
            ("destroyed was not changed for", op.destroy_map),
            ("viewed but new memory allocated by", op.view_map),
        ):
            for k, indices in maps.items():
                value = outputs[k]
                if (
                    indices
                    and isinstance(value, np.ndarray)
                    # memory of one element is not worth the effort, of none there is nothing
                    and value.size > 1
                    and not share(value, inputs[indices[0]])
                    # elements that lie apart may have to be copied, as by a Reshape
                    and (maps is op.destroy_map or _is_compact(inputs[indices[0]]))
                ):
                    self.warned = True
                    _log.warning(
                        "Optimization Warning: input idx %d marked as %s node '%s'",
                        indices[0], what, self.node,
                    )  # fmt: skip


def _is_compact(value):
    return not isinstance(value, np.ndarray) or value.flags.c_contiguous


def share(a, b):
    """Return whether two values have memory in common."""
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return a is b and not isinstance(a, _FIXED)
    if not np.may_share_memory(a, b):
        return False
    try:
        return bool(np.shares_memory(a, b, max_work=100_000))
    except np.exceptions.TooHardError:
        return True


def _is_read(variable):
    return any(client != "output" for client, _ in variable._clients or ())
