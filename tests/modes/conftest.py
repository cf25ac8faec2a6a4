"""What the tests of modes share."""

import pytest


@pytest.fixture
def no_compiler(flags):
    """Only the kernels that come with the package run."""
    flags(cxx="")
