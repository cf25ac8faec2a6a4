"""``function``: what users call to compile a graph."""

from __future__ import annotations

import sys

from opwise.compile.construct import construct
from opwise.compile.maker import FunctionMaker, collector_paused, stats_for
from opwise.graph import hooks
from opwise.graph.provenance import is_internal
from opwise.graph.variable import Variable
from opwise.modes.mode import get_mode


def function(
    inputs,
    outputs=None,
    mode=None,
    updates=None,
    givens=None,
    no_default_updates=False,
    accept_inplace=False,
    name=None,
    rebuild_strict=True,
    allow_input_downcast=None,
    profile=None,
    on_unused_input=None,
):
    """Compile a graph and return the function that computes it.

    inputs: list of variables or In objects. outputs: a variable or Out, a list, a dict with string
    keys, or None. mode: a name ('FAST_RUN', 'PROFILE_MODE', ...), a Mode, or None for the default.
    updates: pairs (shared variable, new value) that each call applies after computing with the old
    values. givens: pairs (variable, what to read instead). no_default_updates: ignore the
    ``default_update`` of shared variables, of all or of a list. accept_inplace: allow Applys in the
    graph that overwrite inputs. rebuild_strict: replacements must have the type of what they
    replace. allow_input_downcast: True converts arguments even where that loses precision, False
    never does. on_unused_input: 'raise', 'warn' or 'ignore'. profile: True, a text to print it by,
    or a ProfileStats, which may be that of several functions, to record where the time of calls
    goes; ``profile`` of the function is it. None: as the flag profile says; False: never.

    Returns a Function; a call returns arrays, one for each output.
    """
    mode = get_mode(mode)
    if not hasattr(mode, "optimize"):
        raise AttributeError(
            f"'{type(mode).__name__}' object has no attribute 'optimizer': mode is {mode!r}; give "
            "the name of a mode, such as 'FAST_RUN', a Mode, or None."
        )
    name = name or _caller()
    profile = stats_for(profile, name)
    with collector_paused():
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


def _caller():
    """Return 'file:line' of the user's call."""
    frame = sys._getframe(2)
    while frame is not None and is_internal(frame.f_code):
        frame = frame.f_back
    if frame is None:
        return None
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def evaluate(variable, values):
    """Compile ``variable`` as a function of the keys of ``values``, once, and run it."""
    for key in values if isinstance(values, dict) else [values]:
        if not isinstance(key, Variable) or not isinstance(values, dict):
            raise TypeError(
                f"eval takes a dict from variables to their values, {{x: 1.0}}; {key!r} is no "
                "variable."
            )
    cache = variable.__dict__.setdefault("_eval_cache", {})
    inputs = tuple(sorted(values, key=id))
    compiled = cache.get(inputs)
    if compiled is None:
        compiled = cache[inputs] = function(list(inputs), variable)
    return compiled(*(values[var] for var in inputs))


hooks.evaluate = evaluate
hooks.compile_function = function
