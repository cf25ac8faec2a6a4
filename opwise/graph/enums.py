"""Enumerations as params of Ops: constants with the same names in Python and in C++."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from opwise.graph.type import Type

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]*")
_IMMUTABLE = "constant values are immutable."


class EnumType(Type, dict[str, Any]):
    """The type of a param that is one of several named numbers: ``EnumType(A=1, B=("beta", 2.5))``.

    A pair is an alias, for Python only, and a number. ctype: the C type of the param (default:
    double). cname: a C name for the enumeration (default: ctype). Constants are attributes and
    items; in C++ they are macros. Raises AttributeError for a name with other than capital letters,
    digits and underscores, TypeError for a wrong value or alias.
    """

    def __init__(self, **constants: Any) -> None:
        ctype = " ".join(constants.pop("ctype", "double").split())
        cname = constants.pop("cname", ctype.replace(" ", "_"))
        aliases: dict[str, str] = {}
        if not all(map(_NAME.fullmatch, ctype.split())):
            raise self._error("invalid C type.")
        if not _NAME.fullmatch(cname):
            raise self._error("invalid C name.")
        for name, value in constants.items():
            if not _CONSTANT.fullmatch(name):
                raise AttributeError(
                    f'{type(self).__name__}: invalid enum name: "{name}". Only capital letters, '
                    "underscores and digits are allowed."
                )
            if isinstance(value, list | tuple):
                alias, value = self._alias(name, value)
                if alias in aliases:
                    raise self._error(f'constant alias "{alias}" already used.')
                aliases[alias] = name
            if not isinstance(value, int | float):
                raise self._error(
                    f'constant "{name}": expected integer or floating value, got '
                    f'"{type(value).__name__}".'
                )
            constants[name] = int(value) if isinstance(value, bool) else value
        if not aliases.keys().isdisjoint(constants):
            raise self._error("some aliases have same names as constants.")
        dict.__init__(self, constants)
        vars(self).update(ctype=ctype, cname=cname, aliases=aliases)

    def _alias(self, name: str, pair: Any) -> tuple[str, Any]:
        if len(pair) != 2:
            raise self._error(
                "when using a tuple to define a constant, your tuple should contain 2 values: "
                "constant alias followed by constant value."
            )
        alias, value = pair
        if not isinstance(alias, str):
            raise self._error(f'constant alias should be a string, got "{alias}".')
        if alias == name:
            raise self._error("an alias must differ from the name of its constant.")
        return alias, value

    def _error(self, text: str) -> TypeError:
        return TypeError(f"{type(self).__name__}: {text}")

    # --- constants and aliases --------------------------------------------------------------------

    def fromalias(self, alias: str) -> Any:
        """Return the constant with an alias, or else with that name."""
        return self[self.aliases.get(alias, alias)]

    def has_alias(self, alias: str) -> bool:
        """Return whether a constant has this alias."""
        return alias in self.aliases

    def get_aliases(self) -> tuple[str, ...]:
        """Return all aliases, sorted."""
        return tuple(sorted(self.aliases))

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(
            f"{type(self).__name__} has no attribute or constant {name}", name=name
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self:
            raise NotImplementedError(_IMMUTABLE)
        super().__setattr__(name, value)

    def __setitem__(self, name: str, value: Any) -> NoReturn:
        raise NotImplementedError(_IMMUTABLE)

    def __delitem__(self, name: str) -> NoReturn:
        raise NotImplementedError(_IMMUTABLE)

    def _identity(self) -> tuple[Any, ...]:
        return (type(self), self.ctype, *sorted(self.items()), *sorted(self.aliases.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EnumType) and self._identity() == other._identity()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self._identity())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), dict(self), vars(self))

    def __repr__(self) -> str:
        names = {name: f"({alias})" for alias, name in self.aliases.items()}
        constants = ", ".join(f"{k}{names.get(k, '')}:{self[k]}" for k in sorted(self))
        return f"{type(self).__name__}<{self.ctype}>({constants})"

    __str__ = __repr__

    # --- values -----------------------------------------------------------------------------------

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return a constant, given itself, its name or its alias."""
        if not strict:
            if isinstance(data, bool):
                data = int(data)
            elif isinstance(data, str):
                data = self.fromalias(data)
        if data not in self.values():
            raise AssertionError(f"{data!r} is no constant of {self}")
        return data

    # --- C++ --------------------------------------------------------------------------------------

    def c_to_string(self) -> str:
        """Return a C function from a value to the name of its constant, for the macro DEBUG."""
        cases = "".join(f'    case {name}: strcpy(out, "{name}"); break;\n' for name in self)
        return (
            "#ifdef DEBUG\n"
            f"int theano_enum_to_string_{self.cname}({self.ctype} in, char *out) {{\n"
            f"    switch (in) {{\n{cases}    default:\n"
            f'        PyErr_SetString(PyExc_ValueError, "{type(self).__name__}: unknown enum '
            'value.");\n        return -1;\n    }\n    return 0;\n}\n#endif\n'
        )

    def c_support_code(self) -> str:
        return "".join(f"#define {k} {self[k]!r}\n" for k in sorted(self)) + self.c_to_string()

    def c_declare(self, name: str, sub: Any, check_input: bool = True) -> str:
        return f"{self.ctype} {name};\n"

    def c_init(self, name: str, sub: Any) -> str:
        return f"{name} = ({self.ctype})0;\n"

    def c_cleanup(self, name: str, sub: Any) -> str:
        return ""

    def c_extract(self, name: str, sub: Any, check_input: bool = True) -> str:
        return (
            f"{name} = PyLong_Check(py_{name}) ? ({self.ctype})PyLong_AsLong(py_{name})\n"
            f"    : ({self.ctype})PyFloat_AsDouble(py_{name});\n"
            f"if (PyErr_Occurred()) {sub['fail']}\n"
        )

    def c_code_cache_version(self) -> tuple[Any, ...]:
        return (1, self.ctype, self.cname, tuple(self.items()))


def _restored(cls: type[EnumType], constants: dict[str, Any], state: dict[str, Any]) -> EnumType:
    """Return an enumeration that was pickled or copied."""
    new = cls.__new__(cls)
    dict.__init__(new, constants)
    vars(new).update(state)
    return new


class EnumList(EnumType):
    """An EnumType whose constants are 0, 1, 2, ...: ``EnumList("A", ("B", "beta"))``.

    A pair is a name and its alias. ctype: the C type of the param (default: int).
    """

    def __init__(self, *names: Any, ctype: str = "int", cname: str | None = None) -> None:
        constants: dict[str, Any] = {"ctype": ctype}
        if cname is not None:
            constants["cname"] = cname
        for i, name in enumerate(names):
            value: Any = i
            if isinstance(name, list | tuple):
                if len(name) != 2:
                    raise self._error(
                        "when using a tuple to define a constant, your tuple should contain 2 "
                        "values: constant name followed by constant alias."
                    )
                name, alias = name
                value = (alias, i)
            if not isinstance(name, str):
                raise self._error(f'constant name should be a string, got "{name}".')
            if name in constants:
                raise self._error(f'constant name already used ("{name}").')
            constants[name] = value
        super().__init__(**constants)


class CEnumType(EnumList):
    """An EnumList whose constants are defined in C: there they have the values of a header.

    In Python they are 0, 1, 2, ...
    """

    def c_support_code(self) -> str:
        return self.c_to_string()

    def c_extract(self, name: str, sub: Any, check_input: bool = True) -> str:
        cases = "".join(f"    case {value}: {name} = {c}; break;\n" for c, value in self.items())
        return (
            f"switch (PyLong_AsLong(py_{name})) {{\n{cases}    default:\n"
            '        PyErr_SetString(PyExc_ValueError, "CEnumType: invalid value to map to C '
            f'constants.");\n        {sub["fail"]}\n}}\n'
        )

    def c_code_cache_version(self) -> tuple[Any, ...]:
        return (1, super().c_code_cache_version())
