"""The names of Theano that opwise lacks, and how opwise has those that programs use.

    python tests/legacy/names.py placeholders    write placeholders.json again
    python tests/legacy/names.py used            print the table of names that programs use

``placeholders.json`` holds {module: names} of what raises when it is used, where Theano defines it;
Theano's own tests are left out. A test fails if another name raises. ``used_names.tsv`` holds the
names that at least 3 of 164 public repositories use, and how many do.
"""

import json
import sys
from pathlib import Path

from opwise.names import record
from opwise.names.coverage import covered, lacking, modules
from opwise.names.placeholder import reason

HERE = Path(__file__).parent
PLACEHOLDERS = HERE / "placeholders.json"


def placeholders():
    """Return {module: the names that it defines, and that raise when they are used}."""
    found = {}
    for module in modules():
        if ".tests" in module:
            continue
        recorded = record.names(module)
        for names in covered(module).raising.values():
            own = [name for name in names if recorded[name].home == recorded[name].dotted]
            if own:
                found.setdefault(module, []).extend(own)
    return {module: " ".join(sorted(names)) for module, names in sorted(found.items())}


def used():
    """Return {dotted name: how many repositories use it}."""
    rows = (HERE / "used_names.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return {name: int(count) for name, count in (row.split("\t") for row in rows)}


def table():
    """Return the lines of the table of names that programs use."""
    lines = [f"{'name':58} repositories  status"]
    for name, count in used().items():
        module, _, last = name.rpartition(".")
        recorded = record.names(module).get(last)
        status = "works"
        if lacking(name) is not None:
            status = f"raises: {reason(recorded.home if recorded else name).what}"
        lines.append(f"{name:58} {count:12}  {status}")
    return lines


if __name__ == "__main__":
    if sys.argv[1:] == ["placeholders"]:
        text = json.dumps(placeholders(), indent=0)
        PLACEHOLDERS.write_text(text + "\n", encoding="utf-8")
    elif sys.argv[1:] == ["used"]:
        print("\n".join(table()))
    else:
        sys.exit(__doc__)
