"""Random lives of functions: they hold, and each kind of fault is found where it is planted."""

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.testing.fuzz.shrink import Recorded
from opwise.testing.stateful import __main__ as search
from opwise.testing.stateful import life as events
from opwise.testing.stateful.life import EVENTS, Fault, Life
from opwise.testing.stateful.operations import OPERATIONS
from opwise.testing.stateful.program import Drawing, Leaf, Program, Statement

pytestmark = [pytest.mark.c, pytest.mark.filterwarnings("ignore")]


def outcomes(seeds):
    for seed in seeds:
        source = Recorded([8], seed=seed)
        yield search.lived(source, source(search._MOST), events=8)


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_lives_hold_in_this_process_and_in_a_second_one(first):
    lived = [outcome for outcome in outcomes(range(first, first + 20)) if outcome.program]
    assert len(lived) > 10
    assert [search.report(o) for o in lived if o.problem] == []
    assert search.in_second_process(lived) == []


def test_operations_and_events_all_take_part():
    """Drawn programs reach all of the table."""
    used = set()
    for seed in range(1500):
        program = Drawing(Recorded(seed=seed), special=seed % 4 == 0).drawn(8)
        used |= {s.operation for s in program.statements} if program else set()
    assert [op.symbolic for op in OPERATIONS if op not in used] == []
    assert len(set(EVENTS)) == len({event.__name__ for event in EVENTS}) > 15


def small():
    """v1 = v0 * 2 + w, and w becomes v1."""
    double, plus = (next(o for o in OPERATIONS if o.symbolic == text)
                    for text in ("{0} * {number}", "{0} + {1}"))  # fmt: skip
    program = Program(
        leaves=[Leaf("v0", "input", "float64", (0,)), Leaf("w", "shared", "float64", (0,))],
        statements=[
            Statement("v1", "v0 * 2.0", "v0 * 2.0", ("v0",), double, "float64"),
            Statement("v2", "v1 + w", "v1 + w", ("v1", "w"), plus, "float64"),
        ],
        outputs=["v2"], updates={"w": "v2"}, sizes=[4, 2, 2],
        shared_values={"w": np.arange(4.0)},
    )  # fmt: skip
    v0 = T.dvector("v0")
    w = opwise.shared(np.arange(4.0), "w")
    program.variables = {"v0": v0, "w": w, "v1": v0 * 2.0, "v2": v0 * 2.0 + w}
    return program


class Broken:
    """A function with a fault."""

    def __init__(self, f):
        self.f = f

    def __getattr__(self, name):
        return getattr(self.f, name)

    def __call__(self, *args):
        return self.f(*args)


class KeepsResults(Broken):
    kept = None

    def __call__(self, *args):
        found = self.f(*args)
        if self.kept is None:
            self.kept = found
        for old, new in zip(self.kept, found, strict=True):
            old[...] = new
        return self.kept


class OverwritesArguments(Broken):
    def __call__(self, *args):
        found = self.f(*args)
        for array in args:
            if isinstance(array, np.ndarray) and array.flags.writeable and array.size:
                array.flat[0] = 17
        return found


class Advances(Broken):
    """A call that fails changes a shared variable."""

    def __call__(self, *args):
        try:
            return self.f(*args)
        except Exception:
            for variable in self.f.get_shared():
                variable.set_value(variable.get_value() + 1)
            raise


class TakesAnything(Broken):
    def __call__(self, *args):
        if not all(isinstance(x, np.ndarray) and x.dtype.kind == "f" for x in args):
            return [np.zeros(4)]
        return self.f(*args)


class Rounds(Broken):
    """Another function, for copies and the like: it is a little off."""

    def __call__(self, *args):
        return [np.nextafter(found, np.inf) for found in self.f(*args)]


class CopiesBadly(Broken):
    def copy(self):
        return Rounds(self.f.copy())

    def __deepcopy__(self, memo):
        return self.f  # with the same shared variables

    def __reduce__(self):
        return Rounds, (self.f,)


class ForgetsAfterFree(Broken):
    def free(self):
        self.f = Rounds(self.f)


@pytest.mark.parametrize(
    "broken, event, words",
    [
        (KeepsResults, "call_with_other_values", "has changed"),
        (OverwritesArguments, "call_with_other_values", "was overwritten"),
        (Advances, "call_with_a_wrong_argument", "has changed the shared variable w"),
        (TakesAnything, "call_with_a_wrong_argument", "is taken as argument 0"),
        (Rounds, "call_again", "other bits than at first"),
        (CopiesBadly, "copy_the_function", "other bits than at first"),
        (CopiesBadly, "deepcopy_the_function", "shares w with the function"),
        (CopiesBadly, "pickle_the_function", "other bits than at first"),
        (ForgetsAfterFree, "collect_garbage", "other bits than at first"),
    ],
)
def test_a_planted_fault_is_found(monkeypatch, broken, event, words):
    source = Recorded(seed=3)
    life = Life(small(), source)
    life.f = broken(life.f)
    monkeypatch.setattr(events, "EVENTS", [getattr(events, event)])
    with pytest.raises(Fault, match=words):
        for _ in range(8):
            life.run(1)


def test_a_wrong_value_is_found():
    program = small()
    program.variables["v2"] = program.variables["v2"] * (1 + 1e-13)
    with pytest.raises(Fault, match="and numpy's is"):
        Life(program, Recorded(seed=1))


def test_the_search_ends_with_its_figures(tmp_path, capsys):
    assert search.main(["--lives", "3", "--folder", str(tmp_path / "faults")]) == 0
    assert "3 functions" in capsys.readouterr().out
    assert not (tmp_path / "faults").exists()


def test_a_fault_is_simplified_and_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Life, "same", lambda life, f: (_ for _ in ()).throw(Fault("planted")))
    folder = tmp_path / "faults"
    args = ["--lives", "4", "--shrink", "3", "--folder", str(folder)]
    assert search.main(args) == 1
    text = (folder / "seed0_1.txt").read_text()
    assert text.startswith("planted") and "again: --choices 8," in text
    choices = text.partition("--choices ")[2].strip()
    assert search.main(["--choices", choices]) == 1
    assert "planted" in capsys.readouterr().out
