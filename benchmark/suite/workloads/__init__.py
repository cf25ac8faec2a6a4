"""All workloads, in the order of the table."""

from __future__ import annotations

from benchmark.suite.workload import Workload
from benchmark.suite.workloads import (
    along,
    chains,
    elementwise,
    images,
    linear,
    lookup,
    loops,
    numbers,
    points,
    random,
    reductions,
    rows,
    sparse,
    training,
    transforms,
    userops,
)

MODULES = (
    elementwise, reductions, rows, training, images, chains, loops, lookup, along, numbers, linear,
    points, random, sparse, transforms, userops,
)  # fmt: skip
WORKLOADS: dict[str, Workload] = {
    workload.name: workload for module in MODULES for workload in module.WORKLOADS
}
