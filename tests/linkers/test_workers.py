"""Processes that multiprocessing starts use one kernel thread, unless a flag says otherwise."""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

import opwise

#: prints how many threads kernels use in the parent, then in workers that call a function of the
#: parent, and that compile one
PROGRAM = """
import multiprocessing, sys, threading
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import opwise
import opwise.tensor as T
from opwise.linkers import opwise_c, resources

resources.available = lambda: 3  # on a computer with one processor, too

def compiled():
    x = T.dvector("x")
    return opwise.function([x], T.exp(x).sum())

def call(f):
    assert f(np.zeros(50_000)) == 50_000
    return opwise_c.threads()

def compile_and_call(_):
    return call(compiled())

inherited = compiled() if __name__ == "__main__" else None

def call_inherited(_):
    return call(inherited)

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    counts = [call(inherited)]
    works = [(call, inherited), (compile_and_call, 0)]
    if sys.argv[1] == "fork":
        works.append((call_inherited, 0))
    for work, argument in works:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            counts += [pool.submit(work, argument).result(), pool.submit(work, argument).result()]
    counts.append(call(inherited))
    print(counts, threading.active_count())
"""


FLAG, VARIABLE = {"OPWISE_FLAGS": "threads=2"}, {"OMP_NUM_THREADS": "2"}


@pytest.mark.parametrize(
    ("method", "threads", "expected"),
    [("fork", {}, 1), ("spawn", {}, 1), ("forkserver", {}, 1), ("spawn", FLAG, 2),
     ("fork", VARIABLE, 2)],
)  # fmt: skip
def test_threads_of_workers(tmp_path, method, threads, expected):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    (tmp_path / "program.py").write_text(PROGRAM)
    env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    env["PYTHONPATH"] = str(Path(opwise.__file__).parents[1])
    flags = [env.get("OPWISE_FLAGS"), f"base_compiledir={tmp_path}", threads.get("OPWISE_FLAGS")]
    env |= threads | {"OPWISE_FLAGS": ",".join(filter(None, flags))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "program.py", method], env=env,
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    usual = expected if threads else 3
    calls = 6 if method == "fork" else 4
    assert done.stdout == f"{[usual, *[expected] * calls, usual]} 1\n", done.stderr
