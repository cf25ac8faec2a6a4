"""opwise reports the same about a function whether its graph was rewritten or read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cold_and_warm import MORE
from compiled_again import PROGRAMS

from opwise.testing import reported

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What two processes that share a cache tell of all programs."""
    flags = f"base_compiledir={tmp_path_factory.mktemp('cache')},cache_graphs=True"
    found = []
    for seed in ("1", "2"):
        out = subprocess.run(
            [sys.executable, HERE / "cold_and_warm.py"], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "OPWISE_FLAGS": flags,
                 "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])},
        )  # fmt: skip
        found.append({one["name"]: one for one in map(json.loads, out.stdout.splitlines())})
    return found


@pytest.mark.parametrize("name", [p.__name__ for p in [*PROGRAMS, *MORE]])
def test_the_same_is_told(runs, name):
    cold, warm = (run[name] for run in runs)
    assert not cold["cached"]
    assert warm["cached"] is (name != "of_a_user")  # whose Op may have changed
    assert len(cold["reported"]) > 15
    assert reported.differences(cold["reported"], warm["reported"]) == []


def test_errors_and_advice_are_among_it(runs):
    texts = [text for one in runs[1].values() for text in one["reported"].values()]
    parts = ["Outputs clients", "Storage map footprint", "too small", "LinAlgError", "IndexError"]
    for part in [*parts, "Not fused", "Composite"]:
        assert any(part in text for text in texts), part
    assert not any("do not fuse loops" in text for text in texts)
