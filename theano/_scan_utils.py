"""``theano.scan_module.scan_utils``: the helpers that need no loop."""

import copy
import functools
import operator

import numpy as np

import opwise.tensor as T
from opwise.compile.updates import OrderedUpdates
from opwise.errors import NotScalarConstantError
from opwise.graph.apply import Apply
from opwise.graph.traversal import clone_replace, inputs, io_toposort
from opwise.graph.variable import Constant, get_test_value
from opwise.loops.returned import parse
from opwise.scalar.types import Scalar, get_scalar_type
from opwise.tensor.creation import alloc_empty


def safe_new(x, tag="", dtype=None):
    """Return a new variable like ``x``, named ``x.name + tag``; of a constant a copy.

    dtype: of the new variable (default: that of x). The new variable has a copy of the test value.
    """
    cast = dtype is not None and x.type.dtype != dtype
    if isinstance(x, Constant):
        new = x.type.clone(dtype).make_constant(x.data.astype(dtype)) if cast else x.clone()
        new.name = x.name
        return new
    if isinstance(x.type, Scalar):
        new = (get_scalar_type(dtype) if cast else x.type).make_variable()
    else:
        new = (x.type.clone(dtype) if cast else x.type).make_variable()
    new.name = None if x.name is None else x.name + tag
    if hasattr(x.tag, "test_value"):
        value = copy.deepcopy(get_test_value(x))
        new.tag.test_value = np.asarray(value).astype(dtype) if cast else value
    return new


def expand_empty(tensor_var, size):
    """Return a tensor with ``size`` more rows, whose elements are not set."""
    if isinstance(size, int) and size == 0:
        return tensor_var
    rows, *lengths = (tensor_var.shape[i] for i in range(tensor_var.ndim))
    longer = alloc_empty(tensor_var.dtype)(rows + size, *lengths)
    result = T.set_subtensor(longer[:rows], tensor_var)
    result.tag.nan_guard_mode_check = False
    return result


def isNaN_or_Inf_or_None(x):
    """Return whether ``x`` is None, a constant text, or a number or constant that is not finite."""
    if x is None or (isinstance(x, Constant) and isinstance(x.data, str)):
        return True
    try:
        return bool(not np.isfinite(T.get_scalar_constant_value(x)))
    except (TypeError, ValueError, NotScalarConstantError):  # it is not known
        return False


def find_up(l_node, f_node):
    """Return whether the Apply ``f_node`` is needed to compute an Apply, or a list of variables."""
    outputs = l_node.outputs if isinstance(l_node, Apply) else l_node
    return f_node in io_toposort(inputs(outputs), outputs)


def get_updates_and_outputs(ls):
    """Sort what the function given to scan returned: (condition or None, outputs, updates)."""
    found = parse(ls)
    return found.condition, found.outputs, OrderedUpdates(found.updates)


def reconstruct_graph(inputs, outputs, tag=None):
    """Return copies of a graph's inputs, named ``x.name + tag``, and of its outputs."""
    new = [safe_new(x, tag or "") for x in inputs]
    return new, clone_replace(outputs, dict(zip(inputs, new, strict=True)))


def hash_listsDictsTuples(x):
    """Return a hash of dicts, lists and tuples, that does not depend on the order of elements."""
    if isinstance(x, dict):
        x = [*x, *x.values()]
    if isinstance(x, list | tuple):
        return functools.reduce(operator.xor, map(hash_listsDictsTuples, x), 0)
    return hash(x)
