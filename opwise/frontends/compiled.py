"""A translated graph as a function that trusts its caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwise.compile.executable import Function
from opwise.compile.function import function
from opwise.compile.io import In, Out
from opwise.graph.variable import Variable


def compile_graph(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    mode: Any = None,
    name: str | None = None,
    profile: Any = None,
) -> Function:
    """Return a function whose calls neither check nor convert arguments: the caller has done so.

    Results may share memory with arguments and with each other where the graph says so: the library
    separates what must be apart. mode, profile: as of ``opwise.function``.
    """
    compiled = function(
        [In(var, borrow=True, autoname=False) for var in inputs],
        [Out(var, borrow=True) for var in outputs],
        mode=mode,
        name=name,
        profile=profile,
        on_unused_input="ignore",
    )
    compiled.trust_input = True
    return compiled
