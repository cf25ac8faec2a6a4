"""Whether calls and compilations leave memory behind: a million calls, a thousand compilations.

    python -m benchmark.leaks [--calls N] [--compilations N] [--only NAME ...]

Each case runs for a while, and everything is counted; then it runs as often as is asked for, and
everything is counted again. Objects, blocks of Python's allocator, bytes from malloc and references
are exact; resident memory is what the system says. Exit status 1 if something grew.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat

import numpy as np

import opwise
import opwise.tensor as T
from opwise.config import change_flags
from opwise.errors import UnusedInputError
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Variable
from opwise.linkers import opwise_c
from opwise.loops import scan
from opwise.modes.monitormode import MonitorMode
from opwise.modes.nanguardmode import NanGuardMode
from opwise.modes.profilemode import ProfileMode
from opwise.profiling.stats import ProfileStats


class _Mallinfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks "
                     "keepcost").split()
    ]  # fmt: skip


def _malloc_bytes() -> int:
    """The bytes that malloc has given out; 0 where the C library does not tell."""
    mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo is None:
        return 0
    mallinfo.restype = _Mallinfo
    info = mallinfo()
    return info.uordblks + info.hblkhd


def _mapped() -> tuple[int, int]:
    """Resident bytes, and how many shared libraries are loaded; 0 where there is no /proc."""
    try:
        with open("/proc/self/statm") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        with open("/proc/self/maps") as file:
            libraries = {words[-1] for line in file if (words := line.split())[-1].endswith(".so")}
    except OSError:
        return 0, 0
    return resident, len(libraries)


@dataclass(frozen=True)
class Counts:
    """What there is at one moment: numbers, or bytes."""

    objects: int
    graphs: int
    blocks: int
    malloc: int
    kept: int
    libraries: int
    resident: int
    references: int

    @classmethod
    def now(cls, watched=()):
        """Collect garbage and count; references: those to the objects in ``watched``, together."""
        for _ in range(3):  # what one collection frees may hold what the next one frees
            gc.collect()
        everything = gc.get_objects()
        objects = len(everything)
        graphs = sum(isinstance(o, Apply | FunctionGraph | Variable) for o in everything)
        del everything
        resident, libraries = _mapped()
        references = sum(map(sys.getrefcount, watched))
        return cls(objects, graphs, sys.getallocatedblocks(), _malloc_bytes(),
                   opwise_c.kept_blocks(), libraries, resident, references)  # fmt: skip


@dataclass(frozen=True)
class Growth:
    """What was there more after ``times`` runs of a case."""

    case: str
    times: int
    seconds: float
    counts: dict[str, int]
    #: how many objects, and blocks, more there may be: full caches hold now larger Ops, now smaller
    slack: int = 0

    #: what may come, once, that is no leak: caches that grow by doubling, pages of the system
    ALLOWED = {"objects": 25, "graphs": 0, "blocks": 500, "malloc": 1 << 17, "kept": 1 << 22,
               "libraries": 0, "resident": 6 << 20, "references": 0}  # fmt: skip

    @property
    def grew(self) -> list[str]:
        """The names of what grew by more than may come once."""
        slack = {"objects": self.slack, "blocks": 2 * self.slack}
        return [
            name
            for name, most in self.ALLOWED.items()
            if self.counts[name] > most + slack.get(name, 0)
        ]

    def __str__(self):
        c = self.counts
        figures = (
            f"{self.case:34}{self.times:>9}{1e6 * self.seconds / self.times:>10.1f}"
            f"{c['objects']:>9}{c['graphs']:>8}{c['blocks']:>8}{c['references']:>6}"
            f"{c['malloc'] / 1024:>9.1f}{c['kept'] / 1024:>8.1f}{c['libraries']:>6}"
            f"{c['resident'] / 1024:>9.0f}"
        )
        return f"{figures}  GREW: {', '.join(self.grew)}" if self.grew else figures


TITLE = (
    f"{'':34}{'times':>9}{'us each':>10}{'objects':>9}{'graphs':>8}{'blocks':>8}{'refs':>6}"
    f"{'malloc':>9}{'kept':>8}{'.so':>6}{'resident':>9}\n"
    f"{'':34}{'':>9}{'':>10}{'':>9}{'':>8}{'':>8}{'':>6}{'KiB':>9}{'KiB':>8}{'':>6}{'KiB':>9}"
)


#: the forms of so many Ops that work in place are remembered: growth up to here, where Ops are new
#: in each compilation, is no leak
REMEMBERED = 256


def growth(name: str, step: Callable, times: int, watched=(), warm=100, slack=0) -> Growth:
    """Run a step ``warm`` times, and then ``times`` times, and return what there is more."""
    for _ in repeat(None, max(warm, times // 50)):
        step()
    before = Counts.now(watched)
    start = time.perf_counter()
    for _ in repeat(None, times):
        step()
    seconds = time.perf_counter() - start
    after = Counts.now(watched)
    more = {key: getattr(after, key) - value for key, value in vars(before).items()}
    return Growth(name, times, seconds, more, slack)


# --- calls ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A step that calls functions: ``make`` returns (step, objects of which references count).

    cost: by how much a step takes longer than a call of a small function; so many fewer are run.
    """

    make: Callable
    cost: int


CALLS: dict[str, Case] = {}


def case(name: str, cost: int = 1):
    """Register a maker of a step under a name."""

    def register(make):
        CALLS[name] = Case(make, cost)
        return make

    return register


X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
ALWAYS = (None, True, X, np.dtype("float64"), np.dtype("int64"), ValueError, TypeError, np.ndarray)


def _graph():
    x = T.dmatrix("x")
    return x, T.tanh(x * 2 + 1).sum(axis=0), x.T[1:] / 3


def _plain(mode, **kwargs):
    x, *outputs = _graph()
    f = opwise.function([x], outputs, mode=mode, **kwargs)
    return (lambda: f(X)), (f, *ALWAYS)


def _named(mode):
    return lambda: _plain(mode())


for _name, _mode, _cost in (
    ("FAST_RUN", lambda: "FAST_RUN", 1),
    ("FAST_COMPILE", lambda: "FAST_COMPILE", 1),
    ("linker c|py_nogc", lambda: opwise.Mode("c|py_nogc", "fast_run"), 1),
    ("linker vm", lambda: opwise.Mode("vm", "fast_run"), 10),
    ("linker py", lambda: opwise.Mode("py", "fast_run"), 10),
    ("ProfileMode", lambda: ProfileMode(), 1),
    ("MonitorMode", lambda: MonitorMode(lambda i, node, fn: fn()), 20),
    ("NanGuardMode", lambda: NanGuardMode(True, True, False), 20),
    ("DEBUG_MODE", lambda: "DEBUG_MODE", 200),
):
    case(_name, _cost)(_named(_mode))


@case("function(profile=True)")
def _profiled():
    return _plain("FAST_RUN", profile=ProfileStats(atexit_print=False))


@case("updates")
def _updates():
    x = T.dmatrix("x")
    total = opwise.shared(np.zeros((3, 4)))
    last = opwise.shared(np.zeros(4))
    f = opwise.function([x], x.sum(), updates={total: total + x, last: total[0] * 2})
    return (lambda: f(X)), (f, total, last, *ALWAYS)


@case("views")
def _views():
    x = T.dmatrix("x")
    outputs = [x.T, x[::-1], x.flatten(), x.reshape((2, 6)), x.diagonal(), x]
    f = opwise.function([opwise.In(x, borrow=True)],
                        [opwise.Out(y, borrow=True) for y in outputs])  # fmt: skip
    kept = []

    def step():
        kept[:] = f(X), kept[:1]  # results outlive the call, and the next one, by turns

    return step, (f, *ALWAYS)


@case("numbers, keywords and defaults", 5)
def _arguments():
    a, b, n = T.dscalar("a"), T.dvector("b"), T.lscalar("n")
    f = opwise.function([a, opwise.In(n, value=2), opwise.In(b, value=np.ones(3), mutable=True)],
                        [a + n, b * a])  # fmt: skip
    given = np.ones(3)

    def step():
        f(1.5)
        f(np.float32(2), n=3)
        f(a=2, b=given)
        f(3, 4, [1.0, 2.0])

    return step, (f, given, *ALWAYS)


@case("calls that fail", 300)
def _failing():
    x, y = T.dmatrix("x"), T.dmatrix("y")
    i = T.lscalar("i")
    state = opwise.shared(np.zeros((3, 4)))
    fs = [
        opwise.function([x, y, i], [T.exp(x) + y, x[i]], mode=mode,
                        updates=[(state, T.inc_subtensor(state[i], 1.0))])
        for mode in ("FAST_RUN", opwise.Mode("py", "fast_run"))
    ]  # fmt: skip
    wrong = np.zeros((2, 2))

    def step():
        for f in fs:
            for args in ((X, wrong, 0), (X, X, 9), (X, "no matrix", 0), (X,), (X, X, 1)):
                with suppress(ValueError, IndexError, TypeError):
                    f(*args)

    return step, (*fs, state, wrong, *ALWAYS)


@case("indices, joins, products", 3)
def _kinds():
    x, v, i = T.dmatrix("x"), T.lvector("v"), T.lscalar("i")
    outputs = [
        x[v], T.set_subtensor(x[i], 1.0), T.inc_subtensor(x[v], x[0]), T.join(0, x, x),
        T.dot(x, x.T), T.nnet.softmax(x), x.argmax(axis=1), x.max(axis=0), T.arange(i),
        T.zeros((i, 2)), T.diag(T.dot(x, x.T)), x.sort(axis=1), T.cumsum(x, axis=0),
    ]  # fmt: skip
    f = opwise.function([x, v, i], outputs)
    rows = np.array([0, 2, 1])
    return (lambda: f(X, rows, 2)), (f, rows, *ALWAYS)


@case("copies and pickles of functions", 2000)
def _copies():
    import pickle

    x, *outputs = _graph()
    f = opwise.function([x], outputs, mode="FAST_COMPILE")

    def step():
        f.copy()(X)
        pickle.loads(pickle.dumps(f))(X)

    return step, (f, *ALWAYS)


@case("large arrays, threads", 200)
def _threads():
    x = T.dmatrix("x")
    f = opwise.function([x], [T.exp(x) / 3, T.sqr(x).sum(), T.dot(x, x.T)])
    large = np.linspace(-1, 1, 200_000).reshape(200, 1000)

    def step():
        f(large)
        f(large[:150])

    return step, (f, large, *ALWAYS)


def calls(times: int, names=None) -> Iterator[Growth]:
    """Run each case of calls, ``times`` divided by its cost."""
    for name in CALLS if names is None else names:
        step, watched = CALLS[name].make()
        yield growth(name, step, max(1, times // CALLS[name].cost), watched)
        del step, watched


# --- compilations ---------------------------------------------------------------------------------

#: PROFILE_MODE is not among them: it keeps what it recorded, to print it when the program ends
MODES = ("FAST_RUN", "FAST_COMPILE", opwise.Mode("py", "fast_run"), "DEBUG_MODE")
_CHAIN = (T.exp, T.sin, T.tanh, T.sqr, abs, T.cos, T.sgn, T.sqrt)


def chain(number: int):
    """Return (input, a chain of functions): another one for each number."""
    x = T.dvector("x")
    return x, chained(x, number)


def chained(y, number: int):
    for digit in np.base_repr(number, len(_CHAIN)).zfill(4):
        y = _CHAIN[int(digit)](y) + 0.5
    return y


def compile_and_call(number: int, mode="FAST_RUN"):
    """Compile a function with updates and a gradient; call it; drop it."""
    x, y = chain(number)
    state = opwise.shared(np.full(3, 0.0))  # numpy's zeros leave a reference to the dtype behind
    gradient = T.grad(y.sum(), x)
    profile = mode == "FAST_RUN" and ProfileStats(atexit_print=False)
    f = opwise.function([x], [y, gradient.sum()], updates=[(state, state - gradient)], mode=mode,
                        profile=profile)  # fmt: skip
    f(np.full(3, 0.25))


def _other_graphs() -> Callable:
    numbers = iter(range(1 << 62))
    # in an order in which long chains and short ones come by turns; 4096 is all of them
    return lambda: compile_and_call(next(numbers) * 1229 % 4096)


def _other_loops() -> Callable:
    numbers = iter(range(1 << 62))
    return lambda: compile_loop(next(numbers) * 1229 % 4096)


def compile_loop(number: int):
    """Compile a loop with its gradient and the derivative of that; call the function; drop it."""
    x, w = T.dvector("x"), opwise.shared(np.full(3, 0.5))
    rows, _ = scan(lambda v, h: T.tanh(h * w + chained(v, number)), x, T.zeros(3))
    gradient = T.grad(rows[-1].sum(), w)
    curvature = T.Rop(gradient, w, w).sum()
    f = opwise.function([x], [rows, curvature], updates=[(w, w - gradient)])
    f(np.full(3, 0.25))


def _all_modes() -> Callable:
    numbers = iter(range(1 << 62))
    return lambda: compile_and_call(1234, MODES[next(numbers) % len(MODES)])


def _refused() -> None:
    x, y = chain(7)
    with suppress(TypeError, ValueError, UnusedInputError):
        opwise.function([x, T.dvector("unused")], y)
    with suppress(TypeError):
        opwise.function([x], y, updates=[(x, y)])


COMPILATIONS: dict[str, Callable[[], Callable]] = {
    "the same graph": lambda: lambda: compile_and_call(1234),
    "the same graph, all modes": _all_modes,
    "each graph another": _other_graphs,
    "loops, each another": _other_loops,
    "graphs that are refused": lambda: _refused,
}


def compilations(times: int, names=None, warm: int = 2 * REMEMBERED + 50) -> Iterator[Growth]:
    """Run each case of compilations so many times, and ``warm`` times before."""
    for name in COMPILATIONS if names is None else names:
        slack = times // 4 if "each" in name else 0
        yield growth(f"compile: {name}", COMPILATIONS[name](), times, ALWAYS, warm, slack)


def main(argv: list[str] | None = None) -> int:
    """Print what grew; return 1 if something did."""
    parser = argparse.ArgumentParser(prog="python -m benchmark.leaks", description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--compilations", type=int, default=1000)
    parser.add_argument("--only", nargs="+", metavar="NAME",
                        choices=[*CALLS, *COMPILATIONS], help="some of the cases")  # fmt: skip
    args = parser.parse_args(argv)
    wanted = args.only or [*CALLS, *COMPILATIONS]
    print(TITLE)
    failed = False
    with change_flags(cache_graphs=False):  # each compilation rewrites
        for found in (
            calls(args.calls, [n for n in wanted if n in CALLS]),
            compilations(args.compilations, [n for n in wanted if n in COMPILATIONS]),
        ):
            for grown in found:
                print(grown, flush=True)
                failed |= bool(grown.grew)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
