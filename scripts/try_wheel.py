"""Use an installed opwise as its users do: train a small model, with a C compiler or without.

    python -I scripts/try_wheel.py compiler     fails unless kernels are compiled for the function
    python -I scripts/try_wheel.py none              fails unless the built-in loops run

It imports nothing of the checkout: -I keeps its folder off the path. The kernels go to a cache of
their own. scripts/release.py and the builds of wheels run it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings

#: the largest relative difference of a cost from numpy's
ROUNDING = 1e-12


def expected(x, y, w, steps):
    """Return the costs that the program should give, computed with numpy alone."""
    import numpy as np

    costs = []
    for _ in range(steps):
        p = 1 / (1 + np.exp(-(x @ w)))
        costs.append(((p - y) ** 2).mean())
        w = w - 4.0 * x.T @ ((p - y) * p * (1 - p)) * 2 / len(y)
    return costs


def main(argv: list[str] | None = None) -> None:
    (wanted,) = sys.argv[1:] if argv is None else argv
    if wanted not in ("compiler", "none"):
        raise SystemExit("name what is expected: compiler or none")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["OPWISE_FLAGS"] = f"base_compiledir={cache}"
        os.environ.pop("THEANO_FLAGS", None)
        os.environ["OPWISERC"] = os.environ["THEANORC"] = os.devnull
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            train(wanted)
    messages = [str(warning.message) for warning in caught]
    known = ["There is no C compiler (no cc, gcc or clang is on the PATH)"] * (wanted == "none")
    if [message.partition(":")[0] for message in messages] != known:
        raise SystemExit(f"expected the warnings {known}, got {messages}")


def train(wanted: str) -> None:
    import numpy as np

    import theano
    import theano.tensor as T

    random = np.random.RandomState(0)
    data, labels = random.randn(200, 5), random.randint(0, 2, 200).astype(float)
    x, y = T.dmatrix("x"), T.dvector("y")
    w = theano.shared(np.zeros(5), name="w")
    cost = T.sqr(T.nnet.sigmoid(T.dot(x, w)) - y).mean()
    f = theano.function([x, y], cost, updates=[(w, w - 4.0 * T.grad(cost, w))], profile=True)
    costs = [float(f(data, labels)) for _ in range(20)]
    np.testing.assert_allclose(costs, expected(data, labels, np.zeros(5), 20), rtol=ROUNDING)
    in_python = [row["op"] for row in f.profile.records() if not row["c"]]
    if in_python:
        raise SystemExit(f"run in Python: {', '.join(in_python)}")
    kernels = f.compile_report.kernels
    found = "compiler" if kernels is not None and kernels.path else "none"
    if found != wanted:
        raise SystemExit(f"expected kernels from {wanted}, got them from {found}: {kernels}")
    import opwise
    from opwise.linkers import opwise_c

    print(
        f"opwise {opwise.__version__} in {os.path.dirname(opwise.__file__)}, Python "
        f"{sys.version.split()[0]}, vectors: {opwise_c.VECTORS}; all steps run in C, "
        + ("on compiled kernels" if wanted == "compiler" else "without a compiler")
    )


if __name__ == "__main__":
    main()
