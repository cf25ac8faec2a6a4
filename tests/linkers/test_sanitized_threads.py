"""scripts/sanitize --thread sees what it is there for: a race planted in a kernel is reported."""

import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.c,
    pytest.mark.skipif(
        os.environ.get("OPWISE_SANITIZED") != "thread",
        reason="this build has no thread sanitizer: scripts/sanitize --thread makes one that has",
    ),
]

PROGRAM = """
import ctypes, threading
import opwise
from opwise.linkers import cbuild

text = "volatile long ow_s; void broken(long n) {{ for (long i = 0; i < n; i++) {statement}; }}\\n"
library, _ = cbuild.load(text)
broken = ctypes.CFUNCTYPE(None, ctypes.c_long)(library.symbol("broken"))
threads = [threading.Thread(target=broken, args=(10_000_000,)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("survived")
"""


@pytest.mark.parametrize(
    ("statement", "reported"),
    [("ow_s++", True), ("__atomic_add_fetch(&ow_s, 1, __ATOMIC_SEQ_CST)", False)],
    ids=["plain", "atomic"],
)
def test_a_planted_race_is_reported(statement, reported, tmp_path):
    options = [o for o in os.environ["TSAN_OPTIONS"].split(":") if not o.startswith("log_path")]
    program = PROGRAM.format(statement=statement)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300,
        check=False, env={**os.environ, "TSAN_OPTIONS": ":".join(options)},
    )  # fmt: skip
    assert done.stdout == "survived\n", done.stderr
    assert ("WARNING: ThreadSanitizer: data race" in done.stderr) is reported, done.stderr
