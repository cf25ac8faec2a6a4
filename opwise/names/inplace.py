"""``theano.tensor.inplace``: the elementwise functions that overwrite their first argument.

A function that is compiled from a graph with them needs ``accept_inplace=True``.
"""

from opwise.graph.printing import FunctionPrinter, OperatorPrinter, pprint
from opwise.scalar import OPS, LogicalComparison, transfer_type
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.elemwise import Elemwise

_OPERATORS = {
    "add": OperatorPrinter("+=", -2, "either"),
    "mul": OperatorPrinter("*=", -1, "either"),
    "sub": OperatorPrinter("-=", -2, "left"),
    "neg": OperatorPrinter("-=", 0, "either"),
    "true_div": OperatorPrinter("/=", -1, "left"),
    "int_div": OperatorPrinter("//=", -1, "left"),
    "pow": OperatorPrinter("**=", 1, "right"),
}


def _overwriting(name):
    """Return the Elemwise of a scalar operation, which overwrites its first input.

    Its output has the dtype of that input; a comparison's is bool, so that it takes only bools.
    """
    op = OPS[name]
    if not isinstance(op, LogicalComparison):
        op = type(op)(transfer_type(0))
    made = Elemwise(op, {0: 0}, name=f"{name}_inplace")
    pprint.assign(made, _OPERATORS.get(name) or FunctionPrinter(f"{name}="))
    return made


_inplace = {f"{name}_inplace": _overwriting(name) for name in OPS}
globals().update(_inplace)
fill_inplace = _inplace["second_inplace"]
pprint.assign(fill_inplace, FunctionPrinter("fill="))


def transpose_inplace(x):
    """Return the transpose of ``x`` as a view."""
    return DimShuffle(x.broadcastable, range(x.ndim - 1, -1, -1), inplace=True)(x)
