"""Runs a program for Python 2: ``python -m opwise.py2 [-m] PROGRAM ARGS``."""

from __future__ import annotations

import sys

from opwise.py2 import convert, hook


def main() -> None:
    """Run the program that the command line names."""
    is_module = sys.argv[1:2] == ["-m"]
    sys.argv = sys.argv[2:] if is_module else sys.argv[1:]
    if not sys.argv:
        sys.exit("which program? python -m opwise.py2 [-m] PROGRAM ARGS")
    if not convert.is_available():
        sys.exit(f"programs for Python 2 need the package fissix: {convert.INSTALL}")
    hook.install()
    (hook.run_module if is_module else hook.run_script)(sys.argv[0])


if __name__ == "__main__":
    main()
