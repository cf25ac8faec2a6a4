"""Mode: names, linkers, optimizers and tags, the default mode, and what a mode keeps."""

import copy
import importlib
import inspect
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import opwise
import opwise.modes.mode as modes
import opwise.tensor as T
from opwise import (
    CLinker,
    DualLinker,
    Mode,
    OpWiseCLinker,
    PerformLinker,
    ProfileMode,
    VM_Linker,
    function,
    get_default_mode,
    get_mode,
    register_mode,
    shared,
)
from opwise.compile import DebugMode, MonitorMode, optdb, register_linker, register_optimizer
from opwise.compile.nanguardmode import NanGuardMode
from opwise.config import config
from opwise.optimizers.database import Query
from opwise.optimizers.passes import Optimizer, SeqOptimizer
from opwise.scalar import Composite
from opwise.tensor import DimShuffle, Elemwise, Sum
from opwise.tensor.mapreduce import MapReduce

pytestmark = [pytest.mark.null, pytest.mark.usefixtures("no_compiler")]


def ops(mode, expression=None):
    """The Ops that run for a sum of a matrix under a mode."""
    x = T.dmatrix("x")
    y = (x * 2 + 1).sum() if expression is None else expression(x)
    return [node.op for node in function([x], y, mode=mode).maker.fgraph.toposort()]


def kinds(mode, expression=None):
    """The classes of these Ops."""
    return [type(op) for op in ops(mode, expression)]


FUSED = [MapReduce]
PLAIN = [Elemwise, Elemwise, Sum]
WRITTEN = [DimShuffle, DimShuffle, *PLAIN]


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, cls, linker, include",
    [
        ("FAST_COMPILE", Mode, OpWiseCLinker, "fast_compile"),
        ("FAST_RUN", Mode, OpWiseCLinker, "fast_run"),
        ("PROFILE_MODE", ProfileMode, OpWiseCLinker, "fast_run"),
        ("DEBUG_MODE", DebugMode, None, "fast_run"),
    ],
)
def test_registered_names_give_one_mode(name, cls, linker, include):
    mode = get_mode(name)
    assert type(mode) is cls
    assert linker is None or type(mode.linker) is linker
    assert include in mode.provided_optimizer.include
    assert get_mode(name) is mode


@pytest.mark.parametrize(
    "name, cls",
    [
        ("Mode", Mode), ("ProfileMode", ProfileMode), ("DebugMode", DebugMode),
        ("NanGuardMode", NanGuardMode),
    ],
)  # fmt: skip
def test_names_of_classes_give_new_modes(name, cls):
    mode = get_mode(name)
    assert type(mode) is cls
    assert get_mode(name) is not mode


@pytest.mark.parametrize(
    "name",
    [
        "fast_run",
        "",
        "Fast_Run",
        "MonitorMode",
        "FAST_RUN_NOGC",
        "SANITY_CHECK",
        "STABILIZE",
        "JAX",
    ],
)
def test_unknown_names(name):
    told = rf"^No predefined mode exist for string: {name}( |$)"
    with pytest.raises(Exception, match=told) as caught:
        get_mode(name)
    assert type(caught.value) is Exception


def test_a_mode_object_is_returned():
    mode = Mode("py", None)
    assert get_mode(mode) is mode
    assert get_mode(42) == 42
    with pytest.raises(AttributeError, match="'int' object has no attribute 'optimize"):
        function([], [], mode=42)


def test_the_mode_may_be_the_third_argument():
    a = T.dscalar("a")
    assert function([a], a, "FAST_COMPILE").maker.mode is get_mode("FAST_COMPILE")


@pytest.mark.parametrize("name", ["FAST_COMPILE", "FAST_RUN"])
def test_modes_are_names_of_the_module_too(name):
    assert getattr(modes, name) is get_mode(name)


@pytest.fixture
def tables(monkeypatch):
    """Names that are registered are forgotten after the test."""
    for table in ("predefined_modes", "predefined_linkers", "predefined_optimizers"):
        monkeypatch.setattr(modes, table, dict(getattr(modes, table)))
    values = importlib.import_module("opwise.config.values")
    monkeypatch.setattr(values, "_mode_names", list(values._mode_names))


def test_registered_modes_are_found_and_can_be_the_default(tables, flags):
    mine = Mode("py", "merge")
    register_mode("MINE", mine)
    assert get_mode("MINE") is mine
    flags(mode="MINE")
    assert get_default_mode() is mine
    assert kinds(None) == WRITTEN
    with pytest.raises(ValueError, match="Mode name already taken: MINE"):
        register_mode("MINE", mine)


def test_registered_linkers_and_optimizers(tables):
    linker = PerformLinker(allow_gc=False)
    register_linker("mine", linker)
    register_optimizer("mine", Query(["fast_run"], exclude=["fusion"]))
    mode = Mode("mine", "mine")
    assert mode.linker is linker
    assert kinds(mode) == PLAIN
    assert [bool(op.destroy_map) for op in ops(mode)] == [False, True, False]


@pytest.mark.parametrize(
    "register, name, what",
    [
        (register_mode, "FAST_RUN", "Mode"),
        (register_mode, "PROFILE_MODE", "Mode"),
        (register_linker, "py", "Linker"),
        (register_linker, "cupy", "Linker"),
        (register_optimizer, "fast_run", "Optimizer"),
    ],
)
def test_taken_names(tables, register, name, what):
    with pytest.raises(ValueError, match=f"{what} name already taken: {name}"):
        register(name, None)


# --- linkers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, cls, gc",
    [
        ("py", PerformLinker, True), ("c", CLinker, True), ("c|py", OpWiseCLinker, True),
        ("c|py_nogc", OpWiseCLinker, False), ("c&py", DualLinker, True), ("vm", VM_Linker, True),
        ("cvm", VM_Linker, True), ("vm_nogc", VM_Linker, False), ("cvm_nogc", VM_Linker, False),
    ],
)  # fmt: skip
def test_linkers_by_name(name, cls, gc):
    mode = Mode(name, "fast_compile")
    assert type(mode.linker) is cls
    assert mode.linker.allow_gc is gc
    x = T.dmatrix("x")
    assert function([x], (x * 2 + 1).sum(), mode=mode)(np.ones((2, 2))) == 12


@pytest.mark.parametrize("args", [("PY",), ("c_py",), ("fast_run", "py")])
def test_unknown_linkers(args):
    with pytest.raises(KeyError, match=args[0]):
        Mode(*args)


def test_the_default_linker_is_that_of_the_flags(flags):
    flags(linker="py")
    assert isinstance(Mode().linker, PerformLinker)
    flags(linker="vm_nogc")
    assert not Mode(None, None).linker.allow_gc


def test_an_object_that_is_no_linker_is_refused_at_compilation():
    mode = Mode(5)
    with pytest.raises(ValueError, match="'linker' parameter of FunctionMaker should be a Linker"):
        function([], T.constant(1.0), mode=mode)


def test_the_linker_for_the_gpu_is_named(flags):
    assert type(Mode("cupy").linker).__name__ == "CupyLinker"
    flags(linker="cupy")
    assert type(Mode().linker).__name__ == "CupyLinker"


def test_c_alone_needs_c_for_every_apply():
    class PythonOnly(opwise.Op):
        __props__ = ()
        itypes = otypes = [T.dmatrix]

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0] + 1

    with pytest.raises(NotImplementedError, match="PythonOnly cannot produce C code"):
        ops(Mode("c", "fast_run"), PythonOnly())
    assert ops(Mode("c|py", "fast_run"), PythonOnly()) == [PythonOnly()]


# --- optimizers -----------------------------------------------------------------------------------


def loops(mode, expression):
    """Return the number of scalar operations in each elementwise loop."""
    scalar_ops = [op.scalar_op for op in ops(mode, expression) if isinstance(op, Elemwise)]
    return [len(op.instructions) if isinstance(op, Composite) else 1 for op in scalar_ops]


@pytest.mark.parametrize(
    "optimizer, views, expected",
    [
        *[
            (o, 0, [3])
            for o in ("fast_run", "o4", "o3", "unsafe")
        ],
        ("o2", 0, [4]),
        *[(o, 0, [1] * 5) for o in ("fast_compile", "o1")],
        ("stabilize", 0, [1] * 3),
        *[
            (o, 2, [1] * 5)
            for o in ("merge", None, "None", "fast_run_stable")
        ],
    ],
)  # fmt: skip
def test_optimizers_by_name(optimizer, views, expected):
    def expression(x):
        return T.exp(x) * 2 + 1 + x - x

    assert loops(Mode("py", optimizer), expression) == expected
    found = kinds(Mode("py", optimizer), expression)
    assert found.count(DimShuffle) == views == len(found) - len(expected)


def test_the_optimizer_merge_only_merges():
    def twice(x):
        return T.exp(x) + T.exp(x)

    assert ops(Mode("py", "merge"), twice) == [T.exp, T.add]
    assert ops(Mode("py", None), twice) == [T.exp, T.exp, T.add]


@pytest.mark.parametrize("name", ["bogus", "FAST_RUN", "o5"])
def test_unknown_optimizers(name):
    with pytest.raises(KeyError, match=name):
        Mode("py", name)


def test_optimizers_that_are_objects():
    assert kinds(Mode("py", Query(["fast_run"]))) == FUSED
    assert kinds(Mode("py", optdb.query(Query(["fast_run"])))) == FUSED
    seen = []
    assert kinds(Mode("py", seen.append)) == WRITTEN
    assert [type(fgraph) for fgraph in seen] == [opwise.FunctionGraph]
    with pytest.raises(TypeError, match="'int' object is not callable"):
        ops(Mode("py", 5))


def test_the_optimizer_property_queries_again():
    assert isinstance(Mode("py", "fast_run").optimizer, SeqOptimizer)


def test_default_optimizer_is_that_of_the_flags(flags):
    flags(optimizer="fast_compile")
    assert kinds(Mode("py")) == kinds(Mode("py", "default")) == PLAIN
    flags(optimizer="o4")
    assert kinds(Mode("py")) == FUSED


# --- the default mode -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, linker, expected",
    [
        ({}, "compiled", FUSED),
        ({"mode": "FAST_COMPILE"}, "compiled", PLAIN),
        ({"mode": "FAST_RUN", "linker": "py"}, "compiled", FUSED),
        ({"linker": "py"}, "plain", FUSED),
        ({"linker": "vm", "optimizer": "fast_compile"}, "plain", PLAIN),
        ({"optimizer": "None"}, "compiled", WRITTEN),
        ({"optimizer": "o1"}, "compiled", PLAIN),
    ],
)  # fmt: skip
def test_the_default_mode_follows_the_flags_at_once(flags, settings, linker, expected):
    get_default_mode()
    flags(**settings)
    mode = get_default_mode()
    assert mode.linker.vm == linker
    assert kinds(None) == expected
    assert get_mode(None) is mode


def test_a_mode_may_be_the_default(flags):
    mine = Mode("py", "merge")
    flags(mode=mine, linker="c", optimizer="o1")
    assert get_mode(None) is mine
    assert kinds(None) == WRITTEN


def test_unknown_default_modes():
    with pytest.raises(ValueError, match="xx"):
        config.mode = "xx"
    assert config.mode == "Mode"


def run(settings, script):
    """What a program prints when the environment holds some flags."""
    base = os.environ["OPWISE_FLAGS"]
    env = {**os.environ, "OPWISE_FLAGS": f"{base},cxx=,{settings}"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "settings, expected",
    [
        ("mode=FAST_COMPILE", "Mode OpWiseCLinker ['fast_compile', 'fast_compile_gpu']"),
        ("linker=py,optimizer=o1", "Mode PerformLinker ['fast_compile', 'fast_compile_gpu']"),
        ("mode=DEBUG_MODE", "DebugMode DebugLinker ['fast_run']"),
        ("mode=ProfileMode,linker=c", "ProfileMode CLinker ['fast_run']"),
        ("mode=NanGuardMode", "NanGuardMode VM_Linker ['fast_run']"),
    ],
)
def test_the_default_mode_comes_from_the_environment(settings, expected):
    script = """
import opwise
mode = opwise.get_default_mode()
print(type(mode).__name__, type(mode.linker).__name__, list(mode.provided_optimizer.include))
"""
    assert run(settings, script) == [expected]


PRINT_OPS = """
import opwise, opwise.tensor as T
for mode in (None, "FAST_RUN"):
    x = T.dmatrix("x")
    f = opwise.function([x], (x * 2 + 1).sum(), mode=mode)
    ops = [node.op for node in f.maker.fgraph.toposort()]
    print([type(op).__name__ for op in ops], any(op.destroy_map for op in ops))
"""


@pytest.mark.parametrize(
    "settings, expected, overwrites",
    [
        ("mode=FAST_COMPILE,optimizer_including=fusion", FUSED, False),
        ("optimizer_excluding=fusion:inplace", PLAIN, False),
        ("mode=FAST_RUN,optimizer_excluding=fusion", PLAIN, True),
        ("optimizer_requiring=zork", WRITTEN, False),
        ("optimizer_excluding=zork,optimizer_including=zork", FUSED, False),
    ],
)
def test_tags_in_flags_apply_to_the_default_mode_only(settings, expected, overwrites):
    printed = [
        f"{[cls.__name__ for cls in classes]} {in_place}"
        for classes, in_place in ((expected, overwrites), (FUSED, False))
    ]
    assert run(settings, PRINT_OPS) == printed


# --- modes as objects -----------------------------------------------------------------------------


def test_text():
    assert str(Mode("py", "fast_run")) == (
        "Mode(linker = py, optimizer = Query{inc=OrderedSet(['fast_run']),ex=OrderedSet(),"
        "require=OrderedSet(),subquery={},position_cutoff=inf,extra_opts=[]})"
    )
    assert str(Mode(PerformLinker(), "merge")).startswith("Mode(linker = PerformLinker(), ")


def test_attributes():
    mode = Mode("c|py", "fast_run")
    assert mode.provided_linker == "c|py"
    assert mode.provided_optimizer.include == Query(["fast_run"]).include
    a = T.dscalar("a")
    function([a], a * 2, mode=mode)
    assert mode.optimizer_time > 0 and mode.linker_time > 0


def test_arguments_come_linker_first():
    assert list(inspect.signature(Mode).parameters) == ["linker", "optimizer"]


VARIANTS = [
    Mode("py", "fast_run"), ProfileMode("py", "fast_run"), DebugMode("fast_run"),
    NanGuardMode(optimizer="fast_run"), MonitorMode(optimizer="fast_run"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:No rewrite has")
@pytest.mark.parametrize("mode", VARIANTS, ids=lambda mode: type(mode).__name__)
def test_tags_give_new_modes_of_the_same_class(mode):
    before = kinds(mode)
    assert before == FUSED
    for method, tags, expected in (
        ("excluding", ["fusion", "inplace"], PLAIN),
        ("requiring", ["zork"], WRITTEN),
        ("including", ["zork"], FUSED),
    ):
        other = getattr(mode, method)(*tags)
        assert type(other) is type(mode) and other is not mode
        assert type(other.linker) is type(mode.linker)
        assert kinds(other) == expected
    assert kinds(mode) == before


def test_tags_add_up():
    mode = Mode("py", None).including("fast_run").excluding("fusion").excluding("inplace")
    assert kinds(mode) == PLAIN
    assert kinds(mode.including("fusion")) == PLAIN, "what is excluded stays so"


@pytest.mark.filterwarnings("ignore:No rewrite has")
def test_variants_keep_the_options_of_their_class():
    seen = []
    monitor = MonitorMode(post_func=lambda i, node, thunk: seen.append(type(node.op)))
    ops_of_a_call(monitor.excluding("fusion", "inplace"))
    assert seen == PLAIN
    guard = NanGuardMode(nan_is_error=True, inf_is_error=False, big_is_error=False).including("x")
    assert (guard.nan_is_error, guard.inf_is_error, guard.big_is_error) == (True, False, False)
    debug = DebugMode(check_isfinite=False, check_py_code=False).excluding("x")
    assert not debug.check_isfinite and not debug.check_py_code
    assert ProfileMode(message="why").excluding("x").message == "why"


def ops_of_a_call(mode):
    x = T.dmatrix("x")
    return function([x], (x * 2 + 1).sum(), mode=mode)(np.ones((2, 2)))


@pytest.mark.parametrize("optimizer", [optdb.query(Query(["merge"])), lambda fgraph: None])
def test_optimizers_that_are_no_queries_have_no_tags(optimizer):
    for method in ("including", "excluding", "requiring", "register"):
        with pytest.raises(AttributeError, match=f"object has no attribute '{method}'"):
            getattr(Mode("py", optimizer), method)("fast_run")


def test_clone():
    mode = Mode("c|py", "fast_run")
    same = mode.clone()
    assert same is not mode and same.linker is mode.linker and str(same) == str(mode)
    assert kinds(mode.clone(optimizer="merge", whatever=3)) == WRITTEN
    kept = mode.clone(link_kwargs={"allow_gc": False})
    assert (kept.linker.allow_gc, mode.linker.allow_gc) == (False, True)
    for again in (pickle.loads(pickle.dumps(kept)), copy.deepcopy(kept), kept.excluding("fusion")):
        assert not again.linker.allow_gc


class Count(Optimizer):
    """A pass that counts how often it runs, and changes nothing."""

    def __init__(self):
        super().__init__()
        self.runs = 0

    def apply(self, fgraph):
        self.runs += 1


def test_register_adds_passes():
    count = Count()
    mode = Mode("py", "fast_run")
    more = mode.register((count, 49.2))
    assert kinds(more) == FUSED
    assert count.runs == 1
    ops(mode)
    assert count.runs == 1


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda mode: pickle.loads(pickle.dumps(mode))]
)
@pytest.mark.parametrize(
    "mode", [m for m in VARIANTS if not isinstance(m, MonitorMode)], ids=lambda m: type(m).__name__
)
def test_modes_can_be_copied(mode, duplicate):
    other = duplicate(mode.excluding("fusion", "inplace"))
    assert type(other) is type(mode)
    assert type(other.linker) is type(mode.linker)
    assert kinds(other) == PLAIN
    assert ops_of_a_call(other) == 12


def test_one_mode_serves_many_functions():
    mode = Mode("c|py", "fast_compile")
    s = shared(1.0)
    f, g = (function([], s * k, mode=mode) for k in (2, 3))
    assert [float(f()), float(g()), float(f())] == [2.0, 3.0, 2.0]
    assert f.maker.linker is not g.maker.linker
    assert mode.linker.fgraph is None


# --- tags that no rewrite has ---------------------------------------------------------------------


@pytest.mark.parametrize("method", ["including", "excluding", "requiring"])
def test_unknown_tags_warn(method):
    mode = Mode("c|py", "fast_run")
    with pytest.warns(UserWarning, match="'inplce' given to mode.* Did you mean inpl"):
        getattr(mode, method)("inplce")


@pytest.mark.parametrize(
    "tags",
    [
        ("inplace", "fusion"), ("local_mul_zero",), ("gpu",), ("cudnn", "conv_dnn", "scan"),
        ("local_remove_all_assert",), ("unsafe", "specialize_device"),
    ],
)  # fmt: skip
def test_tags_of_theano_do_not_warn(tags):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Mode("c|py", "fast_run").excluding(*tags)
        Mode("c|py", "fast_run").including(*tags)


def test_unknown_tags_of_flags_warn():
    env = {**os.environ, "OPWISE_FLAGS": "optimizer_excluding=nosuchopt:inplace"}
    program = "import opwise, opwise.tensor as T; x = T.dscalar(); opwise.function([x], x + 1)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stderr.count("No rewrite has the name or tag 'nosuchopt'") == 1
    assert "the flag optimizer_excluding" in done.stderr


@pytest.mark.parametrize(
    "tag", ["conv_gemm", "conv_dnn", "local_abstractconv_gradinputs_gemm", "local_conv2d_cpu"]
)
def test_rewrites_of_convolutions_that_theano_had_can_be_named(tag):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mode = get_mode("FAST_RUN").excluding(tag).including(tag)
    with pytest.warns(UserWarning, match="local_conv_of_nothing"):
        mode.excluding("local_conv_of_nothing")
