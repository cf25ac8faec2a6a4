"""Memory: how much is live while each Apply runs, by the order of Applys and what they share.

Counts what Applys allocate during a call, by its size in the last call; neither inputs nor views.
Memory is live until its last reader has run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from opwise.graph import aliasing

#: an Apply, and a Variable, of the graph
Node = Any
Variable = Any
#: bytes by variable
Sizes = Mapping[Variable, int]

#: how many partial orders are tried in search of the one with the lowest peak
MOST_STATES = 20_000


@dataclass(frozen=True)
class Live:
    """A piece of memory that is live at the peak."""

    #: position of the Apply that allocated it; -1 for scratch of the Apply at the peak
    position: int
    #: its size
    bytes: int


@dataclass(frozen=True)
class Peaks:
    """Figures of a MemoryProfile for one of several memories; bytes."""

    #: see MemoryProfile, as for all below
    peak: int
    peak_toposort: int
    copying: int
    copying_toposort: int
    total: int


@dataclass(frozen=True)
class MemoryProfile:
    """Live memory in a call of one function; bytes unless a field says otherwise."""

    #: live while each Apply runs, with its scratch
    timeline: tuple[int, ...]
    #: the most that is live at once, without scratch
    peak: int
    #: position of the Apply at the peak; -1 without Applys
    at: int
    #: what is live at the peak, the largest first
    live: tuple[Live, ...]
    #: ``peak`` if Applys ran in the order of the graph
    peak_toposort: int
    #: ``peak`` if no Apply overwrote an input
    copying: int
    #: ``peak`` in the order of the graph if no Apply overwrote an input
    copying_toposort: int
    #: all that Applys allocate: ``peak`` if nothing were freed
    total: int
    #: what the VM keeps between calls
    kept: int
    #: the lowest peak of any order; None unless asked for
    least: int | None = None
    #: time to find it, in seconds
    least_seconds: float = 0.0
    #: whether all orders were tried
    least_is_sure: bool = True
    #: ``total`` if no Apply overwrote an input
    total_copying: int = 0
    #: ``total`` if there were no views either
    total_apart: int = 0
    #: the figures of the host's memory, if a device was used
    host: Peaks | None = None
    #: the figures of the device's memory, if a device was used
    device: Peaks | None = None


def parted(
    found: MemoryProfile,
    fgraph: Any,
    order: Sequence[Node],
    sizes: Sizes,
    on_device: Callable[[Variable], bool],
) -> MemoryProfile:
    """Return a MemoryProfile with the figures of host and device.

    on_device: from a variable to whether it lies on the device. Others as for ``measure``.
    """
    nothing = [0] * len(order)

    def peaks(there: bool) -> Peaks:
        own = {var: size if on_device(var) is there else 0 for var, size in sizes.items()}
        part = measure(fgraph, order, own, nothing, 0)
        return Peaks(**{name: getattr(part, name) for name in Peaks.__dataclass_fields__})

    return replace(found, host=peaks(False), device=peaks(True))


def measure(
    fgraph: Any,
    order: Sequence[Node],
    sizes: Sizes,
    scratch: Sequence[int],
    kept: int,
    least: bool = False,
) -> MemoryProfile:
    """Return the MemoryProfile of a graph.

    order: its Applys as they run. sizes: bytes by variable. scratch: bytes by position. kept: bytes
    kept between calls. least: whether to search for the order with the lowest peak.
    """
    overwriting, copying = _Sharing(fgraph, order, True), _Sharing(fgraph, order, False)
    lives = overwriting.lives(order, sizes)
    peak = max(lives, default=0)
    at = lives.index(peak) if lives else -1
    sorted_order = fgraph.toposort()
    found, seconds, sure = None, 0.0, True
    if least:
        started = perf_counter()
        found, sure = _least_peak(fgraph, overwriting, sizes, peak)
        seconds = perf_counter() - started
    return MemoryProfile(
        timeline=tuple(a + b for a, b in zip(lives, scratch, strict=True)),
        peak=peak,
        at=at,
        live=_live_at(overwriting, order, sizes, at, scratch),
        peak_toposort=max(overwriting.lives(sorted_order, sizes), default=0),
        copying=max(copying.lives(order, sizes), default=0),
        copying_toposort=max(copying.lives(sorted_order, sizes), default=0),
        total=overwriting.total(order, sizes),
        kept=kept,
        least=found,
        least_seconds=seconds,
        least_is_sure=sure,
        total_copying=copying.total(order, sizes),
        total_apart=sum(sizes[var] for node in order for var in node.outputs),
    )


def codes(node: Node) -> tuple[str, ...]:
    """Return for each output 'c' (created), 'i' (overwrites an input) or 'v' (a view)."""
    op = node.op
    return tuple(
        "i" if op.destroy_map.get(k) else "v" if op.view_map.get(k) else "c"
        for k in range(len(node.outputs))
    )


class _Sharing:
    """Which variables share a piece of memory.

    overwrite: whether outputs may overwrite inputs; otherwise only views share.
    """

    def __init__(self, fgraph: Any, order: Sequence[Node], overwrite: bool) -> None:
        #: the variable that stands for the piece of memory of each variable
        self.root: dict[Variable, Variable] = {}
        root = self.root
        #: pieces of memory that no Apply allocates
        self.given = set(fgraph.inputs)
        for node in order:
            for var in node.inputs:
                if var not in root:
                    root[var] = var
                    self.given.add(var)
            for k, var in enumerate(node.outputs):
                shared = (
                    aliasing.viewed_inputs(node, k) if overwrite else node.op.view_map.get(k, ())
                )
                root[var] = root[node.inputs[shared[0]]] if shared else var
        #: pieces of memory that outlive the call
        self.ends = {root.get(var, var) for var in fgraph.outputs}

    def created(self, node: Node) -> list[Variable]:
        """Return the outputs of an Apply that have memory of their own."""
        return [var for var in node.outputs if self.root[var] is var]

    def total(self, order: Iterable[Node], sizes: Sizes) -> int:
        """Return the bytes of all pieces of memory."""
        return sum(sizes[var] for node in order for var in self.created(node))

    def last_readers(self, order: Iterable[Node]) -> dict[int, list[Variable]]:
        """Return {position: pieces of memory that the Apply there is the last to read}."""
        last = {}
        for k, node in enumerate(order):
            for var in (*node.inputs, *node.outputs):
                last[self.root[var]] = k
        dying: dict[int, list[Variable]] = {}
        for piece, k in last.items():
            if piece not in self.given and piece not in self.ends:
                dying.setdefault(k, []).append(piece)
        return dying

    def lives(self, order: Iterable[Node], sizes: Sizes) -> list[int]:
        """Return the bytes that are live while each Apply runs."""
        dying = self.last_readers(order)
        live, found = 0, []
        for k, node in enumerate(order):
            live += sum(sizes[var] for var in self.created(node))
            found.append(live)
            live -= sum(sizes[piece] for piece in dying.get(k, ()))
        return found


def _live_at(
    sharing: _Sharing, order: Sequence[Node], sizes: Sizes, at: int, scratch: Sequence[int]
) -> tuple[Live, ...]:
    """Return what is live while the Apply at a position runs, the largest first."""
    if at < 0:
        return ()
    dying = sharing.last_readers(order)
    alive: dict[Variable, int] = {}
    for k, node in enumerate(order[: at + 1]):
        alive.update((var, k) for var in sharing.created(node))
        if k < at:
            for piece in dying.get(k, ()):
                alive.pop(piece, None)
    found = [Live(k, sizes[var]) for var, k in alive.items() if sizes[var]]
    if scratch[at]:
        found.append(Live(-1, scratch[at]))
    return tuple(sorted(found, key=lambda one: -one.bytes))


def _least_peak(fgraph: Any, sharing: _Sharing, sizes: Sizes, bound: int) -> tuple[int, bool]:
    """Return (the lowest peak of any valid order, whether all orders were tried).

    bound: a peak that is possible. The same Applys in any order leave the same memory live, so each
    set of Applys that can have run is tried once; a set is the bits of a number.
    """
    search = _Search(fgraph, sharing, sizes)
    everything = (1 << len(search.needs)) - 1
    best = {0: (0, 0)}  # Applys that ran -> (lowest peak on the way there, live bytes)
    tried = 0
    while best:
        reached: dict[int, tuple[int, int]] = {}
        for done, (peak, live) in best.items():
            for k, then in search.steps(done):
                tried += 1
                high = max(peak, live + search.makes[k])
                if high <= bound and (then not in reached or high < reached[then][0]):
                    reached[then] = (high, live + search.makes[k] - search.freed(k, then))
        if tried > MOST_STATES:
            return bound, False
        if everything in reached:
            return reached[everything][0], True
        best = reached
    return bound, True


class _Search:
    """The graph as numbers: Applys are bits of sets."""

    def __init__(self, fgraph: Any, sharing: _Sharing, sizes: Sizes) -> None:
        nodes = fgraph.toposort()
        number = {node: k for k, node in enumerate(nodes)}
        before = fgraph.orderings()
        #: for each Apply the set of those that must run before it
        self.needs: list[int] = []
        for node in nodes:
            earlier = {v.owner for v in node.inputs if v.owner is not None and v.owner in number}
            earlier.update(before.get(node, ()))
            self.needs.append(sum(1 << number[n] for n in earlier))
        # for each piece of memory the set of Applys that make or read it
        touches: dict[Variable, int] = {}
        for k, node in enumerate(nodes):
            for var in (*node.inputs, *node.outputs):
                piece = sharing.root[var]
                if piece not in sharing.given:
                    touches[piece] = touches.get(piece, 0) | 1 << k
        #: bytes that each Apply allocates
        self.makes = [sum(sizes[var] for var in sharing.created(node)) for node in nodes]
        #: for each Apply (set of Applys that touch it, bytes) of the temporary memory it touches
        self._temporary: list[list[tuple[int, int]]] = [
            [(touched, sizes[piece]) for piece, touched in touches.items()
             if touched >> k & 1 and piece not in sharing.ends]
            for k in range(len(nodes))
        ]  # fmt: skip

    def steps(self, done: int) -> Iterable[tuple[int, int]]:
        """Yield (number, set with it) of each Apply that can run after a set of Applys."""
        for k, needed in enumerate(self.needs):
            if not done >> k & 1 and not needed & ~done:
                yield k, done | 1 << k

    def freed(self, k: int, then: int) -> int:
        """Return the bytes of which Apply k is the last to run in a set of Applys."""
        return sum(size for touched, size in self._temporary[k] if not touched & ~then)


def readable(count: float) -> str:
    """Return a number of bytes as text, such as ``1.5 MiB``."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"
