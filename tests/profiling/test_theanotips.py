"""Tips that are read off a profile."""

from dataclasses import replace

import pytest

from opwise.profiling.profile import Profile
from opwise.profiling.reports.theanotips import tips

FLOAT32 = ("TensorType(float32, vector)",)


@pytest.mark.parametrize("wide, narrow, given", [
    (1000, 0, True), (20, 980, True), (5, 995, False), (0, 1000, False), (0, 0, False),
])  # fmt: skip
def test_narrower_floats_are_a_tip_where_wide_ones_take_time(build, wide, narrow, given):
    apply, function, _ = build
    both = (apply("a", wide), replace(apply("b", narrow, 1), inputs=FLOAT32, outputs=FLOAT32))
    found = tips(Profile((function(*both),)))
    assert ("Try the Theano flag floatX=float32" in found) == given


def test_what_runs_in_python_is_a_tip_where_it_takes_time(build):
    apply, function, _ = build
    found = tips(Profile((function(apply("sort", 500, c=False), apply("exp", 995, 1)),)))
    assert any("sort runs in Python, 33.4% of the time: no C implementation" in t for t in found)
    found = tips(Profile((function(apply("sort", 5, c=False), apply("exp", 995, 1)),)))
    assert not any("Python" in t for t in found)
