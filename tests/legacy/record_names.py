"""Record the names of every module of Theano's releases in ``opwise/names/recorded.json.gz``.

    python tests/legacy/record_names.py list PACKAGE NAMES.json
    python tests/legacy/record_names.py merge 0.6.0=NAMES.json 0.7.0=NAMES.json ...

``list`` runs on the Python of a release and takes the folder of its package ``theano``:

    python2.7 -m pip install --target libraries numpy==1.11.3 scipy==0.19.1 six nose parameterized
    python2.7 -m pip install --target theano-0.9.0 --no-deps Theano==0.9.0
    PYTHONPATH=theano-0.9.0:libraries THEANO_FLAGS=cxx=,device=cpu python2.7 \\
        tests/legacy/record_names.py list theano-0.9.0/theano 0.9.0.json

Theano 0.6.0 needs a compiler (leave out ``cxx=``); 1.0.5 was listed on Python 3.7 with numpy 1.19.
``list`` imports each module in a fork, and reads the sources of those that cannot be imported, and
of those whose names depend on a GPU. ``merge`` runs on today's Python and writes the record.

The record groups the names of a module by kind, releases, and the module that defines them:

    {"theano.gof.fg": {"class 67891": "FunctionGraph", "class 67891 theano.gof.utils": "..."}}

The digits name releases (6: 0.6.0, 7: 0.7.0, 8: 0.8.2, 9: 0.9.0, 1: 1.0.5). ``a=b`` is a name ``a``
for what its module calls ``b``. Variables of loops are left out, and names that begin with an
underscore, except those of UNDERSCORED. ``git config diff.gzip.textconv "gzip -cd"`` lets git show
the changes of the record.
"""

# This runs on Python 2.7 too.

import ast
import gzip
import json
import os
import sys

RELEASES = {"6": "0.6.0", "7": "0.7.0", "8": "0.8.2", "9": "0.9.0", "1": "1.0.5"}
#: names with an underscore that public programs use, where Theano defines them
UNDERSCORED = set(
    """
    theano._asarray theano.misc.safe_asarray._asarray theano.tensor.basic._shared
    theano.tensor.basic._allclose theano.tensor.var._tensor_py_operators
    theano.tensor.raw_random._infer_ndim_bcast theano.configparser._config_var_list
    theano.printing._TagGenerator theano.sparse.basic._is_sparse_variable
    theano.tensor.basic._scal_elemwise theano.tensor.basic._float16_softmax
    theano.tensor.basic._convert_to_int32 theano.tensor.basic._convert_to_float64
    theano.tensor.basic._max theano.tensor.basic._argmax theano.tensor.basic._shape
    theano.tensor.nnet.sigm._sigmoid
    """.split()
)
#: packages with names that are bound only if there is a GPU
DEVICE_PACKAGES = ("theano.sandbox.cuda", "theano.sandbox.gpuarray", "theano.gpuarray")
UNDERSCORED_WORDS = {name.rpartition(".")[2] for name in UNDERSCORED}


def modules(package):
    """Return {dotted name: path} of the modules in the folder of a package."""
    found = {}
    for folder, _, files in os.walk(package):
        dotted = os.path.relpath(folder, os.path.dirname(package)).replace(os.sep, ".")
        if "__init__.py" not in files:
            continue
        for each in files:
            if each.endswith(".py"):
                stem = each[:-3]
                name = dotted if stem == "__init__" else dotted + "." + stem
                found[name] = os.path.join(folder, each)
    return found


# --- what the source says -------------------------------------------------------------------------


class _Source(ast.NodeVisitor):
    """Collects the names that the source of a module binds at its top level.

    ``names``: {name: (kind, target)}; the target of what the module imports is a dotted name.
    """

    def __init__(self, module, is_package):
        self.names, self.loops, self.stars = {}, set(), []
        self._module, self._is_package = module, is_package

    def _bind(self, name, kind, target=None):
        self.names[name] = (kind, target)

    def visit_FunctionDef(self, node):
        self._bind(node.name, "function")

    def visit_ClassDef(self, node):
        bases = [getattr(b, "id", getattr(b, "attr", "")) for b in node.bases]
        wrong = any(b.endswith(("Error", "Exception", "Warning")) for b in bases)
        self._bind(node.name, "exception" if wrong else "class")

    def visit_Assign(self, node):
        for target in node.targets:
            for each in ast.walk(target):
                if isinstance(each, ast.Name):
                    self._bind(each.id, "object")

    def visit_For(self, node):
        self.loops |= {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
        self.generic_visit(node)

    def visit_ListComp(self, node):  # its variable outlives it in Python 2
        for part in node.generators:
            self.loops |= {each.id for each in ast.walk(part.target) if isinstance(each, ast.Name)}

    def visit_Import(self, node):
        for alias in node.names:
            first = alias.name if alias.asname else alias.name.split(".")[0]
            self._bind(alias.asname or first, "module", first)

    def visit_ImportFrom(self, node):
        module = node.module or ""
        if node.level:
            base = self._module.split(".")
            base = base[: len(base) - node.level + bool(self._is_package)]
            module = ".".join(base + ([node.module] if node.module else []))
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
            else:
                self._bind(alias.asname or alias.name, "object", module + "." + alias.name)

    def visit_Lambda(self, node):
        pass


def read(module, path):
    """Return the names that a source binds, without running it."""
    source = _Source(module, os.path.basename(path) == "__init__.py")
    with open(path, "rb") as file:
        source.visit(ast.parse(file.read()))
    return source


# --- what the running module holds ----------------------------------------------------------------


def kind_of(value):
    """Return the kind of a value of a module."""
    import types

    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, type) or type(value).__name__ == "classobj":
        is_wrong = isinstance(value, type) and issubclass(value, BaseException)
        return "exception" if is_wrong else "class"
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
        return "function"
    if isinstance(value, (bool, int, float, complex, str, bytes, tuple, list, dict, set)):
        return "constant"
    if any(base.__name__ in ("PureOp", "Op") for base in type(value).__mro__):
        return "Op"
    return "object"


def held(module):
    """Return {name: [kind, target]} of a module that is imported; the target may be None."""
    import importlib

    found = {}
    for name, each in vars(importlib.import_module(module)).items():
        kind, target = kind_of(each), None
        if kind == "module":
            target = each.__name__
        elif kind in ("class", "exception", "function"):
            home, known = getattr(each, "__module__", None), each.__name__
            if home and getattr(sys.modules.get(home), known, None) is each:
                target = home + "." + known
        found[name] = [kind, target]
    return found


def held_in_fork(module):
    """Return ``held(module)`` of a forked process, or the text of its error.

    Importing a module in this process would add attributes to the packages that are listed later.
    """
    source, sink = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer = held(module)
        except BaseException as error:
            answer = "%s: %s" % (type(error).__name__, error)
        with os.fdopen(sink, "w") as file:
            json.dump(answer, file)
        os._exit(0)
    os.close(sink)
    with os.fdopen(source) as file:
        answer = json.load(file)
    os.waitpid(child, 0)
    return answer


def listing(package):
    """Return {module: {name: [kind, target]}} of a release, and print what cannot be imported."""
    import theano  # noqa: F401 (once for all forks)

    package = os.path.abspath(package)
    paths, result = modules(package), {}
    sources = {name: read(name, path) for name, path in paths.items()}
    for name in sorted(paths):
        names = static(name, sources)
        known = held_in_fork(name)
        if not isinstance(known, dict):
            sys.stderr.write("%s is read: %s\n" % (name, known.splitlines()[0][:90]))
        else:
            if not name.startswith(DEVICE_PACKAGES):
                names = {each: entry for each, entry in names.items() if each in known}
            for each, (kind, target) in known.items():
                if target is None and each in names:
                    target = names[each][1]  # an object has no name of its own
                names[each] = (kind, target)
        loops = sources[name].loops - set(sources[name].names)
        result[name] = {
            each: entry for each, entry in names.items()
            if not each.startswith("__") and each not in loops
            and (not each.startswith("_") or each in UNDERSCORED_WORDS)
        }  # fmt: skip
    return result


def static(module, sources, seen=()):
    """Return the names that the source of a module binds, with those of its star imports."""
    found = {}
    if module in sources and module not in seen:
        for star in sources[module].stars:
            for each, (kind, target) in static(star, sources, seen + (module,)).items():
                if not each.startswith("_"):
                    found[each] = (kind, target or star + "." + each)
        found.update(sources[module].names)
    return found


# --- the record -----------------------------------------------------------------------------------


def resolved(name, record, seen=()):
    """Return the dotted name under which a name is defined, after following imports."""
    module, _, last = name.rpartition(".")
    entry = record.get(module, {}).get(last)
    if entry is None or not entry[1] or entry[1] == name or name in seen:
        return name
    return resolved(entry[1], record, seen + (name,))


def final(name, every):
    """Return the home of a name, after moves between releases; empty if it is the name itself."""
    seen = [name]
    while True:
        module, _, last = seen[-1].rpartition(".")
        home = every.get(module, {}).get(last, ("", "", ""))[2]
        if not home:
            return seen[-1] if len(seen) > 1 else ""
        if home in seen:  # two modules that imported it from each other, in different releases
            return ""
        seen.append(home)


def merged(records):
    """Return {module: {group: names}} of {digit: {module: {name: [kind, target]}}}."""
    every = {}
    for digit, record in records.items():
        for module, names in record.items():
            every.setdefault(module, {})
            for name, (kind, target) in names.items():
                own = module + "." + name
                home = resolved(own, record) if target else own
                if kind == "object" and own in record and home == own:  # it imports its own module
                    kind = "module"
                elif kind == "object" and home != own:  # only its source was read
                    at, _, last = home.rpartition(".")
                    kind = record.get(at, {}).get(last, (kind,))[0]
                    kind = "module" if home in record or not at else kind
                known = every[module].setdefault(name, ["", "", ""])
                # the newest release that has a name says what it is
                every[module][name] = [kind, known[1] + digit, "" if home == own else home]
    for module, names in every.items():
        for name, entry in names.items():
            entry[2] = final(module + "." + name, every)
    groups = {}
    for module, names in sorted(every.items()):
        groups[module] = {}
        for name, (kind, digits, home) in sorted(names.items()):
            at, _, last = home.rpartition(".")
            group = " ".join(filter(None, (kind, digits, at)))
            word = name if last in (name, "") else name + "=" + last
            if home and not at:  # a module at the top: numpy
                group, word = kind + " " + digits + " .", word
            groups[module].setdefault(group, []).append(word)
    return {
        module: {group: " ".join(words) for group, words in sorted(found.items())}
        for module, found in groups.items()
    }


def main(words):
    if words[:1] == ["list"] and len(words) == 3:
        with open(words[2], "w") as file:
            json.dump(listing(words[1]), file)
    elif words[:1] == ["merge"] and len(words) > 1:
        digits = {release: digit for digit, release in RELEASES.items()}
        records = {}
        for word in words[1:]:
            release, _, path = word.partition("=")
            with open(path) as file:
                records[digits[release]] = json.load(file)
        folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        text = json.dumps(merged(records), indent=0, sort_keys=True) + "\n"
        with open(os.path.join(folder, "opwise", "names", "recorded.json.gz"), "wb") as file:
            # without the time, so that the same names give the same file
            file.write(gzip.compress(text.encode("utf-8"), mtime=0))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
