"""Search for programs that take longer than the hardware needs, or than numpy.

python -m benchmark.cliffs --minutes 10 --seed 1
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import asdict
from math import log10
from pathlib import Path
from random import Random
from time import monotonic

from benchmark import rows
from benchmark.call_cost import machine
from benchmark.cliffs.grow import FAMILIES, grow, neighbours
from benchmark.cliffs.measure import ALLOWED, Timing, WrongResultError, jump, measure, shrink
from benchmark.cliffs.programs import Program
from opwise.config import change_flags
from opwise.hardware import cpu

#: how often a slow program is measured again: other programs may have been at work
_AGAIN = 3
#: shares of the programs whose ratios are shown
QUANTILES = (0.5, 0.9, 0.99, 1.0)


class Search:
    """Programs, what they take, and which are too slow."""

    def __init__(self, seed: int, most: float, threads: int, families: list[str]) -> None:
        self.rng = Random(seed)
        self.most, self.threads, self.families = most, threads, families
        self.limits = cpu.limits()
        self.timings: list[tuple[str, Program, Timing]] = []
        self.wrong: list[str] = []
        self.refused: list[str] = []
        self.jumps: list[tuple[float, str, Program]] = []

    def measured(self, program: Program) -> Timing | None:
        """Return the best Timing of a program, or None if it cannot run."""
        try:
            timing = measure(program, self.limits, self.threads)
            for _ in range(_AGAIN):
                if not timing.is_slow:
                    break
                again = measure(program, self.limits, self.threads, 0.1)
                timing = Timing(
                    min(timing.opwise, again.opwise), min(timing.numpy, again.numpy), timing.model
                )
        except WrongResultError as error:
            self.wrong.append(str(error))
        except (TypeError, ValueError, NotImplementedError, IndexError) as error:
            self.refused.append(f"{program}: {type(error).__name__}: {error}".partition("\n")[0])
        else:
            return timing
        return None

    def one(self, with_neighbours: bool) -> None:
        """Measure a random program, and one of its neighbours."""
        family, program = grow(self.rng, self.most)
        if self.families and family not in self.families:
            return
        timing = self.measured(program)
        if timing is None:
            return
        self.timings.append((family, program, timing))
        near = neighbours(program)
        if not with_neighbours or not near:
            return
        what, other = self.rng.choice(near)
        found = self.measured(other)
        if found is None:
            return
        self.timings.append((family, other, found))
        factor = jump(timing, found)
        if factor > ALLOWED:
            self.jumps.append((factor, what, program))

    def slow(self) -> list[tuple[str, Program, Timing]]:
        """Return the programs that are too slow for no known reason, the worst first."""
        found = [row for row in self.timings if row[2].is_slow and row[1].reason() is None]
        return sorted(found, key=lambda row: -row[2].excess)

    def reasons(self) -> Counter[str]:
        """Return how many slow programs there are for each known reason."""
        slow = (program for _, program, timing in self.timings if timing.is_slow)
        return Counter(reason for program in slow if (reason := program.reason()) is not None)

    def shrunk(self, count: int, until: float) -> list[tuple[Program, Timing]]:
        """Return the worst programs made smaller, each once, the smallest first."""
        found: dict[Program, Timing] = {}
        for _, program, timing in self.slow()[:count]:
            if monotonic() < until:
                program, timing = shrink(program, timing, self.limits, self.threads)
            found[program] = timing
        return sorted(found.items(), key=lambda row: (len(row[0].statements), -row[1].excess))


def quantile(values: list[float], share: float) -> float:
    """Return the value that a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def distribution(search: Search) -> list[str]:
    """Return lines with how the ratios of each family are distributed."""
    lines = ["family      programs  slower than numpy  over 2x model   time / model: "
             + "  ".join(f"{share:.0%}" for share in QUANTILES)]  # fmt: skip
    for family in [*FAMILIES, "all"]:
        rows = [t for name, _, t in search.timings if family in (name, "all")]
        if not rows:
            continue
        ratios = [t.over_model for t in rows]
        lines.append(
            f"{family:12}{len(rows):8}{sum(t.over_numpy > 1 for t in rows):19}"
            f"{sum(r > ALLOWED for r in ratios):15}                 "
            + "  ".join(f"{quantile(ratios, share):.2f}" for share in QUANTILES)
        )
    return lines


def shown(timing: Timing) -> str:
    return (
        f"{timing.opwise * 1e6:10.1f} us  {timing.over_model:6.2f} x model  "
        f"{timing.over_numpy:6.2f} x numpy"
    )


def arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.cliffs", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--minutes", type=float, default=10, help="how long (default: 10)")
    parser.add_argument("--programs", type=int, help="stop after so many programs")
    parser.add_argument("--seed", type=int, default=1, help="of the programs (default: 1)")
    parser.add_argument("--most", type=float, default=1e7, help="elements (default: 1e7)")
    parser.add_argument("--threads", type=int, default=1, help="threads of opwise (default: 1)")
    parser.add_argument("--show", type=int, default=20, help="slow programs (default: 20)")
    parser.add_argument("--family", action="append", choices=list(FAMILIES), default=[],
                        help="programs of this family only; may be repeated")  # fmt: skip
    parser.add_argument("--json", type=Path, help="write the results to a file")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    args = arguments(argv)
    about = machine(("numpy",))
    for name, value in about.items():
        print(f"{name}: {value}")
    started = monotonic()
    end = started + 60 * args.minutes
    with change_flags(threads=args.threads):
        search = Search(args.seed, log10(args.most), args.threads, args.family)
        count = 0
        # a quarter of the time is for making slow programs smaller
        while monotonic() < started + 45 * args.minutes and count != args.programs:
            search.one(with_neighbours=count % 3 == 0)
            count += 1
        small = search.shrunk(args.show, end)
    print(f"\n{len(search.timings)} programs, {len(search.refused)} refused, seed {args.seed}\n")
    print(*distribution(search), sep="\n")
    print("\ntoo slow, the smallest programs first")
    for program, timing in small:
        print(f"{shown(timing)}   {program}")
    for reason, count in search.reasons().items():
        print(f"and {count} more: {reason}")
    print("\njumps of more than 2x between neighbours")
    for factor, what, program in sorted(search.jumps, key=lambda row: -row[0])[: args.show]:
        print(f"{factor:6.2f}  {what}: {program}")
    for text in search.wrong:
        print(f"wrong result: {text}")
    if args.json:
        results = rows.rounded(_results(args, about, search))
        args.json.write_text(rows.text(results) + "\n")
    return 1 if search.wrong else 0


def _results(args: argparse.Namespace, about: dict, search: Search) -> dict:
    """Return what was found. Programs that are fast have no text: the seed makes them again."""
    timings: dict[str, list] = {}
    for family, _, timing in search.timings:
        timings.setdefault(family, []).append([timing.opwise, timing.numpy, timing.model])
    return {
        "machine": about,
        "seed": args.seed,
        "threads": args.threads,
        "columns": ["opwise", "numpy", "model"],
        "timings": timings,
        "slow": [
            {"family": family, **asdict(timing), "program": str(program)}
            for family, program, timing in search.timings
            if timing.is_slow
        ],
        "jumps": [[factor, what, str(program)] for factor, what, program in search.jumps],
        "wrong": search.wrong,
        "refused": search.refused,
    }


if __name__ == "__main__":
    sys.exit(main())
