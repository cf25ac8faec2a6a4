"""Test values: a graph runs on ``tag.test_value`` while it is built, so that errors come early."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.config import config
from opwise.errors import with_message
from opwise.graph import provenance
from opwise.graph.apply import Apply
from opwise.graph.variable import Constant, get_test_value

__all__ = [
    "debug_assert",
    "debug_error_message",
    "get_debug_values",
    "get_test_value",
    "missing_test_message",
]


def get_debug_values(*args: Any) -> list[Any]:
    """Return a list with the test values of ``args``: one value, or a tuple of several.

    The list is empty if the flag is off or a value is missing, so that the body of a loop over it
    runs once or not at all.
    """
    if config.compute_test_value == "off":
        return []
    values: list[Any] = []
    for i, arg in enumerate(args):
        if not hasattr(arg, "type"):
            values.append(arg)
            continue
        try:
            values.append(get_test_value(arg))
        except AttributeError:
            missing_test_message(
                f"Argument {i} ('{arg}') has no test value: set {arg.name or 'x'}.tag.test_value "
                f"to a value of {arg.type}"
            )
            return []
    return values if len(values) == 1 else [tuple(values)]


def missing_test_message(msg: str) -> None:
    """Report a missing test value: raise, warn or do nothing, by config.compute_test_value."""
    action = config.compute_test_value
    if action == "raise":
        raise AttributeError(msg)
    if action == "warn":
        provenance.warn(msg)


def debug_error_message(msg: str) -> None:
    """Report an error in test values: warn if the flag is 'warn', otherwise raise ValueError."""
    _report(ValueError, msg)


def debug_assert(condition: Any, msg: str | None = None) -> None:
    """Report a condition on test values that is false: warn, or raise AssertionError."""
    if not condition:
        _report(AssertionError, "debug_assert failed" if msg is None else msg)


def _report(kind: type[Exception], msg: str) -> None:
    if config.compute_test_value == "warn":
        provenance.warn(msg)
        return
    raise kind(msg)


def after_make_node(node: Apply) -> None:
    """Compute the test values of a new Apply's outputs, unless the flag is off."""
    if config.compute_test_value == "off":
        return
    values = []
    for i, var in enumerate(node.inputs):
        try:
            value = get_test_value(var)
        except AttributeError:
            _missing(node, i)
            return
        destroyed = any(i in inputs for inputs in node.op.destroy_map.values())
        values.append(value.copy() if destroyed and hasattr(value, "copy") else value)
    storages: list[list[Any]] = [[None] for _ in node.outputs]
    try:
        node.op.perform(node, values, storages)
    except Exception as error:  # perform may raise any exception; its message names the Apply
        description = _describe(node, values)
        raise with_message(error, f"{error}\n{description}", description) from error.__cause__
    for var, storage in zip(node.outputs, storages, strict=True):
        value = storage[0]
        # perform may store a numpy number, which a VM takes as an array without dimensions
        var.tag.test_value = np.asarray(value) if isinstance(value, np.generic) else value


def _missing(node: Apply, i: int) -> None:
    """React as the flag asks to input ``i`` of a new Apply, which has no test value."""
    var, action = node.inputs[i], config.compute_test_value
    text = f"Cannot compute test value: input {i} ({var}) of Op {node} missing default value. "
    advice = f"Set {var.name or 'x'}.tag.test_value to a value of {var.type}."
    if action == "warn":
        provenance.warn(f"Warning, {text}{advice}")
    elif action == "raise":
        raise ValueError(text + advice + provenance.created_at(var.made_at))
    elif action == "pdb":
        print(text + advice, file=sys.stderr)
        import pdb  # slow to import

        pdb.set_trace()


def _describe(node: Apply, values: Sequence[Any]) -> str:
    """Return a description of an Apply that failed on test values, with its inputs."""
    lines = [f"Apply node that failed on test values: {node}"]
    for var, value in zip(node.inputs, values, strict=True):
        if isinstance(var, Constant):
            continue
        place = provenance.line_of(var.made_at)
        made = f', made at File "{place[0]}", line {place[1]}' if place else ""
        lines.append(f"  {var} of shape {getattr(value, 'shape', 'unknown')}{made}")
    lines.append(
        "Correct the line that this traceback ends at, or the test values of its operands."
    )
    return "\n".join(lines)
