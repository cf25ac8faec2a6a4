"""OrderedUpdates: a dict of updates of shared variables."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from opwise.compile.shared import SharedVariable
from opwise.graph.variable import Variable
from opwise.tensor.type import TensorType


class OrderedUpdates(OrderedDict[Any, Any]):
    """A dict from shared variables to their next values; ``+`` and ``update`` join two.

    Steps of a loop also hand on objects other than tensors, which need not be shared.
    Raises TypeError for another key that is not a shared variable, and KeyError if the joined dicts
    update a variable to different expressions.
    """

    def __setitem__(self, key: Any, value: Any) -> None:
        handed_on = isinstance(key, Variable) and not isinstance(key.type, TensorType)
        if not isinstance(key, SharedVariable) and not handed_on:
            raise TypeError("OrderedUpdates keys must inherit from SharedVariable", key)
        super().__setitem__(key, value)

    def update(self, other: Any = None, **kwargs: Any) -> None:  # type: ignore[override]
        """Add the updates of another mapping or list of pairs."""
        pairs = other.items() if hasattr(other, "items") else other or ()
        for key, value in pairs:
            if key in self and self[key] is not value:
                raise KeyError("Collision", key)
            self[key] = value

    def __add__(self, other: Any) -> OrderedUpdates:
        both = OrderedUpdates()
        both.update(self)
        both.update(other)
        return both

    def __radd__(self, other: Any) -> OrderedUpdates:
        both = OrderedUpdates()
        both.update(other)
        both.update(self)
        return both


Updates = OrderedUpdates
