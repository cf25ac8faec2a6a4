"""Reports and differences as Markdown, for comments of CI: short tables, the rest folded away.

Made of the documents of ``jsonreports``. Names are code spans, so that nothing in them is markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from opwise.profiling import jsonreports
from opwise.profiling.aggregate import GROUPINGS, NO_SCOPE
from opwise.profiling.costs import BYTES, SECONDS
from opwise.profiling.files import printable
from opwise.profiling.jsonreports import Document
from opwise.profiling.memory import readable
from opwise.profiling.model import ProfileData
from opwise.profiling.reports.wording import counted, short, short_place

#: letters of a name that are shown
_LETTERS = 100
#: rows of a difference that are not folded away
_SHOWN = 6


def report(profile: ProfileData, by: str = "apply", n: int = 10) -> str:
    """Return the Markdown of a profile.

    by: what the rows of the first table are, "apply" or a name of ``aggregate.GROUPINGS``. n: how
    many rows each table has.
    """
    data = jsonreports.report(profile)
    title = f": {code(data['message'])}" if data["message"] else ""
    lines = [
        f"### Profile{title}",
        "",
        f"{counted(len(data['functions']), 'function')}, {counted(data['calls'], 'call')}, "
        f"{_time(data['seconds_calls'])} in calls, {_time(data['seconds_applys'])} in Applys",
        "",
    ]
    tables = {"apply": _applys(data, n)}
    tables.update({name: _sums(data["by"][name], name, n) for name in GROUPINGS})
    lines += tables.pop(by)
    for name in ("apply", "line", "scope", "op"):
        is_empty = name == "scope" and all(row["label"] == NO_SCOPE for row in data["by"][name])
        if name in tables and len(tables[name]) > 2 and not is_empty:
            lines += ["", *_folded(f"By {name}", tables[name])]
    return _text([*lines, "", *_folded("Environment", _environment(data["environments"]))])


def _applys(data: Document, n: int) -> list[str]:
    shown = data["applys"][:n]
    rows = [
        ("~" * a["estimated"] + _time(a["seconds"]), _percent(a["share"]), a["calls"],
         _time(a["seconds_median"]) if a["seconds_median"] and not a["seconds_inside"] else "",
         code(a["runs_in"]),
         _function(a["function"]), _places(a["lines"]), code(a["apply"]))
        for a in shown
    ]  # fmt: skip
    headings = ("time", "share", "runs", "median", "in", "function", "line", "Apply")
    return _table(headings, rows, "rrrr", len(data["applys"]))


def _sums(data: list[Document], name: str, n: int) -> list[str]:
    rows: list[Sequence[object]] = [
        (_time(row["seconds"]), _percent(row["share"]), row["calls"],
         code(short_place(row["label"]) if name == "line" else row["label"]), code(row["source"]))
        for row in data[:n]
    ]  # fmt: skip
    if not any(row["source"] for row in data):
        rows = [row[:-1] for row in rows]
    headings = ("time", "share", "runs", name, "text")
    return _table(headings[: len(rows[0]) if rows else 0], rows, "rrr", len(data))


def difference(data: Document, n: int = 10) -> str:
    """Return the Markdown of the document of a difference. n: how many rows the table has."""
    lines = [f"### {_headline(data)}", "", *_failures(data, n), *_differences(data, n)]
    if data["costs"]:
        lines += ["", *_folded("Cost of a run", _costs(data["costs"]))]
    return _text([*lines, "", *_folded("Environment", _both_environments(data))])


def _costs(rows: list[Document]) -> list[str]:
    """Return the table of what whole runs cost."""
    shown = [
        (_amount(row["before"], row["unit"]), _amount(row["after"], row["unit"]), _ratio(row),
         _interval(row), row["verdict"], row["label"])
        for row in rows
    ]  # fmt: skip
    return _table(("before", "after", "ratio", "95 %", "verdict", ""), shown, "rrrr", len(shown))


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit == SECONDS:
        return _time(value)
    return readable(value) if unit == BYTES else f"{value:,.0f}"


def _failures(data: Document, n: int) -> list[str]:
    """Return the lines about what exceeds a limit, up to n rows of it, or is not judged."""
    failed = [row for row in (data["total"], *data["rows"]) if row["failed"]]
    large = [row for row in data["costs"] if row["failed"]]
    lines: list[str] = []
    if failed:
        rows, ratio = counted(len(failed), "row"), data["limit"]["ratio"]
        lines += [
            f"**Failed**: {rows} took more than {ratio:g} times as long:",
            "",
            *(f"- {_ratio(row)} {_where(row)}" for row in failed[:n]),
            *([f"- and {len(failed) - n} more"] if len(failed) > n else []),
            "",
        ]
    if large:
        lines += [
            f"**Failed**: {counted(len(large), 'cost')} of a run above the limit:",
            "",
            *(f"- {_ratio(row)} {row['label']}" for row in large),
            "",
        ]
    if data["not_judged"]:
        lines += [*(f"- {printable(line)}" for line in data["not_judged"]), ""]
    return lines


def _differences(data: Document, n: int) -> list[str]:
    """Return the table of differences, its smaller rows folded away."""
    several = max(data["runs"].values()) > 1
    before, after = _cells(several)
    by_line = data["by"] == "line"
    rows = [
        (_time(row[before]), _time(row[after]), _ratio(row),
         *((_interval(row), row["verdict"]) if several else ()), row["relation"],
         ", ".join(map(_function, row["functions"])),
         *((_label_of_lines(row["label"]),) if by_line
           else (_places(row["lines"]), code(row["label"]))))
        for row in (data["total"], *data["rows"][:n])
    ]  # fmt: skip
    shown = min(_SHOWN, n)
    of_runs = ("95 %", "verdict") if several else ()
    what = ("line",) if by_line else ("line", "Apply" if data["by"] == "apply" else data["by"])
    headings = ("before", "after", "ratio", *of_runs, "", "function", *what)
    right = "rrrr" if several else "rrr"
    first = rows[: shown + 1]  # the sum of all rows, then the largest
    lines = _table(headings, first, right, len(first))
    more = len(data["rows"]) - shown
    if more > 0 and n == shown:
        lines += ["", counted(more, "more row")]
    elif more > 0:
        lines += [
            "",
            *_folded(counted(more, "more row"), _table(headings, rows[shown + 1 :], right, more)),
        ]
    return lines


def _label_of_lines(label: str) -> str:
    """Return the cell of a row that is about a line, or about two that match."""
    return code(" | ".join(map(short_place, label.split(" | "))))


def _headline(data: Document) -> str:
    total, runs = data["total"], data["runs"]
    before, after = _cells(max(runs.values()) > 1)
    sides = f"{_time(total[before])} before, {_time(total[after])} after"
    if total["ratio"] is None:
        return f"Nothing to compare: {sides}"
    verdict = f", {total['verdict']}" if total["verdict"] else ""
    counts = f"{runs['before']} and {runs['after']} runs" if max(runs.values()) > 1 else "one run"
    return f"{total['ratio']:.3g} times the time{verdict}: {sides} ({counts})"


def _cells(several: bool) -> tuple[str, str]:
    what = "seconds_a_call" if several else "seconds"
    return f"{what}_before", f"{what}_after"


def _ratio(row: Document) -> str:
    return "" if row["ratio"] is None else f"{row['ratio']:.3f}x"


def _interval(row: Document) -> str:
    ends = row["interval"]
    return "" if not ends or None in ends else "%.3f to %.3f" % tuple(ends)


def _where(row: Document) -> str:
    functions = f" in {', '.join(map(code, row['functions']))}" if row["functions"] else ""
    lines = f" at {_places(row['lines'])}" if row["lines"] else ""
    return f"{code(row['label'])}{functions}{lines}"


def _both_environments(data: Document) -> list[str]:
    rows: list[str] = []
    for name in ("before", "after"):
        rows += [f"{name}:", "", *_environment(data[name]["environments"]), ""]
    return rows


def _environment(environments: list[dict[str, Any]]) -> list[str]:
    first = environments[0] if environments else {}
    names = ("program", "date", "opwise", "numpy", "python", "machine", "system", "node", "threads",
             "blas", "blas_threads", "flags")  # fmt: skip
    rows = [f"- {name}: {code(first[name])}" for name in names if first.get(name) not in (None, "")]
    more = len(environments) - 1
    others = f"- and {counted(more, 'more process', 'more processes')}"
    return [*rows, others] if more > 0 else rows


# --- parts ----------------------------------------------------------------------------------------


def code(value: object) -> str:
    """Return a text as a code span, in which nothing is markup, not even within a table."""
    text = printable(short(str(value), _LETTERS))
    if not text:
        return ""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


def _table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], right: str, count: int
) -> list[str]:
    """Return the lines of a table. right: one letter r for each leading column of numbers."""
    rows = list(rows)
    if not rows:
        return ["nothing"]
    marks = ["---:" if k < len(right) and right[k] == "r" else "---" for k in range(len(headings))]
    lines = [headings, marks, *rows]
    more = ["", counted(count - len(rows), "more row")] if count > len(rows) else []
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines] + more


def _folded(title: str, lines: Iterable[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]


def _function(name: str) -> str:
    """Return the cell for the name of a function, which is a place if the program gave it none."""
    return code(short_place(name))


def _places(places: Sequence[str]) -> str:
    return code(short_place(places[0])) if places else ""


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}%"


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"
