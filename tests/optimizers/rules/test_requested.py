"""Rewrites that a mode includes or excludes by name, and what they do to graphs."""

import pytest

import opwise.tensor as T
from opwise import Mode, function, get_mode
from opwise.tensor import AllocEmpty
from opwise.tensor.assertion import Assert
from opwise.tensor.blas import CGemv, CGer, Dot22, Gemv, Ger

pytestmark = pytest.mark.c


def _ops(inputs, output, mode):
    f = function(inputs, output, mode=mode)
    return [type(node.op) for node in f.maker.fgraph.toposort()]


def test_all_asserts_are_removed_only_on_request():
    x = T.dvector("x")
    checked, fast_run = Assert("negative")(x, T.all(x >= 0)) * 2, get_mode("FAST_RUN")
    assert Assert in _ops([x], checked, fast_run)
    # the name of a stage selects no rule that must be requested
    assert Assert in _ops([x], checked, fast_run.including("canonicalize", "specialize"))
    for tag in ("local_remove_all_assert", "unsafe"):
        assert Assert not in _ops([x], checked, fast_run.including(tag))
    f = function([x], checked, mode=fast_run.including("local_remove_all_assert"))
    assert f([-1.0]).tolist() == [-2.0]


def test_excluding_c_blas_leaves_gemv_and_ger():
    v, w, m = T.dvector("v"), T.dvector("w"), T.dmatrix("m")
    without = get_mode("FAST_RUN").excluding("c_blas")
    assert CGemv in _ops([m, v], T.dot(m, v), get_mode("FAST_RUN"))
    assert Gemv in _ops([m, v], T.dot(m, v), without)
    assert CGer in _ops([m, v, w], m + T.outer(v, w), get_mode("FAST_RUN"))
    assert Ger in _ops([m, v, w], m + T.outer(v, w), without)
    f = function([m, v], T.dot(m, v), mode=without)
    assert f([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]).tolist() == [3.0, 7.0]


def test_zeros_in_place_of_memory_of_any_content():
    v, m = T.dvector("v"), T.dmatrix("m")
    mode = get_mode("FAST_RUN").including("alloc_empty_to_zeros")
    assert AllocEmpty in _ops([m, v], T.dot(m, v), get_mode("FAST_RUN"))
    assert AllocEmpty not in _ops([m, v], T.dot(m, v), mode)


def test_a_sequence_of_stages_is_selected_by_its_name():
    m = T.dmatrix("m")
    assert _ops([m], T.dot(m, m), Mode("py", None).including("BlasOpt")) == [Dot22]
