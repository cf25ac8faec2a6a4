"""Random programs under the linker cupy on the emulated device: recorded, captured and replayed.

    python tests/gpu/random_programs.py FIRST LAST

examines the programs of these seeds, four calls each, and prints the faults; 1 if there is one.
"""

import os
import sys
import tempfile
import warnings
from pathlib import Path

FOLDER = Path(__file__).parent
WAY = "FAST_RUN, cupy"


def examined(seeds):
    """Return (how many programs were examined, [(seed, fault)]); the emulated CuPy is installed."""
    from opwise.testing.fuzz.examine import examine
    from opwise.testing.fuzz.grow import Fault, Rejected
    from opwise.testing.fuzz.shrink import Recorded
    from opwise.testing.fuzz.whole import grown

    count, faults = 0, []
    for seed in seeds:
        try:
            program = grown(Recorded(seed=seed), 6, seed % 5 == 4)
        except (Rejected, RecursionError):  # no program comes of these numbers
            continue
        if program is None:
            continue
        count += 1
        try:
            examine(program, [WAY])
        except Fault as fault:
            faults.append((seed, fault))
    return count, faults


def main(first, last):
    """Examine the programs of some seeds."""
    import pytest

    sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "scalar")]
    os.environ.setdefault("OPWISE_TEST_CACHE", tempfile.mkdtemp())
    import emulated

    emulated.install(pytest.MonkeyPatch())
    warnings.simplefilter("ignore")  # programs divide by zero
    count, faults = examined(range(first, last))
    for seed, fault in faults:
        print(f"seed {seed}: {fault}")
    print(f"{count} programs, {len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
