"""Every entry of the catalogue: its whole text, and that it says what, where and what to do."""

import re

import pytest
from catalogue import PAGES, entries, read

ENTRIES = entries()

#: what tells where, for what is wrong before or outside a program's lines
PLACES = ("<string>:", "OPWISE_FLAGS", "THEANO_FLAGS", ".opwiserc", "The flag device")

each_entry = pytest.mark.parametrize(
    "entry", ENTRIES, ids=[f"{entry.page.stem}: {entry.title}" for entry in ENTRIES]
)


@pytest.mark.c
@each_entry
def test_an_entry(entry):
    if "opwise.distributed" in entry.program:
        pytest.importorskip("distributed", reason="dask is not installed")
    seen = entry.run()
    assert seen.text == entry.text, "python tests/errors/catalogue.py --record writes it down"
    assert not set(entry.marked) - seen.lines, "the lines that are to blame are named"


@pytest.mark.null
@each_entry
def test_an_entry_promises_what_a_user_needs(entry):
    promised = dict(entry.promises)
    assert list(promised) == ["wrong", "do"] and len(entry.promises) == 2
    for words in promised.values():
        assert words in entry.text
    assert promised["do"] not in promised["wrong"] and promised["wrong"] not in promised["do"]
    if entry.language == "sh":
        assert any(place in entry.text for place in PLACES)
    else:
        assert entry.marked or "Re-running" in entry.text, "a line is marked, if any is remembered"


@pytest.mark.null
@each_entry
def test_an_entry_is_no_crash(entry):
    """An error is one of opwise's own or of Python's, and no line of opwise's is shown."""
    kinds = "Error|Exception|Warning|NotDefined|Refused|Optimization"
    said = rf"^(?:\S+: )?(?:[\w.]+\.)?\w*(?:{kinds}): \S"
    logged = "The shapes of its outputs are treated as unknown"
    assert re.search(said, entry.text, re.M) or logged in entry.text
    assert "Traceback" not in entry.text
    if entry.language == "python":
        assert not re.search(r"opwise/\w+", entry.text)
    assert "object at 0x" not in entry.text


@pytest.mark.null
@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_a_page(page):
    found = read(page)
    titles = [entry.title for entry in found]
    assert len(found) >= 5 and len(set(titles)) == len(titles)
    assert page.read_text().startswith("# ")
