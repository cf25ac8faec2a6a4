"""Every allocation of the extension and every start of a thread of it fails once.

The result is right, or MemoryError with the Apply; shared variables keep their values then, and the
next call works. A small library that is loaded first takes the place of malloc and its like.
"""

import os
import platform
import re
import shutil
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.c,
    pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="replaces functions of glibc"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc"),
]

#: fails call number ``nth`` of those from some code, counted from 0, and all later ones if asked to
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_memalign(size_t, size_t);

static char *from, *until;
static long nth;
static int later;
static _Atomic long calls;

void shim_arm(char *first, char *last, long number, int later_too)
{
    from = until = NULL;
    calls = 0, nth = number, later = later_too;
    from = first, until = last;
}
long shim_calls(void) { return calls; }

static int fails(void *caller)
{
    if (caller < (void *)from || caller >= (void *)until)
        return 0;
    const long call = calls++;
    if (later ? call < nth : call != nth)
        return 0;
    errno = ENOMEM;
    return 1;
}
void *malloc(size_t n)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}
int posix_memalign(void **result, size_t alignment, size_t n)
{
    if (fails(__builtin_return_address(0)))
        return ENOMEM;
    *result = __libc_memalign(alignment, n);
    return *result ? 0 : ENOMEM;
}
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x)
{
    int (*genuine)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        dlsym(RTLD_NEXT, "pthread_create");
    return fails(__builtin_return_address(0)) ? EAGAIN : genuine(t, a, f, x);
}
"""

PROGRAMS = '''
import ctypes, sys, threading, warnings
import numpy as np
import theano.tensor as T
from theano import function, scan, shared
from theano.ifelse import ifelse
from theano.tensor import nnet, slinalg
from theano.tensor.signal.pool import pool_2d
from opwise.linkers import opwise_c
from opwise.testing.configurations import mode_of

random = np.random.RandomState(0)
A, V = random.rand(300, 300), random.rand(40000)
IMAGES = random.rand(3, 4, 20, 20).astype("float32")
KERNELS = random.rand(5, 4, 3, 3).astype("float32")
w = shared(np.zeros(300), "w")
x, v = T.dmatrix("x"), T.dvector("v")
i, k = T.ftensor4("i"), T.ftensor4("k")

def looped():
    rows, _ = scan(lambda row, before: T.tanh(T.dot(x, before) + row), x, T.zeros(300))
    return rows

#: name: (inputs, outputs, updates, values)
PROGRAMS = {
    "elementwise": ([v], lambda: T.exp(v) * 2 + v, [], [V]),
    "strided": ([x], lambda: [T.exp(x.T) + x, (x[::-2, ::3] * 2).sum(0)], [], [A[:, ::-1]]),
    "sums": ([x], lambda: [x.sum(), x.max(1), x.mean(0), x.T.sum(1), T.argmax(x, 0)], [], [A]),
    "product": ([x], lambda: [T.dot(x, x.T), T.dot(x, x[0]), T.dot(x[:, ::2], x[::2])], [], [A]),
    "batched": ([i], lambda: T.batched_dot(i[:, 0], i[:, 1]), [], [IMAGES]),
    "convolution": ([i, k], lambda: [nnet.conv2d(i, k), T.grad(nnet.conv2d(i, k).sum(), k)],
                    [], [IMAGES, KERNELS]),
    "pooling": ([i], lambda: pool_2d(i, (2, 2), ignore_border=True), [], [IMAGES]),
    "rows": ([x], lambda: [nnet.softmax(x), nnet.logsoftmax(x)], [], [A]),
    "picked": ([x], lambda: [x[[3, 1, 3]], x[x > 0.5], T.inc_subtensor(x[[1, 2]], 1.0)], [], [A]),
    "sorted": ([x], lambda: [T.sort(x, 1), T.argsort(x, 0), T.cumsum(x, 1)], [], [A]),
    "factors": ([x], lambda: [slinalg.cholesky(T.dot(x, x.T) + T.eye(300) * 400),
                              T.nlinalg.svd(x[:20, :20])[1]], [], [A]),
    "joined": ([x], lambda: [T.join(0, x, x.T), T.stack([x, x]), T.tile(x, (2, 1))], [], [A]),
    "chosen": ([x], lambda: ifelse(x[0, 0] > 2, x, T.exp(x) * 2), [], [A]),
    "updated": ([x], lambda: w.sum(), [(w, lambda: T.tanh(T.dot(x, w) + x[0]))], [A]),
    "looped": ([x], looped, [(w, lambda: w + x[0])], [A]),
}

extension = [line for line in open("/proc/self/maps") if "opwise_c." in line]
START = min(int(line.split("-")[0], 16) for line in extension)
END = max(int(line.split("-")[1].split()[0], 16) for line in extension)
shim = ctypes.CDLL(None)
shim.shim_arm.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_int]
shim.shim_calls.restype = ctypes.c_long

def in_new_thread(run):
    """A new thread has no working memory yet; it has a team of its own, too."""
    opwise_c.keep_at_most(0)
    opwise_c.set_threads(1)
    opwise_c.set_threads(3)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

def same(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)

def listed(result):
    return result if isinstance(result, list) else [result]

def tried(name, configuration, later):
    """Return how many calls failed."""
    inputs, outputs, updates, values = PROGRAMS[name]
    changes = [(variable, make()) for variable, make in updates]
    made = outputs()
    start = w.get_value()

    def compiled():
        return function(inputs, made, updates=changes, mode=mode_of(configuration))

    def called(f):
        result = listed(f(*values))
        after = w.get_value()
        w.set_value(start)
        return [*result, after]

    def call_failing():
        shim.shim_arm(START, END, nth, later)
        try:
            outcome.append(f(*values))
        except BaseException as e:
            outcome.append(e)
        finally:
            calls.append(shim.shim_calls())
            shim.shim_arm(None, None, -1, 0)

    wanted = called(compiled())
    failed, calls = 0, [1]
    for nth in range(10000):
        if calls.pop() <= nth:
            break
        f = compiled()
        outcome = []
        in_new_thread(call_failing)
        (result,) = outcome
        if isinstance(result, BaseException):
            failed += 1
            assert type(result) is MemoryError, repr(result)
            assert "Apply node that caused the error" in str(result), result
            assert "<string>" in str(result), result  # the line
            np.testing.assert_array_equal(w.get_value(), start)
        else:
            same([*listed(result), w.get_value()], wanted)
            w.set_value(start)
        del result, outcome[:]
        same(called(f), wanted)  # no lock is held, nothing is lost
    calls = 1
    for nth in range(10000):  # while a function is compiled
        if calls <= nth:
            break
        shim.shim_arm(START, END, nth, later)
        try:
            f = compiled()
        except MemoryError:
            f = None
        finally:
            calls = shim.shim_calls()
            shim.shim_arm(None, None, -1, 0)
        if f is not None:
            same(called(f), wanted)
    return failed

warnings.simplefilter("error")
print(*[tried(sys.argv[2], sys.argv[1], later) for later in (0, 1)])
'''

NAMES = re.findall(r'^    "(\w+)": \(\[', PROGRAMS, re.MULTILINE)


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    path = tmp_path_factory.mktemp("shim") / "shim.so"
    subprocess.run(
        ["gcc", "-O1", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path), "-ldl"],
        input=SHIM, text=True, check=True,
    )  # fmt: skip
    return path


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("configuration", ["FAST_RUN", "FAST_RUN, built-in kernels"])
def test_every_allocation_fails_once(shim, configuration, name):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS, configuration, name], capture_output=True, text=True,
        env={**os.environ, "LD_PRELOAD": str(shim)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    once, always = map(int, done.stdout.split())
    assert once <= always and always > 0, "no allocation failed"
