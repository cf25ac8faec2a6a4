"""Loops that call scalar operations of users: compiled as C++, with the users' support code."""

from __future__ import annotations

from collections.abc import Sequence

from opwise.errors import CompileError
from opwise.linkers import cbuild
from opwise.linkers.userops import recipe, source
from opwise.linkers.userops.compilererrors import first_errors, where
from opwise.scalar import usercode
from opwise.scalar.csource import FLAGS
from opwise.scalar.usercode import UserFunction


def build(loops: str, functions: Sequence[UserFunction]) -> cbuild.Build:
    """Start to compile the text of loops that call functions of users."""
    text = "\n".join(
        [
            source.support(),
            usercode.definitions(functions),
            '#pragma GCC visibility push(default)\nextern "C" {',
            loops,
            "}",
        ]
    )
    owners = [f.op for f in functions]
    versions = [op.c_code_cache_version() for op in owners]
    return cbuild.Build(text, recipe.of_owners(owners, text, versions, FLAGS, generated=True))


def explained(e: CompileError, functions: Sequence[UserFunction]) -> CompileError:
    """Return an error that names the operations of a text that does not compile."""
    names = ", ".join(dict.fromkeys(f"{f.op} ({where(type(f.op))})" for f in functions))
    parts = {name: text for f in functions for name, text in f.parts}
    return CompileError(
        f"The C++ code of {names} does not compile:\n{first_errors(e, parts)}\n"
        "Correct these lines, which its methods return.",
        messages=e.messages,
    )
