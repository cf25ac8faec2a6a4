"""Mutated files of profiles: each ends in output or in one clear error, in every form."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest

from opwise.profiling.memory import Live, MemoryProfile
from opwise.profiling.merge import merge
from opwise.profiling.profile import ArrayProfile, CallProfile, OriginProfile, Profile

spec = importlib.util.spec_from_file_location("mutations", Path(__file__).with_name("mutations.py"))
mutations = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mutations)

#: files in each part, and the parts: processes of the tests share them
_FILES, _PARTS = 30, 10

FORMS = [
    ("report", "BAD"),
    ("report", "--by", "shapes", "BAD"),
    ("report", "--by", "scope", "--form", "markdown", "BAD"),
    ("report", "--form", "text", "BAD"),
    ("report", "--form", "csv", "BAD"),
    ("report", "--form", "json", "BAD"),
    ("report", "--form", "markdown", "BAD"),
    ("report", "--html", "OUT", "BAD"),
    ("report", "--sort", "gain", "BAD", "GOOD"),
    ("diff", "BAD", "GOOD"),
    ("diff", "--by", "line", "GOOD", "BAD"),
    ("diff", "--by", "scope", "BAD", "BAD"),
    ("diff", "--by", "shapes", "BAD", "GOOD"),
    ("diff", "--form", "json", "--fail-above", "1.1", "GOOD", "BAD"),
    ("diff", "--form", "markdown", "--by", "op", "--fail-above", "1.1", "BAD", "GOOD"),
    ("diff", "--html", "OUT", "BAD", "GOOD"),
    ("export", "BAD", "OUT"),
    ("export", "--form", "speedscope", "BAD", "OUT"),
]


@pytest.fixture
def good(build):
    """A small Profile that has a bit of everything."""
    an_apply, a_function, _ = build
    array = ArrayProfile("float64", (3, 4), (32, 8), 96)
    origin = OriginProfile("k", "exp", "/src/model.py", 3, "layer/part", ("/src/model.py", 2))
    applys = []
    for k, op in enumerate(("exp", "Dot22", "Sum")):
        made = an_apply(op, 1000 * (k + 1), k, c=k != 2, count=5, keys=(f"key{k}",))
        applys.append(
            replace(made, origins=(*made.origins, origin), reads=(k - 1,), flops=24 * k,
                    input_arrays=(array, None), output_arrays=(array,), shares=("c",))
        )  # fmt: skip
    memory = MemoryProfile((96, 192, 96), 192, 1, (Live(0, 96), Live(-1, 8)), 96, 96, 96, 96, 0)
    f = replace(
        a_function(*applys, calls=5), memory=memory,
        detail=(CallProfile(1, 0, (10, 20, 30)), CallProfile(4, 90, (30, 20, 10))),
    )  # fmt: skip
    rewrites = {
        "kind": "Seq", "name": "stages", "seconds": 0.1, "nodes_before": 3, "nodes_after": 2,
        "passes": [],
    }  # fmt: skip
    g = replace(a_function(an_apply("tanh", 700), name="g"), rewrites=rewrites)
    about = {"program": "model.py", "process": 7, "grad_seconds": 0.1, "flags": "floatX=float32"}
    return Profile((f, g), "a model", about, {"/src/model.py:3": "y = exp(x)"})


@pytest.mark.parametrize("part", range(_PARTS))
def test_mutated_profiles(call, good, tmp_path, part):
    texts = [good.to_json(), merge([good, good]).to_json()]
    good.save(tmp_path / "good.json")
    paths = {"GOOD": tmp_path / "good.json", "OUT": tmp_path / "out"}
    read = 0
    for seed in range(part * _FILES, (part + 1) * _FILES):
        bad = paths["BAD"] = tmp_path / "bad.json"
        bad.write_bytes(mutations.mutated(texts, seed))
        # the first form shows whether it is read at all; then all the others follow
        for form in FORMS:
            result = call(*(paths.get(word, word) for word in form))
            is_error = result.exit_code == 1 and "Error: " in result.output
            if not isinstance(result.exception, SystemExit | None):
                result.exception.add_note(f"seed {seed}: opwise {' '.join(form)}")
                raise result.exception
            assert result.exit_code == 0 or is_error or "--fail-above" in form, result.output
            if is_error and form == FORMS[0]:
                assert result.output.count("\n") == 1 and result.output[:-1].isprintable()
                break
            assert result.output.replace("\n", "").isprintable() or form[-1] == "csv"
        else:
            read += 1
    assert read > _FILES // 8  # not all mutants are refused at once


def test_mutants_are_the_same_every_time(good):
    texts = [good.to_json()]
    again = [mutations.mutated(texts, seed) for seed in range(50)]
    assert again == [mutations.mutated(texts, seed) for seed in range(50)]
    assert len(set(again)) > 40 and json.loads(texts[0])
