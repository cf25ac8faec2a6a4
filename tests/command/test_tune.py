"""The subcommand ``tune``, end to end on small programs."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np
import theano
import theano.tensor as T

x = T.dvector("x")
w = theano.shared(np.ones(30_000), "w")
slow = theano.function([x], (T.extra_ops.Unique()(x) * w).sum(), updates=[(w, w + x)], name="slow")
fleeting = theano.function([x], x + 1, name="fleeting")
for _ in range(20):
    slow(np.random.RandomState(0).rand(30_000))
fleeting(np.ones(2))
print("ran with", sys.argv[1:], w.get_value().shape)
"""


@pytest.fixture
def tune(tmp_path):
    """Run ``opwise tune`` with options on a program; return what a process gives."""

    def run(program, *options, arguments=()):
        path = tmp_path / "program.py"
        path.write_text(program)
        command = [sys.executable, "-m", "opwise", "tune", "--budget", "0.5", *options]
        return subprocess.run(
            [*command, "--flags", "cxx=", str(path), *arguments], capture_output=True, text=True
        )

    return run


def test_the_advice_comes_after_the_programs_own_output(tune):
    done = tune(PROGRAM, "-n", "1", arguments=["-a", "b"])
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    first, second, *rest = done.stdout.splitlines()
    assert first == "ran with ['-a', 'b'] (30000,)"
    assert " s in calls of slow: " in second
    text = "\n".join(rest)
    assert "Unique has no C implementation" in text and "program.py:9" in text
    assert "fleeting" not in text


def test_the_exit_code_is_the_programs(tune):
    assert tune(f"{PROGRAM}\nsys.exit(7)").returncode == 7
    done = tune(f"{PROGRAM}\nraise KeyError('mine')")
    assert done.returncode == 1
    assert "KeyError: 'mine'" in done.stderr and "in calls of slow: " in done.stdout


def test_a_program_that_compiles_nothing(tune):
    done = tune("import theano; print('only this')")
    assert (done.returncode, done.stdout) == (0, "only this\n")
    assert done.stderr == "no advice: the program compiled no function, or ended by os._exit\n"


def test_processes_that_a_program_starts_print_nothing_more(tune):
    child = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', %r], check=True)\n"
    inner = "import theano, theano.tensor as T; x = T.dscalar(); theano.function([x], x + 1)(1.0)"
    done = tune(PROGRAM + child % inner, "-n", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" a call; ") == 2


def test_tune_refuses_bad_arguments(tune, tmp_path):
    command = [sys.executable, "-m", "opwise", "tune"]
    for options in (["--budget", "0"], ["-n", "0"], [str(tmp_path / "missing.py")]):
        done = subprocess.run([*command, *options], capture_output=True, text=True)
        assert done.returncode == 2 and "Error" in done.stderr
