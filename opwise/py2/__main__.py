"""Runs an old program: ``python -m opwise.py2 [--py3] [-m] PROGRAM ARGS``.

With ``--py3`` the program is for an earlier version of Python 3, else for Python 2. ``opwise run``
starts this file by ``command``, without a folder of the user's on ``sys.path``: opwise and what it
imports must not be taken from beside the program.
"""

from __future__ import annotations

import importlib.util
import os
import sys


def main() -> None:
    """Run the program that the command line names."""
    if importlib.util.find_spec("opwise") is None:  # found in the working directory until now
        sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    from opwise.py2 import convert, hook

    words = sys.argv[1:]
    python = 3 if words[:1] == ["--py3"] else 2
    words = words[python == 3 :]
    is_module = words[:1] == ["-m"]
    sys.argv[:] = words[is_module:]
    if not sys.argv or sys.argv[0].startswith("-"):
        sys.exit("which program? python -m opwise.py2 [--py3] [-m] PROGRAM ARGS")
    if python == 2 and not convert.is_available():
        sys.exit(f"programs for Python 2 need the package fissix: {convert.INSTALL}")
    hook.install(python)
    (hook.run_module if is_module else hook.run_script)(sys.argv[0])


def restart() -> None:
    """Start anew as ``opwise run`` starts it, after ``python -m``."""
    from opwise.py2 import hook

    python = 3 if sys.argv[1:2] == ["--py3"] else 2
    words = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    *options, last = [word for word in words if word != "opwise.py2"]
    letters = last.removesuffix("opwise.py2").removesuffix("m")  # of -m, -bm, -mopwise.py2
    if letters != "-":
        options.append(letters)
    sys.stdout.flush()
    os.execv(sys.executable, [*hook.command(python, options), *sys.argv[1 + (python == 3) :]])


if __name__ == "__main__":
    if __spec__ is not None:
        restart()
    main()
