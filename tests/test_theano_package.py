"""The theano package: what programs take from it is there, and is opwise's own."""

import importlib
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import opwise
import opwise.tensor
import theano
import theano.tensor as T
from opwise.errors import MissingFeatureError
from opwise.names import aliases, front, record

pytestmark = pytest.mark.null

#: the names that at least 20 of 164 repositories use that were looked at, then those of at least 5
USED = """
    theano theano.tensor theano.function theano.config theano.shared theano.config.floatX
    theano.tensor.dot theano.tensor.grad theano.tensor.sqrt theano.tensor.sum theano.tensor.log
    theano.tensor.matrix theano.tensor.nnet.sigmoid theano.tensor.exp theano.tensor.mean
    theano.tensor.concatenate theano.tensor.tanh theano.tensor.arange theano.tensor.nnet.softmax
    theano.tensor.switch theano.tensor.cast theano.tensor.scalar theano.tensor.zeros
    theano.tensor.sqr theano.tensor.argmax theano.tensor.vector theano.tensor.maximum
    theano.tensor.set_subtensor theano.tensor.ivector theano.tensor.max theano.tensor.clip
    theano.tensor.neq theano.tensor.eq theano.tensor.alloc theano.tensor.tensor4
    theano.tensor.zeros_like theano.tensor.tensor3 theano.tensor.iscalar
    theano.tensor.nnet.categorical_crossentropy theano.tensor.nnet.binary_crossentropy
    theano.tensor.as_tensor_variable theano.tensor.imatrix theano.tensor.ones
    theano.tensor.nnet.softplus theano.tensor.reshape theano.tensor.lscalar
    theano.tensor.ones_like theano.tensor.minimum theano.tensor.ge theano.tensor.prod
    theano.tensor.flatten theano.tensor.constant theano.tensor.stack theano.tensor.TensorType
    theano.tensor.abs_ theano.tensor.fmatrix theano.tensor.gt theano.grad
    theano.tensor.inc_subtensor theano.tensor.shape_padleft theano.tensor.repeat
    theano.tensor.unbroadcast theano.tensor.tile theano.tensor.eye theano.clone

    theano.Apply theano.tensor.nnet.relu theano.tensor.lt theano.tensor.isnan theano.tensor.sgn
    theano.printing.Print theano.tensor.addbroadcast theano.tensor.TensorVariable
    theano.tensor.isinf theano.config.device theano.tensor.dmatrix theano.gof.Apply
    theano.tensor.sin theano.tensor.shape_padright theano.tensor.min theano.tensor.or_
    theano.config.compute_test_value theano.printing.debugprint theano.gof.Op theano.tensor.lvector
    theano.tensor.square theano.tensor.tensordot theano.tensor.fvector
    theano.tensor.extra_ops.repeat theano.tensor.round theano.gof theano.tensor.dvector theano.Op
    theano.tensor.ftensor4 theano.tensor.dscalar theano.tensor.ftensor3 theano.tensor.le
    theano.compile.SharedVariable theano.gof.Variable theano.tensor.add theano.tensor.batched_dot
    theano.printing.pydotprint theano.tensor.cos theano.gradient.disconnected_grad theano.tensor.Rop
    theano.Variable theano.tensor.pow theano.tensor.Elemwise theano.tensor.shape
    theano.tensor.transpose theano.compat.python2x.OrderedDict theano.config.mode
    theano.gradient.DisconnectedType theano.tensor.Variable theano.gradient.grad_clip
    theano.tensor.inv theano.tensor.patternbroadcast theano.tensor.cumsum theano.tensor.any
    theano.compile.nanguardmode.NanGuardMode theano.tensor.diag theano.tensor.fscalar
    theano._asarray theano.tensor.floor theano.tensor.extra_ops.to_one_hot theano.tensor.var
    theano.gof.graph.inputs theano.pp theano.printing theano.tensor.as_tensor
    theano.tests.unittest_tools.verify_grad theano.tensor.all theano.tensor.mod
    theano.tensor.lmatrix theano.tensor.erf theano.Mode theano.tensor.batched_tensordot
    theano.tensor.std theano.tensor.mul theano.tensor.nnet theano.tensor.argsort
    theano.tensor.itensor3 theano.tensor.Lop theano.tensor.sort theano.tensor.join
    theano.tensor.extra_ops.cumsum theano.gof.local_optimizer theano.config.optimizer
    theano.__version__ theano.compile.ViewOp theano.tests.unittest_tools.assert_allclose
    theano.tensor.TensorConstant theano.tensor.bmatrix theano.gradient.grad_not_implemented
    theano.tensor.where theano.tensor.arctan2 theano.tensor.identity_like theano.tensor.matrices
    theano.tensor.nnet.bn.batch_normalization theano.tensor.cosh theano.tensor.Apply
    theano.tensor.opt.register_canonicalize theano.gof.graph.Constant theano.compile theano.gradient
    theano.tests.unittest_tools theano.sandbox.cuda theano.gpuarray
    theano.sandbox.cuda.basic_ops.host_from_gpu theano.sandbox.cuda.basic_ops.gpu_contiguous
    theano.sandbox.cuda.theano_allocated theano.sandbox.cuda.use theano.ifelse.ifelse
    theano.tensor.nnet.conv2d theano.tensor.nnet.conv.conv2d theano.tensor.signal.pool.pool_2d
    theano.tensor.signal.downsample.max_pool_2d theano.tensor.nnet.neighbours.images2neibs
    theano.tensor.nnet.neighbours.neibs2images theano.tensor.nnet.conv.ConvOp
    theano.tensor.nnet.conv3d2d.conv3d theano.tensor.nnet.corr.CorrMM
    theano.tensor.nnet.spatialtf.spatialtf theano.sandbox.cuda.dnn.dnn_conv
    theano.sandbox.cuda.dnn.dnn_pool theano.sandbox.cuda.dnn.GpuDnnConvDesc
    theano.sandbox.cuda.dnn.GpuDnnConvGradI theano.sandbox.cuda.basic_ops.gpu_alloc_empty
    theano.sandbox.cuda.blas.GpuCorrMM theano.gpuarray.dnn.dnn_conv theano.d3viz.d3viz
    theano.gof.compilelock.lock_ctx theano.scan_module.scan_utils.map_variables
""".split()

#: of these, what opwise does not have; a name that it gets must move up
LACKING = {
    "theano.sandbox.cuda.CudaNdarrayType": "arrays of a GPU library",
    "theano.gpuarray.dnn.RNNBlock": "recurrent networks of cuDNN",
}


def find(dotted):
    """Return what a dotted name stands for, as a program that imports its module finds it."""
    parts = dotted.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:k]))
        except ImportError:
            continue
        for part in parts[k:]:
            found = getattr(found, part)
        return found
    raise AssertionError(dotted)


@pytest.mark.parametrize("name", USED)
def test_names_that_programs_use(name):
    assert find(name) is not None


@pytest.mark.parametrize("name", LACKING)
def test_names_that_opwise_lacks(name):
    with pytest.raises(MissingFeatureError, match="opwise does not have theano"):
        find(name).use_it()


# --- modules ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(aliases.MADE))
def test_modules_can_be_imported(name):
    module = importlib.import_module(name)
    assert sys.modules[name] is module
    assert module.__name__ == name and module.__doc__
    parent, _, child = name.rpartition(".")
    if parent:
        found = getattr(importlib.import_module(parent), child)
        assert callable(found) if name in aliases.HIDDEN else found is module


@pytest.mark.parametrize("name", list(aliases.MADE))
def test_modules_say_what_they_lack(name):
    module = importlib.import_module(name)
    text = f"opwise has no {name}.no_such_name, nor had Theano"
    with pytest.raises(AttributeError, match=text):
        module.no_such_name  # noqa: B018
    assert not hasattr(module, "__no_such_special_name__")


@pytest.mark.parametrize("name", list(aliases.MADE))
def test_modules_list_what_they_have(name):
    module = importlib.import_module(name)
    listed = dir(module)
    assert listed == list(dict.fromkeys(listed))
    for entry in listed:
        assert getattr(module, entry, module) is not None or entry in vars(module)
    assert not [n for n in module.__all__ if n.startswith("_")]


def test_sources_of_modules_exist():
    for sources in aliases.MADE.values():
        for source in sources:
            importlib.import_module(source)


@pytest.mark.parametrize(
    "statement",
    [
        "import theano, theano.tensor as T; T.dmatrix",
        "import theano.tensor.elemwise as e; e.Sum, e.CAReduce",
        "import theano.tensor.elemwise; theano.tensor.elemwise.Sum",
        "import theano.tensor as T; T.blas.GemmOptimizer, T.nnet.nnet.softmax",
        "import theano; theano.compile.function([], []), theano.tensor.sort",
        "from theano import tensor as T, function, shared, config, Mode, In, Out, pp; T.dot",
        "from theano.tensor.nnet import sigmoid, softmax; from theano.tensor import nnet",
        "from theano.tensor.basic import as_tensor_variable, TensorType",
        "from theano.compile.mode import get_default_mode, Mode",
        "from theano.compile import SharedVariable, FunctionMaker, Mode, In, deep_copy_op",
        "from theano.gof import Op, Apply, Variable, Constant, Type, FunctionGraph",
        "from theano.gof.graph import Variable, inputs",
        "from theano.gof.opt import local_optimizer, EquilibriumOptimizer",
        "from theano.tensor.opt import register_canonicalize",
        "from theano.tensor.elemwise import Elemwise, DimShuffle, Sum, CAReduce",
        "from theano.tensor.subtensor import Subtensor, IncSubtensor, AdvancedSubtensor1",
        "from theano.tensor.var import TensorVariable, TensorConstant",
        "from theano.tensor.sharedvar import TensorSharedVariable",
        "from theano.scalar.basic import UnaryScalarOp, add",
        "from theano.compat import OrderedDict, imap, izip",
        "from theano.compat.six.moves import xrange",
        "from theano.compile.nanguardmode import NanGuardMode",
        "from theano.compile.monitormode import MonitorMode, detect_nan",
        "from theano.compile.profilemode import ProfileMode",
        "from theano.compile.debugmode import DebugMode",
        "from theano.gradient import grad, DisconnectedType, disconnected_grad, verify_grad",
        "from theano.printing import debugprint, pydotprint, Print, pp",
        "from theano.updates import OrderedUpdates",
        "from theano.tests import unittest_tools as utt; utt.seed_rng",
        "from theano.configparser import change_flags",
        "from theano import *; function, shared",
        "from theano.tensor import *; dmatrix, dot",
        "import theano.tensor.nnet as nn; nn.sigmoid",
        "import theano.misc",
    ],
)
def test_statements_of_programs(statement):
    exec(statement, {})


def test_what_is_not_there_is_an_import_error():
    with pytest.raises(ImportError, match="no_such_name"):
        exec("from theano.gof import no_such_name", {})
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        importlib.import_module("theano.no_such_module")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("theano.gof.no_such_module")


# --- the same objects ---------------------------------------------------------------------------


def test_both_packages_give_the_same():
    assert theano.tensor is T and T.dmatrix is opwise.tensor.dmatrix
    assert theano.gradient.grad is opwise.gradient.grad
    assert theano.config is opwise.config
    assert theano.function is opwise.function and theano.Mode is opwise.Mode
    assert theano.gof.Op is opwise.Op and theano.gof.graph.Apply is opwise.Apply
    assert theano.tensor.basic.dot is opwise.tensor.dot
    assert theano.compile.SharedVariable is opwise.SharedVariable
    assert theano.compile.mode.Mode is opwise.Mode


def same(ours, theirs):
    """Return whether two values are the same, or modules of the two packages with one name."""
    if isinstance(ours, ModuleType) and isinstance(theirs, ModuleType) and ours is not theirs:
        package, _, rest = theirs.__name__.partition(".")
        return package == "theano" and ours.__name__ == f"opwise.{rest}".rstrip(".")
    return ours is theirs


def test_every_public_name_of_opwise_is_a_name_of_theano():
    for name in set(opwise.__all__) - {"__version__", "opwise"}:
        assert same(getattr(opwise, name), getattr(theano, name)), name
    for name in set(opwise.printing.__all__) - {"opwise"}:
        assert same(getattr(opwise.printing, name), getattr(theano.printing, name)), name
    for name in T.__all__:
        assert getattr(T, name) is not None


def test_every_name_of_theano_is_a_name_of_opwise():
    """In a process of its own: what other tests import and replace is no difference."""
    here = Path(__file__)
    program = f"""
import {here.stem} as tests
from opwise.names.coverage import modules
for each in modules():
    tests.compare(each)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:opwise", "-c", program],
        cwd=here.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def compare(module):
    """Assert that a module and its names are the same where theano is replaced by opwise."""
    replaced = f"opwise.{module.partition('.')[2]}".rstrip(".")
    try:
        theirs = importlib.import_module(module)
    except ImportError:
        with pytest.raises(ImportError):
            importlib.import_module(replaced)
        return
    ours = importlib.import_module(replaced)
    different = {
        name for name in record.names(module)
        if not same(found(ours, "opwise" if name == "theano" else name), found(theirs, name))
    }  # fmt: skip
    # opwise.tensor.random draws numbers, opwise.numpy is the namespace of the array API
    expected = {"theano.tensor": {"random"}, "theano": {"numpy"}}
    assert different == expected.get(module, set()), module
    bound, genuine = star(replaced), star(module)
    assert {"opwise" if name == "theano" else name for name in genuine} <= bound
    if replaced in front.SHARED:
        assert bound - {"__builtins__"} <= set(dir(ours))


def star(module):
    """Return the names that a star import binds; a package that some need may be missing."""
    bound = {}
    try:
        exec(f"from {module} import *", bound)
    except MissingFeatureError as error:
        return {type(error)}
    return set(bound)


def found(module, name):
    """Return what a module has under a name, or the class of the error."""
    try:
        return getattr(module, name)
    except Exception as error:
        return type(error)


def test_modules_that_have_files_and_names_of_theano():
    """``SHARED`` lists them all."""
    root, found = Path(opwise.__file__).parent, set()
    for module in {*record.modules(), *aliases.MADE}:
        path = root.joinpath(*module.split(".")[1:])
        if path.is_dir() or any(path.with_suffix(s).exists() for s in (".py", ".pyx")):
            found.add(f"opwise.{module.partition('.')[2]}".rstrip("."))
    assert found == front.SHARED


def test_programs_that_never_say_theano_do_not_import_it():
    code = (
        "import opwise, opwise.tensor as T, sys\n"
        "assert 'opwise.names.lookup' not in sys.modules, 'a plain import loads no tables'\n"
        "from opwise.sandbox.rng_mrg import MRG_RandomStreams\n"
        "from opwise.tensor.signal import pool\n"
        "import opwise.gof.graph, opwise.typed_list, opwise.sparse\n"
        "opwise.scan, opwise.ifelse.ifelse, opwise.ProfileStats, opwise.function_dump\n"
        "assert 'theano' not in sys.modules\n"
        "assert type(T.matrix()).__module__.startswith('opwise.tensor')\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_versions():
    assert theano.__version__ == theano.version.version == "1.0.5"
    assert theano.opwise_version == opwise.__version__


def test_modules_are_pickled_by_their_names():
    """As cloudpickle does with the modules that a function reads."""
    for module in (theano, theano.tensor, theano.tensor.nnet, theano.sandbox.rng_mrg):
        assert pickle.loads(pickle.dumps(module)) is module


def test_classes_are_pickled_by_their_own_names():
    x = T.dmatrix("x")
    f = theano.function([x], x * 2, mode="FAST_COMPILE", name="f")
    assert b"\nctheano" not in pickle.dumps(f, protocol=0), "a class is looked up in theano"
    assert pickle.loads(pickle.dumps(theano.gof.Op)) is opwise.Op


def test_a_program_in_its_own_process():
    program = (
        "import theano\n"
        "import theano.tensor as T\n"
        "from theano import function\n"
        "x = T.dscalar('x')\n"
        "y = T.grad(x ** 2, x)\n"
        "assert theano.pp(x) == 'x'\n"
        "print(function([x], y)(4))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False,
        cwd=Path(opwise.__file__).parents[1],
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("8.0\n", "")


# --- small things that programs take ------------------------------------------------------------


def test_asarray(flags):
    flags(floatX="float32")
    assert theano._asarray([1, 2], dtype="floatX").dtype == "float32"
    assert theano._asarray([1, 2], dtype="int8").dtype == "int8"
    value = np.ones(3)
    assert theano._asarray(value, dtype="float64") is value
    assert theano.misc.safe_asarray._asarray is theano._asarray


def test_what_was_for_python_2():
    compat = theano.compat
    assert compat.PY3 and not compat.PY2
    assert list(compat.imap(abs, [-1])) == [1] and list(compat.izip([1], [2])) == [(1, 2)]
    assert list(compat.six.iteritems({1: 2})) == [(1, 2)]
    assert list(compat.six.itervalues({1: 2})) == [2] and list(compat.six.iterkeys({1: 2})) == [1]
    assert isinstance("a", compat.six.string_types) and isinstance(1, compat.six.integer_types)
    assert compat.b("a\xff") == b"a\xff"
    assert list(compat.six.moves.xrange(2)) == [0, 1]
    assert compat.six.moves.cPickle is pickle

    class Meta(type):
        pass

    assert type(compat.six.with_metaclass(Meta, dict)) is Meta

    @compat.six.add_metaclass(Meta)
    class Plain:
        value = 3

    assert type(Plain) is Meta and Plain.value == 3
    with pytest.raises(KeyError):
        compat.six.reraise(KeyError, KeyError("k"))


def test_unittest_tools(flags):
    tools = importlib.import_module("theano.tests.unittest_tools")
    flags({"unittests.rseed": "7"})
    assert tools.fetch_seed() == 7 and tools.fetch_seed(3) == 3
    tools.seed_rng()
    first = np.random.rand()
    assert tools.seed_rng() == 7 and np.random.rand() == first
    flags({"unittests.rseed": "random"})
    assert tools.fetch_seed() is None
    tools.verify_grad(lambda x: T.sqr(x), [np.ones((2, 3))])
    with pytest.raises(AssertionError):
        tools.assert_allclose(1.0, 1.1)
    tools.assert_allclose(np.float32(1), np.float32(1 + 1e-6))


def test_shapes_are_checked_for_users_ops():
    import unittest

    tools = importlib.import_module("theano.tests.unittest_tools")

    class Case(tools.InferShapeTester):
        mode = "FAST_COMPILE"

        def setUp(self):
            self.mode = theano.compile.get_mode(Case.mode)
            super().setUp()

        def test_it(self):
            x = T.dmatrix()
            self.assertIn("canonicalize", self.mode.provided_optimizer.include)
            self._compile_and_check([x], [T.dot(x, x.T)], [np.ones((2, 3))], T.blas.Dot22)

    result = unittest.TestResult()
    Case("test_it").run(result)
    assert result.wasSuccessful(), result.errors + result.failures


def test_printing_is_a_module_of_opwise_too():
    code = "from opwise.printing import Print; import opwise.printing as p; assert p.Print is Print"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("module", ["opwise.graph.variable", "opwise.modes.mode", "opwise.nn"])
def test_modules_that_theano_did_not_have(module):
    """They have no names of Theano beside their own."""
    own = importlib.import_module(module)
    assert type(own) is ModuleType and not hasattr(own, "absolute_import")


def test_misspelled_names_are_answered_with_others():
    with pytest.raises(
        AttributeError, match=r"opwise has no theano.tensr, nor had .*\. Did you mean tensor"
    ):
        theano.tensr  # noqa: B018
    assert not hasattr(theano, "__no_such__") and getattr(theano, "nosuch", 3) == 3
    with pytest.raises(ModuleNotFoundError, match=r"theano\.nosuch"):
        importlib.import_module("theano.nosuch")


def test_a_checkout_that_is_not_built_says_so(tmp_path):
    package = Path(__file__).parents[1] / "opwise"
    no_binaries = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(package, tmp_path / "opwise", ignore=no_binaries)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [sys.executable, "-c", "import opwise"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: The extension of opwise is not built in {tmp_path}")
    assert "pip install -e ." in last and "another folder" in last


def test_c_code_of_types_is_kept():
    from opwise.names import ccode
    from theano.compile import ops

    class Mine(theano.Type):
        """A type of a program."""

    for op in ("view_op", "deep_copy_op", "shape", "shape_i", "rebroadcast", "specify_shape"):
        getattr(ops, f"register_{op}_c_code")(Mine, "%(oname)s = %(iname)s;", version=1)
    assert ccode.registered["ViewOp", Mine] == ("%(oname)s = %(iname)s;", 1)
    assert theano.compile.register_view_op_c_code is ops.register_view_op_c_code


def test_undefined_gradients_have_a_type():
    from theano.gof.null_type import NullType, null_type

    assert null_type == NullType("a reason") == theano.gradient.null_type
    assert null_type().type is null_type


def test_modules_are_those_of_theano_whoever_is_asked_first():
    code = "from theano import sparse; print(sparse.__name__, sparse.shared.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["theano.sparse", "sparse_constructor"], done.stderr


def test_classes_of_variables_say_that_they_are_theanos():
    """Programs look for "theano" in the name of the class, or in its module."""
    import scipy.sparse

    import theano.sparse

    x = T.dmatrix()
    homes = {
        "theano.tensor.var.TensorVariable": x + 1,
        "theano.tensor.var.TensorConstant": T.constant(1.0),
        "theano.tensor.sharedvar.TensorSharedVariable": theano.shared(np.ones(2)),
        "theano.tensor.sharedvar.ScalarSharedVariable": theano.shared(1.0),
        "theano.compile.sharedvalue.SharedVariable": theano.shared("text"),
        "theano.gof.graph.Variable": theano.gof.generic(),
        "theano.scalar.basic.ScalarVariable": theano.scalar.float64(),
        "theano.sparse.basic.SparseVariable": theano.sparse.csr_matrix(),
        "theano.sparse.sharedvar.SparseTensorSharedVariable": theano.shared(
            scipy.sparse.csr_matrix(np.eye(2))
        ),
    }
    for dotted, variable in homes.items():
        cls, (module, _, name) = type(variable), dotted.rpartition(".")
        assert str(cls) == f"<class '{dotted}'>"
        assert getattr(importlib.import_module(module), name) is cls
        assert pickle.loads(pickle.dumps(cls)) is cls

    class Mine(type(x)):
        pass

    assert Mine.__module__ == __name__
