"""The shape of the code base: layers, imports, names. A rule that nobody checks does not hold."""

import ast
import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import opwise
from opwise import FunctionGraph
from opwise.gpu import lowering
from opwise.graph import upcalls
from opwise.linkers import opwise_c

pytestmark = [pytest.mark.null, pytest.mark.sources]

ROOT = Path(opwise.__file__).resolve().parents[1]

#: from the bottom to the top: a module may import its own layer and those before it
LAYERS = [
    ("errors", "config", "version"),
    ("graph",),
    ("profiling",),
    ("scalar",),
    ("tensor",),
    ("gradient",),
    ("sparse",),
    ("optimizers",),
    ("linkers",),
    ("hardware",),
    ("gpu",),
    ("modes",),
    ("compile",),
    ("loops",),
    ("frontends",),
    ("pytensor",),
    ("distributed",),
    ("tuning",),
    ("testing",),
    ("py2",),
    ("command",),
    ("notebook",),
    ("legacy",),
    ("names",),
    ("nn", "linalg", "random"),
    ("tracing",),
    ("opwise", "__main__"),
    ("theano",),
]

_LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def modules():
    """Return the Python files of both packages, as paths relative to the root."""
    return sorted(
        path.relative_to(ROOT) for package in ("opwise", "theano") for path in
        (ROOT / package).rglob("*.py")
    )  # fmt: skip


#: suffixes of Cython's files
CYTHON = (".pyx", ".pxd", ".pxi")


def cython_files():
    """Return the Cython files, as paths relative to the root."""
    return sorted(
        path.relative_to(ROOT) for path in (ROOT / "opwise").rglob("*") if path.suffix in CYTHON
    )


def layer(dotted):
    """Return the layer of a module, or None if it is not one of ours."""
    parts = dotted.split(".")
    if parts[0] == "theano":
        return "theano"
    if parts[0] != "opwise":
        return None
    return parts[1] if len(parts) > 1 else "opwise"


def dotted_name(path):
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(dotted):
    path = ROOT.joinpath(*dotted.split("."))
    return path.is_dir() or any(path.with_suffix(s).exists() for s in (".py", ".pyx", ".pxd"))


def imports(path, types=True):
    """Return (line, dotted name of the module) of every import of a file, inside functions too.

    types: whether those in blocks ``if TYPE_CHECKING`` count.
    """
    if path.suffix in CYTHON:
        pattern = re.compile(
            r"^\s*(?:from\s+([\w.]+)\s+c?import\s+(\(.+?\)|[^#\n]+)|c?import\s+([\w.]+))",
            re.M | re.S,
        )
        text, lines = path.read_text(), []
        for m in pattern.finditer(text):
            line = text[: m.start()].count("\n") + 1
            each = re.findall(r"\w+", m.group(2) or "")
            wholes = [f"{m.group(1)}.{name}" for name in each] if m.group(1) else [m.group(3)]
            lines += [(line, w if not m.group(1) or is_module(w) else m.group(1)) for w in wholes]
        return lines
    found = []
    tree = ast.parse(path.read_text())
    hidden = set() if types else {n for block in _for_types(tree) for n in ast.walk(block)}
    for node in ast.walk(tree):
        if node in hidden:
            continue
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import hides the layer"
            for alias in node.names:
                # "from opwise import gradient" imports a module, "from opwise.x import f" from one
                whole = f"{node.module}.{alias.name}"
                found.append((node.lineno, whole if is_module(whole) else node.module))
    return found


def _for_types(tree):
    """Return the ``if TYPE_CHECKING`` blocks of a file."""
    blocks = (node for node in ast.walk(tree) if isinstance(node, ast.If))
    return [node for node in blocks if ast.unparse(node.test).endswith("TYPE_CHECKING")]


@pytest.mark.parametrize("path", modules() + cython_files(), ids=str)
def test_imports_go_downward(path):
    own = layer(dotted_name(path))
    assert own in _LEVEL, f"{path} is in no layer"
    for line, name in imports(ROOT / path):
        other = layer(name)
        if other is None:
            continue
        assert other in _LEVEL, f"{path}:{line} imports {name}, which is in no layer"
        assert _LEVEL[other] <= _LEVEL[own], f"{path}:{line} ({own}) imports {name} ({other})"


def circles(imported):
    """Return the sets of two and more modules that reach each other.

    imported: {module: the modules that it imports}.
    """
    reached = {}
    for start in imported:
        found, pending = set(), [start]
        while pending:
            for name in imported[pending.pop()] - found:
                found.add(name)
                pending.append(name)
        reached[start] = found
    groups = {
        frozenset({m} | {n for n in names if m in reached[n]})
        for m, names in reached.items()
        if m in names
    }
    return [group for group in groups if len(group) > 1]


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    found = circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"d"}})
    assert found == [{"a", "b", "c"}]


def imported_by(names):
    """Return {module: the modules of a dict that it imports}; names: {module: its files}.

    Imports inside functions count; those for type checkers alone do not. A cimport counts as an
    import: the other module is loaded with this one.
    """
    imported = {
        name: {found for path in paths for _, found in imports(path, types=False)}
        & names.keys() - {name}
        for name, paths in names.items()
    }
    # it loads the modules that are in its file, whose names are in a table
    native = {f"opwise.linkers.native.{name}" for name in opwise_c.MODULES}
    imported["opwise.linkers.opwise_c"] |= native & names.keys()
    return imported


def files_by_module(paths):
    """Return {module: its files}; a Cython module has a .pyx, a .pxd or both."""
    names = {}
    for path in paths:
        names.setdefault(dotted_name(path), []).append(ROOT / path)
    return names


def test_files_do_not_import_each_other():
    imported = imported_by(files_by_module(modules() + cython_files()))
    assert "opwise.linkers.blasload" in imported["opwise.linkers.native.blas"]
    assert "opwise.linkers.native.slots" in imported["opwise.linkers.native.vm"]
    assert [sorted(circle) for circle in circles(imported)] == []


@pytest.mark.parametrize("suffix, line, module", [
    (".pyx", "from opwise.linkers.native.vm cimport VM", "slots"),
    (".pxd", "from opwise.linkers.native.callpath cimport (\n    CallPath,\n)", "locks"),
    (".pyx", "def f():\n    from opwise.linkers import opwise_c", "blas"),
    (".pyx", "cimport opwise.linkers.native.draws", "generators"),
])  # fmt: skip
def test_circles_of_cython_modules_are_found(tmp_path, suffix, line, module):
    names = files_by_module(cython_files())
    name = f"opwise.linkers.native.{module}"
    (own,) = (path for path in names[name] if path.suffix == suffix)
    changed = tmp_path / own.name
    changed.write_text(f"{own.read_text()}\n{line}\n")
    names[name] = [changed, *(path for path in names[name] if path != own)]
    (circle,) = circles(imported_by(names))
    assert name in circle and len(circle) > 1


def test_every_cython_module_is_loaded():
    """``opwise_c`` loads each after those that it imports."""
    names = files_by_module(cython_files())
    written = {path.stem for path in cython_files() if path.suffix == ".pyx"}
    order = list(opwise_c.MODULES)
    assert written == {"opwise_c", *order}
    imported = imported_by(names)
    for at, name in enumerate(order):
        needed = {each.rpartition(".")[2] for each in imported[f"opwise.linkers.native.{name}"]}
        assert needed & set(order) <= set(order[:at]), name


def test_cython_modules_include_generated_text_only():
    for path in cython_files():
        included = re.findall(r'(?m)^include "(.+)"', (ROOT / path).read_text())
        assert all(name.startswith("structs_") for name in included), path


def test_a_line_pattern_sees_the_imports_of_cython():
    seen = {name for path in cython_files() for _, name in imports(ROOT / path)}
    assert {"numpy", "cython", "libc.stdlib", "opwise.linkers.blasload"} <= seen


@pytest.mark.parametrize("path", modules(), ids=str)
def test_only_the_gpu_layer_knows_cupy(path):
    if path.parts[:2] == ("opwise", "gpu"):
        return
    assert not [name for _, name in imports(ROOT / path) if name.split(".")[0] == "cupy"]


@pytest.mark.parametrize("path", modules(), ids=str)
def test_only_its_folder_knows_pytensor(path):
    if path.parts[:2] == ("opwise", "pytensor"):
        return
    names = [name for _, name in imports(ROOT / path)]
    assert not [
        n for n in names if n.split(".")[0] == "pytensor" or n.startswith("opwise.pytensor")
    ]


def test_nobody_imports_the_gpu_layer():
    """Only modules of upper layers that this layer loads itself may."""
    loaded = set(lowering.UPPER_MODULES.values())
    assert loaded == {"opwise.loops.ondevice"}
    for path in modules():
        if path.parts[:2] != ("opwise", "gpu"):
            names = [n for _, n in imports(ROOT / path)]
            assert loaded.isdisjoint(names), path
            if dotted_name(path) not in loaded:
                assert not [n for n in names if n.startswith("opwise.gpu")], path


def test_modules_have_a_subject():
    nameless = {"utils", "util", "misc", "helpers", "helper", "basic", "common", "tools"}
    assert not [p for p in modules() if p.stem in nameless or nameless & set(p.parts)]


@pytest.mark.parametrize("path", modules(), ids=str)
def test_modules_say_what_they_hold(path):
    tree = ast.parse((ROOT / path).read_text())
    doc = ast.get_docstring(tree)
    assert doc, f"{path} has no docstring"
    if path.name != "errors.py":  # which draws the exception tree
        assert len(doc.splitlines()) <= 12, f"{path}: a module docstring is short"


@pytest.mark.parametrize("package", ["opwise", "theano"])
def test_import_is_light(package):
    """Importing starts no process, loads neither scipy.linalg nor cupy, and writes no file."""
    program = (
        "import sys, os, subprocess, builtins\n"
        "def refuse(*args, **kwargs): raise SystemExit('a process was started: %r' % (args,))\n"
        "subprocess.Popen.__init__ = os.system = os.posix_spawn = refuse\n"
        "writing = builtins.open\n"
        "def reading(file, mode='r', *args, **kwargs):\n"
        "    assert not set(mode) & set('wax+'), file\n"
        "    return writing(file, mode, *args, **kwargs)\n"
        "builtins.open = reading\n"
        f"import {package}\n"
        "print(*sorted({'cupy', 'scipy.linalg', 'scipy.special', 'scipy.sparse', 'pdb', 'yaml',\n"
        "               'opwise.testing', 'hypothesis', 'json', 'shutil',\n"
        "               'multiprocessing', 'IPython', 'pytest', 'jinja2', 'dask', 'distributed',\n"
        "               'pytensor', 'opwise.frontends'}\n"
        "              & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-B", "-c", program], capture_output=True, text=True,
        check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_public_names_exist():
    assert len(opwise.__all__) == len(set(opwise.__all__))
    for name in opwise.__all__:
        assert hasattr(opwise, name), name


def test_public_names_are_listed():
    """What ``opwise/__init__`` imports is what it exports."""
    tree = ast.parse((ROOT / "opwise/__init__.py").read_text())
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if not (alias.asname or alias.name).startswith("_")
    }
    assert imported <= {*opwise.__all__, "verify_grad"}, imported - set(opwise.__all__)


def test_the_public_module_defines_nothing():
    tree = ast.parse((ROOT / "opwise/__init__.py").read_text())
    defined = [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    assert set(defined) <= {"__getattr__", "__dir__"}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "opwise/tensor").rglob("*.py")), ids=lambda p: p.name
)
def test_tensor_modules_export_what_they_have(path):
    import importlib

    module = importlib.import_module(dotted_name(path.relative_to(ROOT)))
    exported = getattr(module, "__all__", ())
    assert len(exported) == len(set(exported))
    assert not [name for name in exported if not hasattr(module, name)]


def test_function_graph_stays_a_class_of_few_methods():
    public = [
        name
        for name in dir(FunctionGraph)
        if not name.startswith("_") and callable(getattr(FunctionGraph, name))
    ]
    assert len(public) <= 40, public


# --- values that are complete when they are made --------------------------------------------------


def test_nobody_else_sets_attributes_of_graphs():
    """What belongs to a FunctionGraph is in its Interface, or a feature that is attached to it.

    A feature may set the attributes that FunctionGraph declares for it, in ``on_attach``.
    """
    declared = {"shape_feature", "hints_feature", "get_nodes"}
    found = []
    for path in modules():
        if path.name == "fgraph.py":
            continue
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            targets = node.targets if isinstance(node, ast.Assign) else ()
            for target in targets:
                of_graph = isinstance(target, ast.Attribute) and (
                    ast.unparse(target.value).rpartition(".")[2] == "fgraph"
                )
                if of_graph and target.attr not in declared:
                    found.append(f"{path}:{node.lineno}: {ast.unparse(target)}")
    assert not found


@pytest.mark.parametrize(
    "name",
    [
        "compile.construct:Construction", "graph.fgraph:Interface", "compile.maker:Optimized",
        "linkers.program:Program", "linkers.program:Step", "linkers.lowering:CStep",
        "linkers.linked:Linked", "compile.report:CompileReport", "linkers.cbuild:BuildReport",
        "profiling.model:FunctionProfile", "profiling.model:ApplyProfile",
    ],
)  # fmt: skip
def test_stages_hand_over_values(name):
    """What one stage of the pipeline gives to the next cannot be changed afterwards."""
    module, cls = name.split(":")
    found = getattr(importlib.import_module(f"opwise.{module}"), cls)
    assert found.__dataclass_params__.frozen


# --- state ----------------------------------------------------------------------------------------

_TYPE = "a type is older than the class of its variables, whose methods make Ops, which know it"
_LOW = "as_tensor_variable is below the Ops of what it makes"
_RUNNER = "the program is a whole process, and sets its own flags and streams"
_PYTHON2 = "programs of Python 2 find in Python what they expect there"

#: what else changes a name of another module, a class of another one, or the class of an object:
#: (file, what is assigned) -> why
PATCHES = {
    ("opwise/scalar/variable.py", "Scalar.Variable"): _TYPE,
    ("opwise/scalar/variable.py", "Scalar.Constant"): _TYPE,
    ("opwise/tensor/operators.py", "TensorType.Variable"): _TYPE,
    ("opwise/tensor/operators.py", "TensorType.Constant"): _TYPE,
    ("opwise/sparse/operators.py", "SparseType.Variable"): _TYPE,
    ("opwise/sparse/operators.py", "SparseType.Constant"): _TYPE,
    ("opwise/tensor/convert.py", "conversions.from_scalar"): _LOW,
    ("opwise/tensor/join.py", "conversions.from_sequence"): _LOW,
    ("opwise/gpu/legacy.py", "legacy.device"): "theano.sandbox.cuda.use chooses a device",
    ("opwise/py2/pickles.py", "thing.__class__"): "pickle has made the object, which others hold",
    ("opwise/names/front.py", "module.__class__"): "the package is a LegacyModule as its modules "
    "are",
    ("opwise/names/front.py", "found.__class__"): "a module with a file answers to Theano's names",
    ("opwise/command/main.py", "sys.stdout"): _RUNNER,
    ("opwise/distributed/remote.py", "config.threads"): _RUNNER,
    ("opwise/pytensor/__main__.py", "pytensor.config.mode"): _RUNNER,
    ("opwise/pytensor/__main__.py", "sys.argv"): _RUNNER,
    ("opwise/py2/hook.py", "sys.excepthook"): _PYTHON2,
    ("opwise/py2/hook.py", "multiprocessing.spawn.get_preparation_data"): _PYTHON2,
}
#: calls of setattr on a class, not on an object: (file, class) -> why
SET_ON_CLASSES = {
    ("opwise/py2/builtin.py", "cls"): _PYTHON2,
    ("opwise/py2/builtin.py", "ByteString"): "a class of the same file, of which methods differ "
    "in the name alone",
    ("opwise/names/placeholder.py", "Placeholder"): "likewise",
    ("opwise/tracing/values.py", "Number"): "likewise",
    ("opwise/tracing/values.py", "Traced"): "likewise",
    ("opwise/tracing/branches.py", "Undefined"): "likewise",
}


def assigned(node):
    """Return the targets of a statement that binds or deletes something."""
    if isinstance(node, ast.Assign | ast.Delete):
        return [one for target in node.targets for one in getattr(target, "elts", [target])]
    return [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else []


def patches(tree):
    """Return what a file assigns to attributes of what it has imported or defined as a class, and
    to ``__class__``."""
    outer = {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    outer |= {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    found = []
    for target in (each for node in ast.walk(tree) for each in assigned(node)):
        if isinstance(target, ast.Attribute):
            first = ast.unparse(target.value).split(".")[0]
            if first in outer or target.attr == "__class__":
                found.append(ast.unparse(target))
    return found


def cells(tree):
    """Return the lists of a module that its functions use as variables: ``x[0] = ...``."""
    own = {
        target.id
        for node in tree.body
        for target in assigned(node)
        if isinstance(target, ast.Name) and isinstance(node.value, ast.List)
        and len(node.value.elts) == 1
    }  # fmt: skip
    return {
        target.value.id
        for node in ast.walk(tree)
        for target in assigned(node)
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)
        and target.value.id in own and isinstance(target.slice, ast.Constant)
    }  # fmt: skip


def set_on_classes(tree):
    """Return the classes of a file of which ``setattr`` sets an attribute."""
    classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    classes |= {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return {
        ast.unparse(node.args[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr"
        and ast.unparse(node.args[0]) in (*classes, "cls")
    }  # fmt: skip


@functools.cache
def trees():
    return [(str(path), ast.parse((ROOT / path).read_text())) for path in modules()]


def test_the_scans_see_what_they_look_for():
    text = """
import a, b.c
from d import e, F
kept, many = [None], {}
class G: pass
def f(x):
    a.x = 1
    b.c.x += 1
    e.y, z = 1, 2
    G.x = 1
    x.__class__ = G
    x.own = 2
    kept[0] = 3
    many[0] = 4
    setattr(F, "x", 1)
    setattr(x, "x", 1)
"""
    tree = ast.parse(text.replace("kept, many = [None], {}", "kept = [None]\nmany = {}"))
    assert patches(tree) == ["a.x", "b.c.x", "e.y", "G.x", "x.__class__"]
    assert (cells(tree), set_on_classes(tree)) == ({"kept"}, {"F"})


def test_no_function_binds_a_name_of_its_module():
    """A named object holds such state, or a context variable what the thread is doing now."""
    found = [
        path for path, tree in trees() if any(isinstance(n, ast.Global) for n in ast.walk(tree))
    ]
    pattern = re.compile(r"(?m)^[ \t]*global[ \t]")
    found += [str(path) for path in cython_files() if pattern.search((ROOT / path).read_text())]
    assert found == []


def test_no_list_of_one_element_is_a_variable():
    assert {path: found for path, tree in trees() if (found := cells(tree))} == {}


def test_no_module_changes_another_one():
    found = {(path, what) for path, tree in trees() for what in patches(tree)}
    assert found - PATCHES.keys() == set(), "pass an object, or say why in PATCHES"
    assert PATCHES.keys() - found == set(), "they are gone"


def test_classes_are_complete_when_they_are_defined():
    found = {(path, what) for path, tree in trees() for what in set_on_classes(tree)}
    assert found - SET_ON_CLASSES.keys() == set(), "define it in the class, or say why"
    assert SET_ON_CLASSES.keys() - found == set(), "they are gone"


def test_upcalls_are_found():
    """Each names a function that is there, in a layer above that of graphs."""
    text = (ROOT / "opwise/graph/upcalls.py").read_text()
    named = re.findall(r'"(opwise[\w.]+):(\w+)"', text)
    assert len(named) >= 9
    for module, name in named:
        assert hasattr(importlib.import_module(module), name), (module, name)
        assert _LEVEL[layer(module)] > _LEVEL["graph"]
    for package, loaded in upcalls.LOADED_WITH.items():
        for module in loaded:
            assert is_module(module) and _LEVEL[layer(module)] > _LEVEL[layer(package)]
