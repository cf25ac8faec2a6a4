"""Names of tasks: what Dask makes of the keys."""

import pytest
from dask.utils import key_split

from opwise.distributed import cluster
from opwise.distributed.clusters import task_name

pytestmark = pytest.mark.null


@pytest.mark.parametrize("name, wanted", [
    ("train", "opwise-train"),
    ("first-layer", "opwise-first-layer"),
    ("f1", "opwise_f1"),
    ("layer-2", "opwise_layer_2"),
    ("/home/me/train.py:9", "opwise_train.py:9"),
    ("deadbeef", "opwise_deadbeef"),
    ("distance", "opwise_distance"),
    ("a b", "opwise-a-b"),
    (None, "opwise_function"),
    ("???", "opwise_function"),
])  # fmt: skip
def test_dask_shows_the_name(name, wanted):
    assert task_name(name) == wanted
    for key in (
        f"{wanted}-0123456789abcdef0123456789abcdef",
        f"{wanted}-0f-3",
        (f"{wanted}-0a", 1),
    ):
        assert key_split(key) == wanted


def test_what_is_appended():
    assert task_name("train", "sum") == "opwise-train-sum"
    assert key_split(task_name("f1", "sum") + "-0a") == "opwise_f1_sum"


def test_workers_of_a_cluster_use_so_many_threads(monkeypatch):
    started = []
    monkeypatch.setattr("distributed.LocalCluster", lambda **options: started.append(options))
    monkeypatch.setenv("OPWISE_FLAGS", "floatX=float32")
    cluster(3, threads=2, memory_limit="1GB", env={"A": "b"})
    (options,) = started
    assert options["env"] == {"A": "b", "OPWISE_FLAGS": "floatX=float32,threads=2"}
    assert (options["n_workers"], options["threads_per_worker"]) == (3, 1)
    assert options["memory_limit"] == "1GB"


@pytest.mark.parametrize(
    "numbers", [{"workers": 0}, {"workers": 2.0}, {"workers": 2, "threads": 0}]
)
def test_numbers_of_a_cluster(numbers):
    with pytest.raises(ValueError, match="must be a whole number of at least 1"):
        cluster(**numbers)
