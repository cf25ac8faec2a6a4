"""Which rewrites are registered, and whether one of them, alone, has something to do in a graph."""

import inspect

from opwise import FunctionGraph
from opwise.compile import optdb
from opwise.graph.fgraph import Interface
from opwise.graph.provenance import rewriting
from opwise.optimizers.database import DB
from opwise.optimizers.merge import MergeOptimizer
from opwise.optimizers.navigators import EquilibriumOptimizer, TopoOptimizer
from opwise.optimizers.passes import Optimizer, SeqOptimizer
from opwise.sparse import SparseType
from opwise.tensor.type import tensor_type

#: a case takes its inputs by these names
TYPES = {
    **dict.fromkeys("xyz", ("float64", (False, False))),
    **dict.fromkeys("uvw", ("float64", (False,))),
    **dict.fromkeys("st", ("float64", ())),
    **dict.fromkeys("fg", ("float32", (False, False))),
    **dict.fromkeys("ij", ("int32", (False, False))),
    **dict.fromkeys("pq", ("bool", (False, False))),
    "r": ("float64", (True, False)),
    "c": ("float64", (False, True)),
    **dict.fromkeys("de", ("float64", (False,) * 4)),
    "m": ("float64", (False, False, False)),
    "b": ("int8", (False, False)),
    "h": ("uint8", (False, False)),
    "k": ("complex128", (False, False)),
    "n": ("int64", ()),
    "a": ("int64", (False,)),
    "csr": SparseType("csr", "float64"),
    "csc": SparseType("csc", "float64"),
    "whole": SparseType("csr", "int32"),
}
_FOLDING = "topo_constant_folding"


def registered():
    """Return every rewrite of the pipeline by name: rules and passes, those inside stages too."""
    found = {}

    def look_into(database):
        for name in database.names():
            entry = database[name]
            inside = getattr(entry, "db", entry)
            if isinstance(inside, DB):
                look_into(inside)
            else:
                found[name] = entry

    look_into(optdb)
    return found


def _passes(name, rewrites):
    """Return the passes that a name stands for: a stage, a pass, or one walk of a rule."""
    if name in rewrites:
        one = rewrites[name]
        return one if isinstance(one, Optimizer) else TopoOptimizer(one, ignore_newtrees=True)
    return optdb[name].query("+fast_run")


def graph_before(build, before="", folding=True):
    """Return the graph that ``build`` makes of inputs with its names, ready for a rewrite.

    Equal Applys are merged and constants folded; then these stages and rewrites run.
    """
    rewrites = registered()
    names = inspect.signature(build).parameters
    inputs = [_type(name)(name) for name in names]
    outputs = build(*inputs)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    fgraph = FunctionGraph(inputs, outputs, interface=Interface())
    passes = [MergeOptimizer(), optdb["ShapeOpt"]]
    if folding:
        passes.append(EquilibriumOptimizer([rewrites[_FOLDING]]))
    passes += [_passes(name, rewrites) for name in before.split()]
    with rewriting():
        SeqOptimizer(passes).optimize(fgraph)
    return fgraph


def _type(name):
    found = TYPES[name]
    return tensor_type(*found) if isinstance(found, tuple) else found


def times_applied(name, build, before=""):
    """Return how many Applys a rule, alone, replaces in one walk through a graph."""
    fgraph = graph_before(build, before, folding=name != _FOLDING)
    walk = TopoOptimizer(registered()[name], ignore_newtrees=True)
    with rewriting():
        record = walk.optimize(fgraph)
    fgraph.check_integrity()
    return sum(rule.applied for rule in record.rules)


def effect(name, build, before=""):
    """Return (a graph as text before a pass, and after it); the text tells what is overwritten."""
    fgraph = graph_before(build, before)
    old = _text(fgraph)
    with rewriting():
        registered()[name].optimize(fgraph)
    fgraph.check_integrity()
    return old, _text(fgraph)


def _text(fgraph):
    return [f"{type(n.op).__name__} {n} {n.op.destroy_map}" for n in fgraph.toposort()]
