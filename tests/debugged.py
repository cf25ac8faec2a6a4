"""A pytest plugin: whatever mode a test asks for, functions are compiled under DebugMode.

A test that looks at the machine or at an error's text may then fail, which says nothing; what
DebugMode finds does. Each finding is a line of JSON in the file that OPWISE_DEBUGGED names. Run by
scripts/debugged.
"""

import functools
import json
import os
import sys

import pytest

import opwise.legacy.components
from opwise import Mode, get_mode
from opwise.errors import DebugModeError
from opwise.modes import debugmode

_current = [""]
_made = [0]


def _debugged(mode):
    """Return a DebugMode with the rewrites of a plain mode, which tests may make NaN under."""
    found = get_mode(mode)
    if type(found) is not Mode:
        return found
    _made[0] += 1
    return debugmode.DebugMode(found._optimizer, stability_patience=2, check_isfinite=False)


def _heard(method):
    @functools.wraps(method)
    def run(self, *args):
        try:
            return method(self, *args)
        except DebugModeError as error:
            _note(error)
            raise

    return run


def _note(error):
    finding = {"test": _current[0], "class": type(error).__name__, "text": str(error)}
    with open(os.environ["OPWISE_DEBUGGED"], "a") as file:
        file.write(json.dumps(finding) + "\n")


def pytest_configure(config):
    sys.modules["opwise.compile.function"].get_mode = _debugged  # the name is the function's, too
    opwise.legacy.components.get_mode = _debugged
    debugmode.DebugVM.__call__ = _heard(debugmode.DebugVM.__call__)
    debugmode.DebugMode.optimize = _heard(debugmode.DebugMode.optimize)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    _current[0] = item.nodeid
    return (yield)


def pytest_unconfigure(config):
    with open(os.environ["OPWISE_DEBUGGED"], "a") as file:
        file.write(json.dumps({"functions": _made[0]}) + "\n")
