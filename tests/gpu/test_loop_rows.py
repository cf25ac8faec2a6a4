"""The kernel that copies rows: sizes, alignments, rows that take the place of others."""

import numpy as np
import pytest
from simulated import DEVICE, Simulated

from opwise.gpu.kernels.kernel import THREADS, Array, Launch, Plan
from opwise.gpu.kernels.loop_rows import RowsAt, copy_rows, grid_for, table_of

pytestmark = pytest.mark.c


@pytest.fixture(scope="module")
def simulated():
    return Simulated([copy_rows()])


def place(rows, first=0):
    return RowsAt(rows.ctypes.data, rows.strides[0], len(rows), first)


def copied(simulated, copies, t):
    table = np.array(table_of(copies), np.int64)
    grid = grid_for(copies, DEVICE)
    launch = Launch(copy_rows(), grid, (THREADS, 1), (Array("in"),), (len(copies), t))
    simulated.run(Plan((launch,)), [table], [])


@pytest.mark.parametrize("size", [1, 2, 4, 7, 12, 16, 48, 1000, 100_003])
@pytest.mark.parametrize("offset", [0, 1, 4])
def test_rows_of_all_sizes_and_alignments(simulated, size, offset):
    room = np.arange(5 * size + offset).astype(np.uint8)
    rows = room[offset:].reshape(5, size)
    target = np.full((2, size), 77, np.uint8)
    for t in range(4):
        copied(simulated, [(place(rows, 1), place(target[:1]), size)], t)
        np.testing.assert_array_equal(target[0], rows[t + 1])
    assert (target[1] == 77).all()


def test_several_rows_in_one_launch(simulated):
    wide, narrow = np.random.RandomState(1).rand(6, 300), np.arange(6, dtype="int32")[:, None]
    a, b, ring = np.zeros((1, 300)), np.zeros((1, 1), "int32"), np.zeros((2, 300))
    for t in range(6):
        copies = [
            (place(wide[::-1]), place(a), 2400), (place(narrow), place(b), 4),
            (place(wide), place(ring), 2400),
        ]  # fmt: skip
        copied(simulated, copies, t)
        np.testing.assert_array_equal(a[0], wide[5 - t])
        assert b[0] == t
        np.testing.assert_array_equal(ring[t % 2], wide[t])
    np.testing.assert_array_equal(ring, wide[4:])
