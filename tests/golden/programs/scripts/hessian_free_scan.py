"""Hessian-free training of an RNN: the Gauss-Newton matrix by R- and L-operators, conjugate
gradients in a scan that ends early.
"""

from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T


def flat_views(theta, shapes):
    found, start = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        found.append(theta[start : start + size].reshape(shape))
        start += size
    return found


def main(n=24, length=6, n_hidden=5, n_steps=6, n_cg=12):
    rng = np.random.RandomState(11)
    shapes = [(1, n_hidden), (n_hidden, n_hidden), (n_hidden,), (n_hidden, 1), (1,)]
    total = sum(int(np.prod(s)) for s in shapes)
    theta = theano.shared(0.5 * rng.randn(total), name="theta")
    W, U, b, V, c = flat_views(theta, shapes)
    x, y, damping = T.tensor3("x"), T.matrix("y"), T.scalar("damping")

    h, _ = theano.scan(
        lambda x_t, h_tm1: T.tanh(T.dot(x_t, W) + T.dot(h_tm1, U) + b),
        sequences=x,
        outputs_info=T.zeros((x.shape[1], n_hidden)),
    )
    out = (T.dot(h[-1], V) + c)[:, 0]
    target = y[:, 0]
    cost = T.mean((out - target) ** 2)
    gradient = T.grad(cost, theta)

    def gauss_newton(v):
        Jv = T.Rop(out, theta, v)
        return T.Lop(out, theta, 2.0 * Jv / out.shape[0]) + damping * v

    def cg_step(d, move, r, rr):
        Ad = gauss_newton(d)
        alpha = rr / T.dot(d, Ad)
        r_next = r - alpha * Ad
        rr_next = T.dot(r_next, r_next)
        return (
            [r_next + rr_next / rr * d, move + alpha * d, r_next, rr_next],
            theano.scan_module.until(rr_next < 1e-12),
        )

    b0 = -gradient
    (_, moves, _, residuals), _ = theano.scan(
        cg_step, outputs_info=[b0, T.zeros_like(b0), b0, T.dot(b0, b0)], n_steps=n_cg
    )
    move = moves[-1]
    step = theano.function(
        [x, y, damping],
        [cost, T.dot(move, gradient), residuals[-1]],
        updates=[(theta, theta + move)],
    )
    loss = theano.function([x, y], cost)
    # a product with the Hessian
    v = T.vector("v")
    hv = theano.function([x, y, v], T.grad(T.sum(gradient * v), theta))

    X = rng.randn(length, n, 1)
    Y = np.tanh(X.sum(axis=0))
    lam, costs = 1.0, []
    product = hv(X, Y, rng.randn(total))
    for i in range(n_steps):
        before = theta.get_value()
        old, slope, residual = step(X, Y, lam)
        new = loss(X, Y)
        if new > old:
            theta.set_value(before)
            lam *= 4
        else:
            lam *= 0.5
        costs.append(old)
        print("step %d: cost %.6f" % (i, old))
    costs.append(loss(X, Y))
    return {"costs": np.array(costs), "product": product}


if __name__ == "__main__":
    main()
