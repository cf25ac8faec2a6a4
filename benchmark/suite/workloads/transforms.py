"""Fourier transforms of the rows of a matrix: their power spectra, and a filter."""

from __future__ import annotations

import numpy as np

from benchmark.suite.workload import Workload

SIZES = {"rows": 1000, "columns": 1024}
RATE = 1.0


def signals(rng, rows, columns):
    return {"x": rng.normal(size=(rows, columns))}, {}


def power(xp, x):
    """The squares of the magnitudes, for the frequencies 0 to half of the columns."""
    return (xp.power_spectrum(x),), {}


def filter_data(rng, rows, columns):
    """An odd number of columns would be one less after a transform and its inverse."""
    columns -= columns % 2
    x, y = rng.normal(size=(2, rows, columns))
    return {"x": x, "y": y}, {"gain": rng.uniform(size=columns // 2 + 1)}


def learn_filter(xp, x, y, gain):
    """The distance of filtered signals from others, and a step of the filter downhill."""

    def cost_of(gain):
        error = xp.filtered(x, gain) - y
        return xp.mean(error * error)

    cost, grads = xp.value_and_grad(cost_of, gain)
    return (cost,), xp.descend({"gain": gain}, grads, RATE)


def learn_filter_by_hand(x, y, gain):
    """By Parseval's theorem; all frequencies but the first and the last stand for two."""
    spectrum = np.fft.rfft(x)
    error = np.fft.irfft(spectrum * gain, x.shape[1]) - y
    products = np.fft.rfft(error).conj() * spectrum
    grad = products.real.sum(axis=0) * (2 / x.size / x.shape[1])
    grad[1:-1] *= 2
    gain -= RATE * grad
    return ((error * error).mean(),), {"gain": gain}


WORKLOADS = [
    workload
    for letters, dtype in (("f32", "float32"), ("f64", "float64"))
    for workload in (
        Workload(
            name=f"power-spectrum-{letters}",
            what=f"the power spectra of 1000 rows of 1024 numbers, {dtype}",
            dtype=dtype,
            sizes=SIZES,
            draw=signals,
            program=power,
        ),
        Workload(
            name=f"filter-grad-{letters}",
            what=f"1000 rows of 1024 numbers through a filter, which a gradient step updates, "
            f"{dtype}",
            dtype=dtype,
            sizes=SIZES,
            draw=filter_data,
            program=learn_filter,
            by_hand=learn_filter_by_hand,
        ),
    )
]
