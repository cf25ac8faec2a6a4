"""Test values: running the graph on ``tag.test_value`` while it is built, to meet errors early."""

from __future__ import annotations

import sys

import numpy as np

from opwise.config import config
from opwise.errors import with_message
from opwise.graph import provenance
from opwise.graph.variable import Constant

__all__ = [
    "debug_assert",
    "debug_error_message",
    "get_debug_values",
    "get_test_value",
    "missing_test_message",
]


def get_test_value(var):
    """Return the test value of a variable: a constant's data, a shared value, or the tag's.

    Raises AttributeError where there is none, and what its type raises where it does not fit.
    """
    if isinstance(var, Constant):
        return var.data
    if hasattr(var, "get_value"):
        return var.get_value(borrow=True, return_internal_type=True)
    if not hasattr(var.tag, "test_value"):
        raise AttributeError(f"{var} has no test value")
    try:
        return var.type.filter(var.tag.test_value)
    except Exception as error:  # any type may raise anything; the class stays
        text = (
            "For compute_test_value, one input test value does not have the requested type.\n"
            f"{_created(var)}\nThe error when converting the test value of {var} to that variable "
            f"type:\n{error}\nGive {var}.tag.test_value a value of {var.type}."
        )
        raise with_message(error, text, text) from None


def _created(var):
    trace = provenance.format_trace(var.made_at)
    return f"\nBacktrace when that variable is created:\n\n{trace}" if trace else ""


def get_debug_values(*args):
    """Return a list with the test values of ``args``: one value, or the tuple of several.

    The list is empty if the flag is off or a value is missing, so that a loop over it does what is
    to be done with them, or nothing.
    """
    if config.compute_test_value == "off":
        return []
    values = []
    for i, arg in enumerate(args):
        if not hasattr(arg, "type"):
            values.append(arg)
            continue
        try:
            values.append(get_test_value(arg))
        except AttributeError:
            missing_test_message(
                f"Argument {i} ('{arg}') has no test value: give it one, {arg.name or 'x'}"
                f".tag.test_value = ... of {arg.type}"
            )
            return []
    return values if len(values) == 1 else [tuple(values)]


def missing_test_message(msg):
    """Say that a test value is missing, as strongly as config.compute_test_value asks."""
    action = config.compute_test_value
    if action == "raise":
        raise AttributeError(msg)
    if action == "warn":
        provenance.warn(msg)


def debug_error_message(msg):
    """Say that test values show a fault: a warning if the flag is 'warn', otherwise ValueError."""
    _found(ValueError, msg)


def debug_assert(condition, msg=None):
    """Say that a condition on test values does not hold: a warning, or AssertionError."""
    if not condition:
        _found(AssertionError, "debug_assert failed" if msg is None else msg)


def _found(kind, msg):
    if config.compute_test_value == "warn":
        provenance.warn(msg)
        return
    raise kind(msg)


def after_make_node(node):
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
    storages = [[None] for _ in node.outputs]
    try:
        node.op.perform(node, values, storages)
    except Exception as error:  # whatever perform raises, it says which Apply it was
        described = _described(node, values)
        raise with_message(error, f"{error}\n{described}", described) from error.__cause__
    for var, storage in zip(node.outputs, storages, strict=True):
        value = storage[0]
        # perform may leave a numpy number, which the machines take as an array without dimensions
        var.tag.test_value = np.asarray(value) if isinstance(value, np.generic) else value


def _missing(node, i):
    """Do what the flag says where input ``i`` of a new Apply has no test value."""
    var, action = node.inputs[i], config.compute_test_value
    text = f"Cannot compute test value: input {i} ({var}) of Op {node} missing default value. "
    advice = f" Give it one: {var.name or 'x'}.tag.test_value = ... of {var.type}."
    if action == "warn":
        provenance.warn(f"Warning, {text}{advice}")
    elif action == "raise":
        raise ValueError(text + advice + _created(var))
    elif action == "pdb":
        print(text + advice, file=sys.stderr)
        import pdb  # slow to import

        pdb.set_trace()


def _described(node, values):
    """Return what an Apply was given when it failed on test values."""
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
