"""From a Profile, or from the difference of two, to one HTML file that needs no network.

The page may run the scripts that are named by their hashes in it, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path

from opwise.profiling import compared
from opwise.profiling.files import write_whole
from opwise.profiling.html import data, differencedata
from opwise.profiling.memory import readable
from opwise.profiling.merge import merge

_HERE = Path(__file__).parent

#: in this order they are one script
_SCRIPTS = {
    "profile": ("text", "model", "tables", "graph", "charts", "cards", "details", "report"),
    "difference": ("text", "tables", "charts", "difference"),
}


def write(profile, path):
    """Write the page of a Profile to a file, which is replaced as a whole. Raises OSError."""
    write_whole(path, page(profile, *data.limits(profile)))


def write_difference(before, after, path, names=("", "")):
    """Write the page of the difference of some runs to others to a file. Raises OSError.

    before, after: the Profiles of the runs. names: the files, or folders, that they are from.
    """
    tables = differencedata.tables(before, after)
    about = compared.rows(before, after, names)
    write_whole(path, difference_page(merge(before), merge(after), tables, about))


def page(profile, limits=None, machine=None):
    """Return the page of a Profile as text."""
    shown = data.of_profile(profile, limits, machine)
    return _page("profile", shown, " · ".join(_names(profile)) or "Profile", brief(profile))


def difference_page(before, after, tables, about=None):
    """Return the page of a difference as text. about: ``compared.rows`` of the two sides."""
    about = compared.rows([before], [after]) if about is None else about
    sides = [" · ".join(_names(profile)) for profile in (before, after)]
    title = " → ".join(dict.fromkeys(filter(None, sides)))
    shown = differencedata.of_difference(before, after, tables, about, title)
    title = f"{title} · difference" if title else "Difference of two profiles"
    return _page("difference", shown, title, brief(before) + brief(after))


def _names(profile):
    """Return what tells a Profile from others: its name, and that of its program."""
    return list(dict.fromkeys(filter(None, (data.name(profile), data.program(profile)))))


def brief(profile, rows=10):
    """Return the main figures and the slowest Applys as a piece of HTML without scripts."""
    applys = sorted(profile.applys, key=lambda apply: -apply.total)
    return _environment().get_template("brief.html.j2").render(
        profile=profile,
        calls=sum(f.calls for f in profile.functions),
        call_ns=sum(f.call_ns for f in profile.functions),
        compile_ns=sum(f.compile.total for f in profile.functions) * 1e9,
        peak=max((f.memory.peak for f in profile.functions if f.memory), default=None),
        applys=applys[:rows],
        rest=len(applys[rows:]),
    )  # fmt: skip


def _page(kind, shown, title, brief_html):
    import markupsafe

    scripts = [
        _asset("vendor/echarts.min.js"),
        _asset("vendor/tabulator.min.js"),
        _own_script(kind),
    ]
    return _environment().get_template(f"{kind}.html.j2").render(
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


def embedded(value):
    """Return plain data as JSON that may stand inside an element ``script``."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def _asset(name):
    return (_HERE / name).read_text(encoding="utf-8")


def _own_script(kind):
    parts = [_asset(f"assets/{name}.js") for name in _SCRIPTS[kind]]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"


def _sha256(script):
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def _environment():
    import jinja2  # slow to import

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(duration=duration, bytesize=readable)
    return environment


def duration(ns):
    """Return nanoseconds as people read them."""
    for unit, factor in (("ns", 1), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)):
        if ns < 999.5 * factor or unit == "s":
            return f"{ns / factor:.3g} {unit}" if ns < 999.5e9 else f"{ns / 1e9:.0f} s"
    raise AssertionError(ns)
