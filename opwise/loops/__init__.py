"""Loops: ``scan`` repeats a step, a graph, inside a program."""

import importlib as _importlib

from opwise.loops import steps  # noqa: F401  (registers the lowering)
from opwise.loops.build import scan
from opwise.loops.op import Scan
from opwise.loops.returned import until
from opwise.loops.views import foldl, foldr, map, reduce
from opwise.optimizers import stages as _stages

__all__ = ["Scan", "foldl", "foldr", "map", "reduce", "scan", "until"]

for _module in _stages.LOOP_RULES:
    _importlib.import_module(_module)
