"""Container: a storage with the type of what it may hold.

The storages of intermediate results, which only a VM sees, have none.
"""

from __future__ import annotations

from typing import Any

from opwise.errors import with_message
from opwise.graph import hooks
from opwise.graph.type import Type
from opwise.linkers.opwise_c import Claim, Lock

#: a list of one element: a value, None if there is none yet
Storage = list[Any]


class Container:
    """A one-element list, ``storage``, and the type that every value put there is converted to.

    r: the variable that the value belongs to, or its type. readonly: values cannot be set.
    strict, allow_downcast: handed to ``type.filter``. name: used in messages; the variable's unless
    told. A list is shared by all who hold it: functions, shared variables and Module instances see
    each other's values. None is a value of every container: it means that there is none yet.
    lock: functions hold it while they compute with the value or update it.
    """

    __slots__ = ("allow_downcast", "lock", "name", "readonly", "storage", "strict", "type")

    def __init__(self, r, storage, readonly=False, strict=False, allow_downcast=None, name=None):
        if not isinstance(storage, list) or not storage:
            raise TypeError(f"storage must be a list of length at least one, not {storage!r}")
        if isinstance(r, Type):
            self.type = r
        else:
            self.type = r.type
            name = r.name if name is None else name
        self.name = name
        self.storage = storage
        self.readonly = readonly
        self.strict = strict
        self.allow_downcast = allow_downcast
        self.lock = Lock()

    def reading(self):
        """Return a context manager: within it, no other thread writes the value."""
        return Claim((), (self.lock,))

    def writing(self):
        """Return a context manager: within it, no other thread reads or writes the value."""
        return Claim((self.lock,))

    @property
    def data(self):
        """The value itself, not a copy; of what lies on a device a copy on the host.

        Setting it converts to the type, without a copy where none is needed. Raises what
        ``type.filter`` raises, with the name of this container added to the text, and Exception
        where the container is read-only.
        """
        return hooks.to_host(self.storage[0])

    @data.setter
    def data(self, value):
        if self.readonly:
            raise Exception(
                f"Cannot set readonly storage: {self.name}. It is a constant: a variable can "
                "change."
            )
        if value is not None:
            # types of old programs take fewer arguments: only what was asked for is passed on
            options = {"strict": True} if self.strict else {}
            if self.allow_downcast is not None:
                options["allow_downcast"] = self.allow_downcast
            try:
                value = self.type.filter(value, **options)
            except Exception as error:
                # any type may raise anything; the class stays, the name is added
                advice = f'Container name "{self.name}": give it a value of {self.type}.'
                raise with_message(error, f"{error} {advice}", advice) from None
        with self.writing():
            self.storage[0] = value

    value = data

    def __getstate__(self):
        """What is pickled lies on the host: where it is loaded, there may be no device."""
        with self.writing():
            self.storage[0] = hooks.to_host(self.storage[0])
        return None, {name: getattr(self, name) for name in self.__slots__}

    def __str__(self):
        return f"<{self.storage[0]}>"

    def __repr__(self):
        return f"<{self.storage[0]!r}>"
