"""Container: a storage with the type of what it may hold.

The storages of intermediate results, which only a VM sees, have none.
"""

from __future__ import annotations

from typing import Any

from opwise.errors import with_message
from opwise.graph import upcalls
from opwise.graph.type import Type
from opwise.graph.variable import Variable
from opwise.linkers.opwise_c import Claim, Lock

#: a list of one element: a value, None if there is none yet
Storage = list[Any]


class Container:
    """A storage, and the type that every value put there is converted to.

    r: the variable that the value belongs to, or its type. readonly: values cannot be set.
    strict, allow_downcast: passed to ``type.filter``. name: used in messages (default: the
    variable's). Functions, shared variables and Module instances that share the storage see each
    other's values. Functions hold ``lock`` while they read or update the value.
    """

    __slots__ = ("allow_downcast", "lock", "name", "readonly", "storage", "strict", "type")

    type: Type
    name: str | None
    storage: Storage
    readonly: bool
    strict: bool
    allow_downcast: bool | None
    lock: Lock

    def __init__(
        self,
        r: Variable | Type,
        storage: Storage,
        readonly: bool = False,
        strict: bool = False,
        allow_downcast: bool | None = None,
        name: str | None = None,
    ) -> None:
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

    def reading(self) -> Claim:
        """Return a context manager: within it, no other thread writes the value."""
        return Claim((), (self.lock,))

    def writing(self) -> Claim:
        """Return a context manager: within it, no other thread reads or writes the value."""
        return Claim((self.lock,))

    @property
    def data(self) -> Any:
        """The value itself, not a copy; a copy on the host if it lies on a device.

        Setting it converts to the type, and copies only if that is needed. Raises what
        ``type.filter`` raises, with the name of this container added to the text, and Exception
        if the container is read-only.
        """
        return upcalls.to_host(self.storage[0])

    @data.setter
    def data(self, value: Any) -> None:
        if self.readonly:
            raise Exception(
                f"Cannot set readonly storage: {self.name}. It is a constant; a member that is a "
                "variable can change."
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

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Move the value to the host: there may be no device where the pickle is loaded."""
        with self.writing():
            self.storage[0] = upcalls.to_host(self.storage[0])
        return None, {name: getattr(self, name) for name in Container.__slots__}

    def __str__(self) -> str:
        return f"<{self.storage[0]}>"

    def __repr__(self) -> str:
        return f"<{self.storage[0]!r}>"
