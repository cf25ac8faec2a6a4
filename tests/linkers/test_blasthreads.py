"""The flag ``threads`` binds BLAS too, and lets it go again."""

import subprocess
import sys

import numpy as np
import pytest
import threadpoolctl

import opwise.tensor as T
from opwise import function
from opwise.config import config
from opwise.linalg import eigh, qr, svd
from opwise.linkers import blasthreads, opwise_c, resources

pytestmark = pytest.mark.null


def used():
    """Return how many threads each BLAS library would use."""
    found = threadpoolctl.threadpool_info()
    return [library["num_threads"] for library in found if library["user_api"] == "blas"]


@pytest.fixture
def two():
    """Let all BLAS libraries use two threads at first, whatever the machine has."""
    opwise_c.load_blas()
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        assert set(used()) == {2}
        yield
        blasthreads.bind(None)
    resources.obey_flags()


def compiled():
    x = T.dmatrix("x")
    return function([x], T.dot(x, x), profile=True)


def test_the_flag_binds_blas_and_lets_it_go(two, flags):
    config_before = config.threads
    flags(threads=1)
    f = compiled()
    assert set(used()) == {1}
    np.testing.assert_allclose(f(np.ones((500, 500))), 500)
    flags(threads=config_before)
    compiled()
    assert set(used()) == {2}


def test_a_profile_says_how_many_threads_there_were(two, flags):
    flags(threads=1)
    f = compiled()
    f(np.ones((500, 500)))
    about = f.profile.profile().environment
    assert (about["threads"], about["blas_threads"]) == (1, 1)
    assert about["blas"]


def test_a_trial_of_one_thread_binds_blas(two):
    usual = resources.threads()
    resources.use_threads(1)
    try:
        assert set(used()) == {1} or usual == 1
    finally:
        resources.use_threads(usual)
    assert set(used()) == {2}


def test_what_is_bound_twice_is_let_go_once(two):
    blasthreads.bind(1)
    blasthreads.bind(2)
    blasthreads.bind(1)
    blasthreads.libraries_changed()
    assert set(used()) == {1}
    blasthreads.bind(None)
    assert set(used()) == {2}


LATE = """
import sys
import numpy as np, opwise, opwise.tensor as T
from opwise.linkers import opwise_c
opwise_c.use_vectors("base")  # kernels for wider vectors do without BLAS
assert "threadpoolctl" not in sys.modules
x = T.dmatrix("x")
f = opwise.function([x], T.dot(x, x))
assert not opwise_c.has_blas()
f(np.ones((500, 500)))
assert opwise_c.has_blas()
import threadpoolctl
found = [each for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"]
assert any("scipy" in each["filepath"] for each in found) or len(found) == 1, found
print({each["num_threads"] for each in found})
"""


def test_a_library_that_is_loaded_later_is_bound_too():
    """scipy's BLAS comes with the first large product, when the flag has long been read."""
    done = subprocess.run(
        [sys.executable, "-c", "import os; os.environ['OPWISE_FLAGS'] += ',threads=1'\n" + LATE],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "{1}\n", done.stderr


@pytest.mark.parametrize("threads", [1, 2])
def test_factorizations_by_one_thread_give_the_others_back(two, threads):
    x = T.dmatrix("x")
    f = function([x], [*svd(x, full_matrices=False), *qr(x), *eigh(T.dot(x.T, x))])
    value = np.random.default_rng(0).normal(size=(300, 20))
    with threadpoolctl.threadpool_limits(threads, user_api="blas"):
        f(value)
        assert set(used()) == {threads}
        with pytest.raises(np.linalg.LinAlgError, match="did not converge"):
            f(value * np.nan)
        assert set(used()) == {threads}
