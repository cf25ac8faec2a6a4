"""Ctrl-C while the compiler runs: nothing is left behind, and what is compiled next works."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import opwise
from opwise.linkers import cbuild

pytestmark = [
    pytest.mark.c,
    pytest.mark.skipif(cbuild.compiler() is None, reason="there is no C compiler"),
]

#: a compiler that tells when it has started, and waits until it is allowed to go on; its first run,
#: the interrupted one, ends a second after that, when the program has ended
COMPILER = """#!/bin/sh
cat >{place}/text.$$
mkdir {place}/first 2>{place}/errors && is_first=1
echo >>{place}/started
while [ ! -e {place}/go-on ]; do sleep 0.01; done
[ "$is_first" ] && sleep 1
exec {compiler} "$@" <{place}/text.$$
"""

PROGRAM = """
import signal, sys, warnings
warnings.simplefilter("error")
import numpy as np
import opwise
import opwise.tensor as T

x = T.dvector("x")
seen = []
if sys.argv[1] == "handles":
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
else:  # a job in the background of a shell is started with the signal ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    f = opwise.function([x], T.exp(x) * 2)
except KeyboardInterrupt:
    seen.append(1)
    print("interrupted", flush=True)
    f = opwise.function([x], T.exp(x) * 2)
assert seen == [1] and f.compile_report.kernels is not None
np.testing.assert_allclose(f([0.0]), [2.0])
print("works", flush=True)
"""


def wait_for(condition):
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("nothing happened for half a minute")


@pytest.mark.parametrize("program", ["raises", "handles"])
def test_ctrl_c_while_the_compiler_runs(tmp_path, program):
    place, temporary = tmp_path / "place", tmp_path / "tmp"
    for folder in (place, temporary):
        folder.mkdir()
    compiler = tmp_path / "slowcc"
    compiler.write_text(COMPILER.format(place=place, compiler=cbuild.compiler()))
    compiler.chmod(0o755)
    flags = f"base_compiledir={tmp_path / 'cache'},compiledir_format=kernels,cxx={compiler}"
    flags += ",background_compilation=False"
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
        env={**os.environ, "OPWISE_FLAGS": flags, "TMPDIR": str(temporary),
             "PYTHONPATH": str(Path(opwise.__file__).parents[1])},
    ) as process:  # fmt: skip
        try:
            wait_for((place / "started").exists)
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            if program == "raises":
                assert process.stdout.readline() == "interrupted\n"
            (place / "go-on").touch()
            out, errors = process.communicate(timeout=60)
        finally:
            (place / "go-on").touch()
            process.kill()
    assert (out, errors, process.returncode) == ("works\n", "", 0)
    assert os.listdir(temporary) == []
    left = {path.suffix for path in (tmp_path / "cache" / "kernels").iterdir()}
    assert left <= {"", ".so", ".graph"}
