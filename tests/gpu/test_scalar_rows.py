"""Every row of the scalar table as a kernel: the same text as on the device, against numpy."""

import numpy as np
import pytest
from simulated import DEVICE, Fenced, Simulated
from test_casting import SPECIAL
from test_rows import (
    C_CASES,
    SCALE,
    SCIPY_DIFFERS,
    SCIPY_ULP,
    dtype_of,
    operands,
    reference,
    ulps,
)

from opwise.gpu.kernels import cudatext
from opwise.gpu.kernels.elemwise import ElementwiseKernels
from opwise.gpu.kernels.kernel import Array, Layout, Plan
from opwise.scalar import casting, csource, dtypes
from opwise.scalar.borrowed import BORROWED
from opwise.scalar.op import OPS, cast_op
from opwise.scalar.spec import ROWS

pytestmark = pytest.mark.c

#: where scipy and CUDA differ in kind
DIFFERS = {**SCIPY_DIFFERS, "gammaln": lambda x: (x == -np.inf) | (np.abs(x) < 1e-30)}


def cases():
    halves = []
    for name, row in ROWS.items():
        ins = ("float16",) * (2 if row.nin < 0 else row.nin)
        out = dtype_of(OPS[name], ins)
        if out != "-" and program(name, ins, out).missing() is None:
            halves.append((name, ins))
    return [*(case for case in C_CASES if ROWS[case[0]].cuda != {}), *halves]


def program(name, ins, out):
    return cudatext.ScalarProgram.of(OPS[name], ins, [out])


CASES = cases()
CASTS = [(a, b) for a in dtypes.ALL[:12] for b in dtypes.ALL[:12] if a != b]


class Flat:
    """An elementwise program on vectors."""

    def __init__(self, scalar_op, ins, out):
        self.out = out
        made = cudatext.ScalarProgram.of(scalar_op, ins, [out])
        assert made.missing() is None, made.missing()
        self.loop = ElementwiseKernels(made, 1, [(False,)] * len(ins))
        self.kernel = self.loop.fast[False]

    def run(self, simulated, arrays):
        fenced = Fenced(arrays[0].shape, self.out)
        given = [*map(Layout.of, arrays), Layout.of(fenced.array)]
        names = [*(Array("in", i) for i in range(len(arrays))), Array("out")]
        (launch,) = self.loop.launches(arrays[0].shape, given, names, DEVICE)
        assert launch.kernel is self.kernel
        simulated.run(Plan((launch,)), arrays, [fenced.array])
        fenced.check()
        return fenced.array


def aligned(x, size):
    """Return ``x``, repeated up to a size, where vectors can be loaded."""
    room = np.empty(size * x.itemsize + 16, np.uint8)
    start = -room.ctypes.data % 16
    whole = room[start : start + size * x.itemsize].view(x.dtype)
    whole[...] = np.resize(x, size)
    return whole


@pytest.fixture(scope="module")
def rows():
    """(the flat kernels of all cases, the device)"""
    made = {
        (name, ins): Flat(OPS[name], ins, OPS[name].output_dtypes(list(ins))[0])
        for name, ins in CASES
    }
    made |= {(f"cast to {b}", (a,)): Flat(cast_op(b), (a,), b) for a, b in CASTS}
    return made, Simulated([flat.kernel for flat in made.values()])


@pytest.mark.parametrize(("name", "ins"), [
    pytest.param(*case, id="-".join([case[0], *map(short, case[1])]))
    for short in [lambda d: "f16" if d == "float16" else csource.short(d)] for case in CASES
])  # fmt: skip
def test_row(rows, name, ins):
    """The kernel agrees with numpy: exactly for integers, else within the bounds of the C text.

    Numbers come in vectors and, at the end, alone.
    """
    row, out = ROWS[name], OPS[name].output_dtypes(list(ins))[0]
    if name in ("erfinv", "erfcinv", "erfcx", "i0", "i1"):
        # what is compared is which function is called: scipy's, here
        values = [np.linspace(*row.domain[0], 5000).astype(ins[0])]
    else:
        with np.errstate(over="ignore"):
            values = operands(row, ins)
    if name in DIFFERS:
        keep = ~DIFFERS[name](values[0].astype("float64"))
        values = [x[keep] for x in values]
    arrays = [aligned(x, 8191) for x in values]
    got = rows[0][name, ins].run(rows[1], arrays)
    if out == "float16":
        with np.errstate(all="ignore"):
            wide = [x.astype("float32") if x.dtype == "float16" else x for x in arrays]
            expected = np.asarray(reference(row, wide, ["float32"] * len(ins), "float32"))
            distance = ulps(got, expected, SCALE.get(name, 0.0))
        limit = 1 if name not in SCIPY_ULP else 2
    else:
        expected = np.asarray(reference(row, arrays, list(ins), out))
        limit = SCIPY_ULP.get(name, 4) if out in dtypes.FLOATS else 0
        distance = (
            ulps(got, expected, SCALE.get(name, 0.0)) if limit else got != expected.astype(out)
        )
    wrong = np.flatnonzero(distance > limit)
    worst = [(*(a[i] for a in arrays), got[i], expected[i]) for i in wrong[:5]]
    assert not worst, f"{len(wrong)} results differ by more than {limit} ulp: {worst}"


@pytest.mark.parametrize(("source", "target"), CASTS)
def test_cast(rows, source, target):
    """A cast agrees with numpy, also of what does not fit: see tests/scalar/test_casting.py."""
    random = np.random.default_rng(3)
    if source in dtypes.FLOATS:
        x = np.concatenate([random.uniform(-9, 9, 2500), random.uniform(-300, 300, 2500),
                            [1e-7, 65504.0, 2048.5, 2049.5, 1e-8, 6e-8], SPECIAL])  # fmt: skip
        with np.errstate(over="ignore"):
            x = x.astype(source)
    elif source == "bool":
        x = random.random(6000) > 0.5
    else:
        info = np.iinfo(source)
        x = random.integers(info.min, info.max, 6000, dtype=source, endpoint=True)
    (x,) = [aligned(x, 6007)]
    got = rows[0][f"cast to {target}", (source,)].run(rows[1], [x])
    with np.errstate(all="ignore"):
        expected = casting.cast(x, target)
    np.testing.assert_array_equal(got, expected)


def test_rows_without_a_kernel():
    """Only these have no CUDA: nothing has lost its expression unnoticed."""
    without = set()
    for name, row in ROWS.items():
        ins = ["float64"] * (2 if row.nin < 0 else row.nin)
        out = dtype_of(OPS[name], ins)
        if out in dtypes.FLOATS and program(name, ins, out).missing():
            without.add(name)
    borrowed = {name for name, row in ROWS.items() if BORROWED.keys() & row.libm}
    assert without == {"angle", "gammal", "gammau", "zeta", *borrowed} - {"erfcx"}
