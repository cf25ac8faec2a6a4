"""Search for programs whose results depend on the mode, and write each as a test.

With --processes, search for programs about which opwise reports something else in a second process,
which reads their graphs from the cache, or after kernels have replaced built-in loops: results bit
for bit, errors, lines, profiles and reports.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic, process_time

from opwise.config import change_flags
from opwise.profiling import progress
from opwise.profiling.progress import Bar
from opwise.testing.configurations import CONFIGURATIONS, REFERENCE, THOROUGH
from opwise.testing.fuzz import processes
from opwise.testing.fuzz.examine import examine
from opwise.testing.fuzz.grow import Fault, Rejected
from opwise.testing.fuzz.program import RandomProgram
from opwise.testing.fuzz.shrink import Recorded, shrunk
from opwise.testing.fuzz.whole import LOOPS, USERS, grown

#: the configurations of every program; each program also gets one of the others, in turn
QUICK = ["no optimizer, c|py", "FAST_COMPILE", "FAST_RUN, built-in kernels"]
OTHERS = [w for w in CONFIGURATIONS if w not in QUICK and w not in (REFERENCE, "FAST_RUN")]
#: one of so many programs is compiled by a C compiler
COMPILED = 25


class _Search:
    """A search: what it has run and found so far."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.end = monotonic() + 60 * args.minutes
        self.started = self.shown = monotonic()
        #: the bar on a terminal, where it takes the place of printed figures
        self.bar: Bar | None = None
        self.graphs = 0
        self.statements = 0
        #: how many faults of each kind were found
        self.faults: dict[str, int] = {}
        #: how often each statement was refused
        self.refused: dict[str, int] = {}
        #: with --processes: how many programs took their graph from the cache
        self.cached = 0

    def configurations(self, program: RandomProgram) -> list[str]:
        """Return the configurations to run a program in."""
        if self.args.modes:
            return list(self.args.modes)
        configurations = [*QUICK, OTHERS[program.seed % len(OTHERS)]]
        if program.seed % COMPILED == 0:
            configurations.append("FAST_RUN")
        return configurations

    def one(self, seed: int) -> None:
        """Run one random program; if it fails, simplify it and write it as a test."""
        source = Recorded(seed=seed)
        try:
            fault = self.fault_of(source, seed % 5 == 4, count=True)
        except RecursionError:  # a program that is too deep for Python is no fault
            return
        self.progress()
        if fault is not None:
            self.keep(self.shrunk(source.choices, seed % 5 == 4, fault))

    def in_processes(self, seed: int) -> int:
        """Run a batch of programs in two processes; return the seed after them."""
        options = processes.Options(self.args.steps, self.args.loops)
        count: int = self.args.batch
        if self.args.graphs > 0:
            count = min(count, self.args.graphs - self.graphs)
        first: dict[int, processes.Difference] = {}
        for difference in processes.compare(seed, count, options, self._ran):
            first.setdefault(difference.seed, difference)
        for difference in first.values():
            self.keep_text(
                re.sub("seed [0-9]+", "", str(difference)), f"{difference}",
                processes.source(difference, options),
            )  # fmt: skip
        return seed + count

    def _ran(self, seed: int, cached: bool) -> None:
        self.graphs += 1
        self.cached += cached
        self.progress()

    def fault_of(
        self,
        source: Recorded,
        special: bool,
        count: bool = False,
        configurations: list[str] | None = None,
    ) -> Fault | None:
        """Return the Fault of the program that a source of choices makes, or None."""
        try:
            program = grown(
                source, self.args.steps, special, self.refused if count else None,
                [*LOOPS * self.args.loops, *USERS * self.args.users] or None,
            )  # fmt: skip
            if program is None:
                return None
            if count:
                self.graphs += 1
                self.statements += len(program.statements)
            examine(program, configurations or self.configurations(program))
        except Fault as fault:
            return fault
        except Rejected:
            return None
        return None

    def shrunk(self, choices: list[int], special: bool, fault: Fault) -> Fault:
        """Return the simplest Fault found from another, in the same configuration."""
        found = [fault]
        configurations = None if fault.configuration == REFERENCE else [fault.configuration]

        def fails(given: list[int]) -> list[int] | None:
            source = Recorded(given)
            again = self.fault_of(source, special, configurations=configurations)
            if again is None or again.configuration != fault.configuration:
                return None
            found.append(again)
            return source.choices

        best = shrunk(choices, fails, self.args.shrink)
        again = self.fault_of(Recorded(best), special, configurations=configurations)
        return again if again is not None else found[-1]

    def enough(self) -> bool:
        """Return whether --graphs programs ran, or --faults faults were found."""
        return bool(self.graphs == self.args.graphs or len(self.faults) == self.args.faults)

    def progress(self) -> None:
        """Show the figures on a terminal, else print them every few seconds."""
        now = monotonic()
        if self.bar is not None:
            self.bar.update(now - self.started, text=self.figures())
            return
        if now - self.shown < self.args.every:
            return
        self.shown = now
        print(self.figures(), flush=True)

    def figures(self) -> str:
        """Return how long the search has run, and what it has done."""
        seconds, busy = monotonic() - self.started, process_time()
        if self.args.processes:
            return (
                f"{seconds / 60:6.1f} min  {self.graphs} graphs in two processes, {self.cached} "
                f"from the cache in the second, {len(self.faults)} faults"
            )
        return (
            f"{seconds / 60:6.1f} min  {self.graphs} graphs ({self.graphs / busy:.1f} per CPU "
            f"second), "
            f"{self.statements} statements, {len(self.faults)} faults"
        )

    def keep(self, fault: Fault) -> None:
        """Write a fault's program into the folder, unless one of its kind was written."""
        text = str(fault)
        program, configuration = fault.program, fault.configuration
        if program is None:
            key, source = text[:80], f'"""{text}"""\n'
        else:
            program = _smallest(program, configuration)
            source = program.source(configuration, f"{configuration}: {text}")
            key = "; ".join(_shape_of(t) for t in program.statements.values())
        statements = getattr(program, "statements", {})
        shown = [f"    {name} = {statement}" for name, statement in statements.items()]
        self.keep_text(key, f"{configuration}: {text}", source, shown)

    def keep_text(self, key: str, text: str, source: str, shown: Sequence[str] = ()) -> None:
        """Write the source of a fault into the folder, unless one with this key was written."""
        known = key in self.faults
        self.faults[key] = self.faults.get(key, 0) + 1
        if known:
            return
        folder = Path(self.args.folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"test_seed{self.args.seed}_{len(self.faults)}.py"
        path.write_text(source)
        print(f"FAULT {path}: {text.splitlines()[0][:160]}", *shown, sep="\n", flush=True)


def _smallest(program: RandomProgram, configuration: str) -> RandomProgram:
    """Return the program with one output, or without updates, if that fails too."""
    tried = [(outputs, updates) for updates in ({}, program.updates)
             for outputs in [*([name] for name in program.outputs), program.outputs]]  # fmt: skip
    for outputs, updates in tried:
        part = replace(program, updates=dict(updates)).without(outputs)
        try:
            examine(part, [configuration])
        except Fault:
            return part
    return program


def _shape_of(statement: str) -> str:
    """Return a statement without its numbers."""
    return re.sub(r"-?\d+(\.\d+)?", "#", statement)


# fmt: off
def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    every = {**CONFIGURATIONS, **THOROUGH}
    parser = argparse.ArgumentParser(prog="python -m opwise.testing.fuzz", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=1.0, help="search this long (default: %(default)s)"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="start from this seed; each gives other programs (default: %(default)s)",
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=16,
        help="make programs of at most this many statements (default: %(default)s)",
    )
    parser.add_argument(
        "--loops", action="store_true",
        help="make only programs with loops or conditions, by every second statement",
    )
    parser.add_argument(
        "--users", action="store_true",
        help="make only programs with Ops of users or graphs inside Ops, likewise",
    )
    parser.add_argument(
        "--processes", action="store_true",
        help="run each program in a process with an empty cache, in a second one that takes graphs "
        "and kernels from it, and one of 20 before and after its kernels take the place of "
        "built-in loops; compare results, errors, lines, profiles and reports (--modes has no "
        "effect, nothing is simplified)",
    )
    parser.add_argument(
        "--batch", type=int, default=100,
        help="with --processes: run so many programs in a process (default: %(default)s)",
    )
    parser.add_argument("--graphs", type=int, default=-1, help="stop after this many programs")
    parser.add_argument("--faults", type=int, default=-1, help="stop after this many faults")
    parser.add_argument(
        "--shrink",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="simplify each failing program this long (default: %(default)s)",
    )
    parser.add_argument(
        "--every",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="print progress at this interval (default: %(default)s)",
    )
    parser.add_argument(
        "--folder", default="fuzz-faults", help="write failing programs here (default: %(default)s)"
    )
    parser.add_argument(
        "--refused", action="store_true", help="print the statements that opwise refused, and why"
    )
    parser.add_argument("--modes", type=lambda text: [w.strip() for w in text.split(";")],
                        help="run in these configurations, separated by semicolons: "
                        f"{'; '.join(every)}")  # fmt: skip
    args = parser.parse_args(argv)
    for configuration in args.modes or ():
        if configuration not in every:
            parser.error(
                f"no configuration is called {configuration!r}; there are: {'; '.join(every)}"
            )
    return args


# fmt: on
def _run(search: _Search, args: argparse.Namespace) -> None:
    """Try random programs until the time is over, or enough was found."""
    seed = args.seed * 1_000_000_007
    with progress.shown("", 60 * args.minutes) as bar:
        search.bar = bar if progress.is_wanted() else None
        while monotonic() < search.end and not search.enough():
            if args.processes:
                seed = search.in_processes(seed)
            else:
                search.one(seed)
                seed += 1


def main(argv: Sequence[str] | None = None) -> int:
    """Search, and return 1 if a fault was found, else 0."""
    args = _arguments(argv)
    search = _Search(args)
    # each configuration rewrites
    with warnings.catch_warnings(), change_flags(cache_graphs=False), suppress(KeyboardInterrupt):
        warnings.simplefilter("ignore")
        _run(search, args)
    print(search.figures())  # up to an interrupt
    if args.refused:
        for text, count in sorted(search.refused.items(), key=lambda item: -item[1]):
            print(f"{count:7} {text}")
    return 1 if search.faults else 0


if __name__ == "__main__":
    sys.exit(main())
