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
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join(60)  # that of the compiler ends with its work
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


JOBLIB = """
import os, sys
import joblib
import numpy as np
import opwise
import opwise.tensor as T
from opwise.linkers import opwise_c

def call(f, k, parent):
    return float(f(np.full(3, k))), opwise_c.threads(), os.getpid() != parent

if __name__ == "__main__":
    x, w = T.dvector("x"), opwise.shared(np.arange(3.0), name="w")
    f = opwise.function([x], T.dot(x, w))
    parallel = joblib.Parallel(n_jobs=2, backend=sys.argv[1])
    print(parallel(joblib.delayed(call)(f, k, os.getpid()) for k in (0.0, 1.0, 2.0)))
    print(list(map(float, parallel(joblib.delayed(f)(np.full(3, k)) for k in (0.0, 1.0, 2.0)))))
"""


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_workers_of_joblib(tmp_path, backend):
    (tmp_path / "program.py").write_text(JOBLIB)
    env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    env["PYTHONPATH"] = str(Path(opwise.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "program.py", backend], env=env,
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    calls = [(k, 1, True) for k in (0.0, 3.0, 6.0)]
    assert done.stdout == f"{calls}\n[0.0, 3.0, 6.0]\n", done.stderr
