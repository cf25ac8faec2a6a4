"""The picture: a bar for opwise, a mark for every other contender, a stroke for the limit."""

from __future__ import annotations

from pathlib import Path

from benchmark.suite.contenders import CONTENDERS, PROFILED, SUBJECT
from benchmark.suite.report import amount, contenders
from benchmark.suite.results import Run

MARKS = " |sD^vP*X<"  # by place in the table of contenders
ROW, FRAME, WIDTH = 0.27, 1.5, 11  # inches


def draw(run: Run, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter

    lines = run.lines
    height = FRAME + ROW * len(lines)
    figure, axes = pyplot.subplots(figsize=(WIDTH, height), layout="constrained")
    places = range(len(lines))
    colours = pyplot.get_cmap("tab10")
    ours = [line.median(SUBJECT) for line in lines]
    axes.barh(places, [t or 0 for t in ours], height=0.7, color="#c9d6ea", label=f"{SUBJECT}, bar")
    for place, line in enumerate(lines):
        label = "limit" if place == 0 else None
        axes.plot([line.limit] * 2, [place - 0.42, place + 0.42], "k-", lw=2, label=label)
    order = list(CONTENDERS)
    for name in contenders(run):
        if name == SUBJECT:
            continue
        rank = order.index(name)
        found = [(line.median(name), place) for place, line in enumerate(lines)]
        found = [(seconds, place) for seconds, place in found if seconds]
        if not found:
            continue
        axes.plot(
            *zip(*found, strict=True),
            MARKS[rank],
            color=colours(rank),
            markersize=12 if name == PROFILED else 5,
            label=name,
        )
    axes.set_xscale("log")
    axes.set_yticks(places, [line.name for line in lines], fontsize=8)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: amount(seconds)))
    axes.grid(axis="x", which="major", color="#ddd")
    axes.set_axisbelow(True)
    axes.set_xlabel("time a call; shorter is better")
    figure.suptitle(f"{run.machine['processor']}, {run.machine['cores']} cores", fontsize=9)
    figure.legend(loc="outside lower center", ncols=6, fontsize=8, frameon=False)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
