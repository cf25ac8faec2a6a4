"""The lines that made Applys, and keys that are the same in every process."""

import inspect
import linecache
import os
import pickle
import runpy
import subprocess
import sys
import threading
import types

import pytest

from opwise import Apply, Constant, generic, shared
from opwise.config import change_flags
from opwise.graph import callstack, provenance

pytestmark = pytest.mark.null


def test_an_apply_knows_the_line_that_made_it(toy):
    node = toy("f").make_node(generic("x"))
    filename, _ = provenance.user_line(node)
    assert filename.endswith("conftest.py")  # where make_node is written
    caller = [entry for entry in provenance.resolve(node.trace) if entry[0] == __file__][-1]
    assert caller[2:] == (
        "test_an_apply_knows_the_line_that_made_it",
        'node = toy("f").make_node(generic("x"))',
    )
    assert f'File "{__file__}"' in provenance.format_trace(node.trace)


def test_an_op_of_the_user_is_at_the_line_that_applies_it(toy):
    made = toy("f")(generic("x"))
    node = made.owner
    assert made.made_at == node.trace
    assert provenance.resolve(node.trace)[-1][2:] == (
        "test_an_op_of_the_user_is_at_the_line_that_applies_it",
        'made = toy("f")(generic("x"))',
    )


@pytest.mark.parametrize("written", [provenance, pickle, subprocess])
def test_the_line_of_every_instruction(written):
    """Lines equal those that Python reports, for every instruction."""
    todo = [compile(inspect.getsource(written), written.__file__, "exec")]
    for code in todo:
        todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        for k, (line, *_) in enumerate(code.co_positions()):
            found = provenance.line_of(((code, 2 * k),))
            assert found == (code.co_filename, code.co_firstlineno if line is None else line)
    assert len(todo) > 10


def test_the_limit_says_how_many_frames_are_shown(toy):
    node = toy("f").make_node(generic())
    with change_flags(**{"traceback.limit": -1}):
        whole = provenance.resolve(node.trace)
    assert len(whole) == len(node.trace) > 10, "all of pytest's"
    for wanted in (1, 2):
        with change_flags(**{"traceback.limit": wanted}):
            shown = provenance.resolve(node.trace)
            assert len(shown) == wanted and len(pickle.loads(pickle.dumps(node)).trace) == wanted
            assert shown == provenance.resolve(shown)
            assert shown == whole[-wanted:]
    with change_flags(**{"traceback.limit": 0}):
        assert provenance.user_line(toy("f").make_node(generic())) is None
    assert provenance.format_trace(()) == ""


def test_equal_stacks_are_one_tuple(toy):
    def made():
        return toy("f").make_node(generic())

    same = [made() for _ in range(3)]
    other = made()
    assert same[0].trace is same[1].trace is same[2].trace is not other.trace
    assert same[0].trace[0] is other.trace[0], "the line in made()"


def test_the_stack_is_that_of_python():
    """callstack.capture walks the frames that Python's own functions show."""

    def walked():
        frame, found = sys._getframe(1), []
        while frame is not None:
            if not provenance.is_internal(frame.f_code):
                found.append((frame.f_code, frame.f_lasti))
            frame = frame.f_back
        return found

    def captured():
        return callstack.capture(provenance.is_internal)

    def of(depth, function):
        return of(depth - 1, function) if depth else function()

    for depth in (0, 3, 100):
        mine, python = of(depth, lambda: (captured(), walked()))
        assert mine[0][0].co_name == "captured" and mine[1][0] is python[0][0]
        assert list(mine[2:]) == python[1:]
    assert len(of(300, captured)) == 256
    asked = []
    assert callstack.capture(lambda code: asked.append(code) or True)
    assert not asked, "each code object is asked about once"


def test_frames_of_libraries(toy, tmp_path):
    (tmp_path / "lib").mkdir()
    file = tmp_path / "lib" / "layers.py"
    file.write_text("def layer(apply, op, type):\n    return apply(op, [], [type()])\n")
    space = runpy.run_path(str(file))
    node = space["layer"](Apply, toy("f"), generic)
    assert provenance.user_line(node) == (str(file), 2)
    libraries = f"installed{os.pathsep}{tmp_path / 'lib'}"
    with change_flags(**{"traceback.libraries": libraries}):
        assert provenance.library_of(str(file)) == "lib"
        assert provenance.library_of(pytest.__file__) == "pytest"
        assert provenance.library_of(inspect.__file__) == "inspect"
        assert provenance.library_of(__file__) == ""
        assert provenance.user_line(node)[0] == __file__
        assert provenance.line_of(provenance.resolve(node.trace))[0] == __file__
    with change_flags(**{"traceback.libraries": ""}):
        assert provenance.library_of(pytest.__file__) == ""


def test_applys_of_rewrites_have_no_trace(toy):
    with provenance.rewriting():
        node = toy("f").make_node(generic())
        with provenance.rewriting():
            pass
        assert not provenance.recording()
    assert node.trace is None and node.outputs[0].made_at is None
    assert provenance.recording()
    with pytest.raises(KeyError), provenance.rewriting():
        raise KeyError
    assert provenance.recording()


def test_located_gives_all_applys_one_trace(toy):
    mine = provenance.capture()
    with provenance.located(mine):
        node = toy("f").make_node(generic())
        with provenance.located(None):
            own = toy("f").make_node(generic())
        again = toy("f").make_node(generic())
    assert node.trace is mine and again.trace is mine
    assert own.trace is not mine
    assert toy("f").make_node(generic()).trace is not mine


def test_a_trace_survives_pickling(toy):
    x = generic("x")
    expected = provenance.resolve(x.made_at)
    new = pickle.loads(pickle.dumps(x))
    assert provenance.resolve(new.made_at) == expected
    assert provenance.line_of(new.made_at) == expected[-1][:2] == provenance.line_of(x.made_at)
    # once more, from a trace that is resolved already
    assert provenance.resolve(pickle.loads(pickle.dumps(new)).made_at) == expected


def test_a_union_keeps_the_first_order():
    assert provenance.union((1, 2), (), (3, 2, 1), (4,)) == (1, 2, 3, 4)


# --- keys -----------------------------------------------------------------------------------------


def keys_of(toy, build):
    keys = provenance.Keys()
    return [keys.node(v.owner) for v in build(toy, generic("x"), generic("y"))]


def test_the_same_program_has_the_same_keys(toy):
    def build(toy, x, y):
        a = toy("f")(x, Constant(generic, 3))
        return [a, toy("g")(a, y)]

    assert keys_of(toy, build) == keys_of(toy, build)


def test_different_computations_have_different_keys(toy):
    def build(toy, x, y):
        f, two = toy("f"), toy("t", outs=2)
        left, right = two(x)
        three, four = Constant(generic, 3), Constant(generic, 4)
        results = [f(x), f(y), toy("g")(x), f(x, y), f(y, x), f(left), f(right)]
        return [*results, f(three), f(four), f(f(x))]

    keys = keys_of(toy, build)
    contents = [key.partition(".")[0] for key in keys]
    assert len(set(contents)) == len(contents)


def test_equal_computations_differ_by_position(toy):
    def build(toy, x, y):
        f = toy("f")
        return [f(x), f(x), f(x)]

    keys = keys_of(toy, build)
    assert len({key.partition(".")[0] for key in keys}) == 1
    assert [key.partition(".")[2] for key in keys] == ["0", "1", "2"]


def test_readers_of_equal_operands_are_equal(toy):
    def build(toy, x, y):
        return [toy("g")(toy("f")(x)), toy("g")(toy("f")(x))]

    first, second = keys_of(toy, build)
    assert first.partition(".")[0] == second.partition(".")[0]


def test_depth_is_no_limit(toy):
    top = generic("x")
    for _ in range(5000):
        top = toy("f")(top)
    assert provenance.Keys().node(top.owner).endswith(".0")
    assert provenance.Keys().variable(top)


PROGRAM = """
from opwise.graph.op import Op
from opwise.graph.apply import Apply
from opwise.graph.type import generic
from opwise.graph.variable import Constant
from opwise.graph.provenance import Keys

class F(Op):
    __props__ = ("words",)
    def __init__(self, words):
        self.words = words
    def make_node(self, *inputs):
        return Apply(self, inputs, [generic()])

x = generic("x")
print(Keys().node(F(("a", "b"))(F(())(x), Constant(generic, "text")).owner))
"""


def test_keys_are_the_same_in_every_process():
    def key(seed):
        return subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed,
                 "PYTHONPATH": ":".join(filter(None, sys.path))},
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip

    assert key("1") == key("2") != ""


def test_warnings_are_counted_where_they_come_from():
    """Blocks within blocks count too, those of other threads do not."""

    def elsewhere():
        with provenance.counting_warnings() as theirs:
            provenance.note_warning()
        counts.append(theirs.number)

    counts = []
    with provenance.counting_warnings() as outer:
        provenance.note_warning()
        with provenance.counting_warnings() as inner:
            provenance.note_warning()
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
        with pytest.warns(UserWarning, match="mind that"):
            provenance.warn("mind that")
    assert (outer.number, inner.number, counts) == (3, 1, [1])


def test_a_warning_names_the_users_line():
    with pytest.warns(UserWarning, match="mind that") as caught:
        provenance.warn("mind that")
    assert caught[0].filename == __file__


def test_a_shared_variable_knows_its_line():
    w = shared(1.0, name="w")
    filename, line = provenance.line_of(w.made_at)
    assert filename == __file__
    assert "shared(1.0" in linecache.getline(filename, line)
