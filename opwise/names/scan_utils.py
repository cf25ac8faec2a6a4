"""``theano.scan_module.scan_utils``: helpers on graphs."""

import copy
import functools
import operator

import numpy as np

import opwise.tensor as T
from opwise.compile.construct import clone
from opwise.compile.fromgraph import OpFromGraph
from opwise.compile.shared import SharedVariable
from opwise.compile.updates import OrderedUpdates
from opwise.errors import NotScalarConstantError
from opwise.graph.apply import Apply
from opwise.graph.traversal import (
    ancestors,
    clone_replace,
    equal_computations,
    io_toposort,
)
from opwise.graph.traversal import inputs as graph_inputs
from opwise.graph.variable import Constant, get_test_value
from opwise.loops.op import Scan
from opwise.loops.returned import parse
from opwise.optimizers.shapefeature import inner_shapes
from opwise.scalar.types import Scalar, get_scalar_type
from opwise.tensor.creation import alloc_empty
from opwise.tensor.shape import shape_i_op

#: stands for an argument that old programs may not give any more
DEPRECATED_ARG = object()


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


expand = expand_empty


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
    return f_node in io_toposort(graph_inputs(outputs), outputs)


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


def forced_replace(out, x, y):
    """Return a copy of ``out`` with ``y`` for every variable that is computed as ``x`` is."""
    if out is None:
        return None
    equal = [var for var in ancestors([out]) if equal_computations([var], [x])]
    return clone(out, replace=dict.fromkeys(equal, y)) if equal else out


def traverse(out, x, x_copy, d, visited=None):
    """Put ``x`` with its replacement ``x_copy`` into the dict ``d`` if ``out`` needs it; return d.

    visited: a set of variables that are known not to need it, which is enlarged.
    """
    visited = set() if visited is None else visited
    waiting = [out]
    while waiting:
        var = waiting.pop()
        if var in visited:
            continue
        visited.add(var)
        if var is x:
            d[var] = x_copy
        elif var.owner is not None:
            waiting.extend(var.owner.inputs)
    return d


def infer_shape(outs, inputs, input_shapes):
    """Return the shapes of outputs, given those of inputs, as tuples of variables.

    input_shapes: for each input a tuple, or None if it has no shape.
    """
    for var, shape in zip(inputs, input_shapes, strict=True):
        if shape is not None and len(shape) != var.type.ndim:
            raise AssertionError(f"{var} has {var.type.ndim} dimensions, not those of {shape}")
    given = list(inputs)
    rest = [var for var in graph_inputs(outs) if var not in given and not isinstance(var, Constant)]
    shapes = [*input_shapes, *([None] * len(rest))]
    return inner_shapes(
        [*given, *rest], outs, [*given, *rest], shapes,
        read=lambda k, d: shape_i_op(d)(outs[k]),
    )  # fmt: skip


def map_variables(replacer, graphs, additional_inputs=()):
    """Return copies of graphs whose variables a function replaces.

    replacer: takes a variable and returns another, or the same. Variables of replacements are
    replaced too, and so are those inside loops and OpFromGraphs; variables that replacements need
    from outside become further inputs of these. additional_inputs: inputs that only replacements
    have; they may be left out.

    Raises NotImplementedError if a shared variable with an update would come into a loop or an
    OpFromGraph.
    """
    return _Mapping(replacer).mapped(graphs)


class _Mapping:
    """What a function has replaced so far."""

    def __init__(self, replacer):
        self.replacer = replacer
        #: replacements, which are not replaced again
        self.placed = set()

    def mapped(self, graphs, fixed=()):
        """Return copies of graphs; fixed: variables that stay."""
        graphs = list(graphs)
        done = {var: var for var in fixed}
        chosen, applys = {}, {}
        waiting = list(graphs)
        while waiting:
            var = waiting[-1]
            if var in done:
                waiting.pop()
                continue
            if var not in chosen:
                chosen[var] = self._chosen(var)
            new = chosen[var]
            node = new.owner
            if node is None or new in done:
                done[var] = done[new] = done.get(new, new)
                waiting.pop()
                continue
            missing = [each for each in node.inputs if each not in done]
            if missing:
                waiting.extend(missing)
                continue
            if node not in applys:
                applys[node] = self._copied(node, [done[each] for each in node.inputs])
            done[var] = done[new] = applys[node][new.index]
            waiting.pop()
        return [done[var] for var in graphs]

    def _chosen(self, var):
        """Return what stands for a variable before what it is computed from is replaced."""
        if var in self.placed:
            return var
        new = self.replacer(var)
        self.placed.add(new)
        return new

    def _copied(self, node, new_inputs):
        """Return the outputs of an Apply with other inputs, and a graph inside it replaced."""
        op, extra = node.op, []
        if isinstance(op, Scan | OpFromGraph):
            op, extra = self._inside(op)
        elif all(a is b for a, b in zip(node.inputs, new_inputs, strict=True)):
            return node.outputs
        return op.make_node(*new_inputs, *extra).outputs

    def _inside(self, op):
        """Return an Op with its graph replaced, and what it needs from outside."""
        loop = isinstance(op, Scan)
        own = op.inputs
        outputs = self.mapped(op.outputs, fixed=own)
        outside = [
            var for var in graph_inputs(outputs) if var not in own and not isinstance(var, Constant)
        ]
        for var in outside:
            if getattr(var, "update", None) is not None or (
                isinstance(var, SharedVariable) and getattr(var, "default_update", None) is not None
            ):
                raise NotImplementedError(
                    f"the shared variable {var} has an update, and a replacement brings it into "
                    f"{op}: replace it outside, or give the loop its value"
                )
        if not loop:
            kept = [var for var in outside if not isinstance(var, SharedVariable)]
            return OpFromGraph([*own, *kept], outputs, inline=op.is_inline, **op.kwargs), kept
        within = [var.type.make_variable(var.name) for var in outside]
        outputs = clone_replace(outputs, dict(zip(outside, within, strict=True)))
        new = Scan(
            [*own, *within], outputs, op.layout, op.name, op.truncate_gradient, op.mode,
            op.profile, op.allow_gc, op.fits, False,
        )  # fmt: skip
        return new, outside
