"""Runs an old program: ``python -m opwise.py2 [--py3] [-m] PROGRAM ARGS``.

With ``--py3`` the program is for an earlier version of Python 3, else for Python 2.
"""

from __future__ import annotations

import sys

from opwise.py2 import convert, hook


def main() -> None:
    """Run the program that the command line names."""
    words = sys.argv[1:]
    python = 3 if words[:1] == ["--py3"] else 2
    words = words[python == 3 :]
    is_module = words[:1] == ["-m"]
    sys.argv = words[is_module:]
    if not sys.argv or sys.argv[0].startswith("-"):
        sys.exit("which program? python -m opwise.py2 [--py3] [-m] PROGRAM ARGS")
    if python == 2 and not convert.is_available():
        sys.exit(f"programs for Python 2 need the package fissix: {convert.INSTALL}")
    hook.install(python)
    (hook.run_module if is_module else hook.run_script)(sys.argv[0])


if __name__ == "__main__":
    main()
