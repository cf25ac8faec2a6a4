"""Compilation: from variables to a function that can be called. Public names are in ``opwise``."""

# as in Theano, the names of these modules are in their package those of the functions
from opwise.compile.function import function  # noqa: F401
from opwise.compile.shared import shared  # noqa: F401
