"""Checks that a graph means the same under every mode; random graphs are in ``testing.fuzz``."""

from opwise.gradient import verify_grad
from opwise.testing.check import CheckFailed, CheckReport, check
from opwise.testing.configurations import CONFIGURATIONS

__all__ = ["CONFIGURATIONS", "CheckFailed", "CheckReport", "check", "verify_grad"]
