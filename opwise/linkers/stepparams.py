"""Parameters of C steps: structs of C, from the classes that stand beside the lowerings.

Fields are those of a struct, with 8 bytes each: docs/design/program.md says how. ``generate``
declares the structs when opwise is built, from the text of the modules, which cannot be imported
then; ``pack`` makes the memory of one when a function is linked.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import struct
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
#: the modules with the lowerings
MODULES = ("csteps", "convsteps", "imagesteps", "rowsteps", "sparsesteps")
_PLAIN = {"bool": "int64_t", "int": "int64_t", "float": "double"}
#: the fields that all steps have, of which C gets other things
COMMON = ("kind", "loop")


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A field of a struct."""

    name: str
    #: what it holds, or what each of its elements does: bool, int, float or the name of a class
    of: str
    #: how many of them it has; None for any number
    count: int | None = 1


def parameter(name: str, annotation: str) -> Parameter:
    """Return the field that an annotation describes. Raises TypeError if there is no such field."""
    elements = re.fullmatch(r"tuple\[(.+)\]", annotation)
    if elements is None:
        found = Parameter(name, annotation)
    else:
        first, *more = elements[1].split(", ")
        found = Parameter(name, first, None if more == ["..."] else 1 + len(more))
        if more != ["..."] and set(more) - {first}:
            raise TypeError(f"{name}: {annotation}: the elements of an array have one type")
    if not found.of.isidentifier():
        raise TypeError(f"{name}: {annotation} is no type of a parameter of a step in C")
    return found


# --- at run time --------------------------------------------------------------------------------


@cache
def _parameters(cls: Any) -> tuple[Parameter, ...]:
    """Return the fields of a class of steps."""
    return tuple(
        parameter(field.name, str(field.type))
        for field in dataclasses.fields(cls)
        if field.name not in COMMON
    )


def pack(step: Any) -> bytes:
    """Return the struct of a step, and behind it the elements of its tuples."""
    cls: Any = type(step)
    fields = _parameters(cls)
    values = [getattr(step, field.name) for field in fields]
    words = [_words(field, value) for field, value in zip(fields, values, strict=True)]
    size = sum(
        2 if field.count is None else len(of) for field, of in zip(fields, words, strict=True)
    )
    head: list[int] = []
    behind: list[int] = []
    for field, value, of in zip(fields, values, words, strict=True):
        if field.count is None:
            head += [len(value), 8 * (size + len(behind))]
            behind += of
        else:
            head += of
    return struct.pack(f"{len(head) + len(behind)}q", *head, *behind)


def _words(field: Parameter, value: Any) -> list[int]:
    """Return the words of 8 bytes that hold a value."""
    if isinstance(value, tuple):
        if field.of in _PLAIN and field.count not in (None, len(value)):
            raise TypeError(f"{field.name} has {field.count} elements, not {len(value)}")
        return [word for each in value for word in _words(field, each)]
    if dataclasses.is_dataclass(value):
        packed = pack(value)
        return list(struct.unpack(f"{len(packed) // 8}q", packed))
    if field.of == "float":
        return list(struct.unpack("q", struct.pack("d", value)))
    return [int(value)]


# --- when opwise is built -----------------------------------------------------------------------


def generate() -> dict[str, str]:
    """Return {file name: text} of the header with the structs."""
    found = Source()
    for name in MODULES:
        found.read((FOLDER / f"{name}.py").read_text(encoding="utf-8"), f"{name}.py")
    return {"step_params.h": found.header()}


class Source:
    """The classes of some modules, as text of C."""

    def __init__(self) -> None:
        #: {name of a class: its type in C}
        self.types: dict[str, str] = dict(_PLAIN)
        #: whether the struct of a class has tuples behind it, by class
        self.open: dict[str, bool] = {}
        self.text: list[str] = []

    def read(self, source: str, name: str) -> None:
        """Read the classes of a module. Raises SyntaxError at what has no counterpart in C."""
        lines = source.splitlines()
        for node in ast.parse(source).body:
            if not isinstance(node, ast.ClassDef):
                continue
            bases = {ast.unparse(base) for base in node.bases}
            try:
                if "IntEnum" in bases:
                    self._enum(node)
                elif "NamedTuple" in bases:
                    self._struct(node, lines, f"ow_{_snake(node.name)}")
                elif "CStep" in bases:
                    name_of_struct = f"ow_{_snake(node.name.removesuffix('Step'))}_params"
                    self._struct(node, lines, name_of_struct, COMMON)
            except TypeError as error:
                raise SyntaxError(
                    f"class {node.name}: {error}", (name, node.lineno, 1, None)
                ) from None

    def _enum(self, node: ast.ClassDef) -> None:
        prefix = _snake(node.name).upper()
        members = [
            f"OW_{prefix}_{one.targets[0].id} = {ast.unparse(one.value)}"  # type: ignore[attr-defined]
            for one in node.body
            if isinstance(one, ast.Assign)
        ]
        self.types[node.name] = "int64_t"
        self.text.append(f"/* {_sentence(node)} */\nenum {{ {', '.join(members)} }};\n")

    def _struct(
        self, node: ast.ClassDef, lines: list[str], c_name: str, but: tuple[str, ...] = ()
    ) -> None:
        fields = [
            (parameter(one.target.id, ast.unparse(one.annotation)), _comment(lines, one.lineno))
            for one in node.body
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
            if one.target.id not in but
        ]
        if not fields:
            raise TypeError("it has no parameters: name its kind as CStep(kind)")
        declared, readers = [], []
        for field, comment in fields:
            type_ = self.types.get(field.of)
            if type_ is None or self.open.get(field.of):
                raise TypeError(f"{field.name}: {field.of} is no type that a field can have")
            if comment:
                declared.append(f"    /* {comment} */")
            if field.count is None:
                declared.append(f"    ow_many {field.name};")
                reader = f"{c_name.removesuffix('_params')}_{field.name}"
                readers.append(
                    f"static inline const {type_} *{reader}(const {c_name} *p)\n"
                    f"{{\n    return (const {type_} *)((const char *)p + p->{field.name}.at);\n}}\n"
                )
            else:
                declared.append(
                    f"    {type_} {field.name}{f'[{field.count}]' if field.count > 1 else ''};"
                )
        self.types[node.name], self.open[node.name] = c_name, bool(readers)
        self.text += [
            f"/* {_sentence(node)} */\ntypedef struct {c_name} {{\n",
            *(f"{line}\n" for line in declared),
            f"}} {c_name};\n\n",
            *readers,
            "\n" if readers else "",
        ]

    def header(self) -> str:
        """Return the text of the header."""
        return _HEADER.format(structs="".join(self.text).rstrip())


_HEADER = """\
/* Parameters of steps: opwise/linkers/stepparams.py made it of the classes beside the lowerings. */
#ifndef OW_STEP_PARAMS_H
#define OW_STEP_PARAMS_H

#include <stdint.h>

/* Elements behind a struct: how many, and how many bytes behind its start the first one is. */
typedef struct ow_many {{
    int64_t count, at;
}} ow_many;

/* The parameters of a step, as the struct that they are. */
#define OW_PARAMS(step, name) ((const ow_##name##_params *)(step)->params)

{structs}

#endif
"""


def _snake(name: str) -> str:
    """Return a name in lower case, with an underscore before each further word."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _sentence(node: ast.ClassDef) -> str:
    """Return what a class says of itself, in one line. Raises TypeError if it says nothing."""
    said = ast.get_docstring(node)
    if not said:
        raise TypeError("it has no docstring")
    return " ".join(said.split())


def _comment(lines: Iterable[str], lineno: int) -> str:
    """Return the comment, in lines that begin with "#:", above a line."""
    found: list[str] = []
    for line in reversed(list(lines)[: lineno - 1]):
        if not line.strip().startswith("#:"):
            break
        found.insert(0, line.strip().removeprefix("#:").strip())
    return " ".join(found)
