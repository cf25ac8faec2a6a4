"""Reads the pages of the catalogue, runs their programs, and records what a user then sees.

``python tests/errors/catalogue.py [WORDS]`` shows the present texts of the entries whose titles
contain these words; ``--record`` writes them into the pages. Read the difference before you commit.
"""

import contextlib
import io
import logging
import os
import re
import subprocess
import sys
import tempfile
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import theano  # noqa: F401  (classes of variables name its modules once it is imported)

ROOT = Path(__file__).resolve().parents[2]
PAGES = Path(__file__).resolve().parent / "pages"

#: the comment on the line at fault: the error has to name it
MARK = "# <-"

#: what is defined in every program
PRELUDE = """\
import numpy as np
import opwise
import opwise.tensor as T
from opwise import function, grad, shared
"""

_ENTRY = re.compile(
    r"^## (?P<title>.+)\n\n(?P<remarks>(?:[^`#\n].*\n)*)\n?"
    r"```(?P<language>python|sh)\n(?P<program>(?:.*\n)*?)```\n"
    r"(?:\n```text\n(?P<text>(?:.*\n)*?)```\n)?"
    r"(?P<promises>(?:\n?- .*\n)*)",
    re.M,
)
_PROMISE = re.compile(r"^- (?P<kind>\w+): `(?P<words>[^`]+)`$", re.M)
_FRAME = re.compile(r'  File "(?P<file>[^"]*)", line (?P<line>\d+), in .*\n(?:    .*(?:\n|$))?')


@dataclass
class Entry:
    """One program that goes wrong, and what its user reads."""

    page: Path
    title: str
    #: "python" or "sh"
    language: str
    program: str
    #: the recorded text
    text: str
    #: (kind, words that the text must contain), kinds: "wrong" and "do"
    promises: list[tuple[str, str]]
    #: the line of its page where the program begins
    line: int

    @property
    def marked(self):
        """The lines of the page that are to blame."""
        lines = self.program.splitlines()
        return [self.line + k for k, line in enumerate(lines) if MARK in line]

    def run(self):
        """Return what the program makes its user see."""
        return _run_shell(self) if self.language == "sh" else _run_python(self)


@dataclass
class Seen:
    """What was printed, warned of and raised, masked; and which lines of the page that names."""

    text: str
    lines: set[int] = field(default_factory=set)


def entries():
    """Return the entries of all pages, in their order."""
    return [entry for page in sorted(PAGES.glob("*.md")) for entry in read(page)]


def read(page):
    """Return the entries of a page; raises ValueError for a part of it that is none."""
    content = page.read_text()
    found = []
    for match in _ENTRY.finditer(content):
        promises = [(m["kind"], m["words"]) for m in _PROMISE.finditer(match["promises"])]
        line = content.count("\n", 0, match.start("program")) + 1
        found.append(
            Entry(
                page, match["title"], match["language"], match["program"], match["text"] or "",
                promises, line,
            )
        )  # fmt: skip
    if len(found) != len(re.findall("^## ", content, re.M)):
        raise ValueError(f"{page} has a title without a program, or a block that is not closed")
    return found


# --- running --------------------------------------------------------------------------------------


def _run_python(entry):
    names = {"__name__": "program"}
    exec(PRELUDE, names)
    # as many lines before it as in the page: its lines have the numbers that they have there
    code = compile("\n" * (entry.line - 1) + entry.program, str(entry.page), "exec")
    out, seen = io.StringIO(), Seen("")
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="catalogue-") as folder:
        os.chdir(folder)
        try:
            with (
                contextlib.redirect_stdout(out),
                _logging_to(out),
                _warnings_shown(out, entry, seen),
            ):
                try:
                    exec(code, names)
                except BaseException as error:  # whatever comes out is what is written down
                    frames = traceback.extract_tb(error.__traceback__)
                    mine = [f.lineno for f in frames if f.filename == str(entry.page)]
                    seen.lines.update(mine)
                    out.write("".join(traceback.format_exception_only(error)))
        finally:
            os.chdir(before)
        return _masked(entry, out.getvalue(), seen, folder)


@contextlib.contextmanager
def _warnings_shown(out, entry, seen):
    def show(message, category, filename, lineno, file=None, line=None):
        if filename == str(entry.page):
            seen.lines.add(lineno)
        out.write(f"{category.__name__}: {message}\n")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def _logging_to(out):
    handler = logging.StreamHandler(out)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _run_shell(entry):
    with tempfile.TemporaryDirectory(prefix="catalogue-") as folder:
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": folder,
            "PYTHONPATH": str(ROOT),
        }
        done = subprocess.run(
            ["bash", "-c", entry.program], cwd=folder, env=environment, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        text = re.sub(
            r"^Traceback \(most recent call last\):\n(?:  .*\n)*", "", done.stdout, flags=re.M
        )
        return _masked(entry, text, Seen(""), folder)


def _masked(entry, text, seen, folder):
    """Fill in what was seen, without what differs between machines and runs."""

    def frame(match):
        if match["file"] != str(entry.page):
            return ""  # of whatever ran the program
        seen.lines.add(int(match["line"]))
        return match[0]

    text = _FRAME.sub(frame, text)
    mine = re.escape(str(entry.page))
    for match in re.finditer(rf'{mine}(?:"?, line |:)(\d+)', text):
        seen.lines.add(int(match[1]))
    text = re.sub(
        rf'({mine}(?:"?, line |:))(\d+)', lambda m: f"{m[1]}{int(m[2]) - entry.line + 1}", text
    )
    text = re.sub(
        r"( of line )(\d+)", lambda m: f"{m[1]}{int(m[2]) - entry.line + 1}", text
    )  # as errors name an operand
    text = text.replace(str(entry.page), "program.py").replace(folder, "/here")
    text = text.replace(os.environ.get("OPWISE_TEST_CACHE", "\0"), "/cache")
    text = re.sub(rf"{re.escape(str(ROOT))}/(\S+\.py):\d+", r"\1:N", text)
    text = re.sub(r"compiledir_[\w.-]+", "compiledir", text)
    text = re.sub(r"\b[0-9a-f]{32}\b", "KEY", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "0x...", text)
    seen.text = "\n".join(line.rstrip() for line in text.rstrip("\n").split("\n")) + "\n"
    return seen


# --- recording ------------------------------------------------------------------------------------


def record(page, chosen):
    """Write what the entries of a page, of those chosen, say now into it."""
    content = page.read_text()
    texts = {entry.line: entry.run().text for entry in read(page) if chosen(entry)}

    def filled(match):
        text = texts.get(content.count("\n", 0, match.start("program")) + 1)
        if text is None:
            return match[0]
        head = content[match.start() : match.end("program")]
        return f"{head}```\n\n```text\n{text}```\n{match['promises']}"

    page.write_text(_ENTRY.sub(filled, content))


def main(arguments):
    """Show or record the entries whose titles hold the words that were given."""
    writing = "--record" in arguments
    words = " ".join(a for a in arguments if a != "--record")

    def chosen(entry):
        return words in entry.title or words == entry.page.stem

    for page in sorted(PAGES.glob("*.md")):
        if writing:
            record(page, chosen)
            continue
        for entry in filter(chosen, read(page)):
            print(f"=== {page.stem}: {entry.title}\n{entry.program}---\n{entry.run().text}")


if __name__ == "__main__":
    main(sys.argv[1:])
