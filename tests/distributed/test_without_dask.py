"""Without Dask the package says what to install; opwise itself never imports it."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.null


def run(program):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_error_says_what_to_install():
    for missing in ("dask", "distributed"):
        text = run(
            f"import sys; sys.modules[{missing!r}] = None\n"
            "try: import opwise.distributed\n"
            "except ImportError as error: print(error.name, error)\n"
        )
        assert text.startswith(f"{missing} opwise.distributed needs Dask"), text
        assert "pip install 'opwise[dask]'" in text
