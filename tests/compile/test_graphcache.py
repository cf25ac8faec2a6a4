"""The cache of optimized graphs: a function that was compiled before is not rewritten again."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from compiled_again import (
    PROGRAMS,
    RNG,
    from_graph,
    nested_loops,
    random_program,
    recurrent,
    same,
)  # fmt: skip

import theano
import theano.tensor as T
from opwise import FunctionGraph, Mode, ProfileMode
from opwise.compile import DebugMode, asimported, graphcache, maker
from opwise.compile.construct import construct
from opwise.config import change_flags
from opwise.graph import provenance
from opwise.graph.records import Numbered, Reader, Writer
from opwise.linkers import kernelcache
from opwise.optimizers.merge import MergeOptimizer
from opwise.optimizers.rule import local_optimizer
from opwise.testing.fuzz.examine import compiled, examine

pytestmark = pytest.mark.usefixtures("only_own_rewrites", "cached")


def rewritten(f):
    """Whether the rewrites ran for a function."""
    return not f.compile_report.graph_cached


def same_program(program):
    """Return (function, arguments) of a program, the same ones each time."""
    RNG.seed(0)
    return program()


def origins(f):
    """The Applys of a function in order, with the functions that made their origins."""
    return [
        (str(node), [[frame[0].co_name for frame in o.trace or ()] for o in node.origins])
        for node in f.maker.fgraph.toposort()
    ]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_the_second_function_is_not_rewritten(program):
    f, values = same_program(program)
    g, _ = same_program(program)
    assert rewritten(f)
    assert not rewritten(g)
    for _ in range(3):
        same(g(*values), f(*values))
    assert str(g.maker.fgraph) == str(f.maker.fgraph)
    assert origins(g) == origins(f)


def test_a_graph_that_is_found_is_not_copied():
    def copied(f):
        return bool(f.maker.construction.graph.copied_order)

    assert copied(theano.function(*graph()))
    assert not copied(theano.function(*graph()))


@pytest.mark.parametrize("program", [recurrent, nested_loops, from_graph], ids=lambda p: p.__name__)
def test_graphs_inside_ops_are_not_rewritten_either(program, monkeypatch):
    f, values = same_program(program)
    monkeypatch.setattr(maker, "_optimized", None)
    monkeypatch.setattr(asimported, "replaced", list)  # by this test
    g, _ = same_program(program)
    same(g(*values), f(*values))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_programs(first):
    """Every random graph can be written, and is right when it was read."""
    for program in filter(None, map(random_program, range(first, first + 10))):
        f, g = (compiled(program, "FAST_RUN, built-in kernels") for _ in range(2))
        assert rewritten(f)
        assert not rewritten(g)
        assert str(g.maker.fgraph) == str(f.maker.fgraph)
        assert origins(g) == origins(f)
        examine(program, ["FAST_RUN, from the cache"])


_PROGRAM = """
import sys
from compiled_again import regression
f, values = regression()
print(f.compile_report.rewrites.name, float(f(*values)[1]).hex())
print("opwise.optimizers.rules.canonicalize" in sys.modules)
"""


def test_another_process_finds_it(tmp_path):
    """Hashes of texts differ between processes, keys do not."""
    flags = f"base_compiledir={tmp_path / 'shared'},cache_graphs=True"
    found = []
    for seed in ("1", "2"):
        out = subprocess.run(
            [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True,
            cwd=Path(__file__).parent,
            env={**os.environ, "PYTHONHASHSEED": seed, "OPWISE_FLAGS": flags,
                 "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        found.append(out.stdout.splitlines())
    (first, loaded), (second, none) = found
    assert first.split()[0] == "OPT_FAST_RUN"
    assert second == f"from the cache {first.split()[1]}"
    assert (loaded, none) == ("True", "False")


def test_profiles_tell(capsys):
    mode = ProfileMode("c|py", "fast_run")  # the registered one has the functions of other tests
    for k in range(2):
        f = theano.function(*graph(), mode=mode)
        f([1.0])
        mode.print_summary()
        text = capsys.readouterr().out
        assert ("rewritten graphs cached for 1 function;" in text) is (k == 1)


def test_keys_do_not_depend_on_earlier_rewrites():
    """Rewrites use constants of their own: those that programs share stay shared."""
    one = T.as_tensor_variable(1)
    with provenance.rewriting():
        assert T.as_tensor_variable(1) is not one
        FunctionGraph([], [T.as_tensor_variable(1)], clone=False)
    assert T.as_tensor_variable(1) is one


def test_any_number_of_levels_is_written_and_read():
    x = T.dvector("x")
    op = theano.OpFromGraph([x], [x * 2.0], mode="FAST_RUN")  # with a mode, levels stay apart
    for _ in range(400):
        op = theano.OpFromGraph([x], [op(x) + 1.0], mode="FAST_RUN")
    y = op(x)
    writer = Writer()
    writer.inputs([x])
    writer.graph([y.owner], [y])
    numbered = Numbered()
    numbered.objects, numbered.variables = writer.numbered.objects[:1], [x]
    records, arrays = writer.take()
    (found,) = Reader(numbered).graph(records[2:], arrays)
    again = Writer()
    again.inputs([x])
    again.graph([found.owner], [found])
    assert again.take() == (records, arrays)


@pytest.mark.parametrize("first", [True, False], ids=["as written", "optimized"])
def test_what_is_too_deep_for_records_is_compiled(first, monkeypatch, cached):
    theano.function(*graph(3.0))  # what it imports is noted before this test replaces a part
    entries = set(cached.glob("**/*.graph"))
    write = Writer.graph

    def fail(writer, *args):
        if first or writer._follows:
            raise RecursionError("maximum recursion depth exceeded")
        write(writer, *args)

    monkeypatch.setattr(Writer, "graph", fail)
    monkeypatch.setattr(asimported, "replaced", list)  # by this test
    f = theano.function(*graph())
    assert rewritten(f)
    assert f([0.0]).tolist() == [2.0]
    assert set(cached.glob("**/*.graph")) == entries


# --- what makes another key -----------------------------------------------------------------------


def graph(number=2.0, dtype="float64", name="x"):
    x = T.vector(name, dtype=dtype)
    return [x], T.exp(x * number) + 1


@pytest.mark.parametrize(
    "other", [{"number": 3.0}, {"number": -0.0}, {"dtype": "float32"}, {"name": "y"}], ids=str
)
def test_another_graph(other):
    theano.function(*graph())
    assert rewritten(theano.function(*graph(**other)))
    assert not rewritten(theano.function(*graph()))


@pytest.mark.parametrize(
    "mode", [Mode("c|py", "fast_compile"), theano.compile.FAST_RUN.excluding("fusion")], ids=str
)
def test_another_mode(mode):
    theano.function(*graph())
    assert rewritten(theano.function(*graph(), mode=mode))
    assert not rewritten(theano.function(*graph(), mode=mode))


def test_another_linker_takes_the_same_graph():
    theano.function(*graph())
    assert not rewritten(theano.function(*graph(), mode=Mode("py", "fast_run")))


def test_other_flags():
    theano.function(*graph())
    with change_flags(floatX="float32"):
        assert rewritten(theano.function(*graph()))
    with change_flags(profile_memory=True):  # no rewrite depends on it
        assert not rewritten(theano.function(*graph()))
    with change_flags(cache_graphs=False):
        assert rewritten(theano.function(*graph()))


@pytest.mark.parametrize("name", ["__version__", "_FORM"])
def test_another_opwise(name, monkeypatch):
    theano.function(*graph())
    monkeypatch.setattr(graphcache, name, "other")
    assert rewritten(theano.function(*graph()))


def test_what_a_function_does_with_its_inputs():
    """An argument that may be overwritten is, so the two graphs differ."""
    inputs, out = graph()
    theano.function(inputs, out)
    f = theano.function([theano.In(inputs[0], mutable=True, borrow=True)], out)
    assert rewritten(f)
    x, w = T.dvector("x"), theano.shared(np.ones(3), name="w")
    theano.function([x], w + x)
    assert rewritten(theano.function([x], updates=[(w, w + x)]))


# --- what is not kept -----------------------------------------------------------------------------


@theano.compile.ops.as_op(itypes=[T.dvector], otypes=[T.dvector])
def halved(x):
    return x / 2


class Doubled(theano.Op):
    """An Op of a program, which may change."""

    __props__ = ()

    def make_node(self, x):
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] * 2


def test_ops_of_programs():
    x = T.dvector("x")
    unnamed = theano.compile.ops.as_op([T.dvector], [T.dvector])(lambda value: value + 1)
    for op in (Doubled(), halved, unnamed):
        for _ in range(2):
            f = theano.function([x], op(x) + 1)
            assert rewritten(f)
            assert f([4.0]).shape == (1,)


@local_optimizer([T.exp])
def exp_to_log(node):
    return None


def test_rewrites_of_programs():
    theano.function(*graph())
    name = "exp_to_log_of_test_graphcache"
    theano.compile.optdb["canonicalize"].register(name, exp_to_log, "fast_run")
    try:
        assert rewritten(theano.function(*graph()))
    finally:
        theano.compile.optdb["canonicalize"].remove_tags(name, "fast_run")


def test_rewriting_that_warns(monkeypatch):
    """The warning comes each time."""

    def optimized(fgraph, mode):
        provenance.warn("look here")
        return genuine(fgraph, mode)

    genuine = maker._optimized
    monkeypatch.setattr(maker, "_optimized", optimized)
    monkeypatch.setattr(asimported, "replaced", list)  # by this test
    for _ in range(2):
        with pytest.warns(UserWarning, match="look here"):
            theano.function(*graph())


def _failing(name, monkeypatch):
    """Let a rewrite, or a shape, of opwise's own fail."""

    def fail(*args):
        raise KeyError("on purpose")

    if name == "on_opt_error":
        monkeypatch.setattr(MergeOptimizer, "apply", fail)
    else:
        monkeypatch.setattr(theano.tensor.Elemwise, "infer_shape", fail)
    monkeypatch.setattr(asimported, "replaced", list)  # by this test


@pytest.mark.parametrize("name", ["on_opt_error", "on_shape_error"])
def test_flags_of_failures(name, monkeypatch, caplog, cached):
    """A graph whose rewriting failed is not kept, so another value of the flag still raises."""

    def program():
        inputs, out = graph()
        return inputs, [out, out.shape]

    theano.function(*program())
    with change_flags({name: "warn"}):
        assert not rewritten(theano.function(*program()))
    entries = set(cached.glob("**/*.graph"))
    with monkeypatch.context() as failing:
        _failing(name, failing)
        inputs, out = program()
        other = [each + 1.0 for each in out]
        for action in ("ignore", "warn") if name == "on_opt_error" else ("warn",):
            with change_flags({name: action}):
                for _ in range(2):
                    assert rewritten(theano.function(inputs, other))
        assert "on purpose" in caplog.text
        with change_flags({name: "raise"}), pytest.raises(KeyError, match="on purpose"):
            theano.function(inputs, other)
    assert set(cached.glob("**/*.graph")) == entries


def test_debug_mode_rewrites_each_time():
    for _ in range(2):
        assert rewritten(theano.function(*graph(), mode=DebugMode()))


def test_graphs_for_a_device(monkeypatch):
    """A device's linker reads marks of its rewrites, which are not written."""
    mode = Mode("c|py", "fast_run")
    assert graphcache.circumstances(mode) is not None
    monkeypatch.setattr(type(mode.linker), "required", ("gpu",))
    assert graphcache.circumstances(mode) is None


def test_recorded_rewrites(capsys):
    for flag in ("profile_optimizer", "optimizer_verbose", "keep_shape_checks"):
        for _ in range(2):
            with change_flags({flag: True}):
                assert rewritten(theano.function(*graph()))


def test_shapes_are_tracked():
    """Programs read ``f.maker.fgraph.shape_feature``, whether the graph was rewritten or not."""
    for k in range(2):
        f = theano.function(*graph())
        fgraph = f.maker.fgraph
        assert rewritten(f) is (k == 0)
        (length,) = fgraph.shape_feature.shape_of[fgraph.outputs[0]]
        assert length.eval({fgraph.inputs[0]: [1.0, 2, 3]}) == 3


def test_large_constants(monkeypatch):
    monkeypatch.setattr(graphcache, "_MOST_READ", 10_000)
    monkeypatch.setattr(graphcache, "_MOST_KEPT", 1000)
    x = T.dvector("x")
    for size, kept in ((1000, True), (2000, False)):
        theano.function([x], x + np.arange(float(size)))
        assert rewritten(theano.function([x], x + np.arange(float(size)))) is not kept
    for size, kept in ((100, True), (200, False)):  # the product is computed once
        product = T.constant(np.arange(float(size))) * 2.5
        theano.function([x], x + product)
        assert rewritten(theano.function([x], x + product)) is not kept


# --- files that are not as they were written ------------------------------------------------------


def entry_file(cached):
    (path,) = cached.glob("*.graph")
    return path


@pytest.mark.parametrize("size", [0, 10, 400])
def test_a_file_that_was_cut(cached, size):
    theano.function(*graph())
    path = entry_file(cached)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.warns(UserWarning, match=r"is not loaded: .* The graph is optimized anew"):
        assert rewritten(theano.function(*graph()))
    assert not rewritten(theano.function(*graph()))  # it was written again


def small():
    """A function with a constant that rewriting computes, whose entry is small."""
    x = T.dvector("x")
    return theano.function([x], x * (T.constant(np.arange(3.0)) + 1))


@pytest.mark.filterwarnings("ignore:.*is not loaded")
def test_damage_at_every_byte(cached):
    """What is missing or other than it was is noticed, wherever it is."""
    small()
    path = entry_file(cached)
    whole = path.read_bytes()
    damaged = [whole[:size] for size in range(len(whole))]
    for at in range(len(whole)):
        content = bytearray(whole)
        content[at] ^= 1 << at % 8
        damaged.append(bytes(content))
    entry = graphcache.entry(small().maker.construction, theano.compile.FAST_RUN)
    for content in damaged:
        path.write_bytes(content)
        assert entry.find() is None
    for content in damaged[:: len(damaged) // 12]:
        path.write_bytes(content)
        f = small()
        assert rewritten(f)
        assert list(f([1.0, 1, 1])) == [1, 2, 3]
        assert path.read_bytes() == whole


@pytest.mark.filterwarnings("ignore:.*is not loaded")
def test_content_that_ends_early(cached):
    """Reading it fails midway; what was read until then is not referred to when it is written."""
    small()
    path = entry_file(cached)
    whole = path.read_bytes()
    key = graphcache.entry(small().maker.construction, theano.compile.FAST_RUN).key
    text, _, arrays = whole[: -2 * kernelcache._DIGEST].partition(b"\n")
    records = json.loads(text)
    assert len(records) > 2
    cut = [json.dumps(records[:n] + [["x"]]).encode() + b"\n" + arrays for n in range(len(records))]
    cut += [text[:n] + b"\n" + arrays for n in range(0, len(text), 7)]
    cut += [text + b"\n" + arrays[:n] for n in range(len(arrays))]
    for content in cut:
        path.write_bytes(content + kernelcache._seal(key, content))
        f = small()
        assert rewritten(f)
        assert path.read_bytes() == whole
    g = small()
    assert not rewritten(g)
    assert list(g([1.0, 1, 1])) == list(f([1.0, 1, 1])) == [1, 2, 3]


# --- layouts of constants -------------------------------------------------------------------------


def unaligned(value):
    memory = np.zeros(value.nbytes + 1, np.uint8)
    found = np.ndarray(value.shape, value.dtype, memory, offset=1)
    found[...] = value
    return found


CUBE = np.arange(24.0).reshape(2, 3, 4)
LAYOUTS = {
    "C": CUBE,
    "Fortran": np.asfortranarray(CUBE),
    "neither": CUBE.transpose(1, 2, 0),
    "other": CUBE.transpose(0, 2, 1),
    "zero strides": np.broadcast_to(CUBE[:, :1], (2, 3, 4)),
    "number": np.broadcast_to(np.array(2.5), (3, 1, 2)),
    "backwards": CUBE[::-1, :, ::-2],
    "gaps": CUBE[:, ::2, 1::2],
    "windows": np.lib.stride_tricks.sliding_window_view(CUBE[0, 0], 2),
    "one row": CUBE[1:, :1, ::2],
    "empty": CUBE[:, :0].transpose(2, 0, 1),
    "no dimensions": np.array(3.0),
    "unaligned": unaligned(CUBE),
    "other bytes": CUBE.astype(">f8"),
    "integers": CUBE.astype(np.int16).transpose(2, 0, 1),
    "booleans": (CUBE > 3).T,
    "complex": (CUBE + 1j).swapaxes(0, 1),
    "texts": np.array(["a", "bcd"]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_keep_their_layout(layout):
    value = LAYOUTS[layout]
    writer = Writer()
    written = json.loads(json.dumps(writer.value(value)))
    _, content = writer.take()
    reader = Reader(Numbered())
    reader.graph([], content)
    found = reader.value(written)
    assert (found.dtype, found.shape) == (value.dtype, value.shape)
    assert found.strides == value.strides or not value.size
    assert found.flags.aligned == value.flags.aligned
    assert found.tobytes() == value.tobytes()


@pytest.mark.parametrize("value", [np.zeros(0), CUBE[:, :0], CUBE[:0, ::2]])
def test_strides_of_no_elements_make_no_other_key(value):
    """Pickles and copies change them."""
    for other in (pickle.loads(pickle.dumps(value)), value.copy()):
        assert repr(Writer().value(other)) == repr(Writer().value(value))


def test_layouts_make_other_keys():
    """Equal constants in other layouts are other graphs: their sums differ in the last bits."""
    texts = set()
    for value in (CUBE, np.asfortranarray(CUBE), np.ascontiguousarray(CUBE.T).T, unaligned(CUBE)):
        texts.add(repr(Writer().value(value)))
    assert len(texts) == 3


def test_computed_constants_keep_their_layout():
    def function():
        x = T.dtensor3("x")
        return theano.function([x], x + T.exp(T.constant(CUBE.transpose(2, 0, 1))))

    f, g = function(), function()
    assert rewritten(f)
    assert not rewritten(g)
    one, two = (
        next(v for v in h.maker.fgraph.variables if isinstance(v, theano.Constant)).data
        for h in (f, g)
    )
    assert one.strides == two.strides
    assert not (one.flags.c_contiguous or one.flags.f_contiguous)
    texts = []
    for h in (f, g):
        with pytest.raises(ValueError) as error:
            h(np.zeros((2, 2, 2)))
        texts.append(str(error.value))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"nonsense\n", b'[["x"]]\n', b'[["g", [99]]]\n', b'[["g", 1]]\n', b"{}\n",
        b'[["o", "os:system", ["true"], null]]\n', b'[["c", "os:system", ["true"], null]]\n',
        b'[["c", "opwise.errors:similar", [], null]]\n',
        b'[["o", "opwise.tensor.type:Nothing", [], null]]\n',
        b'[["l", 0, "x", ["d", ["values_eq_approx", ["f", "os:system"]]]]]\n',
    ],
    ids=repr,
)  # fmt: skip
def test_sealed_content_of_another_form(cached, content, monkeypatch):
    """Nothing outside opwise is looked up or called, whatever a file names."""
    theano.function(*graph())
    monkeypatch.setattr(os, "system", None)
    path = entry_file(cached)
    kept = path.read_bytes()
    key = graphcache.entry(construct(*graph()), theano.compile.FAST_RUN).key
    path.write_bytes(content + kernelcache._seal(key, content))
    with pytest.warns(UserWarning, match="is not loaded"):
        f = theano.function(*graph())
    assert rewritten(f)
    np.testing.assert_allclose(f([0.0, 1]), [2, 1 + np.exp(2)])
    assert path.read_bytes() == kept


def test_a_bound_of_nothing_keeps_nothing(use_cache, tmp_path):
    folder = use_cache(tmp_path / "none", compiledir_bytes=0)
    theano.function(*graph())
    assert rewritten(theano.function(*graph()))
    assert not list(folder.glob("*.graph")) if folder.exists() else True
