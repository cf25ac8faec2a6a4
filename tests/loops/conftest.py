"""The modes in which loops are tested."""

import pytest

from opwise import Mode, ProfileMode


@pytest.fixture(params=["FAST_COMPILE", "FAST_RUN", "DEBUG_MODE", "PROFILE_MODE", "py"])
def mode(request, flags):
    """Each mode that opwise has, and the linker of numpy, without a compiler."""
    flags(cxx="")
    if request.param == "py":
        return Mode(linker="py", optimizer="fast_run")
    return ProfileMode() if request.param == "PROFILE_MODE" else request.param
