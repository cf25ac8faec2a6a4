import io

import numpy as np

TEXT = """0.5,1.5;1
2.5,0.25;0
"""


def make(n=240, seed=5):
    rng = np.random.RandomState(seed)
    x = rng.uniform(-1, 1, size=(n, 6))
    y = (np.sign(x[:, 0] * x[:, 1]) > 0).astype(int)
    half = n // 2
    return (x[:half], y[:half]), (x[half:], y[half:])


def parse(text=TEXT):
    rows = []
    for line in io.StringIO(text):
        fields, label = line.strip().split(';')
        rows.append(([float(f) for f in fields.split(',')], int(label)))
    return rows


def batches(pair, size):
    x, y = pair
    for k in range(len(x) // size):
        yield x[k * size:(k + 1) * size], y[k * size:(k + 1) * size]
