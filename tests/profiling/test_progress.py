"""Progress on a terminal: one bar, and none for those who do not wait."""

import io
import subprocess
import sys

import pytest

import opwise
import opwise.tensor as T
from opwise.profiling import progress
from opwise.tuning.progress import shown as trials

pytestmark = pytest.mark.null


class _Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def open_terminal(monkeypatch):
    """``open_terminal()``: a terminal in the place of stderr, within the test."""

    def opened():
        monkeypatch.setattr(sys, "stderr", _Terminal())
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "120")
        return sys.stderr

    return opened


def test_a_bar_shows_text_and_share(open_terminal):
    terminal = open_terminal()
    with progress.shown("searching [red]", 8, patience=0.0) as bar:
        bar.update(2)
        bar.update(text="found one")
        bar.advance()
    shown = terminal.getvalue()
    assert "searching [red]" in shown and "25%" in shown and "found one" in shown and "38%" in shown


def test_quick_work_shows_nothing(open_terminal):
    terminal = open_terminal()
    with progress.shown("work", 8) as bar:
        bar.update(8)
    with trials(0.5) as update:
        update(0.1, 0.5, "a trial")
    assert terminal.getvalue() == ""


def test_trials_are_shown_at_once(open_terminal):
    terminal = open_terminal()
    with trials(30.0) as update:
        update(3.0, 30.0, "float32")
    assert "float32" in terminal.getvalue() and "10%" in terminal.getvalue()


def test_a_pipe_and_the_flag_show_nothing(open_terminal, flags, monkeypatch):
    terminal = open_terminal()
    with monkeypatch.context() as changes:
        changes.setattr(sys, "stderr", io.StringIO())
        with progress.shown("work", 8, patience=0.0) as bar:
            bar.update(8)
        assert sys.stderr.getvalue() == ""
        changes.setattr(sys, "stderr", None)
        with progress.shown("work", 8, patience=0.0) as bar:
            bar.update(8)
    flags(show_progress=False)
    with progress.shown("work", 8, patience=0.0) as bar:
        bar.update(8)
    assert terminal.getvalue() == ""


def test_work_inside_other_work_has_no_bar_of_its_own(open_terminal):
    terminal = open_terminal()
    with progress.shown("outer", 8, patience=0.0) as outer:
        with progress.shown("inner", 8, patience=0.0) as inner:
            inner.update(4)
        outer.update(1)
    assert "outer" in terminal.getvalue() and "inner" not in terminal.getvalue()
    assert progress._terminal.bar is progress._none


def test_a_compilation_says_what_it_does(open_terminal, monkeypatch, flags):
    flags(cache_graphs=False)  # it rewrites
    terminal = open_terminal()
    said = []
    monkeypatch.setattr(progress, "PATIENCE", 3600.0)
    update = progress.Bar.update
    monkeypatch.setattr(
        progress.Bar, "update", lambda bar, **what: (said.append(what["text"]), update(bar, **what))
    )
    x = T.dvector("x")
    opwise.function([x], T.exp(x).sum(), name="mine", mode="FAST_RUN")
    assert said[0].startswith("compiling mine: rewriting, ") and "(1 of " in said[0]
    assert said[-1] == "compiling mine: linking"
    assert terminal.getvalue() == ""  # it took less than an hour
    assert progress._terminal.bar is progress._none


def test_a_thread_draws_while_a_compilation_lasts(open_terminal):
    terminal = open_terminal()
    with progress.shown("compiling f", alone=False, patience=0.0) as bar:
        bar._timer.join()
        progress.say("linking")
    assert "compiling f" in terminal.getvalue()


def test_a_search_without_a_terminal_prints_its_figures_alone():
    words = [sys.executable, "-m", "opwise.testing.fuzz", "--graphs", "1", "--every", "0"]
    done = subprocess.run([*words, "--steps", "2"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    assert " 1 graphs (" in done.stdout
