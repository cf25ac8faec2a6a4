"""Loops: ``scan`` repeats a step, a graph, inside a program."""

import importlib as _importlib

from opwise.graph import hooks
from opwise.loops import steps  # noqa: F401  (registers the lowering)
from opwise.loops.build import scan
from opwise.loops.op import Scan
from opwise.loops.returned import until
from opwise.loops.views import foldl, foldr, map, reduce

__all__ = ["Scan", "foldl", "foldr", "map", "reduce", "scan", "until"]

hooks.load_with["opwise.gpu"].append("opwise.loops.ondevice")
for _module in hooks.load_with[__name__]:
    _importlib.import_module(_module)
