"""Where the Applys of a graph stand on a page: in rows, what is read above what reads it.

Every step is linear in Applys and edges, but for sorting rows; equal graphs get equal places.
"""

from __future__ import annotations

from math import isqrt

#: how often all rows are put in order anew
SWEEPS = 8


def layered(reads):
    """Return (columns, rows): two lists with a place for each Apply.

    reads: for each Apply the numbers of those that it reads; what is no earlier Apply counts for
    nothing. Rows are whole numbers from 0, and what is read is in an earlier row. Columns of one
    row are at least 1 apart.
    """
    above = [sorted({r for r in mine if 0 <= r < k}) for k, mine in enumerate(reads)]
    below: list[list[int]] = [[] for _ in above]
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


def _layers(above, below):
    """Return lists of Applys: each as far down as its readers allow, the others by what they read.

    So an Apply that only makes ready what a late one needs stands by that.
    """
    depth = [0] * len(above)
    for k, mine in enumerate(above):
        depth[k] = max((depth[r] + 1 for r in mine), default=0)
    for k in reversed(range(len(above))):
        if below[k]:
            depth[k] = min(depth[r] for r in below[k]) - 1
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for k, d in enumerate(depth):
        layers[d].append(k)
    return [layer for layer in layers if layer]


def _from_below(layers, below):
    """Return first columns: from the last layer up, each Apply near its readers."""
    columns = [0.0] * len(below)
    for layer in reversed(layers):
        middle = (len(layer) - 1) / 2
        wanted = [
            _mean(columns, below[node]) if below[node] else i - middle
            for i, node in enumerate(layer)
        ]
        _place(layer, wanted, columns)
    return columns


def _narrow(layers, columns, most):
    """Return the layers with those of more than ``most`` Applys dealt out to several rows."""
    rows = []
    for layer in layers:
        several = -(-len(layer) // most)
        for k in range(several):
            row = layer[k::several]
            rows.append(row)
            if several > 1:
                _place(row, [columns[node] / several for node in row], columns)
    return rows


def _sweep(rows, columns, above, below):
    for k in range(SWEEPS):
        # Down and up in turn brings the order about; at the end both sides pull.
        last = k >= SWEEPS - 2
        for row in rows if k % 2 == 0 else reversed(rows):
            wanted = []
            for node in row:
                near = above[node] + below[node] if last else (below if k % 2 else above)[node]
                wanted.append(_mean(columns, near) if near else columns[node])
            _place(row, wanted, columns)


def _mean(columns, nodes):
    return sum(columns[n] for n in nodes) / len(nodes)


def _place(row, wanted, columns):
    """Put a row in the order of wanted columns, and as near to them as a distance of 1 allows.

    Near is by the sum of squares: neighbours that want the same place share their distance to it.
    """
    order = sorted(range(len(row)), key=lambda i: (wanted[i], columns[row[i]], row[i]))
    blocks = []  # [sum of wanted columns less the place in the row, how many]
    for place, i in enumerate(order):
        blocks.append([wanted[i] - place, 1])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] > blocks[-1][0] * blocks[-2][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    row[:] = [row[i] for i in order]
    place = 0
    for total, count in blocks:
        for _ in range(count):
            columns[row[place]] = total / count + place
            place += 1
