"""The exceptions themselves: what they say of their arguments, and what helps to word others."""

import pytest

from opwise.errors import MethodNotDefined, similar, with_message

pytestmark = pytest.mark.null

NAMES = ["floatX", "profile", "profiling.n_apply", "profiling.n_ops", "FAST_RUN"]


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("floatx", " Did you mean floatX?"),
        ("fast_run", " Did you mean FAST_RUN?"),
        ("profiling.n_aply", " Did you mean profiling.n_apply or profiling.n_ops?"),
        ("zork", ""),
        ("", ""),
    ],
)
def test_similar_names(name, question):
    assert similar(name, NAMES) == question


def test_a_method_that_is_missing_is_described():
    error = MethodNotDefined("grad", int, "Twice")
    assert str(error).startswith("Twice does not define the method grad. Define grad(self, inputs")
    assert error.args == ("grad", int, "Twice")
    assert str(MethodNotDefined("c_code", int, "Twice")) == (
        "Twice does not define the method c_code."
    )
    assert str(MethodNotDefined("a text of a program's own")) == "a text of a program's own"


def test_an_error_with_another_message_keeps_its_class():
    error = with_message(KeyError("k"), "more", "a note")
    assert type(error) is KeyError and error.args == ("more",)

    class Two(Exception):
        def __init__(self, code, reason):
            super().__init__(code, reason)

    first = Two(1, "no")
    assert with_message(first, "more", "a note") is first and first.__notes__ == ["a note"]
