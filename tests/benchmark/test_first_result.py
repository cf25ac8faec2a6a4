"""The benchmark of first results: contenders run, in turn, and must print the same."""

import json

import pytest

from benchmark import first_result


def test_opwise_and_numpy_are_measured_and_put_into_a_page(tmp_path, capsys):
    kept, page = tmp_path / "first.json", tmp_path / "page.md"
    page.write_text("a\n<!-- first-result: table -->\nold\n<!-- /first-result -->\nb\n")
    arguments = ["--only", "opwise", "numpy", "--runs", "1"]
    assert first_result.main([*arguments, "--json", str(kept), "--pages", str(page)]) == 0
    run = json.loads(kept.read_text())
    assert {name: sorted(each) for name, each in run["samples"].items()} == {
        "numpy": ["none"], "opwise": ["cold", "warm"],
    }  # fmt: skip
    assert all(len(v) == 1 and v[0] > 0 for each in run["samples"].values() for v in each.values())
    table = first_result.table(run)
    assert table in capsys.readouterr().out and table in page.read_text()
    assert "old" not in page.read_text()
    assert first_result.main(["--from-json", str(kept), "--pages", str(page)]) == 0
    assert table in page.read_text()


@pytest.mark.null
def test_contenders_that_print_something_else_stop(monkeypatch):
    printed = iter("1 1 1 2 1 1".split())
    monkeypatch.setattr(first_result, "seconds_of", lambda *a, **k: (0.1, next(printed)))
    with pytest.raises(SystemExit, match=r"the results differ: \['1', '2'\]"):
        first_result.measure(["numpy", "torch"], 1)


@pytest.mark.null
def test_medians_are_shown():
    samples = {
        "opwise": {"cold": [0.5, 0.7, 0.6], "warm": [0.4, 0.3, 9.0]},
        "jax": {"cold": [3.0], "warm": [2.0]},
        "torch": {"none": [1.0, 1.5]},
    }
    run = {"machine": {"date": "D", "cores": "2", "processor": "P"}, "samples": samples}
    assert first_result.table(run).splitlines()[2:] == [
        "| opwise | 0.40 s | 0.60 s |",
        "| torch | 1.25 s | no cache |",
        "| jax | 2.00 s | 3.00 s |",
    ]
    assert "after 0.40 s, the import included (0.60 s with an empty cache); " in (
        said := first_result.sentence(run)
    )
    assert (
        "PyTorch 1.25 s, JAX 2.00 s (3.00 s). Medians of 3 runs on D, on 2 cores of an P." in said
    )
