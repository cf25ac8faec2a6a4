"""Attributes of objects: opwise has those of Theano, or a table says why it has not."""

import fnmatch

import attributes
import pytest

pytestmark = pytest.mark.null


@pytest.fixture(scope="module")
def missing():
    return attributes.missing()


def test_what_is_lacking_has_a_reason(missing):
    without = [
        f"{kind}.{name}"
        for kind, names in missing.items()
        for name in names
        if attributes.why(kind, name) is None
    ]
    assert not without


def test_every_reason_is_needed(missing):
    """Each pattern stands for an attribute that some object lacks."""
    lacking = [(kind, name) for kind, names in missing.items() for name in names]
    unused = [
        (kinds, pattern)
        for kinds, reasons in attributes.LACKING.items()
        for patterns in reasons.values()
        for pattern in patterns.split()
        if not any(
            fnmatch.fnmatchcase(kind, kinds) and fnmatch.fnmatchcase(name, pattern)
            for kind, name in lacking
        )
    ]
    assert not unused


def test_the_table_names_each_of_them(missing):
    text = " ".join(attributes.table())
    assert all(f"{kind}: {names[0]}" in text for kind, names in missing.items() if len(names) == 1)
