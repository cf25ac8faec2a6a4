"""Graphs are built in one thread while others compile: lines and scopes are right in each."""

import inspect
import threading

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import shared
from opwise.graph import provenance

pytestmark = pytest.mark.null

ROUNDS = 60


def run_together(*works):
    """Run functions in threads of their own; raise what one of them raised."""
    failures, start = [], threading.Barrier(len(works))

    def run(work):
        start.wait()
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def build(name):
    """Make Applys on known lines, in a scope, and look at what each of them remembers."""
    for _ in range(ROUNDS):
        x = T.dvector("x")
        with opwise.scope(name):
            y = T.exp(x)
            line = inspect.currentframe().f_lineno - 1
        w = shared(np.zeros(2))
        assert provenance.user_line(y.owner) == (__file__, line)
        assert y.owner.origins == (y.owner,)
        assert y.owner.context.scope == name
        assert provenance.line_of(x.made_at) == (__file__, line - 2)
        assert provenance.line_of(w.made_at) == (__file__, line + 2)


def differentiate():
    """Make gradients, all Applys of which belong to the line that asks for them."""
    for _ in range(ROUNDS):
        x = T.dvector("x")
        cost = T.sum(T.tanh(x) ** 2)
        g = opwise.grad(cost, x)
        line = inspect.currentframe().f_lineno - 1
        assert provenance.user_line(g.owner) == (__file__, line)


def compile_functions():
    for k in range(ROUNDS // 4):
        x = T.dvector("x")
        y = T.exp(x) * 2 + T.log(x + k)
        line = inspect.currentframe().f_lineno - 1
        f = opwise.function([x], y, mode=opwise.Mode("vm", "fast_run"))
        for node in f.linked.order:
            assert {provenance.user_line(origin) for origin in node.origins} == {(__file__, line)}


def test_lines_and_scopes_while_other_threads_compile():
    run_together(
        lambda: build("one"), lambda: build("two"), differentiate, compile_functions,
        compile_functions,
    )  # fmt: skip


def test_a_rewriting_thread_leaves_the_recording_of_others_alone():
    inside, done = threading.Event(), threading.Event()

    def rewrite():
        with provenance.rewriting():
            inside.set()
            assert done.wait(20)
            assert not provenance.recording()

    def make():
        assert inside.wait(20)
        try:
            node = T.exp(T.dvector("x")).owner
            assert provenance.user_line(node)[0] == __file__
        finally:
            done.set()

    run_together(rewrite, make)


def test_test_values_are_computed_while_other_threads_compile(flags):
    """Compiling computes none, and does not keep other threads from it."""
    flags(compute_test_value="raise")

    def build_with_values():
        for k in range(ROUNDS):
            x = T.dvector("x")
            x.tag.test_value = np.full(2, float(k))
            assert T.sum(x * 2).tag.test_value == 4 * k

    def compile_without():
        for _ in range(ROUNDS // 4):
            x = T.dvector("x")
            x.tag.test_value = np.ones(2)
            opwise.function([x], T.exp(x) * 2, mode=opwise.Mode("vm", "fast_run"))

    run_together(build_with_values, compile_without, compile_without)
    assert opwise.config.compute_test_value == "raise"
