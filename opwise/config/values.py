"""The kinds of flags: which values each accepts, and the error for any other."""

from __future__ import annotations

from collections.abc import Callable

TYPE_CHECKING = False  # importing typing for it would take longer than all of this package
if TYPE_CHECKING:
    from typing import Any

    from opwise.config.registry import ConfigGroup


class ConfigParam:
    """One flag: its default, the values it accepts and, once it is in ``config``, its value.

    ``filter(value)`` returns the value to store, or raises ValueError. A callable ``default`` is
    called when the flag is first read. With ``allow_override=False`` a program cannot change the
    value: only the environment and the configuration files can.

    The attributes below are set when the flag is added to ``config``.
    """

    #: the name with its sections, like "profiling.n_apply"
    fullname: str
    #: what the flag does, in one or two sentences
    doc: str
    #: True if generated C code depends on the value
    in_c_key: bool
    #: False if opwise accepts the flag and ignores it
    used: bool
    #: where the value comes from: "default", "code", or the name of the variable or file
    source: str
    _group: ConfigGroup
    _name: str

    def __init__(
        self,
        default: Any,
        filter: Callable[[Any], Any] | None = None,
        allow_override: bool = True,
    ):
        self.default = default
        self.allow_override = allow_override
        self._given_filter = filter

    def filter(self, value: Any) -> Any:
        """Return the value to store for ``value``, or raise ValueError."""
        return value if self._given_filter is None else self._given_filter(value)

    # Legacy programs call these two themselves, as __get__(True, None) and __set__(None, value).

    def __get__(self, instance: Any = None, owner: Any = None) -> Any:
        return getattr(self._group, self._name)

    def __set__(self, instance: Any, value: Any) -> None:
        if not self.allow_override:
            raise Exception(
                "Can't change the value of this config parameter after initialization! "
                f"Set {self.fullname} in OPWISE_FLAGS, THEANO_FLAGS or a configuration file "
                "before the program starts."
            )
        self.store(self.filter(value), "code")

    def store(self, value: Any, source: str) -> None:
        """Set the value, without filtering it, and where it comes from."""
        self._group.__dict__[self._name] = value
        self.source = source

    def stored(self) -> Any:
        """Return the value of the process, whatever a thread has set for itself."""
        values = self._group.__dict__
        return values[self._name] if self._name in values else self.load_default()

    def load_default(self) -> Any:
        """Call the default, store the value and return it."""
        self.store(self.filter(self.default()), "default")
        return self._group.__dict__[self._name]

    def accepts(self) -> str:
        """Return the accepted values, as ``print(config)`` shows them."""
        return "any value"

    def refusal(self, value: Any, reason: str) -> ValueError:
        """Return the error for a value that the flag does not accept."""
        return ValueError(
            f'Invalid value ({value}) for configuration variable "{self.fullname}". {reason}'
        )

    def __str__(self) -> str:
        return f"{self.fullname} ({self.accepts()}) "


class EnumStr(ConfigParam):
    """One of several strings: the default or one of ``options``.

    ``convert``, if given, is applied to a value before it is compared with them.
    """

    def __init__(
        self,
        default: str,
        *options: str,
        allow_override: bool = True,
        convert: Callable[[Any], Any] | None = None,
    ):
        self.all = tuple(dict.fromkeys((default, *options)))
        for option in self.all:
            if not isinstance(option, str):
                raise ValueError(f"The values of an EnumStr are strings, not {option!r}")
        self.convert = convert
        super().__init__(default, allow_override=allow_override)

    def filter(self, value: Any) -> str:
        if self.convert is not None:
            value = self.convert(value)
        text = str(value)  # so that None and a dtype are as good as their names
        if text not in self.all:
            raise self.refusal(f'"{value}"', f"Valid options are {self.all}")
        return text

    def accepts(self) -> str:
        return str(self.all)


_KINDS: dict[Any, str] = {int: "integers", float: "numbers", str: "texts"}


class TypedParam(ConfigParam):
    """Any value that ``mytype`` converts and for which ``is_valid`` (if given) then returns True.

    The converted value is stored.
    """

    def __init__(
        self,
        default: Any,
        mytype: Callable[[Any], Any],
        is_valid: Callable[[Any], bool] | None = None,
        allow_override: bool = True,
    ):
        self.mytype = mytype
        self.is_valid = is_valid
        super().__init__(default, allow_override=allow_override)

    def filter(self, value: Any) -> Any:
        try:
            cast = self.mytype(value)
        except (TypeError, ValueError) as error:
            raise self.refusal(value, f"{error}. {self._valid_values()}") from None
        if self.is_valid is not None and not self.is_valid(cast):
            raise self.refusal(value, self._valid_values())
        return cast

    def _valid_values(self) -> str:
        if isinstance(self.is_valid, Condition):
            return f"Valid values are {self.is_valid.allowed}."
        name = getattr(self.mytype, "__name__", self.mytype)
        kind = _KINDS.get(self.mytype, f"what {name}() accepts")
        return f"Valid values are {kind}{'' if self.is_valid is None else ' that pass its check'}."

    def accepts(self) -> str:
        return str(self.mytype)


class StrParam(TypedParam):
    """Any text for which ``is_valid`` (if given) returns True."""

    def __init__(
        self,
        default: Any,
        is_valid: Callable[[Any], bool] | None = None,
        allow_override: bool = True,
    ):
        super().__init__(default, str, is_valid, allow_override)


class IntParam(TypedParam):
    """An int for which ``is_valid`` (if given) returns True."""

    def __init__(
        self,
        default: Any,
        is_valid: Callable[[Any], bool] | None = None,
        allow_override: bool = True,
    ):
        super().__init__(default, int, is_valid, allow_override)


class FloatParam(TypedParam):
    """A float for which ``is_valid`` (if given) returns True."""

    def __init__(
        self,
        default: Any,
        is_valid: Callable[[Any], bool] | None = None,
        allow_override: bool = True,
    ):
        super().__init__(default, float, is_valid, allow_override)


class BoolParam(TypedParam):
    """A bool, also written ``True``, ``true``, ``1``, ``False``, ``false`` or ``0``."""

    def __init__(
        self,
        default: Any,
        is_valid: Callable[[Any], bool] | None = None,
        allow_override: bool = True,
    ):
        super().__init__(default, _to_bool, is_valid, allow_override)

    def _valid_values(self) -> str:
        return "Valid values are True, true, 1, False, false and 0."

    def accepts(self) -> str:
        return str(bool)


def _to_bool(value: Any) -> bool:
    if value in ("True", "true", "1", True):
        return True
    if value in ("False", "false", "0", False):
        return False
    raise ValueError("It is neither true nor false")


class MaybeParam(ConfigParam):
    """None, True or False."""

    def filter(self, value: Any) -> bool | None:
        if value is None or value == "None":
            return None
        try:
            return _to_bool(value)
        except ValueError:
            raise self.refusal(value, "Valid values are None, True and False.") from None

    def accepts(self) -> str:
        return "None, True, False"


# --- modes ----------------------------------------------------------------------------------------

_mode_names = [
    *("Mode", "ProfileMode", "DebugMode", "NanGuardMode"),
    *("FAST_RUN", "FAST_COMPILE", "PROFILE_MODE", "DEBUG_MODE"),
]


def register_mode_name(name: str) -> None:
    """Let the flag ``mode`` accept ``name`` too: the name of a mode that a program registers."""
    if name not in _mode_names:
        _mode_names.append(name)


class ModeParam(ConfigParam):
    """The name of a mode, or a Mode."""

    def filter(self, value: Any) -> Any:
        if isinstance(value, str):
            if value in _mode_names:
                return value
        elif not isinstance(value, type) and _has(value, "linker") and _has(value, "optimizer"):
            return value  # a Mode; its class is above this layer
        names = ", ".join(repr(name) for name in _mode_names)
        raise self.refusal(  # Theano's sentence
            f'"{value}"', f"Expected one of those string {names} or an instance of Mode."
        )

    def accepts(self) -> str:
        return f"{tuple(_mode_names)} or a Mode"


def _has(value: Any, name: str) -> bool:
    """Return whether an object has an attribute; unlike hasattr this does not run a property."""
    return name in getattr(value, "__dict__", ()) or hasattr(type(value), name)


# --- conditions -----------------------------------------------------------------------------------


class Condition:
    """A test of a value, with the sentence part that error messages say about it."""

    def __init__(self, allowed: str, holds: Callable[[Any], bool]):
        self.allowed = allowed
        self.holds = holds

    def __call__(self, value: Any) -> bool:
        return self.holds(value)


def at_least(low: int) -> Condition:
    """Return the condition that a number is ``low`` or more."""
    return Condition(f"integers >= {low}", lambda value: value >= low)


def not_negative() -> Condition:
    """Return the condition that a number, whole or not, is 0 or more."""
    return Condition("numbers >= 0", lambda value: value >= 0)


def up_to(high: int) -> Condition:
    """Return the condition that a number is in 0 to ``high``."""
    return Condition(f"integers from 0 to {high}", lambda value: 0 <= value <= high)


# gpu, gpu0, ... are the names in programs that are older than the cuda ones.
_ACCELERATORS = ("cuda", "gpu", "opencl")
is_device = Condition(
    "cpu, cuda, cuda0, cuda1, ... (also gpu, gpu0, ..., opencl...), in lower case",
    lambda value: value == "cpu" or value.startswith(_ACCELERATORS),
)
is_accelerator_or_none = Condition(
    "cuda, cuda0, cuda1, ... (also gpu, gpu0, ..., opencl...), in lower case, or an empty text",
    lambda value: not value or value.startswith(_ACCELERATORS),
)
