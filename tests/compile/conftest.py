"""What the tests of functions share: all rewrites under each linker, without a C compiler."""

import pytest

from opwise.modes.mode import Mode


@pytest.fixture
def no_compiler(flags):
    """Only the kernels that come with the package run."""
    flags(cxx="")


@pytest.fixture(params=["py", "c|py"])
def mode(request, no_compiler):
    """All rewrites, each linker."""
    return Mode(request.param, "fast_run")
