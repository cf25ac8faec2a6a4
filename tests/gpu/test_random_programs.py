"""A few random programs on the emulated device; ``random_programs.py`` examines more."""

import emulated
import numpy as np
import pytest
from random_programs import examined


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_programs(monkeypatch):
    emulated.install(monkeypatch)
    launched = emulated._Graph.launched
    with np.errstate(all="ignore"):
        count, faults = examined(range(20))
    assert count >= 15 and faults == []
    assert emulated._Graph.launched > launched, "some of them are graphs"
