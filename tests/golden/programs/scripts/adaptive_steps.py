"""An integrator that halves or doubles its steps: a choice in each step of a scan."""

from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.ifelse import ifelse


def rate(y):
    """The oscillator of van der Pol."""
    return T.stack([y[1], 4.0 * (1 - y[0] ** 2) * y[1] - y[0]])


def heun(y, h):
    """A step of second order, and how far the step of first order is from it."""
    k1 = rate(y)
    k2 = rate(y + h * k1)
    return y + 0.5 * h * (k1 + k2), T.max(abs(0.5 * h * (k2 - k1)))


def integrate(y0, end, tolerance, most):
    def step(t, y, h, n_refused):
        new, error = heun(y, h)
        refused = T.gt(error, tolerance)
        calm = T.lt(error, 0.1 * tolerance)
        # a refused step is tried again, half as long; one that is calm makes the next one longer
        t, y, h, n_refused = ifelse(
            refused,
            [t, y, 0.5 * h, n_refused + 1],
            [t + h, new, ifelse(calm, 2.0 * h, h, name="longer"), n_refused],
            name="refused",
        )
        return [t, y, h, n_refused], theano.scan_module.until(t >= end)

    (ts, ys, hs, refused), updates = theano.scan(
        step,
        outputs_info=[
            T.constant(np.float64(0)),
            y0,
            T.constant(np.float64(0.5)),
            T.constant(np.int64(0)),
        ],
        n_steps=most,
        name="integrate",
    )
    assert not updates
    return [ts, ys, hs, refused[-1]]


def main(end=8.0):
    y0, tolerance = T.vector("y0"), T.scalar("tolerance")
    f = theano.function([y0, tolerance], integrate(y0, end, tolerance, 4000))
    start = np.array([2.0, 0.0])
    found = {}
    ends = []
    for bound in (1e-2, 1e-3, 1e-4):
        ts, ys, hs, n_refused = f(start, bound)
        print(
            "tolerance %g: %d steps of %.5f to %.5f, %d refused"
            % (bound, len(ts), hs.min(), hs.max(), n_refused)
        )
        found["steps to %g" % bound] = [len(ts), int(n_refused)]
        # the last step goes a little beyond the end
        ends.append(
            ys[-1]
            + (end - ts[-1])
            * np.array([ys[-1, 1], 4 * (1 - ys[-1, 0] ** 2) * ys[-1, 1] - ys[-1, 0]])
        )
    found["end"] = ends[-1]
    found["off"] = np.abs(ends[-1] - ends[-2]).max()
    return found


if __name__ == "__main__":
    main()
