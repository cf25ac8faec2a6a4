"""ParamsType: several params of an Op as one object in Python, and as one struct in C++."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from opwise.graph.clinker import texts
from opwise.graph.enums import EnumType
from opwise.graph.type import Type

_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    class compl const const_cast constexpr continue decltype default delete do double dynamic_cast
    else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast restrict return short signed sizeof static static_assert static_cast struct
    switch template this thread_local throw true try typedef typeid typename union unsigned using
    virtual void volatile wchar_t while xor xor_eq
    """.split()
)


class Params(dict[str, Any]):
    """The values of a ParamsType by name, also as attributes; they cannot be changed."""

    def __init__(self, params_type: ParamsType, **values: Any) -> None:
        if not isinstance(params_type, ParamsType):
            raise TypeError("Params: 1st constructor argument should be a ParamsType.")
        for field in params_type.fields:
            if field not in values:
                raise TypeError(f'Params: ParamsType attribute "{field}" not in Params args.')
        super().__init__(values)
        vars(self)["__params_type__"] = params_type

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f'Params: attribute "{name}" does not exist.', name=name)
        return self[name]

    def _no_change(self, *args: Any) -> NoReturn:
        raise NotImplementedError("Params is immutable")

    __setattr__ = __setitem__ = __delitem__ = _no_change

    def signature(self) -> tuple[Any, ...]:
        """Return what is equal for equal params."""
        type_ = vars(self)["__params_type__"]
        return tuple(t.make_constant(self[f]).signature() for f, t in type_.by_field())

    def __hash__(self) -> int:  # type: ignore[override]
        return hash((type(self), vars(self)["__params_type__"], self.signature()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Params):
            return False
        type_ = vars(self)["__params_type__"]
        return type_ == vars(other)["__params_type__"] and bool(type_.values_eq(self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __reduce__(self) -> tuple[Any, ...]:
        return _params, (vars(self)["__params_type__"], dict(self))

    def __repr__(self) -> str:
        return (
            f"Params({', '.join(f'{k}:{type(self[k]).__name__}:{self[k]}' for k in sorted(self))})"
        )


def _params(params_type: ParamsType, values: dict[str, Any]) -> Params:
    return Params(params_type, **values)


class ParamsType(Type):
    """A struct of values of other types: ``ParamsType(axis=Scalar("int32"), table=matrix)``.

    In C++ it is a pointer: ``params->axis``. The names of constants of EnumTypes are attributes of
    the ParamsType. Raises ValueError without fields; AttributeError, SyntaxError or TypeError for a
    field that C++ cannot have.
    """

    def __init__(self, **types: Type) -> None:
        if not types:
            raise ValueError("Cannot create ParamsType from empty data.")
        for field, type_ in types.items():
            if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", field):
                raise AttributeError(
                    f'ParamsType: attribute "{field}" should be a valid identifier.'
                )
            if field in _KEYWORDS:
                raise SyntaxError(
                    f'ParamsType: "{field}" is a potential C/C++ keyword and should not be used as '
                    "attribute name."
                )
            if not isinstance(type_, Type):
                raise TypeError(
                    f'ParamsType: attribute "{field}" should inherit from Theano Type, got '
                    f'"{type(type_).__name__}".'
                )
        self.length = len(types)
        self.fields = tuple(sorted(types))
        self.types = tuple(types[field] for field in self.fields)
        self.name = self.generate_struct_name()
        self._enums: dict[str, EnumType] = {}
        self._aliases: dict[str, EnumType] = {}
        for type_ in self.types:
            if isinstance(type_, EnumType):
                self._add(self._enums, type_, type_, "names")
                self._add(self._aliases, type_.aliases, type_, "aliases")
        if not self._enums.keys().isdisjoint(self._aliases):
            raise AttributeError("ParamsType: found aliases that have same names as constants.")

    @staticmethod
    def _add(known: dict[str, EnumType], names: Any, enum: EnumType, what: str) -> None:
        for name in names:
            if name in known:
                raise AttributeError(
                    f"ParamsType: found different enum types with common constants {what}."
                )
            known[name] = enum

    def by_field(self) -> list[tuple[str, Type]]:
        """Return (field, its type) of each field, sorted."""
        return list(zip(self.fields, self.types, strict=True))

    def generate_struct_name(self) -> str:
        """Return the name of the struct in C++, which depends on the fields and their types."""
        import hashlib  # only Ops with params need it

        text = ",".join(f"{field}:{type_}" for field, type_ in self.by_field())
        return f"_Params_{hashlib.sha256(text.encode()).hexdigest()}"

    def has_type(self, theano_type: Type) -> bool:
        """Return whether a field has this type."""
        return theano_type in self.types

    def get_type(self, field_name: str) -> Type:
        """Return the type of a field."""
        return self.types[self.fields.index(field_name)]

    def get_field(self, theano_type: Type) -> str:
        """Return the first field of a type."""
        return self.fields[self.types.index(theano_type)]

    def get_enum(self, key: str) -> Any:
        """Return the constant of an EnumType by its name."""
        return self._enums[key][key]

    def enum_from_alias(self, alias: str) -> Any:
        """Return the constant of an EnumType by its alias, or else its name."""
        if alias in self._aliases:
            return self._aliases[alias].fromalias(alias)
        return self.get_enum(alias)

    def get_params(self, *objects: Any, **values: Any) -> Params:
        """Return Params with the attributes of ``objects``, of which the last counts, or values."""
        found: dict[str, Any] = {}
        for each in objects:
            found.update((f, getattr(each, f)) for f in self.fields if hasattr(each, f))
        found.update(values)
        return Params(
            self,
            **{
                f: t.filter(found[f], strict=False, allow_downcast=True) for f, t in self.by_field()
            },
        )

    def extended(self, **types: Type) -> ParamsType:
        """Return a ParamsType with more fields."""
        return ParamsType(**{**dict(self.by_field()), **types})

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return ``data`` if it is Params, else Params of its attributes; check all values."""
        if strict and not isinstance(data, Params):
            raise TypeError(f"{self}: strict mode: data should be an instance of Params.")
        values = {f: t.filter(getattr(data, f), strict, allow_downcast) for f, t in self.by_field()}
        return data if isinstance(data, Params) else Params(self, **values)

    def values_eq(self, a: Any, b: Any) -> bool:  # type: ignore[override]
        return all(t.values_eq(getattr(a, f), getattr(b, f)) for f, t in self.by_field())

    def values_eq_approx(self, a: Any, b: Any) -> bool:  # type: ignore[override]
        return all(t.values_eq_approx(getattr(a, f), getattr(b, f)) for f, t in self.by_field())

    def __getattr__(self, name: str) -> Any:
        enums = vars(self).get("_enums", {})
        if name in enums:
            return enums[name][name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name}", name=name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParamsType) and self.by_field() == other.by_field()

    def __hash__(self) -> int:
        return hash((type(self), self.fields, self.types))

    def __repr__(self) -> str:
        return f"ParamsType<{', '.join(f'{f}:{t}' for f, t in self.by_field())}>"

    __str__ = __repr__

    # --- C++ --------------------------------------------------------------------------------------

    def _of_all(self, method: str, *args: Any) -> list[str]:
        return [text for type_ in self.types for text in texts(type_, method, *args)]

    def c_compile_args(self, c_compiler: Any = None) -> list[str]:
        return self._of_all("c_compile_args", c_compiler)

    def c_no_compile_args(self, c_compiler: Any = None) -> list[str]:
        return self._of_all("c_no_compile_args", c_compiler)

    def c_headers(self, c_compiler: Any = None) -> list[str]:
        return self._of_all("c_headers", c_compiler)

    def c_libraries(self, c_compiler: Any = None) -> list[str]:
        return self._of_all("c_libraries", c_compiler)

    def c_header_dirs(self, c_compiler: Any = None) -> list[str]:
        return self._of_all("c_header_dirs", c_compiler)

    def c_lib_dirs(self, c_compiler: Any = None) -> list[str]:
        return self._of_all("c_lib_dirs", c_compiler)

    def c_init_code(self) -> list[str]:
        return self._of_all("c_init_code")

    def c_support_code(self) -> list[str]:
        """Return the support code of the fields' types, then the struct."""
        sub = {"fail": "return false;"}
        declared, cleaned, extracted = [], [], []
        for i, (field, type_) in enumerate(self.by_field()):
            declared.append(type_.c_declare(field, sub))
            cleaned.append(type_.c_cleanup(field, sub))
            extracted.append(
                f"bool extract_{i}(PyObject *py_{field}) {{\n{type_.c_init(field, sub)}\n"
                f"{type_.c_extract(field, sub)}\nreturn true;\n}}"
            )
        empty = "\n".join(type_.c_init(field, sub) for field, type_ in self.by_field())
        calls = "".join(
            f'    o = PyDict_GetItemString(values, "{field}");\n'
            "    if (o == NULL) {\n        PyErr_SetString(PyExc_TypeError, "
            f'"ParamsType: missing expected attribute {field} in object.");\n'
            f"        return false;\n    }}\n    if (!extract_{i}(o)) return false;\n"
            for i, field in enumerate(self.fields)
        )
        lines = "\n".join
        struct = (
            f"struct {self.name} {{\n{lines(declared)}\n{self.name}() {{\n{empty}\n}}\n"
            f"~{self.name}() {{\n{lines(cleaned)}\n}}\n{lines(extracted)}\n"
            f"bool extract(PyObject *values) {{\n    PyObject *o;\n{calls}    return true;\n}}\n"
            "};\n"
        )
        return [*dict.fromkeys(self._of_all("c_support_code")), struct]

    def c_declare(self, name: str, sub: Any, check_input: bool = True) -> str:
        return f"{self.name} *{name};\n"

    def c_init(self, name: str, sub: Any) -> str:
        return f"{name} = NULL;\n"

    def c_extract(self, name: str, sub: Any, check_input: bool = True) -> str:
        return f"{name} = new {self.name};\nif (!{name}->extract(py_{name})) {sub['fail']}\n"

    def c_cleanup(self, name: str, sub: Any) -> str:
        return f"delete {name};\n{name} = NULL;\n"

    def c_code_cache_version(self) -> tuple[Any, ...]:
        return (1, tuple(type_.c_code_cache_version() for type_ in self.types))


#: names of a development release
Wrap, Wrapper = Params, ParamsType
