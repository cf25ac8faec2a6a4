"""Records the results of the golden programs under genuine Theano, into theano-<version>.json.

It takes an old Python, a C++ compiler and a BLAS library:

    python3.7 -m venv old
    old/bin/pip install numpy==1.19.5 'scipy<1.8' six Theano==1.0.5
    THEANO_FLAGS=blas.ldflags=-lopenblas old/bin/python tests/golden/record.py [program ...]

Without arguments every program is recorded (half an hour: each op is compiled once); with names
only these, the others keep what was recorded before.
"""

import os
import platform
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


def versions(theano):
    """Return the versions of everything that the recorded numbers depend on."""
    import numpy
    import scipy

    return {
        "theano": theano.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "machine": platform.machine(),
        "c library": os.confstr("CS_GNU_LIBC_VERSION"),
    }


def record(theano, names, recorded):
    """Run the named programs and put their results into `recorded`."""
    from programs import PROGRAMS

    for name in names:
        start = time.time()
        recorded[name] = PROGRAMS[name].run(theano)
        print(f"{name} {time.time() - start:.1f} s", flush=True)


def main(arguments):
    """Record every program, or those named, into theano-<version>.json."""
    from programs import PROGRAMS
    from programs.encoding import document_of, text_of

    import theano

    path = HERE / f"theano-{theano.__version__}.json"
    document = document_of(path.read_text()) if path.exists() else {"programs": {}}
    recorded = {name: result for name, result in document["programs"].items() if name in PROGRAMS}
    record(theano, arguments or sorted(PROGRAMS), recorded)
    document = {"versions": versions(theano), "programs": recorded}
    path.write_text(text_of(document))


if __name__ == "__main__":
    main(sys.argv[1:])
