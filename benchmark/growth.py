"""How compile time grows with the program: chains, fans, ladders and nests of each kind of Apply.

    python -m benchmark.growth [--only NAME ...] [--sizes N ...] [--modes MODE ...]
                               [--limit SECONDS] [--calls] [--warm] [--json FILE]

Each program is built, differentiated and compiled at growing sizes, until a size would take longer
than the limit. Its cost is fitted by a + b * n ** p; p is printed for each part. Parts with p above
LINEARITHMIC grow faster than n log n and are listed at the end; n is the number of Applys where
that grows faster than the program. Time: seconds, the least of ``--repeats``; with ``--calls`` the
number of calls of functions, which does not depend on the hardware or on what else runs there.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import pstats
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (30, 100, 300, 1000, 3000)
MODES = ("FAST_RUN", "FAST_COMPILE", "PROFILE_MODE", "DEBUG_MODE")
#: n log n looks like this power of n between 300 and 3000, with some room for noise
LINEARITHMIC = 1.3
#: parts of a case, in the order of printing; first how many Applys are compiled
PARTS = ("applys", "build", "gradient", "rewriting", "linking", "function", "warm")


@dataclass
class Program:
    """What a family gives: the arguments of function(), and what is differentiated."""

    inputs: list[Any]
    outputs: list[Any]
    updates: list[Any] = field(default_factory=list)
    cost: Any = None
    wrt: list[Any] = field(default_factory=list)
    #: the Applys of the gradient are at least n ** power
    power: float = 1.0


FAMILIES: dict[str, Callable[[int], Program]] = {}


def family(build: Callable[[int], Program]) -> Callable[[int], Program]:
    FAMILIES[build.__name__] = build
    return build


def _of(inputs: list[Any], out: Any, wrt: Iterable[Any] = (), **more: Any) -> Program:
    """Return a program that computes ``out``; its cost is the sum of all elements."""
    outputs = out if isinstance(out, list) else [out]
    wrt = list(wrt)
    return Program(inputs, outputs, cost=sum(o.sum() for o in outputs) if wrt else None, wrt=wrt,
                   **more)  # fmt: skip


def _chain(step: Callable[[Any, int], Any], n: int, start: str = "dvector", grad: bool = True):
    import opwise.tensor as T

    x = getattr(T, start)("x")
    y = x
    for k in range(n):
        y = step(y, k)
    return _of([x], y, [x] if grad else ())


def _in_chain(name: str, step: Callable[..., Any], start: str = "dvector", grad: bool = True):
    """Register the family of the chains of a step, a function of (opwise.tensor, y, k)."""

    def build(n: int) -> Program:
        import opwise.tensor as T

        return _chain(lambda y, k: step(T, y, k), n, start, grad)

    build.__name__ = name
    family(build)


_in_chain("chain_tanh", lambda T, y, k: T.tanh(y))
_in_chain("chain_mul_constant", lambda T, y, k: y * 1.5 if k % 2 else y + 0.5)
_in_chain("chain_div", lambda T, y, k: 1.0 / (y + k))
_in_chain("chain_switch", lambda T, y, k: T.switch(y > k, y, y * 0.5))
_in_chain("chain_pow", lambda T, y, k: (y**2 + 1.0) ** 0.5)
_in_chain("chain_cast", lambda T, y, k: T.cast(T.cast(y, "float32"), "float64") * 2.0)
_in_chain("chain_compare", lambda T, y, k: T.cast(T.eq(y, k) | T.lt(y, 1), "float64"), grad=False)
_in_chain("chain_maximum", lambda T, y, k: T.maximum(y, y * 0.5) - k)
_in_chain("ladder", lambda T, y, k: T.tanh(y) * y)
_in_chain("diamond", lambda T, y, k: T.exp(y * 0.1) + T.sin(y) * T.cos(y))
_in_chain("chain_reduction", lambda T, y, k: y - y.sum())
_in_chain("chain_max", lambda T, y, k: y / y.max())
_in_chain("chain_mean_rows", lambda T, y, k: y - y.mean(axis=1, keepdims=True), "dmatrix")
_in_chain("chain_softmax", lambda T, y, k: T.nnet.softmax(y * 2.0), "dmatrix")
_in_chain("chain_dimshuffle", lambda T, y, k: y.T if k % 2 else T.tanh(y), "dmatrix")
_in_chain("chain_reshape", lambda T, y, k: T.tanh(y.reshape((2, -1)).flatten()))
_in_chain("chain_subtensor", lambda T, y, k: T.tanh(y[1:]))
_in_chain("chain_reverse", lambda T, y, k: T.tanh(y)[::-1])
_in_chain("chain_set_subtensor", lambda T, y, k: T.set_subtensor(y[k % 5], 1.0 + k))
_in_chain("chain_inc_subtensor", lambda T, y, k: T.inc_subtensor(y[k % 5 :], 1.0))
_in_chain("chain_set_own", lambda T, y, k: T.set_subtensor(y[k % 5], y.sum()))
_in_chain("chain_advanced", lambda T, y, k: T.tanh(y[np.array([2, 0, 1])]))
_in_chain("chain_advanced_inc", lambda T, y, k: T.inc_subtensor(y[np.array([2, 0])], y[0]))
_in_chain("chain_boolean_mask", lambda T, y, k: T.switch(y > 0, y, 0.0)[:3] * 2.0)
_in_chain("chain_mask_turned", lambda T, y, k: T.switch(y > 0, y, 0.0).T * 2.0, "dmatrix")
_in_chain("chain_join", lambda T, y, k: T.concatenate([y[:2], T.tanh(y[2:])]))
_in_chain("chain_stack", lambda T, y, k: T.stack([y[0] * 2.0, y[1] + y[2], y[2]]))
_in_chain("chain_repeat", lambda T, y, k: T.tile(y, 2)[:3] + k)
_in_chain("chain_cumsum", lambda T, y, k: T.cumsum(y) * 0.5)
_in_chain("chain_sort", lambda T, y, k: T.sort(-y))
_in_chain("chain_dot_self", lambda T, y, k: T.dot(y, y.T) * 0.1, "dmatrix")
_in_chain("chain_alloc", lambda T, y, k: y + T.zeros_like(y) + T.ones((3,)))
_in_chain("elements_in_turn", lambda T, y, k: T.tanh(y * y[k % 3] if k % 2 else y * y.sum()))


def _layers(name: str, step: Callable[..., Any], left: str = "dmatrix") -> None:
    """Register the family of layers with one matrix, a function of (opwise.tensor, y, w, k)."""

    def build(n: int) -> Program:
        import opwise.tensor as T

        x, w = getattr(T, left)("x"), T.dmatrix("w")
        y = x
        for k in range(n):
            y = step(T, y, w, k)
        return _of([x, w], y, [x, w])

    build.__name__ = name
    family(build)


_layers("dots_vector", lambda T, y, w, k: T.dot(y, w), "dvector")
_layers("dots_matrix", lambda T, y, w, k: T.dot(y, w))
_layers("dots_tanh", lambda T, y, w, k: T.tanh(T.dot(y, w)))
_layers("gemm", lambda T, y, w, k: 0.5 * T.dot(y, w) + 0.1 * y)
_layers("gemv", lambda T, y, w, k: 0.5 * T.dot(w, y) + y, "dvector")
_layers("ger", lambda T, y, w, k: T.dot(w + T.outer(y, y), y), "dvector")
_layers("softmax_layers", lambda T, y, w, k: T.nnet.softmax(T.dot(y, w)))
_layers("rnn", lambda T, y, w, k: T.tanh(T.dot(y, w) + y[0] * k))


@family
def element_sum(n: int) -> Program:
    """x[k] and x in turn, as in hand-written likelihoods."""
    import opwise.tensor as T

    x = T.dvector("x")
    y = x * 0
    for k in range(n):
        y = y + (x[k % 3] if k % 2 else T.tanh(x))
    return _of([x], y, [x])


@family
def fan_elements(n: int) -> Program:
    import opwise.tensor as T

    x = T.dvector("x")
    return _of([x], sum(T.exp(x[k]) for k in range(n)), [x])


@family
def fan_rows(n: int) -> Program:
    import opwise.tensor as T

    x, w = T.dmatrix("x"), T.dmatrix("w")
    return _of([x, w], sum(T.tanh(T.dot(x[k], w)) for k in range(n)), [x, w])


@family
def fan_dots(n: int) -> Program:
    import opwise.tensor as T

    x, w = T.dmatrix("x"), T.dmatrix("w")
    return _of([x, w], sum(T.dot(x * float(k + 1), w) for k in range(n)), [x, w])


@family
def fan_sums(n: int) -> Program:
    import opwise.tensor as T

    x = T.dmatrix("x")
    return _of([x], [T.exp(x * float(k + 2)).sum(axis=k % 2) for k in range(n)])


@family
def many_inputs(n: int) -> Program:
    import opwise.tensor as T

    xs = [T.dvector() for _ in range(n)]
    return _of(xs, sum(T.tanh(x) for x in xs), xs)


@family
def many_outputs(n: int) -> Program:
    import opwise.tensor as T

    x = T.dvector("x")
    return _of([x], [T.tanh(x + float(k)) for k in range(n)])


@family
def concatenated(n: int) -> Program:
    import opwise.tensor as T

    xs = [T.dvector() for _ in range(n)]
    return _of(xs, T.tanh(T.concatenate(xs)), xs)


@family
def split(n: int) -> Program:
    import opwise.tensor as T

    x = T.dvector("x")
    parts = T.split(x, [1] * n, n)
    return _of([x], T.concatenate([T.tanh(p) for p in parts]), [x])


@family
def updates(n: int) -> Program:
    import opwise
    import opwise.tensor as T

    x = T.dvector("x")
    shared = [opwise.shared(np.zeros(3)) for _ in range(n)]
    return _of([x], x.sum(), updates=[(s, s * 0.9 + x) for s in shared])


@family
def adam(n: int) -> Program:
    """One step of Adam for n parameters."""
    import opwise
    import opwise.tensor as T

    x = T.dvector("x")
    parameters = [opwise.shared(np.ones(3)) for _ in range(n)]
    cost = sum(T.sqr(p - x).sum() for p in parameters)
    t = opwise.shared(0.0)
    made = [(t, t + 1)]
    rate = 1e-3 * T.sqrt(1 - 0.999 ** (t + 1)) / (1 - 0.9 ** (t + 1))
    for p, g in zip(parameters, opwise.grad(cost, parameters), strict=True):
        m, v = opwise.shared(np.zeros(3)), opwise.shared(np.zeros(3))
        new_m, new_v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * T.sqr(g)
        made += [(m, new_m), (v, new_v), (p, p - rate * new_m / (T.sqrt(new_v) + 1e-8))]
    return _of([x], cost, updates=made)


@family
def dense_layers(n: int) -> Program:
    """Layers with parameters of their own."""
    import opwise
    import opwise.tensor as T

    x = T.dmatrix("x")
    y, parameters = x, []
    for _ in range(n):
        w, b = opwise.shared(np.eye(3)), opwise.shared(np.zeros(3))
        parameters += [w, b]
        y = T.nnet.relu(T.dot(y, w) + b)
    return _of([x], y, parameters)


@family
def batch_norm(n: int) -> Program:
    import opwise.tensor as T

    x = T.dmatrix("x")
    y = x
    for _ in range(n):
        centred = y - y.mean(axis=0)
        y = T.nnet.relu(centred / T.sqrt((centred**2).mean(axis=0) + 1e-5))
    return _of([x], y, [x])


@family
def convolutions(n: int) -> Program:
    import opwise.tensor as T
    from opwise.tensor.conv.functions import conv2d

    x, w = T.dtensor4("x"), T.dtensor4("w")
    y = x
    for _ in range(n):
        y = T.nnet.relu(conv2d(y, w, border_mode="half"))
    return _of([x, w], y, [x, w])


@family
def draws(n: int) -> Program:
    import opwise.tensor as T
    from opwise.compile.mrg_streams import MRG_RandomStreams

    x = T.dvector("x")
    stream = MRG_RandomStreams(5)
    y = x
    for _ in range(n):
        y = T.tanh(y * stream.binomial(size=(3,), p=0.5))
    return _of([x], y, [x])


@family
def nested_choices(n: int) -> Program:
    import opwise.tensor as T
    from opwise.tensor.ifelse import ifelse

    x = T.dvector("x")
    y = x
    for k in range(n):
        y = ifelse(T.gt(x[k % 3], k), y * 2.0, y + 1.0)
    return _of([x], y, [x])


@family
def choices_on_values(n: int) -> Program:
    import opwise.tensor as T
    from opwise.tensor.ifelse import ifelse

    x = T.dvector("x")
    y = x
    for k in range(n):
        y = ifelse(T.gt(y.sum(), k), T.tanh(y), x * (k + 1.0))
    return _of([x], y, [x])


@family
def many_loops(n: int) -> Program:
    """Loops one after the other."""
    import opwise.tensor as T
    from opwise.loops import scan

    x = T.dvector("x")
    y = x
    for _ in range(n // 10 + 1):
        rows, _ = scan(lambda h: T.tanh(h * 0.5), outputs_info=[y], n_steps=4)
        y = rows[-1]
    return _of([x], y, [x])


@family
def loops_side_by_side(n: int) -> Program:
    import opwise.tensor as T
    from opwise.loops import scan

    x = T.dvector("x")
    found = []
    for k in range(n // 10 + 1):
        rows, _ = scan(lambda h, k=k: T.tanh(h * (k + 1.0)), outputs_info=[x], n_steps=4)
        found.append(rows[-1])
    return _of([x], sum(found), [x])


@family
def long_step(n: int) -> Program:
    """A loop with a long step."""
    import opwise.tensor as T
    from opwise.loops import scan

    x = T.dvector("x")

    def step(h):
        for _ in range(n):
            h = T.tanh(h) * x
        return h

    rows, _ = scan(step, outputs_info=[x], n_steps=4)
    return _of([x], rows[-1], [x])


@family
def nested_loops(n: int) -> Program:
    """Loops in the steps of loops, n // 30 + 1 deep.

    A step of the gradient of a loop runs the loops inside it once more, so there are n ** 2.
    """
    import opwise.tensor as T
    from opwise.loops import scan

    def looped(y, depth):
        def step(h):
            return looped(T.tanh(h * 0.5), depth - 1) if depth > 1 else T.tanh(h)

        return scan(step, outputs_info=[y], n_steps=2)[0][-1]

    x = T.dvector("x")
    return _of([x], looped(x, n // 30 + 1), [x], power=2.0)


@family
def graph_ops(n: int) -> Program:
    """Applys of one OpFromGraph."""
    return _graph_ops(n, inline=False)


@family
def inline_graph_ops(n: int) -> Program:
    return _graph_ops(n, inline=True)


def _graph_ops(n: int, inline: bool) -> Program:
    import opwise.tensor as T
    from opwise.compile.fromgraph import OpFromGraph

    a = T.dvector("a")
    op = OpFromGraph([a], [T.tanh(a) * a], inline=inline)
    x = T.dvector("x")
    y = x
    for _ in range(n if inline else n // 10 + 1):
        y = op(y)
    return _of([x], y, [x])


@family
def sparse_products(n: int) -> Program:
    import opwise.tensor as T
    from opwise import sparse

    a, y = sparse.csr_matrix("a"), T.dmatrix("y")
    out = y
    for _ in range(n):
        out = sparse.dot(a, out) + out
    return Program([a, y], [out])


@family
def user_ops(n: int) -> Program:
    """An Op of the program, with a perform, a gradient and an in-place form."""
    import opwise.tensor as T
    from opwise.graph.apply import Apply
    from opwise.graph.op import Op

    class Twice(Op):
        __props__ = ()

        def make_node(self, x):
            return Apply(self, [x], [x.type()])

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0] * 2

        def grad(self, inputs, gradients):
            return [self(gradients[0])]

    x = T.dvector("x")
    y = x
    for _ in range(n):
        y = Twice()(y) + 1.0
    return _of([x], y, [x])


# ---------------------------------------------------------------- measuring


class Meter:
    """What parts of a program cost: seconds, or calls of functions."""

    def __init__(self, calls: bool) -> None:
        self.calls = calls
        self.costs: dict[str, float] = {}

    def run(self, part: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        gc.collect()  # neither the garbage that others left nor what they keep is of this part
        gc.freeze()
        try:
            return self._run(part, function, *args, **kwargs)
        finally:
            gc.unfreeze()

    def _run(self, part: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.calls:
            from opwise.profiling.process import pause_garbage_collection

            profile = cProfile.Profile()
            with pause_garbage_collection():
                result = profile.runcall(function, *args, **kwargs)
            self.costs[part] = float(pstats.Stats(profile).total_calls)
            return result
        start = time.perf_counter()
        result = function(*args, **kwargs)
        self.costs[part] = time.perf_counter() - start
        return result


def measure(
    name: str, n: int, mode: str, grad: bool, calls: bool = False, warm: bool = False
) -> dict[str, float]:
    """Return what each part of building and compiling a program costs.

    warm: compile it twice, the second time with the optimized graph from the cache.
    """
    import opwise
    from opwise import change_flags

    meter = Meter(calls)
    with change_flags(cxx="", cache_graphs=False):
        program = meter.run("build", FAMILIES[name], n)
        outputs = program.outputs
        if grad:
            outputs = meter.run("gradient", opwise.grad, program.cost, program.wrt)
        updated = [new for _, new in program.updates]
        meter.costs["applys"] = _count_applys(program.inputs, [*outputs, *updated])
        arguments = (program.inputs, outputs)
        known = {"updates": program.updates, "mode": mode, "on_unused_input": "ignore"}
        f = meter.run("function", opwise.function, *arguments, **known)
    if not calls:
        meter.costs["rewriting"] = f.compile_report.optimizer
        meter.costs["linking"] = f.compile_report.linker
    if warm:
        with change_flags(cxx="", cache_graphs=True):
            opwise.function(*arguments, **known)
            meter.run("warm", opwise.function, *arguments, **known)
    return meter.costs


def _count_applys(inputs: Sequence[Any], outputs: Sequence[Any]) -> int:
    """Return how many Applys are between inputs and outputs, with those inside Ops."""
    from opwise.graph.traversal import io_toposort

    order = io_toposort(inputs, outputs)
    inside = [node.op._inner_outputs for node in order if getattr(node.op, "_inner_outputs", ())]
    return len(order) + sum(_count_applys([], some) for some in inside)


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """Return p of the best fit of costs by a + b * n ** p with a, b >= 0, by relative errors."""
    x, y = np.asarray(sizes, float), np.asarray(costs, float)
    best, found = np.inf, 0.0
    for p in np.arange(0.0, 4.01, 0.05):
        for columns in ([np.ones_like(x), x**p], [x**p], [np.ones_like(x)]):
            a = np.stack(columns, axis=1) / y[:, None]
            solution = np.linalg.lstsq(a, np.ones_like(y), rcond=None)[0]
            error = float(((a @ solution - 1) ** 2).sum())
            if (solution >= 0).all() and error < best - 1e-12:
                best, found = error, 0.0 if len(columns) == 1 and columns[0][-1] == 1 else p
    return float(found)


def growth(
    name: str, mode: str, grad: bool, sizes: Sequence[int], limit: float, calls: bool,
    repeats: int = 1, warm: bool = False,
) -> dict[str, list[tuple[int, float]]]:  # fmt: skip
    """Return the costs of each part by size; sizes that would take longer than ``limit`` are left.

    limit: seconds for one size.
    """
    found: dict[str, list[tuple[int, float]]] = {}
    measure(name, min(sizes), mode, grad, warm=warm)  # the first one imports
    took: list[float] = []
    done: list[int] = []
    for n in sizes:
        if len(done) > 1:
            power = max(np.log(took[-1] / took[-2]) / np.log(done[-1] / done[-2]), 1.0)
            if took[-1] * (n / done[-1]) ** power > limit:
                break
        start = time.perf_counter()
        runs = [measure(name, n, mode, grad, calls, warm) for _ in range(repeats)]
        took.append((time.perf_counter() - start) / repeats)
        done.append(n)
        for part in runs[0]:
            found.setdefault(part, []).append((n, min(run[part] for run in runs)))
    return found


def report(
    case: str, found: dict[str, list[tuple[int, float]]], calls: bool, power: float = 1.0
) -> list[str]:
    """Print the line of a case; return those of its parts that grow faster than n log n.

    power: the Applys may grow like n ** power; the other parts may grow as the Applys do.
    """
    cells, steep = [], []
    for part in PARTS:
        if part not in found:
            continue
        sizes, costs = zip(*found[part], strict=True)
        counted = calls or part == "applys"
        unit = f"{costs[-1]:.0f}" if counted else f"{costs[-1]:.2f}"
        if len(sizes) < 3:
            cells.append(f"{part} {unit}")
            continue
        p = exponent(sizes, costs)
        cells.append(f"{part} {unit} n^{p:.2f}")
        total = found["function"][-1][1]
        if p > LINEARITHMIC * power and (counted or costs[-1] > 0.05 * total):
            steep.append(f"{case}: {part} grows like n ** {p:.2f}, {unit} at {sizes[-1]}")
        if part == "applys":
            power = max(p, 1.0)
    n = max(size for size, _ in found["build"])
    print(f"{case:45} n={n:5}  " + ", ".join(cells), flush=True)
    return steep


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmark.growth", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--modes", nargs="+", default=["FAST_RUN", "FAST_COMPILE"], choices=MODES)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for one size of a case")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--calls", action="store_true", help="count calls instead of seconds")
    parser.add_argument("--warm", action="store_true", help="also compile from the cached graph")
    parser.add_argument("--no-grad", action="store_true", help="leave the gradients out")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args(argv)
    steep: list[str] = []
    figures: dict[str, Any] = {}
    for name in args.only:
        kinds, program = [False], FAMILIES[name](3)
        if not args.no_grad and program.cost is not None:
            kinds.append(True)
        for mode in args.modes:
            for grad in kinds:
                case = f"{name}{', grad' if grad else ''}, {mode}"
                found = growth(
                    name, mode, grad, args.sizes, args.limit, args.calls, args.repeats, args.warm
                )
                figures[case] = found
                steep += report(case, found, args.calls, program.power if grad else 1.0)
    print("\nFaster than n log n:" if steep else "\nNothing grows faster than n log n.")
    for line in steep:
        print(" ", line)
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1))
    return 1 if steep else 0


if __name__ == "__main__":
    sys.exit(main())
