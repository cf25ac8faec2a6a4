"""The text about the optimizer: every stage and pass with its time, and what its rules did."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opwise.profiling.model import FunctionProfile, ProfileData

#: the record of a pass, or of a rule
Record = dict[str, Any]

_TITLE = ["Optimizer Profile", "-----------------"]


def section(profile: ProfileData) -> list[str]:
    """Return the lines about the rewrites of each function that has them recorded."""
    lines: list[str] = []
    for function in profile.functions:
        if function.rewrites:
            lines += [*_TITLE, *_whole(function, function.rewrites), ""]
    return lines


def _whole(function: FunctionProfile, record: Record) -> list[str]:
    return [
        " %s  %s  time %.3fs for %d/%d nodes before/after optimization"
        % (record["kind"], record["name"], record["seconds"], record["nodes_before"],
           record["nodes_after"]),
        "       %.3fs for fgraph.validate()" % function.compile.validate,
        "   time      - (name, class, index, nodes before, nodes after) - validate time",
        *_passes(record["passes"], "   "),
    ]  # fmt: skip


def _passes(records: Iterable[Record], indent: str) -> list[str]:
    """Return the lines of some passes, the slowest first."""
    lines: list[str] = []
    for record in sorted(records, key=lambda r: -r["seconds"]):
        about = tuple(record[k] for k in ("name", "kind", "index", "nodes_before", "nodes_after"))
        lines.append(f"{indent}{record['seconds']:f}s - {about} - {record['validate']:.3f}s")
        lines += _details(record, indent + "  ")
    return lines


def _details(record: Record, indent: str) -> list[str]:
    counts, lines = record["counts"], []
    if record["failed"]:
        lines.append(f"{indent}it failed, and the graph was put back")
    lines += _counts(record, indent)
    lines += _rules(record["rules"], indent + "  ")
    if "rounds" in counts and record["passes"]:
        lines.append(f"{indent}Global, final and clean up optimizers")
        for k, one in enumerate(record["passes"]):
            lines += [f"{indent}Iter {k}", *_details(one, indent + " " * 8)]
    else:
        lines += _passes(record["passes"], indent + "  ")
    return lines


def _counts(record: Record, indent: str) -> list[str]:
    """Return the lines of the counts of a pass, which depend on its kind."""
    counts = record["counts"]
    if "rounds" in counts:
        return [
            "%s%s      %s" % (indent, record["kind"], record["name"]),
            "%s  time %.3fs for %d passes" % (indent, record["seconds"], counts["rounds"]),
            "%s  nb nodes (start, end,  max) %d %d %d"
            % (indent, record["nodes_before"], record["nodes_after"], counts["most_nodes"]),
        ]
    if "merged" in counts:
        return [
            indent + record["kind"],
            "%s  nb fail=%5d merged=%5d constant=%5d"
            % (indent, counts["failures"], counts["merged"], counts["constants"]),
        ]
    return [f"{indent}{name} {value}" for name, value in counts.items()]


def _rules(rules: Iterable[Record], indent: str) -> list[str]:
    """Return the lines about rules: those that did something, then those that took time."""
    rules = list(rules)
    used = sorted((r for r in rules if r["applied"]), key=lambda r: (-r["seconds"], -r["applied"]))
    idle = sorted((r for r in rules if not r["applied"]), key=lambda r: -r["seconds"])
    lines = []
    if used:
        lines.append(indent + "times - times applied - nb node created - name:")
        lines += [
            "%s%.3fs - %d - %d - %s" % (indent, r["seconds"], r["applied"], r["created"], r["name"])
            for r in used
        ]
    if idle:
        lines.append(
            "%s%.3fs - in %d optimization that were not used (display only those with a runtime "
            "> 0)" % (indent, sum(r["seconds"] for r in idle), len(idle))
        )
        lines += [
            "%s  %.3fs - %s" % (indent, r["seconds"], r["name"]) for r in idle if r["seconds"]
        ]
    return lines
