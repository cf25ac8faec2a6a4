"""What programs cost in opwise, in its peers, and at the least on this machine: one table.

python -m benchmark.suite [--only NAME] [--contenders a,b] [--json FILE [--again]] [--picture FILE]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import opwise
from benchmark.call_cost import machine
from benchmark.processes import ROOT
from benchmark.suite import limits, report
from benchmark.suite.contenders import BEFORE, CONTENDERS, SUBJECT, Before
from benchmark.suite.measure import Settings, line_of
from benchmark.suite.results import Run
from benchmark.suite.workloads import WORKLOADS

BUSY = 0.5
#: under which name a result tells of workloads that were measured later than the others
AGAIN = "measured again"
PACKAGES = "numpy scipy pytensor numba jax jaxlib numexpr torch".split()


def selected(names: list[str]) -> list[str]:
    """The workloads with these names, or with these pieces in their names."""
    chosen = set()
    for name in names:
        found = [name] if name in WORKLOADS else [each for each in WORKLOADS if name in each]
        if not found:
            raise SystemExit(f"no workload has {name!r} in its name; --list shows them all")
        chosen.update(found)
    return [name for name in WORKLOADS if name in chosen or not names]


def known(names: str) -> list[str]:
    chosen = names.split(",")
    for name in chosen:
        if name not in CONTENDERS:
            raise SystemExit(f"no contender is called {name!r}; there are {', '.join(CONTENDERS)}")
    return chosen


def with_before(checkout: Path, chosen: list[str]) -> list[str]:
    """Make the opwise of another checkout a contender, next to this one."""
    if not (checkout / "benchmark" / "suite").is_dir():
        raise SystemExit(f"--before needs a checkout of opwise; {checkout} has no benchmark/suite")
    CONTENDERS[BEFORE] = Before(checkout.resolve())
    return [each for name in chosen for each in ((name, BEFORE) if name == SUBJECT else (name,))]


def commit() -> str:
    """What is measured, where this is a checkout."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def measured(args: argparse.Namespace) -> Run:
    """Measure, and keep what is finished after every workload."""
    names, chosen = selected(args.only), known(args.contenders)
    if args.before:
        chosen = with_before(args.before, chosen)
    timed = [] if args.no_compile else known(args.compile)
    settings = Settings(args.rounds, args.timeout, timed, args.small)
    if os.getloadavg()[0] > BUSY:
        print(f"this machine is busy: its load is {os.getloadavg()[0]:.1f}", file=sys.stderr)
    print("measuring the limits of this machine", file=sys.stderr)
    about = {**machine(PACKAGES), "opwise": f"{opwise.__version__}, commit {commit()}"}
    run = Run(about, asdict(settings), limits.measure())
    if args.again:
        run = _kept(args.json, run, names)
    with tempfile.TemporaryDirectory(prefix="opwise-suite-", ignore_cleanup_errors=True) as kept:
        for name in names:
            run.put(line_of(WORKLOADS[name], chosen, settings, run.limits, Path(kept)))
            if args.json:
                run.write(args.json)
    run.limit(limits.better(run.limits, limits.measure()))
    if args.json:
        run.write(args.json)
    return run


def _kept(path: Path, new: Run, names: list[str]) -> Run:
    """The run in a file, to be measured again in part; SystemExit if that was another machine."""
    kept = Run.read(path)
    for key in sorted(kept.machine.keys() | new.machine.keys()):
        before, now = kept.machine.get(key), new.machine.get(key)
        if before != now and key not in ("date", "load", "opwise", AGAIN):
            raise SystemExit(f"{path} was measured with {key} {before}, this is {now}")
    if kept.settings != new.settings:
        raise SystemExit(f"{path} was measured with {kept.settings}, this is {new.settings}")
    kept.limits = limits.better(kept.limits, new.limits)
    before = kept.machine.get(AGAIN)
    now = f"{', '.join(names)}: {new.machine['opwise']}"
    kept.machine[AGAIN] = f"{before}; {now}" if before else now
    return kept


def require(module: str, purpose: str) -> None:
    """End before anything is measured if the result could not be shown."""
    if importlib.util.find_spec(module) is None:
        raise SystemExit(f"{purpose} needs {module}: pip install -r requirements/peers.txt")


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.suite", description=__doc__.splitlines()[0]
    )
    add = parser.add_argument
    add("--only", nargs="+", action="extend", default=[], metavar="NAME", help="or a piece of it")
    add("--contenders", default=",".join(CONTENDERS), metavar="A,B", help="default: all")
    add("--before", type=Path, metavar="FOLDER",
        help="a checkout of opwise, built: measure it in turn with this one")  # fmt: skip
    add("--rounds", type=int, default=Settings.rounds, help="samples for each (%(default)s)")
    add("--timeout", type=float, default=Settings.timeout, metavar="SECONDS",
        help="for one compilation (%(default)s)")  # fmt: skip
    add("--compile", default=",".join(CONTENDERS), metavar="A,B",
        help="measure cold and warm compilation of these alone (default: all)")  # fmt: skip
    add("--no-compile", action="store_true", help="do not measure compilation")
    add("--small", action="store_true", help="tiny sizes, to see that everything works")
    add("--json", type=Path, metavar="FILE", help="write everything that was measured")
    add(
        "--again",
        action="store_true",
        help="measure the workloads of --only, and put them among those in the file of --json",
    )
    add("--picture", type=Path, metavar="FILE", help="draw it; the ending tells the format")
    add("--from-json", type=Path, metavar="FILE", help="measure nothing, show what was kept")
    add("--markdown", action="store_true", help="print the table for a page")
    add("--pages", type=Path, nargs="+", default=[], metavar="FILE",
        help="write the parts of pages that are made of the results")  # fmt: skip
    add("--list", action="store_true", help="name the workloads and contenders")
    return parser


def main(argv: list[str] | None = None) -> int:
    args = parser().parse_args(argv)
    if args.list:
        width = max(map(len, WORKLOADS))
        print(*(f"{name:{width}}  {each.what}" for name, each in WORKLOADS.items()), sep="\n")
        print(f"\ncontenders: {', '.join(CONTENDERS)}")
        return 0
    if not (args.markdown or args.pages):
        require("rich", "a table other than that of --markdown")
    if args.picture:
        require("matplotlib", "--picture")
    if args.again and not (args.json and args.json.exists()):
        raise SystemExit("--again needs --json with the file of a run")
    run = Run.read(args.from_json) if args.from_json else measured(args)
    for page in args.pages:
        page.write_text(report.filled(page.read_text("utf-8"), run), encoding="utf-8")
    if args.markdown:
        print(report.markdown(run))
    elif not args.pages:
        report.show(run)
    if args.picture:
        from benchmark.suite import picture

        picture.draw(run, args.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
