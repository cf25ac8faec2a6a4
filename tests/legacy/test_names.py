"""Every name of Theano is there: it is opwise's own, or a placeholder that says why it is not."""

import builtins
import copy
import importlib
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import names
import pytest

import theano
import theano.tensor as T
from opwise.errors import MissingFeatureError
from opwise.names import aliases, record
from opwise.names.coverage import covered, lacking, modules
from opwise.names.placeholder import REASONS, Placeholder, placeholder, reason

pytestmark = pytest.mark.null


@pytest.mark.parametrize("module", modules())
def test_every_name_can_be_imported(module):
    found = covered(module)
    assert found.missing == []
    assert sum(found.count()) == len(record.names(module)) > 0


def test_no_name_that_worked_raises_now():
    known = json.loads(names.PLACEHOLDERS.read_text())
    fallen = {
        module: worse for module, raising in names.placeholders().items()
        if (worse := set(raising.split()) - set(known.get(module, "").split()))
    }  # fmt: skip
    assert not fallen, "they worked when placeholders.json was written"


@pytest.mark.parametrize("name", names.used())
def test_names_that_programs_use_can_be_found(name):
    text = lacking(name)
    assert text is None or "opwise does not have theano" in text or "Cuda" in name or "six" in name


@pytest.mark.parametrize("name", names.used())
def test_names_that_programs_use_are_found_in_opwise(name):
    """As programs find them: module by module, then attributes of objects."""
    replaced = re.sub(r"\btheano\b", "opwise", name)
    assert (lacking(replaced) is None) == (lacking(name) is None)


def test_the_table_of_names_that_programs_use():
    lines = names.table()
    assert len(lines) == len(names.used()) + 1
    assert [line.split() for line in lines if line.startswith("theano.tensor.dot ")] == [
        ["theano.tensor.dot", "131", "works"]
    ]


def test_the_page_counts_these_names():
    """More names may work than the page says; ``python docs/refresh.py docs/names.md`` counts.

    Which names of other packages can be found depends on Python and on these packages.
    """
    page = (Path(__file__).parents[2] / "docs" / "names.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^all modules +(\d+) +(\d+) +(\d+) +(\d+)", page, re.M)
    counts = []
    for releases in (record.NEWEST, None):
        working, raising, missing = map(
            sum, zip(*(covered(m, releases).count() for m in modules(releases)), strict=True)
        )
        counts += [working + raising + missing, working]
    assert [int(listed[0]), int(listed[2])] == counts[::2]
    foreign = sum(len(covered(m).raising.get("other packages", ())) for m in modules())
    assert int(listed[1]) <= counts[1] + foreign and int(listed[3]) <= counts[3] + foreign


# --- the record -----------------------------------------------------------------------------------


def test_kinds_and_releases():
    recorded = record.names("theano.tensor.nnet")["relu"]
    assert recorded.kind == "function" and recorded.home == "theano.tensor.nnet.nnet.relu"
    assert recorded.span() == "0.8.2 to 1.0.5" and not recorded.is_in("67")
    assert record.names("theano.compile.profilemode")["ProfileMode"].span() == "0.6.0 to 0.8.2"
    kinds = {name: each.kind for name, each in record.names("theano.tensor.basic").items()}
    assert {kinds[n] for n in ("exp", "TensorType", "dot", "numpy", "NotScalarConstantError")} == {
        "Op", "class", "function", "module", "exception",
    }  # fmt: skip


def test_modules_that_share_their_name_with_a_function():
    """As in Theano, the attribute of the parent is the function, also after the import."""
    shared = set()
    for module in record.modules():
        parent, _, child = module.rpartition(".")
        known = record.names(parent).get(child)
        if known is not None and known.kind != "module":
            shared.add(module)
            assert importlib.import_module(module).__name__ == module
            assert callable(getattr(importlib.import_module(parent), child))
    assert shared == aliases.HIDDEN


# --- star imports ---------------------------------------------------------------------------------


@pytest.mark.parametrize("module, count", [("theano", 87), ("theano.tensor", 542)])
def test_a_star_import_binds_what_it_bound_in_the_newest_release(module, count):
    bound: dict = {}
    exec(f"from {module} import *", bound)
    bound.pop("__builtins__")
    recorded = record.names(module).values()
    genuine = {r.dotted.rpartition(".")[2] for r in recorded if r.is_in(record.NEWEST)}
    assert set(bound) == {name for name in genuine if name[0] != "_"}
    assert len(bound) == count
    hidden = [name for name in bound if hasattr(builtins, name)]
    assert not [n for n in hidden if isinstance(bound[n], Placeholder)] or module == "theano"


def test_a_module_of_opwise_alone_exports_its_names():
    bound: dict = {}
    exec("from theano.errors import *", bound)
    assert bound["MissingFeatureError"] is MissingFeatureError


# --- names that are not Theano's own --------------------------------------------------------------


def test_names_of_other_packages():
    import collections

    import numpy

    assert theano.tensor.basic.numpy is numpy and theano.gof.op.np is numpy
    assert theano.compat.OrderedDict is collections.OrderedDict
    assert theano.gof.graph.deque is collections.deque
    assert theano.tensor.basic.builtins is builtins
    assert theano.theano is theano and theano.gradient.theano is theano
    assert theano.tensor.nnet.nnet.tensor is theano.tensor.basic
    assert theano.tensor.elemwise.izip is zip


# --- placeholders ---------------------------------------------------------------------------------


@pytest.fixture
def missing():
    """A placeholder for a function that no release had."""
    return placeholder(
        record.Recorded("theano.scan_module.scan.scan", "function", "67891",
                         "theano.scan_module.scan.scan")
    )  # fmt: skip


USES = {
    "a call": lambda p: p(1, x=2),
    "an attribute": lambda p: p.anything,
    "a subclass": lambda p: type("Own", (p,), {}),
    "a subclass of two": lambda p: type(p)("Own", (dict, p), {}),
    "an attribute that is set": lambda p: setattr(p, "own", 1),
    "a sum": lambda p: p + 1,
    "a reflected product": lambda p: 2 * p,
    "a power": lambda p: p**2,
    "a sign": lambda p: -p,
    "an index": lambda p: p[0],
    "an item that is set": lambda p: p.__setitem__(0, 1),
    "a loop": lambda p: list(p),
    "a length": lambda p: len(p),
    "a comparison": lambda p: p < 1,
    "membership": lambda p: 1 in p,
    "a number": lambda p: float(p),
    "an instance that is raised": lambda p: (_ for _ in ()).throw(p),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_uses_of_a_placeholder_raise(missing, use):
    with pytest.raises(MissingFeatureError, match=r"opwise does not have theano\.scan \(a func"):
        use(missing)


def test_what_one_may_do_with_a_placeholder(missing):
    assert repr(missing) == "<function theano.scan, which opwise lacks>"
    assert not isinstance(3, missing) and not isinstance(3, (int.__class__, missing))
    assert issubclass(missing, missing) and not issubclass(int, missing)
    assert missing == missing and missing != 3 and missing in {missing}
    assert copy.deepcopy(missing) is missing
    with pytest.raises(ZeroDivisionError):
        try:
            raise ZeroDivisionError
        except missing:
            raise AssertionError("it catches nothing") from None
    assert not missing and (missing or 3) == 3
    assert not hasattr(missing, "anything") and getattr(missing, "__wrapped__", 3) == 3


GUARDED = """
try:
    IMPORT
except Exception:
    NAME = None
assert not NAME, NAME
"""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from theano.sandbox.cuda import cuda_ndarray", "cuda_ndarray"),
        ("from theano.sandbox.cuda.basic_ops import cuda_ndarray", "cuda_ndarray"),
        ("from theano.sandbox.cuda import CudaNdarray", "CudaNdarray"),
        ("from theano.sandbox.cuda.type import CudaNdarrayType", "CudaNdarrayType"),
        ("from theano.gpuarray import pygpu", "pygpu"),
        ("from theano.gpuarray.basic_ops import pygpu", "pygpu"),
        ("from theano.gpuarray.fft import skcuda", "skcuda"),
        ("from theano.gpuarray.type import GpuArrayType", "GpuArrayType"),
        ("from theano.misc.pycuda_init import pycuda_available", "pycuda_available"),
        ("from theano.misc.pycuda_utils import to_gpuarray", "to_gpuarray"),
        ("import theano.misc.pycuda_example as example", "example"),
    ],
)
def test_guarded_imports_without_the_packages_for_gpus(text, name):
    exec(GUARDED.replace("IMPORT", text).replace("NAME", name), {})


def test_a_module_of_a_package_that_is_not_there():
    cuda = theano.sandbox.cuda
    assert not hasattr(cuda, "cuda_ndarray") and theano.gpuarray.type.list_contexts() == []
    with pytest.raises(MissingFeatureError, match="has neither of Theano's two GPU back ends"):
        print(cuda.cuda_ndarray)
    with pytest.raises(ImportError, match="cuda_ndarray"):
        from theano.sandbox.cuda import cuda_ndarray  # noqa: F401


def test_placeholders_are_pickled_by_name():
    name = _first_placeholder()
    module, _, last = name.rpartition(".")
    value = getattr(importlib.import_module(module), last)
    assert pickle.loads(pickle.dumps(value)) is value


def _first_placeholder():
    """Return the dotted name of a placeholder."""
    return next(
        f"{module}.{raising.split()[0]}" for module, raising in names.placeholders().items()
    )


def test_every_placeholder_has_a_reason():
    used = {reason(f"{module}.{name}") for module, raising in names.placeholders().items()
            for name in raising.split()}  # fmt: skip
    assert used <= set(REASONS.values())
    for each in REASONS.values():
        assert each.what and each.why[0] not in " ." and each.instead[0].isupper()
        assert each.instead[-1] == "." and each.why[-1] != "."


@pytest.mark.parametrize(
    "dotted, what",
    [
        ("theano.sandbox.cuda.dnn.dnn_conv", "GPU back ends"),
        ("theano.gpuarray.opt.gpu_optimizer", "GPU back ends"),
        ("theano.gof.cmodule.ModuleCache", "C modules"),
        ("theano.tensor.tests.test_basic.makeTester", "Theano's tests"),
        ("theano.scan_module.scan_op.Scan", "loops"),
        ("pydot_ng.Dot", "other packages"),
    ],
)
def test_reasons(dotted, what):
    assert reason(dotted).what == what


def test_exceptions_are_real_classes():
    error = theano.gof.cmodule.MissingGXX
    assert issubclass(error, Exception) and not isinstance(error, Placeholder)
    with pytest.raises(error, match="text"):
        raise error("text")


def test_the_record_is_read_only_for_missing_names():
    code = (
        "import theano, theano.tensor as T, opwise.names.record as r\n"
        "T.dmatrix, theano.function, theano.gof.Op\n"
        "assert r.modules.cache_info().misses == 0\n"
        "from theano import scan\n"
        "assert r.modules.cache_info().misses == 1\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_names_that_never_were_raise_at_once():
    with pytest.raises(AttributeError, match=r"no theano\.tensor\.expp, nor had .* mean exp") as e:
        T.expp  # noqa: B018
    assert not isinstance(e.value, MissingFeatureError)
    with pytest.raises(ImportError):
        exec("from theano.tensor import expp", {})


@pytest.mark.parametrize("name", sorted(set(aliases.MADE) - aliases.HIDDEN))
def test_modules_are_attributes_of_their_packages(name):
    """Also those that have the name of a function, such as theano.tensor.xlogx."""
    package, _, attribute = name.rpartition(".")
    if package:
        found = getattr(importlib.import_module(package), attribute)
        assert found is importlib.import_module(name)
