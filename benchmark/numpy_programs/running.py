"""The coordinator: a process for each contender of a program, which take turns; and the table."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from benchmark.numpy_programs.contenders import CONTENDERS, declines
from benchmark.numpy_programs.program import Program
from benchmark.numpy_programs.worker import programs_of
from benchmark.processes import FAILED, Failed, Process, added

#: what a contender did: "first", "call", "least" in seconds and "memory" in bytes, or "error"
Outcome = dict[str, Any]


class Turn:
    """One contender of a program, from the start of its process to the last sample."""

    def __init__(self, module: str, program: Program, contender: str, given: argparse.Namespace):
        self.timeout = given.timeout
        self.contender = contender
        self.outcome: Outcome = {}
        self.samples: list[float] = []
        python = dict(given.python).get(contender.partition("-")[0], sys.executable)
        self.command = [python, "-m", "benchmark.numpy_programs.worker", module, contender]
        self.command += [program.name, *(["--small"] if given.small else [])]
        self.process: Process | None = None

    def start(self, **flags: object) -> None:
        """Start a new process. flags: those of opwise."""
        text = ",".join(f"{name}={value}" for name, value in flags.items())
        self.end()
        environment = added(os.environ, {"OPWISE_FLAGS": text})
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # users' imports read bytecode
        self.process = Process(self.command, environment)

    def ask(self, do: str, **arguments: Any) -> Any:
        """Return the worker's answer; after an error, None, and the turn ends."""
        if self.process is None:
            return None
        self.process.go()
        try:
            return self.process.ask(self.timeout, do, **arguments)
        except Failed as failure:
            self.end(failure)
            return None
        finally:
            if self.process:
                self.process.halt()

    def begin(self, cache: str) -> None:
        """Compute the first result, and compare it. cache: an empty folder for compiled code.

        opwise's first result is that of a user, who does not wait for the C compiler; what is timed
        afterwards, in another process, is compiled.
        """
        self.start(base_compiledir=cache, background_compilation=True)
        first = self.ask("first")
        if self.contender.startswith("opwise") and self.process:
            self.start(base_compiledir=cache, background_compilation=False)
            self.ask("first")
        wrong = self.ask("check")
        if wrong:
            self.end(Failed(FAILED, wrong))
        self.outcome.setdefault("first", first)

    def sample(self, seconds: float) -> None:
        self.samples += self.ask("time", seconds=seconds) or []

    def end(self, failure: Failed | None = None) -> None:
        if failure:
            self.outcome = {"error": failure.note[:200]}
        if self.process:
            self.process.close()
            self.process = None

    def finish(self) -> Outcome:
        """Return the outcome."""
        memory = self.ask("memory")
        if self.process:
            self.outcome |= {
                "call": statistics.median(self.samples),
                "least": min(self.samples),
                "memory": memory,
            }
        self.end()
        return self.outcome


def measured(
    module: str, program: Program, contenders: Sequence[str], given: argparse.Namespace
) -> dict[str, Outcome]:
    """Return the outcomes of a program by contender."""
    turns: list[Turn] = []
    folder = tempfile.mkdtemp(prefix="opwise-programs-")
    try:
        for contender in contenders:
            if not declines(program, contender):
                turns.append(Turn(module, program, contender, given))
                turns[-1].begin(tempfile.mkdtemp(dir=folder))
        for _ in range(given.rounds):
            for turn in turns:
                turn.sample(given.seconds / given.rounds)
        return {turn.contender: turn.finish() for turn in turns}
    finally:
        for turn in turns:
            turn.end()
        shutil.rmtree(folder, ignore_errors=True)


def shown(outcome: Outcome | None) -> str:
    """Return the cell of a table."""
    if outcome is None:
        return "-"
    if "error" in outcome:
        return outcome["error"].split(":")[0][:24]
    memory = outcome["memory"]
    return (
        f"{outcome['call'] * 1e3:.3f} {outcome['least'] * 1e3:.3f} {outcome['first'] * 1e3:.0f} "
        f"{'-' if memory is None else format(memory / 2**20, '.1f')}"
    )


def summary(results: dict[str, dict[str, Outcome]]) -> str:
    """Return how many programs each form of opwise has right, and faster than which contenders."""
    lines = []
    for own in ("opwise", "opwise-grad"):
        mine = {name: r for name, r in results.items() if own in r}
        right = [r for r in mine.values() if "error" not in r[own]]
        if not mine:
            continue
        lines.append(f"{own}: right on {len(right)} of {len(mine)}")
        for other in CONTENDERS:
            both = [r for r in right if other in r and "error" not in r[other]]
            if other.startswith("opwise") or not both:
                continue
            faster = sum(r[own]["least"] < r[other]["least"] for r in both)
            first = sum(r[own]["first"] < r[other]["first"] for r in both)
            lines.append(f"  faster than {other} in {faster} of {len(both)}, first call in {first}")
    return "\n".join(lines)


def _named(text: str) -> tuple[str, str]:
    name, _, python = text.partition("=")
    if name not in CONTENDERS or not python:
        raise argparse.ArgumentTypeError(f"{text!r} is not CONTENDER=PYTHON")
    return name, python


def main(module: str, description: str, argv: Sequence[str] | None = None) -> None:
    """Measure the programs of a module as the command line says, and print a table."""
    prog = module.removesuffix(".programs")
    programs = programs_of(module)
    parser = argparse.ArgumentParser(prog=f"python -m {prog}", description=description)
    parser.add_argument("--only", nargs="*", help="names of programs")
    parser.add_argument("--contenders", nargs="*", default=CONTENDERS, choices=CONTENDERS)
    parser.add_argument("--small", action="store_true", help="the sizes of tests")
    parser.add_argument("--seconds", type=float, default=0.5, help="for the calls of each")
    parser.add_argument("--rounds", type=int, default=5, help="in which contenders take turns")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for each request")
    parser.add_argument(
        "--python", nargs="*", type=_named, default=[], metavar="CONTENDER=PYTHON",
        help="run a contender in another interpreter, such as jax=/opt/peers/bin/python",
    )  # fmt: skip
    parser.add_argument("--json", help="a file for all results")
    given = parser.parse_args(argv)
    unknown = set(given.only or ()) - {p.name for p in programs}
    if unknown:
        parser.error(f"there is no program {', '.join(sorted(unknown))}")
    print("milliseconds of a call: median, least; of the first call; MiB besides results\n")
    print(f"{'program':28}" + "".join(f"{c:>26}" for c in given.contenders))
    results: dict[str, dict[str, Outcome]] = {}
    for program in programs:
        if given.only and program.name not in given.only:
            continue
        found = results[program.name] = measured(module, program, given.contenders, given)
        row = "".join(f"{shown(found.get(c)):>26}" for c in given.contenders)
        print(f"{program.name:28}{row}", flush=True)
        if given.json:
            with open(given.json, "w", encoding="utf-8") as file:
                json.dump(results, file, indent=1)
    print("\n" + summary(results))
