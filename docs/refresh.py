"""Runs the commands that pages show and puts what they print into the pages.

python docs/refresh.py PAGE... rewrites them; --check only runs the commands; --folder keeps the
files that they write. A command stands in a comment before the block of its output:

    <!-- run: opwise report train.json | head -20 -->
    ```text
    what it printed
    ```

The commands of a page run in a scratch folder, in their order, by bash; one that fails stops the
page, unless the page says with which code it ends: <!-- run (1): ... -->.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"(?P<head><!-- run(?: \((?P<code>\d+)\))?: (?P<command>.*?) -->\n```text\n)"
    r"(?P<old>.*?)(?P<end>^```$)",
    re.S | re.M,
)
#: the command of this checkout, whether it is installed or not
OPWISE = f'opwise() {{ "{sys.executable}" -m opwise "$@"; }}; '
#: what is wider is cut
WIDTH = 160


def fresh(page, folder):
    """Return the text of a page with the output of its commands, which run in a folder."""
    environment = {
        **os.environ,
        "REPOSITORY": str(ROOT),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(":"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "COLUMNS": str(WIDTH),
    }

    def filled(match):
        command, code = match["command"], int(match["code"] or 0)
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", OPWISE + command], cwd=folder, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        # a pipe into head ends what writes into it
        if done.returncode not in (code, 141):
            raise SystemExit(f"{page}: {command}\nended with {done.returncode}:\n{done.stdout}")
        shown = [line.rstrip().expandtabs()[:WIDTH] for line in done.stdout.splitlines()]
        text = "\n".join(shown).replace(f"{ROOT}/", "").replace(f"{folder}/", "").strip("\n")
        return f"{match['head']}{text}\n{match['end']}"

    return BLOCK.sub(filled, Path(page).read_text(encoding="utf-8"))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="run the commands, change nothing")
    parser.add_argument("--folder", type=Path, help="where the commands run")
    args = parser.parse_args(argv)
    for page in args.pages:
        with contextlib.ExitStack() as stack:
            folder = args.folder or stack.enter_context(tempfile.TemporaryDirectory())
            text = fresh(page, folder)
        if not args.check:
            page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
