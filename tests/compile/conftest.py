"""What the tests of functions share: all rewrites under each linker, without a C compiler."""

import sys
from pathlib import Path

import pytest

from opwise import Mode

sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture
def no_compiler(flags):
    """Only the kernels that come with the package run."""
    flags(cxx="")


@pytest.fixture(params=["py", "c|py"])
def mode(request, no_compiler):
    """All rewrites, each linker."""
    return Mode(request.param, "fast_run")


@pytest.fixture
def cached(use_cache, tmp_path, flags):
    """Graphs are kept in a folder of the test."""
    flags(cache_graphs=True)
    return use_cache(tmp_path / "cache", compiledir_bytes=-1)
