"""The forms of summaries that Theano 0.x printed, line by line, of the same programs.

``golden/`` holds what was printed. Figures and names of Ops are masked; every line must be there,
in that order and in those columns, and nothing else but what this file lists.
"""

import os
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

import theano
from benchmark.regression.cases import seed_case
from benchmark.regression.regression import RegressionLayer
from opwise import Mode

GOLDEN = Path(__file__).parent / "golden"
ROOT = Path(__file__).resolve().parents[2]


# --- the mask -------------------------------------------------------------------------------------

_FIGURE = re.compile(r"( *)(?<![\w.])(\d+(?:\.\d+)?(?:e[+-]\d+)?)(?=[\s%:;)/]|s\b|K?B\b|$)")
_PROFILEMODE_ROW = re.compile(r"\t[\d.]+\t(?:\d+\t|([* ]) )\S.*")
_PROFILESTATS_ROW = re.compile(
    r"( +[\d.]+% +[\d.]+% +[\d.]+s +[\d.e+-]+s +(?:(?:C|Py) )?[ \d.]*)\S.*"
)
#: the first column, which 100 % does not fit into
_SHARE = re.compile(r"^(?: {3}\d| {2}\d\d| {2}100)\.\d%")
_NODE = re.compile(r"( {11}Node )\S.*( time [\d.e+-]+s)")


def masked(line):
    """Return a line with # for each figure, and ``name`` for the name that ends a row.

    What stands in columns stays as wide as it is: figures of a row and the blanks before them, and
    figures behind two blanks or more.
    """
    if row := _PROFILEMODE_ROW.fullmatch(line):
        return "\t#\t#\tname" if row[1] is None else f"\t#\t{row[1]} name"
    if row := _PROFILESTATS_ROW.fullmatch(line):
        figures = _SHARE.sub("  ####%", row[1])
        return re.sub(r"[\d. ]|e[+-]\d\d", lambda m: "#" * len(m[0]), figures) + "name"
    if row := _NODE.fullmatch(line):
        line = f"{row[1]}name{row[2]}"
    return _FIGURE.sub(_as_wide, line)


def _as_wide(match):
    blanks, figure = match.groups()
    if len(blanks) < 2:
        return f"{blanks}#"
    return " " + "#" * (len(blanks) - 1 + len(figure))


def golden_lines(name):
    """Return the lines of a file in golden/, without the comment."""
    lines = (GOLDEN / f"{name}.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("# ")]


def golden(name):
    """Return the same lines, masked."""
    return list(map(masked, golden_lines(name)))


def added(expected, shown):
    """Return the lines of ``shown`` beside those expected, which must be there in their order."""
    found, lines = [], iter(shown)
    for wanted in expected:
        for line in lines:
            if line == wanted:
                break
            found.append(line)
        else:
            raise AssertionError(f"There is no line {wanted!r}, or not at its place")
    return [*found, *lines]


def folded(lines):
    """Return lines with equal ones that follow each other as one."""
    return [line for line, _ in groupby(lines)]


SAMPLES = ("profilemode", "profilestats", "profilestats_memory")


@pytest.mark.null
@pytest.mark.parametrize("name", SAMPLES)
def test_the_same_lines_add_nothing(name):
    assert added(golden(name), golden(name)) == []


@pytest.mark.null
@pytest.mark.parametrize("name", SAMPLES)
def test_a_line_that_is_missing_or_twice_is_found(name):
    lines = golden(name)
    for k in range(len(lines)):
        with pytest.raises(AssertionError, match="There is no line"):
            added(lines, lines[:k] + lines[k + 1 :])
        assert len(added(lines, lines[:k] + lines[k : k + 1] + lines[k:])) == 1


@pytest.mark.null
@pytest.mark.parametrize("name", SAMPLES)
def test_lines_that_change_places_are_found(name):
    lines = golden(name)
    for k in range(len(lines) - 1):
        if lines[k] != lines[k + 1]:
            with pytest.raises(AssertionError, match="There is no line"):
                added(lines, [*lines[:k], lines[k + 1], lines[k], *lines[k + 2 :]])


@pytest.mark.null
@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("local_time 0.07 (Time spent running thunks)", "local_time 0.07s (Time spent in thunks)"),
        ("\t0.139\t* mul", "\t0.139\t  mul"),
        ("\t0.139\t* mul", "\t0.139\t *mul"),
        ("\t0.139\t* mul", "\t*\t0.139\tmul"),
        ("\t0.069\t15\tdot", "\t15\t0.069\tdot"),
        ("\t0.069\t15\tdot", "        0.069   15      dot"),
        ("<% time> <sum %> <Op name>", "<sum %> <% time> <Op name>"),
        (
            "  65.4%    65.4%       0.000s       2.03e-06s     C        2        2   add",
            "  65.4%    65.4%       0.000s       2.03e-06s     C        2       2   add",
        ),
        (
            "  65.4%    65.4%       0.000s       2.03e-06s     C        2        2   add",
            "  65.4%    65.4%       2.03e-06s       0.000s     C        2        2   add",
        ),
        (
            "  65.4%    65.4%       0.000s       2.03e-06s     C        2        2   add",
            "  65.4%    65.4%       0.000s       2.03e-06s     Py       2        2   add",
        ),
        (
            "  50.0%    50.0%       0.000s       3.10e-06s      1     0   add(x, y)",
            "  50.0%    50.0%       0.000s       3.10e-06s      1   add(x, y)",
        ),
        (
            "   ... (remaining 0 Ops account for   0.00%(0.00s) of the runtime)",
            "   ... (remaining 0 Ops account for 0.00%(0.00s) of the runtime)",
        ),
        ("    Max if linker=c|py: 0KB", "    Max if linker=c|py: 0B"),
        ("    Max if linker=c|py: 0KB", "    Max if linker=c|py: unknown"),
        (
            "    input 0: dtype=float64, shape=(), strides=c",
            "    input 0: dtype=float32, shape=(), strides=c",
        ),
    ],
)
def test_the_mask_keeps_the_form(line, other):
    assert masked(line) != masked(other)


@pytest.mark.null
@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("\t0.139\t* mul", "\t0.003\t* Elemwise{add, 1 2}[(0, 0)]"),
        ("\t0.069\t15\tdot", "\t0.900\t3\tInplaceDimShuffle{x,0}"),
        (
            "  65.4%    65.4%       0.000s       2.03e-06s     C        2        2   add",
            "  100.0%   100.0%      12.345s       2.03e+00s     C       34      200   mul{m, 1}",
        ),
        (
            "  50.0%    50.0%       0.000s       3.10e-06s      1     0                     add(x)",
            "   5.0%    50.0%       0.000s       3.10e-06s   4321    17      0.0        0.0 mul(y)",
        ),
        ("  Time in 1 calls to f: 5.698204e-05s", "  Time in 1000 calls to f: 0.000000e+00s"),
        ("  Time in thunks: 9.05e-06s (4.274%)", "  Time in thunks: 9.05e+00s (14.274%)"),
        ("for    8B/8B ((100.00%)) of", "for  512B/2048B ((25.00%)) of"),
        ("           Node add(x, 3) time 1.0e-04s", "           Node mul(x, 0.5) time 1.5e-04s"),
    ],
)
def test_the_mask_hides_figures_and_names(line, other):
    assert masked(line) == masked(other)


# --- ProfileMode ----------------------------------------------------------------------------------

#: what that form did not have: the third summary, between the others and the legend
TYPES = [
    "Type-Op-wise summary: <fraction of local_time spent on this type of Op> <Op type name>",
    "\t#\t* name",
    "   ... (remaining # Op types account for # of the runtime)",
]


@pytest.fixture
def summary(capsys):
    """Return a function that trains the regression and returns the summary up to the legend."""

    def run(optimizer):
        mode = theano.ProfileMode(optimizer=optimizer, linker=theano.gof.OpWiseCLinker())
        case = seed_case(epochs=3)
        model = RegressionLayer().make(input_size=10, target_size=1, stepsize=0.1, mode=mode)
        costs = [float(model.update(*batch)[0]) for batch in case.batches()]
        assert costs == sorted(costs, reverse=True)
        assert model.apply(case.train_x).shape == (4, 1)
        capsys.readouterr()
        mode.print_summary()
        lines = capsys.readouterr().out.splitlines()
        return lines[: lines.index("(*) Op is running a c implementation") + 1]

    return run


@pytest.mark.c
def test_profile_mode(summary):
    """Rows differ in number, since a graph is rewritten into fewer Applys today."""
    shown = folded(map(masked, summary("fast_run")))
    assert added(folded(golden("profilemode")), shown) == TYPES


@pytest.mark.c
def test_profile_mode_with_more_applys_than_are_shown(summary):
    lines = summary(Mode("c|py", "fast_run").excluding("fusion").optimizer)
    assert added(folded(golden("profilemode")), folded(map(masked, lines))) == TYPES
    kinds = [masked(line) for line in lines]
    assert kinds.count("\t#\t#\tname") == golden("profilemode").count("\t#\t#\tname") == 15
    (rest,) = [line for line in lines if "Apply instances" in line]
    assert int(re.search(r"remaining (\d+) Apply", rest)[1]) >= 1
    positions = [int(line.split("\t")[2]) for line in lines if masked(line) == "\t#\t#\tname"]
    assert len(set(positions)) > 10


# --- ProfileStats ---------------------------------------------------------------------------------


def profiled(name, flags):
    """Run a program of golden/ in a fresh process.

    Return its output, and masked what it writes of its profile up to the tips, behind which stands
    what no older form had.
    """
    ran = subprocess.run(
        [sys.executable, GOLDEN / f"{name}.py"],
        env={**os.environ, "THEANO_FLAGS": flags, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    printed = ran.stdout.splitlines(keepends=True)
    start = printed.index("Function profiling\n")
    lines = [masked(line.rstrip("\n")) for line in printed[start:]]
    return "".join(printed[:start]), lines[: lines.index(TIPS[-1]) + 1]


#: (pattern of what was printed, what stands there today)
DEPARTURES = (
    # the row of a class: one blank less, and the name alone
    (r"\b ( +\d+   )<class '(.*)'>", r"\1\2"),
    # a function without a name is called after the line that made it
    (r"Message: None", f"Message: {GOLDEN / 'profilestats.py'}:11"),
    # the peak was not known then
    (r"\(default\): unknown", "(default): 0KB"),
)
#: what that form did not have, as Theano 1.0 prints it
COMPILING = [
    "    Number of Apply nodes: #",
    "       Import time #s",
    "       Node make_thunk time #s",
]
NODE = "           Node name time #s"
PROCESS = ["Time in all call to theano.grad() #s", "Time since theano import #s"]
TIPS = [
    "",
    "Here are tips to potentially make your code run faster",
    "                 (if you think of new ones, suggest them on the mailing list).",
    "                 Test them first, as they are not guaranteed to always provide a speedup.",
    "  - Try the Theano flag floatX=float32",
]
MEMORY = [
    "(For values in brackets, it's for linker = c|py",
    "    Max peak memory with current setting",
    *(
        KINDS := [
            "        CPU: #KB (#KB)",
            "        GPU: #KB (#KB)",
            "        CPU + GPU: #KB (#KB)",
        ]
    ),
    "    Max peak memory with current setting and Theano flag optimizer_excluding=inplace",
    *KINDS,
    "    Max peak memory if allow_gc=False (linker don't make a difference)",
    "        CPU: #KB",
    "        GPU: #KB",
    "        CPU + GPU: #KB",
    "---",
    "    Max if no gc, inplace and view: #KB",
    "    Memory saved if views are used: #KB",
    "    Memory saved if inplace ops are used: #KB",
]


def of_today(name):
    """Return the masked lines of a file in golden/, with the departures."""
    changed = []
    for line in golden_lines(name):
        for old, new in DEPARTURES:
            other = re.sub(old, new, line)
            assert other == line or masked(other) != masked(line), f"{old} is no departure"
            line = other
        changed.append(masked(line))
    return changed


@pytest.mark.c
def test_profile_stats_with_memory():
    out, shown = profiled("profilestats_memory", "profile=true,profile_memory=true")
    assert out == "5.0\n"
    more = added(of_today("profilestats_memory"), shown)
    assert more == [*COMPILING, NODE, *PROCESS, *MEMORY, *TIPS]


FLAGS = "profile=True,optimizer_excluding=fusion:inplace"


@pytest.mark.c
def test_profile_stats():
    out, shown = profiled("profilestats", f"{FLAGS}:local_add_canonizer")
    assert out == ""
    more = added(of_today("profilestats"), shown)
    assert more == [*COMPILING, *3 * [NODE], *PROCESS, *TIPS]


@pytest.mark.c
def test_profile_stats_as_it_was_called():
    """One row less: a sum of three is one Apply today."""
    _, shown = profiled("profilestats", FLAGS)
    more = added(folded(of_today("profilestats")), folded(shown))
    assert more == [*COMPILING, NODE, *PROCESS, *TIPS]
