"""What the function given to scan may return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opwise.graph.variable import Variable
from opwise.loops.layout import as_list
from opwise.tensor import as_tensor_variable


class until:
    """The condition after which a loop ends; the step in which it holds is the last one.

    condition: a scalar variable. Raises AssertionError for others.
    """

    def __init__(self, condition: Any) -> None:
        self.condition = as_tensor_variable(condition)
        if self.condition.type.ndim != 0:
            raise AssertionError(
                f"the condition of until is a scalar, not {self.condition.type}: use T.any or T.all"
            )


@dataclass
class Returned:
    """What a step computes."""

    outputs: list[Variable]
    #: {shared variable: its next value}
    updates: dict[Any, Any]
    condition: Variable | None


def parse(returned: Any) -> Returned:
    """Sort what the function of a loop returns: outputs, then updates, then ``until``.

    Each may be left out. Raises ValueError for anything else.
    """
    if not _is_made_of_variables(returned):
        remedy = "turn values into variables by tensor.constant"
        if returned is None:
            remedy = "end the function with a return statement"
        raise ValueError(
            "The return value of your scan lambda expression may only be made of lists, tuples, or "
            "dictionaries containing Theano variables (or `theano.scan_module.until` objects for "
            f"conditions), not {returned!r}: {remedy}"
        )
    if _are_outputs(returned):
        return Returned(as_list(returned), {}, None)
    if _are_updates(returned):
        return Returned([], dict(returned), None)
    if isinstance(returned, until):
        raise ValueError(
            "Scan cannot parse the return value of your lambda expression, which is a condition "
            "only: return outputs or updates before until(condition)"
        )
    parts = list(returned)
    found = Returned([], {}, None)
    expected = ["outputs", "updates", "condition"]
    for part in parts:
        kind = _kind(part)
        if kind == "outputs" and "outputs" not in expected and not as_list(part):
            kind = "updates"  # an empty list may be either
        if kind not in expected:
            raise ValueError(
                "The return value of the lambda function has been restricted: it is first the "
                "outputs (if any), afterwards the updates (if any) and at the end the condition, "
                f"not {returned!r}"
            )
        del expected[: expected.index(kind) + 1]
        if kind == "outputs":
            found.outputs = as_list(part)
        elif kind == "updates":
            found.updates = dict(part)
        else:
            found.condition = part.condition
    return found


def _kind(part: Any) -> str:
    if isinstance(part, until):
        return "condition"
    if _are_outputs(part):
        return "outputs"
    return "updates" if _are_updates(part) else "unknown"


def _are_outputs(part: Any) -> bool:
    return isinstance(part, Variable) or (
        isinstance(part, list | tuple) and all(isinstance(x, Variable) for x in part)
    )


def _are_updates(part: Any) -> bool:
    return isinstance(part, Mapping) or (
        isinstance(part, list | tuple)
        and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in part)
    )


def _is_made_of_variables(part: Any) -> bool:
    if isinstance(part, Mapping):
        return all(map(_is_made_of_variables, part.items()))
    if isinstance(part, list | tuple):
        return all(map(_is_made_of_variables, part))
    return isinstance(part, Variable | until)
