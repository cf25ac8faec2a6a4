"""How the C++ code of users is compiled: the compiler's flags, headers and libraries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from opwise.errors import CompileError
from opwise.graph.clinker import texts
from opwise.linkers import cbuild
from opwise.linkers.cbuild import Recipe

#: Old code relies on compilers that took more than the standard of today: jumps over declarations,
#: narrowing, and text constants that are not const are accepted.
FLAGS = (
    "-O3", "-march=native", "-fno-math-errno", "-fPIC", "-shared", "-std=gnu++14", "-fpermissive",
    "-fvisibility=hidden", "-w", "-Wno-narrowing",
)  # fmt: skip

_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"\n]+)[>"]', re.MULTILINE)


@cache
def system_includes() -> tuple[str, ...]:
    """Return the flags for the headers of Python and numpy."""
    import sysconfig  # only compilations need it

    paths = sysconfig.get_paths()
    folders = dict.fromkeys((paths["include"], paths["platinclude"], np.get_include()))
    return tuple(f"-I{folder}" for folder in folders)


def of_owners(
    owners: Sequence[Any],
    text: str,
    versions: Iterable[Any],
    more: Sequence[str] = (),
    generated: bool = False,
) -> Recipe:
    """Return how to compile a text of Ops and Types.

    versions: what their ``c_code_cache_version`` says. more: flags after those of all users' code.
    generated: whether the text has generated C, which some flags of users would break. Raises
    CompileError without a C++ compiler.
    """
    path = cbuild.cxx_compiler()
    if path is None:
        raise CompileError(f"{cbuild.no_compiler() or 'There is no C++ compiler (g++)'}.")

    def all_of(method: str, *args: Any) -> list[str]:
        return list(dict.fromkeys(t for owner in owners for t in texts(owner, method, *args)))

    folders = all_of("c_header_dirs", None)
    unwanted = set(all_of("c_no_compile_args", None))
    given = [*all_of("c_compile_args", None), *cbuild.extra_flags()]
    wanted = [*FLAGS, *more, *given]
    last = cbuild.last_flags(path, given) if generated else ()
    link_folders = all_of("c_lib_dirs", None)
    return Recipe(
        path,
        (
            *(flag for flag in wanted if flag not in unwanted),
            *last,
            *system_includes(),
            *(f"-I{folder}" for folder in folders),
        ),
        (
            *(flag for d in link_folders for flag in (f"-L{d}", f"-Wl,-rpath,{d}")),
            *(f"-l{name}" for name in all_of("c_libraries", None)),
        ),
        "c++",
        (np.__version__, repr(list(versions)), *_contents(text, folders)),
    )


def _contents(text: str, folders: Sequence[str]) -> list[str]:
    """Return the contents of the user's headers that a text includes, also through others."""
    found: dict[str, str] = {}
    texts_left = [text]
    while texts_left:
        for name in _INCLUDE.findall(texts_left.pop()):
            for folder in folders:
                path = os.path.join(folder, name)
                if path not in found and os.path.isfile(path):
                    with open(path, encoding="utf-8", errors="replace") as f:
                        found[path] = f.read()
                    texts_left.append(found[path])
                    break
    return [part for item in sorted(found.items()) for part in item]
