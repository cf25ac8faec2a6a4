"""Programs for an earlier Python 3: they get what has gone, and keep the meaning of Python 3."""

import os
import pickle
import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest
from click.testing import CliRunner

import theano.tensor as T
from opwise.command.doctor import doctor as doctor_command
from opwise.py2 import breakages, convert, hook

pytestmark = pytest.mark.null


def value(program):
    """Execute a module for an earlier Python 3, and return its name ``r``."""
    names = {"np": np, "T": T, "__name__": "old"}
    code = convert.compiled(textwrap.dedent(program), "old.py", python=3)
    hook.execute(code, names, python=3)
    return names["r"]


GIVEN = {
    "r = np.float, np.bool, np.product([2, 3])": (float, bool, 6),
    "from scipy.misc import logsumexp; r = logsumexp([0.0])": 0.0,
    "from fractions import gcd; r = gcd(4, 6)": 2,
    "import collections; r = isinstance({}, collections.Mapping)": True,
    "import inspect; r = inspect.getargspec(lambda a: a).args": ["a"],
    "from numpy import *; r = product([2, 3]), max(1, 2)": (6, 2),
    "import numpy.core.umath_tests as u; r = callable(u.inner1d)": True,
    "r = np.eye(2)[[slice(None), 1]].tolist()": [0.0, 1.0],
    "r = '%f' % np.array([1.5]), float(np.array([2]))": ("1.500000", 2.0),
    "r = np.arange(2).tostring() == np.arange(2).tobytes()": True,
    "r = np.copy([[1, 2], [3]]).shape, np.asanyarray([[1], [2, 3]]).dtype == object": ((2,), True),
    "r = [key.decode('utf8') for key in ('a', b'b')]": ["a", "b"],
}


@pytest.mark.parametrize("python", [2, 3])
def test_axes_of_matplotlib(python):
    pytest.importorskip("matplotlib").use("Agg")
    text = """
        from matplotlib.figure import Figure
        import matplotlib.pyplot as plt
        f = Figure()
        a = f.gca(projection='3d')
        a.hold(True)
        flat = Figure()
        r = a.name, f.gca(projection='3d') is a, f.gca() is a, a.w_zaxis is a.zaxis, a.ishold(), \\
            flat.gca(projection='polar') is flat.axes[0], plt.gca(polar=True).name
        plt.close()
    """
    names = {"__name__": "old"}
    code = convert.compiled(textwrap.dedent(text), "old.py", python=python)
    hook.execute(code, names, python=python)
    assert names["r"] == ("3d", True, True, True, True, True, "polar")


@pytest.mark.parametrize("python", [2, 3])
def test_meshes_have_as_many_corners_as_cells(python):
    """The last row and column of cells are left out, as matplotlib did until 3.5."""
    pytest.importorskip("matplotlib").use("Agg")
    text = """
        import matplotlib.pyplot as plt, numpy as np, pylab
        from pylab import pcolormesh
        x, y = np.meshgrid(np.arange(4), np.arange(3))
        c = np.arange(12.).reshape(3, 4)
        axes = plt.gca()
        r = [f(*args, **options).get_array().ravel().tolist()
             for f in (plt.pcolormesh, pylab.pcolormesh, pcolormesh, plt.pcolor, axes.pcolormesh,
                       axes.pcolor)
             for args in ((x, y, c), (x[0], y[:, 0], c), (x, y, c[:2, :3]))
             for options in ({}, {'shading': 'flat'})]
        n = [f.get_array().size for f in (pcolormesh(x, y, c, shading='nearest'), pcolormesh(c))]
        plt.close()
    """
    names = {"__name__": "old"}
    code = convert.compiled(textwrap.dedent(text), "old.py", python=python)
    hook.execute(code, names, python=python)
    assert names["r"] == [[0, 1, 2, 4, 5, 6]] * 36
    assert names["n"] == [12, 12]


@pytest.mark.filterwarnings("ignore:tostring:DeprecationWarning")  # where numpy still has it
@pytest.mark.parametrize("program", GIVEN)
def test_what_has_gone_since_is_there(program):
    assert value(program) == GIVEN[program]


SIZES = {
    "np.zeros((2, np.sqrt(9.0)))": (2, 3),
    "np.ones(shape=2.0, dtype='float32')": (2,),
    "np.tile(np.arange(2), (2.0, 1))": (2, 2),
    "np.eye(2.9)": (2, 2),
    "np.linspace(0.5, 1.5, 4.0)": (4,),
    "np.random.randn(2.0, 3)": (2, 3),
    "np.random.uniform(0.5, 1.5, (np.float32(2.0),))": (2,),
    "np.random.RandomState(1).uniform(low=-1.5, high=1.5, size=(3, np.ceil(1.5)))": (3, 2),
    "np.random.RandomState(1).binomial(n=1, p=0.5, size=[2.0])": (2,),
}


@pytest.mark.parametrize("program", SIZES)
def test_lengths_may_be_floats(program):
    assert value(f"r = {program}").shape == SIZES[program]


def test_functions_with_lengths_are_numpys():
    draw = "np.random.RandomState(1).uniform(0.5)"
    assert value(f"r = {draw}") == np.random.RandomState(1).uniform(0.5)
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        value("r = np.zeros('a')")
    with pytest.raises(TypeError):
        value("r = np.zeros(None, size=1)")
    again = pickle.loads(pickle.dumps(value("r = np.ones, np.random.RandomState(1).normal")))
    assert again[0](2.0).tolist() == [1, 1] and again[1](size=(1.0, 2)).shape == (1, 2)
    assert again[0].__name__ == "ones" and again[0].__doc__ == np.ones.__doc__


def test_datasets_of_a_file_have_a_value():
    class Dataset:
        __module__ = "h5py._hl.dataset"

        def __getitem__(self, index):
            return np.arange(3)[index]

    class Parameter:
        value = "its own"

    program = "def values(*given): return [x.value for x in given]\nr = values"
    values = value(program)
    assert [str(x) for x in values(Dataset(), Parameter())] == ["[0 1 2]", "its own"]
    with pytest.raises(AttributeError, match="'list' object has no attribute 'value'"):
        values([])


KEPT = {
    "r = 7 / 2, 7 // 2, np.arange(3)[1] / 2": (3.5, 3, 0.5),
    "import math; r = math.floor(2.5), type(math.floor(2.5))": (2, int),
    "r = type(range(2)), type(map(abs, [])), round(2.5)": (range, map, 2),
    "r = hasattr({}, 'has_key'), type({}.keys()).__name__": (False, "dict_keys"),
    "r = 'a'.encode(), b'a'.decode()": (b"a", "a"),
    """
    import subprocess
    r = subprocess.check_output(["echo", "a"]).decode()
    """: "a\n",
    """
    try:
        import cPickle
    except ImportError:
        r = "Python 3"
    """: "Python 3",
    """
    try:
        unicode
    except NameError:
        r = "Python 3"
    """: "Python 3",
    """
    try:
        1 / 0
    except ZeroDivisionError as e:
        pass
    r = "e" in globals()
    """: False,
    "r = [x for x in (1, 2)], 'x' in globals()": ([1, 2], False),
}


@pytest.mark.parametrize("program", KEPT)
def test_everything_else_means_what_it_does_in_python_3(program):
    assert value(program) == KEPT[program]


def test_symbolic_integers_are_divided_to_floats():
    assert value("r = T.iscalar() / 2").type.dtype.startswith("float")


def test_what_no_python_3_had_is_missing():
    with pytest.raises(ModuleNotFoundError, match="urllib2"):
        value("import urllib2")
    with pytest.raises(AttributeError):
        value("import sys; r = sys.maxint")


def test_a_program_for_python_2_is_no_python_3():
    with pytest.raises(SyntaxError):
        value("print 'a'")


def test_names_that_are_meant_otherwise_are_in_the_table():
    assert set(breakages.CHANGED_SINCE) <= set(breakages.CHANGED)


# --- the commands ---------------------------------------------------------------------------------

MAIN = """\
import numpy as np
import theano, theano.tensor as T
from beside import half

x = T.vector("x", dtype="float64")
print(theano.function([x], half(x))(np.ones(2, np.float)), 7 / 2)
"""
BESIDE = "import numpy as np\n\n\ndef half(x):\n    return x / np.float(2)\n"


@pytest.fixture
def program(tmp_path, monkeypatch):
    (tmp_path / "main.py").write_text(MAIN)
    (tmp_path / "beside.py").write_text(BESIDE)
    monkeypatch.chdir(tmp_path)
    return "main.py"


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, env=os.environ
    )


def test_a_program_and_its_modules_run(program):
    plain = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert plain.returncode and "np.float" in plain.stderr  # numpy of today has none
    for words in (("opwise", "run", "--no-limits", "--py3"), ("opwise.py2", "--py3")):
        done = run(*words, program)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("[0.5 0.5] 3.5\n")
    assert run("opwise.py2", "--py3", "-m", "main").stdout.startswith("[0.5 0.5] 3.5\n")


def test_a_program_is_for_one_python(program):
    done = run("opwise", "run", "--py2", "--py3", program)
    assert done.returncode == 2 and "give --py2 or --py3" in done.stderr


@pytest.mark.parametrize("words", [(), ("--help",), ("--py3",), ("-m",)])
def test_without_a_program_the_usage_is_told(words):
    done = run("opwise.py2", *words)
    assert done.returncode == 1
    assert done.stderr == "which program? python -m opwise.py2 [--py3] [-m] PROGRAM ARGS\n"


def test_doctor_names_the_option(program):
    result = CliRunner().invoke(doctor_command, [program])
    assert "to run it without a change: opwise run --py3 main.py" in result.output


@pytest.mark.parametrize(
    "line", ["np.tostring(x)", "x[7 / 2]", "plt.hist(x, normed=True)", "import numpy.oldnumeric"]
)
def test_doctor_names_no_option_that_is_not_enough(tmp_path, line):
    path = tmp_path / "old.py"
    path.write_text(f"import numpy as np\nx = np.float(1)\n{line}\n")
    result = CliRunner().invoke(doctor_command, [str(path)])
    assert result.exit_code == 1 and f"{path}:3: " in result.output
    assert "opwise run" not in result.output


def test_code_of_both_has_its_own_builtins():
    """A converted module looks names up in the builtins of its Python."""
    two, three = types.ModuleType("two"), types.ModuleType("three")
    hook.execute(convert.compiled("r = 7 / 2", "two.py"), vars(two))
    hook.execute(convert.compiled("r = 7 / 2", "three.py", python=3), vars(three), python=3)
    assert (two.r, three.r) == (3, 3.5)
