"""Calls that run texts or load objects: the source has only those listed here, each with why."""

import ast
from pathlib import Path

import pytest

pytestmark = [pytest.mark.null, pytest.mark.sources]

ROOT = Path(__file__).parents[1]
FOLDERS = ("opwise", "theano", "benchmark", "docs", "scripts", "setup.py")

#: functions that run a text; modules that load any object, and their functions that do
RUN_A_TEXT = {
    "eval", "exec", "execfile", "__import__", "code.interact", "os.system", "os.popen",
    "subprocess.getoutput", "subprocess.getstatusoutput", "tempfile.mktemp", "runpy.run_path",
    "runpy.run_module", "asyncio.create_subprocess_shell", "builtins.eval", "builtins.exec",
    "builtins.__import__",
}  # fmt: skip
LOADERS = {"pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib",
           "yaml"}  # fmt: skip
LOADING = {"load", "loads", "open", "Unpickler", "_Unpickler", "unsafe_load", "full_load"}

#: {(file, innermost function or class): why it is there}
ALLOWED = {
    ("opwise/py2/builtin.py", "input_"): "input() of Python 2 evaluates what is typed",
    ("opwise/py2/builtin.py", "eval_"): "the builtin function, for a program of the user",
    ("opwise/py2/builtin.py", "exec_"): "the statement, in a program of the user",
    ("opwise/py2/builtin.py", "execfile"): "the builtin function, for a program of the user",
    ("opwise/py2/converted.py", "code_of"): "code of the cache, sealed (SECURITY.md)",
    ("opwise/py2/hook.py", "execute"): "runs the module of the user that is imported",
    ("opwise/py2/lookup.py", "import_"): "imports what a program of the user imports",
    ("opwise/py2/archives.py", "__call__"): "a pickle in an archive of Theano (SECURITY.md)",
    ("opwise/py2/pickles.py", "Unpickler"): "loads pickles of Python 2 (SECURITY.md)",
    ("opwise/testing/fuzz/layouts.py", "laid_out"): "texts of a table in the same file",
    ("opwise/testing/fuzz/grow.py", "add"): "a statement that the fuzzer has written",
    ("opwise/testing/fuzz/grow.py", "_check_reference"): "an expression of the fuzzer",
    ("opwise/testing/fuzz/steps.py", "gradient_of"): "an expression of the fuzzer",
    ("opwise/testing/stateful/program.py", "*"): "texts of the table of operations",
    ("opwise/testing/stateful/life.py", "pickle_the_function"): "a pickle that it has just written",
    ("opwise/testing/stateful/__main__.py", "in_second_process"): "what its own process wrote",
    ("opwise/testing/stateful/__main__.py", "repeat"): "what its own process wrote",
    ("opwise/notebook/extension.py", "_run"): "the cell of the user, as IPython runs it",
    ("opwise/distributed/recipe.py", "_Reader"): "functions on a cluster (SECURITY.md)",
    ("opwise/pytensor/__main__.py", "main"): "runs the program of the user",
    ("opwise/tracing/convert.py", "convert"): "the function of the user, its loops as calls",
    ("opwise/tracing/jitted.py", "_form"): "the arguments of a call in order, by their names",
    ("opwise/tracing/jitted.py", "_compile"): "the checks of a signature, without texts of others",
    ("benchmark/leaks.py", "step"): "a pickle that it has just written",
    ("benchmark/graph_cache.py", "load"): "a pickle that it has just written",
}


def name_of(node):
    """Return the dotted name of an expression, '' for other expressions."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *parts[::-1]]) if isinstance(node, ast.Name) else ""


class Finder(ast.NodeVisitor):
    """Lists (innermost function or class, line, what) of dangerous calls in a module."""

    def __init__(self):
        self.found, self.inside, self.names = [], ["module"], {}

    def visit_Import(self, node):
        for alias in node.names:
            self.names[alias.asname or alias.name.split(".")[0]] = (
                alias.name if alias.asname else alias.name.split(".")[0]
            )

    def visit_ImportFrom(self, node):
        for alias in node.names:
            self.names[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def enter(self, node):
        self.inside.append(node.name)
        for base in getattr(node, "bases", ()):
            self.check(base, node)
        self.generic_visit(node)
        self.inside.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = enter

    def check(self, function, node):
        name = name_of(function)
        first, _, rest = name.partition(".")
        if first in self.names:
            name = self.names[first] + ("." + rest if rest else "")
        module, _, last = name.rpartition(".")
        loads = module.partition(".")[0] in LOADERS and last in LOADING
        if name in RUN_A_TEXT or loads:
            self.found.append((self.inside[-1], node.lineno, name))

    def visit_Call(self, node):
        self.check(node.func, node)
        for keyword in node.keywords:
            if keyword.arg == "shell" and not (
                isinstance(keyword.value, ast.Constant) and not keyword.value.value
            ):
                self.found.append((self.inside[-1], node.lineno, "shell=True"))
            if keyword.arg == "allow_pickle":
                self.found.append((self.inside[-1], node.lineno, "allow_pickle"))
        self.generic_visit(node)


def found_in(text):
    finder = Finder()
    finder.visit(ast.parse(text))
    return finder.found


def sources():
    for folder in FOLDERS:
        path = ROOT / folder
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in files:
            if file.suffix == ".py":
                yield file
            elif folder == "scripts" and file.is_file() and file.suffix == "":
                if file.read_bytes().startswith(b"#!/usr/bin/env python"):
                    yield file


def test_the_source_has_no_other_such_calls():
    met, surprising = set(), []
    for file in sources():
        path = file.relative_to(ROOT).as_posix()
        for inside, line, what in found_in(file.read_text()):
            key = next((k for k in ((path, inside), (path, "*")) if k in ALLOWED), None)
            if key is None:
                surprising.append(f"{path}:{line}: {what} in {inside}")
            met.add(key)
    assert surprising == []
    assert met == set(ALLOWED), "listed, but not there any more"


@pytest.mark.parametrize(
    "text",
    [
        "eval('1')", "exec(code)", "__import__('os')", "import os\nos.system('x')",
        "from os import system\nsystem('x')", "import os as o\no.popen('x')",
        "import subprocess\nsubprocess.run('x', shell=True)", "f(shell=yes)",
        "import pickle\npickle.loads(b'')", "from pickle import loads as l\nl(b'')",
        "import pickle\nclass U(pickle.Unpickler): pass", "import marshal\nmarshal.load(f)",
        "import numpy as np\nnp.load(f, allow_pickle=True)", "import tempfile\ntempfile.mktemp()",
    ],
)  # fmt: skip
def test_such_calls_are_found(text):
    assert len(found_in(text)) == 1


@pytest.mark.parametrize(
    "text", ["x.eval()", "def exec(): pass", "run(shell=False)", "json.loads(text)", "'eval(x)'"]
)
def test_others_are_not(text):
    assert found_in(text) == []
