"""The pipeline: every stage of the optimization of a graph, in order, with its place and tags.

Positions and tags are those that programs know from Theano. Rules join a stage by naming it
(``rule(..., stage="canonicalize")``); the modules that define them are imported when the first
graph is optimized, not when opwise is.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from time import perf_counter

from opwise.config import config, thread_flags
from opwise.graph import provenance
from opwise.optimizers import rule as rules
from opwise.optimizers.database import (
    DB,
    EquilibriumDB,
    LocalGroupDB,
    Query,
    SequenceDB,
    TopoDB,
)
from opwise.optimizers.merge import MergeOptimizer
from opwise.optimizers.passes import OptimizationProfile, SeqOptimizer, run_pass


@dataclass(frozen=True)
class Stage:
    """One stage. does: what it does to the graph, in a sentence.

    kind: 'equilibrium' (rules until none has anything to do); 'group' (rules on every Apply once,
    from the inputs); 'in_to_out' and 'out_to_in' (the same, where the stage stands for one rewrite,
    so that its rules have its tags too); 'sequence' (the stages that name it in ``within``);
    'merge'; or the import string "module:name" of a pass or of its class.
    """

    name: str
    position: float
    kind: str
    tags: str
    does: str
    within: str | None = None
    #: whether rules are tried on what the rules of this stage make
    new_trees: bool = True


PIPELINE = [
    Stage("merge1", 0, "merge", "fast_run fast_compile merge",
          "Equal Applys and constants are computed once."),
    Stage("ShapeOpt", 0.1, "opwise.optimizers.shapefeature:ShapeOptimizer",
          "fast_run fast_compile", "Rules may from here on ask for symbolic shapes."),
    Stage("useless", 0.6, "group", "fast_run fast_compile",
          "Applys that do nothing go before anything else is tried."),
    Stage("merge1.1", 0.65, "merge", "fast_run fast_compile merge",
          "What became equal is computed once."),
    Stage("pre_local_IncSubtensor_serialize", 0.99, "in_to_out", "fast_run",
          "Sums of arrays that were increased in parts become one that is increased in turn."),
    Stage("canonicalize", 1, "equilibrium", "fast_run fast_compile canonicalize_db",
          "Expressions take one form of the many that mean the same, constants are computed."),
    Stage("merge1.2", 1.2, "merge", "fast_run fast_compile merge",
          "What became equal is computed once."),
    Stage("stabilize", 1.5, "equilibrium", "fast_run",
          "Expressions that overflow or cancel become ones that do not."),
    Stage("local_fill_to_alloc", 1.51, "in_to_out", "fast_run",
          "Filling like another array becomes allocation by shape."),
    Stage("local_elemwise_alloc", 1.52, "in_to_out", "fast_run",
          "Allocations go where broadcasting does without them."),
    Stage("local_log_sum_exp", 1.6, "in_to_out", "fast_run",
          "The logarithm of a sum of exponentials is shifted by the maximum.", new_trees=False),
    Stage("BlasOpt", 1.7, "sequence", "fast_run fast_compile",
          "Products of matrices become calls of BLAS."),
    Stage("local_dot_to_dot22", 0, "in_to_out", "fast_run fast_compile",
          "Products of two matrices of one floating dtype are named.", within="BlasOpt"),
    Stage("gemm_optimizer", 10, "opwise.optimizers.rules.blas:GemmOptimizer", "fast_run",
          "A product with scales and a sum become one gemm.", within="BlasOpt"),
    Stage("local_dot22_to_dot22scalar", 11, "in_to_out", "fast_run",
          "A product with a scale becomes one call.", within="BlasOpt"),
    Stage("local_gemm_to_gemv", 15, "equilibrium", "fast_run",
          "Products with one row or column become gemv, ger or dot.", within="BlasOpt"),
    Stage("specialize", 2, "equilibrium", "fast_run fast_compile_gpu",
          "Expressions take the form that is fastest to compute."),
    Stage("crossentropy_to_crossentropy_with_softmax", 2.01, "in_to_out",
          "fast_run fast_compile_gpu xent",
          "A softmax that only feeds its cross entropy is computed with it."),
    Stage("uncanonicalize", 3, "equilibrium", "fast_run",
          "Canonical forms that are slow to compute are taken back."),
    Stage("specialize_device", 48.6, "equilibrium", "fast_run fast_compile",
          "Forms are chosen that only pay on this device."),
    Stage("elemwise_fusion", 49, "sequence",
          "fast_run fusion local_elemwise_fusion FusionOptimizer",
          "Elementwise Applys that follow each other become one loop."),
    Stage("local_add_mul_fusion", 0, "opwise.optimizers.rules.fusion:AddMulFusion",
          "fast_run fusion", "Sums of sums and products of products become flat.",
          within="elemwise_fusion"),
    Stage("composite_elemwise_fusion", 1, "opwise.optimizers.rules.fusion:FusionOptimizer",
          "fast_run fusion", "The rest becomes Composites.", within="elemwise_fusion"),
    Stage("map_reduce_fusion", 2, "opwise.optimizers.rules.fusion:MapReduceOptimizer",
          "fast_run fusion", "Reductions take in the elementwise Apply that only they read.",
          within="elemwise_fusion"),
    Stage("merge2", 49, "merge", "fast_run merge", "What became equal is computed once."),
    Stage("add_destroy_handler", 49.5, "opwise.optimizers.passes:AddDestroyHandler",
          "fast_run inplace", "From here on Ops may overwrite their inputs."),
    Stage("local_inplace_setsubtensor", 60, "opwise.optimizers.rules.inplace:InplaceSubtensor",
          "fast_run inplace",
          "Setting a part of an array overwrites it."),
    Stage("InplaceBlasOpt", 70, "opwise.optimizers.rules.inplace:InplaceBlas",
          "fast_run inplace blas_opt_inplace",
          "BLAS adds into the array that it is given."),
    Stage("inplace_elemwise_opt", 75, "opwise.optimizers.rules.inplace:InplaceElemwiseOptimizer",
          "fast_run inplace inplace_opt inplace_elemwise_optimizer",
          "Elementwise results overwrite an operand that nobody needs any more."),
    Stage("random_make_inplace", 99, "in_to_out", "fast_run inplace",
          "Drawing random numbers overwrites the state of the generator."),
    Stage("merge3", 100, "merge", "fast_run merge", "What became equal is computed once."),
    Stage("place_on_device", 101, "opwise.gpu.place:PlaceOnDevice", "gpu",
          "Applys are divided between host and device, with transfers where data crosses."),
]  # fmt: skip

#: where rules are defined; the order in which rules of one stage are tried
RULE_MODULES = [
    "opwise.optimizers.folding",
    "opwise.optimizers.rules.canonicalize",
    "opwise.optimizers.rules.reductions",
    "opwise.optimizers.rules.shape",
    "opwise.optimizers.rules.subtensor",
    "opwise.optimizers.rules.stabilize",
    "opwise.optimizers.rules.specialize",
    "opwise.optimizers.rules.nnet",
    "opwise.optimizers.rules.blas",
    "opwise.optimizers.rules.fusion",
    "opwise.optimizers.rules.inplace",
]


def _import(path):
    """Return what an import string "module:name" stands for."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _make(stage):
    """Return the database or pass of a stage."""
    if stage.kind == "equilibrium":
        return EquilibriumDB()
    if stage.kind == "sequence":
        return SequenceDB()
    if stage.kind == "merge":
        return MergeOptimizer()
    if stage.kind == "group":
        return TopoDB(LocalGroupDB())
    if stage.kind in ("in_to_out", "out_to_in"):
        return TopoDB(LocalGroupDB(), order=stage.kind, ignore_newtrees=not stage.new_trees)
    found = _import(stage.kind)
    return found() if isinstance(found, type) else found


def _build():
    """Import the rules and put the pipeline into ``optdb``."""
    for module in RULE_MODULES:
        importlib.import_module(module)
    made = {stage.name: _make(stage) for stage in PIPELINE}
    for stage in PIPELINE:
        sequence = optdb if stage.within is None else made[stage.within]
        made[stage.name].name = stage.name
        sequence.register(stage.name, made[stage.name], stage.position, *stage.tags.split())
    made["canonicalize"].register(
        "merge", MergeOptimizer(), "fast_run", "fast_compile", cleanup=True
    )
    order = {module: i for i, module in enumerate(RULE_MODULES)}
    for declaration in sorted(rules.declared, key=lambda d: order.get(d.module, len(order))):
        _join(made, declaration)
    rules.declared.clear()
    rules._late[:] = [lambda declaration: _join(made, declaration)]


def _join(made, declaration):
    """Let a declared rule or pass take part in its stage."""
    stage = _STAGES.get(declaration.stage)
    if stage is None or not isinstance(made[stage.name], DB):
        raise ValueError(
            f"{declaration.module} declares {declaration.name} for the stage "
            f"{declaration.stage!r}, which is not one that holds rules: "
            f"{[s.name for s in PIPELINE if not (s.kind == 'merge' or ':' in s.kind)]}"
        )
    database, tags = made[stage.name], declaration.tags
    if stage.kind in ("in_to_out", "out_to_in"):
        tags = dict.fromkeys((*tags, *stage.tags.split()))
    # a rule that is a stage of its own has the name of that stage, which is then no tag
    as_tag = stage.kind == "equilibrium" and stage.within is None
    database.register(
        declaration.name,
        declaration.what,
        *tags,
        use_db_name_as_tag=as_tag,
        **declaration.options,
    )


_STAGES = {stage.name: stage for stage in PIPELINE}

#: the pipeline as a database; filled when it is first used
optdb = SequenceDB(fill=_build)


# --- the legacy ways to join a stage --------------------------------------------------------------


def _registrar(stage):
    def register(lopt=None, *tags, name=None, **options):
        if lopt is None or isinstance(lopt, str):
            more = tags if lopt is None else (lopt, *tags)
            return lambda made: register(made, *more, name=name, **options)
        known_as = name or getattr(lopt, "name", None) or lopt.__name__
        optdb[stage].register(known_as, lopt, "fast_run", *tags, **options)
        return lopt

    register.__name__ = register.__qualname__ = f"register_{stage}"
    register.__doc__ = (
        f"Let a rule take part in the stage {stage}, with the tag fast_run and ``tags``; also a "
        "decorator, with or without tags. name: the rule's own unless told."
    )
    return register


register_useless = _registrar("useless")
register_canonicalize = _registrar("canonicalize")
register_stabilize = _registrar("stabilize")
register_specialize = _registrar("specialize")
register_uncanonicalize = _registrar("uncanonicalize")
register_specialize_device = _registrar("specialize_device")


# --- the entry ------------------------------------------------------------------------------------


def optimize(fgraph, how, profile=None):
    """Optimize a graph in place and return an OptimizationProfile.

    how: a Query to ``optdb``, a pass, a function of the graph, or None for nothing. profile: an
    object whose ``optimizer_time`` and ``optimizer_profile`` are updated. Exceptions in rules and
    passes are treated as config.on_opt_error says.
    """
    started = perf_counter()
    record = OptimizationProfile(nodes_before=len(fgraph.apply_nodes))
    if how is not None:
        chosen = optdb.query(how) if isinstance(how, Query) else how
        record.name = getattr(how, "name", None) or getattr(chosen, "name", None) or ""
        record.kind = type(chosen).__name__
        with provenance.rewriting(), thread_flags(compute_test_value=config.compute_test_value_opt):
            if isinstance(chosen, SeqOptimizer):
                record.passes = chosen.optimize(fgraph).passes
            else:
                record.passes = [run_pass(fgraph, chosen)]
    shapes = getattr(fgraph, "shape_feature", None)
    if shapes is not None:
        shapes.forget()  # it would keep what has left the graph in memory
    record.nodes_after = len(fgraph.apply_nodes)
    record.seconds = perf_counter() - started
    if profile is not None:
        profile.optimizer_time += record.seconds
        profile.optimizer_profile = record
    return record
