"""A Kalman filter and smoother in scans; the noise found by the gradient of the likelihood."""

from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.nlinalg import det, matrix_inverse


def kalman_filter(ys, A, C, Q, R, m0, P0):
    def step(y, m, P, A, C, Q, R):
        m_pred = T.dot(A, m)
        P_pred = T.dot(T.dot(A, P), A.T) + Q
        S = T.dot(T.dot(C, P_pred), C.T) + R
        S_inv = matrix_inverse(S)
        K = T.dot(T.dot(P_pred, C.T), S_inv)
        error = y - T.dot(C, m_pred)
        m_new = m_pred + T.dot(K, error)
        P_new = T.dot(T.eye(2) - T.dot(K, C), P_pred)
        logp = -0.5 * (
            T.dot(T.dot(error, S_inv), error) + T.log(det(S)) + y.shape[0] * np.log(2 * np.pi)
        )
        return m_new, P_new, m_pred, P_pred, logp

    return theano.scan(
        step,
        sequences=[ys],
        outputs_info=[m0, P0, None, None, None],
        non_sequences=[A, C, Q, R],
        name="filter",
    )[0]


def smoother(ms, Ps, m_preds, P_preds, A):
    """Rauch, Tung and Striebel: from the last step to the first."""

    def step(m, P, m_pred, P_pred, m_next, P_next, A):
        G = T.dot(T.dot(P, A.T), matrix_inverse(P_pred))
        return [m + T.dot(G, m_next - m_pred), P + T.dot(T.dot(G, P_next - P_pred), G.T)]

    (m_s, P_s), _ = theano.scan(
        step,
        sequences=[ms[:-1], Ps[:-1], m_preds[1:], P_preds[1:]],
        outputs_info=[ms[-1], Ps[-1]],
        non_sequences=A,
        go_backwards=True,
        name="smoother",
    )
    return T.concatenate([m_s[::-1], ms[-1:]])


def main(n=60, dt=0.1, n_steps=30):
    rng = np.random.RandomState(8)
    A = np.array([[1.0, dt], [0.0, 1.0]])
    C = np.array([[1.0, 0.0]])
    states = [np.array([0.0, 1.0])]
    for _ in range(n):
        states.append(np.dot(A, states[-1]) + np.array([0.01, 0.1]) * rng.randn(2))
    states = np.array(states[1:])
    data = states[:, :1] + 0.3 * rng.randn(n, 1)

    ys = T.matrix("ys")
    log_q = theano.shared(np.array([-6.0, -6.0]), "log_q")
    log_r = theano.shared(np.array([0.0]), "log_r")
    Q, R = T.diag(T.exp(log_q)), T.diag(T.exp(log_r))
    ms, Ps, m_preds, P_preds, logps = kalman_filter(
        ys, T.as_tensor_variable(A), T.as_tensor_variable(C), Q, R, T.zeros((2,)), 10.0 * T.eye(2)
    )
    loglik = logps.sum()
    params = [log_q, log_r]
    grads = T.grad(loglik, params)
    train = theano.function(
        [ys], loglik, updates=[(p, p + 0.02 * g) for p, g in zip(params, grads)]
    )
    logliks = np.array([train(data) for _ in range(n_steps)])
    smooth = theano.function([ys], [ms, smoother(ms, Ps, m_preds, P_preds, T.constant(A))])
    filtered, smoothed = smooth(data)
    errors = [np.sqrt(np.mean((e[:, 0] - states[:, 0]) ** 2)) for e in (data, filtered, smoothed)]
    print("log-likelihood %.3f, then %.3f" % (logliks[0], logliks[-1]))
    print("errors: measured %.4f, filtered %.4f, smoothed %.4f" % tuple(errors))
    return {
        "logliks": logliks,
        "log_r": log_r.get_value(),
        "errors": np.array(errors),
        "smoothed": smoothed[::10],
    }


if __name__ == "__main__":
    main()
