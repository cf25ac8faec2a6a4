"""Profiles as JSON: written, read, and described by a schema.

The schema and the readers come from the types of the fields of the data classes. Reading refuses
what is not a valid profile, and escapes letters that would move a terminal's cursor.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from opwise.errors import ProfileFormatError
from opwise.profiling import validation
from opwise.profiling.files import printable, read_limited, write_whole
from opwise.profiling.model import LEFT_OUT, VERSION, ProfileData
from opwise.profiling.process import pause_garbage_collection

#: what the JSON form calls itself
FORMAT = "opwise profile"
#: what an error advises
_WRITERS = "`opwise run` and Profile.save write such files"

P = TypeVar("P", bound=ProfileData)
#: from plain data to the value of a field
Reader = Callable[[Any], Any]

# --- writing --------------------------------------------------------------------------------------


def to_json(profile: ProfileData) -> str:
    """Return a profile as JSON text; ``from_json`` gives an equal one."""
    return json.dumps({"format": FORMAT, **vars(profile)}, default=_plain, sort_keys=True)


def save(profile: ProfileData, path: str | Path) -> None:
    """Write a profile to a file as JSON, replacing the file as a whole. Raises OSError."""
    write_whole(path, to_json(profile))


def _plain(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as a dict, without those that have their default value."""
    type_: Any = type(value)
    defaults, own = _defaults(type_), vars(value)
    return {
        name: own[name]
        for name in _names(type_)
        if name not in defaults or own[name] != defaults[name]
    }


@cache
def _names(type_: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(type_))


@cache
def _defaults(type_: Any) -> dict[str, Any]:
    """Return {field: its default} of a dataclass: what files leave out."""
    return {f.name: f.default for f in fields(type_) if f.default is not MISSING} | {
        f.name: f.default_factory()
        for f in fields(type_)
        if f.default_factory is not MISSING and f.metadata == LEFT_OUT
    }


# --- reading --------------------------------------------------------------------------------------


def load(path: str | Path, type_: type[P]) -> P:
    """Return the profile that ``save`` wrote. Raises ProfileFormatError, or OSError.

    Refuses devices, pipes and files of more than ``files.MOST_BYTES`` bytes before reading.
    """
    try:
        text = read_limited(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_a_profile(path, f"byte {error.start} is not UTF-8") from None
    except ValueError as error:
        raise _not_a_profile(path, error) from None
    return from_json(text, str(path), type_)


def from_json(text: str, source: str, type_: type[P]) -> P:
    """Return the profile of a JSON text.

    source: what an error calls the text. type_: ProfileData, or a subclass without further fields.
    Raises ProfileFormatError unless the text is a valid profile of this version.
    """
    with pause_garbage_collection():
        return _from_json(text, source, type_)


def _from_json(text: str, source: str, type_: type[P]) -> P:
    data = _parsed(text, source)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise _not_a_profile(source, f"{_WRITERS}.")
    if data.get("version") != VERSION:
        raise ProfileFormatError(
            f"{source} is a profile of version {data.get('version')!r:.40}; this opwise reads "
            f"version {VERSION}."
        )
    import fastjsonschema  # slow to import

    try:
        _validator()(data)
    except fastjsonschema.JsonSchemaValueException as error:
        raise ProfileFormatError(f"{source} is not a valid profile: {error.message:.200}") from None
    try:
        profile: P = _dataclass_reader(type_)(data)
        validation.check(profile)
    except ValueError as error:
        raise ProfileFormatError(f"{source} is not a valid profile: {error}") from None
    return profile


def _not_a_profile(source: object, reason: object) -> ProfileFormatError:
    return ProfileFormatError(f"{source} is not an opwise profile: {reason}")


def _parsed(text: str, source: str) -> Any:
    """Return the plain data of a JSON text, with finite numbers and printable texts."""
    try:
        parse_int = _whole_number if _HUGE.search(text) else None
        data = json.loads(text, parse_constant=_refused, parse_float=_finite, parse_int=parse_int)
        return _printable(data) if _SUSPECT.search(text) else data
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise _not_a_profile(source, f"it is not JSON ({place}); {_WRITERS}.") from None
    except RecursionError:
        raise _not_a_profile(source, "its lists and objects are nested too deeply") from None
    except ValueError as error:
        raise _not_a_profile(source, error) from None


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is not a number in JSON")


def _whole_number(digits: str) -> int:
    if len(digits) > 300:
        raise ValueError(f"{digits[:20]}... is too large a number")
    return int(digits)


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number[:40]} is too large a number")
    return value


#: digits of an integer that may be too large for a float
_HUGE = re.compile(r"[0-9]{300}")
#: how JSON writes letters that move a cursor, hide or turn text; and letters beyond ASCII
_SUSPECT = re.compile(
    r"\\u(00[01189]|007f|200|202|206|feff|fff|d[89a-f])|\\[bfnrt]|[^\x00-\x7f]", re.I
)


def _printable(value: Any) -> Any:
    """Return plain data with all texts escaped as ``files.printable`` does."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {_printable(key): _printable(part) for key, part in value.items()}
    return list(map(_printable, value)) if isinstance(value, list) else value


@cache
def _reader(type_: Any) -> Reader | None:
    """Return the function from plain data to a value of a type; None if both are the same."""
    if is_dataclass(type_):
        return _dataclass_reader(type_)
    if get_origin(type_) is tuple:
        return _tuple_reader(get_args(type_))
    if get_origin(type_) is dict:
        of_values = _reader(get_args(type_)[1])
        return of_values and (lambda value: {key: of_values(part) for key, part in value.items()})
    if get_origin(type_) is UnionType:
        read = _reader(get_args(type_)[0])
        return read and (lambda value: None if value is None else read(value))
    readers: dict[Any, Reader] = {float: float, int: _integer}
    return readers.get(type_)


def _tuple_reader(arguments: tuple[Any, ...]) -> Reader:
    parts = [part for part in arguments if part is not Ellipsis]
    if set(parts) == {int}:
        return _integers
    readers = list(map(_reader, parts))
    if not any(readers):
        return tuple
    if arguments[-1] is Ellipsis:
        (read,) = readers
        return lambda value: tuple(read(part) for part in value) if read else tuple(value)
    return lambda value: tuple(
        read(part) if read else part for read, part in zip(readers, value, strict=True)
    )


def _integer(value: Any) -> int:
    """Return an integer; ValueError for 3.0, which a schema takes for one."""
    if type(value) is not int:
        raise ValueError(f"{value!r} is no whole number")
    return value


def _integers(values: list[Any]) -> tuple[int, ...]:
    if values and set(map(type, values)) != {int}:
        raise ValueError(f"{values!r:.40} are not whole numbers")
    return tuple(values)


def _dataclass_reader(type_: Any) -> Reader:
    hints, names, defaults = get_type_hints(type_), _names(type_), _defaults(type_)
    readers = [(name, read) for name in names if (read := _reader(hints[name]))]

    def read_fields(value: dict[str, Any]) -> Any:
        # what __init__ of a frozen dataclass does, field by field and slowly
        made = object.__new__(type_)
        attributes = vars(made)
        attributes.update(defaults)
        for name in names:
            if name in value:
                attributes[name] = value[name]
        for name, read in readers:
            if name in value:
                attributes[name] = read(value[name])
        return made

    return read_fields


# --- the schema -----------------------------------------------------------------------------------

_RANGES: Mapping[Any, dict[str, Any]] = {
    int: {"minimum": -(2**63), "maximum": 2**63 - 1},
    str: {"maxLength": 1_000_000},
}
_PLAIN = {int: "integer", float: "number", str: "string", bool: "boolean"}


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 7) of the files that profiles are kept in."""
    return _of_files(_schema(ProfileData, described=True))


@cache
def _validator() -> Callable[[Any], Any]:
    import fastjsonschema  # slow to import

    check: Callable[[Any], Any] = fastjsonschema.compile(_of_files(_schema(ProfileData, False)))
    return check


def _of_files(found: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of ProfileData with the fields that a file has besides."""
    properties = {
        "format": {"const": FORMAT},
        **found["properties"],
        "version": {"const": VERSION},
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"A profile of opwise, version {VERSION}",
        **found,
        "properties": properties,
        "required": ["format", *found["required"]],
    }


def _schema(type_: Any, described: bool) -> dict[str, Any]:
    """Return the schema of a type. described: with the documentation of its fields."""
    if is_dataclass(type_):
        return _dataclass_schema(type_, described)
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return {"type": "array", "items": _schema(arguments[0], described)}
        items = [_schema(part, described) for part in arguments]
        return {
            "type": "array", "items": items, "minItems": len(items), "maxItems": len(items),
        }  # fmt: skip
    if origin is UnionType:
        found = _schema(arguments[0], described)
        # the keywords besides "type" hold for values of the first type alone
        return {**found, "type": [found["type"], "null"]}
    if origin is dict:
        values = {} if arguments[1] is Any else {
            "additionalProperties": _schema(arguments[1], described)
        }  # fmt: skip
        return {"type": "object", **values}
    return {"type": _PLAIN[type_], **_RANGES.get(type_, {})}


def _dataclass_schema(type_: Any, described: bool) -> dict[str, Any]:
    hints, names = get_type_hints(type_), _names(type_)
    found: dict[str, Any] = {
        "type": "object",
        "properties": {name: _schema(hints[name], described) for name in names},
        "required": [name for name in names if name not in _defaults(type_)],
    }
    if described:
        found["description"] = inspect.cleandoc(type_.__doc__)
        for name, text in _field_comments(type_).items():
            found["properties"][name].setdefault("description", text)
    return found


def _field_comments(type_: Any) -> dict[str, str]:
    """Return {field: the text of the ``#:`` lines above it} of a dataclass."""
    try:
        source = inspect.getsource(type_)
    except OSError:  # the sources are not installed
        return {}
    return {
        name: " ".join(line.strip().removeprefix("#:").strip() for line in lines.splitlines())
        for lines, name in _FIELD.findall(source)
    }


_FIELD = re.compile(r"((?:^ +#: .*\n)+) +(\w+):", re.M)
