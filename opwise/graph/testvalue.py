"""Test values: running the graph on ``tag.test_value`` while it is built, to meet errors early."""

from __future__ import annotations

import warnings

from opwise.config import config
from opwise.graph.variable import Constant


def _has_value(var):
    return isinstance(var, Constant) or hasattr(var, "get_value") or hasattr(var.tag, "test_value")


def get_test_value(var):
    """Return the test value of a variable: a constant's data, a shared value, or the tag's.

    Raises AttributeError where there is none.
    """
    if isinstance(var, Constant):
        return var.data
    if hasattr(var, "get_value"):
        return var.get_value(borrow=True, return_internal_type=True)
    return var.type.filter(var.tag.test_value)


def get_debug_values(*args):
    """Return a list with the tuple of test values of ``args``; an empty one if any is missing."""
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
            _missing(f"Argument {i} ('{arg}') has no test value")
            return []
    return [tuple(values)]


def missing_test_message(msg):
    """Say that a test value is missing, as strongly as config.compute_test_value asks."""
    _missing(msg)


def _missing(msg):
    action = config.compute_test_value
    if action == "raise":
        raise AttributeError(msg)
    if action == "warn":
        warnings.warn(msg, stacklevel=3)


def after_make_node(node):
    """Compute the test values of a new Apply's outputs, unless the flag is off."""
    action = config.compute_test_value
    if action == "off":
        return
    for i, var in enumerate(node.inputs):
        if not _has_value(var):
            message = (
                f"Cannot compute test value: input {i} ({var}) of Op {node} missing default "
                "value.  "
            )
            if action == "warn":
                warnings.warn(message, stacklevel=4)
            elif action == "raise":
                raise ValueError(message)
            return
    values = []
    for i, var in enumerate(node.inputs):
        value = get_test_value(var)
        destroyed = any(i in inputs for inputs in node.op.destroy_map.values())
        values.append(value.copy() if destroyed and hasattr(value, "copy") else value)
    storage = [[None] for _ in node.outputs]
    node.op.perform(node, values, storage)
    for var, cell in zip(node.outputs, storage, strict=True):
        var.tag.test_value = cell[0]
