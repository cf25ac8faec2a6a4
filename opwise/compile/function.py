"""``function``, which compiles a graph, and ``evaluate``, which compiles and runs one."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from opwise.compile.construct import Pairs, construct
from opwise.compile.executable import Function
from opwise.compile.io import Input, Outputs
from opwise.compile.maker import FunctionMaker, stats_for
from opwise.graph.provenance import is_internal
from opwise.graph.variable import Variable
from opwise.modes.mode import Mode, get_mode
from opwise.profiling import progress
from opwise.profiling.process import pause_garbage_collection

if TYPE_CHECKING:
    from opwise.profiling.stats import ProfileStats


def function(
    inputs: Sequence[Input],
    outputs: Outputs = None,
    mode: Mode | str | None = None,
    updates: Pairs | None = None,
    givens: Pairs | None = None,
    no_default_updates: bool | Sequence[Variable] = False,
    accept_inplace: bool = False,
    name: str | None = None,
    rebuild_strict: bool = True,
    allow_input_downcast: bool | None = None,
    profile: bool | str | ProfileStats | None = None,
    on_unused_input: str | None = None,
) -> Function:
    """Compile a graph and return the function that computes it.

    inputs: list of variables or In objects.
    outputs: a variable, an Out, a list or a dict with string keys of these, or None.
    mode: a Mode, or a name such as 'FAST_RUN' or 'PROFILE_MODE' (default: the flag mode).
    updates: (shared variable, new value) pairs. A call computes with the old values, then
    replaces them.
    givens: (variable, replacement) pairs.
    no_default_updates: ignore the ``default_update`` of all shared variables, or of a list of them.
    accept_inplace: allow Applys in the graph that overwrite inputs.
    name: printed in messages and profiles (default: the file and line of the call).
    rebuild_strict: givens must convert to the type of what they replace.
    allow_input_downcast: whether the conversion of arguments may lose precision (default: only
    from Python floats to a float32 floatX).
    profile: whether to record where the time of calls goes, in ``profile`` of the function
    (default: the flag profile). Or a text to print with the profile, or a ProfileStats, which
    several functions may share.
    on_unused_input: 'raise', 'warn' or 'ignore' (default: the flag on_unused_input).

    Returns a Function; a call returns arrays, one for each output.
    """
    mode = get_mode(mode)
    if not hasattr(mode, "optimize"):
        raise AttributeError(
            f"'{type(mode).__name__}' object has no attribute 'optimizer': mode is {mode!r}; it "
            "must be a Mode, the name of one, such as 'FAST_RUN', or None."
        )
    name = name or _caller()
    profile = stats_for(profile, name, mode)
    with progress.compiling(name), pause_garbage_collection():
        construction = construct(
            inputs,
            outputs,
            updates=updates,
            givens=givens,
            no_default_updates=no_default_updates,
            rebuild_strict=rebuild_strict,
            on_unused_input=on_unused_input,
            allow_input_downcast=allow_input_downcast,
        )
        maker = FunctionMaker(
            construction, mode, name=name, profile=profile, on_unused_input=on_unused_input,
            accept_inplace=accept_inplace,
        )  # fmt: skip
        return maker.create()


def _caller() -> str | None:
    """Return 'file:line' of the user's call."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and is_internal(frame.f_code):
        frame = frame.f_back
    if frame is None:
        return None
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def evaluate(variable: Variable, values: Mapping[Variable, Any]) -> Any:
    """Return the value of a variable for values of its inputs, for ``Variable.eval``.

    The function is compiled once for each set of inputs.
    """
    for key in values if isinstance(values, dict) else [values]:
        if not isinstance(key, Variable) or not isinstance(values, dict):
            raise TypeError(
                f"eval takes a dict from variables to their values, {{x: 1.0}}; {key!r} is not a "
                "variable."
            )
    cache = variable.__dict__.setdefault("_eval_cache", {})
    inputs = tuple(sorted(values, key=id))
    compiled = cache.get(inputs)
    if compiled is None:
        compiled = cache[inputs] = function(list(inputs), variable)
    return compiled(*(values[var] for var in inputs))
