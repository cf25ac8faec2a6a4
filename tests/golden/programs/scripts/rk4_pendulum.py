"""A double pendulum by Runge-Kutta steps of fourth order; its motion fitted by the gradient."""

from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T

G = 9.81


def derivatives(s):
    """The time derivatives of the angles and angular velocities of two equal pendulums."""
    a, b, p, q = s[0], s[1], s[2], s[3]
    d = a - b
    m = 3 - T.cos(2 * d)
    dp = (-3 * G * T.sin(a) - G * T.sin(a - 2 * b) - 2 * T.sin(d) * (q**2 + p**2 * T.cos(d))) / m
    dq = 2 * T.sin(d) * (2 * p**2 + 2 * G * T.cos(a) + q**2 * T.cos(d)) / m
    return T.stack([p, q, dp, dq])


def rk4(s, dt):
    k1 = derivatives(s)
    k2 = derivatives(s + 0.5 * dt * k1)
    k3 = derivatives(s + 0.5 * dt * k2)
    k4 = derivatives(s + dt * k3)
    return s + dt / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)


def energy(s):
    a, b, p, q = s[:, 0], s[:, 1], s[:, 2], s[:, 3]
    kinetic = p**2 + 0.5 * q**2 + p * q * T.cos(a - b)
    return kinetic - G * (2 * T.cos(a) + T.cos(b))


def main(n=300, dt=0.01, n_fit=40):
    s0, k = T.vector("s0"), T.iscalar("k")
    path, _ = theano.scan(rk4, outputs_info=s0, non_sequences=np.float64(dt), n_steps=k)
    e = energy(T.concatenate([s0.dimshuffle("x", 0), path]))
    integrate = theano.function([s0, k], [path, e])
    start = np.array([1.2, -0.5, 0.0, 0.0])
    there, energies = integrate(start, n)
    drift = np.abs(energies / energies[0] - 1).max()
    print(
        "after %.1f s at angles %.5f, %.5f; energy drift %.2e"
        % (n * dt, there[-1, 0], there[-1, 1], drift)
    )
    # with the velocities turned round it goes back to where it began
    turn = np.array([1.0, 1.0, -1.0, -1.0])
    back = integrate(there[-1] * turn, n)[0][-1] * turn
    # the start, found again from the end of a path by Gauss-Newton steps on the Jacobian
    target = T.vector("target")
    end = path[-1]
    J = theano.gradient.jacobian(end, s0)
    newton = theano.function([s0, target, k], s0 - T.dot(T.nlinalg.matrix_inverse(J), end - target))
    guess, aim = start + 0.05, integrate(start, n_fit)[0][-1]
    for i in range(5):
        guess = newton(guess, aim, n_fit)
    print("the start is found again up to %.0e" % max(np.abs(guess - start).max(), 1e-12))
    return {
        "path": there[::20],
        "drift": drift,
        "error_back": np.abs(back - start).max(),
        "found": guess,
    }


if __name__ == "__main__":
    main()
