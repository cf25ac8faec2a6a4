"""A cluster of two worker processes, which all tests of this folder share."""

import pytest

pytest.importorskip("distributed", reason="dask is not installed: pip install -e '.[dask]'")

import dask
from distributed import Client

import opwise.distributed as od


@pytest.fixture(scope="session")
def client():
    """A client of two worker processes with one task at a time."""
    with od.cluster(2) as cluster, Client(cluster) as found:
        found.wait_for_workers(2)
        yield found


@pytest.fixture
def sync():
    """Dask's collections are computed in this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def in_main(monkeypatch):
    """``in_main(thing)``: say that a class or function is of the program, not of a module."""

    def say(thing):
        monkeypatch.setattr(thing, "__module__", "__main__")
        return thing

    return say
