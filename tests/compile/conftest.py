"""What the tests of functions share: all rewrites under each linker, without a C compiler."""

import pytest

from opwise.modes.mode import Mode


class _WithoutCompiler(Mode):
    """A mode that runs the kernels that come with the package only."""

    def bound_linker(self, fgraph):
        linker = super().bound_linker(fgraph)
        linker.generate_kernels = False
        return linker


@pytest.fixture
def rewritten():
    """``rewritten(linker)``: a mode with all rewrites that calls no C compiler."""
    return lambda linker: _WithoutCompiler(linker, "fast_run")


@pytest.fixture(params=["py", "c|py"])
def mode(request, rewritten):
    """All rewrites, each linker."""
    return rewritten(request.param)
