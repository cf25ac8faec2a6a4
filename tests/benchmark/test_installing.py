"""The measurement of an installation: its parts."""

import sys

import pytest

from benchmark import installing

pytestmark = pytest.mark.null


def test_a_command_has_seconds_of_processors(tmp_path):
    wall, cpu = installing.used([sys.executable, "-c", "sum(range(10**6))"], tmp_path)
    assert wall > 0 and cpu > 0
    with pytest.raises(SystemExit, match=r"(?s)ended with 3.*no such compiler"):
        installing.used([sys.executable, "-c", FAILS], tmp_path)


FAILS = "import sys; print('no such compiler', file=sys.stderr); sys.exit(3)"


def test_a_timed_compiler_says_what_it_made(tmp_path):
    timed, log = tmp_path / "timed.py", tmp_path / "log"
    timed.write_text(installing.TIMED)
    compiler = [sys.executable, str(timed), str(log), sys.executable]
    installing.used([*compiler, "-c", "pass", "-o", "one.o"], tmp_path)
    with pytest.raises(SystemExit, match="ended with 3"):
        installing.used([*compiler, "-c", FAILS], tmp_path)
    first, second = log.read_text().splitlines()
    seconds, made = first.split()
    assert float(seconds) > 0 and made == "one.o" and float(second) > 0
