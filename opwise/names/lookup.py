"""Where a module of opwise or theano has a name from.

A name is, in this order: the module's own, what the modules of opwise in ``aliases.MADE`` have,
what ``aliases.NAMES`` says, a module, and what the record of Theano's names says: the name where
Theano defines it, a name of another package, or a placeholder. The tables have the names of Theano;
those in opwise differ in the first word.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import pkgutil
import sys
import types
import warnings

from opwise.errors import MissingFeatureError
from opwise.names import record
from opwise.names.aliases import HIDDEN, MADE, NAMES, NEEDS, PYTHON_2, TRACING
from opwise.names.placeholder import missing, placeholder
from opwise.tensor.elsewhere import hint
from opwise.tensor.elsewhere import public as public_names


def in_theano(dotted):
    """Return the name that the tables have for a dotted name of either package."""
    package, _, rest = dotted.partition(".")
    return f"theano.{rest}".rstrip(".") if package == "opwise" else dotted


def in_package(dotted, module):
    """Return a dotted name of Theano in the package of a module; another name as it is."""
    package = module.__name__.partition(".")[0]
    first, _, rest = dotted.partition(".")
    return f"{package}.{rest}".rstrip(".") if first == "theano" else dotted


def is_module(dotted):
    """Return whether Theano has a module of this name, in either package."""
    name = in_theano(dotted)
    return name in MADE or name in record.modules()


def is_hidden(dotted):
    """Return whether a module is no attribute of its parent."""
    return in_theano(dotted) in HIDDEN


def prepare(module):
    """Import what a new module without a file cannot do without."""
    vars(module)["__filled__"] = False
    needed = NEEDS.get(in_theano(module.__name__))
    if needed is not None:
        importlib.import_module(needed)


def public(module):
    """Return the names that a star import binds: those that the newest release with this module
    bound, and those that a module of opwise exports; no others, since they would hide the program's
    own."""
    fill(module)
    recorded = record.names(in_theano(module.__name__))
    newest = [digit for digit in record.RELEASES if any(r.is_in(digit) for r in recorded.values())]
    known = [n for n, r in recorded.items() if r.is_in(newest[-1])] if newest else vars(module)
    own_package = module.__name__.partition(".")[0]
    names = [n if n != "theano" else own_package for n in known if not n.startswith("_")]
    if is_made(module):
        return names
    own = vars(module)
    exported = own.get("__exported__", [name for name in own if not name.startswith("_")])
    return [*dict.fromkeys((*exported, *names))]


def listed(module):
    """Return what ``dir`` shows of a module."""
    fill(module)
    own = vars(module)
    if is_made(module):
        return [*own]
    files = [each.name for each in pkgutil.iter_modules(own["__path__"]) if each.name[0] != "_"]
    return [*dict.fromkeys((*own, *files, *public(module)))]


def is_made(module):
    """Return whether names of other modules are copied into a module."""
    return "__filled__" in vars(module)


def fill(module):
    """Copy the names of the sources into a module without a file, except those of modules.

    There are modules of its own under these names, with the names that programs look for.
    """
    own = vars(module)
    if own.get("__filled__", True):
        return
    for source in sources(module):
        for name in vars(source):
            if offers(source, name, module):
                own.setdefault(name, vars(source)[name])
    own["__filled__"] = True


def sources(module):
    """Yield the modules whose names a module has; they are imported one by one."""
    for source in MADE.get(in_theano(module.__name__), ()):
        if source != module.__name__:
            yield importlib.import_module(source)


def offers(source, name, module):
    """Return whether a module has a name from one of its sources."""
    own = vars(source)
    return (
        name in own and not name.startswith("__")
        and not _is_own_module(own[name]) and not _is_attribute(module, name)
    )  # fmt: skip


def _is_attribute(module, name):
    """Return whether an attribute of a module is one of its modules."""
    dotted = f"{in_theano(module.__name__)}.{name}"
    return dotted in MADE and dotted not in HIDDEN


def _is_own_module(value):
    return isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] == "opwise"


def found(module, name):
    """Return what a module has under a name that it lacks itself.

    Raises AttributeError if neither opwise nor Theano knows it.
    """
    fill(module)
    dotted = f"{in_theano(module.__name__)}.{name}"
    if dotted in NEEDS and importlib.util.find_spec(NEEDS[dotted]) is None:
        text = f"opwise does not have {dotted} without the package {NEEDS[dotted]}."
        raise MissingFeatureError(text, name=name, obj=module)
    own = vars(module)
    if name in own:
        return own[name]
    for source in sources(module):
        computed = vars(source).get("__getattr__")
        if computed is not None:
            try:
                return computed(name)  # it may change, like the state of a device
            except AttributeError:
                pass
    return own.get("__found__", own).setdefault(name, _search(module, name, dotted))


def _search(module, name, dotted):
    if not is_made(module):  # into the others, all names of the sources were copied
        for source in sources(module):
            if offers(source, name, module):
                return vars(source)[name]
    if _is_attribute(module, name):  # not the module of opwise that has the name
        return importlib.import_module(f"{module.__name__}.{name}")
    if module.__name__ == "opwise" and name in TRACING:
        return _named(TRACING[name])
    recorded = record.names(in_theano(module.__name__))
    if dotted in NAMES:
        return _named(in_package(NAMES[dotted], module))
    if name in recorded:
        return _recorded(recorded[name], module)
    if dotted in record.modules():
        return importlib.import_module(f"{module.__name__}.{name}")
    if name == module.__name__.partition(".")[0]:  # Theano's modules have its package
        return sys.modules[name]
    # without the module, of whose names Python would propose those that are spelled alike
    raise AttributeError(_unknown(module, name), name=name, obj=None)


def _recorded(recorded, module):
    """Return what stands in a module for a name that Theano had."""
    home = PYTHON_2.get(recorded.home, recorded.home)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about names of other packages that are going away
            if recorded.kind == "module":
                return importlib.import_module(in_package(home, module))
            if home != recorded.dotted:
                return _named(in_package(home, module))
    except (ImportError, AttributeError):
        pass
    if recorded.kind == "module" and not home.startswith("theano"):
        # without that package Theano's import failed too: programs go on without it
        raise missing(placeholder(recorded))
    parent, _, name = recorded.dotted.rpartition(".")
    if name == "logger":  # programs set its level
        return logging.getLogger(parent)
    return placeholder(recorded)


def _named(dotted):
    """Return the object with a dotted name."""
    module, _, name = dotted.rpartition(".")
    if not module or in_theano(dotted) in MADE:
        return importlib.import_module(dotted)
    return getattr(importlib.import_module(PYTHON_2.get(module, module)), name)


def _unknown(module, name):
    """Return the text for a name that neither opwise nor Theano has in a module."""
    recorded = record.names(in_theano(module.__name__))
    known = {n for n in (*vars(module), *recorded) if not n.startswith("_")}
    known = [n for n in sorted(known) if n not in recorded or recorded[n].home.startswith("theano")]
    own = () if is_made(module) else public_names(module)
    more = hint(name, module.__name__, own, known)
    if module.__name__.startswith("theano"):
        return f"opwise has no {module.__name__}.{name}, nor had Theano.{more}"
    return f"module {module.__name__!r} has no attribute {name!r}.{more}"
