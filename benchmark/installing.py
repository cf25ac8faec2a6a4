"""The processor time of an installation, by step and by C file.

    python -m benchmark.installing [--rows N]

Clones the last commit of this checkout, makes a virtual environment, and runs the first command of
README there: ``pip install -e .``, then the regression benchmark, with an empty cache of kernels.
What pip takes for the build's own packages and for the dependencies is measured by installing them
once more. The time of a file is that of its compiler.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from benchmark.call_cost import ROOT

#: runs a compiler and appends to a file: its processor time, the file that it wrote
TIMED = """
import os, sys
log, *command = sys.argv[1:]
_, status, used = os.wait4(os.spawnvp(os.P_NOWAIT, command[0], command), 0)
made = command[command.index("-o") + 1] if "-o" in command else ""
with open(log, "a") as file:
    file.write(f"{used.ru_utime + used.ru_stime} {made}\\n")
sys.exit(os.waitstatus_to_exitcode(status))
"""


def used(command: list[str], folder: Path, **environment: str) -> tuple[float, float]:
    """Run a command; return its seconds, and those of processors in it."""
    inherited = {n: v for n, v in os.environ.items() if n not in ("OPWISE_FLAGS", "PYTHONPATH")}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=inherited | environment, capture_output=True, text=True
    )
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(folder: Path) -> tuple[dict[str, tuple[float, float]], dict[str, float]]:
    """Install and run; return {step: (seconds, of processors)} and {C file: of its compiler}."""
    clone, timed, log = folder / "clone", folder / "timed.py", folder / "log"
    used(["git", "clone", "--quiet", str(ROOT), str(clone)], folder)
    used([sys.executable, "-m", "venv", str(folder / "venv")], folder)
    python = str(folder / "venv" / "bin" / "python")
    timed.write_text(TIMED, encoding="utf-8")
    compiler = f"{sys.executable} -ISs {timed} {log} {os.environ.get('CC', 'cc')}"
    project = tomllib.loads((clone / "pyproject.toml").read_text(encoding="utf-8"))
    pip = [python, "-m", "pip", "install", "--quiet"]
    steps = {
        "pip install -e .": used([*pip, "-e", "."], clone, CC=compiler),
        "the benchmark": used(
            [python, "-m", "benchmark.regression.regression", "PROFILE_MODE"],
            clone,
            OPWISE_FLAGS=f"base_compiledir={folder / 'cache'}",
        ),
    }
    for name, wanted in (
        ("packages of the build", project["build-system"]["requires"]),
        ("dependencies", project["project"]["dependencies"]),
    ):
        steps[f"of it pip: {name}"] = used([*pip, "--target", str(folder / name), *wanted], clone)
    files: dict[str, float] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        seconds, _, made = line.partition(" ")
        name = Path(made).name or "questions"
        files[name] = files.get(name, 0) + float(seconds)
    return steps, files


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.installing", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--rows", type=int, default=20, help="of C files (default: 20)")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        steps, files = measure(Path(folder))
    print("  wall s  processor s  step")
    for name, (wall, cpu) in steps.items():
        print(f"  {wall:6.1f}  {cpu:11.1f}  {name}")
    print(f"          {sum(files.values()):11.1f}  of it compilers")
    for name, cpu in sorted(files.items(), key=lambda item: -item[1])[: args.rows]:
        print(f"          {cpu:11.1f}    {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
