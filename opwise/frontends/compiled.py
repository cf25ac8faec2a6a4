"""A translated graph as a function that trusts its caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from opwise.compile.construct import construct
from opwise.compile.executable import Function
from opwise.compile.io import In, Out
from opwise.compile.maker import FunctionMaker, stats_for
from opwise.compile.report import NO_FRONT_END, FrontEndTimes
from opwise.graph.variable import Variable
from opwise.modes.mode import get_mode
from opwise.profiling import progress
from opwise.profiling.process import pause_garbage_collection


def compile_graph(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    mode: Any = None,
    name: str | None = None,
    profile: Any = None,
    times: FrontEndTimes = NO_FRONT_END,
    new_values: Mapping[int, int] = MappingProxyType({}),
) -> Function:
    """Return a function whose calls neither check nor convert arguments: the caller has done so.

    Results may share memory with arguments and with each other where the graph says so: the library
    separates what must be apart. new_values: {position of an output: position of the input whose
    value the library replaces by it}, of generators, which may be advanced as they are. mode,
    profile: as of ``opwise.function``. times: what came before, for profiles.
    """
    mode = get_mode(mode)
    profile = stats_for(profile, name, mode)
    advanced = set(new_values.values())
    with progress.compiling(name), pause_garbage_collection():
        construction = construct(
            [
                In(var, borrow=True, mutable=k in advanced, autoname=False)
                for k, var in enumerate(inputs)
            ],
            [Out(var, borrow=True, becomes=new_values.get(k)) for k, var in enumerate(outputs)],
            on_unused_input="ignore",
        )
        compiled = FunctionMaker(
            construction, mode, name=name, profile=profile, on_unused_input="ignore",
            front_end=times,
        ).create()  # fmt: skip
    compiled.trust_input = True
    return compiled
