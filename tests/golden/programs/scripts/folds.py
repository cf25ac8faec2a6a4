"""map, reduce, foldl and foldr: Horner, Gram-Schmidt, counters, polynomials, running statistics."""

from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T


def horner(coefficients, x):
    value, _ = theano.foldr(
        lambda c, total, x: total * x + c,
        sequences=coefficients,
        outputs_info=T.zeros_like(x),
        non_sequences=x,
    )
    return value


def powers(A, k):
    return theano.scan(
        fn=lambda prior_result, A: prior_result * A,
        outputs_info=T.ones_like(A),
        non_sequences=A,
        n_steps=k,
    )


def gram_schmidt(rows):
    def orthogonal(i, Q, rows):
        v = rows[i]
        v = v - T.dot(T.dot(Q, v), Q)
        v = v - T.dot(T.dot(Q, v), Q)
        return T.set_subtensor(Q[i], v / T.sqrt(T.sum(v**2)))

    Q, updates = theano.reduce(
        orthogonal,
        sequences=T.arange(rows.shape[0]),
        outputs_info=T.zeros_like(rows),
        non_sequences=rows,
    )
    assert not updates
    return Q


def welford(x):
    """Mean and variance in one pass."""

    def step(e, n, mean, m2):
        n = n + 1
        delta = e - mean
        mean = mean + delta / n
        return [n, mean, m2 + delta * (e - mean)]

    zero = T.constant(np.float64(0.0))
    (n, mean, m2), _ = theano.reduce(step, sequences=x, outputs_info=[zero, zero, zero])
    return mean, m2 / n


class Counter(object):
    """Steps that count in a shared variable."""

    def __init__(self):
        self.n = theano.shared(0, name="n")
        self.log = theano.shared(np.zeros(4, dtype="int64"), name="log")

    def step(self, i):
        return self.n * 10 + i, {
            self.n: self.n + 1,
            self.log: T.set_subtensor(self.log[i % 4], self.n),
        }


def main():
    x, m, k = T.vector("x"), T.matrix("m"), T.iscalar("k")
    s = T.scalar("s")
    rng = np.random.RandomState(10)
    c = rng.randn(5)
    value = horner(x, s)
    f = theano.function([x, s], [value, T.grad(value, s), T.grad(T.grad(value, s), s)])
    polynomial = f(c, 0.7)
    result, updates = powers(x, k)
    power = theano.function(inputs=[x, k], outputs=result[-1], updates=updates)
    print("powers", " ".join("%d" % v for v in power(range(5), 2)))
    slope = theano.function([x, k], T.grad(result[-1].sum(), x))

    B = rng.randn(4, 6)
    Q = gram_schmidt(m)
    q, by_m = theano.function([m], [Q, T.grad(T.sum(Q**3), m)])(B)
    print("orthogonal up to %.0e" % max(np.abs(np.dot(q, q.T) - np.eye(4)).max(), 1e-12))
    mean, variance = theano.function([x], welford(x))(c)

    rows, _ = theano.map(lambda row, t: [row[::-1] * t, T.sum(row)], sequences=[m, m[:, 0]])
    mapped = theano.function([m], rows)(B)
    counter = Counter()
    counts, updates = theano.scan(counter.step, sequences=T.arange(6))
    count = theano.function([], counts, updates=updates)
    counted = [count(), count()]
    scattered, _ = theano.scan(
        lambda i, v, total: T.set_subtensor(total[i], v + total[i]),
        sequences=[T.cast(T.round(m[:, 0]) % 3, "int32"), m[:, 1]],
        outputs_info=T.zeros((3,)),
    )
    bins = theano.function([m], scattered[-1])(B)
    return {
        "polynomial": polynomial,
        "wanted": np.polyval(c[::-1], 0.7),
        "q": q,
        "by_m": by_m,
        "slope": slope(c, 3),
        "mean": mean,
        "variance": variance,
        "mapped": mapped,
        "counted": counted,
        "n": counter.n.get_value(),
        "log": counter.log.get_value(),
        "bins": bins,
    }


if __name__ == "__main__":
    main()
