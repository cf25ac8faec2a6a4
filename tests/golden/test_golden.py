"""Every golden program under this project's `import theano`, against what Theano 1.0.5 gave."""

import copy
import json
from pathlib import Path

import pytest
from comparison import mismatches
from differences import DIFFERENCES
from programs import PROGRAMS

import theano

RECORD = Path(__file__).resolve().parent / "theano-1.0.5.json"
RECORDED = json.loads(RECORD.read_text())["programs"]

# Programs of these groups build graphs only.
NOT_COMPILED = ("dtypes.", "printing.debugprint", "printing.min_informative_str", "broadcast.")


def _program_parameters():
    for name in sorted(RECORDED):
        mark = pytest.mark.null if name.startswith(NOT_COMPILED) else pytest.mark.c
        yield pytest.param(name, marks=mark)


def _place(results, path):
    """Return the container and the key that a path such as `float64/FAST_RUN` leads to."""
    *way, last = _steps(results, path)
    for step in way:
        results = results[step]
    return results, last


def _steps(results, path):
    # Labels may hold slashes themselves, so the longest label that fits is taken.
    if not path:
        return []
    if isinstance(results, list):
        first, _, rest = path.partition("/")
        return [int(first), *_steps(results[int(first)], rest)]
    fitting = [key for key in results if path == key or path.startswith(key + "/")]
    if not fitting:
        raise KeyError(path)
    key = max(fitting, key=len)
    return [key, *_steps(results[key], path[len(key) + 1 :])]


def _expected(name):
    """Return the recorded results of a program with the deliberate differences put in."""
    results = copy.deepcopy(RECORDED[name])
    for difference in DIFFERENCES:
        for case, value in difference.expected.items():
            program, _, path = case.partition(":")
            if program == name:
                container, key = _place(results, path)
                container[key] = value
    return results


@pytest.mark.parametrize("name", list(_program_parameters()))
def test_gives_what_was_recorded(name):
    program = PROGRAMS[name]
    found = mismatches(_expected(name), program.run(theano), program.tolerance)
    assert not found, "\n".join([f"{len(found)} cases differ", *found])


@pytest.mark.null
def test_every_program_is_recorded():
    assert set(PROGRAMS) == set(RECORDED)


@pytest.mark.null
def test_every_deliberate_difference_is_one():
    for difference in DIFFERENCES:
        assert difference.reason
        for case, value in difference.expected.items():
            program, _, path = case.partition(":")
            container, key = _place(RECORDED[program], path)
            assert container[key] != value, case
