"""The layout of a graph on a page: rows of Applys, each below what it reads.

Every step but sorting rows takes time linear in Applys and edges; equal graphs get equal layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

#: for each Apply, the Applys above it or below it
_Edges = list[list[int]]
#: the Applys of each row
_Rows = list[list[int]]

#: how often all rows are sorted
SWEEPS = 8


def layered(reads: Sequence[Sequence[int]]) -> tuple[list[float], list[int]]:
    """Return (column, row) of each Apply, as two lists.

    reads: for each Apply the numbers of those that it reads; ignores all but earlier Applys. Rows
    are whole numbers from 0, and an Apply is in a later row than what it reads. Columns in a row
    are at least 1 apart.
    """
    above = [sorted({r for r in mine if 0 <= r < k}) for k, mine in enumerate(reads)]
    below: _Edges = [[] for _ in above]
    for k, mine in enumerate(above):
        for r in mine:
            below[r].append(k)
    layers = _layers(above, below)
    columns = _from_below(layers, below)
    rows = _narrow(layers, columns, 2 * isqrt(len(above)) + 16)
    _sweep(rows, columns, above, below)
    number = [0] * len(above)
    for k, row in enumerate(rows):
        for node in row:
            number[node] = k
    left = min(columns, default=0)
    return [round(x - left, 2) for x in columns], number


def _layers(above: _Edges, below: _Edges) -> _Rows:
    """Return layers of Applys: each as far down as its readers allow, or else by what it reads.

    So an Apply that prepares an operand of a late one is close to it.
    """
    depth = [0] * len(above)
    for k, mine in enumerate(above):
        depth[k] = max((depth[r] + 1 for r in mine), default=0)
    for k in reversed(range(len(above))):
        if below[k]:
            depth[k] = min(depth[r] for r in below[k]) - 1
    layers: _Rows = [[] for _ in range(max(depth, default=-1) + 1)]
    for k, d in enumerate(depth):
        layers[d].append(k)
    return [layer for layer in layers if layer]


def _from_below(layers: _Rows, below: _Edges) -> list[float]:
    """Return initial columns: from the last layer up, each Apply near its readers."""
    columns = [0.0] * len(below)
    for layer in reversed(layers):
        middle = (len(layer) - 1) / 2
        wanted = [
            _mean(columns, below[node]) if below[node] else i - middle
            for i, node in enumerate(layer)
        ]
        _place(layer, wanted, columns)
    return columns


def _narrow(layers: _Rows, columns: list[float], most: int) -> _Rows:
    """Return the layers, those of more than ``most`` Applys divided among several rows."""
    rows = []
    for layer in layers:
        several = -(-len(layer) // most)
        for k in range(several):
            row = layer[k::several]
            rows.append(row)
            if several > 1:
                _place(row, [columns[node] / several for node in row], columns)
    return rows


def _sweep(rows: _Rows, columns: list[float], above: _Edges, below: _Edges) -> None:
    """Move Applys near their neighbours: those above and below in turn, at the end both."""
    for k in range(SWEEPS):
        last = k >= SWEEPS - 2
        for row in rows if k % 2 == 0 else reversed(rows):
            wanted = []
            for node in row:
                near = above[node] + below[node] if last else (below if k % 2 else above)[node]
                wanted.append(_mean(columns, near) if near else columns[node])
            _place(row, wanted, columns)


def _mean(columns: list[float], nodes: list[int]) -> float:
    return sum(columns[n] for n in nodes) / len(nodes)


def _place(row: list[int], wanted: list[float], columns: list[float]) -> None:
    """Sort a row by wanted columns, and set columns as near to them as a distance of 1 allows.

    Minimises the sum of squares: neighbours that want the same column share their distance to it.
    """
    order = sorted(range(len(row)), key=lambda i: (wanted[i], columns[row[i]], row[i]))
    blocks: list[list[float]] = []  # [sum of wanted columns less the place in the row, how many]
    for place, i in enumerate(order):
        blocks.append([wanted[i] - place, 1])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] > blocks[-1][0] * blocks[-2][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    row[:] = [row[i] for i in order]
    place = 0
    for total, count in blocks:
        for _ in range(int(count)):
            columns[row[place]] = total / count + place
            place += 1
