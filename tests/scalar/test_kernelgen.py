"""The loops that are built with opwise."""

import re

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.scalar import dtypes, kernelgen, loops

pytestmark = pytest.mark.null


def test_reductions_with_the_same_bits_share_a_loop():
    text = kernelgen.generate()["reducers_body.h"]
    of_kind = dict(re.findall(r'\{"(\w+)", sizeof\(\w+\), &\w+, ow_reduce_(\w+),', text))
    shared = {kind: loop for kind, loop in of_kind.items() if kind != loop}
    assert shared == {
        "add_b_i64": "add_u8_u64",
        "mul_b_i64": "mul_u8_u64",
        "add_i64_i64": "add_u64_u64",
        "mul_i64_i64": "mul_u64_u64",
        "maximum_b_b": "maximum_u8_u8",
        "minimum_b_b": "minimum_u8_u8",
    }
    assert len(of_kind) >= len(loops.REDUCTIONS)
    assert sorted(re.findall(r"^static .*void ow_reduce_(\w+)\(", text, re.M)) == sorted(
        of_kind.keys() - shared.keys()
    )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", dtypes.DISCRETE)
def test_loops_of_integers_that_are_shared(dtype, axis):
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 256, (70, 9 * np.dtype(dtype).itemsize), dtype="uint8")
    values = bits > 99 if dtype == "bool" else bits.view(dtype)
    x = T.matrix(dtype=dtype)
    results = [x.sum(axis=axis), x.prod(axis=axis), x.max(axis=axis), x.min(axis=axis)]
    wide = "int64" if dtype[0] != "u" else "uint64"
    expected = [
        values.sum(axis=axis, dtype=wide), values.prod(axis=axis, dtype=wide),
        values.max(axis=axis), values.min(axis=axis),
    ]  # fmt: skip
    if dtype != "bool":
        results += [T.cumsum(x, axis=axis), T.cumprod(x, axis=axis)]
        expected += [values.cumsum(axis=axis, dtype=dtype), values.cumprod(axis=axis, dtype=dtype)]
    found = opwise.function([x], results, mode="FAST_COMPILE")(values)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype and np.array_equal(a, b)
