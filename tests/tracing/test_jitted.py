"""Signatures: what makes a function compile again, and what a call gives back."""

import dataclasses
import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest

import opwise
from opwise.errors import TracingError

pytestmark = pytest.mark.null


def jit(function, **options):
    return opwise.jit(function, mode="FAST_COMPILE", **options)


def ones(*shape):
    return np.ones(shape)


def test_one_compilation_for_all_lengths():
    f = jit(lambda x, y: (x[:, None] - y[None]).sum(-1) + len(x.shape))
    for m, n in ((2, 3), (5, 4), (7, 7)):
        assert np.array_equal(f(ones(m, 2), ones(n, 2)), np.full((m, n), 2.0))
    assert len(f.signatures) == 1


def test_dtypes_ranks_and_lengths_of_1_make_signatures():
    f = jit(lambda x, y: x + y)
    f(ones(2, 3), ones(2, 3))
    f(ones(2, 3), ones(4, 3)[:2])
    assert len(f.signatures) == 1
    assert f(ones(2, 3), ones(1, 3)).shape == (2, 3)
    assert f(ones(2, 3), ones(3)).shape == (2, 3)
    assert f(ones(2, 3).astype("float32"), ones(2, 3)).dtype == "float64"
    assert f(1, ones(3)).dtype == "float64"
    assert f(np.float32(1), np.float32(2)) == np.float32(3)
    assert isinstance(f(np.float32(1), np.float32(2)), np.float32)
    assert f(1, 2) == 3 and type(f(1, 2)) is int
    assert len(f.signatures) == 7


def test_a_demanded_length_is_a_condition():
    f = jit(lambda x: max([x[k] for k in range(x.shape[0])]))
    assert f(ones(3)) == 1
    assert f(ones(4)) == 1
    assert f(ones(3) * 2) == 2
    assert len(f.signatures) == 2
    assert "x.shape[0] == 3" in str(f.signatures)
    assert "max([x[k]" in str(f.signatures)


def test_conditions_are_as_wide_as_what_was_asked():
    f = jit(lambda x: x * 2 if x.shape[0] > 3 else -x)
    assert f(ones(2))[0] == -1 and f(ones(3))[0] == -1
    assert f(ones(4))[0] == 2 and f(ones(9))[0] == 2
    assert len(f.signatures) == 2


def test_numbers_are_values():
    f = jit(lambda x, n, c: x[:n] * c)
    assert np.array_equal(f(np.arange(5.0), 3, 2.5), [0, 2.5, 5])
    assert np.array_equal(f(np.arange(5.0), 4, 1.5), [0, 1.5, 3, 4.5])
    assert len(f.signatures) == 1
    assert np.array_equal(f(np.arange(5.0), 1, 1.5), [0])
    f = jit(lambda n: (n // 2, n % 3, n / 2, n**2, -n, abs(n), n << 2, n >> 1, n & 6, ~n, n > 3))
    g = f.function
    for n in (7, -7, 0, 12345):
        assert f(n) == g(n)
        assert [type(a) for a in f(n)] == [type(a) for a in g(n)]
    f = jit(lambda a: (a // 0.75, a % 0.75, a / 2, a**2, -a, abs(a), a + 1, a > 3, 1 - a))
    for a in (7.5, -7.25, 0.0):
        assert f(a) == f.function(a)


def test_static_numbers_are_constants():
    f = jit(lambda x, n: sum(x[k] for k in range(n)), static="n")
    assert f(ones(5), 3) == 3 and f(ones(5), 4) == 4
    assert len(f.signatures) == 2
    with pytest.raises(TypeError, match="static= names m"):
        jit(lambda x: x, static="m")
    with pytest.raises(TypeError, match="cannot be static"):
        jit(lambda x: x, static="x")(ones(2))


def test_other_constants_are_compared():
    f = jit(lambda x, how="sum", flag=True, none=None: getattr(x, how)() * (2 if flag else 1))
    assert f(ones(3)) == 6
    assert f(ones(3), "prod") == 2
    assert f(ones(3), flag=False) == 3
    assert f(x=ones(3), how="max") == 2


Pair = namedtuple("Pair", "first second")


@dataclasses.dataclass
class Layer:
    w: np.ndarray
    b: np.ndarray
    name: str = "layer"


def test_trees_of_arrays():
    def f(params, layers, pair):
        out = params["x"] @ layers[0].w + layers[0].b
        return {"out": out, "pair": Pair(pair.second, pair.first + 1), "n": (params["n"] + 1, [])}

    f = jit(f)
    layer = Layer(ones(3, 2), ones(2))
    for rows in (4, 5):
        result = f({"x": ones(rows, 3), "n": 3}, [layer], Pair(1.5, ones(2)))
        assert result["out"].shape == (rows, 2) and result["n"] == (4, [])
        assert type(result["pair"]) is Pair and result["pair"].second == 2.5
    assert len(f.signatures) == 1
    result = jit(lambda layer: dataclasses.replace(layer, w=layer.w * 2))(layer)
    assert type(result) is Layer and result.w[0, 0] == 2 and result.name == "layer"


def test_results_are_scalars_where_those_of_numpy_are():
    f = jit(lambda x: (x.sum(), x[0], x.reshape(-1)[0], x.sum(keepdims=True), x * 1, x[0].shape))
    total, first, _, kept, same, shape = f(ones(3))
    assert type(total) is np.float64 and type(first) is np.float64 and shape == ()
    assert kept.shape == (1,) and same.shape == (3,)
    zero_d = jit(lambda x: (x, x[()], x[...], x + 1, x.reshape(1)))(np.array(2.0))
    assert [type(r) for r in zero_d] == [np.ndarray, np.float64, np.ndarray, np.float64, np.ndarray]


def test_an_argument_that_is_returned_is_the_same_array():
    x, y = ones(3), ones(3)

    def f(x, y):
        y += 1
        return x, y, x[:], None, 1.5, "text"

    result = jit(f)(x, y)
    assert result[0] is x and result[1] is y and result[3:] == (None, 1.5, "text")
    assert np.array_equal(y, [2, 2, 2])


def test_a_failing_call_changes_no_argument():
    def f(x, i):
        x += 1
        x[i] = 0

    x = ones(3)
    f = jit(f)
    f(x, np.array([1]))
    assert np.array_equal(x, [2, 0, 2])
    with pytest.raises(IndexError):
        f(x, np.array([7]))
    assert np.array_equal(x, [2, 0, 2])


def test_read_only_arguments():
    def f(x):
        x[0] = 1

    f, x, y = jit(f), ones(3), ones(3)
    f(x)
    y.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        f(y)
    f(x)


def test_arguments_that_share_memory():
    def f(x, y):
        x += y
        return y

    f = jit(f)
    x = ones(4)
    assert np.array_equal(f(x, x), [2, 2, 2, 2])
    assert np.array_equal(f(ones(4), ones(4)), [1, 1, 1, 1])
    with pytest.raises(TracingError, match="shares memory with another argument"):
        f(x[:3], x[1:])
    assert np.array_equal(f(x[:2], x[2:]), [2, 2])


def test_a_length_that_becomes_1_is_traced_again():
    f = jit(lambda x, y: x[1:] + y)
    assert f(ones(4), ones(3)).shape == (3,)
    assert f(ones(2), ones(3)).shape == (3,)
    assert f(ones(4), ones(3)).shape == (3,)
    with pytest.raises(ValueError, match="broadcast"):
        f(ones(4), ones(2))
    assert f(ones(4), ones(3)).shape == (3,)


def test_shape_errors_are_raised_at_the_line():
    def f(x, y):
        z = x + 1
        return z @ y

    with pytest.raises(ValueError, match="mismatch in its core dimension") as caught:
        jit(f)(ones(2, 3), ones(2, 3))
    assert caught.traceback[-1].path.name != "x" and any(
        str(entry.statement).strip() == "return z @ y" for entry in caught.traceback
    )


def test_what_cannot_be_traced_names_the_line():
    def g(x):
        return "%f" % x[0]

    for function, line in ((g, 'return "%f" % x[0]'),):
        with pytest.raises(TracingError) as caught:
            opwise.jit(eval("lambda x: g(x)", {"g": function}))(ones(3))
        assert line in str(caught.value) and "test_jitted.py" in str(caught.value)


def test_other_arrays_are_refused():
    f = jit(lambda x: x + 1)
    with pytest.raises(TypeError, match="plain arrays, not MaskedArray"):
        f(np.ma.masked_array(ones(2, 2)))
    with pytest.raises(TypeError, match="not with dtype object"):
        f(np.array([None]))
    with pytest.raises(TypeError, match="not with dtype datetime64"):
        f(np.array(["2020-01-01"], "datetime64[D]"))


def test_byte_orders_and_strides():
    f = jit(lambda x: (x * 2, x.reshape(-1)))
    x = np.arange(6.0).reshape(2, 3)
    for each in (x, x.T, x[:, ::-1], np.asfortranarray(x), x.astype(">f8")):
        twice, flat = f(each)
        assert np.array_equal(twice, each * 2) and np.array_equal(flat, each.reshape(-1))
        assert twice.dtype.isnative


class Holder:
    table = None


def test_what_the_function_holds_is_read_in_each_call():
    table, scale, holder = np.arange(4.0), 2.0, Holder()
    holder.table = np.ones(4)

    helper = lambda x: x * scale  # noqa: E731

    def f(x, i):
        return helper(x) + table[i] + table.sum() * table + holder.table.T

    g = jit(f)
    i = np.array([3])
    assert np.array_equal(g(ones(4), i), f(ones(4), i))
    table[3] = 30
    holder.table[:] = 5
    assert np.array_equal(g(ones(4), i), f(ones(4), i))
    assert len(g.signatures) == 1
    scale = 3.0
    assert np.array_equal(g(ones(4), i), f(ones(4), i))
    table = np.zeros(4)
    assert np.array_equal(g(ones(4), i), f(ones(4), i))
    holder.table = np.full(4, 7.0)
    assert np.array_equal(g(ones(4), i), f(ones(4), i))
    assert len(g.signatures) == 4
    helper = lambda x: -x  # noqa: E731
    assert np.array_equal(g(ones(4), i), f(ones(4), i))


def test_functions_that_call_others():
    inner = jit(lambda x: x.sum() * 2)
    outer = jit(lambda x: inner(x) + 1)
    assert outer(ones(3)) == 7
    assert len(inner.signatures) == 0


def test_methods():
    class Model:
        def __init__(self):
            self.scale = 2.0

        @opwise.jit
        def apply(self, x):
            return x * self.scale

    assert np.array_equal(Model().apply(ones(2)), [2, 2])


def test_the_names_of_opwise():
    assert callable(opwise.jit)
    with pytest.raises(TypeError, match="takes a function"):
        opwise.jit(3)
    assert opwise.jit(static="n")(lambda x, n: x * n)(ones(2), 3)[0] == 3


def test_a_function_that_cannot_be_traced_runs_in_numpy():
    def f(x, flag):
        if flag:
            return "%.1f" % x[0]
        return x * 2

    g = jit(f, fallback=True, static="flag")
    assert g(ones(3), True) == "1.0" and g(ones(3), flag=True) == "1.0"
    assert np.array_equal(g(ones(3), False), [2, 2, 2])
    assert len(g.signatures) == 2
    assert "in numpy: " in str(g.signatures[0]) and "in numpy: " not in str(g.signatures[1])


def test_defaults_and_wrong_numbers_of_arguments():
    f = jit(lambda x, y=2.0, *, z=1.0: x * y + z)
    assert f(ones(2), 3.0)[0] == 4 and f(ones(2))[0] == 3 and f(ones(2), z=5.0)[0] == 7
    g = jit(lambda x, y=2.0: x * y)
    assert g(ones(2), 3.0)[0] == 3 and g(ones(2))[0] == 2 and g(y=1.0, x=ones(2))[0] == 1
    with pytest.raises(TypeError, match="too many positional arguments"):
        g(ones(2), 3.0, 4)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        g()
    h = jit(lambda *xs, **named: sum(xs) + named.get("c", 0))
    assert h(1.0, 2.0) == 3 and h(1.0) == 1 and h(1.0, 2.0, c=4.0) == 7
    assert jit(lambda: np.arange(3) * 2)().tolist() == [0, 2, 4]


def test_results_that_are_no_arrays():
    f = jit(lambda x: (np.inf, -0.0, np.nan, "text", x.dtype, 2, True, None, 1e300, {"a": [x]}))
    got = f(ones(1))
    assert got[0] == np.inf and str(got[1]) == "-0.0" and got[2] != got[2]
    assert got[3:9] == ("text", np.dtype(float), 2, True, None, 1e300)
    with pytest.raises(TracingError, match="A text that the function returns"):
        jit(lambda x: f"{x.sum()}")(ones(2))


def test_conditions_on_numbers_that_are_not_finite():
    f = jit(lambda x, c: 1 if c < np.inf else 0, static=())
    assert f(ones(2), 3.0) == 1 and f(ones(2), np.inf) == 0
    g = jit(lambda x, c: [x[0]] * (2 if bool(c == c) else 3))
    assert len(g(ones(2), np.nan)) == 3 and len(g(ones(2), 1.0)) == 2


def test_the_layer_is_loaded_when_it_is_used():
    program = (
        "import sys, opwise; assert 'opwise.tracing' not in sys.modules; opwise.jit; "
        "assert 'opwise.tracing' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_ways_to_pass_arguments():
    def f(x, scale=2.0, *more, shift=1.0, **others):
        return x * scale + sum(more) + shift + sum(others.values())

    def calls(g, x):
        return [
            g(x), g(x, 3.0), g(x, scale=3.0), g(scale=1.5, x=x), g(x, 3.0, 4.0, 5.0),
            g(x, shift=7.0), g(x, a=1.0, b=2.0), g(x, 1.0, 2.0, shift=3.0, b=4.0), g(x=x),
        ]  # fmt: skip

    compiled = opwise.jit(f)
    for n in (3, 4, 3):
        for a, b in zip(calls(f, np.ones(n)), calls(compiled, np.ones(n)), strict=True):
            assert np.array_equal(a, b)
    count = len(compiled.signatures)
    calls(compiled, np.ones(3))
    assert len(compiled.signatures) == count
    with pytest.raises(TypeError):
        compiled(scale=2.0)
    with pytest.raises(TypeError):
        compiled(np.ones(2), x=np.ones(2))


def test_equal_slices_and_dtypes_are_the_same_argument():
    compiled = opwise.jit(lambda x, part, dtype: x[part].astype(dtype))
    for _ in range(3):
        assert compiled(np.ones(4), slice(1, 3), np.dtype("f4")).shape == (2,)
        assert compiled(np.ones(4), slice(1, 2), np.dtype("f4")).shape == (1,)
    assert len(compiled.signatures) == 2


def test_bincount_takes_any_least_length():
    """It is Ops alone, and each length is the same signature."""
    count = opwise.jit(lambda to, w, n: np.bincount(to, w, minlength=n), profile=True)
    to, w = np.array([0, 2, 2]), np.array([0.5, 2.0, 4.0])
    for n in (3, 5, 1, 0):
        assert np.array_equal(count(to, w, n), np.bincount(to, w, minlength=n))
    assert len(count.signatures) == 1
    assert all(record["c"] for record in count.profile.records())


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, bool])
def test_bincount_of_other_dtypes(dtype):
    count = opwise.jit(lambda to: np.bincount(to))
    for to in (np.array([1, 0, 1], dtype), np.zeros(0, dtype)):
        assert np.array_equal(count(to), np.bincount(to))
        assert count(to).dtype == np.intp


def test_bincount_raises_the_errors_of_numpy():
    to, w = np.array([0, 2, 2]), np.ones(3)
    for given in ((to - 1, w, 3), (to, w[:2], 3), (to, w, -1), (to[None], w, 3), (w, w, 3)):
        with pytest.raises((ValueError, TypeError)) as numpys:
            np.bincount(*given)
        with pytest.raises(numpys.type) as error:
            opwise.jit(lambda to, w, n: np.bincount(to, w, minlength=n))(*given)
        assert str(numpys.value) in str(error.value)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, bool])
def test_searchsorted_is_an_op(side, dtype):
    """Positions are numpy's, those of NaN too, and no step is Python's."""
    x = np.sort(np.random.default_rng(0).normal(size=30) * 5).astype(dtype)
    v = np.random.default_rng(1).normal(size=(4, 5)) * 5
    if dtype in (np.float64, np.float32):
        x[-2:], v[0, :3] = np.nan, [np.nan, np.inf, -0.0]
    v = v.astype(dtype)
    find = opwise.jit(lambda x, v: np.searchsorted(x, v, side), profile=True)
    found = find(x, v)
    assert found.dtype == np.intp and np.array_equal(found, np.searchsorted(x, v, side))
    assert all(record["c"] for record in find.profile.records())


def test_split_into_equal_parts_of_any_length():
    @opwise.jit
    def halves(x):
        x = x.copy()
        a, b = np.split(x, 2, axis=1)
        a += b
        b[1:] = 0
        return x, np.split(x, 2, axis=1)[1] * a

    for n in (6, 10, 4):
        x = np.random.default_rng(0).normal(size=(3, n))
        for one, two in zip(halves(x), halves.function(x), strict=True):
            assert np.array_equal(one, two)
    assert len(halves.signatures) == 1
    with pytest.raises(ValueError, match="equal division"):
        halves(np.ones((3, 7)))


@pytest.mark.parametrize(
    "text",
    [
        "irfft2(rfft2(x), s=x.shape)", "fft2(x, s=(4, 12))", "ifftn(x, s=(9,), axes=(0,))",
        "rfftn(x, s=(5, -1), axes=(0, 1))", "irfftn(x, s=(6, 7), axes=(0, 1))",
        "fft(x, n=x.shape[0] + 2)", "irfft(x, n=2 * x.shape[0] - 1)",
    ],
)  # fmt: skip
def test_transforms_of_given_lengths(text):
    function = eval(f"lambda x: {text}", vars(np.fft))
    compiled = opwise.jit(function)
    for shape in ((6, 8), (5, 7)):
        x = np.random.default_rng(0).normal(size=shape)
        assert np.allclose(compiled(x), function(x))
    assert len(compiled.signatures) == 1
    with pytest.raises(ValueError, match="different lengths"):
        opwise.jit(lambda x: np.fft.fft2(x, s=(3,), axes=(0, 1)))(x)


def test_argpartition_by_a_number_of_the_values():
    smallest = opwise.jit(lambda x, k: np.sort(x[np.argpartition(x, k + int(x[0]) - 1)[:k]]))
    x = np.array([0.0, 5.0, 3.0, 9.0, 1.0, 7.0])
    for k in (2, 4):
        assert np.array_equal(smallest(x, k), np.sort(x)[:k])
    assert len(smallest.signatures) == 1
