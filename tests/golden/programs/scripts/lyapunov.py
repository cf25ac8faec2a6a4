"""Second derivatives through loops: Lyapunov exponents, a gradient penalty, sensitivities."""

from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T


def logistic_map(x0, r, n):
    return theano.scan(lambda x, r: r * x * (1 - x), outputs_info=x0, non_sequences=r, n_steps=n)[0]


def main(n=12, n_steps=25):
    x0, r = T.scalar("x0"), T.scalar("r")
    xs = logistic_map(x0, r, n)
    exponent = T.mean(T.log(abs(r * (1 - 2 * xs))))
    end = xs[-1]
    first = T.grad(end, [x0, r])
    second = [T.grad(first[0], x0), T.grad(first[0], r), T.grad(first[1], r)]
    f = theano.function([x0, r], [end, exponent] + first + second)
    maps = np.array([f(0.3, value) for value in (2.8, 3.2, 3.7)])
    print("exponents", " ".join("%.4f" % v for v in maps[:, 1]))

    # Lotka and Volterra's equations, and how all their states depend on the rates
    theta, z0 = T.vector("theta"), T.vector("z0")

    def euler(z, theta):
        a, b, c, d = theta[0], theta[1], theta[2], theta[3]
        return z + 0.02 * T.stack([a * z[0] - b * z[0] * z[1], c * z[0] * z[1] - d * z[1]])

    zs, _ = theano.scan(euler, outputs_info=z0, non_sequences=theta, n_steps=40)
    by_theta = theano.gradient.jacobian(zs.flatten(), theta)
    rates = np.array([1.1, 0.4, 0.1, 0.4])
    ode = theano.function([theta, z0], [zs, by_theta])
    wanted, _ = ode(rates, [10.0, 5.0])
    guess = np.array([0.8, 0.3, 0.15, 0.5])
    for _ in range(8):
        now, J = ode(guess, [10.0, 5.0])
        guess = guess - np.linalg.lstsq(J, (now - wanted).ravel(), rcond=None)[0]
    print("rates found again:", " ".join("%.4f" % v for v in guess))

    # an RNN whose gradient by its input is to be small: its training is a second derivative
    rng = np.random.RandomState(21)
    W = theano.shared(0.8 * rng.randn(3, 3), "W")
    U = theano.shared(rng.randn(2, 3), "U")
    v = theano.shared(rng.randn(3), "v")
    x, y = T.tensor3("x"), T.vector("y")
    h, _ = theano.scan(
        lambda x_t, h_: T.tanh(T.dot(x_t, U) + T.dot(h_, W)),
        sequences=x,
        outputs_info=T.zeros((x.shape[1], 3)),
    )
    out = T.dot(h[-1], v)
    penalty = T.mean(T.sum(T.grad(out.sum(), x) ** 2, axis=[0, 2]))
    loss = T.mean((out - y) ** 2)
    total = loss + 0.1 * penalty
    params = [W, U, v]
    train = theano.function(
        [x, y],
        [loss, penalty],
        updates=[(p, p - 0.05 * g) for p, g in zip(params, T.grad(total, params))],
    )
    X = rng.randn(5, 20, 2)
    Y = np.tanh(X[-1, :, 0] - X[-2, :, 1])
    history = np.array([train(X, Y) for _ in range(n_steps)])
    print("loss %.4f, penalty %.4f; then %.4f, %.4f" % (tuple(history[0]) + tuple(history[-1])))
    return {"maps": maps, "guess": guess, "off": np.abs(guess - rates).max(), "history": history}


if __name__ == "__main__":
    main()
