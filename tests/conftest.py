"""Makes the session hermetic: a kernel cache of its own, and none of the user's flags."""

import atexit
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from itertools import zip_longest

import pytest
from hypothesis import settings

_CACHE = "OPWISE_TEST_CACHE"

# time decides no test
settings.register_profile("opwise", deadline=None)
settings.load_profile("opwise")


def _isolate():
    """Set the environment that opwise reads when it is imported; worker processes inherit it."""
    if _CACHE not in os.environ:
        folder = os.environ[_CACHE] = tempfile.mkdtemp(prefix="opwise-tests-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # a rewrite that fails is a fault, also if all values are right
    flags = [f"base_compiledir={os.environ[_CACHE]}", "on_opt_error=raise"]
    flags += [os.environ.get("OPWISE_TEST_FLAGS", "")]
    os.environ["OPWISE_FLAGS"] = ",".join(filter(None, flags))
    os.environ["THEANO_FLAGS"] = ""
    os.environ.pop("COLUMNS", None)
    os.unsetenv("COLUMNS")  # set by readline, which pytest imports, behind the back of os.environ
    os.environ["THEANORC"] = os.environ["OPWISERC"] = os.devnull
    # a job in the background of a shell is started with Ctrl-C ignored, and would hand that on to
    # every process that a test interrupts
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


_isolate()

import numpy as np  # noqa: E402  (nothing may be imported before the environment is set)

from opwise import errors  # noqa: E402
from opwise.linkers import opwise_c  # noqa: E402


def pytest_addoption(parser):
    parser.addoption(
        "--few", type=int, metavar="N",
        help="run N cases of each parametrized test at most: the first, the last, and some between",
    )  # fmt: skip


@pytest.hookimpl(trylast=True)  # behind -m and -k
def pytest_collection_modifyitems(config, items):
    few = config.getoption("few")
    if few is None:
        return
    cases = {}
    for item in items:
        function, _, _ = item.nodeid.partition("[")
        cases.setdefault(function, []).append(item)
    kept = {item for of_one in cases.values() for item in spread(of_one, few)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def spread(values, n):
    """Return n of the values at most, evenly: the first and the last are among them."""
    if len(values) <= n:
        return values
    return [values[round(k * (len(values) - 1) / max(n - 1, 1))] for k in range(n)]


@pytest.fixture(autouse=True)
def faults_of_explanations():
    """What code raised that explains an error: users read the error without it, tests fail.

    A test of such a fault empties the list.
    """
    faults = []
    errors.on_failed_explanation.append(faults.append)
    yield faults
    errors.on_failed_explanation.pop()
    if faults:
        raise faults[0]


@pytest.fixture(autouse=True)
def _same_random_numbers():
    """Seed numpy's global generator, which verify_grad and users' habits draw from."""
    np.random.seed(20250807)


def _built_vectors():
    """Return the kinds of processors that the library has kernels for and this one is."""
    found = []
    for name in ("base", "avx2", "avx512"):
        with suppress(ValueError):
            opwise_c.use_vectors(name)
            found.append(name)
    opwise_c.use_vectors(opwise_c.VECTORS)
    return found


@pytest.fixture(params=_built_vectors())
def vectors(request):
    """The built-in kernels of one kind of processor."""
    opwise_c.use_vectors(request.param)
    yield request.param
    opwise_c.use_vectors(opwise_c.VECTORS)


@pytest.fixture
def flags():
    """``flags(name=value)`` or ``flags({'dotted.name': value})``: set until the test ends."""
    from opwise.config import change_flags

    active = []

    def change(*args, **kwargs):
        manager = change_flags(*args, **kwargs)
        manager.__enter__()
        active.append(manager)

    yield change
    while active:
        active.pop().__exit__(None, None, None)


class _Config:
    """The configuration with other values for flags that programs cannot change."""

    def __init__(self, **values):
        self.__dict__.update(values)

    def __getattr__(self, name):
        from opwise.config import config

        return getattr(config, name)


@pytest.fixture
def only_own_rewrites(monkeypatch):
    """Other tests may have registered rewrites."""
    from opwise.compile import optdb
    from opwise.optimizers.database import _Generation

    assert "canonicalize" in optdb  # it takes what waits for it
    monkeypatch.setattr(_Generation, "changed", False)


@pytest.fixture
def use_cache(monkeypatch):
    """``use_cache(folder, flag=value, ...)``: keep kernels there, as in a new process."""
    from opwise.linkers import cbuild, kernelcache

    def use(folder, **values):
        monkeypatch.setattr(kernelcache, "config", _Config(compiledir=str(folder), **values))
        monkeypatch.setattr(kernelcache, "_process", kernelcache._Process())
        monkeypatch.setattr(cbuild, "_loaded", {})
        return folder

    return use


@pytest.fixture
def build():
    """(an_apply, a_function, Profile): profiles with figures that a test chooses."""
    from opwise.profiling.histogram import bucket
    from opwise.profiling.profile import (
        ApplyProfile,
        CompileProfile,
        FunctionProfile,
        OriginProfile,
        Profile,
    )

    def an_apply(op, total, position=0, c=True, keys=(), count=1, op_class=None, lines=()):
        """An Apply that took ``total`` nanoseconds."""
        return ApplyProfile(
            position=position,
            op=op,
            op_class=op_class or f"<class 'ops.{op.split('{')[0]}'>",
            op_key=f"ops.{op}",
            text=f"{op}(x)",
            inputs=("TensorType(float64, vector)",),
            outputs=("TensorType(float64, vector)",),
            reads=(-1,),
            origins=tuple(
                OriginProfile(key or f"{op} at {place}", op, *place)
                for key, place in zip_longest(keys, lines)
                for place in [place or ("", 0)]
            ),
            c=c,
            why="" if c else "no C implementation",
            count=count,
            total=total,
            least=total // max(1, count),
            most=total,
            histogram=((bucket(total // max(1, count)), count),),
        )

    def a_function(*applys, name="f", calls=1, call_ns=None):
        """A function of these Applys, called ``calls`` times."""
        total = sum(a.total for a in applys)
        return FunctionProfile(
            name=name,
            applys=tuple(applys),
            calls=calls,
            call_ns=2 * total if call_ns is None else call_ns,
            fn_ns=total,
            first_call_ns=total,
            compile=CompileProfile(
                total=0.3,
                optimizer=0.1,
                validate=0.01,
                linker=0.2,
                thunks=0.15,
                load=0.001,
                slowest=(("exp(x)", 0.1),),
            ),
        )

    return an_apply, a_function, Profile


#: C that notes which ranges are pushed and popped
NVTX = """
#include <string.h>
char seen[1 << 20];
int depth;
int nvtxRangePushA(const char *label)
{
    strcat(strcat(strcat(seen, "+"), label), "\\n");
    return depth++;
}
int nvtxRangePop(void)
{
    strcat(seen, "-\\n");
    return --depth;
}
"""


@pytest.fixture(scope="session")
def nvtx_library(tmp_path_factory):
    """The path of a library that notes what it is called with."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc to build a library with")
    folder = tmp_path_factory.mktemp("nvtx")
    path = folder / "libfake.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", path],
        input=NVTX,
        text=True,
        check=True,
    )
    return path


@pytest.fixture
def marks(nvtx_library, flags):
    """Turn marks on; the function returns what was noted since it was called last."""
    flags({"profiling.nvtx": True, "profiling.nvtx_library": str(nvtx_library)})
    fake = ctypes.CDLL(str(nvtx_library))
    seen = (ctypes.c_char * (1 << 20)).in_dll(fake, "seen")
    depth = ctypes.c_int.in_dll(fake, "depth")

    def noted():
        text = seen.value.decode()
        seen.value = b""
        assert depth.value == 0, "what was pushed was not popped"
        return text.splitlines()

    noted()
    return noted


#: set to have a browser that is missing fail the tests instead of skipping them
_REQUIRED = "OPWISE_TEST_BROWSER"


def _missing(reason):
    if os.environ.get(_REQUIRED) == "required":
        pytest.fail(f"{reason}, and {_REQUIRED} is 'required'")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        _missing("there is no Chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("playwright is not installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path)
        yield started
        started.close()
