import numpy as np
import StringIO

TEXT = """0.5,1.5;1
2.5,0.25;0
"""


def make(n=240, seed=5):
    rng = np.random.RandomState(seed)
    x = rng.uniform(-1, 1, size=(n, 6))
    y = (np.sign(x[:, 0] * x[:, 1]) > 0).astype(np.int)
    half = n / 2
    return (x[:half], y[:half]), (x[half:], y[half:])


def parse(text=TEXT):
    rows = []
    for line in StringIO.StringIO(text):
        fields, label = line.strip().split(';')
        rows.append((map(float, fields.split(',')), int(label)))
    return rows


def batches((x, y), size):
    for k in range(len(x) / size):
        yield x[k * size:(k + 1) * size], y[k * size:(k + 1) * size]
