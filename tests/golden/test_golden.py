"""Every golden program under this project's `import theano`, against what Theano 1.0.5 gave."""

import copy
import importlib
import inspect
import json
from pathlib import Path

import numpy as np
import pytest
import replaced
from comparison import mismatches
from differences import DIFFERENCES
from programs import PROGRAMS
from programs.encoding import decode_array, document_of, encode_array, text_of
from programs.scripts import FIGURES, OUTDATED, PREFIX, SCRIPTS

import opwise
import theano

RECORD = Path(__file__).resolve().parent / "theano-1.0.5.json"
RECORDED = document_of(RECORD.read_text())["programs"]

# Programs of these groups build graphs only, with these exceptions.
NOT_COMPILED = ("dtypes.", "broadcast.", "printing.")
COMPILED = {
    "broadcast.refused_at_run_time",
    "broadcast.run_time_shapes",
    "printing.debugprint_of_functions",
    "printing.pprint",
}


def _program_parameters():
    for name in sorted(RECORDED):
        only_graphs = name.startswith(NOT_COMPILED) and name not in COMPILED
        mark = pytest.mark.null if only_graphs else pytest.mark.c
        yield pytest.param(name, marks=mark)


def _place(programs, case):
    """Return the container and the key that `program:path` leads to; no path: the program."""
    program, _, path = case.partition(":")
    *way, last = [program, *_steps(programs[program], path)]
    for step in way:
        programs = programs[step]
    return programs, last


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
    results = {name: copy.deepcopy(RECORDED[name])}
    for difference in DIFFERENCES:
        for case, value in difference.expected.items():
            if case.partition(":")[0] == name:
                container, key = _place(results, case)
                container[key] = _changed(container[key], value)
    return results[name]


def _changed(recorded, value):
    """Return the expected result of a case that deliberately differs from the recorded one."""
    if not callable(value):
        return value
    array = decode_array(recorded) if isinstance(recorded, str) else None
    return value(recorded) if array is None else encode_array(value(array))


def _check(name, **options):
    """Fail unless the program gives what was recorded, under these options of Program.run."""
    program = PROGRAMS[name]
    measured = program.run(theano, on_opt_error="raise", **options)
    _compare(_expected(name), measured, program)


def _compare(expected, measured, program):
    found = mismatches(expected, measured, program.tolerance)
    if found:
        pytest.fail("\n".join([f"{len(found)} cases differ", *found]), pytrace=False)


@pytest.mark.parametrize("name", list(_program_parameters()))
def test_gives_what_was_recorded(name):
    _check(name)


@pytest.mark.parametrize("name", list(_program_parameters()))
def test_gives_it_where_the_word_theano_is_replaced_by_opwise(name):
    program = replaced.programs()[name]
    measured = program.run(opwise, on_opt_error="raise")
    _compare(replaced.replaced(_expected(name)), replaced.replaced(measured), program)


@pytest.mark.c
@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN", "DEBUG_MODE", "PROFILE_MODE"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_agree_in_every_mode(name, mode, flags):
    flags({"DebugMode.patience": 2})  # ten times are half of what the slowest scripts take
    on_warning = "ignore" if name in OUTDATED else "error"
    _check(PREFIX + name, mode=mode, on_warning=on_warning)


@pytest.mark.parametrize("name", [name for name in RECORDED if name.startswith("images.")])
def test_perform_of_images_agrees(name):
    """Without C and rewrites: the Ops as the program made them."""
    _check(name, linker="py", optimizer="None")


def _figures():
    """Read how far each script has to get: (script, result, lowest, highest value)."""
    for name, bounds in FIGURES.items():
        for key, (low, high) in bounds.items():
            yield pytest.param(name, key, low, high, id=f"{name}-{key}")


@pytest.mark.null
@pytest.mark.parametrize(("name", "key", "low", "high"), list(_figures()))
def test_scripts_reach_their_figures(name, key, low, high):
    """They do under opwise too: its results are compared with the recorded ones above."""
    value = decode_array(RECORDED[PREFIX + name]["results"][key])
    assert np.all((low <= value) & (value <= high)), value


@pytest.mark.null
def test_the_record_says_equal_results_once():
    results = {"a": {"x": [1], "y": [1], "z": True}, "b": {"x": [1], "y": [1], "z": True}, "c": 1}
    document = {"versions": {"numpy": "1"}, "programs": results}
    text = text_of(document)
    assert json.loads(text)["programs"] == {"a || b": {"x || y": [1], "z": True}, "c": 1}
    found = document_of(text)
    assert found == document
    found["programs"]["a"]["x"][0] = 2
    assert found["programs"]["a"]["y"] == found["programs"]["b"]["x"] == [1]
    with pytest.raises(ValueError, match="stands between labels"):
        text_of({"programs": {"a || b": 1}})
    assert text_of(document_of(RECORD.read_text())) == RECORD.read_text()


@pytest.mark.null
def test_replaced_programs_never_say_theano():
    programs = replaced.programs()
    assert set(programs) == set(PROGRAMS)
    for name, program in programs.items():
        assert program is not PROGRAMS[name]
        assert not hasattr(inspect.getmodule(program.function), "theano")
    for name in SCRIPTS:
        script = importlib.import_module(f"{replaced.NAME}.scripts.{name}")
        assert getattr(script, "opwise", opwise) is opwise and not hasattr(script, "theano"), name


@pytest.mark.null
def test_every_program_is_recorded():
    assert set(PROGRAMS) == set(RECORDED)


@pytest.mark.null
def test_every_deliberate_difference_is_one():
    expected = copy.deepcopy(RECORDED)
    for difference in DIFFERENCES:
        assert difference.reason
        for case, value in difference.expected.items():
            container, key = _place(expected, case)
            changed = _changed(container[key], value)
            assert container[key] != changed, case
            container[key] = changed
