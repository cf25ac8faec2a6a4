"""Copies, pickles and texts of graphs that are deeper than Python can recurse."""

import copy
import io
import pickle

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import function
from opwise.graph import printing, traversal

DEEP = 3000


def chain(n=DEEP):
    x = T.dvector("x")
    y = x
    for k in range(n):
        y = y + x if k % 3 else T.tanh(y)
    return x, y


def same_graph(x, y, x2, y2):
    """Assert that y(x) and y2(x2) are equal computations without a common Apply or variable."""
    before, after = traversal.io_toposort([x], [y]), traversal.io_toposort([x2], [y2])
    assert [n.op for n in before] == [n.op for n in after] and len(before) >= DEEP
    assert not {*before} & {*after} and y2.type == y.type
    assert not {v for n in before for v in n.outputs} & {v for n in after for v in n.inputs}


@pytest.mark.null
class TestCopies:
    def test_deepcopy(self):
        x, y = chain()
        x2, y2 = copy.deepcopy([x, y])
        same_graph(x, y, x2, y2)
        y3 = copy.deepcopy(y.owner).outputs[0]
        assert len(traversal.io_toposort([], [y3])) == len(traversal.io_toposort([], [y]))

    def test_what_is_shared_stays_shared(self):
        x = T.dvector()
        a = T.exp(x)
        b = a * a + a
        for copied in (copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))):
            x2, a2, b2 = copied([x, a, b])
            assert b2.owner.inputs[1] is a2 and a2.owner.inputs[0] is x2
            assert [*b2.owner.inputs[0].owner.inputs] == [a2, a2]
            assert a2.owner.outputs[0] is a2 and x2 is not x

    def test_a_copy_of_a_part_then_of_the_whole(self):
        _, y = chain(40)
        memo = {}
        part = copy.deepcopy(y.owner.inputs[0], memo)
        assert copy.deepcopy(y, memo).owner.inputs[0] is part


@pytest.mark.null
class TestPickles:
    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_protocols(self, protocol):
        x, y = chain()
        x2, middle, y2 = pickle.loads(pickle.dumps([x, y.owner.inputs[0], y], protocol))
        same_graph(x, y, x2, y2)
        assert y2.owner.inputs[0] is middle

    def test_the_pickler_in_python(self):
        x, y = chain()
        x2, y2 = pickle.loads(pickle._dumps([x, y]))
        same_graph(x, y, x2, y2)

    def test_a_pickle_that_fails_leaves_nothing_behind(self):
        x, y = chain()
        y.owner.inputs[0].owner.tag.broken = lambda: 0
        for _ in range(2):
            with pytest.raises((pickle.PicklingError, AttributeError)):
                pickle.dumps(y)
        del y.owner.inputs[0].owner.tag.broken
        x2, y2 = pickle.loads(pickle.dumps([x, y]))
        same_graph(x, y, x2, y2)

    def test_functions_and_their_graphs(self):
        x, y = chain(1000)
        f = function([x], y, mode="FAST_COMPILE")
        value = np.array([0.5, -1.0])
        for again in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f)):
            np.testing.assert_array_equal(again(value), f(value))
        graph = f.maker.fgraph
        for again in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
            assert [n.op for n in again.toposort()] == [n.op for n in graph.toposort()]
            assert again.apply_nodes == {*again.toposort()} and not hasattr(again, "_before")


class Lines(io.StringIO):
    """Records the length of the longest text written."""

    longest = pieces = 0

    def write(self, text):
        self.pieces += 1
        self.longest = max(self.longest, len(text))
        return super().write(text)


@pytest.mark.null
class TestTexts:
    def test_debugprint_is_written_line_by_line(self):
        _, y = chain()
        to = Lines()
        printing.debugprint(y, file=to)
        text = to.getvalue()
        assert to.pieces == text.count("\n") > DEEP and to.longest < 700
        assert text == printing.debugprint(y, file="str")

    def test_indentation_is_bounded(self):
        """The length of the text is linear in the graph; shallow graphs print as before."""
        sizes = [len(printing.debugprint(chain(n)[1], file="str")) for n in (1000, 2000, 4000)]
        assert sizes[2] - sizes[1] < 2.3 * (sizes[1] - sizes[0])
        lines = printing.debugprint(chain(400)[1], file="str").splitlines()
        assert any(line.startswith(" |... level 201 ... |Elemwise") for line in lines)
        shallow = printing.debugprint(chain(150)[1], file="str")
        assert "... level" not in shallow and " |" * 150 in shallow.replace("  ", " |")

    def test_pp(self):
        _, y = chain()
        text = printing.pp(y)
        assert text.count("tanh") == DEEP // 3 and text.count("(") == text.count(")")
        shallow = chain(7)[1]
        assert printing.pp(shallow) == "tanh(((tanh(((tanh(x) + x) + x)) + x) + x))"
        assert printing._nested.level is None and printing._nested.texts == {}

    def test_pp_of_every_kind_of_printer(self):
        x = T.dvector("x")
        y = x
        for _ in range(400):
            y = -abs(T.stack([y[:2].sum(), x[0]]).dimshuffle("x", 0)[0] ** 2)
        text = printing.pp(y)
        assert text.count("|") == 800 and text.count("**") == 400

    def test_short_descriptions(self):
        _, y = chain()
        text = printing.min_informative_str(y)
        assert len(text.splitlines()) > DEEP and max(map(len, text.splitlines())) < 300
        assert printing.var_descriptor(y).count("tanh") == DEEP // 3

    def test_a_printer_that_fails_leaves_nothing_behind(self):
        class Failing:
            def process(self, output, pstate):
                raise ZeroDivisionError

        _, y = chain(100)
        printer = printing.pprint.clone_assign(opwise.tensor.tanh, Failing())
        with pytest.raises(ZeroDivisionError):
            printer(y)
        assert printing._nested.level is None and printing.pp(y)
