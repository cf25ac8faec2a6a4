"""What ``opwise doctor`` finds in old programs: the parts of the table, their lines, no more."""

import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from opwise.command import main
from opwise.py2 import breakages, convert

pytestmark = pytest.mark.null

FOLDER = Path(__file__).parent


def found(text):
    """Return {line: texts} of the breakages of a module."""
    try:
        parsed = convert.parse_python3(text, "old.py")
    except SyntaxError:
        parsed = convert.parse(text, "old.py")
    lines = {}
    for finding in breakages.find(parsed.tree, parsed.rewritten)[0]:
        lines.setdefault(finding.line, []).append(finding.text)
    return lines


#: a program of one line -> a part of what is reported
FOUND = {
    "import numpy as np; np.bool": "numpy.bool is another type since numpy 2.0: write bool",
    "from numpy import float": "numpy.float is gone from today's numpy: write float",
    "import numpy; numpy.asscalar(x)": "numpy.asscalar is gone from today's numpy: write x.item()",
    "import cPickle": "cPickle is gone since Python 3.0: write pickle",
    "import cPickle as p; p.dump(1, f)": "cPickle is gone",
    "for i in xrange(3): pass": "xrange is gone since Python 3.0: write range",
    "print 'a'": "the print statement is gone since Python 3.0: write print(...)",
    "x[[slice(1), 2]]": "write x[tuple([slice(1), 2])]",
    "i = [slice(None)] * 3; x[i]": "an index that is a list of slices is gone since numpy 1.23",
    "a[[0, slice(None)]]": "write a[tuple([0, slice(None)])]",
    "i = [0]; i.append(slice(None)); a[i]": "write a[tuple(i)]",
    "i = [0, 0]; i[1] = slice(2); a[i]": "write a[tuple(i)]",
    "a[[slice(k) for k in n]]": "an index that is a list of slices",
    "a[[0, None]]": "write a[tuple([0, None])]",
    "a[[[0, 1], [1, 0]]]": "write a[tuple([[0, 1], [1, 0]])]",
    "import numpy as np; a = np.array(x); a == []": "a == [] is an error since numpy 1.25",
    "import numpy as np; a = np.unique(x); b = 1 if a else 2": "write a.size > 0",
    "from numpy import *; import numpy; a = numpy.ones(2); not a": "write a.size > 0",
    "import numpy as np; a = np.ones(2); a != None": "write a is not None",
    "import pylab; pylab.pcolormesh(x, y, c, shading='flat')": "write c[:-1, :-1]",
    "x[n / 2]": "n / 2 is a float in Python 3, and no index or length: write // for /",
    "x[1:n / 2 + 1, 0]": "n / 2 + 1 is a float",
    "x[[i * n / k for i in range(k)]]": "i * n / k is a float",
    "range(0, n / 2)": "n / 2 is a float",
    "import numpy as np; np.zeros((n / 2, 3))": "n / 2 is a float",
    "from scipy.misc import imread": "scipy.misc.imread is gone from today's scipy: write imageio",
    "import scipy.misc as m; m.imresize(x, 2)": "scipy.misc.imresize is gone",
    "import scipy; scipy.misc.toimage(x)": "scipy.misc.toimage is gone",
    "from scipy.misc import lena": "write scipy.datasets.ascent",
    "import scipy; scipy.inner(x, y)": "scipy.inner is gone from today's scipy: write numpy.inner",
    "from scipy import sqrt": "scipy.sqrt is gone from today's scipy: write numpy.emath.sqrt",
    "import numpy.core.umath_tests as u": "numpy.core.umath_tests is gone from today's numpy",
    "from numpy.core.umath_tests import inner1d": "write numpy.einsum or numpy.matmul",
    "import numpy as np; np.MachAr().eps": "numpy.MachAr is gone from today's numpy",
    "import matplotlib as m; m.use('agg', warn=False)": "matplotlib.use(warn=...) is gone",
    "import scipy.weave": "scipy.weave is gone from today's scipy: write a C extension",
    "from scipy.weave import inline": "scipy.weave is gone",
    "import collections; collections.Mapping": "gone since Python 3.10: write collections.abc.Map",
    "import inspect; inspect.getargspec(f)": "inspect.getargspec is gone since Python 3.11: write",
    "import time; time.clock()": "time.clock is gone since Python 3.8: write time.perf_counter",
    "import string; string.letters": "write string.ascii_letters",
    "import imp": "imp is gone since Python 3.12: write importlib",
    "self.assertEquals(1, 1)": ".assertEquals is gone since Python 3.12: write self.assertEqual",
    "import numpy as np; np.random.random_integers(3)": "write numpy.random.randint",
    "import pylab; pylab.hold(True)": "pylab.hold is gone",
    "import matplotlib.pyplot as plt; plt.hist(x, normed=True)": "write density=",
    "axes.set_axis_bgcolor('w')": "write axes.set_facecolor",
    "axes.w_xaxis.set_pane_color(c)": "write axes.xaxis",
    "axes.hold(True)": "axes keep what they show",
    "figure.gca(projection='3d')": "gca takes no arguments since matplotlib 3.7: write add_sub",
    "import matplotlib.pyplot as plt; plt.gca(polar=True)": "gca takes no arguments",
    "from pylab import gca; gca(projection='3d')": "gca takes no arguments",
    "import pickle; pickle.load(f)": "add encoding='latin1'",
    "from cPickle import load; load(f)": "cPickle.load needs an encoding",
    "d.has_key(1)": ".has_key is gone since Python 3.0: write key in d",
    "d.keys()[0]": "d.keys() is no list since Python 3.0: write list(d.keys())",
    "d.items().sort()": "d.items() is no list",
    "map(f, x)[1:]": "map(f, x) is no list",
    "range(3) + range(4)": "range(3) is no list",
    "len(zip(a, b))": "zip(a, b) is no list",
    "import numpy; numpy.array(map(f, x))": "map(f, x) is no list",
    "x.sort(cmp=f)": "write key=functools.cmp_to_key(cmp)",
    "unicode(x)": "unicode is gone",
    "print 7 / 2": "7 / 2 divides integers, and gives a float in Python 3: write // for /",
    "n = len(x); print n / 2": "n / 2 divides integers",
    "n = x.shape[0]\nk = 3\nprint n * k / 2": "n * k / 2 divides integers",
    "n = 9; n /= 2; print n": "n /= 2 divides integers",
    "except_ = 1\ntry: pass\nexcept E, e: pass": "write except E as e",
    "raise E, 'why'": "write raise E(value)",
    "exec 'a' in b": "write exec(code, globals)",
    "`x`": "backticks are gone",
    "a <> b": "write !=",
    "x = 0777": "write 0o777",
    "def f((a, b)): pass": "unpack them in the body",
    "x = [i for i in 1, 2]": "write [x for x in (1, 2)]",
    "print urllib2": "the print statement",
}


@pytest.mark.parametrize("text", FOUND)
def test_what_is_found(text):
    texts = [text for texts in found(text).values() for text in texts]
    assert any(FOUND[text] in one for one in texts), texts


NOT_FOUND = [
    "x = 7 / 2",
    "from __future__ import division\nprint 7 / 2",
    "from __future__ import division\nx[n / 2]",
    "x[n // 2], range(n // 2), x[n / 2.]",
    "def xrange(n): pass\nxrange(3)",
    "reduce = 1\nreduce",
    "from functools import reduce\nreduce(f, x)",
    "from six.moves import xrange\nxrange(3)",
    "import pickle\npickle.load(f, encoding='latin1')\npickle.load(f, **options)",
    "import numpy as np\nnp.bool_, np.float64, np.array(x), np.random.randint(3)",
    "repr(x), thread, commands.run()",
    "sorted(d.keys()), list(map(f, x))[0], range(3)[0], len(d.keys())",
    "x[[1, 2]], x[(slice(1), 2)], x[tuple([slice(1)])]",
    "class A:\n  def bool(self): pass\nA().bool",
    "import string\nstring.ascii_letters, string.digits",
    "print('a', 1)",
    "try:\n  import cPickle as pickle\nexcept ImportError:\n  import pickle\npickle.dump(1, f)",
    "try:\n  xrange\nexcept NameError:\n  xrange = range\nxrange(3)",
    "import sys\nif sys.version_info[0] == 2:\n  text = unicode\nelse:\n  text = str",
    "import matplotlib\nmatplotlib.use('agg')",
    "import scipy\nscipy.linalg.inv(x), scipy.sparse.eye(3)",
    "import time\ntime.clock = time.perf_counter\ntime.clock()",
    "import six\nif six.PY2:\n  import urllib2\n  urllib2.urlopen(x)",
]


@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_is_no_breakage(text):
    texts = [one for texts in found(text).values() for one in texts if "print state" not in one]
    assert not texts


def test_what_is_guarded_elsewhere_counts():
    text = "try:\n  import cPickle\nexcept KeyError:\n  pass\ntry:\n  x = 1\nexcept: xrange(3)\n"
    assert list(found(text)) == [2]


def test_lines_are_those_of_the_text():
    lines = found("# 1\nimport numpy as np\nprint 'a', \\\n  np.bool\nif 1:\n\tx = `np.int`\n")
    assert [(line, len(texts)) for line, texts in lines.items()] == [(3, 1), (4, 1), (6, 2)]


def doctor(*paths):
    return CliRunner().invoke(main.main, ["doctor", *map(str, paths)])


def test_doctor_of_an_old_program():
    path = FOLDER / "old" / "kmeans.py"
    result = doctor(path)
    lines = result.output.splitlines()
    assert result.exit_code == 1
    assert any(line.startswith(f"{path} is Python 2: ") for line in lines)
    assert f"  {path}:34: xrange is gone since Python 3.0: write range" in lines
    (printed,) = [line for line in lines if "the print statement" in line]
    assert printed.startswith(f"  {path}:36: ") and printed.endswith("(also in line 46, 48)")
    assert lines[-1] == f"  to run it without a change: opwise run --py2 {path}"


def test_doctor_of_a_program_for_python_3(tmp_path):
    path = tmp_path / "new.py"
    path.write_text("import numpy as np\nx = np.float(3) / 2\nprint('a', x)\n")
    result = doctor(path)
    assert result.exit_code == 1 and "Python 2" not in result.output
    assert f"{path}: 0 names of theano, 0 missing, 1 that Python or libraries" in result.output
    assert f"  {path}:2: numpy.float is gone from today's numpy: write float\n" in result.output
    path.write_text("import numpy as np\nx = float(3) / 2\nprint('a', x)\n")
    assert doctor(path).exit_code == 0


def test_the_programs_for_python_3_have_none():
    result = doctor(*(FOLDER / "new").rglob("*.py"))
    others = [line for line in result.output.splitlines() if line.startswith("  ")]
    assert [line.rpartition(": ")[2] for line in others] == [
        "add encoding='latin1' (also in line 136)",
    ]
    assert result.exit_code == 0


#: lines that are right on Python 3 for some values -> the note about them; "" for none
NOTED = {
    "import pickle\nx = pickle.loads(pickle.dumps(1))\n": "",
    "import pickle\nx = pickle.load(open('f', 'rb'))\n": "for files of Python 2",
    "try: f()\nexcept OSError as e: print(e.message)\n": "write str(error)",
    "node = node.next\n": "write next(iterator)",
    "import theano.tensor as T\nT.dvector().ptp()\n": "write numpy.ptp(x)",
    "class N:\n  def __init__(self): self.next = None\nN().next\n": "",
    "class N:\n  message: str\nN().message\n": "",
    "class D:\n  def has_key(self, k): pass\nD().has_key(1)\n": "",
}


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("from helper import D\nfor k in D().iteritems(): k\n", {"helper.py": "ITERITEMS"}),
        ("import helper as h\nh.make().iteritems()\n",
         {"helper.py": "from kept import D as make", "kept.py": "ITERITEMS"}),
        ("from lib.dicts import D\nD().iteritems()\n",
         {"lib/__init__.py": "", "lib/dicts.py": "ITERITEMS"}),
        ("from lib import dicts\ndicts.D().iteritems()\n", {"lib/dicts.py": "ITERITEMS"}),
        ("import lib.dicts\nlib.dicts.D().iteritems()\n",
         {"lib/dicts.py": "from .more import D", "lib/more.py": "from lib import below",
          "lib/__init__.py": "", "lib/below.py": "ITERITEMS"}),
        ("class D:\n  def items(self): pass\n  iteritems = items\nD().iteritems()\n", {}),
    ],
)  # fmt: skip
def test_attributes_of_the_programs_own_classes_are_its_own(text, files, tmp_path):
    path = tmp_path / "new.py"
    path.write_text(text)
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        own = "class D:\n  def iteritems(self): pass\n"
        (tmp_path / name).write_text(content.replace("ITERITEMS", own))
    result = doctor(path)
    assert result.exit_code == 0 and "iteritems" not in result.output, result.output
    for name in files:
        (tmp_path / name).write_text("import new, nothing\n")
    if files:
        result = doctor(path)
        assert result.exit_code == 1 and ".iteritems is gone" in result.output


@pytest.mark.parametrize("text", NOTED)
def test_what_may_be_right_is_no_error(text, tmp_path):
    path = tmp_path / "new.py"
    path.write_text(text)
    result = doctor(path)
    assert result.exit_code == 0, result.output
    lines = [line for line in result.output.splitlines() if line.startswith("  ")]
    assert all(": note: " in line and NOTED[text] in line for line in lines)
    assert len(lines) == bool(NOTED[text])


def test_a_program_for_python_2_is_certain(tmp_path):
    path = tmp_path / "old.py"
    path.write_text("import cPickle\nx = cPickle.loads(s)\nprint x.next()\n")
    result = doctor(path)
    assert result.exit_code == 1 and "note:" not in result.output
    assert "cPickle.loads needs an encoding" in result.output and ".next is gone" in result.output


def test_the_snippets_of_the_documents_lack_nothing(tmp_path):
    """Those for Python 2, and those of notebooks, are marked by what they begin with."""
    root = FOLDER.parents[1]
    for page in [root / "README.md", *(root / "docs").rglob("*.md")]:
        for k, text in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.S)):
            if "print " not in text and not text.startswith("%"):
                (tmp_path / f"{page.stem}{k}.py").write_text(text)
    result = doctor(tmp_path)
    assert result.exit_code == 0, result.output
    assert len(list(tmp_path.iterdir())) > 20


def test_doctor_without_the_converter(tmp_path, monkeypatch):
    path = tmp_path / "old.py"
    path.write_text("print 'a'")
    monkeypatch.setattr(convert, "is_available", lambda: False)
    result = doctor(path)
    assert result.exit_code == 1
    assert "is not Python: " in result.output and "pip install 'opwise[py2]'" in result.output


@pytest.mark.parametrize("command", ["run", "tune", "versus"])
def test_commands_without_the_converter(tmp_path, monkeypatch, command):
    path = tmp_path / "old.py"
    path.write_text("print 'a'")
    monkeypatch.setattr(convert, "is_available", lambda: False)
    result = CliRunner().invoke(main.main, [command, "--py2", str(path)])
    assert result.exit_code == 1
    assert result.output == "Error: --py2 needs the package fissix: pip install 'opwise[py2]'\n"


def test_every_row_says_what_to_write():
    for old in [*breakages.NAMES.values(), *breakages.METHODS.values()]:
        assert old.new and old.since.split()[0] in ("gone", "another", "for"), old
        assert old.given != old.name


def test_this_python_is_one_that_the_converter_knows():
    assert convert.is_available() and sys.version_info >= (3, 11)


def test_doctor_follows_the_modules_beside_a_program(tmp_path):
    """Each is reported once, under its own lines, and the program is what to run."""
    texts = {
        "main.py": "import first, package.inner.deep, numpy\nfrom package import second\n",
        "first.py": "import main, package.second\nprint 1\n",
        "package/__init__.py": "",
        "package/second.py": "import third\nfrom .third import *\nxrange(3)\n",
        "package/third.py": "import theano.tensor as T\nT.no_such\n",
        "package/inner/deep.py": "from ..third import x\nfrom . import broken\n",
        "package/inner/broken.py": "def f(:\n",
        "unused.py": "print 2\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    done = CliRunner().invoke(main.main, ["doctor", str(tmp_path / "main.py")])
    lines = [line.strip() for line in done.output.splitlines() if str(tmp_path) in line]
    assert [line.replace(f"{tmp_path}/", "").partition(": ")[0] for line in lines] == [
        "main.py", "first.py is Python 2", "first.py:2", "to run it without a change",
        "package/second.py is Python 2", "package/second.py:3", "to run it without a change",
        "package/third.py", "package/third.py:2", "package/inner/broken.py is not Python",
    ]  # fmt: skip
    assert done.exit_code == 1
    assert {line for line in lines if line.startswith("to run")} == {
        f"to run it without a change: opwise run --py2 {tmp_path}/main.py"
    }
