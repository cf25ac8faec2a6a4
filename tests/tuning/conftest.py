"""What the tests of tuning share: timers that give times of their own, and no compiler."""

import random

import pytest

from opwise.tuning.trial import trial


@pytest.fixture(autouse=True)
def no_compiler(flags):
    """Only the kernels that come with the package run."""
    flags(cxx="")


@pytest.fixture
def timer():
    """``timer(rule, noise)``: a timer by which a call takes ``rule(candidate)`` seconds, give or
    take a share of noise."""

    def made(rule, noise=0.01):
        numbers = random.Random(1)
        return lambda candidate, calls: calls * rule(candidate) * (1 + noise * numbers.random())

    return made


@pytest.fixture
def advised(timer):
    """``advised(f, *args, rule=, noise=)``: the Advice, where calls take as long as a rule says."""

    def run(f, *args, rule=lambda candidate: 1.0, noise=0.01, budget=1e6, **kwargs):
        return trial(f, args, kwargs, budget, timer(rule, noise))

    return run
