"""Iterations that end by themselves: power iteration, Newton, fixed points, a line search."""

from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T


def power_iteration(A, v0, tolerance=1e-13, most=500):
    def step(v, A):
        w = T.dot(A, v)
        w = w / w.norm(2)
        return w, theano.scan_module.until(T.sum((w - v) ** 2) < tolerance)

    vs, _ = theano.scan(step, outputs_info=v0, non_sequences=A, n_steps=most)
    v = vs[-1]
    return T.dot(v, T.dot(A, v)), v, vs.shape[0]


def newton(residual, x0, most=50):
    """A root of a vector function, by its Jacobian."""

    def step(x):
        r = residual(x)
        J = theano.gradient.jacobian(r, x)
        return x - T.dot(T.nlinalg.matrix_inverse(J), r), theano.scan_module.until(
            T.max(abs(r)) < 1e-10
        )

    xs, _ = theano.scan(step, outputs_info=[dict(initial=x0, taps=[-1])], n_steps=most)
    return xs[-1], xs.shape[0]


def minimum(cost, x0, most=60):
    """A minimum, by Newton steps with the Hessian, each halved until the cost falls."""

    def step(x):
        g = T.grad(cost(x), x)
        H = theano.gradient.hessian(cost(x), x)
        d = T.slinalg.solve(H + 1e-3 * T.eye(x.shape[0]), g)

        def halve(rate, d, x):
            lower = cost(x - rate * d) <= cost(x) - 1e-4 * rate * T.dot(g, d)
            return 0.5 * rate, theano.scan_module.until(lower)

        rates, _ = theano.scan(
            halve, outputs_info=T.constant(np.float64(1)), non_sequences=[d, x], n_steps=20
        )
        return [x - 2 * rates[-1] * d, T.sum(g**2)], theano.scan_module.until(T.sum(g**2) < 1e-18)

    (xs, slopes), _ = theano.scan(step, outputs_info=[x0, None], n_steps=most)
    return xs[-1], xs.shape[0]


def main():
    rng = np.random.RandomState(6)
    B = rng.randn(5, 5)
    A, v0, x0 = T.matrix("A"), T.vector("v0"), T.vector("x0")
    top = theano.function([A, v0], power_iteration(A, v0))
    value, vector, n = top(np.dot(B, B.T), np.ones(5))
    print("largest eigenvalue %.6f" % value)

    def residual(x):
        return T.stack([x[0] ** 2 + x[1] ** 2 - 4, T.exp(x[0]) + x[1] - 1])

    root, n_newton = theano.function([x0], newton(residual, x0))(np.array([1.0, -1.7]))
    print("a root at %.6f, %.6f after %d steps" % (root[0], root[1], n_newton))

    def rosenbrock(x):
        return T.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    least, n_least = theano.function([x0], minimum(rosenbrock, x0))(np.array([-1.2, 1.0, -0.5]))
    print("a minimum at", " ".join("%.6f" % v for v in least))

    # the gradient of what an iteration ends in: the square root by Heron's steps
    a = T.scalar("a")
    roots, _ = theano.scan(
        lambda x, a: (0.5 * (x + a / x), theano.scan_module.until(abs(x * x - a) < 1e-12)),
        outputs_info=np.float64(1),
        non_sequences=a,
        n_steps=100,
    )
    heron = theano.function([a], [roots[-1], T.grad(roots[-1], a), roots.shape[0]])
    root_of_7, slope, n_heron = heron(7.0)
    print("the square root of 7 is %.9f, its slope %.9f" % (root_of_7, slope))
    return {
        "value": value,
        "vector": vector,
        "off": abs(value - np.linalg.eigvalsh(np.dot(B, B.T))[-1]),
        "root": root,
        "least": least,
        "heron": [root_of_7, n_heron],
        "steps": [n, n_newton, n_least],
        "distance": np.abs(least - 1).max(),
    }


if __name__ == "__main__":
    main()
