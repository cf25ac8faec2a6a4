"""Recorder: a snapshot holds what the machine counted, and what it counted it for."""

import opwise
import opwise.tensor as T
from opwise.profiling.recorder import Recorder


class FakeMachine:
    """Counts that the test chose: n steps."""

    def __init__(self, n):
        self.n = n

    def timing(self):
        return [(k, k * 10, k, k * 2, ((3, k),)) for k in range(1, self.n + 1)]

    def detail(self):
        return [(1, 500, list(range(self.n)))]

    timer_ns = 8


class FakeCalls:
    calls, total_ns, fn_ns, first_ns = 7, 1000, 900, 300


class FakeReport:
    total, optimizer, validate, linker = 3.0, 2.0, 0.1, 0.5
    kernels = None
    thunks = {}


def test_snapshot():
    x = T.dvector("x")
    line = "y = T.exp(x) * 2"
    y = T.exp(x) * 2
    function = opwise.function([x], y, mode=opwise.Mode("py", None), name="f")
    order = function.maker.order
    recorder = Recorder(
        "f", order, FakeMachine(len(order)), FakeCalls, [True] * len(order), [""] * len(order),
        FakeReport,
    )  # fmt: skip
    profile = recorder.snapshot()
    assert (profile.calls, profile.call_ns, profile.first_call_ns) == (7, 1000, 300)
    assert (profile.compile.total, profile.compile.optimizer) == (3.0, 2.0)
    for k, apply in enumerate(profile.applys):
        assert (apply.position, apply.count, apply.total) == (k, k + 1, 10 * (k + 1))
        assert (apply.least, apply.most) == (k + 1, 2 * (k + 1))
        assert apply.histogram == ((3, k + 1),)
        assert apply.text == str(order[k])
        assert apply.reads == tuple(
            order.index(v.owner) if v.owner in order else -1 for v in order[k].inputs
        )
        (filename, number), *_ = apply.lines
        with open(filename) as f:
            assert line in f.read().splitlines()[number - 1]


def test_two_snapshots_have_the_same_keys():
    x = T.dvector("x")
    function = opwise.function([x], T.exp(x) + T.exp(x * 1), mode=opwise.ProfileMode("py", None))
    keys = [[a.keys for a in function.maker.mode.profile().applys] for _ in range(2)]
    assert keys[0] == keys[1]
    assert len(set(keys[0])) == len(keys[0]), "Applys that compute different things have one key"
