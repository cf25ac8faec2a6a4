"""The pipeline: its stages, what queries take of it, how rules join it, and the entry to it."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

from opwise import Apply, FunctionGraph, Op
from opwise.compile import optdb
from opwise.config import change_flags, config
from opwise.graph import provenance
from opwise.graph.fgraph import Interface
from opwise.optimizers import stages
from opwise.optimizers.database import DB, Query, SequenceDB
from opwise.optimizers.merge import MergeOptimizer
from opwise.optimizers.navigators import EquilibriumOptimizer
from opwise.optimizers.pattern import OpRemove
from opwise.optimizers.rule import declare, local_optimizer, rule
from opwise.optimizers.stages import (
    PIPELINE,
    RULE_MODULES,
    Stage,
    optimize,
    register_canonicalize,
    register_specialize,
    register_stabilize,
    register_uncanonicalize,
    register_useless,
)
from opwise.tensor import constant
from opwise.tensor.elemwise import elemwise
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

vector = tensor_type("float64", (False,))
add, exp, mul, neg = map(elemwise, ["add", "exp", "mul", "neg"])


class Mine(Op):
    """An Op that only the rules of these tests know."""

    __props__ = ("letter",)

    def __init__(self, letter="a"):
        self.letter = letter

    def make_node(self, x):
        return Apply(self, [x], [x.type()])


@pytest.fixture
def x():
    return vector("x")


@pytest.fixture
def joined():
    """Takes the names of rules that a test adds to stages, and removes them afterwards."""
    before = {}
    for stage in PIPELINE:
        holder = _holder(stage.name)
        if holder is not None:
            before[stage.name] = set(holder.names())
    yield
    for name, names in before.items():
        holder = _holder(name)
        for added in set(holder.names()) - names:
            holder.remove_tags(added, *holder.tags_of(added))
            del holder._objects[added]


def _holder(name):
    within = {s.name: s.within for s in PIPELINE}[name]
    found = (optdb if within is None else optdb[within])[name]
    return getattr(found, "db", found) if isinstance(found, DB) else None


def sequence(**query):
    return optdb.query(Query(**query)).labels


# --- the list -------------------------------------------------------------------------------------


#: the stages in order, with their positions in Theano
IN_THEANO = [
    ("inline_ofg_expansion", -0.01),
    ("inline_ofg_on_device", None),
    ("merge1", 0),
    ("ShapeOpt", 0.1),
    ("useless", 0.6),
    ("merge1.1", 0.65),
    ("pre_local_IncSubtensor_serialize", 0.99),
    ("canonicalize", 1),
    ("merge1.2", 1.2),
    ("stabilize", 1.5),
    ("local_fill_to_alloc", 1.51),
    ("local_elemwise_alloc", 1.52),
    ("local_log_sum_exp", 1.6),
    ("BlasOpt", 1.7),
    ("specialize", 2),
    ("crossentropy_to_crossentropy_with_softmax", 2.01),
    ("uncanonicalize", 3),
    ("specialize_device", 48.6),
    ("sparse_products_on_device", None),
    ("loop_steps_on_device", None),
    ("merge1.3", None),
    ("window_sums", None),
    ("row_fusion", None),
    ("sums_of_deviations", None),
    ("elemwise_fusion", 49),
    ("merge2", 49),
    ("local_alloc_empty_to_zeros", 49.3),
    ("add_destroy_handler", 49.5),
    ("local_inplace_addsd_ccode", 60),
    ("local_inplace_remove0", 60),
    ("local_inplace_setsubtensor", 60),
    ("local_inplace_sparse_block_gemv", 60),
    ("local_inplace_sparse_block_outer", 60),
    ("typed_list_inplace_opt", 60),
    ("local_addsd_ccode", 61),
    ("InplaceBlasOpt", 70),
    ("inplace_elemwise_opt", 75),
    ("cond_make_inplace", 95),
    ("random_make_inplace", 99),
    ("random_make_inplace_mrg", 99),
    ("merge3", 100),
    ("place_on_device", None),
]


def test_stages_stand_at_the_positions_that_programs_know():
    assert [(s.name, s.theano) for s in PIPELINE if s.within is None] == IN_THEANO
    found = optdb.positions()
    assert list(found) == [name for name, _ in IN_THEANO]
    assert {n: found[n] for n, at in IN_THEANO if at is not None} == {
        name: at for name, at in IN_THEANO if at is not None
    }
    assert optdb["BlasOpt"].positions() == {
        "local_dot_to_dot22": 0,
        "gemm_optimizer": 10,
        "local_dot22_to_dot22scalar": 11,
        "local_gemm_to_gemv": 15,
        "use_c_blas": 20,
    }
    assert optdb["elemwise_fusion"].positions() == {
        "local_add_mul_fusion": 0,
        "composite_elemwise_fusion": 1,
        "map_reduce_fusion": 2,
        "share_reduction_loops": 3,
        "conv_elemwise_fusion": 4,
        "gather_fusion": 5,
    }


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("mine", -1), ("mine", 0), ("mine", 0.3), ("mine", 1), ("another", 1), ("mine", 1.55),
        ("mine", 2.5), ("mine", 48.65), ("mine", 48.9), ("mine", 48.99), ("another", 49),
        ("mine", 49), ("zz", 49), ("mine", 49.5), ("another", 49.5), ("mine", 60), ("another", 60),
        ("zz", 60), ("mine", 75), ("mine", 99), ("mine", 200), ("zz", "last"),
    ],
)  # fmt: skip
def test_a_pass_of_a_program_stands_where_theano_puts_it(monkeypatch, name, at):
    optdb.names()
    for kept in ("_objects", "_tags", "_places", "__position__"):
        monkeypatch.setattr(optdb, kept, dict(getattr(optdb, kept)))
    optdb.register(name, EquilibriumOptimizer([OpRemove(Mine())]), at)
    legacy = [(position, one) for one, position in IN_THEANO if position is not None]
    before = [one for one in legacy if at == "last" or one < (at, name)]
    order = list(optdb.positions())
    own = {one for one, position in IN_THEANO if position is None}
    if at in (200, "last"):
        assert order[-1] == name
        return
    assert [n for n in order if n not in own].index(name) == len(before)
    if at not in {one for one, _ in legacy}:  # what Theano lacks comes as late as it can
        assert order[order.index(name) - 1] == before[-1][1] if before else order[0] == name


def of(name, theano=None, kind="merge", within=None):
    return Stage(name, theano, kind, "", "", within)


def test_what_theano_lacks_stands_before_what_follows_or_behind_all():
    found = stages.positions(
        [of("a"), of("b"), of("c", 1), of("s", None, "sequence"), of("x", within="s"), of("d", 2),
         of("y", 0, within="s"), of("z", within="s"), of("e"), of("f")]
    )  # fmt: skip
    step = 2**-20
    assert list(found.items()) == [
        ("a", 1 - 2 * step), ("b", 1 - step), ("c", 1), ("s", 2 - step), ("d", 2), ("e", 3),
        ("f", 4), ("x", -step), ("y", 0), ("z", 1),
    ]  # fmt: skip


def test_the_list_has_no_ties_and_no_unknown_neighbours():
    for wrong in (
        [of("b", 1), of("a", 1)],
        [of("a", 2), of("b", 1)],
        [of("a", 1), of("a", 1)],
        [of("a", 1), of("a", 2)],
        [of("a"), of("a")],
        [of("s", 1, "sequence"), of("s", within="s")],
        # no room between two stages of Theano
        [of("a", 1), of("b"), of("c", 1 + 2**-20)],
    ):
        with pytest.raises(ValueError, match=r"positions ascend|There are two stages"):
            stages.positions(wrong)
    for wrong in ([of("a", within="s")], [of("s", 1), of("a", within="s")],
                  [of("a", within="s"), of("s", 1, "sequence")]):  # fmt: skip
        with pytest.raises(ValueError, match="'a' is part of 's', which is no sequence before it"):
            stages.positions(wrong)


def test_a_wrong_list_is_found_when_the_pipeline_is_built(monkeypatch):
    monkeypatch.setattr(stages, "PIPELINE", (*PIPELINE, of("merge0", 100)))
    monkeypatch.setattr(stages, "optdb", SequenceDB(fill=stages._build))
    with pytest.raises(ValueError, match=r"'place_on_device' at 99.* is behind 'merge3' at 100"):
        stages.optdb.names()


#: prints the order of all stages and rules; rule modules are imported in the order of a seed, some
#: of them when the pipeline is there and has a rule of a program
_SHUFFLED = """
import importlib, random, sys
from opwise.graph import upcalls
from opwise.optimizers import rule, stages
from opwise.optimizers.database import DB

random.seed(int(sys.argv[1]))
upcalls.LOADED_WITH = {p: random.sample(m, len(m)) for p, m in upcalls.LOADED_WITH.items()}
stages.LOOP_RULES = random.sample(stages.LOOP_RULES, len(stages.LOOP_RULES))
modules = [*stages.RULE_MODULES, "opwise.loops", "opwise.sparse"]
random.shuffle(modules)
early = random.randrange(len(modules))
for module in modules[:early]:
    importlib.import_module(module)
holders = ("useless", "canonicalize", "specialize", "local_inplace_addsd_ccode")
for stage in holders:
    stages.optdb[stage].register("of_program", rule.Rule(print), "fast_run")
for module in modules[early:]:
    importlib.import_module(module)

def show(db, name):
    names = db.positions() if hasattr(db, "positions") else db.names()
    print(name, *names)
    for each in names:
        if isinstance(db[each], DB):
            show(getattr(db[each], "db", db[each]), each)

show(stages.optdb, "all")
chosen = stages.optdb.query("+fast_run")
print([[str(r) for r in getattr(p, "rules", ())] for p in chosen])
print([str(p.local_opt) for p in chosen if hasattr(p, "local_opt")])
"""


def test_the_order_depends_on_no_import_and_no_hash():
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _SHUFFLED, str(seed)],
            cwd=_root(),
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(4)
    ]
    printed = [one.communicate()[0] for one in started]
    assert not any(one.returncode for one in started)
    assert len(set(printed)) == 1
    assert "scan_remove_unused" in printed[0] and "local_usmm" in printed[0]
    assert printed[0].count("of_program\n") == 4  # behind opwise's own


def test_every_stage_says_what_it_does_in_a_sentence():
    assert all(stage.does.endswith(".") and stage.does[0].isupper() for stage in PIPELINE)


def test_modules_of_rules_exist():
    assert not [name for name in RULE_MODULES if importlib.util.find_spec(name) is None]


def test_rules_are_loaded_when_the_first_graph_is_optimized():
    code = (
        "import sys, opwise.optimizers.stages as s\n"
        "assert not [m for m in sys.modules if m.startswith('opwise.optimizers.rules.')]\n"
        "s.optdb.query('+fast_run')\n"
        "assert 'opwise.optimizers.rules.fusion' in sys.modules\n"
        # which only graphs for a device need
        "assert not [m for m in sys.modules if m.startswith('opwise.gpu')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=_root())


def _root():
    import pathlib

    import opwise

    return pathlib.Path(opwise.__file__).parent.parent


# --- what queries take ----------------------------------------------------------------------------


#: the stages that only a tag of their own selects
REQUESTED = {
    "local_alloc_empty_to_zeros": "alloc_empty_to_zeros",
    "inline_ofg_on_device": "gpu",
    "sparse_products_on_device": "gpu",
    "loop_steps_on_device": "gpu",
    "place_on_device": "gpu",
}


def test_fast_run_takes_all_stages_that_need_no_request():
    taken = sequence(include=["fast_run"])
    assert taken == [name for name in optdb.positions() if name not in REQUESTED]


def test_a_linker_of_a_device_asks_for_more():
    assert sequence(include=["gpu"]) == [
        "inline_ofg_on_device", "sparse_products_on_device", "loop_steps_on_device",
        "place_on_device",
    ]  # fmt: skip
    for tag in REQUESTED.values():
        taken = sequence(include=["fast_run", tag])
        assert taken == [n for n in optdb.positions() if REQUESTED.get(n, tag) == tag]
    assert sequence(include=["fast_run", *REQUESTED.values()]) == list(optdb.positions())


def test_fast_compile_takes_few():
    assert sequence(include=["fast_compile", "fast_compile_gpu"]) == [
        "inline_ofg_expansion",
        "merge1",
        "ShapeOpt",
        "useless",
        "merge1.1",
        "canonicalize",
        "merge1.2",
        "BlasOpt",
        "specialize",
        "crossentropy_to_crossentropy_with_softmax",
        "specialize_device",
    ]
    blas = optdb.query("+fast_compile")[7]
    assert blas.name == "BlasOpt" and blas.labels == ["local_dot_to_dot22"]


def test_merge_takes_the_merges():
    merges = optdb.query("+merge")
    assert merges.labels == ["merge1", "merge1.1", "merge1.2", "merge1.3", "merge2", "merge3"]
    assert all(isinstance(one, MergeOptimizer) for one in merges)


def test_nothing_takes_nothing():
    assert sequence(include=[]) == []
    assert sequence(include=["fast_run"], require=["zork"]) == []


def test_stabilize_stops_after_its_stage():
    assert sequence(include=["fast_run"], position_cutoff=1.5000001)[-1] == "stabilize"


@pytest.mark.parametrize(
    ("tag", "left_out"),
    [
        ("fusion", {"elemwise_fusion", "row_fusion", "sums_of_deviations", "window_sums"}),
        ("local_elemwise_fusion", {"elemwise_fusion"}),
        (
            "inplace",
            {
                "add_destroy_handler",
                "local_inplace_setsubtensor",
                "local_inplace_remove0",
                "local_inplace_addsd_ccode",
                "InplaceBlasOpt",
                "inplace_elemwise_opt",
                "typed_list_inplace_opt",
                "local_inplace_sparse_block_gemv",
                "local_inplace_sparse_block_outer",
                "cond_make_inplace",
                "random_make_inplace",
                "random_make_inplace_mrg",
            },
        ),
        ("inplace_elemwise_opt", {"inplace_elemwise_opt"}),
        ("inplace_elemwise_optimizer", {"inplace_elemwise_opt"}),
        ("blas_opt_inplace", {"InplaceBlasOpt"}),
        ("canonicalize", {"canonicalize"}),
        ("ShapeOpt", {"ShapeOpt"}),
        ("xent", {"crossentropy_to_crossentropy_with_softmax"}),
        ("merge", {"merge1", "merge1.1", "merge1.2", "merge1.3", "merge2", "merge3"}),
        ("no_such_tag", set()),
    ],
)
def test_tags_that_programs_exclude(tag, left_out):
    taken = sequence(include=["fast_run"], exclude=[tag])
    assert set(optdb.positions()) - set(taken) - REQUESTED.keys() == left_out


def test_fusion_may_be_added_to_fast_compile():
    both = optdb.query("+fast_compile", "+fusion")
    fusion = both[both.labels.index("elemwise_fusion")]
    assert fusion.labels == list(optdb["elemwise_fusion"].positions())


@pytest.mark.parametrize("stage", ["canonicalize", "stabilize", "specialize", "uncanonicalize"])
def test_constants_are_folded_in_the_stages_that_know_it_by_name(stage):
    assert {"fast_run", "fast_compile"} <= set(optdb[stage].tags_of("topo_constant_folding"))
    without = optdb.query("+fast_run", "-topo_constant_folding")
    rules = without[without.labels.index(stage)].rules
    assert "topo_constant_folding" not in map(str, rules)


# --- joining --------------------------------------------------------------------------------------


def names_in(stage, *tags):
    answer = optdb.query(*tags)
    one = answer[answer.labels.index(stage)]
    return {str(r) for r in getattr(one, "rules", None) or one._rules}


def test_register_as_a_bare_decorator(joined):
    @register_canonicalize
    @local_optimizer([Mine])
    def local_mine(node):
        return [node.inputs[0]]

    assert str(local_mine) == "local_mine"
    assert "local_mine" in names_in("canonicalize", "+fast_run")
    assert "local_mine" not in names_in("canonicalize", "+fast_compile")
    assert "local_mine" not in names_in("canonicalize", "+fast_run", "-local_mine")


def test_register_with_tags_and_a_name(joined):
    @register_canonicalize("fast_compile", "special")
    @local_optimizer([Mine])
    def local_one(node): ...

    @register_specialize()
    @local_optimizer([Mine])
    def local_two(node): ...

    register_stabilize(OpRemove(Mine("z")), "special", name="drop_z")
    assert "local_one" in names_in("canonicalize", "+fast_compile")
    assert "local_two" in names_in("specialize", "+fast_run")
    assert "drop_z" in optdb["stabilize"]
    assert "special" in optdb["stabilize"].tags_of("drop_z")
    assert "local_one" not in names_in("canonicalize", "+fast_run", "-special")


@pytest.mark.parametrize("register", [register_useless, register_uncanonicalize])
def test_other_stages_to_register_with(joined, register):
    @register
    @local_optimizer([Mine])
    def local_mine(node): ...

    assert "local_mine" in names_in(register.__name__.removeprefix("register_"), "+fast_run")


def test_a_name_is_taken_once(joined):
    def make():
        @local_optimizer([Mine])
        def local_mine(node): ...

        return local_mine

    register_canonicalize(make())
    with pytest.raises(ValueError, match="existing tag or the name"):
        register_canonicalize(make())
    register_specialize(make())


def test_a_rule_declared_late_joins_its_stages(joined, x):
    @rule(Mine, stage=("canonicalize", "local_fill_to_alloc"), tags=("only_when_asked",))
    def late(fgraph, node):
        return [neg(*node.inputs)]

    fgraph = FunctionGraph([x], [Mine()(x)], interface=Interface())
    optimize(fgraph, Query(["fast_run"], exclude=["local_fill_to_alloc"]))
    assert isinstance(fgraph.outputs[0].owner.op, Mine)
    optimize(fgraph, Query(["fast_run", "late"], exclude=["local_fill_to_alloc"]))
    assert fgraph.outputs[0].owner.op == neg
    # a stage that stands for one rewrite lends its rules its own tags
    assert "late" in names_in("local_fill_to_alloc", "+fast_run")


def test_rules_are_declared_for_stages_that_hold_rules(joined):
    for stage in ("merge1", "no_such_stage", "BlasOpt/x"):
        with pytest.raises(ValueError, match="which is not one that holds rules"):

            @rule(Mine, stage=stage)
            def misplaced(fgraph, node): ...


def test_opwise_declares_rules_in_the_modules_of_the_list(joined):
    with pytest.raises(ValueError, match="declares unlisted: RULE_MODULES lacks it"):
        declare("canonicalize", OpRemove(Mine()), name="unlisted", module="opwise.optimizers.rules")
    assert "unlisted" not in optdb["canonicalize"]


def test_a_program_may_add_a_pass_of_its_own(x):
    one = EquilibriumOptimizer([OpRemove(Mine())])
    optdb.register("drop_mine", one, 48.9, "fast_run", "gpuarray")
    try:
        fgraph = FunctionGraph([x], [neg(Mine()(x))])
        record = optimize(fgraph, Query(["fast_run"]))
        assert not any(isinstance(n.op, Mine) for n in fgraph.apply_nodes)
        assert "drop_mine" in [p.name for p in record.passes]
        assert "drop_mine" not in sequence(include=["fast_run"], exclude=["gpuarray"])
    finally:
        optdb.remove_tags("drop_mine", *optdb.tags_of("drop_mine"))
        del optdb._objects["drop_mine"]


# --- the entry ------------------------------------------------------------------------------------


def test_optimize_returns_a_record(x):
    fgraph = FunctionGraph([x], [add(exp(x), add(constant([1.0]), constant([2.0])))])
    record = optimize(fgraph, Query(["fast_run"], exclude=["inplace", "fusion"]))
    assert record.kind == "SeqOptimizer"
    assert (record.nodes_before, record.nodes_after) == (3, len(fgraph.apply_nodes))
    assert record.seconds >= sum(p.seconds for p in record.passes) > 0
    assert [p.name for p in record.passes][1:4] == ["merge1", "ShapeOpt", "useless"]
    assert record.applied()["topo_constant_folding"] >= 1
    assert fgraph.outputs[0].owner.op == add
    assert fgraph.shape_feature is not None


def test_the_record_goes_into_a_profile(x):
    class Profile:
        optimizer_time = 1.0
        optimizer_profile = None

    record = optimize(FunctionGraph([x], [exp(x)]), Query(["merge"]), profile=Profile)
    assert Profile.optimizer_profile is record
    assert Profile.optimizer_time == 1.0 + record.seconds


def test_optimize_takes_passes_functions_and_nothing(x):
    def graph():
        return FunctionGraph([x], [add(exp(x), exp(x))])

    fgraph = graph()
    record = optimize(fgraph, MergeOptimizer())
    assert len(fgraph.apply_nodes) == 2
    assert [(p.name, p.counts["merged"]) for p in record.passes] == [("merge", 1)]
    fgraph, called = graph(), []
    optimize(fgraph, called.append)
    assert called == [fgraph]
    fgraph = graph()
    assert optimize(fgraph, None).passes == [] and len(fgraph.apply_nodes) == 3


def test_what_rewrites_make_has_no_trace_of_its_own_but_origins(joined, x):
    recorded = []

    @rule(Mine, stage="canonicalize")
    def to_neg(fgraph, node):
        recorded.append(provenance.recording())
        return [neg(*node.inputs)]

    fgraph = FunctionGraph([x], [Mine()(x)])
    first = fgraph.outputs[0].owner
    optimize(fgraph, Query(["fast_run"]))
    made = fgraph.outputs[0].owner
    assert recorded == [False] and provenance.recording()
    assert made.trace is None and made.origins == (first,)


def test_test_values_follow_the_flag_for_rewrites(joined, x):
    seen = []

    @rule(Mine, stage="canonicalize")
    def look(fgraph, node):
        seen.append(config.compute_test_value)

    with change_flags(compute_test_value="raise", compute_test_value_opt="ignore"):
        x.tag.test_value = np.zeros(2)
        node = Mine().make_node(x)
        optimize(FunctionGraph([x], node.outputs), Query(["fast_run"]))
        assert config.compute_test_value == "raise"
    assert set(seen) == {"ignore"}


def test_an_optimized_graph_keeps_no_shapes_in_memory(x):
    fgraph = FunctionGraph([x], [exp(x)])
    optimize(fgraph, Query(["fast_run"]))
    assert fgraph.shape_feature._known == {}


def test_two_graphs_are_optimized_alike():
    def result():
        a, b = vector("a"), vector("b")
        shared = mul(a, b)
        outs = [add(exp(shared), shared), add(shared, exp(mul(a, b))), neg(constant([1.0, 2.0]))]
        fgraph = FunctionGraph([a, b], outs)
        optimize(fgraph, Query(["fast_run"]))
        return str(fgraph)

    assert len({result() for _ in range(3)}) == 1


def test_stages_are_found_lazily_by_import_string():
    assert stages._import("opwise.optimizers.merge:MergeOptimizer") is MergeOptimizer
