"""Random programs in a process with an empty cache, in a second one, and with swapped kernels.

opwise must report the same about a function in each (``testing.reported``). A process runs many
programs: ``python -m opwise.testing.fuzz.processes`` prints a line of JSON for each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from opwise.config import change_flags
from opwise.linkers import opwise_c
from opwise.testing import reported
from opwise.testing.fuzz.examine import compiled
from opwise.testing.fuzz.grow import Fault, Rejected
from opwise.testing.fuzz.program import RandomProgram
from opwise.testing.fuzz.shrink import Recorded
from opwise.testing.fuzz.whole import LOOPS, grown

#: the configurations of programs, in turn; none of them calls a compiler
CONFIGURATIONS = [
    "FAST_RUN, built-in kernels", "FAST_RUN, built-in kernels", "FAST_COMPILE",
    "FAST_RUN without fusion", "FAST_RUN, vm",
]  # fmt: skip
#: one of so many programs begins on built-in loops, and goes on with kernels
SWAPPED = 20
#: at most so many calls with wrong arguments
_WRONG = 4


@dataclass
class Options:
    """What programs are made of."""

    steps: int = 16
    loops: bool = False

    def program(self, seed: int) -> RandomProgram | None:
        """Return the program of a seed; None if there is none."""
        try:
            return grown(
                Recorded(seed=seed), self.steps, seed % 5 == 4,
                preferred=LOOPS if self.loops or seed % 4 == 1 else None, runs=1,
            )  # fmt: skip
        except (Rejected, Fault, RecursionError):  # other searches look for the faults
            return None


def configuration_of(seed: int) -> str:
    """Return the configuration in which the program of a seed runs."""
    return "FAST_RUN" if seed % SWAPPED == 0 else CONFIGURATIONS[seed % len(CONFIGURATIONS)]


# --- in a process of many programs ----------------------------------------------------------------


def run(program: RandomProgram, configuration: str) -> dict[str, Any]:
    """Compile and call a program, and return what opwise reports about it."""
    try:
        f = compiled(program, configuration)
    except Exception as error:  # whatever it is, both processes must say so
        return {"cached": True, "reported": {"error": f"{type(error).__name__}: {error}"}}
    leaves = program.arguments()

    def call(arguments: list[Any] | None = None) -> list[Any]:
        for name, leaf in program.leaves.items():
            if leaf.kind == "shared":
                program.variables[name].set_value(leaf.argument(), borrow=True)
        found = f(*([leaf.argument() for leaf in leaves] if arguments is None else arguments))
        return [*found, *(program.variables[s].get_value() for s in program.updates)]

    texts = {"call": reported.call(call), **reported.graph(f)}
    if isinstance(f.fn, opwise_c.VM):
        f.fn.wait_for_kernels()
    swapped = reported.call(call)
    if swapped != texts["call"]:
        texts["call after the swap"] = swapped
    for k, arguments in enumerate(_wrong(program)):
        with change_flags(exception_verbosity="high" if k % 2 else "low"):
            texts[f"wrong call {k}"] = reported.call(lambda given=arguments: call(given))  # type: ignore[misc]
    texts |= reported.profile(f, call)
    return {"cached": f.compile_report.graph_cached, "reported": texts}


def _wrong(program: RandomProgram) -> Iterator[list[Any]]:
    """Yield arguments that the function of a program may refuse."""
    leaves = program.arguments()
    places = [(k, axis) for k, leaf in enumerate(leaves) for axis in range(leaf.value.ndim)]
    for k, axis in places[:_WRONG]:
        arguments = [leaf.argument() for leaf in leaves]
        value = arguments[k]
        arguments[k] = np.concatenate([value, np.take(value, [0], axis)], axis) if value.size else (
            np.ones([n + 1 for n in value.shape], value.dtype)
        )  # fmt: skip
        yield arguments


def main(first: int, count: int, options: Options) -> None:
    """Run programs of the seeds from ``first``; print a line of JSON for each."""
    warnings.simplefilter("ignore")
    for seed in range(first, first + count):
        with redirect_stdout(StringIO()):  # some programs print
            program = options.program(seed)
            found = None if program is None else run(program, configuration_of(seed))
        if found is not None:
            print(json.dumps({"seed": seed, **found}), flush=True)


# --- the search -----------------------------------------------------------------------------------


@dataclass
class Difference:
    """A difference between the reports of two processes about one program, or after the swap."""

    seed: int
    subject: str
    #: the parts of the two texts where they begin to differ
    texts: tuple[str, str]

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.subject}: {self.texts[0]!r} became {self.texts[1]!r}"


def compare(
    first: int, count: int, options: Options, note: Callable[[int, bool], None] = lambda *_: None
) -> Iterator[Difference]:
    """Run programs of seeds in two processes with a new cache; yield what differs.

    note: called with the seed of each program that ran, and whether its graph came from the cache.
    Raises RuntimeError if a process fails.
    """
    with tempfile.TemporaryDirectory(prefix="opwise-fuzz-") as folder:
        paths = []
        for k in (1, 2):
            paths.append(Path(folder) / f"{k}.jsonl")
            _process(first, count, options, folder, paths[-1], hash_seed=k)
        with paths[0].open() as one, paths[1].open() as two:
            for cold, warm in zip(map(json.loads, one), map(json.loads, two), strict=True):
                note(warm["seed"], warm["cached"])
                yield from _of_one(cold, warm)


def _of_one(cold: dict[str, Any], warm: dict[str, Any]) -> Iterator[Difference]:
    for found in (cold, warm):
        swapped = found["reported"].pop("call after the swap", None)
        if swapped is not None:
            ((_, texts),) = reported.differences({"": found["reported"]["call"]}, {"": swapped})
            yield Difference(found["seed"], "a call after the swap of kernels", texts)
    for subject, texts in reported.differences(cold["reported"], warm["reported"]):
        yield Difference(cold["seed"], subject, texts)


def _process(
    first: int, count: int, options: Options, folder: str, path: Path, hash_seed: int
) -> None:
    flags = f"base_compiledir={folder},cache_graphs=True,background_compilation=True"
    arguments = [str(first), str(count), json.dumps(vars(options))]
    with path.open("w") as file:
        done = subprocess.run(
            [sys.executable, "-m", "opwise.testing.fuzz.processes", *arguments], stdout=file,
            stderr=subprocess.PIPE, text=True, check=False,
            env={**os.environ, "OPWISE_FLAGS": flags, "PYTHONHASHSEED": str(hash_seed),
                 "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(
            f"The programs of seeds {first} to {first + count - 1} ended their process with "
            f"{done.returncode}: {done.stderr[-2000:]}"
        )


def source(difference: Difference, options: Options) -> str:
    """Return a Python program that shows a difference, in its text."""
    program = options.program(difference.seed)
    assert program is not None
    return program.source(configuration_of(difference.seed), str(difference))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Options(**json.loads(sys.argv[3])))
