"""The text about the optimizer: what each stage, pass and rule did, in the order of their time."""

import io

import numpy as np
import pytest

import opwise.tensor as T
from opwise import function
from opwise.profiling.profile import Profile
from opwise.profiling.reports import rewrites

pytestmark = pytest.mark.null


def rule(name, seconds, applied=0, created=0):
    return {"name": name, "seconds": seconds, "applied": applied, "created": created, "tried": 9}


def record(name, kind, seconds, index=0, nodes=(9, 7), **more):
    return {
        "name": name, "kind": kind, "seconds": seconds, "index": index, "validate": 0.0,
        "nodes_before": nodes[0], "nodes_after": nodes[1], "rules": [], "passes": [], "counts": {},
        "failed": False, **more,
    }  # fmt: skip


def test_every_line(build):
    _, a_function, _ = build
    merge = {"merged": 3, "constants": 1, "failures": 0}
    equilibrium = record(
        "canonicalize", "EquilibriumOptimizer", 0.5, 5, (40, 30), validate=0.0012,
        counts={"rounds": 2, "most_nodes": 44},
        rules=[rule("slow", 0.1), rule("used", 0.2, 4, 6), rule("idle", 0.0)],
        passes=[record("merge", "MergeOptimizer", 0.01, counts=merge)],
    )  # fmt: skip
    inside = record("gemm", "GemmOptimizer", 0.7, 1, failed=True)
    sequence = record("BlasOpt", "SeqOptimizer", 0.8, 9, (30, 28), passes=[inside])
    whole = record(
        "OPT_FAST_RUN", "SeqOptimizer", 1.5, nodes=(40, 28), passes=[equilibrium, sequence]
    )
    function_profile = a_function()
    object.__setattr__(function_profile, "rewrites", whole)
    assert (
        rewrites.section(Profile((function_profile,)))
        == """\
Optimizer Profile
-----------------
 SeqOptimizer  OPT_FAST_RUN  time 1.500s for 40/28 nodes before/after optimization
       0.010s for fgraph.validate()
   time      - (name, class, index, nodes before, nodes after) - validate time
   0.800000s - ('BlasOpt', 'SeqOptimizer', 9, 30, 28) - 0.000s
       0.700000s - ('gemm', 'GemmOptimizer', 1, 9, 7) - 0.000s
         it failed, and the graph was put back
   0.500000s - ('canonicalize', 'EquilibriumOptimizer', 5, 40, 30) - 0.001s
     EquilibriumOptimizer      canonicalize
       time 0.500s for 2 passes
       nb nodes (start, end,  max) 40 30 44
       times - times applied - nb node created - name:
       0.200s - 4 - 6 - used
       0.100s - in 2 optimization that were not used (display only those with a runtime > 0)
         0.100s - slow
     Global, final and clean up optimizers
     Iter 0
             MergeOptimizer
               nb fail=    0 merged=    3 constant=    1
""".split("\n")
    )


def test_a_profile_with_the_flag_has_it(flags):
    flags(profile_optimizer=True)
    x = T.dvector("x")
    f = function([x], T.log(1 + x) * x * x, profile=True)
    f(np.ones(3))
    out = io.StringIO()
    f.profile.summary(out)
    text = out.getvalue()
    assert "\n SeqOptimizer  OPT_FAST_RUN  time " in text
    (line,) = [line for line in text.splitlines() if line.endswith(" - local_log1p")]
    assert " - 1 - " in line
    profile = f.profile.profile()
    loaded = Profile.from_json(profile.to_json())
    assert rewrites.section(loaded) == rewrites.section(profile)


def test_without_the_flag_there_is_none():
    x = T.dvector("x")
    f = function([x], T.exp(x), profile=True)
    assert rewrites.section(f.profile.profile()) == []
