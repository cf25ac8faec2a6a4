"""What the scheduler's plugin makes of Dask's records, with figures that the tests choose."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from opwise.distributed import plugins, remote
from opwise.distributed.plugins import CollectProfiles

pytestmark = pytest.mark.null


@pytest.fixture
def clock(monkeypatch):
    """The scheduler's clock, which the test sets."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(plugins, "time", lambda: clock.now)
    return clock


class Scheduler:
    """As much of a scheduler as the plugin reads: two workers, tasks and their inputs."""

    def __init__(self):
        self.workers = {name: SimpleNamespace(name=name, nthreads=1) for name in ("a", "b")}
        self.tasks = {}
        self.stream_handlers = {}
        self.plugins = {}

    def add_task(self, key, *inputs):
        self.tasks[key] = SimpleNamespace(key=key, dependencies=[self.tasks[i] for i in inputs])


@pytest.fixture
def scheduler():
    return Scheduler()


@pytest.fixture
def plugin(scheduler, clock):
    found = scheduler.plugins["p"] = CollectProfiles("p")
    # in a thread of its own: other tests of the process may leave a loop of events in this one
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, found.start(scheduler)).result()
    return found


def ran(plugin, key, worker, *spans, finish="memory", thread=1):
    """Tell the plugin that a task is done. spans: (action, start, stop)."""
    startstops = [{"action": a, "start": b, "stop": e} for a, b, e in spans]
    about = {"worker": worker, "thread": thread, "startstops": startstops}
    plugin.transition(key, "processing", finish, stimulus_id="test", **about)


def times(plugin):
    """Return {worker: (computing, receiving, waiting, tasks)}."""
    names = ("computing", "receiving", "waiting", "tasks")
    return {w["address"]: tuple(w[n] for n in names) for w in plugin.collected()["workers"]}


def test_a_worker_waits_for_another(scheduler, plugin):
    scheduler.add_task("left-0")
    scheduler.add_task("right-0")
    scheduler.add_task("join-0", "left-0", "right-0")
    ran(plugin, "left-0", "a", ("compute", 101, 106))
    ran(plugin, "right-0", "b", ("compute", 101, 103))
    # b is free from 103, the input is there from 106, it comes in from 105 (others) to 107
    ran(plugin, "join-0", "b", ("transfer", 105, 107), ("compute", 108, 109))
    assert times(plugin) == {"a": (5, 0, 0, 1), "b": (3, 1, 3, 2)}
    assert plugin.collected()["waits"] == [("b", "a", "join", 3.0, 1)]


def test_nobody_waits_for_itself_or_for_what_was_there(scheduler, plugin):
    scheduler.add_task("left-0")
    scheduler.add_task("own-0")
    scheduler.add_task("join-0", "left-0", "own-0")
    ran(plugin, "left-0", "a", ("compute", 101, 102))
    ran(plugin, "own-0", "b", ("compute", 101, 104))
    ran(plugin, "join-0", "b", ("transfer", 102, 105), ("transfer", 104.5, 106),
        ("compute", 107, 108))  # fmt: skip
    assert times(plugin)["b"] == (4, 2, 0, 2)
    assert plugin.collected()["waits"] == []


def test_waits_of_one_kind_are_added(scheduler, plugin):
    for k in range(3):
        scheduler.add_task(f"slow-{k}")
        scheduler.add_task(f"next-{k}", f"slow-{k}")
        begin = 101 + 10 * k
        ran(plugin, f"slow-{k}", "a", ("compute", begin, begin + 5))
        ran(plugin, f"next-{k}", "b", ("compute", begin + 6, begin + 10))
    assert plugin.collected()["waits"] == [("b", "a", "next", 16.0, 3)]  # 6 + 5 + 5


def test_each_thread_has_its_gaps(scheduler, plugin):
    scheduler.add_task("slow-0")
    scheduler.add_task("x-0")
    scheduler.add_task("join-0", "slow-0")
    ran(plugin, "slow-0", "a", ("compute", 101, 106))
    ran(plugin, "x-0", "b", ("compute", 101, 105), thread=1)
    ran(plugin, "join-0", "b", ("compute", 106, 107), thread=2)
    assert plugin.collected()["waits"] == [("b", "a", "join", 6.0, 1)]


def test_errors_count_and_other_moves_do_not(scheduler, plugin):
    scheduler.add_task("bad-0")
    ran(plugin, "bad-0", "a", ("compute", 101, 103), finish="erred")
    plugin.transition("bad-0", "waiting", "processing", stimulus_id="test")
    plugin.transition("bad-0", "processing", "erred", stimulus_id="test", worker="a")
    ran(plugin, "bad-0", "unknown", ("compute", 101, 103))
    assert times(plugin) == {"a": (2, 0, 0, 1), "b": (0, 0, 0, 0)}


def test_forgotten_tasks_take_no_memory(scheduler, plugin):
    for k in range(5):
        scheduler.add_task(f"x-{k}")
        ran(plugin, f"x-{k}", "a", ("compute", 101 + k, 102 + k))
        plugin.transition(f"x-{k}", "memory", "forgotten", stimulus_id="test")
    assert plugin._done == {}


def test_time_ends_with_the_worker(scheduler, plugin, clock):
    clock.now = 104.0
    plugin.remove_worker(scheduler, "a", stimulus_id="test")
    scheduler.workers["a"].nthreads = 2  # another process at the same address
    clock.now = 106.0
    plugin.add_worker(scheduler, "a")
    clock.now = 110.0
    found = [(w["address"], w["lost"], w["seconds"]) for w in plugin.collected()["workers"]]
    assert found == [("a", True, 4.0), ("a", False, 8.0), ("b", False, 10.0)]


def test_the_last_report_of_a_function_counts(scheduler, plugin):
    receive = scheduler.stream_handlers[remote.OPERATION]
    for number, calls in (("f", 1), ("f", 3), ("g", 2), ("f", 2)):
        receive(worker="a", name="p", number=number, calls=calls, text=f"{number} {calls}")
    receive(worker="a", name="another", number="f", calls=9, text="of a Profiler that has stopped")
    receive(worker="c", name="p", number="f", calls=9, text="of a worker that nobody knows")
    reports = {w["address"]: w["reports"] for w in plugin.collected()["workers"]}
    assert reports == {"a": {"f": (3, "f 3"), "g": (2, "g 2")}, "b": {}}


class Worker:
    """As much of a worker as reports need: a loop that calls at once, and a stream."""

    def __init__(self):
        self.sent = []
        self.loop = SimpleNamespace(add_callback=lambda function, *args: function(*args))
        self.batched_send = self.sent.append


class Counting:
    """A compiled function whose snapshots have a number alone."""

    number, calls = "f", 0

    def snapshot(self, calls, timeout):
        return ("f", self.calls, "text") if self.calls > calls else None


def test_reports_are_sent_once_and_not_too_often(monkeypatch):
    now = SimpleNamespace(value=10.0)
    monkeypatch.setattr(remote.time, "monotonic", lambda: now.value)
    reports, function = remote.Reports(Worker(), "p", interval=2.0), Counting()
    reports.functions[function] = 0
    for now.value, function.calls in ((10.0, 1), (11.0, 2), (11.9, 3), (12.0, 3), (14.0, 3)):
        reports.after_call()
    sent = [(message["op"], message["name"], message["calls"]) for message in reports.worker.sent]
    assert sent == [(remote.OPERATION, "p", 1), (remote.OPERATION, "p", 3)]
    assert reports.collect_new() == []
    function.calls = 4
    assert reports.everything() == [("f", 4, "text")] == reports.everything()
    assert [message["calls"] for message in reports.worker.sent] == [1, 3, 4]


def test_slow_reports_are_sent_less_often(monkeypatch):
    now = SimpleNamespace(value=0.0)
    monkeypatch.setattr(remote.time, "monotonic", lambda: now.value)

    class Slow(Counting):
        def snapshot(self, calls, timeout):
            now.value += 1.0
            return super().snapshot(calls, timeout)

    reports, function = remote.Reports(Worker(), "p", interval=0.1), Slow()
    reports.functions[function] = 0
    for k in range(1, 30):
        function.calls = k
        reports.after_call()
        now.value += 1.0
    assert [message["calls"] for message in reports.worker.sent] == [1, 21]
