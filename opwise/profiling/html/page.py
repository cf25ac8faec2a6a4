"""The page of a profile, or of a difference: one HTML file that needs no network.

Its policy allows the scripts in it, by their hashes, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from opwise.profiling import cells
from opwise.profiling.environments import Triple, describe_sides
from opwise.profiling.files import write_whole
from opwise.profiling.html import differencedata, profiledata
from opwise.profiling.memory import readable
from opwise.profiling.merge import merge
from opwise.profiling.model import ApplyProfile, ProfileData

_HERE = Path(__file__).parent

#: our scripts of a kind of page, which become one script in this order
_SCRIPTS = {
    "profile": (
        "text",
        "model",
        "tables",
        "graph",
        "charts",
        "cards",
        "details",
        "program",
        "report",
    ),
    "difference": ("text", "tables", "charts", "difference"),
}


def write(profile: ProfileData, path: str | Path) -> None:
    """Write the page of a profile to a file, replacing the file as a whole. Raises OSError."""
    write_whole(path, page(profile, *profiledata.limits(profile)))


def write_difference(
    before: Sequence[ProfileData],
    after: Sequence[ProfileData],
    path: str | Path,
    names: tuple[str, str] = ("", ""),
) -> None:
    """Write the page of the difference of some runs to others to a file. Raises OSError.

    before, after: the profiles of the runs. names: their files or folders.
    """
    tables = differencedata.tables(before, after)
    about = describe_sides(before, after, names)
    write_whole(path, difference_page(merge(before), merge(after), tables, about))


def page(
    profile: ProfileData,
    limits: Sequence[profiledata.Data] | None = None,
    machine: profiledata.Data | None = None,
) -> str:
    """Return the page of a profile as text; arguments as of ``profiledata.of_profile``."""
    shown = profiledata.of_profile(profile, limits, machine)
    return _page("profile", shown, " · ".join(_names(profile)) or "Profile", brief(profile))


def difference_page(
    before: ProfileData,
    after: ProfileData,
    tables: differencedata.Tables,
    about: Sequence[Triple] | None = None,
) -> str:
    """Return the page of a difference as text.

    about: what was compared (default: ``describe_sides`` of both).
    """
    about = describe_sides([before], [after]) if about is None else about
    sides = [" · ".join(_names(profile)) for profile in (before, after)]
    title = " → ".join(dict.fromkeys(filter(None, sides)))
    shown = differencedata.of_difference(before, after, tables, about, title)
    title = f"{title} · difference" if title else "Difference of two profiles"
    return _page("difference", shown, title, brief(before) + brief(after))


def _names(profile: ProfileData) -> list[str]:
    """Return the name of a profile and that of its program."""
    names = profiledata.name(profile), profiledata.program(profile)
    return list(dict.fromkeys(filter(None, names)))


def brief(profile: ProfileData, rows: int = 10) -> str:
    """Return the main figures and the slowest Applys as a piece of HTML without scripts."""
    applys = [(function, apply) for function in profile.functions for apply in function.applys]
    applys.sort(key=lambda pair: -pair[1].total)
    return render(
        "brief.html.j2",
        profile=profile,
        calls=sum(f.calls for f in profile.functions),
        call_ns=sum(f.call_ns for f in profile.functions),
        compile_ns=sum(f.compile.total for f in profile.functions) * 1e9,
        peak=max((f.memory.peak for f in profile.functions if f.memory), default=None),
        applys=applys[:rows],
        rest=len(applys[rows:]),
    )


def _page(kind: str, shown: profiledata.Data, title: str, brief_html: str) -> str:
    import markupsafe

    scripts = [
        _asset("vendor/echarts.min.js"),
        _asset("vendor/tabulator.min.js"),
        _own_script(kind),
    ]
    return render(
        f"{kind}.html.j2",
        title=title,
        hashes=" ".join(f"'sha256-{_sha256(script)}'" for script in scripts),
        styles=[markupsafe.Markup(_asset(name)) for name in
                ("vendor/tabulator.min.css", "assets/page.css")],
        scripts=[markupsafe.Markup(script) for script in scripts],
        data=markupsafe.Markup(embedded(shown)),
        brief=markupsafe.Markup(brief_html),
        licences=[(name, _asset(f"vendor/{name}")) for name in
                  ("echarts.NOTICE", "echarts.LICENSE", "echarts.d3.LICENSE", "zrender.LICENSE",
                   "tslib.LICENSE", "tabulator.LICENSE")],
    )  # fmt: skip


def standalone(template: str, script: str, data: object, title: str) -> str:
    """Return a page with one script of ours, and without the libraries, as text."""
    import markupsafe

    text = f'(() => {{\n"use strict";\n{_asset(f"assets/{script}.js")}}})();\n'
    return render(
        template, title=title, hashes=f"'sha256-{_sha256(text)}'", script=markupsafe.Markup(text),
        data=markupsafe.Markup(embedded(data)),
    )  # fmt: skip


def render(template: str, **values: Any) -> str:
    """Return a template with values filled in; jinja2 escapes them."""
    return str(_environment().get_template(template).render(**values))


def embedded(value: object) -> str:
    """Return plain data as JSON that is safe inside an element ``script``."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _own_script(kind: str) -> str:
    parts = [_asset(f"assets/{name}.js") for name in _SCRIPTS[kind]]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def _environment() -> Any:
    import jinja2  # slow to import

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        duration=duration, bytesize=readable, cells=cells.names, place=_place
    )
    return environment


def _place(apply: ApplyProfile) -> str:
    """Return the line of an Apply without its folder, in a notebook with its cell."""
    return cells.place(*apply.lines[0]) if apply.lines else ""


def duration(ns: float) -> str:
    """Return nanoseconds as text with three digits, such as ``1.5 ms``."""
    for unit, factor in (("ns", 1), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)):
        if ns < 999.5 * factor or unit == "s":
            return f"{ns / factor:.3g} {unit}" if ns < 999.5e9 else f"{ns / 1e9:.0f} s"
    raise AssertionError(ns)
