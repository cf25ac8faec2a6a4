"""The docstrings of public functions of tensors say shapes, dtypes and errors."""

import builtins
import importlib
import inspect
import pkgutil
import re

import numpy.linalg
import pytest

import opwise.errors
import opwise.sparse
import opwise.tensor
from opwise.tensor import elsewhere, extra_ops, selection

pytestmark = pytest.mark.null

#: {subject: what a docstring that speaks of it contains}
SUBJECTS = {
    "shape": r"(?i)\b(shapes?|dimensions?|[0-9]-d|scalars?|vectors?|matrix|matrices)\b",
    "dtype": r"\b(dtypes?|bool|floatX|u?int\d+|float\d+|complex\d+)\b",
    "errors": r"\b(Raises|[Aa]t run time) .*?(Error|Exception)\b",
}
#: {function: (the subjects that do not concern it, why)}
EXEMPT = {
    "CumprodOp": ("shape dtype errors", "it returns an Op, under an older name"),
    "CumsumOp": ("shape dtype errors", "it returns an Op, under an older name"),
    "assert_conv_shape": ("dtype", "it returns lengths"),
    "border_mode_to_pad": ("dtype", "it returns pairs of ints"),
    "check_conv_gradinputs_shape": ("dtype", "it returns a bool"),
    "choice_helper": ("dtype", "it draws indices or elements, as choice"),
    "ctc_available": ("shape dtype errors", "it returns True"),
    "get_conv_gradinputs_shape": ("dtype", "it returns lengths"),
    "get_conv_gradinputs_shape_1axis": ("dtype", "it returns a length"),
    "get_conv_gradweights_shape": ("dtype", "it returns lengths"),
    "get_conv_gradweights_shape_1axis": ("dtype", "it returns a length"),
    "get_conv_output_shape": ("dtype", "it returns lengths"),
    "get_conv_shape_1axis": ("dtype", "it returns a length"),
    "hints": ("shape dtype errors", "it returns what is known of any variable"),
    "is_hint_node": ("shape dtype errors", "it returns a bool for any Apply"),
    "is_positive": ("shape dtype errors", "it returns a bool for any variable"),
    "is_psd": ("shape dtype errors", "it returns a bool for any variable"),
    "is_symmetric": ("shape dtype errors", "it returns a bool for any variable"),
    "adv_index_broadcastable_pattern": ("dtype", "it returns a broadcast pattern"),
    "check_and_normalize_axes": ("dtype", "it returns a list of ints"),
    "extract_constant": ("errors", "it returns what has no known value as it is"),
    "get_idx_list": ("shape dtype errors", "it returns the index of an Apply"),
    "get_vector_length": ("dtype", "it returns an int"),
    "is_flat": ("dtype errors", "it returns a bool for any variable"),
    "make_constant": ("errors", "it returns what is not an integer as it is"),
    "register_transfer": ("shape dtype errors", "it returns nothing"),
}


def public_functions():
    """Return {name: function} of what the modules list for programs to use."""
    found = []
    for package in (opwise.tensor, opwise.sparse):
        found += vars(package).items()
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            listed = importlib.import_module(module.name)
            if {"__all__", "__exported__"} & vars(listed).keys():
                found += [(name, getattr(listed, name)) for name in elsewhere.public(listed)]
    for module in (extra_ops, selection):
        own = inspect.getmembers(module, inspect.isfunction)
        found += [(name, f) for name, f in own if f.__module__ == module.__name__]
    return {
        f"{f.__module__.removeprefix('opwise.').removeprefix('tensor.')}.{f.__name__}": f
        for name, f in found
        if inspect.isfunction(f)
        and not name.startswith("_")
        and f.__module__.startswith(("opwise.tensor.", "opwise.sparse."))
    }


FUNCTIONS = public_functions()


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_docstring_says_shapes_dtypes_and_errors(name):
    text = " ".join((inspect.getdoc(FUNCTIONS[name]) or "").split())
    missing = {subject for subject, says in SUBJECTS.items() if not re.search(says, text)}
    exempt, _ = EXEMPT.get(name.rpartition(".")[2], ("", ""))
    assert missing == set(exempt.split())


def test_errors_of_docstrings_exist():
    texts = " ".join(inspect.getdoc(f) or "" for f in FUNCTIONS.values())
    for error in set(re.findall(r"\b[A-Z]\w*Error\b", texts)):
        assert any(hasattr(m, error) for m in (builtins, numpy.linalg, opwise.errors)), error


def test_exemptions_are_of_functions():
    assert set(EXEMPT) <= {name.rpartition(".")[2] for name in FUNCTIONS}
