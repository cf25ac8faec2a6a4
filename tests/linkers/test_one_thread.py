"""The flag threads=1: no kernel, product, factorisation or draw lets another thread work."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.c,
    pytest.mark.skipif(
        not os.path.exists("/proc/self/schedstat"),
        reason="the system does not tell what each thread did",
    ),
]

SCRIPT = """
import json, os, threading, time
import numpy as np
import opwise, opwise.tensor as T
from opwise.loops import scan
from opwise.tensor import linalg
from opwise.compile.streams import RandomStreams
from opwise.tensor.conv.functions import conv2d
from opwise.tensor.linalg.fft import rfft
from opwise.tensor.nnet import softmax

def others():
    "Nanoseconds that each thread but this one has run."
    spent = {}
    for thread in os.listdir("/proc/self/task"):
        if int(thread) != threading.get_native_id():
            with open(f"/proc/self/task/{thread}/schedstat") as file:
                spent[thread] = int(file.read().split()[0])
    return spent

opwise.config.background_compilation = False
rng = np.random.default_rng(0)
x, y, images, kernels = T.fmatrix(), T.dmatrix(), T.ftensor4(), T.ftensor4()
streams = RandomStreams(1)
a = rng.random((1500, 1500)).astype("float32")
b = rng.random((400, 400)) + 400 * np.eye(400)
programs = {
    "elementwise": ([x], T.tanh(x * 2 + 1), [a]),
    "sum": ([x], T.exp(x).sum(), [a]),
    "rows": ([x], softmax(x), [a]),
    "product": ([x], T.dot(x, x), [a]),
    "product of doubles": ([y], T.dot(y, y), [b]),
    "vector": ([x], T.dot(x, x[0]), [a]),
    "sort": ([x], T.sort(x, axis=1), [a]),
    "largest": ([x], T.argmax(x, axis=0), [a]),
    "cumulative": ([x], T.cumsum(x, axis=0), [a]),
    "convolution": ([images, kernels], conv2d(images, kernels),
                    [rng.random((16, 16, 40, 40)).astype("float32"),
                     rng.random((32, 16, 3, 3)).astype("float32")]),
    "transform": ([y], rfft(y), [rng.random((2000, 1024))]),
    "cholesky": ([y], linalg.cholesky(T.dot(y, y.T)), [b]),
    "solve": ([y], linalg.solve(y, y), [b]),
    "eigh": ([y], linalg.eigh(y + y.T)[0], [b]),
    "svd": ([y], linalg.svd(y)[1], [b]),
    "draws": ([], streams.normal((1500, 1500)), []),
    "scan": ([x], scan(lambda r, s: T.tanh(T.dot(r, x) + s), x, x[0])[0][-1], [a[:900, :900]]),
}
found = {}
for name, (inputs, output, values) in programs.items():
    f = opwise.function(inputs, output)
    f(*values)  # the first call may load a library, whose threads begin and then rest
    before, deadline = None, time.monotonic() + 20
    while before != (before := others()) and time.monotonic() < deadline:
        time.sleep(0.2)
    f(*values)
    after = others()
    found[name] = sum(after[thread] - before.get(thread, 0) for thread in after)
print(json.dumps(found))
"""


def spent(threads):
    """Return how long other threads worked in a call of each program, in nanoseconds."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | {"OPWISE_FLAGS": f"threads={threads}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_one_thread_is_one_thread_everywhere():
    found = spent(1)
    assert len(found) > 10 and not any(found.values()), found


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a team needs two processors")
def test_two_threads_share_the_work():
    """What the other test measures is there to be measured."""
    found = spent(2)
    assert sum(value > 0 for value in found.values()) > 5, found
