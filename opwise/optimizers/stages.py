"""The pipeline: every stage of the optimization of a graph, and every module of rules, in order.

``PIPELINE`` is the order of the stages, ``RULE_MODULES`` that of the rules in a stage: neither
depends on what is imported first. Programs may register passes at positions of Theano, see
``positions``. A rule names the stages that it takes part in (``rule(..., stage="canonicalize")``).
The modules of rules are imported when the first graph is optimized, not when opwise is.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

from opwise.config import config, thread_flags
from opwise.graph import provenance, upcalls
from opwise.graph.features import DestroyHandler
from opwise.graph.fgraph import FunctionGraph
from opwise.optimizers import database as databases
from opwise.optimizers.database import (
    DB,
    EquilibriumDB,
    LocalGroupDB,
    Query,
    SequenceDB,
    TopoDB,
    own_rewrites,
)
from opwise.optimizers.merge import MergeOptimizer
from opwise.optimizers.passes import OptimizationProfile, Optimizer, SeqOptimizer, run_pass
from opwise.optimizers.rule import Declaration, declarations


@dataclass(frozen=True)
class Stage:
    """One stage of the pipeline.

    Its kinds: 'equilibrium' applies rules until none changes the graph. 'group' tries the rules on
    each Apply once, from the inputs to the outputs. 'in_to_out' does the same for a stage that is
    one rewrite: its rules have the tags of the stage as well. 'sequence' runs the stages behind it
    that name it in ``within``. 'merge' merges equal Applys. An import string "module:name" is a
    pass, or the class of one.
    """

    name: str
    #: its position in Theano, in the pipeline or in the stage ``within``; None if Theano lacks it
    theano: float | None
    #: one of the kinds above
    kind: str
    #: the tags that select it, separated by spaces
    tags: str
    #: what it does to the graph, a sentence
    does: str
    #: the 'sequence' that it is part of
    within: str | None = None
    #: whether the rules are tried on the Applys that they make
    new_trees: bool = True
    #: whether the import string is resolved when a graph goes through the stage, not before
    imported_late: bool = False


class ImportedLate(Optimizer):
    """A pass of a class that is imported when a graph first goes through it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def apply(self, fgraph: FunctionGraph) -> None:
        _import(self.path)().apply(fgraph)


#: all stages; the order in which they run is the order here
PIPELINE = (
    Stage("inline_ofg_expansion", -0.01, "in_to_out", "fast_run fast_compile",
          "Replaces OpFromGraph Ops made with inline=True by their graphs."),
    Stage("inline_ofg_on_device", None, "in_to_out", "gpu",
          "Replaces the other OpFromGraph Ops, so that the device can run what is in them."),
    Stage("merge1", 0, "merge", "fast_run fast_compile merge",
          "Merges equal Applys and equal constants."),
    Stage("ShapeOpt", 0.1, "opwise.optimizers.shapefeature:ShapeOptimizer",
          "fast_run fast_compile",
          "Attaches the ShapeFeature: rules can ask for symbolic shapes from here on."),
    Stage("useless", 0.6, "group", "fast_run fast_compile",
          "Removes Applys that do nothing, before all other rules are tried."),
    Stage("merge1.1", 0.65, "merge", "fast_run fast_compile merge",
          "Merges Applys that have become equal."),
    Stage("pre_local_IncSubtensor_serialize", 0.99, "in_to_out", "fast_run",
          "Turns a sum of increments of parts into successive increments of one array."),
    Stage("canonicalize", 1, "equilibrium", "fast_run fast_compile canonicalize_db",
          "Brings equivalent expressions into one form, and computes constants."),
    Stage("merge1.2", 1.2, "merge", "fast_run fast_compile merge",
          "Merges Applys that have become equal."),
    Stage("stabilize", 1.5, "equilibrium", "fast_run",
          "Replaces expressions that overflow or cancel by stable ones."),
    Stage("local_fill_to_alloc", 1.51, "in_to_out", "fast_run",
          "Replaces fills in the shape of an array by allocations."),
    Stage("local_elemwise_alloc", 1.52, "in_to_out", "fast_run",
          "Removes allocations where broadcasting is enough."),
    Stage("local_log_sum_exp", 1.6, "in_to_out", "fast_run",
          "Subtracts the maximum inside the logarithm of a sum of exponentials.", new_trees=False),
    Stage("BlasOpt", 1.7, "sequence", "fast_run fast_compile",
          "Replaces products of matrices by calls of BLAS."),
    Stage("local_dot_to_dot22", 0, "in_to_out", "fast_run fast_compile",
          "Turns products of two float matrices of one dtype into Dot22.", within="BlasOpt"),
    Stage("gemm_optimizer", 10, "opwise.optimizers.rules.blas:GemmOptimizer", "fast_run",
          "Fuses a product, its scale factors and a sum into one gemm.", within="BlasOpt"),
    Stage("local_dot22_to_dot22scalar", 11, "in_to_out", "fast_run",
          "Fuses a product and its scale factor into Dot22Scalar.", within="BlasOpt"),
    Stage("local_gemm_to_gemv", 15, "equilibrium", "fast_run",
          "Turns products with one row or column into gemv, ger or dot.", within="BlasOpt"),
    Stage("use_c_blas", 20, "in_to_out", "fast_run c_blas",
          "Lets gemv and ger call BLAS directly, under the names that Theano's C code had.",
          within="BlasOpt"),
    Stage("specialize", 2, "equilibrium", "fast_run fast_compile_gpu",
          "Brings expressions into the form that is fastest to compute."),
    Stage("crossentropy_to_crossentropy_with_softmax", 2.01, "in_to_out",
          "fast_run fast_compile_gpu xent",
          "Fuses a softmax with the cross entropy that reads it."),
    Stage("uncanonicalize", 3, "equilibrium", "fast_run",
          "Replaces canonical forms that are slow to compute."),
    Stage("specialize_device", 48.6, "equilibrium", "fast_run fast_compile",
          "Chooses forms that are faster on this device only."),
    Stage("sparse_products_on_device", None, "in_to_out", "gpu",
          "Lets products with CSC matrices be products with CSR matrices."),
    Stage("loop_steps_on_device", None, "in_to_out", "gpu",
          "Brings the steps of loops into a form that the device can run."),
    Stage("merge1.3", None, "merge", "fast_run merge",
          "Merges Applys that have become equal, so that fusion sees what they share."),
    Stage("window_sums", None, "opwise.optimizers.rules.windows:WindowSums", "fast_run fusion",
          "Replaces sums of shifted slices of padded arrays by sums of neighbours along an axis."),
    Stage("row_fusion", None, "opwise.optimizers.rules.rowwise:RowFusion", "fast_run fusion",
          "Fuses reductions of rows with the work on the same rows before and behind them."),
    Stage("sums_of_deviations", None, "opwise.optimizers.rules.deviations:DeviationOptimizer",
          "fast_run fusion",
          "Computes the sums of a variance in the pass that computes the mean."),
    Stage("elemwise_fusion", 49, "sequence",
          "fast_run fusion local_elemwise_fusion FusionOptimizer",
          "Fuses elementwise Applys and reductions into loops."),
    Stage("local_add_mul_fusion", 0, "opwise.optimizers.rules.fusion:AddMulFusion",
          "fast_run fusion", "Flattens sums of sums and products of products.",
          within="elemwise_fusion"),
    Stage("composite_elemwise_fusion", 1, "opwise.optimizers.rules.fusion:FusionOptimizer",
          "fast_run fusion", "Fuses elementwise Applys into Composites.", within="elemwise_fusion"),
    Stage("map_reduce_fusion", None, "opwise.optimizers.rules.fusion:MapReduceOptimizer",
          "fast_run fusion", "Fuses a reduction with the elementwise Apply that only it reads.",
          within="elemwise_fusion"),
    Stage("share_reduction_loops", None, "opwise.optimizers.rules.fusion:ReductionSharer",
          "fast_run fusion", "Computes sums that read the same array in one loop.",
          within="elemwise_fusion"),
    Stage("conv_elemwise_fusion", None, "opwise.optimizers.rules.epilogue:ConvElemwiseFusion",
          "fast_run fusion",
          "Lets a convolution do the elementwise work on its result, if only that reads it.",
          within="elemwise_fusion"),
    Stage("gather_fusion", None, "opwise.optimizers.rules.gathers:GatherFusion",
          "fast_run fusion",
          "Lets loops over vectors read elements at indices, if only one loop reads them.",
          within="elemwise_fusion"),
    Stage("merge2", 49, "merge", "fast_run merge", "Merges Applys that have become equal."),
    Stage("local_alloc_empty_to_zeros", 49.3, "in_to_out", "alloc_empty_to_zeros",
          "Replaces memory of any content by zeros, if requested."),
    Stage("add_destroy_handler", 49.5, "opwise.optimizers.passes:AddDestroyHandler",
          "fast_run inplace",
          "Attaches the DestroyHandler: Ops may overwrite their inputs from here on."),
    Stage("local_inplace_addsd_ccode", 60, "in_to_out", "fast_run inplace",
          "Adds sparse matrices, and products with them, to dense matrices in place."),
    Stage("local_inplace_remove0", 60, "in_to_out", "fast_run inplace",
          "Removes zeros from sparse matrices in place."),
    Stage("local_inplace_setsubtensor", 60, "opwise.optimizers.rules.inplace:InplaceSubtensor",
          "fast_run inplace",
          "Sets and increments parts of arrays in place."),
    Stage("local_inplace_sparse_block_gemv", 60, "in_to_out", "fast_run inplace",
          "Adds products of blocks to an array in place."),
    Stage("local_inplace_sparse_block_outer", 60, "in_to_out", "fast_run inplace",
          "Adds outer products to blocks in place."),
    Stage("typed_list_inplace_opt", 60, "in_to_out", "fast_run inplace",
          "Lets operations on lists change the list itself."),
    Stage("local_addsd_ccode", 61, "in_to_out", "fast_run",
          "Adds sparse matrices to dense ones in C."),
    Stage("InplaceBlasOpt", 70, "opwise.optimizers.rules.inplace:InplaceBlas",
          "fast_run inplace blas_opt_inplace",
          "Lets gemm, gemv and ger, factorizations and solutions work in place."),
    Stage("inplace_elemwise_opt", 75, "opwise.optimizers.rules.inplace:InplaceElemwiseOptimizer",
          "fast_run inplace inplace_opt inplace_elemwise_optimizer",
          "Writes elementwise results over an operand that is not read later."),
    Stage("cond_make_inplace", 95, "in_to_out", "fast_run inplace",
          "Lets conditions return the value of their first branch, not a copy.", new_trees=False),
    Stage("random_make_inplace", 99, "opwise.optimizers.rules.inplace:InplaceRandom",
          "fast_run inplace", "Advances the states of numpy's random generators in place."),
    Stage("random_make_inplace_mrg", 99, "opwise.optimizers.rules.inplace:InplaceStreams",
          "fast_run inplace", "Advances the states of random streams in place."),
    Stage("merge3", 100, "merge", "fast_run merge", "Merges Applys that have become equal."),
    Stage("place_on_device", None, "opwise.gpu.placement.rewrite:PlaceOnDevice", "gpu",
          "Divides Applys between host and device, and inserts transfers.", imported_late=True),
)  # fmt: skip

#: all modules that define rules: the rules of a stage are tried in this order, those of one module
#: in the order of definition
RULE_MODULES = (
    "opwise.optimizers.folding",
    "opwise.optimizers.rules.canonicalize",
    "opwise.optimizers.rules.reductions",
    "opwise.optimizers.rules.shape",
    "opwise.optimizers.rules.subtensor",
    "opwise.optimizers.rules.joins",
    "opwise.optimizers.rules.masks",
    "opwise.optimizers.rules.convolution",
    "opwise.optimizers.rules.pooling",
    "opwise.optimizers.rules.stabilize",
    "opwise.optimizers.rules.specialize",
    "opwise.optimizers.rules.nnet",
    "opwise.optimizers.rules.linalg",
    "opwise.optimizers.rules.blas",
    "opwise.optimizers.rules.requested",
    "opwise.optimizers.rules.fusion",
    "opwise.optimizers.rules.inplace",
    "opwise.optimizers.rules.lists",
    "opwise.optimizers.rules.conditions",
    "opwise.optimizers.rules.blocks",
    "opwise.optimizers.rules.sparse",
    "opwise.compile.fromgraph",
    "opwise.loops.rules.unused",  # what nothing reads need not be moved
    "opwise.loops.rules.after",
    "opwise.loops.rules.before",
    "opwise.loops.rules.device",
    "opwise.loops.rules.memory",
    "opwise.loops.rules.merging",
    "opwise.loops.rules.together",
    "opwise.loops.rules.unrolling",  # what leaves the loop need not be repeated
)

#: those that ``opwise.loops`` imports: programs without loops do not
LOOP_RULES = tuple(m for m in RULE_MODULES if m.startswith("opwise.loops."))

#: how far before the next stage one stands that Theano lacks
_STEP = 2.0**-20


def positions(stages: Iterable[Stage]) -> dict[str, float]:
    """Return the positions of stages, for programs that register passes between them.

    A stage of Theano has the position that it has there. One that Theano lacks stands directly
    before the next stage of Theano, behind what programs put between the two; each behind the last
    one stands 1 further.

    Raises ValueError if the positions are in another order than the stages, if two are equal (in
    Theano some are, and their names decide), or if a stage is not behind the sequence that it is
    part of.
    """
    sequences: dict[str | None, list[Stage]] = {None: []}
    found: dict[str, float] = {}
    for stage in stages:
        if stage.within not in sequences:
            raise ValueError(
                f"The stage {stage.name!r} is part of {stage.within!r}, which is no sequence "
                "before it"
            )
        sequences[stage.within].append(stage)
        if stage.kind == "sequence":
            sequences[stage.name] = []
    for parts in sequences.values():
        at = [stage.theano for stage in parts]
        for k in reversed(range(1, len(at))):
            behind = at[k]
            if at[k - 1] is None and behind is not None:
                at[k - 1] = behind - _STEP
        last = (-1.0, "")
        for stage, theano in zip(parts, at, strict=True):
            here = last[0] + 1 if theano is None else theano
            if (here, stage.name if stage.theano is not None else "") <= last:
                raise ValueError(
                    f"The stage {stage.name!r} at {here} is behind {last[1]!r} at {last[0]}: "
                    "positions ascend, and names among equal ones of Theano"
                )
            if stage.name in found:
                raise ValueError(f"There are two stages {stage.name!r}")
            found[stage.name], last = here, (here, stage.name)
    return found


def _import(path: str) -> Any:
    """Import the object that a string "module:name" names."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _make(stage: Stage) -> Any:
    """Return the database or pass of a stage."""
    if stage.kind == "equilibrium":
        return EquilibriumDB()
    if stage.kind == "sequence":
        return SequenceDB()
    if stage.kind == "merge":
        return MergeOptimizer()
    if stage.kind == "group":
        return TopoDB(LocalGroupDB())
    if stage.kind == "in_to_out":
        return TopoDB(LocalGroupDB(), ignore_newtrees=not stage.new_trees)
    if stage.imported_late:
        return ImportedLate(stage.kind)
    found = _import(stage.kind)
    return found() if isinstance(found, type) else found


@own_rewrites()
def _build() -> None:
    """Import the rules and put the pipeline into ``optdb``."""
    late = {*LOOP_RULES, *upcalls.LOADED_WITH["opwise.sparse"]}
    for module in RULE_MODULES:
        if module not in late:
            importlib.import_module(module)
    made = {stage.name: _make(stage) for stage in PIPELINE}
    at = positions(PIPELINE)
    for stage in PIPELINE:
        sequence = optdb if stage.within is None else made[stage.within]
        made[stage.name].name = stage.name
        sequence.register(stage.name, made[stage.name], at[stage.name], *stage.tags.split())
    made["canonicalize"].register(
        "merge", MergeOptimizer(), "fast_run", "fast_compile", cleanup=True
    )
    declarations.take(partial(_join, made))


def _join(made: dict[Any, Any], declaration: Declaration) -> None:
    """Add a declared rule or pass to its stage."""
    stage = _STAGES.get(declaration.stage)
    if stage is None or not isinstance(made[stage.name], DB):
        raise ValueError(
            f"{declaration.module} declares {declaration.name} for the stage "
            f"{declaration.stage!r}, which is not one that holds rules: "
            f"{[s.name for s in PIPELINE if not (s.kind == 'merge' or ':' in s.kind)]}"
        )
    own = _is_own(declaration)
    if own and declaration.module not in RULE_MODULES:
        raise ValueError(f"{declaration.module} declares {declaration.name}: RULE_MODULES lacks it")
    database, tags = made[stage.name], declaration.tags
    if stage.kind == "in_to_out":
        within = (stage.within,) if stage.within else ()
        tags = tuple(dict.fromkeys((*tags, *stage.tags.split(), *within)))
    # A rule that is a stage of its own has the name of the stage, which cannot be a tag as well.
    # The name of a stage does not select rules that run only if they are named themselves.
    requested = not {"fast_run", "fast_compile"} & set(tags)
    with own_rewrites(own):
        database.register(
            declaration.name,
            declaration.what,
            *tags,
            use_db_name_as_tag=stage.kind == "equilibrium" and not stage.within and not requested,
            place=RULE_MODULES.index(declaration.module) if own else math.inf,
            **declaration.options,
        )


def _is_own(declaration: Declaration) -> bool:
    return declaration.module.startswith("opwise.")


def changed_by_program() -> bool:
    """Return whether a program has added rewrites, or changed the tags of some."""
    waiting = declarations.waiting
    return databases.changed_by_program() or not all(map(_is_own, waiting))


_STAGES = {stage.name: stage for stage in PIPELINE}

#: the pipeline as a database; filled when it is first used
optdb = SequenceDB(fill=_build)


# --- the legacy ways to join a stage --------------------------------------------------------------


def _registrar(stage: str) -> Callable[..., Any]:
    def register(
        lopt: Any = None,
        *tags: str,
        name: str | None = None,
        **options: Any,
    ) -> Any:
        if lopt is None or isinstance(lopt, str):
            more = tags if lopt is None else (lopt, *tags)
            return lambda made: register(made, *more, name=name, **options)
        known_as = name or getattr(lopt, "name", None) or lopt.__name__
        optdb[stage].register(known_as, lopt, "fast_run", *tags, **options)
        return lopt

    register.__name__ = register.__qualname__ = f"register_{stage}"
    register.__doc__ = (
        f"Add a rule to the stage {stage}, with the tag fast_run and ``tags``; also a decorator, "
        "with or without tags. name: of the rule in the stage (default: its own)."
    )
    return register


register_useless = _registrar("useless")
register_canonicalize = _registrar("canonicalize")
register_stabilize = _registrar("stabilize")
register_specialize = _registrar("specialize")
register_uncanonicalize = _registrar("uncanonicalize")
register_specialize_device = _registrar("specialize_device")


# --- the entry ------------------------------------------------------------------------------------


def optimize(fgraph: FunctionGraph, how: Any, profile: Any = None) -> OptimizationProfile:
    """Optimize a graph in place and return an OptimizationProfile.

    how: a Query to ``optdb``, a pass, a function of the graph, or None to do nothing. profile: an
    object whose ``optimizer_time`` (in seconds) and ``optimizer_profile`` are updated.
    config.on_opt_error says what happens to exceptions in rules and passes.
    """
    started = perf_counter()
    record = OptimizationProfile(nodes_before=len(fgraph.apply_nodes))
    if how is not None:
        chosen = optdb.query(how) if isinstance(how, Query) else how
        record.name = getattr(how, "name", None) or getattr(chosen, "name", None) or ""
        record.kind = type(chosen).__name__
        with provenance.rewriting(), thread_flags(compute_test_value=config.compute_test_value_opt):
            if isinstance(chosen, SeqOptimizer):
                done = chosen.optimize(fgraph)
                assert done is not None
                record.passes = done.passes
            else:
                record.passes = [run_pass(fgraph, chosen)]
    if fgraph.shape_feature is not None:
        fgraph.shape_feature.forget()  # it would keep what has left the graph in memory
    handler = fgraph.find_feature(DestroyHandler)
    if handler is not None:
        handler.forget()
    record.nodes_after = len(fgraph.apply_nodes)
    record.seconds = perf_counter() - started
    if profile is not None:
        profile.optimizer_time += record.seconds
        profile.optimizer_profile = record
    return record
