"""The command in the process of the test, and profiles for it."""

import inspect

import pytest
from click.testing import CliRunner

from opwise.command import main
from opwise.profiling.profile import Profile


@pytest.fixture
def call():
    """Run the command in this process; return click's result."""

    def run(*args):
        return CliRunner().invoke(main.main, list(map(str, args)))

    return run


@pytest.fixture
def call_apart():
    """As ``call``, with a result that has stderr apart from stdout, which click 8.1 mixes."""
    mixes = "mix_stderr" in inspect.signature(CliRunner).parameters
    runner = CliRunner(**({"mix_stderr": False} if mixes else {}))

    def run(*args):
        return runner.invoke(main.main, list(map(str, args)))

    return run


@pytest.fixture
def profile(build, tmp_path):
    """Save a profile of Applys (op, nanoseconds, count, keys) and return its path."""
    apply, function, _ = build

    def saved(name, *applys):
        made = [apply(op, ns, k, count=n, keys=keys) for k, (op, ns, n, keys) in enumerate(applys)]
        path = tmp_path / name
        calls = max(n for _, _, n, _ in applys)
        Profile((function(*made, calls=calls),)).save(path)
        return path

    return saved
