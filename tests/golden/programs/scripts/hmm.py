"""A hidden Markov model: forward, backward and Viterbi in scans; learned by EM and by gradients."""

from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T


def logsumexp(x, axis):
    top = T.max(x, axis=axis, keepdims=True)
    return T.log(T.sum(T.exp(x - top), axis=axis)) + top.sum(axis=axis)


def forward(log_pi, log_A, log_B):
    def step(b, alpha, log_A):
        return logsumexp(alpha.dimshuffle(0, "x") + log_A, 0) + b

    first = log_pi + log_B[0]
    alphas, _ = theano.scan(step, sequences=log_B[1:], outputs_info=first, non_sequences=log_A)
    return T.concatenate([first.dimshuffle("x", 0), alphas])


def backward(log_A, log_B):
    def step(b, beta, log_A):
        return logsumexp(log_A + (b + beta).dimshuffle("x", 0), 1)

    last = T.zeros_like(log_B[0])
    betas, _ = theano.scan(
        step, sequences=log_B[1:], outputs_info=last, non_sequences=log_A, go_backwards=True
    )
    return T.concatenate([betas[::-1], last.dimshuffle("x", 0)])


def viterbi(log_pi, log_A, log_B):
    def step(b, score, log_A):
        reached = score.dimshuffle(0, "x") + log_A
        return T.max(reached, axis=0) + b, T.argmax(reached, axis=0)

    first = log_pi + log_B[0]
    [scores, back], _ = theano.scan(
        step, sequences=log_B[1:], outputs_info=[first, None], non_sequences=log_A
    )
    last = T.argmax(scores[-1])
    path, _ = theano.scan(
        lambda row, state: row[state], sequences=back, outputs_info=last, go_backwards=True
    )
    return T.concatenate([path[::-1], last.dimshuffle("x")])


def main(n=80, n_em=12, n_gradient=15):
    rng = np.random.RandomState(12)
    A = np.array([[0.9, 0.1], [0.2, 0.8]])
    E = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    states, data = [0], []
    for _ in range(n):
        data.append(rng.choice(3, p=E[states[-1]]))
        states.append(rng.choice(2, p=A[states[-1]]))
    data, states = np.array(data, dtype="int64"), np.array(states[:-1])

    y = T.lvector("y")
    start_A, start_E = (
        np.array([[0.6, 0.4], [0.4, 0.6]]),
        np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]),
    )
    tA, tE = theano.shared(start_A, "A"), theano.shared(start_E, "E")
    log_pi = T.log(T.constant(np.array([0.5, 0.5])))
    log_B = T.log(tE).T[y]
    alphas, betas = forward(log_pi, T.log(tA), log_B), backward(T.log(tA), log_B)
    loglik = logsumexp(alphas[-1], 0)
    gamma = T.exp(alphas + betas - loglik)
    xi = T.exp(
        alphas[:-1].dimshuffle(0, 1, "x")
        + T.log(tA).dimshuffle("x", 0, 1)
        + (log_B[1:] + betas[1:]).dimshuffle(0, "x", 1)
        - loglik
    )
    new_A = xi.sum(axis=0) / xi.sum(axis=[0, 2]).dimshuffle(0, "x")
    one_hot = T.extra_ops.to_one_hot(y, 3)
    new_E = T.dot(gamma.T, one_hot) / gamma.sum(axis=0).dimshuffle(0, "x")
    em = theano.function([y], loglik, updates=[(tA, new_A), (tE, new_E)])
    decode = theano.function([y], viterbi(log_pi, T.log(tA), log_B))
    by_em = np.array([em(data) for _ in range(n_em)])
    right = np.mean(decode(data) == states)
    learned = [tA.get_value(), tE.get_value()]

    # the same by gradients, through softmaxes
    wA, wE = theano.shared(np.log(start_A), "wA"), theano.shared(np.log(start_E), "wE")
    sA, sE = T.nnet.softmax(wA), T.nnet.softmax(wE)
    cost = -logsumexp(forward(log_pi, T.log(sA), T.log(sE).T[y])[-1], 0)
    grads = T.grad(cost, [wA, wE])
    train = theano.function(
        [y], -cost, updates=[(wA, wA - 0.05 * grads[0]), (wE, wE - 0.05 * grads[1])]
    )
    by_gradient = np.array([train(data) for _ in range(n_gradient)])
    print(
        "log-likelihood %.3f, by EM %.3f, by gradients %.3f"
        % (by_em[0], by_em[-1], by_gradient[-1])
    )
    print("%.1f%% of the states right" % (100 * right))
    return {
        "by_em": by_em,
        "by_gradient": by_gradient,
        "right": right,
        "A": learned[0],
        "E": learned[1],
    }


if __name__ == "__main__":
    main()
