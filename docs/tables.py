"""Directives for pages: tables of the code, made when the site is built."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from opwise.config.registry import options
from opwise.tensor.elsewhere import public


class Flags(SphinxDirective):
    """Every flag of ``opwise.config``: its default, what it accepts, what it does."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(flags())


def flags() -> str:
    """Return the table of the flags that are used, and the names of the others."""
    used = [flag for flag in options.values() if flag.used]
    rows = [
        (f"`{flag.fullname}`", f"{_cell(flag.doc)} {_values(flag)}")
        for flag in sorted(used, key=lambda flag: flag.fullname.lower())
    ]
    ignored = sorted(f"`{flag.fullname}`" for flag in options.values() if not flag.used)
    text = _table(("flag", "what it does"), rows)
    return f"{text}\n\nAccepted and ignored, as old settings name them: {', '.join(ignored)}.\n"


#: how the type of a flag's values is called
_TYPES = {bool: "True or False", int: "an integer", float: "a number", str: "a text"}


def _values(flag: Any) -> str:
    """Return the default and the values of a flag; defaults of the computer are not shown."""
    if hasattr(flag, "all"):
        accepted = ", ".join(f"`{value}`" for value in flag.all)
    else:
        accepted = flag.accepts()
        for type_, name in _TYPES.items():
            accepted = accepted.replace(str(type_), name)
    default = ""
    if not callable(flag.default):
        default = f"Default: `{flag.default}`. " if flag.default != "" else "Default: empty. "
    return _cell(f"{default}Values: {accepted}.")


class Names(SphinxDirective):
    """The public functions and classes of a module: signature, and the first sentence of each."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = importlib.import_module(self.arguments[0])
        return self.parse_text_to_nodes(_table(("name", "does"), list(_summaries(module))))


def _summaries(module: Any) -> Iterator[tuple[str, str]]:
    for name in sorted(set(public(module)), key=str.lower):
        thing = getattr(module, name)
        text = _summary(thing)
        if callable(thing) and text:
            yield f"`{name}{_arguments(thing)}`", _cell(text)


def _summary(thing: Any) -> str:
    text = inspect.getdoc(thing) or ""
    return " ".join(text.partition("\n\n")[0].split())


def _arguments(thing: Any) -> str:
    """Return the names of the arguments; optional ones in brackets."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return ""
    if inspect.isclass(thing):
        return ""
    texts = [
        {p.VAR_POSITIONAL: f"*{p.name}", p.VAR_KEYWORD: f"**{p.name}"}.get(
            p.kind, p.name if p.default is p.empty else f"[{p.name}]"
        )
        for p in parameters
    ]
    return f"({', '.join(texts)})"


def _cell(text: str) -> str:
    """Return text for a cell of a table; ``code`` becomes `code`."""
    return text.replace("``", "`").replace("|", "\\|").replace("\n", " ")


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives to Sphinx."""
    app.add_directive("flags", Flags)
    app.add_directive("names", Names)
    return {"parallel_read_safe": True}
