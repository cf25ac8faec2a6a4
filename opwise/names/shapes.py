"""``theano.tensor.utils.shape_of_variables``: the shapes in a graph as numbers."""

from __future__ import annotations

from opwise.compile.function import function
from opwise.graph.variable import Constant
from opwise.optimizers.shapefeature import ShapeFeature


def shape_of_variables(fgraph, input_shapes):
    """Return {variable: shape} of all tensors of a graph, given {input: shape}; shapes are tuples.

    Attaches a ShapeFeature to the graph, unless it has one. Raises ValueError for a variable that
    is no input of the graph: FunctionGraph(..., clone=False) keeps the variables that it is given.
    """
    unknown = [str(x) for x in input_shapes if x not in fgraph.inputs]
    if unknown:
        raise ValueError(
            f"{', '.join(unknown)} is no input of the graph, which may be a copy: make it by "
            "FunctionGraph(inputs, outputs, clone=False)"
        )
    if fgraph.shape_feature is None:
        fgraph.attach_feature(ShapeFeature())
    shape_of = fgraph.shape_feature.shape_of
    shapes = {x: shape_of[x] for x in fgraph.variables if shape_of[x] is not None}
    given = {
        length: n
        for x in fgraph.inputs
        for length, n in zip(shapes[x], input_shapes[x], strict=True)
        if not isinstance(length, Constant)
    }
    lengths = list(dict.fromkeys(length for shape in shapes.values() for length in shape))
    numbers = function(list(given), lengths, on_unused_input="ignore")(*given.values())
    found = dict(zip(lengths, numbers, strict=True))
    return {x: tuple(found[length] for length in shape) for x, shape in shapes.items()}
