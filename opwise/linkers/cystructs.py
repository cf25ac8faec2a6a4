"""Declares structs of csupport for Cython, when opwise is built: each stands in its header only.

``generate`` makes a file structs_<header>.pxi for each header; native/*.pxd include them. Fields of
types that Cython does not know are left out: functions, and structs that only C reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent / "csupport"
#: by header
STRUCTS = {
    "runtime.h": ("ow_slot", "ow_step", "ow_guard", "ow_choice"),
    "kinds.h": ("ow_kind",),
    "on_demand.h": ("ow_on_demand",),
    "simd.h": ("ow_loop_row",),
    "code.h": ("ow_instr", "ow_code"),
    "timing.h": ("ow_times", "ow_call"),
}
#: types of fields that are declared elsewhere
KNOWN = {
    "char", "double", "int", "int32_t", "int64_t", "size_t", "uint64_t", "void",
    "ow_chunk_fn", "ow_fn", "ow_loop", "ow_reducer",
}  # fmt: skip
#: names of fields that Cython takes for something else
_RENAMED = {"in": 'in_ "in"'}


def generate() -> dict[str, str]:
    """Return {file name: text} of the declarations.

    Raises LookupError for a struct that is missing.
    """
    known = {*KNOWN, *(name for names in STRUCTS.values() for name in names)}
    files = {}
    for header, names in STRUCTS.items():
        text = (FOLDER / header).read_text(encoding="utf-8")
        lines = [f"# opwise/linkers/cystructs.py made it of csupport/{header}", ""]
        lines.append(f'cdef extern from "{header}":')
        for name in names:
            fields = [f"        {field}" for field in _fields(text, name, known)]
            lines += [f"    ctypedef struct {name}:", *(fields or ["        pass"])]
        files[f"structs_{header.removesuffix('.h')}.pxi"] = "\n".join([*lines, ""])
    return files


def _fields(text: str, name: str, known: set[str]) -> Iterator[str]:
    """Yield the fields of a struct as Cython declares them."""
    numbers = dict(re.findall(r"^#define (\w+) (\d+)$", text, re.M))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    body = re.search(
        rf"^(?:typedef struct(?: \w+)? \{{([^{{}}]*)\}} {name}|struct {name} \{{([^{{}}]*)\}});",
        text,
        re.M,
    )
    if body is None:
        raise LookupError(f"csupport has no struct {name} that cystructs.py can read")
    for declaration in (body[1] or body[2]).split(";"):
        found = re.fullmatch(r"\s*((?:const )?)(\w+) ([^()]+?)\s*", declaration, re.S)
        if found is None or found[2] not in known:
            continue
        for declared in found[3].split(","):
            stars, field, length = re.fullmatch(  # type: ignore[union-attr]
                r"\s*([* ]*)(\w+)(?:\[(\w+)\])?", declared
            ).groups()
            size = f"[{numbers.get(length, length)}]" if length else ""
            yield f"{found[1]}{found[2]} {stars}{_RENAMED.get(field, field)}{size}"
