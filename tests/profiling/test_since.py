"""The part of a profile after an earlier one."""

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.profiling.profile import Profile
from opwise.profiling.since import since

pytestmark = pytest.mark.null


def test_calls_after_a_snapshot():
    x = T.dvector("x")
    f = opwise.function([x], T.exp(x).sum(), mode="FAST_COMPILE", profile=True)
    (recorder,) = f.profile._recorders
    for _ in range(6):
        f(np.ones(100_000))
    before = recorder.snapshot()
    for _ in range(5):
        f(np.ones(10))
    with pytest.raises(TypeError):
        f()
    now = recorder.snapshot()
    found = since(now, before)
    assert (found.calls, found.failed) == (6, 1)
    assert 0 < found.call_ns == now.call_ns - before.call_ns
    for apply in found.applys:
        assert apply.count == 5 == sum(n for _, n in apply.histogram)
        assert apply.least <= apply.total / 5 <= apply.most * 1.01 + 1
    assert all(call.number > 6 for call in found.detail)
    assert Profile.from_json(Profile((found,)).to_json()).functions == (found,)


def test_all_calls_are_after_an_empty_snapshot():
    x = T.dvector("x")
    f = opwise.function([x], x + 1, mode="FAST_COMPILE", profile=True)
    (recorder,) = f.profile._recorders
    before = recorder.snapshot()
    f(np.ones(3))
    found = since(recorder.snapshot(), before)
    assert found.calls == found.first_calls == 1
    assert [a.count for a in found.applys] == [1]
    assert since(before, before).applys[0].count == 0
