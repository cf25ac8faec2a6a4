"""A pytest plugin that writes the outcome of every test to the file ``SUITE_OUTCOMES``."""

from __future__ import annotations

import json
import os

_outcomes: dict[str, list[str]] = {}
_RANK = ("passed", "skipped", "failed")


def pytest_runtest_logreport(report):
    outcome = report.outcome
    if hasattr(report, "wasxfail"):
        outcome = "skipped"
    if report.when != "call" and outcome == "passed":
        return
    known = _outcomes.get(report.nodeid, ["passed", ""])
    if _RANK.index(outcome) >= _RANK.index(known[0]):
        _outcomes[report.nodeid] = [outcome, _reason(report)]


def pytest_collectreport(report):
    if report.failed:
        _outcomes[report.nodeid] = ["failed", _reason(report)]


def _reason(report):
    """The last line of an error, or the reason of a skip."""
    if report.outcome == "passed":
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return str(crash.message)[:300]
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])[:300]
    lines = [line for line in str(report.longrepr).splitlines() if line.startswith("E ")]
    return (lines[-1] if lines else str(report.longrepr))[-300:]


def pytest_sessionfinish(session):
    if hasattr(session.config, "workerinput"):
        return
    with open(os.environ["SUITE_OUTCOMES"], "w", encoding="utf-8") as file:
        json.dump(_outcomes, file)
