"""Puts this folder on the path, where ``ownops`` is; counts the compiler's runs."""

import sys
from pathlib import Path

import pytest

from opwise.linkers import cbuild

sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture
def runs(cache, monkeypatch):
    """The languages of the compiler's runs of this test, which has a cache of its own."""
    found = []
    run = cbuild._run

    def counted(recipe, *args):
        found.append(recipe.language)
        return run(recipe, *args)

    monkeypatch.setattr(cbuild, "_run", counted)
    return found
