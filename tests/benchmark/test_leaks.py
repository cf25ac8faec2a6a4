"""Calls and compilations leave nothing behind; benchmark.leaks sees it where they do.

Here few of each are run, and what is counted exactly decides: objects, blocks, references, bytes of
malloc. ``scripts/leaks`` runs a million calls and a thousand compilations.
"""

import gc

import pytest

from benchmark import leaks
from opwise.linkers import cbuild, opwise_c

#: resident memory and that of malloc are not looked at so closely in a process full of other tests
COUNTED = {**leaks.Growth.ALLOWED, "malloc": 1 << 19, "resident": 1 << 30}


@pytest.fixture(autouse=True)
def _only_what_is_counted(monkeypatch, flags):
    flags(background_compilation=False)  # its kernels come while a test counts
    monkeypatch.setattr(leaks.Growth, "ALLOWED", COUNTED)


@pytest.mark.parametrize("name", leaks.CALLS)
def test_calls_leave_nothing_behind(name):
    (grown,) = leaks.calls(3000, [name])
    assert not grown.grew, f"\n{leaks.TITLE}\n{grown}"


@pytest.mark.c
@pytest.mark.parametrize("name", ["the same graph", "the same graph, all modes",
                                  "graphs that are refused"])  # fmt: skip
def test_compilations_leave_nothing_behind(name):
    (grown,) = leaks.compilations(60, [name], warm=20)
    assert not grown.grew, f"\n{leaks.TITLE}\n{grown}"


@pytest.mark.c
@pytest.mark.skipif(cbuild.compiler() is None, reason="there is no C compiler")
@pytest.mark.parametrize("name", ["each graph another", "loops, each another"])
def test_kernels_that_nobody_runs_are_unloaded(name):
    """A graph of which the kernels are new each time: no graph stays, and no library."""
    (grown,) = leaks.compilations(12, [name], warm=3)
    assert grown.counts["libraries"] <= 0 and grown.counts["graphs"] <= 0, grown


@pytest.mark.c
@pytest.mark.skipif(cbuild.compiler() is None, reason="there is no C compiler")
def test_a_kernel_stays_as_long_as_a_function_that_runs_it():
    loaded = set(cbuild._loaded)
    x, y = leaks.chain(3210)
    f = leaks.opwise.function([x], y)
    (new,) = set(cbuild._loaded) - loaded
    again = f.copy()
    del f
    gc.collect()
    assert new in cbuild._loaded and again([0.25])[0].shape == (1,)
    del again
    gc.collect()
    assert new not in cbuild._loaded


# --- what leaks is seen ---------------------------------------------------------------------------

_kept = []


def _more_blocks():
    _kept.append(float(len(_kept)))


def _more_objects():
    _kept.append([])


def _more_references():
    _kept.append(leaks.X)


def _more_of_malloc():
    _kept.append(leaks.np.empty(1000))


def _more_graphs():
    _kept.append(leaks.T.dvector())


@pytest.mark.parametrize(
    "leak, name",
    [(_more_blocks, "blocks"), (_more_objects, "objects"), (_more_references, "references"),
     (_more_of_malloc, "malloc"), (_more_graphs, "graphs")],
)  # fmt: skip
def test_a_leak_is_told(leak, name):
    try:
        grown = leaks.growth("leaking", leak, 1000, leaks.ALWAYS)
    finally:
        _kept.clear()
    if name == "malloc" and not leaks._malloc_bytes():
        pytest.skip("this C library does not tell how much malloc has given out")
    assert name in grown.grew and f"GREW: {', '.join(grown.grew)}" in str(grown)


def test_the_command(capsys, monkeypatch):
    arguments = ["--calls", "300", "--compilations", "3", "--only", "FAST_COMPILE",
                 "graphs that are refused"]  # fmt: skip
    assert leaks.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[2:]] == [
        "FAST_COMPILE", "compile: graphs that are refused"]  # fmt: skip
    monkeypatch.setitem(leaks.CALLS, "FAST_COMPILE", leaks.Case(lambda: (_more_objects, ()), 1))
    assert leaks.main(arguments) == 1
    _kept.clear()
    assert opwise_c.kept_blocks() >= 0
