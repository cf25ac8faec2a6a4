"""Whole programs in the style of 2010 to 2018, under ``opwise run``, and with ``--py2``.

``old`` has the programs, and ``recorded`` what each printed with genuine Theano 1.0.5: those for
Python 2 under Python 2.7 and numpy 1.16, those for Python 3 under Python 3.7 and numpy 1.19. Of
some, ``new`` has the same program written by hand for the Python of today. To record one::

    pythonX.Y -m pip install Theano==1.0.5 parameterized nose
    pythonX.Y tests/py2/old/NAME.py > tests/py2/recorded/NAME.txt
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opwise.config import config
from opwise.profiling.profile import Profile
from opwise.py2 import converted, hook

FOLDER = Path(__file__).parent
#: programs for Python 2
PROGRAMS = [
    "classes.py", "convnet_classic.py", "curvature.py", "inspection.py", "kmeans.py",
    "logistic_sgd.py", "lstm_masks.py", "mlp.train", "negative_sampling.py", "own_ops.py",
    "profiled.py", "rbm_gibbs.py", "recurrences.py", "stacked_da.py",
]  # fmt: skip
#: programs for Python 3
SINCE_2015 = ["gaussian_process.py", "options.py", "sparse_lazy.py"]
#: those that ``new`` has, too
RENEWED = ["classes.py", "kmeans.py", "logistic_sgd.py", "mlp.train"]

#: program -> [(part of what was recorded, what opwise prints instead, why)]
DIFFERENCES = {
    "own_ops.py": [
        ("\nAttributeError \n", "\nGradNotDefined \n", "of an Op without grad"),
    ],
}


def run(folder, name, *command, **environment):
    """Run a program of a folder in the current one; return (its stdout, its stderr)."""
    words = [str(FOLDER / folder / name)] if name.endswith(".py") else ["-m", name]
    path = os.pathsep.join([str(FOLDER / folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *command, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run_converted(text):
    """Run a program for Python 2, which is written into the working directory."""
    Path("program.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "opwise.py2", "program.py"], capture_output=True, text=True
    )


def recorded(name):
    """Return what a program has to print."""
    text = (FOLDER / "recorded" / f"{name.partition('.')[0]}.txt").read_text()
    for theirs, ours, why in DIFFERENCES.get(name, []):
        assert text.count(theirs) == 1 and why
        text = text.replace(theirs, ours)
    return text


@pytest.mark.parametrize("name", RENEWED)
def test_programs_written_anew_print_the_same(name):
    assert run("new", name)[0] == recorded(name)


@pytest.mark.parametrize("name", PROGRAMS + SINCE_2015)
def test_old_programs_print_what_they_printed(name):
    command = ["-m", "opwise", "run", "--no-limits", "-o", "own.json"]
    command += ["--py2"] * (name in PROGRAMS)
    printed, _ = run("old", name, *command)
    assert printed == recorded(name)
    sources = {}
    for function in Profile.load("own.json").functions:
        for apply in function.applys:
            for path, number, *_ in apply.lines:
                sources.setdefault(Path(path).name, set()).add(number)
    assert sources and all(sources.values())


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "DEBUG_MODE"])
def test_old_programs_run_in_every_mode(mode):
    flags = f"mode={mode},DebugMode.check_strides=0"
    printed, _ = run("old", "kmeans.py", "-m", "opwise.py2", OPWISE_FLAGS=flags)
    assert printed == recorded("kmeans.py")


def test_profiles_have_the_lines_of_the_old_text():
    run("old", "logistic_sgd.py", "-m", "opwise", "run", "--no-limits", "--py2", "-o", "own.json")
    (train,) = (f for f in Profile.load("own.json").functions if f.name == "train_model")
    text = (FOLDER / "old" / "logistic_sgd.py").read_text("latin-1").splitlines()
    lines = {text[line - 1].strip() for a in train.applys for _, line, *_ in a.lines}
    assert "self.p_y_given_x = T.nnet.softmax(T.dot(input, self.W) + self.b)" in lines
    assert "g_W, g_b = T.grad(cost=cost, wrt=[classifier.W, classifier.b])" in lines


def test_nothing_is_written_beside_the_sources():
    run("old", "mlp.train", "-m", "opwise.py2", PYTHONDONTWRITEBYTECODE="")
    assert not (FOLDER / "old" / "mlp" / "__pycache__").exists()


@pytest.mark.parametrize("put", ["own", "own/program"])
def test_a_program_below_an_editable_install_is_the_users(put, tmp_path):
    finder = hook._Finder()
    finder.installed = {tmp_path, tmp_path / "own" / "site-packages"}
    finder.given = {tmp_path / "own"}
    for folder in (tmp_path, tmp_path / put, tmp_path / "own" / "site-packages"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "layers.py").write_text("")
    assert finder.find_spec("layers", [str(tmp_path / put)]) is not None
    assert finder.find_spec("layers", [str(tmp_path)]) is None
    assert finder.find_spec("layers", [str(tmp_path / "own" / "site-packages")]) is None


# --- imports --------------------------------------------------------------------------------------

FAILS = "import numpy as np\n\nnp.no_such_name\n"


@pytest.mark.parametrize("python", ["--py2", "--py3"])
@pytest.mark.parametrize("line", ["import fails", "from fails import x", "from fails import *"])
def test_an_attribute_error_of_an_imported_module_is_no_import_error(tmp_path, python, line):
    (tmp_path / "fails.py").write_text(FAILS)
    text = f"try:\n    {line}\nexcept ImportError:\n    pass\n"
    (tmp_path / "program.py").write_text(text)
    words = ["-m", "opwise", "run", "--no-limits", python, "program.py"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    assert done.returncode == 1 and 'fails.py", line 3, in <module>' in done.stderr
    assert "AttributeError: module 'numpy' has no attribute 'no_such_name'" in done.stderr


def test_a_name_of_the_table_that_is_missing_has_its_cause():
    done = run_converted(
        "try:\n    from numpy import no_such\n"
        "except ImportError:\n    print 'none'\n"
        "from numpy.oldnumeric import x\n"
    )
    assert done.returncode == 1 and done.stdout == "none\n"
    assert "The above exception was the direct cause" in done.stderr
    assert "ImportError: numpy.oldnumeric is gone" in done.stderr


def test_pytest_runs_tests_for_python_2(tmp_path):
    (tmp_path / "beside.py").write_text("def half(n):\n    return n / 2\n")
    (tmp_path / "conftest.py").write_text("print 'conftest'\nname = u'x'\n")
    (tmp_path / "test_old.py").write_text(
        "from beside import half\n\n\n"
        "def test_right():\n    print 'text'\n    assert half(7) == 3\n"
        "\n\ndef test_wrong():\n    assert 7 / 2 == 3.5, 'floor'\n"
    )
    words = [
        "-m",
        "opwise",
        "run",
        "--no-limits",
        "--py2",
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "AssertionError: floor" in done.stdout and "assert 7 / 2 == 3.5" in done.stdout


# --- bytes and text -------------------------------------------------------------------------------

LINES = """
import bz2, gzip, pickle, cPickle, sys
import numpy as np
from gzip import GzipFile

for number, write in enumerate([gzip.open, bz2.BZ2File, open, GzipFile]):
    path = 'file%d' % number
    f = write(path, 'wb')
    f.write('cat 1\\ndog 2\\n')
    f.writelines(['\\xc3\\xa9 3\\n'])
    f.close()
    read = gzip.open if write is GzipFile else write
    print 'cat' in [line.split()[0] for line in read(path, 'rb')], \\
        read(path).readline() == 'cat 1\\n', read(path).readlines()[1] == 'dog 2\\n', \\
        np.loadtxt(read(path, 'rb'), usecols=1).tolist(), type(read(path, 'rb').read(3)).__name__
    f = write(path, 'wb')
    pickle.dump({'cat': np.arange(3)}, f, 0)
    f.close()
    f = read(path, 'rb')
    print cPickle.load(f)['cat'].sum(), f.readline() == ''
"""


def test_lines_of_files_are_text_for_the_program_alone(tmp_path):
    (tmp_path / "program.py").write_text(LINES)
    words = ["-m", "opwise", "run", "--no-limits", "--py2", "program.py"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    assert done.stdout == 4 * "True True True [1.0, 2.0, 3.0] ByteString\n3 True\n", done.stderr


READ = """
import base64, binascii, os, pickle, re, socket, StringIO, struct, tarfile, urllib, urllib2, zipfile
import zlib
import numpy as np

text = 'cat 1\\ndog \xc3\xa9\\n'
open('file', 'wb').write(text)
z = zipfile.ZipFile('file.zip', 'w')
z.writestr('inner', text)
z.close()
z = zipfile.ZipFile('file.zip')
t = tarfile.open('file.tgz', 'w:gz')
info = tarfile.TarInfo('inner')
info.size = os.path.getsize('file')
t.addfile(info, StringIO.StringIO(text))
t.close()
url = 'file://' + os.path.abspath('file')
one, other = socket.socketpair()

def received():
    one.sendall(text)
    return other.recv(99)

def lines_received():
    one.sendall(text)
    f = other.makefile()
    return f.readline() + f.readline()

for read in [
    lambda: open('file', 'rb').read(), lambda: z.read('inner'), lambda: z.open('inner').read(),
    lambda: ''.join(z.open('inner')), lambda: tarfile.open('file.tgz').extractfile('inner').read(),
    lambda: ''.join(tarfile.open('file.tgz').extractfile('inner').readlines()),
    lambda: urllib2.urlopen(url).read(), lambda: urllib.urlopen(url).read(), received,
    lines_received, lambda: os.popen('cat file').read(),
    lambda: zlib.decompress(zlib.compress(text)), lambda: base64.b64decode(base64.b64encode(text)),
    lambda: binascii.unhexlify(binascii.hexlify(text)),
    lambda: StringIO.StringIO(open('file', 'rb').read()).read(),
]:
    data = read()
    assert data == text and text == data and not data != text and isinstance(data, basestring)
    assert data.split('\\n')[0] == 'cat 1' and 'dog' in data and data.find('dog') == 6
    assert data[0] == 'c' and data[:3] == 'cat' and [c for c in data][2] == 't'
    assert data.strip().replace('cat', 'dog').startswith('dog') and {'cat': 7}[data[:3]] == 7
    assert data + '!' == text + '!' and '%s|%5s' % (data, data[:3]) == text + '|  cat'
    assert '!' + data[:3] * 2 == '!catcat' and data[:3] < 'dog' and ord(data[0]) == 99
    assert re.findall('[a-z]+', data)[1] == 'dog' and float(data[4:5]) == 1
    assert re.sub('cat', 'x', data)[:1] == 'x' and data[:3].upper() == 'CAT'
    open('copy', 'w').write(data)
    assert open('copy').read() == text

data = open('file', 'rb').read()
assert struct.unpack('>h2s', data[:4]) == (25441, 't ') and struct.pack('2sB', 'ab', 7)[:2] == 'ab'
assert np.frombuffer(data, 'uint8')[0] == 99 and np.fromstring(data[:2], 'uint8').sum() == 196
assert type(pickle.loads(pickle.dumps(data, 2))).__name__ == 'bytes'
print data[:5], repr(data[:3]), data[:3].encode('hex')
"""


def test_bytes_that_are_read_meet_text():
    done = run_converted(READ)
    assert (done.stdout, done.stderr) == ("cat 1 'cat' 636174\n", "")


def test_comparisons_of_bytes_with_text_warn_with_their_line(tmp_path):
    (tmp_path / "beside.py").write_text("def has(words):\n    return 'cat' in words\n")
    (tmp_path / "program.py").write_text(
        "import zlib, beside\n"
        "data = bytes(zlib.decompress(zlib.compress(b'cat dog')))\n"
        "for k in range(2):\n"
        "    print beside.has(data.split()), {data[:3]: 1}.get('cat'), data[4:] == 'dog'\n"
    )
    words = ["-m", "opwise", "run", "--no-limits", "--py2", "program.py"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    assert done.stdout == "False None True\n" * 2
    warned = [line for line in done.stderr.splitlines() if "BytesWarning" in line]
    assert len(warned) == 2 and "beside.py:2: BytesWarning: Comparison between bytes" in warned[0]
    assert "program.py:4: BytesWarning" in warned[1]


# --- what is printed ------------------------------------------------------------------------------

PRINTS = """
import sys, StringIO, cPickle
import numpy as np

class Rate(float):
    pass

print 0.1 + 0.2, [0.1 + 0.2], 1e16, 1e11, 1e10, -3.0, 1e-5, 1j / 3, 1.5 - 2j / 3, (0.1 + 0.2, 'a')
print '%s %r %.3f %d %5s|' % (0.1 + 0.2, 0.1 + 0.2, 2/3., 2.7, 1/3.), '%(a)s' % {'a': 1/3.}
print '{} {:.3f} {x}'.format(1/3., 2/3., x=1/3.), str(1/3.), unicode(1/3.), `1/3.`, '%s' % (1/3.)
print map(str, [1/3., 2]), Rate(1/3.), str(Rate(1/3.)), 123456789012., 99999999999.95, str(1e22)
print (np.float64(1.5), np.int64(3)), [np.float32(.1)], np.float64(.1) + .2
print 'a',
print 'b', 'c\\n', 'd', 'e\\t', 'f',
print
print 'a',
sys.stdout.write('b\\n')
print 'c\\n',
print 'd',
print >> sys.stderr, 'error',
print >> sys.stderr
f = StringIO.StringIO()
print >> f, 'g',
print >> f, 'h', 1/3.
print >> f, 'i',
f.write('j')
print repr(f.getvalue())
f = StringIO.StringIO('line\\nother')
print f.read(4), [line for line in f]
f = StringIO.StringIO()
f.write('ab')
cPickle.dump({'a': 1}, f, 2)
f.seek(2)
print cPickle.load(f), f.getvalue()[:2] == 'ab', len(f.getvalue()) > 9
for i in range(3):
    print i,
"""
PRINTED = """\
0.3 [0.30000000000000004] 1e+16 1e+11 10000000000.0 -3.0 1e-05 0.333333333333j \
(1.5-0.666666666667j) (0.30000000000000004, 'a')
0.3 0.30000000000000004 0.667 2 0.333333333333| 0.333333333333
0.333333333333 0.667 0.333333333333 0.333333333333 0.333333333333 0.3333333333333333 0.333333333333
['0.333333333333', '2'] 0.333333333333 0.333333333333 1.23456789012e+11 99999999999.9 1e+22
(1.5, 3) [0.1] 0.30000000000000004
a b c
d e	f
ab
c
d 'g h 0.333333333333\\nij'
line ['\\n', 'other']
{'a': 1} True True
0 1 2
"""


def test_print_writes_what_python_2_wrote():
    """PRINTED was written by Python 2.7 and numpy 1.16."""
    done = run_converted(PRINTS)
    assert (done.stdout, done.stderr) == (PRINTED, "error\n")


FUNCTION = """
from __future__ import print_function
print('a', 'b\\n', 1/3., end=' ')
print('c', sep='')
"""


def test_the_function_print_writes_its_end_at_once():
    done = run_converted(FUNCTION)
    assert (done.stdout, done.stderr) == ("a b\n 0.333333333333 c\n", "")


# --- order ----------------------------------------------------------------------------------------

ORDERS = """
import datetime
class A(object):
    pass
class B:
    def __init__(self, n):
        self.n = n
    def __cmp__(self, other):
        return cmp(self.n, other.n)
class C(object):
    def __lt__(self, other):
        raise TypeError('own')
best = None
for loss in (3., 1.):
    if best < loss:
        best = loss
print best, None < -1e300, None > 0, 0 < None < 3, 'a' > 1e9, [] > 10, () > 'z', (1,) > [2], {} < []
print 1 <= 'a' <= (1,), float('nan') < None, set([1]) < 3, set([1]) < set([1, 2])
print sorted(['b', None, 2, (1,), [3], 1.5, {}, 'a', True, -1, (None,)])
x = [('a', 2), (None, 1), (1, 3), ('a', None), ('a', 'b')]
x.sort()
print x, min(x), max(iter(x)), max(3, 'a', None), \\
    min(None, 0), max([None, 2, 1]), min(k for k in [2, None])
print sorted([3, None, 'a'], reverse=True), sorted('ba', key=lambda c: {'a': None, 'b': 1}[c])
print cmp(None, 1), cmp('a', 1), cmp((1, None), (1, 2)), cmp({1: 2}, {1: 'a'}), \\
    {1: 2} < {1: 3, 2: 1}, {1: 2} > {0: 5}
print B(1) < B(2), sorted([B(2), B(1)])[0].n, max([B(1), B(5), B(3)]).n
a, b = A(), A()
print (a < b) != (b < a), len(sorted([a, b, None, 1])), (a < None, a > 3)
for call in (lambda: 1j < 2, lambda: datetime.date(2010, 1, 1) < 3, lambda: C() < 1, lambda: min(),
             lambda: sorted([1j, 2]), lambda: max(C(), C()), lambda: sorted([1], key=lambda a: a.b),
             lambda: max([1, 2j])):
    try:
        print call(),
    except (TypeError, AttributeError), e:
        print type(e).__name__,
print
import numpy as np
print (np.arange(3) > 1).tolist(), max(np.arange(3)), 1 < np.float32(2) < 3, \\
    None < np.float64(1), np.int64(3) < 'a'
"""
ORDERED = """\
3.0 True False False True True True True True
True False False True
[None, -1, True, 1.5, 2, {}, [3], 'a', 'b', (None,), (1,)]
[(None, 1), (1, 3), ('a', None), ('a', 2), ('a', 'b')] (None, 1) ('a', 'b') a None 2 None
['a', 3, None] ['a', 'b']
-1 1 -1 -1 True True
True 1 5
True 4 (False, True)
TypeError TypeError TypeError TypeError TypeError TypeError AttributeError TypeError
[False, False, True] 2 True True True
"""


def test_values_of_several_types_are_ordered_as_in_python_2():
    """ORDERED was written by Python 2.7."""
    done = run_converted(ORDERS)
    assert (done.stdout, done.stderr) == (ORDERED, "")


# --- workers of other libraries -------------------------------------------------------------------

WORKERS = """
from joblib import Parallel, delayed
import theano, theano.tensor as T
from beside import third

class Model(object):
    def __init__(self, scale):
        self.scale = scale

    def half(self, n):
        def inner(k):
            return k / 2
        return inner(n), self.scale * n / 2, type(map(None, [1])).__name__, inner(2 * n)

def square(n):
    x = T.dscalar()
    return float(theano.function([x], x ** 2)(n)), n / 2, third(n), {'a': 1}.has_key('a')

if __name__ == '__main__':
    parallel = Parallel(n_jobs=2)
    print parallel(delayed(third)(n) for n in xrange(3, 6))
    print parallel(delayed(square)(n) for n in range(3, 5))
    print parallel(delayed(Model(3).half)(n) for n in xrange(3, 5))
    print parallel(delayed(lambda n: n / 2)(n) for n in xrange(3, 6))
    print Parallel(n_jobs=2, backend='multiprocessing')(delayed(square)(n) for n in (3, 4))
"""


def test_workers_of_joblib_convert_modules(tmp_path):
    pytest.importorskip("joblib", reason="joblib is not installed")
    (tmp_path / "beside.py").write_text("assert 7 / 2 == 3\ndef third(n):\n    return n / 3\n")
    done = run_converted(WORKERS)
    squares = "[(9.0, 1, 1, True), (16.0, 2, 1, True)]"
    assert done.stdout.splitlines() == [
        "[1, 1, 1]",
        squares,
        "[(1, 4, 'list', 3), (2, 6, 'list', 4)]",
        "[1, 2, 2]",
        squares,
    ], done.stderr


# --- what a program sees --------------------------------------------------------------------------

SEES = """
from __future__ import print_function
import random, sys, opwise

def show(queue):
    queue.put([5 / 2, sys.argv[1:], __name__, opwise.__name__])

if __name__ == '__main__':
    import multiprocessing
    print(random.__file__ == multiprocessing.__file__.replace(
        'multiprocessing/__init__.py', 'random.py'), sys.argv[1:], sys.path[0], __package__)
    print(__file__.rpartition('/')[2], type(__builtins__).__name__, sys.stdin.read())
    for method in ('spawn', 'forkserver'):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=show, args=(queue,))
        process.start()
        print(queue.get(timeout=60))
        process.join()
    sys.exit(5)
"""


@pytest.mark.parametrize("start", ["opwise run", "opwise.py2"])
@pytest.mark.parametrize("python, half", [("--py2", 2), ("--py3", 2.5)])
@pytest.mark.parametrize("is_module", [False, True])
def test_programs_see_what_python_shows_them(tmp_path, start, python, half, is_module):
    inner = tmp_path / "sub"
    inner.mkdir()
    (inner / "program.py").write_text(SEES)
    stranger = tmp_path if not is_module else tmp_path.parent
    (stranger / "random.py").write_text("raise SystemExit('hides the library')")
    if start == "opwise run":
        words = ["-m", "opwise", "run", "--no-limits", python]
    else:
        words = ["-bm", "opwise.py2", *["--py3"] * (python == "--py3")]
    words += ["-m", "sub.program"] if is_module else ["sub/program.py"]
    # python -m opwise looks into the working directory itself
    done = subprocess.run([sys.executable, "-P", *words, "-x", "y"], input="stdin",
                          capture_output=True, text=True)  # fmt: skip
    folder, package = (tmp_path, "sub") if is_module else (inner, None)
    assert done.stdout.splitlines() == [
        f"True ['-x', 'y'] {folder} {package}",
        "program.py module stdin",
        *[f"[{half}, ['-x', 'y'], '__mp_main__', 'opwise']"] * 2,
    ], done.stderr
    assert done.returncode == 5


NAMES = ["queue", "profile", "token", "string", "random", "selectors", "types"]
HIDES = """
from __future__ import print_function
import logging, cProfile, sys
import theano, theano.tensor as T
import profile, token, random
from string import value as text

x = T.dscalar()
print(theano.function([x], x * 2)(3), profile.value, token.value, random.value, text)
print(logging.getLogger().name, hasattr(sys.modules['random'], 'value'))
import queue
print(hasattr(queue, 'Queue'), queue.value, __import__('types').__name__)
"""


@pytest.mark.parametrize(
    "command",
    ["run --py2", "run --py3", "run --py2 -m", "run --py3 -m", "doctor"],
)
def test_modules_named_as_pythons_hide_none_from_libraries(tmp_path, command):
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(f"value = '{name} of the program'\n")
    (tmp_path / "program.py").write_text(HIDES)
    words = ["-m", "opwise", *command.replace("run", "run --no-limits").split()]
    words.append("program" if words[-1] == "-m" else "program.py")
    # Python itself puts the working directory first for python -m opwise
    done = subprocess.run([sys.executable, "-P", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if command == "doctor":
        assert "program.py: 4 names of theano, 0 missing\n" in done.stdout
        return
    mine = [f"{name} of the program" for name in ("profile", "token", "random", "string")]
    assert done.stdout.splitlines() == [
        f"6.0 {' '.join(mine)}",
        "root False",
        "False queue of the program types",
    ], done.stderr


def test_python_m_warns_of_bytes_too():
    done = run_converted("print b'a'.upper() in ['A']\n")
    assert done.stdout == "False\n" and "program.py:1: BytesWarning" in done.stderr


def test_lines_of_errors_are_found_after_a_change_of_the_folder():
    done = run_converted("import os\nos.chdir('/')\nprint 1 / 0\n")
    assert done.returncode == 1 and "    print 1 / 0\n" in done.stderr
    assert "opwise" not in done.stderr


FLAGS = """
import os
os.environ['THEANO_FLAGS'] = 'floatX=float32,compute_test_value=warn'
import library
import theano
from theano import config
print(config.floatX + ' ' + config.compute_test_value + ' ' + library.floatX)
print(config.exception_verbosity)
"""


@pytest.mark.parametrize("python", ["--py2", "--py3"])
def test_programs_set_flags_before_they_import_theano(tmp_path, python):
    """Though opwise is imported already; OPWISE_FLAGS still comes first."""
    (tmp_path / "program.py").write_text(FLAGS)
    (tmp_path / "library.py").write_text("import theano\nfloatX = theano.config.floatX\n")
    words = ["-m", "opwise", "run", "--no-limits", python, "--flags", "exception_verbosity=high"]
    done = subprocess.run([sys.executable, *words, "program.py"], capture_output=True, text=True)
    printed = ["float32 warn float32", "high"]
    assert done.stdout.splitlines() == printed, done.stderr


def test_wrong_flags_of_programs_are_an_error_of_the_import():
    done = run_converted("import os\nos.environ['THEANO_FLAGS'] = 'floatX=float8'\nimport theano\n")
    assert done.returncode == 1 and "float8" in done.stderr
    assert 'program.py", line 3' in done.stderr


# --- converted modules in the cache ---------------------------------------------------------------

COUNTS = """
import sys
from opwise.py2 import convert, hook

def compiled(source, filename, *args, **options):
    converted.append(filename.rpartition('/')[2])
    return original(source, filename, *args, **options)

converted, original, convert.compiled = [], convert.compiled, compiled
hook.install(int(sys.argv[1]))
hook.run_script('program.py')
print(converted)
"""


def conversions(python="2"):
    """Return what a process prints that runs ``program.py``: then, what it converted."""
    done = subprocess.run([sys.executable, "-c", COUNTS, python], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" or "was changed" in done.stderr
    return done.stdout.splitlines()


def test_a_second_process_converts_nothing(tmp_path):
    folder = tmp_path / "program.py"
    # the texts are like those of no other run
    folder.write_text(f"# {tmp_path}\nimport part\nprint part.f(7), __file__\n")
    (tmp_path / "part.py").write_text(f"# {tmp_path}\ndef f(n): return n / 2\n")
    assert conversions() == ["3 program.py", "['program.py', 'part.py']"]
    assert conversions() == ["3 program.py", "[]"]
    (tmp_path / "part.py").write_text(f"# {tmp_path}\ndef f(n): return n / 3\n")
    assert conversions() == ["2 program.py", "['part.py']"]
    folder.write_text(f"# {tmp_path}\nfrom part import f\nprint(f(7))\n")
    assert conversions() == ["2", "['program.py']"]
    assert conversions("3") == [f"{7 / 3}", "['program.py', 'part.py']"]
    assert conversions("3") == [f"{7 / 3}", "[]"] and conversions() == ["2", "[]"]


def test_damaged_conversions_are_not_run(tmp_path):
    (tmp_path / "program.py").write_text(f"# {tmp_path}\nprint 1\n")
    assert conversions() == ["1", "['program.py']"]
    cached = max(Path(config.compiledir).glob("*.module"), key=lambda path: path.stat().st_mtime_ns)
    content = bytearray(cached.read_bytes())
    content[len(content) // 4] ^= 1
    cached.write_bytes(content)
    assert conversions() == ["1", "['program.py']"]
    assert conversions() == ["1", "[]"]


def test_another_converter_converts_anew(monkeypatch):
    monkeypatch.setattr(converted, "_converter", lambda: ["another"])
    kept = []
    monkeypatch.setattr(converted.kernelcache, "read", lambda name, key: kept.append(name))
    monkeypatch.setattr(converted.kernelcache, "keep", lambda name, *args: kept.append(name))
    converted.code_of(b"print 1", "old.py", 2)
    monkeypatch.undo()
    monkeypatch.setattr(converted.kernelcache, "read", lambda name, key: kept.append(name))
    converted.code_of(b"print 1", "old.py", 2)
    assert kept[0] == kept[1] != kept[2]
