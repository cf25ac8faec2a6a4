"""A few random programs on the played device; ``random_programs.py`` examines as many as wanted."""

import numpy as np
import played
import pytest
from random_programs import examined


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_programs(monkeypatch):
    played.install(monkeypatch)
    launched = played._Graph.launched
    with np.errstate(all="ignore"):
        count, faults = examined(range(20))
    assert count >= 15 and faults == []
    assert played._Graph.launched > launched, "some of them are graphs"
