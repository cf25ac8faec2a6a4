"""How arrays are walked through, and what is launched: pure functions of shapes and strides."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import cases, made
from simulated import DEVICE, Simulated

import opwise.tensor as T
from opwise import Constant
from opwise.gpu.kernels import layouts as layouts_of
from opwise.gpu.kernels.kernel import (
    Array,
    DeviceLimits,
    Kernel,
    Launch,
    Layout,
    arguments,
    error_position,
    on_host,
)
from opwise.gpu.kernels.views import view_of
from opwise.gpu.lowering import lower
from opwise.tensor import Sum, TensorType

pytestmark = pytest.mark.null


# --- walks --------------------------------------------------------------------------------------


def places(walk, k):
    """Return the positions of an array's elements in the order of a walk."""
    return [
        sum(i * column[k] for i, column in zip(at, walk.steps, strict=True))
        for at in itertools.product(*map(range, walk.shape))
    ]


@given(
    st.lists(st.integers(1, 4), max_size=4).flatmap(
        lambda shape: st.tuples(
            st.just(shape),
            st.lists(
                st.lists(st.integers(-6, 6), min_size=len(shape), max_size=len(shape)),
                min_size=1, max_size=3,
            ),
        )
    ),
    st.booleans(),
)  # fmt: skip
@settings(deadline=None)
def test_a_walk_visits_the_same_elements_together(arrays, reorder):
    shape, steps = arrays
    plain = layouts_of.Walk(tuple(shape), tuple(zip(*steps, strict=True)), len(steps))
    walked = layouts_of.walk(shape, steps, reorder)
    before = list(zip(*(places(plain, k) for k in range(len(steps))), strict=True))
    after = list(zip(*(places(walked, k) for k in range(len(steps))), strict=True))
    assert (sorted(before) if reorder else before) == (sorted(after) if reorder else after)
    assert 1 not in walked.shape and walked.size == plain.size
    padded_shape, padded_steps = walked.padded(5)
    padded = layouts_of.Walk(padded_shape, padded_steps, len(steps))
    assert len(padded.shape) == 5 and places(padded, 0) == places(walked, 0)


def test_neighbours_are_joined():
    def walk(shape, *arrays, **options):
        steps = [[s // 4 for s in np.empty(shape, "f", order).strides] for order in arrays]
        return layouts_of.walk(shape, steps, **options)

    assert walk((3, 4, 5), "C", "C").shape == (60,)
    assert walk((3, 4, 5), "F", "F").shape == (60,)
    assert walk((3, 4, 5), "C", "F").shape == (5, 4, 3) or walk((3, 4, 5), "C", "F").size == 60
    assert len(walk((3, 4, 5), "F", reorder=False).shape) == 3
    assert walk((3, 1, 5), "C", "C").shape == (15,)
    assert walk((1, 1), "C").shape == ()
    assert layouts_of.walk((3, 0, 2), [[0, 2, 1]]).size == 0


def test_sizes_that_fit_32_bits():
    def fits(*shape):
        return layouts_of.walk(shape, [layouts_of.steps_of(Layout.contiguous(shape, 4), shape)])

    assert fits(2**30).fits_32() and not fits(2**31).fits_32()
    assert not fits(2**16, 2**15).fits_32()
    # few elements that lie far apart
    far = layouts_of.walk((2, 3), [[2**31, 1]])
    assert far.size == 6 and not far.fits_32()


def test_strides_that_are_no_multiple_of_an_element():
    with pytest.raises(ValueError, match="stride of 6 bytes is no multiple of its elements' 4"):
        layouts_of.steps_of(Layout((3,), (6,), 4), (3,))


def test_layouts_of_arrays():
    x = np.zeros((3, 4), "f")
    assert Layout.of(x)[:3] == ((3, 4), (16, 4), 4)
    assert Layout.contiguous((3, 4), 4)[:3] == Layout.of(x)[:3]
    room = np.zeros(64, np.uint8)
    start = -room.ctypes.data % 16
    for offset, alignment in [(0, 16), (8, 8), (4, 4), (2, 2), (12, 4), (1, 1)]:
        part = room[start + offset : start + offset + 8].view(np.uint8)
        assert Layout.of(part).alignment == alignment


@given(st.integers(1, 2**31), st.integers(0, 2**31 - 1), st.integers(0, 40))
def test_a_division_is_a_product_and_a_shift(n, i, k):
    times, shift = layouts_of.divisor(n)
    assert times < 2**32
    for of in {i, min(k * n, 2**31 - 1), max(0, min(k * n - 1, 2**31 - 1)), 2**31 - 1}:
        assert (times * of // 2**32 + of) >> shift == of // n
        assert times * of // 2**32 + of < 2**32


# --- views --------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=3),
    st.lists(st.tuples(*[st.one_of(st.none(), st.integers(-6, 6))] * 3), max_size=3),
)
@settings(deadline=None)
def test_a_view_is_numpys(shape, parts):
    whole = np.arange(int(np.prod(shape)), dtype="f").reshape(shape)
    parts = [(a, b, c or None) for a, b, c in parts[: len(shape)]]
    index = tuple(slice(*part) for part in parts)
    idx_list = tuple(slice(*(None if p is None else "a type" for p in part)) for part in parts)
    integers = [p for part in parts for p in part if p is not None]
    part, offset = view_of(Layout.of(whole), idx_list, integers)
    expected = whole[index]
    assert part.shape == expected.shape
    if expected.size:
        assert part.strides == expected.strides
        assert offset == expected.ctypes.data - whole.ctypes.data


# --- launches -----------------------------------------------------------------------------------


def test_numbers_are_as_wide_as_parameters():
    parameters = (("float *", "x"), ("ow_i32", "n"), ("ow_i64", "m"), ("ow_u32", "k"))
    kernel = Kernel("f", "", (), parameters)
    launch = Launch(kernel, 1, (1, 1), (Array("in"),), (-1, 2**40, 3))
    given_ = arguments(launch, lambda array: 16)
    assert [a.dtype.name for a in given_] == ["uint64", "int32", "int64", "uint32"]
    assert list(map(int, given_)) == [16, -1, 2**40, 3]
    with pytest.raises(OverflowError):
        arguments(launch._replace(numbers=(2**31, 0, 0)), lambda array: 16)


#: shapes of inputs that cannot have 4 elements along each dimension, by case and position
_SHAPES = {
    **{(name, 0): (4, 6) for name in ("uniform", "uniform halves")},
    **{(name, 1): (16,) for name in ("counts", "draws", "draws without replacement")},
}


@pytest.mark.parametrize("name", cases())
def test_a_plan_is_a_function_of_layouts(name):
    """Equal layouts give equal plans, which are values: a linker may keep them."""
    node = cases()[name]
    first, second = made(node), made(node)
    given_ = []
    for i, var in enumerate(node.inputs):
        if isinstance(var, Constant):
            given_.append(on_host(var.data) if i in first.host else Layout.of(var.data))
        elif i in first.host:
            number = (1, 9, 2)[i] if isinstance(node.op, T.ARange) else 4
            given_.append((number, number) if var.type.ndim else number)
        else:
            shape = _SHAPES.get((name, i)) or [1 if b else 4 for b in var.type.broadcastable]
            given_.append(Layout.contiguous(shape, var.type.numpy_dtype.itemsize))
    outputs = [
        Layout.contiguous(shape, var.type.numpy_dtype.itemsize)
        for shape, var in zip(first.shapes(given_), node.outputs, strict=True)
    ]
    plan = first.plan(given_, outputs, DEVICE)
    assert plan == second.plan(given_, outputs, DEVICE) and hash(plan) == hash(plan)
    assert plan.launches and {launch.kernel for launch in plan.launches} <= set(first.kernels)
    assert set(first.expected) <= set(first.kernels)
    assert first.expected and not any(kernel.wide for kernel in first.expected)
    for launch in plan.launches:
        arguments(launch, lambda array: 16)


def test_what_is_expected():
    """Few kernels are needed at once; those for strides, and for two passes, where they are."""
    found = {
        name: sorted(k.name.removeprefix("ow_").rsplit("_", 1)[0] for k in made(node).expected)
        for name, node in cases().items()
        if name
        in (
            "product",
            "transposed",
            "layer",
            "sum",
            "sum of rows",
            "sum of columns",
            "softmax",
            "take",
        )
    }
    assert found == {
        "product": ["flat"],
        "transposed": ["strided", "tiled"],
        "layer": ["rows", "strided"],
        "sum": ["rows_strided", "rows_vectors"],
        "sum of rows": ["rows_strided", "rows_vectors"],
        "sum of columns": ["columns", "columns"],
        "softmax": ["softmax", "softmax_vectors"],
        "take": ["take", "take"],
    }


def test_large_arrays_get_wide_kernels():
    node = (TensorType("float32", (False,))() * TensorType("float32", (False,))()).owner
    product = made(node)
    for n, wide in [(2**20, False), (2**31, True)]:
        layout = Layout.contiguous((n,), 4)
        (launch,) = product.plan([layout, layout], [layout], DeviceLimits()).launches
        assert launch.kernel.wide == wide
        arguments(launch, lambda array: 16)
    node = Sum((0,))(TensorType("float32", (False, False))()).owner
    for shape in [(2**20, 2**14), (2**14, 2**20), (3, 2**31)]:
        plan = made(node).plan(
            [Layout.contiguous(shape, 4)], [Layout.contiguous(shape[1:], 4)], DeviceLimits()
        )
        assert plan.launches[0].kernel.wide
        for launch in plan.launches:
            arguments(launch, lambda array: 16)


def test_an_error_flag_holds_a_position():
    assert error_position(0xFFFFFFFF - 7) == 7


def test_negative_lengths_are_refused():
    alloc = lower(T.alloc(T.fscalar(), T.lscalar()).owner)
    with pytest.raises(ValueError, match="negative dimensions are not allowed"):
        alloc.shapes([Layout((), (), 4), -1])


# --- wide kernels, and the simulated device ------------------------------------------------


@pytest.mark.c
def test_wide_kernels_compute_the_same(simulate, monkeypatch):
    chosen = cases()
    names = ["layer", "product", "cube", "sum", "sum of rows", "sum of columns", "argmax",
             "variance", "channels", "take", "add rows"]  # fmt: skip
    kernels = simulate({name: chosen[name] for name in names}, wide=True)
    random = np.random.default_rng(1)
    for name in names:
        values = []
        for var in chosen[name].inputs:
            shape = [
                1 if b else n for b, n in zip(var.type.broadcastable, (24, 24, 3, 4), strict=False)
            ]
            if var.type.dtype.startswith("int"):
                values.append(random.integers(0, 24, shape).astype(var.type.dtype))
            else:
                values.append(random.normal(size=shape).astype(var.type.dtype))
        for change in (np.ascontiguousarray, np.asfortranarray):
            changed = [change(v) for v in values]
            narrow, _ = kernels.run(name, changed)
            with monkeypatch.context() as patch:
                patch.setattr(layouts_of, "LIMIT_32", 0)
                assert any("ow_i64 n" in k.text or "ow_i64 kept" in k.text
                           for k in _launched(kernels, name, changed))  # fmt: skip
                wide, _ = kernels.run(name, changed)
            for a, b in zip(narrow, wide, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=name)


def _launched(kernels, name, values):
    inputs = list(map(Layout.of, values))
    implementation_ = kernels.made[name]
    sizes = [v.type.numpy_dtype.itemsize for v in kernels.nodes[name].outputs]
    outputs = [
        Layout.contiguous(s, n) for s, n in zip(implementation_.shapes(inputs), sizes, strict=True)
    ]
    found = [launch.kernel for launch in implementation_.plan(inputs, outputs, DEVICE).launches]
    assert all(k.wide for k in found if k.name.startswith(("ow_flat", "ow_rows_vectors")))
    return found


@pytest.mark.c
def test_a_missing_barrier_is_seen():
    """On the simulated device, a kernel without barriers gives wrong results."""
    node = Sum((0,))(TensorType("float64", (False, False))()).owner
    columns = next(k for k in made(node).kernels if "columns" in k.name and not k.wide)
    hasty = Kernel(
        f"{columns.name}_hasty",
        columns.text.replace(columns.name, f"{columns.name}_hasty").replace("__syncthreads();", ""),
        columns.needs,
        columns.parameters,
    )
    x = np.random.default_rng(0).normal(size=(64, 40))
    layout = [Layout.of(x)], [Layout.contiguous((40,), 8)]
    plan = made(node).plan(*layout, DEVICE)
    assert [launch.kernel for launch in plan.launches] == [columns]
    simulated = Simulated([columns, hasty])
    found = {}
    for kernel in (columns, hasty):
        for order in (0, 1):
            z = np.empty(40)
            launch = plan.launches[0]._replace(kernel=kernel)
            simulated.run(plan._replace(launches=(launch,)), [x], [z], order)
            found[kernel, order] = z
    np.testing.assert_array_equal(found[columns, 0], found[columns, 1])
    np.testing.assert_allclose(found[columns, 0], x.sum(axis=0))
    assert (found[hasty, 0] != found[columns, 0]).any() or (
        found[hasty, 1] != found[columns, 1]
    ).any()


@pytest.mark.c
def test_threads_that_wait_for_ever_are_seen():
    text = (
        'extern "C" __global__ void stuck(int *x) { if (threadIdx.x) __syncthreads(); x[0] = 1; }\n'
    )
    kernel = Kernel("stuck", text, (), (("int *", "x"),))
    plan = lower(T.eye(T.lscalar()).owner).plan([1, 1, 0], [Layout((1, 1), (8, 8), 8)],
                                                         DEVICE)  # fmt: skip
    launch = Launch(kernel, 1, (64, 1), (Array("out"),), ())
    with pytest.raises(AssertionError, match="wait for each other"):
        Simulated([kernel]).run(plan._replace(launches=(launch,)), [], [np.zeros(1, "int32")])
