"""Memory: how much lives while each Apply runs, by the order of Applys and what they share.

Counted is what Applys create between the inputs and the end of a call, by its size in the last
call: not what is given, and not what shows memory that is there. It goes after its last reader.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

from opwise.graph import aliasing

#: how many partial orders are looked at in search of the one with the lowest peak
MOST_STATES = 20_000


@dataclass(frozen=True)
class Live:
    """What a piece of memory is that lives at the peak: the Apply that made it (its position), its
    bytes; position -1: scratch of the Apply at the peak itself."""

    position: int
    bytes: int


@dataclass(frozen=True)
class Peaks:
    """Figures of a MemoryProfile for one of several memories."""

    peak: int
    peak_toposort: int
    copying: int
    copying_toposort: int
    total: int


@dataclass(frozen=True)
class MemoryProfile:
    """Bytes that live in a call of one function.

    timeline: while each Apply runs, its scratch included. peak: the most without scratch, at: the
    Apply where that is; live: what lives there, the largest first. peak_toposort: the peak in the
    order of the graph. copying, copying_toposort: both, if nothing were overwritten. total: if
    nothing were let go; total_copying: if nothing were overwritten either; total_apart: if there
    were no views either. kept: what the machine keeps between calls. least: the lowest peak of any
    order, or None where it was not asked for; least_seconds: the time to find it; least_is_sure:
    whether all orders were looked at. host, device: the figures of both memories where a device was
    used.
    """

    timeline: tuple[int, ...]
    peak: int
    at: int
    live: tuple[Live, ...]
    peak_toposort: int
    copying: int
    copying_toposort: int
    total: int
    kept: int
    least: int | None = None
    least_seconds: float = 0.0
    least_is_sure: bool = True
    total_copying: int = 0
    total_apart: int = 0
    host: Peaks | None = None
    device: Peaks | None = None


def parted(found, fgraph, order, sizes, is_there):
    """Return a MemoryProfile that tells apart what lies on the host and what on a device.

    is_there: from a variable to whether it lies on the device. Others as for ``measure``.
    """
    nothing = [0] * len(order)

    def peaks(there):
        own = {var: size if is_there(var) is there else 0 for var, size in sizes.items()}
        part = measure(fgraph, order, own, nothing, 0)
        return Peaks(**{name: getattr(part, name) for name in Peaks.__dataclass_fields__})

    return replace(found, host=peaks(False), device=peaks(True))


def measure(fgraph, order, sizes, scratch, kept, least=False):
    """Return the MemoryProfile of a graph.

    order: its Applys as they run. sizes: bytes by variable. scratch: bytes by position. kept: bytes
    kept between calls. least: whether to look for the order with the lowest peak.
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


def codes(node):
    """Return for each output 'c': created, 'i': it overwrites an input, or 'v': it is a view."""
    op = node.op
    return tuple(
        "i" if op.destroy_map.get(k) else "v" if op.view_map.get(k) else "c"
        for k in range(len(node.outputs))
    )


class _Sharing:
    """Which variables lie in one piece of memory. overwrite: as the maps say; else views alone."""

    def __init__(self, fgraph, order, overwrite):
        self.root = root = {}
        self.given = set(fgraph.inputs)
        self.outputs = list(fgraph.outputs)
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
        self.ends = {root.get(var, var) for var in self.outputs}

    def created(self, node):
        """Return the outputs of an Apply that are pieces of memory of their own."""
        return [var for var in node.outputs if self.root[var] is var]

    def total(self, order, sizes):
        """Return the bytes of all pieces of memory."""
        return sum(sizes[var] for node in order for var in self.created(node))

    def last_readers(self, order):
        """Return {position: pieces of memory that nobody needs after the Apply there}."""
        last = {}
        for k, node in enumerate(order):
            for var in (*node.inputs, *node.outputs):
                last[self.root[var]] = k
        dying: dict = {}
        for piece, k in last.items():
            if piece not in self.given and piece not in self.ends:
                dying.setdefault(k, []).append(piece)
        return dying

    def lives(self, order, sizes):
        """Return the bytes that live while each Apply runs."""
        dying = self.last_readers(order)
        live, found = 0, []
        for k, node in enumerate(order):
            live += sum(sizes[var] for var in self.created(node))
            found.append(live)
            live -= sum(sizes[piece] for piece in dying.get(k, ()))
        return found


def _live_at(sharing, order, sizes, at, scratch):
    """Return what lives while the Apply at a position runs, the largest first."""
    if at < 0:
        return ()
    dying = sharing.last_readers(order)
    alive = {}
    for k, node in enumerate(order[: at + 1]):
        alive.update((var, k) for var in sharing.created(node))
        if k < at:
            for piece in dying.get(k, ()):
                alive.pop(piece, None)
    found = [Live(k, sizes[var]) for var, k in alive.items() if sizes[var]]
    if scratch[at]:
        found.append(Live(-1, scratch[at]))
    return tuple(sorted(found, key=lambda one: -one.bytes))


def _least_peak(fgraph, sharing, sizes, bound):
    """Return (the lowest peak of any valid order, whether all were looked at).

    bound: a peak that is possible. Orders of the same Applys leave the same memory, so each set of
    Applys that can have run is looked at once.
    """
    nodes = fgraph.toposort()
    number = {node: k for k, node in enumerate(nodes)}
    before = fgraph.orderings()
    needs = []
    for node in nodes:
        earlier = {v.owner for v in node.inputs if v.owner is not None and v.owner in number}
        earlier.update(before.get(node, ()))
        needs.append(sum(1 << number[n] for n in earlier))
    touches: dict = {}
    for k, node in enumerate(nodes):
        for var in (*node.inputs, *node.outputs):
            piece = sharing.root[var]
            if piece not in sharing.given:
                touches[piece] = touches.get(piece, 0) | 1 << k
    makes = [sum(sizes[var] for var in sharing.created(node)) for node in nodes]
    mine = [[p for p in touches if touches[p] >> k & 1 and p not in sharing.ends]
            for k in range(len(nodes))]  # fmt: skip
    everything = (1 << len(nodes)) - 1
    best = {0: (0, 0)}  # done -> (lowest peak on the way there, live bytes)
    waves, states = [0], 0
    while waves:
        reached: dict = {}
        for done in waves:
            peak, live = best[done]
            for k in range(len(nodes)):
                if done >> k & 1 or needs[k] & ~done:
                    continue
                states += 1
                now = live + makes[k]
                then = done | 1 << k
                high = max(peak, now)
                if high > bound:
                    continue
                left = now - sum(sizes[p] for p in mine[k] if not touches[p] & ~then)
                if then not in reached or high < reached[then][0]:
                    reached[then] = (high, left)
        if states > MOST_STATES:
            return bound, False
        best = reached
        waves = list(reached)
        if everything in reached:
            return reached[everything][0], True
    return bound, True


def readable(count):
    """Return a number of bytes as people read it."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"
