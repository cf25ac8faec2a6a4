"""Lets the tests of this folder import what they share."""

import sys
from pathlib import Path

import pytest

from opwise import ProfileMode

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(params=("FAST_COMPILE", "FAST_RUN", "DEBUG_MODE", "PROFILE_MODE"))
def mode(request):
    """Each mode that opwise has; a ProfileMode of the test alone, which prints nothing at exit."""
    return ProfileMode() if request.param == "PROFILE_MODE" else request.param
