"""Print requirements of pyproject.toml for pip, one a line.

python scripts/needs.py build opwise test     of the build, of opwise itself, of the extra "test"
python scripts/needs.py dev --only ruff       of the extra "dev", what begins with "ruff"
python scripts/needs.py --lowest              constraints: every package at its lower bound
"""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def groups():
    """Return {name of a group: its requirements}: "build", "opwise" and every extra."""
    content = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    project = content["project"]
    return {
        "build": content["build-system"]["requires"],
        "opwise": project["dependencies"],
        **project["optional-dependencies"],
    }


def lowest(requirement):
    """Return a constraint that holds the package of a requirement at its lower bound."""
    pattern = r"([\w.-]+)(?:\[.*\])? *[>~]=([\w.]+)(?:,<[\w.]+)?(?:; .*)?"
    match = re.fullmatch(pattern, requirement)
    if match is None:
        raise SystemExit(f"pyproject.toml: {requirement!r} has no lower bound: write NAME>=VERSION")
    return f"{match[1]}=={match[2]}"


def main(argv=None):
    known = groups()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="*", choices=[*known, []], metavar="GROUP")
    parser.add_argument("--only", nargs="+", default=[""], metavar="PREFIX")
    parser.add_argument("--lowest", action="store_true")
    args = parser.parse_args(argv)
    found = [need for group in args.groups or known for need in known[group]]
    found = [need for need in found if need.startswith(tuple(args.only))]
    if args.lowest:
        found = [lowest(need) for need in found]
    print(*dict.fromkeys(found), sep="\n")


if __name__ == "__main__":
    main()
