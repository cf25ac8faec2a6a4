"""What a C++ compiler says about the code of users, with the lines that it is about."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping

from opwise.errors import CompileError

#: the most errors of the compiler that a message shows
_MOST_ERRORS = 3
#: newer compilers find an open parenthesis at the end of the text, and note where it was opened
_ERROR = re.compile(
    r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)? "
    r"(?:(?:fatal )?error: |note: (?=to match this))(?P<text>.*)$",
    re.MULTILINE,
)


def first_errors(e: CompileError, parts: Mapping[str, str]) -> str:
    """Return the first errors of a compiler, each with its line.

    parts: the texts of users by the names of their lines, as the directives ``#line`` give them.
    """
    found: dict[str, None] = {}
    for match in _ERROR.finditer(e.messages):
        name, number = match["file"], int(match["line"])
        text = f"  {name}, line {number}: {match['text']}"
        lines = parts.get(name, "").splitlines()
        if 0 < number <= len(lines):
            text += f"\n    {lines[number - 1].strip()}"
        found[text] = None
    shown = "\n".join(list(found)[:_MOST_ERRORS]) or f"  {e}"
    more = len(found) - _MOST_ERRORS
    return f"{shown}\n  and {more} more" if more > 0 else shown


def where(cls: type) -> str:
    """Return the file and the line of a class, as Python's tracebacks write them."""
    try:
        _, line = inspect.getsourcelines(cls)
        return f'File "{inspect.getsourcefile(cls)}", line {line}'
    except (OSError, TypeError):  # a class made without a class statement
        code = getattr(vars(cls).get("c_code"), "__code__", None)
        if code is None:
            return f"class {cls.__module__}.{cls.__qualname__}"
        return f'File "{code.co_filename}", line {code.co_firstlineno}'
