"""conv.algo=measure: every call is right, the fastest algorithm is kept, and profiles say so."""

import re

import numpy as np
import pytest

import theano.tensor as T
from opwise import Mode, function
from opwise.config import change_flags
from opwise.gradient import grad
from opwise.linkers.convsteps import ALGORITHMS
from opwise.nn import conv2d, relu
from opwise.tensor.type import tensor_type

#: of a note: what was measured
MEASURED = re.compile(
    r"measured: \d+\.\d\d times as fast as (\w+)(; the model of costs prefers it too"
    r"|, which the model of costs prefers)$"
)


def compiled(algo, dtype="float32", follow=lambda y: y, profile=None, **options):
    """Return a function of images, kernels and the gradient by the result."""
    x, w, top = (tensor_type(dtype, (False,) * 4)() for _ in range(3))
    with change_flags({"conv.algo": algo}):
        y = conv2d(x, w, **options)
        grads = grad(None, [x, w], known_grads={y: top})
        mode = Mode("c|py", "fast_run")
        return function([x, w, top], [follow(y), *grads], mode=mode, profile=profile)


def arrays(image, kernel, result, dtype="float32"):
    rng = np.random.default_rng(4)
    return [rng.standard_normal(shape).astype(dtype) for shape in (image, kernel, result)]


def notes(f):
    return [(name, why) for name, why in f.linked.vm.algorithms() if name]


@pytest.mark.parametrize(
    ("shapes", "options"),
    [(((2, 7, 13, 12), (9, 7, 3, 3), (2, 9, 13, 12)), {"border_mode": "half"}),
     (((3, 8, 9, 10), (6, 8, 1, 1), (3, 6, 9, 10)), {}),
     (((2, 5, 15, 14), (6, 5, 3, 4), (2, 6, 7, 6)), {"subsample": (2, 2)}),
     (((2, 18, 9, 9), (18, 1, 3, 3), (2, 18, 7, 7)), {"num_groups": 18}),
     (((2, 64, 9, 9), (64, 32, 3, 3), (2, 64, 7, 7)), {"num_groups": 2})],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_call_is_right(shapes, options, dtype):
    given = arrays(*shapes, dtype)
    want = compiled("patches", dtype, **options)(*given)
    f = compiled("measure", dtype, **options)
    for _ in range(3):
        for found, one in zip(f(*given), want, strict=True):
            np.testing.assert_allclose(found, one, rtol=0, atol=1e-5 * abs(one).max())


def test_results_do_not_change_from_call_to_call():
    given = arrays((2, 7, 11, 12), (9, 7, 3, 3), (2, 9, 9, 10))
    f = compiled("measure")
    first = f(*given)
    for found, one in zip(f(*given), first, strict=True):
        np.testing.assert_array_equal(found, one)


def test_a_profile_says_what_was_measured():
    given = arrays((2, 10, 11, 12), (9, 10, 3, 3), (2, 9, 9, 10))
    f = compiled("measure", profile=True)
    f(*given)
    applys = f.profile.profile().functions[0].applys
    chosen = [a for a in applys if a.algorithm]
    assert len(chosen) == 3
    for apply in chosen:
        assert apply.algorithm in ALGORITHMS[1:-1]
        other = MEASURED.match(apply.why_algorithm).group(1)
        assert other in ALGORITHMS[1:-1]
        assert other != apply.algorithm


def test_a_shape_is_measured_once_in_a_process():
    given = arrays((2, 7, 11, 17), (9, 7, 3, 3), (2, 9, 9, 15))
    f, g = compiled("measure"), compiled("measure")
    f(*given)
    kept = notes(f)
    assert len(kept) == 3
    f(*given)
    assert notes(f) == kept
    g(*given)
    # the times of another measurement would not be the same
    assert notes(g) == kept
    other = arrays((2, 7, 17, 11), (9, 7, 3, 3), (2, 9, 15, 9))
    f(*other)
    assert [why for _, why in notes(f)] != [why for _, why in kept]
    f(*given)
    assert notes(f) == kept


def test_later_calls_allocate_nothing():
    given = arrays((2, 16, 21, 17), (9, 16, 7, 7), (2, 9, 15, 11))
    f = compiled("measure")
    f(*given)
    kept = f.linked.vm.scratch_bytes()
    for _ in range(3):
        f(*given)
        assert f.linked.vm.scratch_bytes() == kept
    # no more than the algorithm that is kept needs
    for name, _ in notes(f)[:1]:
        g = compiled(name)
        g(*given)
        assert f.linked.vm.scratch_bytes()[0] == g.linked.vm.scratch_bytes()[0]


def test_elementwise_work_on_results():
    given = arrays((2, 7, 13, 11), (9, 7, 3, 3), (2, 9, 11, 9))
    want = compiled("patches", follow=relu)(*given)[0]
    f = compiled("measure", follow=relu)
    for _ in range(2):
        found = f(*given)[0]
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-5 * want.max())
    assert (found >= 0).all()


def test_results_that_are_not_finite():
    given = arrays((1, 7, 13, 14), (9, 7, 3, 3), (1, 9, 11, 12))
    given[0][0, 0, 0, 0] = np.inf
    want = compiled("patches")(*given)
    f = compiled("measure")
    for _ in range(2):
        for found, one in zip(f(*given), want, strict=True):
            np.testing.assert_array_equal(np.isfinite(found), np.isfinite(one))
    # algorithms that gave up on these data were no candidates
    assert all(name in ("direct", "patches", "scatter") for name, _ in notes(f)[:1])


def test_one_algorithm_needs_no_measurement():
    x, w = T.ftensor4(), T.ftensor4()
    top = T.ftensor4()
    with change_flags({"conv.algo": "measure"}):
        y = conv2d(x, w, subsample=(2, 2))
        f = function([x, w, top], grad(None, x, known_grads={y: top}), mode=Mode("c|py"))
    f(*arrays((1, 2, 9, 9), (3, 2, 3, 3), (1, 3, 4, 4)))
    assert notes(f) == [("scatter", "no other algorithm can compute it")]
