"""The table on a terminal, and what pages say of a run. The terminal alone needs ``rich``."""

from __future__ import annotations

import re
import statistics
import textwrap
from collections.abc import Callable, Iterable

from benchmark.processes import FAILED, LATE
from benchmark.suite.contenders import BEFORE, PROFILED, SUBJECT, is_peer
from benchmark.suite.results import (
    DECLINED,
    MISSING,
    OK,
    WRONG,
    Line,
    Outcome,
    Run,
    ratio,
)

HEADINGS = (
    "workload",
    "contender",
    "compile cold",
    "compile warm",
    "first call",
    "time a call",
    "p10 - p90",
    "profile/ fast_run",
    "opwise/ best peer",
    "/ limit",
)
CLOSE = 1.06  # the largest ratio to the best peer that is called close
NOISE = 0.03  # the share by which a time may change before it is called slower or faster
WIDTH = 150  # of what is not printed on a terminal
WRAPPED = 120  # columns of text in pages
SHORT = {FAILED: "failed", WRONG: "wrong", MISSING: "not installed", DECLINED: "-"}
LEGEND = (
    "compile: until the first result, less a later call; cold with an empty cache, warm with a "
    "filled one. * is the best peer. limit: the least that memory, matrix products or a call into "
    "C take on this machine."
)


def amount(seconds: float | None) -> str:
    """Three digits and a unit; of no time at all, 0."""
    if not seconds:
        return "" if seconds is None else "0"
    name, size = unit_of(seconds)
    return f"{digits(seconds / size)} {name}"


def unit_of(seconds: float) -> tuple[str, float]:
    """The largest unit of which there is one."""
    for name, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return name, size
    return "ns", 1e-9


def between(low: float, high: float, unit: float) -> str:
    """A range, in the unit in which that time is shown."""
    size = unit_of(unit)[1]
    return f"{digits(low / size)} - {digits(high / size)}"


def digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:#.3g}"


def times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 99.5 else f"{value:.0f}"


def short(outcome: Outcome) -> str:
    """What stands in place of a time that there is not."""
    return outcome.note.partition(" (")[0] if outcome.status == LATE else SHORT[outcome.status]


def rows(line: Line) -> list[list[str]]:
    """A row for the limit, then one for each contender that takes part."""
    best = line.best_peer()
    table = [[line.name, f"limit ({line.bound})", "", "", "", amount(line.limit), "", "", "", ""]]
    for outcome in line.outcomes:
        if outcome.status == DECLINED:
            continue
        name, ok = outcome.contender, outcome.status == OK
        spread = outcome.spread if ok else None
        table.append(
            [
                "",
                name + (" *" if outcome is best else ""),
                amount(outcome.cold),
                amount(outcome.warm),
                amount(outcome.first),
                amount(outcome.median) if ok else short(outcome),
                between(*spread, unit=outcome.median) if spread else "",
                times(line.profiled()) if name == PROFILED else "",
                times(line.to_best()) if name == SUBJECT else "",
                times(line.to_limit(name)),
            ]
        )
    return table


def details(run: Run) -> list[str]:
    """A line for everything that did not go well."""
    return [
        f"{line.name}: {outcome.contender}: {outcome.note}"
        for line in run.lines
        for outcome in line.outcomes
        if outcome.status in (FAILED, WRONG, LATE)
    ] + [f"not installed: {name}" for name in missing(run)]


def missing(run: Run) -> list[str]:
    outcomes = [outcome for line in run.lines for outcome in line.outcomes]
    return sorted({each.contender for each in outcomes if each.status == MISSING})


def show(run: Run) -> None:
    """Print the table on the terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    console = console if console.is_terminal else Console(highlight=False, width=WIDTH)
    table = Table(box=SIMPLE_HEAD, caption=LEGEND, caption_justify="left")
    for place, heading in enumerate(HEADINGS):
        left, ratio = place < 2, place > 6
        table.add_column(
            heading, justify="left" if left else "right", no_wrap=not ratio, min_width=9
        )
    for line in run.lines:
        for cells in rows(line):
            style = "bold" if cells[1] == SUBJECT else "dim" if cells[1].startswith("limit") else ""
            table.add_row(*map(escape, cells), style=style)
        table.add_section()
    for heading in (*about(run), ""):
        console.print(escape(heading))
    console.print(table)
    for line in (*standing(run), *changes(run), *details(run)):
        console.print(escape(line), soft_wrap=True)


def standing(run: Run) -> list[str]:
    """In how many workloads opwise leads, where it does not, and the means by peer."""
    ratios = {line.name: line.to_best() for line in run.lines if line.to_best() is not None}
    if not ratios:
        return []
    behind = {name: value for name, value in ratios.items() if value > 1}
    close = sum(value <= CLOSE for value in behind.values())
    said = [
        f"opwise is ahead of every peer in {len(ratios) - len(behind)} of {len(ratios)} workloads, "
        f"at most {CLOSE - 1:.0%} behind in {close}, further behind in {len(behind) - close}"
        + listed({name: value for name, value in behind.items() if value > CLOSE}),
        f"opwise / best peer, geometric mean: {mean(ratios.values())}",
    ]
    for name in filter(is_peer, contenders(run)):
        both = [ratio(line.median(SUBJECT), line.median(name)) for line in run.lines]
        if both := [value for value in both if value is not None]:
            said.append(f"opwise / {name}, {len(both)} workloads, geometric mean: {mean(both)}")
    return said


def changes(run: Run) -> list[str]:
    """What became slower, and faster, than in the other checkout."""
    ratios = {line.name: line.to_before() for line in run.lines if line.to_before() is not None}
    if not ratios:
        return []
    slower = {name: value for name, value in ratios.items() if value > 1 + NOISE}
    faster = sum(value < 1 - NOISE for value in ratios.values())
    return [
        f"opwise / {BEFORE}, {len(ratios)} workloads, geometric mean: {mean(ratios.values())}; "
        f"more than {NOISE:.0%} faster: {faster}, slower: {len(slower)}" + listed(slower)
    ]


def mean(ratios: Iterable[float]) -> str:
    return times(statistics.geometric_mean(ratios))


def listed(ratios: dict[str, float]) -> str:
    """Names with their ratios, the largest first, after a colon."""
    largest = sorted(ratios.items(), key=lambda pair: -pair[1])
    text = ", ".join(f"{name} {times(value)}" for name, value in largest)
    return f": {text}" if text else ""


def about(run: Run) -> list[str]:
    """The machine, the versions, the limits."""
    limits = run.limits
    lines = [f"{name}: {value}" for name, value in run.machine.items()]
    lines.append(f"a call into C: {amount(limits.call)}")
    lines += [f"{d} products: {rate / 1e9:.0f} Gflop/s" for d, rate in limits.flops.items()]
    lines += [
        f"memory, {row.footprint / 2**20:g} MiB: read {row.read / 1e9:.0f} GB/s, "
        f"triad {row.triad / 1e9:.0f} GB/s, past caches {row.streaming_triad / 1e9:.0f} GB/s"
        for row in limits.memory
    ]
    return lines + limits.notes


def markdown(run: Run) -> str:
    """One row a workload: opwise and what it is compared with, then a column for every peer."""
    names = [name for name in contenders(run) if is_peer(name)]
    headings = ["workload", "opwise", "profile/fast_run", "/ best peer", "/ limit"]
    headings += ["compile cold", "warm", *names]
    table = [headings, ["---"] + ["---:"] * (len(headings) - 1)]
    for line in run.lines:
        ours, best = line.of(SUBJECT), line.best_peer()
        cells = [line.name, cell(ours, False), times(line.profiled()), times(line.to_best())]
        cells += [times(line.to_limit()), amount(ours and ours.cold), amount(ours and ours.warm)]
        cells += [
            cell(line.of(name), best is not None and best.contender == name) for name in names
        ]
        table.append(cells)
    return tabulated(table)


# --- pages ----------------------------------------------------------------------------------------


def measured_on(run: Run) -> str:
    """Where, when and with which versions a run was measured."""
    machine = dict(run.machine)
    again = machine.pop("measured again", "")
    versions = [f"{name} {machine[name]}" for name in VERSIONS if machine.get(name)]
    rates = [f"{d} products at {rate / 1e9:.0f} Gflop/s" for d, rate in run.limits.flops.items()]
    text = (
        f"Measured on {machine['date']}: {machine['processor']} ({machine['vectors']}), "
        f"{machine['cores']} cores, {machine['system']}, {machine['compiler']}, {rates[0]}, "
        f"{rates[-1]}. Versions: {', '.join(versions)}."
    )
    return f"{text} Measured again later, at another commit: {again}." if again else text


#: what of a machine is a version of a program
VERSIONS = "opwise python numpy scipy numexpr numba pytensor jax torch".split()


def lead(run: Run) -> str:
    """In how many programs opwise leads, on how much of what hardware."""
    machine = run.machine
    ratios = [value for line in run.lines if (value := line.to_best()) is not None]
    ahead, close = sum(r <= 1 for r in ratios), sum(1 < r <= CLOSE for r in ratios)
    where = f"{machine['cores']} cores of an {machine['processor']} ({machine['vectors']})"
    return (
        f"On {where}, on {machine['date']}, opwise is faster than every peer in {ahead} of "
        f"{len(ratios)} programs, at most {CLOSE - 1:.0%} slower than the fastest in {close}, and "
        f"slower than that in {len(ratios) - ahead - close}. By the geometric mean, a call takes "
        f"{mean(ratios)} of the time of the fastest peer."
    )


def against(run: Run, peer: str) -> list[float]:
    """The ratios of opwise's time to that of a peer, in the programs that both ran."""
    both = [ratio(line.median(SUBJECT), line.median(peer)) for line in run.lines]
    return [value for value in both if value is not None]


def peers(run: Run) -> str:
    """A row for each peer: how many programs it ran, and how its time compares."""
    rows = [["peer", "programs", "time of opwise / time of the peer"], ["---", "---:", "---:"]]
    for name in filter(is_peer, contenders(run)):
        if both := against(run, name):
            rows.append([name, str(len(both)), mean(both)])
    return tabulated(rows)


def pytensor(run: Run) -> str:
    """How the time of a call compares with PyTensor's, by its linker."""
    texts = [
        f"With {linker}, opwise takes {mean(found)} of the time of PyTensor in the {len(found)} "
        f"programs that both ran, by the geometric mean, and {times(max(found))} in the program "
        f"with the largest ratio."
        for linker, peer in (("Numba", "pytensor-numba"), ("the CVM", "pytensor-cvm"))
        if (found := against(run, peer))
    ]
    machine = run.machine
    where = f"{machine['cores']} cores of an {machine['processor']}"
    version = f"PyTensor {machine.get('pytensor', 'unknown')}"
    return " ".join([*texts, f"Measured on {machine['date']}, on {where}, with {version}."])


def behind(run: Run) -> str:
    """A row for each program in which a peer leads by more than a little."""
    rows = [["program", "fastest peer", "time of opwise / time of that peer"]]
    rows.append(["---", "---", "---:"])
    slow = [line for line in run.lines if (line.to_best() or 0) > CLOSE]
    for line in sorted(slow, key=lambda line: -line.to_best()):
        rows.append([line.name, line.best_peer().contender, times(line.to_best())])
    return tabulated(rows)


def costs(run: Run) -> str:
    """What compiling and profiling take: the median, and the most."""
    ours = [(outcome, line.name) for line in run.lines if (outcome := line.of(SUBJECT))]
    texts = [
        longest(
            "Compile cold", [(each.cold, name) for each, name in ours if each.cold is not None]
        ),
        longest(
            "Compile warm", [(each.warm, name) for each, name in ours if each.warm is not None]
        ),
    ]
    profiled = [value for line in run.lines if (value := line.profiled()) is not None]
    if profiled:
        texts.append(
            f"Profiling makes a call {times(statistics.median(profiled))} times as long in the "
            f"median, and {times(max(profiled))} times at most."
        )
    return " ".join(filter(None, texts))


def longest(title: str, measured: list[tuple[float, str]]) -> str:
    """Say the median of the seconds, and the most, with the name of the program."""
    if not measured:
        return ""
    middle, (most, name) = statistics.median(s for s, _ in measured), max(measured)
    return f"{title}: {amount(middle)} in the median, {amount(most)} for {name}."


def filled(text: str, run: Run) -> str:
    """Return a page with its parts made anew: ``<!-- suite: PART -->`` begins one."""

    def part(match: re.Match[str]) -> str:
        made = PARTS[match[2]](run)
        made = made if made.startswith("|") else textwrap.fill(made, WRAPPED)
        return f"{match[1]}\n\n{made}\n\n{match[3]}"

    return MARKED.sub(part, text)


MARKED = re.compile(r"^(<!-- suite: (\w+) -->)$.*?^(<!-- /suite -->)$", re.S | re.M)


def tabulated(rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def cell(outcome: Outcome | None, best: bool) -> str:
    if outcome is None:
        return ""
    text = amount(outcome.median) if outcome.status == OK else short(outcome)
    return f"**{text}**" if best else text


def contenders(run: Run) -> list[str]:
    """Their names, in the order of the run."""
    return list(dict.fromkeys(each.contender for line in run.lines for each in line.outcomes))


#: the parts of pages that are made of a run
PARTS: dict[str, Callable[[Run], str]] = {
    "lead": lead, "peers": peers, "pytensor": pytensor, "behind": behind, "costs": costs,
    "machine": measured_on, "table": markdown,
}  # fmt: skip
