"""Plots: what is drawn is what the profile holds; matplotlib's global state stays untouched."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import opwise.tensor as T
from opwise import ProfileMode, function
from opwise.profiling.memory import MemoryProfile
from opwise.profiling.profile import Profile

pytestmark = pytest.mark.null


@pytest.fixture
def sample(build):
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    apply, a_function, _ = build
    return Profile((a_function(
        apply("exp", 5_000_000, 0, keys=["a"]), apply("dot", 3_000_000, 1, c=False, keys=["b"]),
        apply("Elemwise{Composite{" + "i0 + " * 20 + "i1}}[(0, 0)]", 2_000_000, 2, keys=["c"]),
    ),))  # fmt: skip


def drawn(ax):
    """[(label, length of the bar, colour, text)] from the top."""
    from matplotlib.colors import to_hex

    return [
        (label.get_text(), bar.get_width(), to_hex(bar.get_facecolor()), text.get_text())
        for label, bar, text in zip(ax.get_yticklabels(), ax.patches, ax.texts, strict=True)
    ]


C, PYTHON, REST, MORE, LESS = "#3b75af", "#d98032", "#999999", "#c44e52", "#55a868"


def test_the_largest_applys(sample):
    (ax,) = sample.plot(n=2).axes
    assert drawn(ax) == [
        ("0 exp", 5.0, C, "5 ms  50.0 %"),
        ("1 dot", 3.0, PYTHON, "3 ms  30.0 %"),
        ("1 more", 2.0, REST, "2 ms  20.0 %"),
    ]
    assert ax.get_xlabel() == "ms" and ax.get_title("left") == "10 ms in the Applys of 1 call"
    long = drawn(*sample.plot().axes)[2][0]
    assert len(long) == 38 and long.startswith("2 Elemwise{Comp") and long.endswith("}}[(0, 0)]")


def test_texts_lie_within_their_axes(sample, build):
    apply, a_function, _ = build
    long = "Elemwise{Composite{" + "i0 + " * 20 + "i1}}"
    names = [f"{k}{long}" for k in range(6)]
    mine = Profile((a_function(*(apply(name, 12_345_678, k) for k, name in enumerate(names))),))
    theirs = Profile((a_function(*(apply(name[1:], 12_345_678) for name in names)),))
    for figure in (sample.plot(), mine.plot(), mine.plot_diff(theirs), sample.plot_diff(mine)):
        figure.draw_without_rendering()
        (ax,) = figure.axes
        assert ax.texts
        for text in ax.texts:
            box = text.get_window_extent()
            assert ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1, text.get_text()
        assert all(label.get_window_extent().x0 >= 0 for label in ax.get_yticklabels())


def test_functions_are_named_where_there_are_several(sample, build):
    apply, a_function, _ = build
    two = Profile((*sample.functions, a_function(apply("$ x$", 9_000_000), name="g\udc80")))
    (ax,) = two.plot().axes
    assert drawn(ax)[0][0] == "g?: 0 $ x$"
    assert not ax.get_yticklabels()[0].get_parse_math()


def test_memory_beside(flags):
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    flags({"profile_memory": True})
    x = T.dmatrix("x")
    f = function([x], T.sort(T.sort(x, axis=0), axis=1), profile=True, name="f")
    f(np.ones((500, 250)))
    _, memory = f.profile.plot().axes
    (step,) = memory.patches
    timeline = f.profile.profile().functions[0].memory.timeline
    assert list(step.get_data().values * 1e6) == pytest.approx(timeline)
    (label,) = memory.get_legend().get_texts()
    assert label.get_text() == f"f: at most {max(timeline) / 1e6:.3g} MB"


def test_memory_of_the_functions_that_need_most(sample, build):
    kept = {"at": 0, "live": (), **dict.fromkeys(
        ("peak", "peak_toposort", "copying", "copying_toposort", "total", "kept"), 0)}  # fmt: skip
    functions = [
        replace(sample.functions[0], name=f"f{k}",
                memory=MemoryProfile(timeline=(k * 1_000_000, 0, 0), **kept))
        for k in range(8)
    ]  # fmt: skip
    _, memory = Profile(tuple(functions)).plot().axes
    labels = [text.get_text() for text in memory.get_legend().get_texts()]
    assert labels == [f"f{k}: at most {k} MB" for k in (7, 6, 5, 4, 3)]
    nothing = Profile((replace(functions[0], memory=MemoryProfile(timeline=(), **kept)),))
    assert len(nothing.plot().axes) == 1


def test_a_difference(sample, build):
    apply, a_function, _ = build
    other = Profile((a_function(
        apply("exp", 1_000_000, 0, keys=["a"]), apply("dot", 4_500_000, 1, keys=["b"]),
        apply("new", 250_000, 2, keys=["z"]),
    ),))  # fmt: skip
    (ax,) = sample.plot_diff(other, n=3).axes
    assert [(label, width, color) for label, width, color, _ in drawn(ax)] == [
        ("0 exp", 4.0, MORE),
        (drawn(ax)[1][0], 2.0, MORE),
        ("1 dot", -1.5, LESS),
        ("1 more", -0.25, REST),
    ]
    texts = [text for *_, text in drawn(ax)]
    assert texts == ["+4 ms  x0.2", "+2 ms  only in self", "-1.5 ms  x1.5", "-250 µs"]
    title = "self 10 ms - other 5.75 ms = +4.25 ms   (x: other / self)"
    assert ax.get_title("left") == title


def test_nothing_to_draw(sample):
    for figure in (Profile().plot(), Profile().plot_diff(Profile())):
        (ax,) = figure.axes
        assert drawn(ax) == []
        figure.draw_without_rendering()


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_files(sample, tmp_path, suffix):
    path = tmp_path / f"p.{suffix}"
    sample.plot(path)
    begin = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(begin)


def test_what_is_refused(sample):
    for n in (0, 1.5, "3"):
        with pytest.raises(ValueError, match=r"n is .*; it must be a whole number from 1"):
            sample.plot(n=n)
    with pytest.raises(TypeError, match="other is int; it must be a ProfileMode"):
        sample.plot_diff(3)


def test_the_modes_plot_too(sample):
    mode = ProfileMode("py")
    x = T.dvector("x")
    f = function([x], T.exp(x), mode=mode, profile=True)
    f([1.0])
    for alive in (mode, f.profile):
        assert drawn(alive.plot().axes[0])[0][0] == "0 Elemwise{exp,no_inplace}"
        assert len(alive.plot_diff(mode).axes) == 1


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_without_matplotlib():
    done = run(
        "import sys; sys.modules['matplotlib'] = sys.modules['matplotlib.figure'] = None\n"
        "from opwise.profiling.profile import Profile\n"
        "Profile().plot()"
    )
    assert done.stderr.splitlines()[-1] == (
        "ImportError: Plots need matplotlib, which is not installed: pip install matplotlib"
    )


def test_no_global_state(sample):
    done = run(
        "import sys\n"
        "from opwise.profiling.profile import Profile\n"
        "assert 'matplotlib' not in sys.modules\n"
        "Profile().plot().draw_without_rendering()\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    assert (done.stdout, done.stderr) == ("False\n", "")
