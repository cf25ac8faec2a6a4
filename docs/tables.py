"""Directives for pages: tables that are made of the code when the site is built."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from opwise.config.registry import options


class Flags(SphinxDirective):
    """Every flag of ``opwise.config``: its default, what it accepts, what it does."""

    def run(self) -> list[nodes.Node]:
        used = [flag for flag in options.values() if flag.used]
        rows = [
            (f"`{flag.fullname}`", _default(flag), _cell(flag.accepts()), _cell(flag.doc))
            for flag in sorted(used, key=lambda flag: flag.fullname.lower())
        ]
        ignored = sorted(f"`{flag.fullname}`" for flag in options.values() if not flag.used)
        text = _table(("flag", "default", "values", "what it does"), rows)
        text += f"\n\nAccepted and ignored, as old settings name them: {', '.join(ignored)}.\n"
        return self.parse_text_to_nodes(text)


def _default(flag: Any) -> str:
    """Return the default; those that depend on the computer are not shown."""
    return "" if callable(flag.default) else f"`{flag.default!r}`"


class Names(SphinxDirective):
    """The public functions and classes of a module: signature, and the first sentence of each."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = importlib.import_module(self.arguments[0])
        return self.parse_text_to_nodes(_table(("name", "does"), list(_summaries(module))))


def _summaries(module: Any) -> Iterator[tuple[str, str]]:
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    for name in sorted(set(names), key=str.lower):
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
