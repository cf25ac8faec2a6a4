"""Elementwise loops: generated C, the built-in loops in the interpreter, and numpy, all alike."""

import subprocess

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, OpWiseCLinker, function
from opwise.errors import CompileError
from opwise.linkers import cbuild, kernels, resources
from opwise.linkers.lowering import C_DTYPES
from opwise.scalar import Composite, csource
from opwise.scalar.op import OPS
from opwise.scalar.program import Instruction, Program
from opwise.scalar.spec import ROWS
from opwise.tensor import Elemwise, TensorType
from opwise.tensor.extra_ops import DiffOp

DTYPES = sorted(C_DTYPES)
RTOL = {"float32": 2e-5, "float64": 1e-10}


def var(dtype, pattern, name=None):
    pattern = (False,) * pattern if isinstance(pattern, int) else pattern
    return TensorType(dtype, pattern)(name)


def numbers(row, k, dtype, shape, seed=0):
    """Return values in the domain of a row's operand."""
    rng = np.random.RandomState(seed + k)
    low, high = row.domain[k if k < len(row.domain) else -1]
    if dtype == "bool":
        return rng.rand(*shape) > 0.5
    value = rng.uniform(low, high, shape)
    if dtype in RTOL:
        return np.asarray(value, dtype)
    value = np.round(value * 5)
    return np.asarray(abs(value) if dtype.startswith("u") else value, dtype)


def close(found, expected, case):
    assert found.dtype == expected.dtype and found.shape == expected.shape, case
    if expected.dtype.kind in "fc":
        rtol = RTOL[expected.real.dtype.name]
        np.testing.assert_allclose(found, expected, rtol, atol=rtol, err_msg=str(case))
    else:
        np.testing.assert_array_equal(found, expected, err_msg=str(case))


# --- every row ----------------------------------------------------------------------------------


def rows_with_c(in_dtypes):
    """Yield (row, operand dtypes, result dtype) of the rows that have C on such operands.

    Without those for bits of mixed integers that have no common integer type: numpy refuses these.
    """
    for name, row in ROWS.items():
        count = row.nin if row.nin >= 0 else 3
        ins = [in_dtypes[i % len(in_dtypes)] for i in range(count)]
        try:
            (out,) = OPS[name].output_dtypes(ins)
        except TypeError:
            continue
        if name in ("or_", "xor", "and_") and out == "float64":
            continue
        if csource.step_c(OPS[name], ["a", "b", "c", "d"][:count], ins, out) is not None:
            yield row, ins, out


MIXED = [("int8", "uint8"), ("int32", "float32"), ("float64", "int64"), ("bool", "float32"),
         ("uint64", "int64"), ("float32", "float64", "int16")]  # fmt: skip


@pytest.mark.parametrize("ins", [(d,) for d in DTYPES] + MIXED, ids="-".join)
def test_rows_in_the_interpreter(run_with, layouts, ins):
    """Every row that has a C expression also has built-in loops, and these agree with numpy."""
    inputs, arrays, outputs, names = [], [], [], []
    for row, in_dtypes, _ in rows_with_c(ins):
        operands = [var(d, 2) for d in in_dtypes]
        inputs += operands
        arrays += [numbers(row, k, d, (3, 700)) for k, d in enumerate(in_dtypes)]
        outputs.append(Elemwise(OPS[row.name])(*operands))
        names.append(row.name)
    assert len(names) > 20
    python, _ = run_with(inputs, outputs, c=False)
    with np.errstate(all="ignore"):
        expected = python(*arrays)
    run, linked = run_with(inputs, outputs, c=True)
    without = [
        str(n) for n, c in zip(linked.program.fgraph.toposort(), linked.in_c, strict=True) if not c
    ]
    assert not without
    for shown in (lambda a: a, lambda a: np.repeat(a, 2, axis=1)[:, ::2], np.asfortranarray):
        for name, found, wanted in zip(names, run(*map(shown, arrays)), expected, strict=True):
            close(found, wanted, name)


def test_casts_in_the_interpreter(run_with):
    pairs = [(a, b) for a in DTYPES for b in DTYPES]
    inputs = [var(a, 1) for a, _ in pairs]
    outputs = [T.cast(x, b) + T.cast(0, b) if b != "bool" else T.cast(x, b) for x, (_, b) in
               zip(inputs, pairs, strict=True)]  # fmt: skip
    row = ROWS["add"]
    arrays = [numbers(row, 0, a, (9,)) for a, _ in pairs]
    arrays = [abs(a) if b.startswith("u") and a.dtype.kind != "b" else a
              for a, (_, b) in zip(arrays, pairs, strict=True)]  # fmt: skip
    expected = run_with(inputs, outputs, c=False)[0](*arrays)
    run, linked = run_with(inputs, outputs, c=True)
    assert all(linked.in_c)
    for pair, found, wanted in zip(pairs, run(*arrays), expected, strict=True):
        close(found, wanted, pair)


# --- programs and layouts -----------------------------------------------------------------------


def composite(*in_dtypes, steps, outs):
    steps = [Instruction(OPS[name], tuple(args), dtype) for name, args, dtype in steps]
    return Elemwise(Composite.from_program(list(in_dtypes), steps, list(outs)))


def _two_results():
    x, y = var("float64", 2), var("float64", 2)
    op = composite(
        "float64", "float64", outs=(3, 2),
        steps=[("exp", (0,), "float64"), ("add", (2, 1), "float64")],
    )  # fmt: skip
    return [x, y], op(x, y)


def _shared_parts():
    x, y = var("float64", 2), var("float64", 2)
    op = composite(
        "float64", "float64", outs=(5,),
        steps=[("add", (0, 1), "float64"), ("mul", (2, 2), "float64"), ("sub", (3, 2), "float64"),
               ("mul", (4, 3, 2), "float64")],
    )  # fmt: skip
    return [x, y], [op(x, y)]


def _an_operand_itself():
    x, y = var("float64", 2), var("float64", (True, False))
    op = composite("float64", "float64", outs=(1, 2), steps=[("mul", (0, 1), "float64")])
    return [x, y], op(x, y)


def _mixed():
    x, i, b = var("float32", 2), var("int16", (False, True)), var("bool", 2)
    op = composite(
        "float32", "int16", "bool", outs=(4,),
        steps=[("add", (0, 1), "float32"), ("switch", (2, 3, 0), "float32")],
    )  # fmt: skip
    return [x, i, b], [op(x, i, b)]


def _functions():
    """Functions one after the other and beside each other, and results of several of them."""
    x, y, a = var("float64", 2), var("float32", 2), var("float64", (True, True))
    op = composite(
        "float64", "float32", "float64", outs=(10, 5, 7),
        steps=[("mul", (0, 2), "float64"), ("tanh", (3,), "float64"), ("add", (4, 1), "float64"),
               ("exp", (1,), "float32"), ("mul", (6, 6), "float32"),
               ("scalar_sigmoid", (5,), "float64"), ("tanh", (8,), "float64"),
               ("sub", (9, 8), "float64")],
    )  # fmt: skip
    return [x, y, a], op(x, y, a)


def _written(build, *types):
    def make():
        inputs = [var(dtype, pattern) for dtype, pattern in types]
        outputs = build(*inputs)
        return inputs, outputs if isinstance(outputs, list) else [outputs]

    return make


M = ("float64", 2)
PROGRAMS = {
    "sum": _written(lambda x, y: x + y, M, M),
    "difference of floats": _written(lambda x, y: x - y, ("float32", 2), ("float32", 2)),
    "a number": _written(lambda x, a: x * a, M, ("float64", 0)),
    "a constant": _written(lambda x: x * 0.1 + 3, M),
    "row": _written(lambda x, r: x + r, M, ("float64", (True, False))),
    "column": _written(lambda x, c: x * c, M, ("float64", (False, True))),
    "row and column": _written(
        lambda r, c: r * c, ("float64", (True, False)), ("float64", (False, True))
    ),
    "row, column and matrix": _written(
        lambda x, r, c: x + r * c, M, ("float64", (True, False)), ("float64", (False, True))
    ),
    "one element": _written(lambda x, o: x / o, M, ("float64", (True, True))),
    "middle": _written(
        lambda x, y: x + y, ("float64", 3), ("float64", (False, True, False))
    ),
    "outer and inner": _written(
        lambda x, y: x * y, ("float64", 3), ("float64", (True, False, True))
    ),
    "comparison": _written(lambda x, y: T.switch(x > y, x, y), M, M),
    "truth": _written(lambda x, y: T.and_(T.gt(x, y), T.lt(y, 1)), M, M),
    "integers": _written(lambda i, j: i // j + i % j, ("int32", 2), ("int32", 2)),
    "bytes": _written(lambda i, j: i + j * 3, ("int8", 2), ("uint8", 2)),
    "narrow": _written(lambda x, i: T.cast(x * 2, "float32") + i, M, ("int8", 2)),
    "function": _written(lambda x: T.tanh(T.exp(-T.sqr(x))), M),
    "many operands": _written(lambda *xs: T.add(*xs), *[("float64", (False, i % 3 == 1))
                                                        for i in range(12)]),
    "cube": _written(lambda x, y: x * y + T.sqrt(abs(x)), ("float64", 3), ("float64", 3)),
    "vectors": _written(lambda x, y: x * y, ("float64", 1), ("float64", 1)),
    "numbers": _written(lambda x, y: x * y, ("float64", 0), ("float64", 0)),
    "two results": _two_results,
    "shared parts": _shared_parts,
    "functions": _functions,
    "an operand itself": _an_operand_itself,
    "mixed dtypes": _mixed,
}  # fmt: skip
SHAPES = [(5, 6, 7), (1, 1, 1), (3, 0, 2), (2, 1, 600), (1, 700, 1)]


def shaped(types, shape):
    """Return arrays for variables: ``shape`` from its end, 1 where a dimension broadcasts."""
    arrays = []
    for k, type_ in enumerate(types):
        own = shape[len(shape) - type_.ndim :]
        own = [1 if b else n for n, b in zip(own, type_.broadcastable, strict=True)]
        value = numbers(ROWS["add"], k, type_.dtype, own, seed=7)
        if type_.dtype == "int32":
            value[value == 0] = 1  # divided by
        arrays.append(value)
    return arrays


@pytest.mark.parametrize("generate", [False, True], ids=["interpreter", "generated"])
@pytest.mark.parametrize("program", list(PROGRAMS))
def test_programs(run_with, layouts, program, generate):
    inputs, outputs = PROGRAMS[program]()
    python, _ = run_with(inputs, outputs, c=False)
    run, linked = run_with(inputs, outputs, c=True, generate=generate)
    assert all(linked.in_c)
    for shape in SHAPES:
        arrays = shaped([v.type for v in inputs], shape)
        for choice, laid_out in layouts(arrays):
            before = [np.array(a) for a in laid_out]
            expected = python(*before)
            found = run(*laid_out)
            for wanted, result in zip(expected, found, strict=True):
                close(result, wanted, (shape, choice))
            for a, b in zip(before, laid_out, strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("generate", [False, True], ids=["interpreter", "generated"])
@pytest.mark.parametrize("which", [0, 1])
def test_results_may_overwrite_an_operand(run_with, layouts, generate, which):
    x, y = var("float64", 2), var("float64", 2)
    out = Elemwise(OPS["sub"], {0: which})(x, y)
    run, linked = run_with([x, y], [out], c=True, generate=generate, mutable=[x, y])
    assert linked.in_c == (True,)
    for shape in SHAPES:
        arrays = shaped([x.type, y.type], shape)
        for choice, laid_out in layouts(arrays):
            target = laid_out[which]
            if not target.flags.writeable:
                continue
            expected = laid_out[0] - laid_out[1]
            other = np.array(laid_out[1 - which])
            (found,) = run(*laid_out)
            np.testing.assert_array_equal(found, expected, err_msg=str((shape, choice)))
            np.testing.assert_array_equal(laid_out[1 - which], other)
            np.testing.assert_array_equal(target, expected)
            assert not target.size or np.shares_memory(found, target)


@pytest.mark.parametrize("generate", [False, True], ids=["interpreter", "generated"])
@pytest.mark.parametrize("pattern", [{0: 0, 1: 1}, {0: 1, 1: 0}, {1: 0}])
def test_several_results_may_overwrite_operands(run_with, layouts, generate, pattern):
    """Each operand is read by every stage, the results of the first one overwrite it."""
    x, y = var("float64", 2), var("float64", 2)
    op = composite(
        "float64", "float64", outs=(2, 5),
        steps=[("tanh", (0,), "float64"), ("exp", (1,), "float64"), ("add", (0, 3), "float64"),
               ("mul", (4, 1), "float64")],
    )  # fmt: skip
    outputs = Elemwise(op.scalar_op, pattern)(x, y)
    run, linked = run_with([x, y], outputs, c=True, generate=generate, mutable=[x, y])
    assert linked.in_c == (True,)
    for shape in [*SHAPES, (1, 1, 5000), (1, 1)]:
        for choice, laid_out in layouts(shaped([x.type, y.type], shape)):
            if not all(a.flags.writeable for a in laid_out):
                continue
            a, b = shaped([x.type, y.type], shape)
            laid_out[0][...], laid_out[1][...] = a, b  # again: an earlier call overwrote them
            expected = [np.tanh(a), (a + np.exp(b)) * b]
            found = run(*laid_out)
            for k, (wanted, result) in enumerate(zip(expected, found, strict=True)):
                close(result, wanted, (shape, choice))
                if k in pattern and result.size:
                    assert np.shares_memory(result, laid_out[pattern[k]])


@pytest.mark.parametrize("generate", [False, True], ids=["interpreter", "generated"])
def test_an_operand_read_twice_may_be_overwritten(run_with, generate):
    x = var("float64", 1)
    out = Elemwise(OPS["mul"], {0: 0})(x, x)
    run, _ = run_with([x], [out], c=True, generate=generate, mutable=[x])
    for n in (0, 1, 511, 512, 513, 5000):
        value = np.arange(float(n))
        np.testing.assert_array_equal(run(value)[0], np.arange(float(n)) ** 2)


@pytest.mark.parametrize("generate", [False, True], ids=["interpreter", "generated"])
@pytest.mark.parametrize("n", [0, 1, 2, 512])
def test_operands_that_are_results_may_be_exchanged(run_with, generate, n):
    """Each result is an operand in whose memory the other one goes, beside one that is computed."""
    x, y = var("float64", 1), var("float64", 1)
    op = composite("float64", "float64", outs=(1, 2, 0), steps=[("sub", (0, 1), "float64")])
    outputs = Elemwise(op.scalar_op)(x, y)
    run, linked = run_with([x, y], outputs, c=True, generate=generate)
    assert linked.in_c == (True,)
    a, b = np.arange(float(n)), np.arange(float(n)) * 3 + 1
    for found, wanted in zip(run(a, b), [b, a - b, a], strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("generate", [False, True], ids=["interpreter", "generated"])
def test_results_lie_in_memory_as_the_operands_do(run_with, generate):
    """By columns if all operands that have steps along both dimensions do; else by rows."""
    x, y, row, number = (
        var("float64", 2),
        var("float64", 2),
        var("float64", (True, False)),
        var("float64", 0),
    )
    run, _ = run_with([x, y, row, number], [x + y, y * row * number], c=True, generate=generate)
    c = np.arange(12.0).reshape(3, 4)
    fortran, r, n = np.asfortranarray(c), c[:1], np.array(2.0)
    for a, b, orders in [
        (c, c, "CC"), (fortran, fortran, "FF"), (c, fortran, "CF"), (fortran, c, "CC"),
        (fortran, np.repeat(fortran, 2, 0)[::2], "CC"), (fortran, fortran[:, ::-1], "FF"),
    ]:  # fmt: skip
        results = run(a, b, r, n)
        assert ["CF"[result.flags.f_contiguous] for result in results] == list(orders)
        assert all(result.flags.owndata for result in results)
        for result, expected in zip(results, (a + b, b * r * n), strict=True):
            np.testing.assert_array_equal(result, expected)


# --- what is compiled, and how often ------------------------------------------------------------


@pytest.fixture
def compilations(monkeypatch, cache, flags):
    """A list that gets an entry for each call of the compiler; the cache is empty."""
    flags(background_compilation=False)  # function() calls it
    calls = []
    genuine = cbuild._compile

    def counted(*args):
        calls.append(args)
        return genuine(*args)

    monkeypatch.setattr(cbuild, "_compile", counted)
    return calls


@pytest.fixture
def no_processes(monkeypatch):
    """Starting any process is an error."""

    def refuse(*args, **kwargs):
        raise AssertionError(f"a process was started: {args}")

    monkeypatch.setattr(subprocess, "Popen", refuse)


def several_kernels(number):
    """Return (inputs, outputs) with kernels that no other test has: the number is in the text."""
    x, y = T.dmatrix("x"), T.dvector("y")
    outputs = [T.exp(x * number).sum(), T.tanh(y) + number, T.dot(x, x + number), x**2 - number]
    return [x, y], outputs


@pytest.mark.c
def test_one_call_of_the_compiler_a_function(compilations, monkeypatch):
    monkeypatch.setattr(kernels, "SHARE", 10**6)
    mode = Mode("c|py", "fast_run")
    f = function(*several_kernels(0.84321), mode=mode)
    assert len(compilations) == 1 and f.compile_report.kernels.hit is False
    f = function(*several_kernels(0.84321), mode=mode)
    assert len(compilations) == 1 and f.compile_report.kernels.hit is True
    cbuild._loaded.clear()  # as another process would find it
    f = function(*several_kernels(0.84321), mode=mode)
    assert len(compilations) == 1 and f.compile_report.kernels.hit is True


@pytest.mark.c
def test_large_kernels_are_divided_among_compilers(compilations, monkeypatch):
    monkeypatch.setattr(resources, "processors", lambda: 3)
    monkeypatch.setattr(kernels, "SHARE", 1)
    f = function(*several_kernels(0.94321), mode=Mode("c|py", "fast_run"))
    assert len(compilations) == 3
    assert all("void ow_k" in args[1] for args in compilations)
    x, y = np.random.rand(3, 3), np.random.rand(4)
    results = f(x, y)
    np.testing.assert_allclose(results[0], np.exp(x * 0.94321).sum())
    np.testing.assert_allclose(results[3], x**2 - 0.94321)


@pytest.mark.c
def test_equal_kernels_are_compiled_once(compilations):
    x, y = T.dmatrices("xy")
    a, b = T.exp(x) * 0.1234, T.exp(y) * 0.1234
    f = function([x, y], [a, b], mode=Mode("c|py", "fast_run"))
    ops = {str(n.op) for n in f.linked.order}
    assert len(f.linked.order) == 2 and len(ops) == 1
    assert len(compilations) == 1
    text = compilations[0][1]
    assert text.count("void ow_k") == text.count("void ow_k0")


def test_nothing_to_compile_calls_no_compiler(no_processes):
    x = T.dmatrix("x")
    f = function([x], [x.T, x.sum(axis=0)], mode=Mode("c|py", "fast_run"))
    assert f.compile_report.kernels is None
    np.testing.assert_array_equal(f([[1.0, 2.0]])[0], [[1.0], [2.0]])


@pytest.mark.parametrize("mode", ["FAST_COMPILE", Mode("c|py", "fast_compile"),
                                  Mode("c|py", "o2"), Mode("vm", "fast_compile")])  # fmt: skip
def test_fast_compile_calls_no_compiler(no_processes, mode):
    f = function(*several_kernels(0.7111), mode=mode)
    assert all(f.linked.in_c)
    x, y = np.random.rand(3, 3), np.random.rand(4)
    results = f(x, y)
    np.testing.assert_allclose(results[0], np.exp(x * 0.7111).sum())
    np.testing.assert_allclose(results[1], np.tanh(y) + 0.7111)


@pytest.mark.parametrize("mode", ["FAST_RUN", Mode("c|py", None), Mode("vm", "fast_run")])
def test_without_a_compiler(no_processes, flags, mode):
    flags(cxx="")
    assert cbuild.compiler() is None
    f = function(*several_kernels(0.3111), mode=mode)
    assert all(f.linked.in_c)
    x, y = np.random.rand(3, 3), np.random.rand(4)
    results = f(x, y)
    np.testing.assert_allclose(results[0], np.exp(x * 0.3111).sum())
    np.testing.assert_allclose(results[3], x**2 - 0.3111)


@pytest.mark.c
def test_where_the_compiler_fails(monkeypatch, flags):
    flags(background_compilation=False)
    monkeypatch.setattr(cbuild, "FLAGS", (*cbuild.FLAGS, "-fno-such-option-at-all"))
    with pytest.warns(UserWarning, match="opwise uses its slower, built-in loops.* -?.*failed"):
        f = function(*several_kernels(0.2222), mode=Mode("c|py", "fast_run"))
    assert all(f.linked.in_c)
    x, y = np.random.rand(3, 3), np.random.rand(4)
    np.testing.assert_allclose(f(x, y)[1], np.tanh(y) + 0.2222)


@pytest.mark.c
def test_a_kernel_that_neither_the_compiler_nor_the_interpreter_makes(monkeypatch):
    """It needs more registers at a time than the interpreter has: ``perform`` is left."""
    x, n = T.dvector("x"), 200
    steps = [Instruction(OPS["add"], (k, 0), "float64") for k in range(n)]
    assert kernels.interpretable(Program(("float64",), tuple(steps), (n,)))
    steps += [Instruction(OPS["add"], (n + k, k + 1), "float64") for k in range(n)]
    op = Elemwise(Composite.from_program(["float64"], steps, [2 * n]))
    assert not kernels.interpretable(op.scalar_op.program)
    total = sum(range(2, n + 2)) + n + 1
    f = function([x], [op(x), x * x], mode=Mode("c|py", None))
    assert f.linked.in_c == (True, True)
    np.testing.assert_allclose(f([1.0, 2.0])[0], [total, 2 * total])

    def fail(*args):
        raise CompileError("broken")

    monkeypatch.setattr(cbuild.Build, "result", fail)
    with pytest.warns(UserWarning, match="broken"):
        f = function([x], [op(x), x * x], mode=Mode("c|py", None))
    assert sorted(f.linked.in_c) == [False, True]
    np.testing.assert_allclose(f([1.0, 2.0])[0], [total, 2 * total])


def test_scalar_ops_without_c_run_perform():
    z = T.zvector("z")
    f = function([z], T.exp2(z), mode=Mode("c|py", None))
    assert not any(
        c for n, c in zip(f.linked.order, f.linked.in_c, strict=True)
        if isinstance(n.op, Elemwise)
    )  # fmt: skip
    np.testing.assert_array_equal(f([2 + 0j]), [4])


def test_the_text_can_be_read():
    """Generated C is plain: no header, one function a kernel, a statement for each step."""
    made = kernels.Kernels(generate=True)
    made.generate = True
    op = composite(
        "float64", "float64", outs=(3,),
        steps=[("sin", (0,), "float64"), ("add", (2, 1), "float64")],
    ).scalar_op  # fmt: skip
    loop = made.elemwise(op, ["float64"] * 2, ["float64"], [], [])
    text = kernels.source_text([loop])
    assert "#include" not in text
    assert "const double t0 = sin(x0);" in text
    assert "const double t1 = (t0 + x1);" in text
    assert "*z0 = t1;" in text


def test_kernels_of_one_function_are_shared():
    made = kernels.Kernels(generate=False)
    add = OPS["add"]
    a = made.elemwise(add, ["float64"] * 2, ["float64"], [], [])
    b = made.elemwise(add, ["float64"] * 2, ["float64"], [], [])
    c = made.elemwise(add, ["float64", "float32"], ["float64"], [], [])
    assert a is b and a is not c
    made.finish()
    assert a.address and c.address and a.context != c.context


def test_threads_do_not_share_the_interpreter():
    """Two functions of the same kernel have memory of their own."""
    x = T.dvector("x")
    f, g = (function([x], T.exp(x) + 1, mode="FAST_COMPILE") for _ in range(2))
    contexts = {node.fn for node in (f, g)}
    assert len(contexts) == 2
    np.testing.assert_array_equal(f([0.0]), g([0.0]))


def test_linkers_do_not_share_state():
    linker = OpWiseCLinker()
    x = T.dvector("x")
    mode = Mode(linker, None)
    f = function([x], x + x, mode=mode)
    g = function([x], DiffOp()(x), mode=mode)
    assert f.maker.linker is not g.maker.linker
    assert f.linked.in_c == (True,) and g.linked.in_c == (False,)
