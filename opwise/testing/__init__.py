"""Checks that a graph means the same under every mode; random graphs are in ``testing.fuzz``."""

from opwise.gradient import verify_grad
from opwise.testing.check import CheckFailed, Report, check
from opwise.testing.ways import WAYS

__all__ = ["WAYS", "CheckFailed", "Report", "check", "verify_grad"]
