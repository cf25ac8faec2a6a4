"""``theano.gof.opt.check_stack_trace``."""

from __future__ import annotations

import warnings

from opwise.compile.executable import Function
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.op import Op


def check_stack_trace(f_or_fgraph, ops_to_check="last", bug_print="raise"):
    """Return whether the lines of the program are known for the outputs of some Ops of a graph.

    f_or_fgraph: a compiled function or a FunctionGraph. ops_to_check: 'last' (those that compute
    the outputs), 'all', an Op or a class of Ops, a list of these, or a function of an Apply.
    bug_print: 'raise', 'warn' or 'ignore' if the graph has no such Op.
    """
    if isinstance(f_or_fgraph, Function):
        fgraph = f_or_fgraph.maker.fgraph
    elif isinstance(f_or_fgraph, FunctionGraph):
        fgraph = f_or_fgraph
    else:
        raise ValueError(
            f"f_or_fgraph must be a compiled function or a FunctionGraph, not {f_or_fgraph!r}"
        )
    nodes = [node for node in _chosen(fgraph, ops_to_check) if node is not None]
    if not nodes:
        text = f"The graph has none of the Ops to check: {ops_to_check!r}"
        if bug_print == "raise":
            raise Exception(text)
        if bug_print == "warn":
            warnings.warn(text, stacklevel=2)
        elif bug_print != "ignore":
            raise ValueError(f"bug_print must be 'raise', 'warn' or 'ignore', not {bug_print!r}")
    return all(node.origins for node in nodes)


def _chosen(fgraph, wanted):
    """Return the Applys of a graph that ``ops_to_check`` names."""
    if isinstance(wanted, str):
        if wanted == "last":
            return [output.owner for output in fgraph.outputs]
        if wanted == "all":
            return list(fgraph.apply_nodes)
        raise ValueError(f"ops_to_check must be 'last' or 'all' if it is a text, not {wanted!r}")
    if isinstance(wanted, Op) or (isinstance(wanted, type) and issubclass(wanted, Op)):
        wanted = [wanted]
    if isinstance(wanted, list | tuple):
        classes = tuple(each for each in wanted if isinstance(each, type))
        return [
            node for node in fgraph.apply_nodes
            if node.op in wanted or isinstance(node.op, classes)
            or isinstance(getattr(node.op, "scalar_op", None), classes)
        ]  # fmt: skip
    if callable(wanted):
        return [node for node in fgraph.apply_nodes if wanted(node)]
    raise ValueError(f"ops_to_check must be a text, Ops, or a function, not {wanted!r}")
