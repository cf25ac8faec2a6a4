"""Runs a program whose functions of PyTensor are compiled by opwise unless they name a mode.

    python -m opwise.pytensor [-m] PROGRAM [ARGS]...

``opwise run --pytensor`` runs programs so.
"""

from __future__ import annotations

import os
import runpy
import sys

import pytensor
from pytensor.compile.mode import get_mode

import opwise.pytensor  # noqa: F401  (registers the mode)


def main() -> None:
    """Run the program that the arguments of this process name."""
    pytensor.config.mode = get_mode("OPWISE")
    is_module = sys.argv[1:2] == ["-m"]
    sys.argv = sys.argv[1 + is_module :]
    if not sys.argv:
        raise SystemExit("usage: python -m opwise.pytensor [-m] PROGRAM [ARGS]...")
    if is_module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")


main()
