"""A cluster of two worker processes, which all tests of this folder share."""

import importlib.util

import pytest

_MISSING = [name for name in ("dask", "distributed") if importlib.util.find_spec(name) is None]


class _Skipped(pytest.Module):
    """A file of tests that cannot be imported."""

    def collect(self):
        pytest.skip(f"there is no {' and no '.join(_MISSING)}: pip install -e '.[dask]'")


def pytest_pycollect_makemodule(module_path, parent):
    return _Skipped.from_parent(parent, path=module_path) if _MISSING else None


@pytest.fixture(scope="session")
def client():
    """A client of two worker processes with one task at a time."""
    from distributed import Client

    from opwise.distributed import cluster

    with cluster(2) as started, Client(started) as found:
        found.wait_for_workers(2)
        yield found


@pytest.fixture
def sync():
    """Dask's collections are computed in this thread."""
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def in_main(monkeypatch):
    """``in_main(thing)``: say that a class or function is of the program, not of a module."""

    def say(thing):
        monkeypatch.setattr(thing, "__module__", "__main__")
        return thing

    return say
