"""Random programs of all Ops: every configuration gives the same; the search finds what does not.

The programs are the same in each run; ``python -m opwise.testing.fuzz`` runs others, for hours.
"""

import ast
import json
import runpy
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import opwise.tensor as T
from opwise import Mode
from opwise.compile import OPT_FAST_RUN
from opwise.config import change_flags, config
from opwise.optimizers.navigators import TopoOptimizer
from opwise.optimizers.rule import Rule
from opwise.scalar.spec import ROWS
from opwise.testing import configurations, reported
from opwise.testing.fuzz import __main__ as search
from opwise.testing.fuzz import processes
from opwise.testing.fuzz.examine import examine, same_bits
from opwise.testing.fuzz.grow import Fault, Grower, Rejected
from opwise.testing.fuzz.layouts import LAYOUTS, array_text, laid_out
from opwise.testing.fuzz.shrink import Recorded, shrunk
from opwise.testing.fuzz.slopes import can_be_checked, wrong_slope
from opwise.testing.fuzz.steps import PATTERNS, STEPS, apply_row
from opwise.testing.fuzz.strategy import programs
from opwise.testing.fuzz.whole import USERS, grown

pytestmark = pytest.mark.filterwarnings("ignore")  # numpy's, of values far out

_FIXED = settings(
    max_examples=60, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@given(programs())
@_FIXED
def test_programs_give_the_same_in_every_configuration(program):
    examine(program, [*search.QUICK, search.OTHERS[program.seed % len(search.OTHERS)]])


@given(programs(special=True))
@_FIXED
def test_programs_with_nan_and_infinities_do_too(program):
    examine(program, search.QUICK)


@pytest.mark.parametrize("start", range(0, 100, 25))
def test_programs_of_seeds(start):
    for seed in range(start, start + 25):
        program = grown(Recorded(seed=seed))
        examine(program, [*search.QUICK, search.OTHERS[seed % len(search.OTHERS)]])


def test_programs_with_ops_of_users():
    """Ops without inputs, with several outputs, and with graphs inside, among others."""
    for seed in range(300, 316):
        program = grown(Recorded(seed=seed), 8, preferred=USERS)
        if program is not None:
            configurations = [*search.QUICK, search.OTHERS[seed % len(search.OTHERS)]]
            if seed % 3 == 0:
                configurations.append("DEBUG_MODE, built-in kernels")
            examine(program, configurations)


@pytest.mark.c
def test_programs_with_generated_kernels():
    for seed in range(200, 215):
        examine(grown(Recorded(seed=seed)), ["FAST_RUN"])


def test_debug_mode_raises_no_false_alarm():
    for seed in range(60):
        program = grown(Recorded(seed=seed), 16, seed % 5 == 4)
        if program is not None:
            examine(program, ["DEBUG_MODE, built-in kernels"])


# --- what programs are made of --------------------------------------------------------------------


def test_every_kind_of_statement_can_be_made():
    made = set()
    for seed in range(60):
        g = Grower(Recorded(seed=seed))
        for step in dict.fromkeys(STEPS):
            if step in made:
                continue
            try:
                step(g)
                made.add(step)
            except Rejected:
                continue
    assert made == {*STEPS}
    modules = {step.__module__.rpartition(".")[2] for step in STEPS}
    assert modules == {"steps", "loops", "images", "users"}


@pytest.mark.parametrize("name", [row.name for row in ROWS.values() if row.nin in (1, 2)])
def test_every_row_can_be_drawn(name):
    row = ROWS[name]
    for seed in range(40):
        g = Grower(Recorded(seed=seed))
        try:
            x = g.pick(row.kinds, exact=True)
            names = [x] if row.nin == 1 else [x, g.beside(x, kinds=row.kinds, exact=True)]
            found = apply_row(g, row, names)
        except Rejected:
            continue
        assert g.program.statements[found].startswith("T.")
        return
    pytest.fail(f"nothing was made of {name} with 40 seeds")


@pytest.mark.parametrize("text", PATTERNS)
def test_patterns_are_graphs(text):
    names = {n: T.dmatrix(n) for n in "fgpqm"} | {"e": T.imatrix("e")}
    assert eval(text.format(**{n: n for n in names}), {"T": T, **names}).owner is not None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_keep_values(layout):
    for shape in [(), (3,), (2, 3), (0, 2), (2, 1, 3)]:
        array = np.arange(0.5, np.prod(shape, dtype=int), dtype="float32").reshape(shape)
        made = laid_out(array, layout)
        np.testing.assert_array_equal(made, array)
        assert made.flags.writeable == (layout != "read-only")
        text = array_text(array, layout)
        again = eval(text, {"np": np})
        np.testing.assert_array_equal(again, array)
        assert again.dtype == array.dtype
        assert again.strides == made.strides or not array.size
    assert laid_out(np.zeros((4, 6)), "reversed").strides == (-48, -8)
    assert laid_out(np.zeros((4, 6)), "fortran").flags.f_contiguous


def test_gradients_are_held_against_differences():
    g = Grower(Recorded(seed=1))
    x = g.leaf("float64", (3,), broadcast=[False], finite=True)
    y = g.add(f"T.tanh({x}) * {x}.sum()")
    cut = g.add(f"theano.gradient.disconnected_grad({y})")
    assert can_be_checked(g.program, y, x) and not can_be_checked(g.program, cut, x)
    cost = T.sum(g.var(y))
    value = g.program.leaves[x].value
    right = (1 - np.tanh(value) ** 2) * value.sum() + np.tanh(value).sum()
    assert wrong_slope(g.program, cost, x, right, range(3)) is None
    wrong = right + [0, 0.1, 0]
    assert wrong_slope(g.program, cost, x, wrong, [0, 2]) is None
    how = wrong_slope(g.program, cost, x, wrong, range(3))
    assert f"by element 1 of {x}" in how and "differences give" in how
    assert "has shape" in wrong_slope(g.program, cost, x, right[:2], range(3))


def test_kinks_are_left_out():
    g = Grower(Recorded(seed=1))
    x = g.leaf("float64", (2,), broadcast=[False], exact=True)
    cost = T.sum(abs(g.var(x) - g.value(x)))
    assert wrong_slope(g.program, cost, x, np.full(2, 7.0), range(2)) is None


# --- shrinking ------------------------------------------------------------------------------------


def test_recorded_choices_make_the_same_program():
    source = Recorded(seed=5)
    program = grown(source)
    again = grown(Recorded(source.choices))
    assert again.statements == program.statements
    assert again.outputs == program.outputs
    for name, leaf in program.leaves.items():
        np.testing.assert_array_equal(leaf.value, again.leaves[name].value)


def test_shrunk_choices_are_the_simplest_that_fail():
    def fails(choices):
        return choices if sum(c >= 10 for c in choices) >= 2 else None

    found = shrunk([3, 40, 0, 7, 99, 12, 5], fails)
    assert len(found) == 2
    assert all(10 <= c < 20 for c in found)


def test_shrinking_keeps_what_it_cannot_simplify():
    assert shrunk([1, 2], lambda choices: None) == [1, 2]


# --- the search -----------------------------------------------------------------------------------


def _wrong(fgraph, node):
    """Adds instead of subtracting."""
    return [T.cast(T.add(*node.inputs), node.outputs[0].type.dtype)]


@pytest.fixture(params=["a mode", "DEBUG_MODE"])
def a_wrong_configuration(monkeypatch, request):
    wrong = TopoOptimizer(Rule(_wrong, ("row:sub",)), name="wrong")
    query = OPT_FAST_RUN.register((wrong, 0.3))
    if request.param == "DEBUG_MODE":
        configuration = configurations.DebuggedBuiltInKernels, None, query
        monkeypatch.setitem(configurations.THOROUGH, "wrong", configuration)
    else:
        monkeypatch.setitem(configurations.CONFIGURATIONS, "wrong", (Mode, "py", query))
    return "wrong"


def test_the_search_finds_a_wrong_rewrite_and_writes_a_test(
    a_wrong_configuration, tmp_path, capsys
):
    folder = tmp_path / "faults"
    code = search.main(
        ["--minutes", "1", "--faults", "1", "--modes", a_wrong_configuration,
         "--folder", str(folder), "--shrink", "2", "--seed", "3"]
    )  # fmt: skip
    assert code == 1
    printed = capsys.readouterr().out
    assert "FAULT" in printed
    assert "1 faults" in printed
    written = sorted(folder.glob("test_*.py"))
    assert written
    texts = [path.read_text() for path in written]
    names = [n.name for n in ast.parse(texts[0]).body if isinstance(n, ast.FunctionDef)]
    assert "test_modes_agree" in names
    # it was shrunk to few statements, and the file is a whole program: opwise itself is right here
    assert min(sum(line.startswith("v") and " = " in line for line in text.splitlines())
               for text in texts) <= 10  # fmt: skip
    runpy.run_path(str(written[0]), run_name="__main__")


def test_the_search_finds_nothing_where_nothing_is_wrong(tmp_path, capsys):
    filters = list(warnings.filters)
    with change_flags(cache_graphs=True):
        code = search.main(["--minutes", "1", "--graphs", "10", "--folder", str(tmp_path / "none"),
                            "--refused"])  # fmt: skip
        assert config.cache_graphs  # flags and filters are as they were
    assert code == 0 and warnings.filters == filters
    assert "0 faults" in capsys.readouterr().out
    assert not (tmp_path / "none").exists()


def test_the_search_lists_the_configurations(capsys):
    with pytest.raises(SystemExit):
        search.main(["--modes", "FAST"])
    assert "no configuration is called 'FAST'" in capsys.readouterr().err


def test_a_fault_names_program_and_configuration(a_wrong_configuration):
    found = None
    for seed in range(80):
        try:
            examine(grown(Recorded(seed=seed)), [a_wrong_configuration])
        except Fault as fault:
            found = fault
            break
    assert found is not None
    assert found.configuration == a_wrong_configuration
    assert found.program.statements


@pytest.mark.null
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_bits_of_numbers_are_compared_but_not_those_of_nan(dtype):
    one = np.array([0.0, np.nan, 1.5], dtype)
    other = one.copy()
    other.real[1] = -np.array(np.nan)
    assert one.tobytes() != other.tobytes() and same_bits(one, other)
    for other in ([-0.0, np.nan, 1.5], [0.0, 1.0, 1.5], [0.0, np.nan, np.nan]):
        assert not same_bits(one, np.array(other, dtype))
    assert not same_bits(one, one[:2]) and not same_bits(one, one.astype("float64")[:, None])
    assert same_bits(np.arange(3), np.arange(3)) and not same_bits(np.arange(3), np.arange(3.0))


# --- in two processes -----------------------------------------------------------------------------


@pytest.mark.c
def test_the_same_is_told_in_another_process():
    ran = {}
    options = processes.Options(loops=True)
    found = list(processes.compare(60, 12, options, ran.__setitem__))
    assert found == []
    assert len(ran) > 8
    for seed, cached in ran.items():  # graphs with Ops of users are not kept
        statements = options.program(seed).statements.values()
        assert cached is not any("userops" in text for text in statements)


def test_what_is_told_of_a_program():
    """Its results, errors of wrong calls, graph and reports."""
    options = processes.Options()
    texts = [
        processes.run(options.program(seed), "FAST_RUN, built-in kernels")["reported"]
        for seed in (0, 1, 2, 3, 3)
    ]
    names = {name for found in texts for name in found}
    assert {"call", "wrong call 0", "lines", "drawing", "profile", "html"} <= names
    assert any("Apply node that caused the error" in t.get("wrong call 0", "") for t in texts)
    assert reported.differences(texts[3], texts[4]) == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("call", "float64", "float32"), ("call after the swap", "", "1"), ("lines", "(", "[")],
)
def test_differences_are_found(name, old, new):
    found = processes.run(processes.Options().program(3), "FAST_RUN, built-in kernels")
    other = json.loads(json.dumps(found))
    text = other["reported"].get(name, other["reported"]["call"])
    other["reported"][name] = text.replace(old, new, 1)
    assert text != other["reported"][name]
    found, other = ({"seed": 3, **each} for each in (found, other))
    (difference,) = processes._of_one(found, other)
    assert name[:12] in str(difference)


@pytest.mark.c
def test_the_search_in_processes(tmp_path, capsys):
    args = ["--processes", "--graphs", "3", "--batch", "3", "--folder", str(tmp_path)]
    assert search.main(args) == 0
    assert "3 graphs in two processes" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
