"""Run the commands and snippets in pages, and record their output there.

    python docs/refresh.py PAGE...           record the output in pages again
    python docs/refresh.py --check [PAGE...] run the commands, change nothing (default: every page);
                                             names of Ops that were recorded must still be printed
    python docs/refresh.py --folder F PAGE   run in the folder F, which keeps the files

A page runs from top to bottom in one scratch folder: sh blocks in bash, python blocks as scripts,
which must print what the comments behind calls of `print` say. Comments before a block change that:

    <!-- run: COMMAND -->       before a text block: the block contains what a reader types for
                                COMMAND, and its output
    <!-- run (3): COMMAND -->   the same, for a command that exits with 3
    <!-- file: NAME -->         before a python block: it is written to NAME, and not run here
    <!-- may end with 2 -->     before an sh block: the exit status 2 is no failure
    <!-- not run: REASON -->    before a block: it is not run
    <!-- NAME-command -->       the same: .ci/run runs it, in an environment of its own
    <!-- set-up: COMMAND -->    anywhere: COMMAND runs; the page does not show it

Commands find the checkout as $REPOSITORY, and `opwise` and `python` are those that run this script.
Where a filter at the end of a command (sed, head, tail, grep) or /dev/null takes lines that the
reader's command prints, the block has a line [...].
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: every page that shows commands or snippets
PAGES = [
    "README.md", "CONTRIBUTING.md", "docs/start.md", "docs/from-numpy.md", "docs/from-theano.md",
    "docs/from-pytensor.md", "docs/jit.md", "docs/modes.md", "docs/parallel.md",
    "docs/extending.md", "docs/names.md", "docs/profiling.md", "docs/gate.md", "docs/notebook.md",
    "docs/distributed.md", "docs/pytensor.md", "docs/differences.md", "docs/gpu.md",
    "docs/platforms.md", "benchmark/README.md",
]  # fmt: skip
#: what the commands of a page need besides opwise: without it, or under a Python that is older than
#: what it supports, the page is not run
NEEDED = {"docs/pytensor.md": ("pytensor", "pymc")}
BLOCK = re.compile(
    r"""
    ^<!--\ run(?:\ \((?P<code>\d+)\))?:\ (?P<command>(?:(?!-->).)*)\ -->\n
        ```text\n (?P<old>.*?) ^```$
    | ^<!--\ set-up:\ (?P<setup>(?:(?!-->).)*)\ -->$
    | (?:^<!--\ (?: file:\ (?P<file>\S+) | may\ end\ with\ (?P<may>\d+)
                  | (?P<skipped>not\ run:\ (?:(?!-->).)* | \w+-command) )\ -->\n)?
        ^```(?P<language>sh|python)\n (?P<source>.*?) ^```$
    """,
    re.S | re.M | re.X,
)
#: the command of this checkout, whether it is installed or not
OPWISE = f'opwise() {{ "{sys.executable}" -m opwise "$@"; }}; '
#: the width of the output in columns, of which a phone shows the first 55. A command that sets
#: COLUMNS itself, which the page shows, has that width
WIDTH = 80
#: what does not follow COLUMNS is cut after so many characters
CUT = 100
#: a line that stands for lines that are not shown
LEFT_OUT = "[...]"


def fresh(page, folder, check=False):
    """Run the blocks of a page in a folder; return its text with the output of the commands.

    check: compare what was recorded with it: the names of Ops. Times differ from run to run.
    """
    text = Path(page).read_text(encoding="utf-8")
    environment = {
        **os.environ,
        # what is shown does not depend on what ran before
        "OPWISE_FLAGS": ",".join(filter(None, [os.environ.get("OPWISE_FLAGS"), "cache_graphs=0"])),
        "REPOSITORY": str(ROOT),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(":"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "COLUMNS": str(WIDTH),
    }

    def done(block):
        """Return the text that replaces a block."""
        where = f"{page}:{text.count(chr(10), 0, block.start()) + 1}"
        started = time.monotonic()
        if block["command"]:
            command = block["command"]
            printed = shown(kept(command, where, {0, int(block["code"] or 0)}), columns(command))
            if not printed.replace(LEFT_OUT, "").strip():
                raise SystemExit(f"{where}: {command}\nprinted nothing")
            if check:
                compare_gaps(block["old"], printed, where)
            if check and not _PART.search(command):
                compare_names(block["old"], printed, where)
        elif block["setup"]:
            bash(block["setup"], where)
        elif block["file"]:
            Path(folder, block["file"]).write_text(block["source"], encoding="utf-8")
        elif block["skipped"]:
            print(f"{where}: {block['skipped']}", flush=True)
            return block[0]
        elif block["language"] == "sh":
            bash(f"set -eu\n{block['source']}", where, {0, int(block["may"] or 0)})
        else:
            Path(folder, "snippet.py").write_text(block["source"], encoding="utf-8")
            printed = run([sys.executable, "snippet.py"], block["source"], where)
            compare(printed, block["source"], where)
        print(f"{where}: {time.monotonic() - started:.1f} s", flush=True)
        if not block["command"]:
            return block[0]
        first = block.start("old") - block.start()
        return f"{block[0][:first]}{typed(block['command'])}\n{printed}\n```"

    def bash(command, where, allowed=(0,)):
        # a command that stops reading early, like head, ends the one that writes to it
        return run(["bash", "-o", "pipefail", "-c", OPWISE + command], command, where,
                   {*allowed, 141})  # fmt: skip

    def kept(command, where, allowed):
        """Return what a command prints, with LEFT_OUT for lines that a reader would see too."""
        whole, hidden = (Path(folder, name) for name in (".whole", ".hidden"))
        for path in (whole, hidden):
            path.write_text("", encoding="utf-8")
        quoted = re.sub(r"> ?/dev/null", f">>{shlex.quote(str(hidden))}", command)
        filters = _FILTERS.search(quoted)
        if filters:
            file = shlex.quote(str(whole))  # whole also if a filter stops reading early
            quoted = f"{quoted[: filters.start()]} | {{ cat >{file}; cat {file}; }}{filters[0]}"
        printed = bash(quoted, where, allowed)
        if filters:
            printed = marked(whole.read_text(encoding="utf-8"), printed)
        if hidden.read_text(encoding="utf-8").strip():
            printed = "\n".join([LEFT_OUT, printed.removeprefix(LEFT_OUT).removeprefix("\n")])
        return printed

    def run(words, source, where, allowed=(0,)):
        finished = subprocess.run(
            words, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        if finished.returncode not in allowed:
            raise SystemExit(
                f"{where}: {source}\nended with {finished.returncode}:\n{finished.stdout}"
            )
        return finished.stdout

    def compare_names(recorded, printed, where):
        """Raise SystemExit if names of Ops were recorded that are not printed any more."""
        gone = _names(recorded) - _names(printed)
        if gone:
            raise SystemExit(f"{where}: recorded, but not printed now: {', '.join(sorted(gone))}")

    def compare_gaps(recorded, printed, where):
        """Raise SystemExit if lines are left out and the record has no mark, or the reverse."""
        is_recorded, is_left_out = (LEFT_OUT in text.split("\n") for text in (recorded, printed))
        if is_recorded != is_left_out:
            what = "lines are left out without" if is_left_out else "nothing is left out at"
            raise SystemExit(f"{where}: {what} the mark {LEFT_OUT}: record the page again")

    def compare(printed, source, where):
        lines = printed.splitlines()
        for line in _PRINTED.findall(source):
            if line not in lines:
                raise SystemExit(f"{where}: {source}\ndid not print {line!r}, but:\n{printed}")

    def shown(printed, longest):
        lines = [line.rstrip().expandtabs() for line in printed.splitlines()]
        lines = [line if len(line) <= longest else cut(line, longest) for line in lines]
        printed = "\n".join(lines).replace(f"{ROOT}/", "").replace(f"{folder}/", "").strip("\n")
        return _OWN_FLAG.sub("", _ALONE.sub(r"\1none", printed))

    return BLOCK.sub(done, text)


def cut(line, longest):
    """Return a line that is cut before a short word, or within a long one."""
    start, _, word = line[: longest - 1].rpartition(" ")
    return f"{start} …" if len(word) <= 4 else f"{start} {word}…"


def columns(command):
    """Return how many columns the output of a command may have."""
    own = re.search(r"\bCOLUMNS=(\d+)", command)
    return int(own[1]) if own else CUT


def marked(whole, part):
    """Return a part of a text, with LEFT_OUT in place of lines of the whole that it lacks.

    Blank lines need no mark. Lines of the part that the whole lacks, such as errors, stay.
    """
    before, after = whole.splitlines(), part.splitlines()
    lines = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag != "equal" and any(line.strip() for line in before[start:end]):
            lines.append(LEFT_OUT)
        lines += after[first:last]
    return "\n".join(lines)


def _names(text):
    """Return the names of Ops with their parameters; those that a line cuts are left out."""
    return {name for name in _NAME.findall(text) if not name.endswith(("…", "...", ".", ","))}


def typed(command):
    """Return a command as a reader would type it: ``$ opwise ...``, a line for each part.

    Leaves out filters and redirections of its output, and commands that only set it up.
    """
    shown = _CUT.sub("", command.replace("$REPOSITORY/", ""))
    tokens = shlex.shlex(shown, punctuation_chars=True)
    tokens.whitespace_split = True
    lines: list[list[str]] = [[]]
    for token in tokens:
        if token in (";", "&&"):
            lines.append([])
        else:
            lines[-1].append(token)
    return "\n".join(f"$ {' '.join(line)}" for line in lines if line and line[0] not in _SET_UP)


#: what reports say of the flag that every command gets here, alone and among others
_ALONE = re.compile(r"\b((?:before|after):\s+)cache_graphs=False\b(?!,\w)")
_OWN_FLAG = re.compile(r",? ?\bcache_graphs=False")
#: a comment behind a call of print says what it prints
_PRINTED = re.compile(r"^ *print\(.*\)  # (.+)$", re.M)
#: the name of an Op with parameters
_NAME = re.compile(
    r"(?<![\w{(])(?:Elemwise|MapReduce|Sum|InplaceDimShuffle)\{[^|\n]*?\}(?:\[.*?\)\])?(?=[\s(]|$)",
    re.M,
)
#: commands that print some rows only, those that took longest or differ most, another set each time
_PART = re.compile(r" (?:-n|--rows) \d|\bhead\b.* -\d|tune|versus|baseline|opwise diff")
#: filters at the end of a command, which only take lines away
_FILTERS = re.compile(r" \| (?:sed|head|tail|grep) .*$")
#: what readers do not type: filters at the end, and redirections without a file
_CUT = re.compile(rf"(?: [12]?>&[12])?(?:{_FILTERS.pattern})|(?: [12]?> ?/dev/null| 2>&1)+")
#: commands that readers do not type
_SET_UP = ("cd", "ls")


def missing_for(page):
    """Return what a page needs and is not installed."""
    name = Path(page).resolve()
    return [
        each
        for known, needed in NEEDED.items()
        if name == ROOT / known
        for each in needed
        if importlib.util.find_spec(each) is None
    ]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true", help="run the commands, change nothing")
    parser.add_argument("--folder", type=Path, help="run the commands in this folder")
    args = parser.parse_args(argv)
    if not args.pages and not args.check:
        parser.error("name the pages to record")
    for page in args.pages or [ROOT / name for name in PAGES]:
        missing = missing_for(page)
        if missing:
            print(f"{page}: not run: {' and '.join(missing)} not installed", flush=True)
            continue
        with contextlib.ExitStack() as stack:
            folder = args.folder or stack.enter_context(tempfile.TemporaryDirectory())
            text = fresh(page, folder, args.check)
        if not args.check:
            page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
