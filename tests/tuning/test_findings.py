"""Findings: Applys in Python with their reason, loops that were not fused with theirs."""

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.tensor.extra_ops import DiffOp

pytestmark = pytest.mark.null

V = np.linspace(0.5, 1.5, 2000)


@pytest.fixture
def x():
    return T.dvector("x")


def texts(advice, subject):
    return [f.text for f in advice.findings if f.subject == subject]


def test_an_apply_in_python_is_named_with_its_reason_and_line(x, advised):
    f = opwise.function([x], DiffOp()(x) * 2)
    (text,) = texts(advised(f, V), "Python")
    assert text.startswith("DiffOp{n=1, axis=-1} (test_findings.py:")
    assert "% of the time: DiffOp has no C implementation; not tried" in text


def test_float16_is_tried_as_float32(advised):
    h = T.TensorType("float16", (False, False))("h")
    f = opwise.function([h], T.nnet.softmax(h))
    value = V[None].astype("float16")
    advice = advised(f, value, rule=lambda c: 1.0 if c.args[0].itemsize == 2 else 0.2)
    assert [t.title for t in advice.tips] == ["float32 instead of float16"]
    assert advice.tips[0].relative < 2e-3
    found = texts(advice, "Python")
    assert found and all(
        "no C implementation for float16; tried: float32 instead of float16" in t for t in found
    )


def test_complex_numbers_have_no_other_dtype(advised):
    z = T.zvector("z")
    advice = advised(opwise.function([z], T.sort(z)), V + 1j)
    found = texts(advice, "Python")
    assert found and all("no other dtype holds complex" in t for t in found)


def test_functions_in_c_have_no_findings(x, advised):
    advice = advised(opwise.function([x], T.exp(x) * 2), V)
    assert texts(advice, "Python") == texts(advice, "fusion") == []


def test_under_the_linker_py_no_apply_is_blamed(x, advised):
    advice = advised(opwise.function([x], T.sort(x), mode=opwise.Mode("py", "fast_run")), V)
    assert texts(advice, "Python") == []
    assert "threads: the linker runs everything in Python" in texts(advice, "not tried")


def test_a_blocked_fusion_is_named_with_the_true_reason(x, advised):
    e = T.exp(x - x.max())
    found = texts(advised(opwise.function([x], e / e.sum()), V), "fusion")
    assert len(found) == 2
    assert all("16 kB written and read" in text for text in found)
    between = "Sum{acc_dtype=float64} must run between the two"
    assert any("into true_div" in t and between in t for t in found)
    assert any("into Sum" in t and "true_div reads it too" in t for t in found)


def test_small_arrays_are_not_reported(x, advised):
    e = T.exp(x - x.max())
    assert texts(advised(opwise.function([x], e / e.sum()), V[:10]), "fusion") == []


def test_a_mode_without_fusion_says_so(x, advised):
    f = opwise.function([x], T.exp(x) * 2 + T.sin(x), mode="FAST_COMPILE")
    assert texts(advised(f, V), "fusion") == [
        "elementwise Applys: the rewrites of this mode do not fuse loops"
    ]


def test_prints_and_callbacks_are_reported(x, advised, capsys):
    from opwise.printing import Print

    f = opwise.function([x], Print("here")(x) * 2)
    assert texts(advised(f, V), "call") == ["it prints; measured without printing"]
    linker = opwise.VM_Linker(callback=lambda **kwargs: print("called"))
    g = opwise.function([x], x * 2, mode=opwise.Mode(linker, "fast_run"))
    (text,) = texts(advised(g, V), "call")
    assert "calls your own Python functions" in text
    assert capsys.readouterr().out == ""


def test_other_modes_are_advised(x, advised):
    f = opwise.function([x], T.exp(x) * 2, mode="DEBUG_MODE")
    advice = advised(f, V[:5], rule=lambda c: 1.0 if "Debug" in str(c.function.maker.mode) else 0.1)
    assert "mode FAST_RUN" in [t.title for t in advice.tips]
