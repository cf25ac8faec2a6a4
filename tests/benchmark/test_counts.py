"""How often the programs of the benchmark suite go over memory: counted, so that none gets worse.

A step is an Apply that computes, not one that only shows memory in another way. A pass is a large
array, at least half the size of the largest, that one step reads or writes. What a loop repeats
counts as often as it runs.
"""

from dataclasses import replace

import numpy as np
import pytest

from benchmark.suite.contenders.symbolic import Opwise
from benchmark.suite.workloads import WORKLOADS
from opwise import Mode, VM_Linker
from opwise.graph import aliasing
from opwise.tensor.reduce import FirstAlong

# name: (steps, passes)
COUNTS = {
    "scalar-add": (1, 3),
    "polynomial-1e4": (1, 2),
    "polynomial-1e7": (1, 2),
    "polynomial-1e7-held": (1, 2),
    "mix-1e3-f32": (1, 2),
    "mix-1e3-f64": (1, 2),
    "mix-1e6-f32": (1, 2),
    "mix-1e6-f64": (1, 2),
    "black-scholes-f32": (1, 5),
    "black-scholes-f64": (1, 5),
    "squares-all": (1, 1),
    "squares-axis0": (1, 1),
    "squares-axis1": (1, 1),
    "sum-all": (1, 1),
    "sum-axis0": (1, 1),
    "sum-axis1": (1, 1),
    "sum-all-transposed": (1, 1),
    "sum-axis0-transposed": (1, 1),
    "sum-axis1-transposed": (1, 1),
    "sum-all-strided": (1, 0),
    "sum-axis0-strided": (1, 0),
    "sum-axis1-strided": (1, 0),
    "mean-all": (4, 3),
    "mean-axis0": (4, 2),
    "mean-axis1": (4, 2),
    "mean-all-transposed": (4, 3),
    "mean-axis0-transposed": (4, 2),
    "mean-axis1-transposed": (4, 2),
    "mean-all-strided": (4, 2),
    "mean-axis0-strided": (4, 1),
    "mean-axis1-strided": (4, 1),
    "max-all": (1, 1),
    "max-axis0": (1, 1),
    "max-axis1": (1, 1),
    "max-all-transposed": (1, 1),
    "max-axis0-transposed": (1, 1),
    "max-axis1-transposed": (1, 1),
    "max-all-strided": (1, 0),
    "max-axis0-strided": (1, 0),
    "max-axis1-strided": (1, 0),
    "softmax-f32": (1, 2),
    "softmax-grad-f32": (2, 5),
    "layer-norm-f32": (3, 3),
    "layer-norm-grad-f32": (4, 6),
    "attention-weights-f32": (1, 3),
    "cosines-f32": (1, 2),
    "log-sum-exp-f64": (1, 1),
    "short-rows-f32": (3, 3),
    "regression-4x10": (7, 2),
    "logistic-f32": (10, 2),
    "logistic-f64": (10, 2),
    "mlp-batch20-f32": (18, 16),
    "mlp-batch512-f32": (18, 16),
    "lenet-batch64-f32": (51, 5),
    "lenet-batch500-f32": (51, 5),
    "conv-3x3-f32": (1, 2),
    "conv-3x3-by-filters-f32": (4, 2),
    "conv-3x3-by-images-f32": (4, 4),
    "conv-1x1-f32": (1, 2),
    "conv-1x1-by-filters-f32": (4, 2),
    "conv-1x1-by-images-f32": (4, 4),
    "conv-depthwise-f32": (1, 2),
    "conv-depthwise-by-filters-f32": (4, 2),
    "conv-depthwise-by-images-f32": (4, 4),
    "conv-first-f32": (1, 1),
    "conv-first-by-filters-f32": (4, 1),
    "conv-first-by-images-f32": (4, 1),
    "conv-11x11-f32": (1, 2),
    "conv-11x11-by-filters-f32": (4, 2),
    "conv-11x11-by-images-f32": (4, 4),
    "max-pool-2x2-f32": (1, 1),
    "max-pool-2x2-grad-f32": (3, 3),
    "max-pool-3x3-f32": (1, 1),
    "max-pool-3x3-grad-f32": (3, 3),
    "batch-norm-relu-grad-f32": (17, 9),
    "recurrence-100": (11, 0),
    "blocks-100": (209, 477),
    "blocks-1000": (209, 477),
    "rnn-500x64-f32": (64, 34),
    "rnn-grad-500x64-f32": (223, 101),
    "lstm-100x16x128-f32": (369, 10),
    "gru-100x16x128-f32": (765, 15),
    "logistic-map-1e4": (31, 1),
    "runge-kutta-1e4": (32, 4),
    "kalman-1e4": (272, 2),
    "nested-1000x20": (662, 3),
    # it keeps no array of all steps, so that each of one step is large
    "gibbs-15-f32": (91, 278),
    "take-rows": (1, 2),
    "take-rows-grad": (4, 9),
    "take-rows-update": (4, 9),
    "embedding-step": (5, 8),
    "adagrad-rows": (7, 17),
    "word2vec-step": (13, 7),
    "cholesky-500": (1, 2),
    "solve-500": (1, 1),
    "svd-200": (3, 5),
    "eigh-200": (2, 3),
    "gaussian-process-300": (34, 48),
    "uniform-f32": (1, 3),
    "uniform-small-f32": (1, 3),
    "normal-f32": (3, 2),
    "normal-small-f32": (3, 2),
    "dropout-f32": (2, 6),
    "legacy-uniform-f64": (1, 1),
    "legacy-uniform-small-f64": (1, 1),
    "legacy-normal-f64": (1, 1),
    "legacy-normal-small-f64": (1, 1),
    "sparse-dot-f32": (1, 2),
    "sparse-dot-grad-f32": (4, 9),
    "sparse-dot-f64": (1, 2),
    "sparse-dot-grad-f64": (4, 9),
    "sparse-dot-column-f32": (1, 2),
    "sparse-dot-column-grad-f32": (4, 4),
    "sparse-dot-column-f64": (1, 2),
    "sparse-dot-column-grad-f64": (4, 4),
    "power-spectrum-f32": (4, 5),
    "filter-grad-f32": (24, 23),
    "power-spectrum-f64": (4, 5),
    "filter-grad-f64": (24, 23),
    "c-op": (1, 2),
    "c-op-20": (20, 40),
    "python-op": (1, 2),
    "python-op-20": (20, 40),
    "cumsum-axis0": (1, 2),
    "cumsum-axis1": (1, 2),
    "sort-rows": (1, 2),
    "sort-1e6": (1, 2),
    "searchsorted": (1, 3),
    "take-axis1": (1, 2),
    "pick-pairs": (1, 1),
    "pick-pairs-grad": (7, 6),
    "masked-sum": (1, 2),
    "kmeans-step": (11, 15),
    "attention-batched": (3, 8),
    "float16-mix": (1, 3),
    "complex-mix": (1, 3),
    "complex-matmul": (1, 3),
    "int-matmul": (1, 3),
    "bool-sum": (2, 2),
    "int-sum": (2, 2),
    "argmax-int-axis0": (1, 1),
    "argmax-int-axis1": (1, 1),
    "kernel-sums-2": (2, 2),
    "kernel-sums-16": (2, 4),
    "kernel-grad": (3, 3),
    "nearest-points": (2, 2),
    "pairs-sum": (1, 2),
    "attention-long": (3, 8),
}


def counts(workload):
    """Return (steps, passes) of one call of a workload, and check that all steps run C."""
    seen = []

    def note(node, thunk, storage_map, compute_map):
        values = [storage_map[v][0] for v in (*node.inputs, *node.outputs)]
        seen.append((node, [np.size(v) if isinstance(v, np.ndarray) else 1 for v in values]))

    contender = Opwise("opwise", Mode(VM_Linker(use_cloop=False, callback=note), "fast_run"))
    contender.load(workload)
    step = contender.build()
    step()
    largest = max(size for _, sizes in seen for size in sizes)
    steps = passes = 0
    for node, sizes in seen:
        if all(aliasing.parent(out) is not None for out in node.outputs) and not (
            aliasing.destroyed_inputs(node)
        ):
            continue
        steps += 1
        read = () if isinstance(node.op, FirstAlong) else dict.fromkeys(node.inputs)
        variables = [*read, *node.outputs]
        size_of = dict(zip((*node.inputs, *node.outputs), sizes, strict=True))
        passes += sum(2 * size_of[v] >= largest for v in variables)
    return steps, passes


@pytest.mark.c
@pytest.mark.parametrize("name", WORKLOADS)
def test_no_program_goes_over_memory_more_often(name, flags):
    flags(floatX="float64")  # the contender sets it, the end of the test sets it back
    workload = WORKLOADS[name]
    sizes = {
        name: min(size, 30 + 3 * place) for place, (name, size) in enumerate(workload.sizes.items())
    }
    assert counts(replace(workload, sizes=sizes)) == COUNTS[name]


def test_every_workload_is_counted():
    assert COUNTS.keys() == WORKLOADS.keys()
