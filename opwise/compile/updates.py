"""OrderedUpdates: a dict of updates of shared variables."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from opwise.compile.shared import SharedVariable


class OrderedUpdates(OrderedDict[Any, Any]):
    """A dict from shared variables to their next values; ``+`` and ``update`` join two.

    Raises TypeError for a key that is not a shared variable, and KeyError if the joined dicts
    update a variable to different expressions.
    """

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, SharedVariable):
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
