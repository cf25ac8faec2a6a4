"""The tables of the site: made of the flags and the names as they are now."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.null
pytest.importorskip("sphinx", reason="the site needs the extra docs")


@pytest.fixture(scope="module")
def tables():
    sys.path[:0] = [str(ROOT / "docs"), str(ROOT)]
    import tables

    yield tables
    del sys.path[:2]


def test_every_flag_has_a_row(tables):
    from opwise.config.registry import options

    text = tables.flags()
    rows = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    used = sorted((f.fullname for f in options.values() if f.used), key=str.lower)
    assert rows == used
    (ignored,) = (line for line in text.splitlines() if line.startswith("Accepted and ignored"))
    assert ignored.count("`") == 2 * sum(not flag.used for flag in options.values())


@pytest.mark.parametrize("module", ["opwise.tensor", "opwise.tensor.nnet"])
def test_every_public_function_has_a_row(tables, module):
    summaries = dict(tables._summaries(__import__(module, fromlist=["x"])))
    names = {name.strip("`").partition("(")[0] for name in summaries}
    assert {"opwise.tensor": {"dot", "exp", "dmatrix", "sort"}}.get(module, {"softmax"}) <= names
    assert all(summaries.values()), "each with the first sentence of its docstring"


def test_every_page_of_errors_is_in_the_catalogue():
    """Their texts are checked by tests/errors/test_catalogue.py."""
    listed = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    pages = sorted((ROOT / "tests" / "errors" / "pages").glob("*.md"))
    assert len(pages) > 10
    assert [
        page.stem for page in pages if f"../tests/errors/pages/{page.stem}\n" not in listed
    ] == []
