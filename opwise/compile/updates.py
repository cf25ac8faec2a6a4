"""OrderedUpdates: updates of shared variables, in the order in which they were given."""

from __future__ import annotations

from collections import OrderedDict

from opwise.compile.shared import SharedVariable


class OrderedUpdates(OrderedDict):
    """A dict from shared variables to their next values; adding two keeps both.

    Raises TypeError for a key that is no shared variable, KeyError where two that are added update
    the same variable to different expressions.
    """

    def __setitem__(self, key, value):
        if not isinstance(key, SharedVariable):
            raise TypeError("OrderedUpdates keys must inherit from SharedVariable", key)
        super().__setitem__(key, value)

    def update(self, other=None, **kwargs):
        """Take over the updates of another mapping or list of pairs."""
        pairs = other.items() if hasattr(other, "items") else other or ()
        for key, value in pairs:
            if key in self and self[key] is not value:
                raise KeyError("Collision", key)
            self[key] = value

    def __add__(self, other):
        both = OrderedUpdates()
        both.update(self)
        both.update(other)
        return both

    def __radd__(self, other):
        both = OrderedUpdates()
        both.update(other)
        both.update(self)
        return both


Updates = OrderedUpdates
