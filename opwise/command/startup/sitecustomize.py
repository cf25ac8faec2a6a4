"""Python runs this before a program that ``opwise run`` samples, from its first line on.

The folder of this file is the first one on the path of modules. It is taken off again, so that the
program, what it starts, and a ``sitecustomize`` of the user see what they would without it. Nothing
here imports opwise, and no fault may reach the program.
"""

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))
#: nanoseconds from one sample to the next
_PERIOD = "OPWISE_SAMPLING_PERIOD"


def _leave_path() -> None:
    """Take the folder off the path, here and for the processes that this one starts."""
    sys.path[:] = [folder for folder in sys.path if folder != _FOLDER]
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    rest = os.pathsep.join(folder for folder in given if folder != _FOLDER)
    if rest:
        os.environ["PYTHONPATH"] = rest
    else:
        os.environ.pop("PYTHONPATH", None)


def _start(period: int) -> None:
    """Load the extension that samples, without the package around it, and start it."""
    from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec

    name = "opwise.graph.callstack"
    package = os.path.dirname(os.path.dirname(_FOLDER))
    for suffix in EXTENSION_SUFFIXES:
        path = os.path.join(package, "graph", "callstack" + suffix)
        if os.path.exists(path):
            loader = ExtensionFileLoader(name, path)
            module = loader.create_module(ModuleSpec(name, loader, origin=path))
            loader.exec_module(module)
            sys.modules.pop(name, None)  # until the package imports it: it is the same then
            module.start_sampling(period)
            return


def _run_own() -> None:
    """Run the ``sitecustomize`` that the user has, if there is one."""
    this = sys.modules.pop(__name__, None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if this is not None:
            sys.modules.setdefault(__name__, this)


_leave_path()
try:  # noqa: SIM105 (contextlib is not loaded yet)
    _start(int(os.environ.pop(_PERIOD, "")))
except Exception:  # a program is not disturbed for its profile
    pass
_run_own()
