"""The printers of tensor and scalar operations for ``pprint``; importing this registers them."""

from __future__ import annotations

from typing import Any

from opwise.graph.printing import (
    FunctionPrinter,
    IgnorePrinter,
    OperatorPrinter,
    PatternPrinter,
    PrinterState,
    pprint,
)
from opwise.graph.variable import Var
from opwise.scalar import dtypes
from opwise.scalar.op import OPS
from opwise.tensor.blas import Gemm
from opwise.tensor.creation import Alloc
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import FUNCTIONS, cast_elemwise
from opwise.tensor.join import Join, MakeVector
from opwise.tensor.subtensor import Subtensor, get_idx_list

__all__: list[str] = []

#: precedence of an operand that needs no parentheses, and of one that is followed by .T or [i]
_ALONE, _TIGHT = -1000, 1000

_OPERATORS = {
    "add": ("+", -2, "either"),
    "sub": ("-", -2, "left"),
    "mul": ("*", -1, "either"),
    "true_div": ("/", -1, "left"),
    "int_div": ("//", -1, "left"),
    "neg": ("-", 0, "either"),
    "pow": ("**", 1, "right"),
}


def _text(var: Var, pstate: PrinterState, precedence: int) -> str:
    result: str = pstate.pprinter.process(var, PrinterState(pstate, precedence=precedence))
    return result


class DimShufflePrinter:
    """Prints ``x.T`` for a transpose, and x if dimensions are only added on the left."""

    def process(self, output: Var, pstate: PrinterState) -> str:
        (x,) = output.owner.inputs
        order = output.owner.op.new_order
        while order and order[0] == "x":
            order = order[1:]
        if order == tuple(range(x.type.ndim)):
            result: str = pstate.pprinter.process(x, pstate)
            return result
        if order == tuple(reversed(range(x.type.ndim))):
            return f"{_text(x, pstate, _TIGHT)}.T"
        return f"DimShuffle{{{', '.join(map(str, order))}}}({_text(x, pstate, _ALONE)})"


class SubtensorPrinter:
    """Prints ``x[i, j]``; the bounds of slices by their types."""

    def process(self, output: Var, pstate: PrinterState) -> str:
        node = output.owner
        types = node.op.idx_list
        items = get_idx_list(node.inputs, types)
        texts = [
            self._slice(kind) if isinstance(kind, slice) else _text(item, pstate, _ALONE)
            for item, kind in zip(items, types, strict=True)
        ]
        return f"{_text(node.inputs[0], pstate, _TIGHT)}[{', '.join(texts)}]"

    @staticmethod
    def _slice(kind: slice) -> str:
        def bound(part: Any) -> str:
            return "" if part is None else part.dtype

        step = "" if kind.step is None else f":{bound(kind.step)}"
        return f"{bound(kind.start)}:{bound(kind.stop)}{step}"


class MakeVectorPrinter:
    """Prints ``[a, b]``."""

    def process(self, output: Var, pstate: PrinterState) -> str:
        return f"[{', '.join(_text(var, pstate, _ALONE) for var in output.owner.inputs)}]"


def _register() -> None:
    for name, how in _OPERATORS.items():
        pprint.assign(OPS[name], OperatorPrinter(*how))
    pprint.assign(OPS["mod"], OperatorPrinter("%", -1, "left"))
    for name, op in FUNCTIONS.items():
        pprint.assign(op, FunctionPrinter(name))
    for name, how in _OPERATORS.items():
        pprint.assign(FUNCTIONS[name], OperatorPrinter(*how))
    pprint.assign(FUNCTIONS["abs_"], PatternPrinter(("|%(0)s|", _ALONE)))
    pprint.assign(FUNCTIONS["second"], FunctionPrinter("fill"))
    pprint.assign(FUNCTIONS["identity"], IgnorePrinter())
    for dtype in dtypes.ALL:
        pprint.assign(cast_elemwise(dtype), FunctionPrinter(dtype))
    pprint.assign(DimShuffle, DimShufflePrinter())
    pprint.assign(Subtensor, SubtensorPrinter())
    pprint.assign(MakeVector, MakeVectorPrinter())
    pprint.assign(Join, FunctionPrinter("join"))
    pprint.assign(Alloc, FunctionPrinter("alloc"))
    pprint.assign(Dot, OperatorPrinter("\\dot", -1, "left"))
    for inplace, name in ((True, "gemm_inplace"), (False, "gemm_no_inplace")):
        pprint.assign(Gemm(inplace), FunctionPrinter(name))


_register()
