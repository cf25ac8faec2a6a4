"""The text of ProfileMode: Apply-wise, Op-wise and Type-Op-wise summaries, and their differences.

Programs parse this form: all its format strings are here. The sections that opwise adds follow the
legend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opwise.profiling import aggregate, compare
from opwise.profiling.aggregate import SummaryRow
from opwise.profiling.compare import Difference
from opwise.profiling.model import ProfileData
from opwise.profiling.reports import details, speedup

#: limit of the rows of the sections that opwise adds
_DETAILS = 10
_LEGEND = "(*) Op is running a c implementation"
_APPLY_HEADER = (
    "Apply-wise summary: <fraction of local_time spent at this position> "
    "(<Apply position>, <Apply Op name>)"
)
_OP_HEADER = "Op-wise summary: <fraction of local_time spent on this kind of Op> <Op name>"
_TYPE_HEADER = (
    "Type-Op-wise summary: <fraction of local_time spent on this type of Op> <Op type name>"
)
_RELATIONS = {
    "fused": "several of self, one of other",
    "split": "one of self, several of other",
    "regrouped": "several of self, several others of other",
    "similar": "the same line, which computes something else",
}
_APPLY_REST = "   ... (remaining %i Apply instances account for %.2f of the runtime)"
_OP_REST = "   ... (remaining %i Ops account for %.2f of the runtime)"
_TYPE_REST = "   ... (remaining %i Op types account for %.2f of the runtime)"


def _title(method: str) -> list[str]:
    title = f"ProfileMode.{method}()"
    return ["", title, "-" * len(title), ""]


def summary(profile: ProfileData, n_apply: int, n_ops: int) -> str:
    """Return the text of a profile, which ends with a newline.

    n_apply, n_ops: how many rows are shown of Applys, and of Ops and types. Fractions are of the
    time in all Applys.
    """
    local = profile.local_ns
    lines = _title("print_summary")
    lines.append("local_time %.12g (Time spent running thunks)" % (local * 1e-9))
    lines.append(_APPLY_HEADER)
    # ties: the later position, then the later text, first
    rows = sorted(
        aggregate.by_apply(profile), key=lambda r: (r.ns, r.position, r.label), reverse=True
    )
    lines += _rows(rows, n_apply, local, lambda r: "%i\t%s" % (r.position, r.label), _APPLY_REST)
    for header, rows, rest in (
        (_OP_HEADER, aggregate.by_op(profile), _OP_REST),
        (_TYPE_HEADER, aggregate.by_class(profile), _TYPE_REST),
    ):
        lines.append(header)
        rows = sorted(rows, key=lambda r: (r.ns, r.label), reverse=True)
        lines += _rows(rows, n_ops, local, lambda r: f"{_star(r.c)} {r.label}", rest)
    lines.append(_LEGEND)
    lines += _functions(profile)
    lines += details.sections(profile, min(n_apply, _DETAILS))
    return "\n".join(lines) + "\n"


def _star(c: bool) -> str:
    return "*" if c else " "


def _rows(
    rows: Sequence[SummaryRow],
    limit: int,
    total: int,
    text: Callable[[SummaryRow], str],
    rest: str,
) -> list[str]:
    share = [r.ns / total if total else 0.0 for r in rows]
    lines = ["\t%.3f\t%s" % (s, text(r)) for s, r in zip(share[:limit], rows[:limit], strict=True)]
    return [*lines, rest % (max(0, len(rows) - limit), sum(share[limit:]))]


def _functions(profile: ProfileData) -> list[str]:
    """Return the lines about functions, which Theano does not print."""
    lines = [
        "",
        "Functions: <seconds in calls> <of which in thunks> <calls> <microseconds a call> "
        "<seconds compiling (rewrites + linking)> <name>",
    ]
    for f in sorted(profile.functions, key=lambda f: f.call_ns, reverse=True):
        share = f.thunk_ns / f.call_ns if f.call_ns else 0.0
        per_call = f.call_ns / f.calls / 1e3 if f.calls else 0.0
        lines.append(
            "   %.6fs  %5.1f%%  %8d  %10.3f  %.3fs (%.3fs + %.3fs)  %s"
            % (
                f.call_ns * 1e-9, 100 * share, f.calls, per_call, f.compile.total,
                f.compile.optimizer, f.compile.linker,
                f.name if f.calls else f"{f.name} NOT CALLED",
            )
        )  # fmt: skip
    return lines


def difference(mine: ProfileData, theirs: ProfileData, n_apply: int, n_ops: int) -> str:
    """Return the text of the difference of two profiles: the first minus the second.

    Has seconds, and the ratio of the second to the first, for every Apply, Op and type of Op. Rows
    are sorted by the size of the difference; a row that only one side has says so.
    """
    lines = _title("print_diff_summary")
    lines.append(
        "local_time %.12g (Time spent running thunks: self %.12g - other %.12g)"
        % ((mine.local_ns - theirs.local_ns) * 1e-9, mine.local_ns * 1e-9, theirs.local_ns * 1e-9)
    )
    applys = compare.by_apply(mine, theirs)
    if all(row.only for row in applys):
        lines.append("Nothing matches: self and other share no Apply")
    columns = "<self - other, seconds> <self> <other> <other / self>"
    lines += [
        f"Apply-wise difference: {columns} (<Apply position>, <Apply Op name>)",
        *_difference_rows(applys, n_apply, "Apply instances"),
        f"Op-wise difference: {columns} <Op name>",
        *_difference_rows(compare.by_op(mine, theirs), n_ops, "Ops"),
        f"Type-Op-wise difference: {columns} <Op type name>",
        *_difference_rows(compare.by_class(mine, theirs), n_ops, "Op types"),
        "(*) Op is running a c implementation (first: self, second: other)",
    ]
    across = speedup.section(mine, theirs, max(n_apply, n_ops))
    lines += ["", *across] if across else []
    return "\n".join(lines) + "\n"


def _difference_rows(rows: Sequence[Difference], limit: int, what: str) -> list[str]:
    rows = sorted(rows, key=lambda r: (abs(r.ns), r.position, r.label), reverse=True)
    return [
        *(_difference_row(r) for r in rows[:limit]),
        "   ... (remaining %i %s account for a difference of %.3es)"
        % (max(0, len(rows) - limit), what, sum(r.ns for r in rows[limit:]) * 1e-9),
    ]


def _difference_row(r: Difference) -> str:
    mine, theirs = (row.ns if row else 0 for row in (r.mine, r.theirs))
    ratio = "%8.3gx" % (theirs / mine) if mine and theirs else "        -"
    stars = "".join(_star(row is not None and row.c) for row in (r.mine, r.theirs))
    position = "%i\t" % r.position if r.position >= 0 else ""
    note = _RELATIONS[r.relation] if r.relation else f"only in {r.only}" if r.only else ""
    note = f"  ({note})" if note else ""
    return "\t%+.3e\t%.3e\t%.3e\t%s\t%s %s%s%s" % (
        r.ns * 1e-9, mine * 1e-9, theirs * 1e-9, ratio, stars, position, r.label, note,
    )  # fmt: skip
