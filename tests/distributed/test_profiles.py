"""Profiles of workers: counted once each, merged, and kept when a worker is lost."""

import os
import signal
import time

import dask.array as da
import numpy as np
import pytest
from click.testing import CliRunner
from distributed import Client

import opwise
import opwise.distributed as od
import opwise.tensor as T
from opwise import Apply, Op
from opwise.command.report import report
from opwise.loops import scan
from opwise.profiling.profile import Profile
from opwise.profiling.reports.workers import sections

pytestmark = pytest.mark.null

DATA = np.random.RandomState(0).rand(40, 6)


def exponential(name="exponential"):
    x = T.dmatrix("x")
    return opwise.function([x], T.exp(x) + T.dot(x, x.T).sum(), name=name, mode="FAST_COMPILE")


@pytest.fixture
def array():
    return da.from_array(DATA, chunks=(4, 6))


def calls(found, name):
    """Return the number of calls of a function in a profile, as each of its Applys counts them."""
    functions = [f for f in found.profile().functions if f.name == name]
    assert len(functions) <= 1
    for f in functions:
        assert {a.count for a in f.applys} == {f.calls}
    return sum(f.calls for f in functions)


def test_every_call_is_counted_once(client, array):
    f = exponential()
    od.map_blocks(f, array).compute()  # not recorded
    with od.Profiler(client, interval=0) as profiler:
        od.map_blocks(f, array).compute()
        assert calls(profiler.result(), "exponential") == 10
        assert calls(profiler.result(), "exponential") == 10
        od.map_blocks(f, array + 1).compute()
    od.map_blocks(f, array + 2).compute()  # not recorded
    found = profiler.result()
    assert calls(found, "exponential") == 20
    assert sum(w.calls for w in found.workers) == 20
    assert len(found.profile().functions) == 1
    assert not any(w.lost for w in found.workers)


def test_what_was_not_reported_yet_is_fetched(client, array):
    """With a long interval workers report after their first task alone."""
    f = exponential()
    with od.Profiler(client, interval=1000) as profiler:
        for k in range(1, 4):
            od.map_blocks(f, array + k).compute()
            assert calls(profiler.result(), "exponential") == 10 * k
    assert calls(profiler.result(), "exponential") == 30


def test_several_profilers_count_for_themselves(client, array):
    f = exponential()
    with od.Profiler(client, interval=0) as outer:
        od.map_blocks(f, array).compute()
        with od.Profiler(client, interval=0) as inner:
            od.map_blocks(f, array + 1).compute()
        od.map_blocks(f, array + 2).compute()
    assert calls(inner.result(), "exponential") == 10
    assert calls(outer.result(), "exponential") == 30


def test_loops_are_profiled_inside(client):
    xs = T.dvector("xs")
    sums, _ = scan(lambda x, s: T.tanh(x + s), xs, T.zeros(()))
    f = opwise.function([xs], sums[-1], name="recurrence", mode="FAST_COMPILE")
    with od.Profiler(client) as profiler:
        od.delayed(f)(np.ones(5)).compute()
    (function,) = profiler.result().profile().functions
    inside = [a for a in function.applys if a.inside >= 0]
    assert inside and {a.count for a in inside} == {5}


def test_what_the_profile_says(client, array, tmp_path):
    f = exponential()
    with od.Profiler(client) as profiler:
        od.map_blocks(f, array).compute()
    found = profiler.result()
    merged = found.profile()
    found.save(tmp_path / "merged.json")
    assert Profile.load(tmp_path / "merged.json") == merged
    printed = CliRunner().invoke(report, [str(tmp_path / "merged.json")], catch_exceptions=False)
    assert printed.exit_code == 0
    assert "test_profiles.py:" in printed.output and "T.exp(x) + T.dot" in printed.output
    paths = found.save_each(tmp_path / "each")
    assert [path.name for path in paths] == ["worker-0.profile.json", "worker-1.profile.json"]
    together = CliRunner().invoke(report, [str(tmp_path / "each")], catch_exceptions=False)
    assert together.exit_code == 0
    assert [w.name for w in found.workers] == ["worker 0", "worker 1"]
    for worker in found.workers:
        assert worker.profile.environment["process_name"] == worker.name
        assert worker.profile.environment["threads"] == 1
    pids = {w.profile.environment["process"] for w in found.workers}
    assert len(pids) == 2 and os.getpid() not in pids


def test_waiting_for_another_worker(client):
    """A task of one worker needs what another computes; each has a worker of its own."""
    first, second = sorted(client.scheduler_info(n_workers=-1)["workers"])

    def slow(x):
        time.sleep(0.3)
        return x

    def add(x, y):
        return x + y

    with od.Profiler(client) as profiler:
        slept = client.submit(slow, 1, workers=[first], key="sleep-0a")
        quick = client.submit(add, 1, 2, workers=[second], key="quick-0a")
        assert client.submit(add, slept, quick, workers=[second], key="join-0a").result() == 4
    found = profiler.result()
    names = client.run_on_scheduler(lambda dask_scheduler: {
        address: f"worker {state.name}" for address, state in dask_scheduler.workers.items()
    })  # fmt: skip
    (wait,) = [w for w in found.waits if w.task == "join"]
    assert (wait.worker, wait.computing, wait.times) == (names[second], names[first], 1)
    assert wait.seconds > 0
    by_name = {w.name: w for w in found.workers}
    assert by_name[names[second]].waiting == wait.seconds
    assert by_name[names[first]].waiting == 0
    assert by_name[names[first]].computing >= 0.3
    assert [by_name[names[a]].tasks for a in (first, second)] == [1, 2]
    for worker in found.workers:
        parts = worker.computing + worker.receiving + worker.waiting + worker.without_task
        assert parts == pytest.approx(worker.seconds)


def test_an_error_is_counted(client):
    x, y = T.dvectors("xy")
    f = opwise.function([x, y], x + y, name="sum", mode="FAST_COMPILE")
    with od.Profiler(client) as profiler, pytest.raises(ValueError):
        od.delayed(f)(np.ones(2), np.ones(3)).compute()
    (function,) = profiler.result().profile().functions
    assert (function.calls, function.failed) == (1, 1)


def test_a_profiler_records_once(client):
    profiler = od.Profiler(client)
    with profiler, pytest.raises(RuntimeError, match="records once"):
        profiler.start()
    with pytest.raises(RuntimeError, match="records once"):
        profiler.start()
    profiler.stop()
    with pytest.raises(ValueError, match="interval is -1"):
        od.Profiler(client, interval=-1)


# --- a worker is killed ---------------------------------------------------------------------------


class Killing(Op):
    """Returns its first input; notes that it ran, and may kill the process that runs it.

    It does so once, if the second input is not 0, for the chunk that begins with 13.
    """

    __props__ = ("folder",)

    def __init__(self, folder):
        self.folder = folder

    def make_node(self, x, armed):
        return Apply(self, [x, armed], [x.type()])

    def perform(self, node, inputs, output_storage):
        x, armed = inputs
        with open(os.path.join(self.folder, str(os.getpid())), "a") as file:
            file.write("x")
        killed = os.path.join(self.folder, "killed")
        if armed and x[0, 0] == 13 and not os.path.exists(killed):
            with open(killed, "w") as file:
                file.write(str(os.getpid()))
            time.sleep(0.5)  # the event loop sends what was reported before
            os.kill(os.getpid(), signal.SIGKILL)
        output_storage[0][0] = x.copy()


@pytest.fixture
def of_its_own():
    """A client of two workers, of which a test may kill one."""
    with od.cluster(2) as cluster, Client(cluster, set_as_default=False) as found:
        found.wait_for_workers(2)
        yield found


def test_a_killed_worker_loses_nothing(of_its_own, tmp_path, in_main):
    """kill -9 in the middle of a sum: its bits stay, and so does what the worker had reported."""
    client = of_its_own
    rows = np.random.RandomState(0).randn(400, 5)
    rows[::20, 0] = range(20)
    x = T.dmatrix("x")
    w, armed = opwise.shared(np.full(5, 0.1), name="w"), opwise.shared(0, name="armed")
    cost = T.exp(T.dot(in_main(Killing)(str(tmp_path))(x, armed), w)).sum()
    f = opwise.function([x], [cost, T.grad(cost, w)], name="gradient", mode="FAST_COMPILE")
    with od.Profiler(client, interval=0) as profiler:
        chunks = od.load_chunks([rows], 20, client)
        wanted = od.tree_sum(f, chunks)
        before = {worker.name: worker.calls for worker in profiler.result().workers}
        assert sum(before.values()) == 20 and min(before.values()) > 0
        armed.set_value(1)
        found = od.tree_sum(f, chunks)
    assert [a.tobytes() for a in found] == [a.tobytes() for a in wanted]

    # by process, how often it began to run the Op; Dask may have started another for the killed one
    ran = {int(path.name): len(path.read_text()) for path in tmp_path.glob("[0-9]*")}
    pid = int((tmp_path / "killed").read_text())
    after = profiler.result()
    assert len({w.name for w in after.workers}) == len(after.workers)
    (gone,) = [w for w in after.workers if w.lost]
    assert gone.profile.environment["process"] == pid
    # the call in which it was killed had not ended; the report of the one before may be lost too
    assert ran[pid] - 2 <= gone.calls <= ran[pid] - 1
    assert gone.calls >= before[gone.name]
    for worker in after.workers:
        if worker is not gone and worker.calls:
            assert worker.calls == ran[worker.profile.environment["process"]]
    counted = sum(worker.calls for worker in after.workers)
    assert calls(after, "gradient") == counted >= 40
    assert sum(ran.values()) - 2 <= counted <= sum(ran.values()) - 1
    assert f"{gone.name}, lost" in "\n".join(sections(after))
