"""``python -m opwise.testing.fuzz``: searches for programs that modes disagree on, for hours."""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from time import monotonic, process_time

from opwise.testing.fuzz.examine import examine
from opwise.testing.fuzz.grow import Fault, Rejected
from opwise.testing.fuzz.shrink import Recorded, shrunk
from opwise.testing.fuzz.whole import grown
from opwise.testing.ways import REFERENCE, THOROUGH, WAYS

#: ways that every program runs; one of the others comes to each in turn
QUICK = ["no optimizer, c|py", "FAST_COMPILE", "FAST_RUN, built-in kernels"]
OTHERS = [w for w in WAYS if w not in QUICK and w not in (REFERENCE, "FAST_RUN")]
#: of how many programs one goes through a C compiler
COMPILED = 25


class _Search:
    """A search: what it has run and found so far."""

    def __init__(self, args):
        self.args = args
        self.end = monotonic() + 60 * args.minutes
        self.started = self.shown = monotonic()
        self.graphs = 0
        self.statements = 0
        self.faults = {}
        self.refused = {}

    def ways(self, program):
        """Return the ways that a program runs."""
        if self.args.modes:
            return self.args.modes
        ways = [*QUICK, OTHERS[program.seed % len(OTHERS)]]
        if program.seed % COMPILED == 0:
            ways.append("FAST_RUN")
        return ways

    def one(self, seed):
        """Run one random program; keep what failed, shrunk."""
        source = Recorded(seed=seed)
        self.graphs += 1
        try:
            fault = self.fault_of(source, seed % 5 == 4, count=True)
        except RecursionError:  # a program that is too deep for Python is no fault
            return
        self.progress()
        if fault is not None:
            self.keep(self.shrunk(source.choices, seed % 5 == 4, fault))

    def fault_of(self, source, special, count=False, ways=None):
        """Return the Fault of the program that a source of choices makes, or None."""
        try:
            program = grown(source, self.args.steps, special, self.refused if count else None)
            if program is None:
                return None
            if count:
                self.statements += len(program.statements)
            examine(program, ways or self.ways(program))
        except Fault as fault:
            return fault
        except Rejected:
            return None
        return None

    def shrunk(self, choices, special, fault):
        """Return the simplest Fault that is found from one, of the same way."""
        found = [fault]
        ways = None if fault.way == REFERENCE else [fault.way]

        def fails(given):
            source = Recorded(given)
            again = self.fault_of(source, special, ways=ways)
            if again is None or again.way != fault.way:
                return None
            found.append(again)
            return source.choices

        best = shrunk(choices, fails, self.args.shrink)
        again = self.fault_of(Recorded(best), special, ways=ways)
        return again if again is not None else found[-1]

    def enough(self):
        """Return whether as many programs ran, or faults were found, as somebody asked for."""
        return self.graphs == self.args.graphs or len(self.faults) == self.args.faults

    def progress(self):
        """Say every few seconds how far the search is."""
        now = monotonic()
        if now - self.shown < self.args.every:
            return
        self.shown = now
        print(self.figures(), flush=True)

    def figures(self):
        """Return how far the search is."""
        seconds, busy = monotonic() - self.started, process_time()
        return (
            f"{seconds / 60:6.1f} min  {self.graphs} graphs ({self.graphs / busy:.1f} a second of "
            f"one core), "
            f"{self.statements} statements, {len(self.faults)} faults"
        )

    def keep(self, fault):
        """Write a fault's program into the folder, unless one like it is there."""
        text = str(fault)
        program, way = fault.program, fault.way
        if program is None:
            key, source = text[:80], f'"""{text}"""\n'
        else:
            program = _smallest(program, way)
            source = program.source(way, f"{way}: {text}")
            key = "; ".join(_shape_of(t) for t in program.statements.values())
        known = key in self.faults
        self.faults[key] = self.faults.get(key, 0) + 1
        if known:
            return
        folder = Path(self.args.folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"test_seed{self.args.seed}_{len(self.faults)}.py"
        path.write_text(source)
        print(f"FAULT {path}: {way}: {text.splitlines()[0][:160]}", flush=True)
        for name, statement in getattr(program, "statements", {}).items():
            print(f"    {name} = {statement}", flush=True)


def _smallest(program, way):
    """Return a program of one output, or without updates, if that fails too."""
    tried = [(outputs, updates) for updates in ({}, program.updates)
             for outputs in [*([name] for name in program.outputs), program.outputs]]  # fmt: skip
    for outputs, updates in tried:
        part = replace(program, updates=dict(updates)).without(outputs)
        try:
            examine(part, [way])
        except Fault:
            return part
    return program


def _shape_of(statement):
    import re

    return re.sub(r"-?\d+(\.\d+)?", "#", statement)


def _arguments(argv):
    every = {**WAYS, **THOROUGH}
    parser = argparse.ArgumentParser(prog="python -m opwise.testing.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long to search")
    parser.add_argument("--seed", type=int, default=0, help="another seed finds other programs")
    parser.add_argument("--steps", type=int, default=16, help="most statements of a program")
    parser.add_argument("--graphs", type=int, default=-1, help="stop after as many programs")
    parser.add_argument("--faults", type=int, default=-1, help="stop after as many faults")
    parser.add_argument("--shrink", type=float, default=30.0, help="seconds to simplify a failure")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two reports")
    parser.add_argument("--folder", default="fuzz-faults", help="where failing programs are put")
    parser.add_argument("--refused", action="store_true", help="show what was refused, and why")
    parser.add_argument("--modes", type=lambda text: [w.strip() for w in text.split(";")],
                        help=f"ways, divided by semicolons: {'; '.join(every)}")  # fmt: skip
    args = parser.parse_args(argv)
    for way in args.modes or ():
        if way not in every:
            parser.error(f"no way is called {way!r}; there are: {'; '.join(every)}")
    return args


def main(argv=None):
    """Search, and return 1 if something was found, else 0."""
    args = _arguments(argv)
    warnings.simplefilter("ignore")
    search = _Search(args)
    seed = args.seed * 1_000_000_007
    try:
        while monotonic() < search.end and not search.enough():
            search.one(seed)
            seed += 1
    except KeyboardInterrupt:
        pass  # somebody has seen enough
    print(search.figures())
    if args.refused:
        for text, count in sorted(search.refused.items(), key=lambda item: -item[1]):
            print(f"{count:7} {text}")
    return 1 if search.faults else 0


if __name__ == "__main__":
    sys.exit(main())
