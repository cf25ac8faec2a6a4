"""Search for functions that go wrong in some event of their lives, also in a second process.

    python -m opwise.testing.stateful --minutes 10
    python -m opwise.testing.stateful --choices 3,1,4,1,5     runs one life again

A second process runs the first call of each function again: it takes graphs and kernels from the
cache that the first process has filled, and must give the same bits.
"""

from __future__ import annotations

import argparse
import pickle
import random
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from opwise.config import change_flags
from opwise.testing.fuzz.shrink import Recorded, shrunk
from opwise.testing.stateful.life import Fault, Life, same_bits, swap_kernels
from opwise.testing.stateful.operations import Array
from opwise.testing.stateful.program import Drawing, Program

#: lives that a second process repeats at once
_BATCH = 40
#: one of so many lives waits for its kernels
_SWAPPED = 20
#: the first choice is how many statements a program may have
_MOST = 1 << 30


@dataclass
class Outcome:
    """One life, as far as it went."""

    choices: list[int]
    program: Program | None = None
    #: the results of the first call; None: it failed
    first: list[Array] | None = None
    events: list[str] = field(default_factory=list)
    problem: str | None = None


def lived(source: Recorded, statements: int, events: int, swap: bool = False) -> Outcome:
    """Let a function live that a source of choices makes."""
    outcome = Outcome(source.choices)
    life = None
    try:
        outcome.program = Drawing(source, special=not source(4)).drawn(statements)
        if outcome.program is None:
            return outcome
        with change_flags(on_opt_error="raise"):
            life = Life(outcome.program, source)
            outcome.first = life.first
            life.run(source(events + 1))
            if swap:
                swap_kernels(life)
    except Fault as fault:
        outcome.problem = str(fault)
    except Exception as e:  # nothing else may be raised
        outcome.problem = f"{type(e).__name__}: {e}\n{traceback.format_exc()}"
    finally:
        if life is not None:
            outcome.events = life.events
    return outcome


def report(outcome: Outcome) -> str:
    """Return the text of a fault: what is wrong, the program, the events."""
    lines = [outcome.problem or "", ""]
    if outcome.program is not None:
        lines += [*outcome.program.source(), f"outputs: {', '.join(outcome.program.outputs)}"]
        lines += [f"updates: {outcome.program.updates}"]
    lines += [f"events: {', '.join(outcome.events)}"]
    lines += [f"again: --choices {','.join(map(str, outcome.choices))}", ""]
    return "\n".join(lines)


# --- a second process -----------------------------------------------------------------------------


def in_second_process(outcomes: list[Outcome]) -> list[tuple[Outcome, str]]:
    """Return what a second process finds wrong: it repeats the first call of each life."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lives")
        path.write_bytes(pickle.dumps([(o.choices, o.first) for o in outcomes]))
        done = subprocess.run(
            [sys.executable, "-m", "opwise.testing.stateful", "--repeat", path],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"the second process failed:\n{done.stderr}")
        problems: list[tuple[int, str]] = pickle.loads(path.read_bytes())
    return [(outcomes[i], problem) for i, problem in problems]


def repeat(path: Path) -> None:
    """Repeat the first call of each life of a file, and write [(number, problem)] into it."""
    problems = []
    for i, (choices, first) in enumerate(pickle.loads(path.read_bytes())):
        source = Recorded(choices)
        again = lived(source, source(_MOST), 0)
        if again.problem is not None:
            problems.append((i, f"in the second process: {again.problem}"))
        elif again.first is None or not same_bits(first, again.first):
            problems.append((i, f"other bits in a second process:\n{first}\n{again.first}"))
    path.write_bytes(pickle.dumps(problems))


# --- the search -----------------------------------------------------------------------------------


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m opwise.testing.stateful", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--minutes", type=float, default=1.0, help="search this long (default: 1)")
    parser.add_argument("--lives", type=int, default=-1, help="stop after this many functions")
    parser.add_argument("--seed", type=int, default=0, help="start from this seed (default: 0)")
    parser.add_argument(
        "--statements", type=int, default=8, help="at most this many a program (default: 8)"
    )
    parser.add_argument(
        "--events", type=int, default=8, help="at most this many a function (default: 8)"
    )
    parser.add_argument("--shrink", type=float, default=30.0, metavar="SECONDS",
                        help="simplify each fault this long (default: 30)")  # fmt: skip
    parser.add_argument("--folder", default="stateful-faults", help="write faults here")
    parser.add_argument("--choices", help="run this life alone, and print what goes wrong")
    parser.add_argument("--repeat", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(argv)


class Search:
    """A search, and what it has found."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.started = self.shown = monotonic()
        self.lives = self.events = self.faults = 0
        #: lives that the second process has not repeated yet
        self.waiting: list[Outcome] = []

    def run(self) -> None:
        args = self.args
        seed = args.seed * 1_000_000_007
        while monotonic() - self.started < 60 * args.minutes and self.lives != args.lives:
            self.one(Recorded([args.statements], seed=seed), swap=seed % _SWAPPED == 0)
            seed += 1
            if len(self.waiting) == _BATCH:
                self.again()
            if monotonic() - self.shown > 10:
                self.shown = monotonic()
                print(self.figures(), flush=True)
        self.again()

    def one(self, source: Recorded, swap: bool) -> None:
        statements = source(_MOST)
        outcome = lived(source, statements, self.args.events, swap)
        if outcome.program is None and outcome.problem is None:
            return
        self.lives += 1
        self.events += len(outcome.events)
        if outcome.problem is None:
            self.waiting.append(outcome)
            return

        def fails(given: list[int]) -> list[int] | None:
            again = Recorded([statements, *given[1:]])
            again(_MOST)
            found = lived(again, statements, self.args.events, swap)
            return again.choices if found.problem is not None else None

        best = Recorded(shrunk(outcome.choices, fails, self.args.shrink))
        best(_MOST)
        found = lived(best, statements, self.args.events, swap)
        self.keep(found if found.problem is not None else outcome)

    def again(self) -> None:
        if self.waiting:
            for outcome, problem in in_second_process(self.waiting):
                outcome.problem = problem
                self.keep(outcome)
        self.waiting.clear()

    def keep(self, outcome: Outcome) -> None:
        self.faults += 1
        folder = Path(self.args.folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"seed{self.args.seed}_{self.faults}.txt"
        path.write_text(report(outcome))
        print(f"FAULT {path}:\n{report(outcome)[:3000]}", flush=True)

    def figures(self) -> str:
        minutes = (monotonic() - self.started) / 60
        return (
            f"{minutes:6.1f} min  {self.lives} functions, {self.events} events, "
            f"{self.faults} faults"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Search, and return 1 if a fault was found, else 0."""
    args = _arguments(argv)
    warnings.simplefilter("ignore")
    random.seed(args.seed)
    if args.repeat:
        repeat(args.repeat)
        return 0
    if args.choices:
        source = Recorded(map(int, args.choices.split(",")))
        outcome = lived(source, source(_MOST), args.events, swap=True)
        print(report(outcome))
        return int(outcome.problem is not None)
    search = Search(args)
    with suppress(KeyboardInterrupt):  # print the figures up to now
        search.run()
    print(search.figures())
    return 1 if search.faults else 0


if __name__ == "__main__":
    sys.exit(main())
