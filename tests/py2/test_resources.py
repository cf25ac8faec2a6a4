"""What stands in for setuptools' module pkg_resources."""

import sys
import types

import numpy as np
import pytest

from opwise.py2 import convert, hook, library, resources

pytestmark = pytest.mark.null


def test_programs_get_it_where_setuptools_has_none(monkeypatch):
    monkeypatch.setattr(library.importlib.util, "find_spec", lambda name: None)
    monkeypatch.delitem(vars(library), "pkg_resources", raising=False)
    for python in (2, 3):
        names = {"__name__": "old"}
        program = "from pkg_resources import parse_version as v; r = v('1.9') < v('1.10')"
        hook.execute(convert.compiled(program, "old.py", python=python), names, python=python)
        assert names["r"]
    assert library.pkg_resources is resources
    monkeypatch.delitem(vars(library), "pkg_resources")


def test_an_installed_one_is_used(monkeypatch):
    installed = types.ModuleType("pkg_resources")
    monkeypatch.setattr(library.importlib.util, "find_spec", lambda name: installed)
    monkeypatch.setitem(sys.modules, "pkg_resources", installed)
    assert library._pkg_resources() is installed


def test_versions_are_ordered():
    ordered = "0.9 1.0.dev1 1.0a2 1.0b1 1.0rc1 1.0 1.0.post1 1.0.1 1.0.10 1.2".split()
    parsed = [resources.parse_version(text) for text in ordered]
    assert parsed == sorted(parsed) and len(set(parsed)) == len(parsed)
    assert resources.parse_version("1.0.0") == resources.parse_version("v1")
    assert resources.parse_version("2.0+cu118") == resources.parse_version("2.0")


def test_requirements():
    assert resources.get_distribution("numpy").version == np.__version__
    (found,) = resources.require("theano>=0.6,!=0.8")
    assert found.key == "theano" and found.version.startswith("1.")
    with pytest.raises(resources.VersionConflict, match="not numpy<1"):
        resources.require("numpy >= 0.1, <1.0")
    with pytest.raises(resources.DistributionNotFound, match="'nosuchpackage'"):
        resources.get_distribution("nosuchpackage[extra]>1")
    assert "pytest" in {entry.name for entry in resources.iter_entry_points("console_scripts")}


def test_files_of_packages():
    assert resources.resource_exists("opwise", "py2/resources.py")
    assert resources.resource_isdir("opwise.py2", ".")
    assert "resources.py" in resources.resource_listdir("opwise.py2.resources", "")
    text = resources.resource_string("opwise.py2.convert", "resources.py")
    with resources.resource_stream("opwise.py2", "resources.py") as file:
        assert file.read() == text and text.startswith(b'"""')
