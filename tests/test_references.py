"""Names in pages, comments and docstrings: the files, modules and flags that they name exist.

What is checked: in pages, text between backticks; in Python files, text between double backticks of
docstrings and comments, and paths there. Names of programs and files that examples make are listed
below.
"""

import ast
import io
import re
import subprocess
import tokenize
from functools import cache
from pathlib import Path

import pytest

from opwise.config.registry import options

ROOT = Path(__file__).resolve().parents[1]
pytestmark = [pytest.mark.null, pytest.mark.sources]

SUFFIXES = r"py|pyx|pxi|pxd|pyi|h|c|md|json|toml|js|html|csv|png|txt|yaml|in|cu|hpp"


def tracked():
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    names = done.stdout.split() or [  # a copy of the sources may be no checkout
        str(path.relative_to(ROOT)) for path in ROOT.rglob("*.*") if path.is_file()
    ]
    return [name for name in names if not name.startswith(("build/", ".venv/"))]


FILES = tracked()
#: pages of tests are recorded output of programs
PAGES = [name for name in FILES if name.endswith(".md") and not name.startswith("tests/")]
SOURCES = [
    name for name in FILES
    if name.endswith(".py") and name.split("/")[0] in ("opwise", "theano", "benchmark", "scripts")
]  # fmt: skip


@cache
def known():
    """Return the files and folders of the checkout, each by every end of its path."""
    ends = set()
    for name in FILES:
        parts = name.split("/")
        for first in range(len(parts)):
            ends.add("/".join(parts[first:]))
            for last in range(first + 1, len(parts)):
                ends.add("/".join(parts[first:last]))
    return ends


def exists(path, page):
    """Return whether files end with a path, in which there may be *, NAME, {a,b}, ./ and ../."""
    path = re.sub(r"\bNAME\b", "*", path)
    alternatives = re.search(r"\{([^{}]*)\}", path)
    if alternatives:
        head, tail = path[: alternatives.start()], path[alternatives.end() :]
        return all(exists(head + part + tail, page) for part in alternatives[1].split(","))
    if path.startswith("."):
        return (ROOT / page).parent.joinpath(path).exists() or (ROOT / path).exists()
    path = path.rstrip("/")
    if "*" in path:
        pattern = re.compile(re.escape(path).replace(r"\*", "[^/]*"))
        return any(pattern.fullmatch(end) for end in known())
    return path in known()


PATH = re.compile(rf"(?:\$REPOSITORY/)?(\.?[\w*{{}},.-]+(?:/[\w*{{}},.-]+)*(?:/|\.(?:{SUFFIXES})))")


def paths(code):
    """Return the paths in a text between backticks: the text itself, or words of a command."""
    words = code.split()
    found = [PATH.fullmatch(word.strip("'\"(),:;")) for word in words]
    return [match[1] for match in found if match]


def code_of(page):
    """Yield (line, text between backticks) of a page, without its blocks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"^( *)```.*?^\1```$", lambda m: "\n" * m[0].count("\n"), text, flags=re.S | re.M)
    for match in re.finditer(r"`([^`\n]+)`", text):
        yield text.count("\n", 0, match.start()) + 1, match[1]


#: files that programs make or users have, by the end of their names
MADE = re.compile(
    r"^[\w-]+\.html$|(^|/)(\.?theanorc|\.opwiserc)|\.profile\.json$|\.trace\.json$|^(build|dist)/|^~"
)


@pytest.mark.parametrize("page", PAGES)
def test_paths_in_pages_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    written = set(re.findall(r"<!-- file: (\S+) -->", text))
    for block in re.findall(r"<!-- (?:run|set-up)\b.*?-->|^```sh$.*?^```$", text, re.S | re.M):
        written |= set(block.split())
    missing = [
        f"{page}:{line}: {path}"
        for line, code in code_of(page)
        for path in paths(code)
        if not MADE.search(path) and path not in written and not exists(path, page)
    ]
    assert not missing


@cache
def defined(module):
    """Return the names at the top of a module, or None if the checkout has no such module."""
    path = ROOT / module.replace(".", "/")
    files = [path / "__init__.py", path.with_suffix(".py")]
    existing = [file for file in files if file.is_file()]
    if not existing:
        return {p.stem for p in path.iterdir()} if path.is_dir() else None
    names = {p.stem for p in path.iterdir()} if path.is_dir() else set()
    tree = ast.parse(existing[0].read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            if node.name == "*":
                names.add("*")
            names.add((node.asname or node.name).split(".")[0])
    return names


def resolves(dotted):
    """Return whether a name such as opwise.linkers.base.Program is there."""
    parts = dotted.split(".")
    for n in range(len(parts), 0, -1):
        names = defined(".".join(parts[:n]))
        if names is not None:
            return n == len(parts) or parts[n] in names or "*" in names
    return False


DOTTED = re.compile(r"\b(?:opwise|benchmark)(?:\.[A-Za-z_]\w*)+")


@pytest.mark.parametrize("page", PAGES)
def test_modules_in_pages_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    # a narrow report cuts names
    names = set(DOTTED.findall(re.sub(r"https?://\S+|\S+…", "", text)))
    # A page may show the error of a name that is not there.
    shown = {
        f"{module}.{name}"
        for module, name in re.findall(r"module '([\w.]+)' has no attribute '(\w+)'", text)
    }
    missing = {name for name in names - shown if not resolves(name) and not is_public(name)}
    assert not missing
    assert not any(is_public(name) for name in shown)


def is_public(name):
    """Return whether a name is an attribute of the imported package."""
    import opwise

    thing = opwise
    for part in name.split(".")[1:]:
        thing = getattr(thing, part, None)
        if thing is None:
            return False
    return True


@pytest.mark.parametrize("page", PAGES)
def test_flags_in_pages_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"\b[Ff]lags? `([a-z][A-Za-z_.]+)(?:=[^`]*)?`", text))
    missing = named - set(options)
    assert not missing


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_pages_exist(page):
    from opwise.command.main import main

    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^\$ |```sh\n)opwise ([a-z]+)\b", text, re.M))
    missing = named - set(main.commands)
    assert not missing


# --- sources --------------------------------------------------------------------------------------


def remarks(name):
    """Yield (line, text) of the comments and docstrings of a Python file."""
    source = (ROOT / name).read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text:
                yield node.body[0].lineno, text


@cache
def words():
    """Return all words in the code of the repository: names, and words in texts."""
    found = set()
    for name in FILES:
        if re.search(r"\.(py|pyx|pxi|pxd|h|c|js|json|toml|hpp|cu)$", name):
            text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
            text = re.sub(r"``[^`]*``", "", text)  # what is checked
            found |= set(re.findall(r"\w+", text))
    return found


#: placeholders in names; names of the standard library, Dask and IPython
OTHERS = {"py_name", "opwise_NAME", "PickleBuffer", "dashboard_link", "execution_count"}


def known_word(word):
    """Return whether a word of the code is this one, or one that it begins (a_) or ends (_a)."""
    if word in words() | OTHERS:
        return True
    if word.endswith("_"):
        return any(other.startswith(word) for other in words())
    return word.startswith("_") and any(other.endswith(word) for other in words())


def test_names_in_remarks_exist():
    missing = [
        f"{name}:{line}: {code}"
        for name in SOURCES
        for line, text in remarks(name)
        for code in re.findall(r"``([A-Za-z_][\w.]*)(?:\(\))?``", text)
        if not known_word(code.rstrip(".").split(".")[-1])
    ]
    assert not missing


def test_modules_in_remarks_exist():
    missing = [
        f"{name}:{line}: {dotted}"
        for name in SOURCES
        for line, text in remarks(name)
        for dotted in re.findall(r"\bopwise(?:\.[A-Za-z_]\w*)+", text)
        if not resolves(dotted) and not is_public(dotted)
    ]
    assert not missing


def test_paths_in_remarks_exist():
    missing = [
        f"{name}:{line}: {path}"
        for name in SOURCES
        for line, text in remarks(name)
        for path in re.findall(rf"(?<![\w/.~$<-])((?:[\w.-]+/)+[\w-]+\.(?:{SUFFIXES}))\b", text)
        if not exists(path, name)
    ]
    assert not missing
