"""``theano.misc.frozendict``: dicts that can be keys."""

from collections import OrderedDict
from collections.abc import Mapping


class frozendict(Mapping):
    """A dict that cannot be changed; its hash is that of its items, in any order."""

    dict_cls: type = dict

    def __init__(self, *items, **named):
        self._items = self.dict_cls(*items, **named)

    def __getitem__(self, key):
        return self._items[key]

    def __iter__(self):
        return iter(self._items)

    def __len__(self):
        return len(self._items)

    def __hash__(self):
        return hash(frozenset(self._items.items()))

    def __repr__(self):
        return f"<{type(self).__name__} {self._items!r}>"

    def copy(self, **changes):
        """Return a copy with further items, or with other values of some."""
        return type(self)({**self._items, **changes})


class FrozenOrderedDict(frozendict):
    """A frozendict of an OrderedDict."""

    dict_cls = OrderedDict
