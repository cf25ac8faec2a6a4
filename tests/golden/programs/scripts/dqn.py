"""Deep Q-learning of a game of catching: a convolutional Q-function, replay, a target network."""
from __future__ import print_function

from collections import OrderedDict

import numpy as np

import theano
import theano.tensor as T


class Catch(object):
    """A fruit falls, a basket of 3 pixels moves left, stays, or moves right."""

    def __init__(self, side, rng):
        self.side, self.rng = side, rng

    def reset(self):
        self.fruit = [0, self.rng.randint(self.side)]
        self.basket = self.rng.randint(1, self.side - 1)
        return self.frame()

    def frame(self):
        screen = np.zeros((self.side, self.side), dtype=theano.config.floatX)
        screen[self.fruit[0], self.fruit[1]] = 1
        screen[-1, self.basket - 1:self.basket + 2] = 1
        return screen

    def act(self, action):
        self.basket = min(max(self.basket + action - 1, 1), self.side - 2)
        self.fruit[0] += 1
        done = self.fruit[0] == self.side - 1
        caught = abs(self.fruit[1] - self.basket) <= 1
        return self.frame(), (1. if caught else -1.) if done else 0., done


class QNetwork(object):
    def __init__(self, rng, side, n_actions):
        def shared(*shape):
            W = rng.randn(*shape) * np.sqrt(2. / np.prod(shape[1:] if len(shape) == 4 else shape[0]))
            return theano.shared(np.asarray(W, dtype=theano.config.floatX))

        def zeros(n):
            return theano.shared(np.zeros(n, dtype=theano.config.floatX))

        reduced = (side - 3) // 2 + 1
        self.params = [shared(8, 1, 3, 3), zeros(8), shared(8, 8, 2, 2), zeros(8),
                       shared(8 * (reduced - 1) ** 2, 24), zeros(24), shared(24, n_actions),
                       zeros(n_actions)]

    def __call__(self, states):
        W1, b1, W2, b2, W3, b3, W4, b4 = self.params
        h = states.dimshuffle(0, 'x', 1, 2)
        h = T.nnet.relu(T.nnet.conv2d(h, W1, subsample=(2, 2)) + b1.dimshuffle('x', 0, 'x', 'x'))
        h = T.nnet.relu(T.nnet.conv2d(h, W2) + b2.dimshuffle('x', 0, 'x', 'x'))
        h = T.nnet.relu(T.dot(h.flatten(2), W3) + b3)
        return T.dot(h, W4) + b4


def deepmind_rmsprop(loss, params, learning_rate, rho, epsilon):
    updates = OrderedDict()
    for param, grad in zip(params, T.grad(loss, params)):
        value = param.get_value(borrow=True)
        acc_grad = theano.shared(np.zeros(value.shape, dtype=value.dtype))
        acc_rms = theano.shared(np.zeros(value.shape, dtype=value.dtype))
        acc_grad_new = rho * acc_grad + (1 - rho) * grad
        acc_rms_new = rho * acc_rms + (1 - rho) * grad ** 2
        updates[acc_grad], updates[acc_rms] = acc_grad_new, acc_rms_new
        updates[param] = param - learning_rate * (
            grad / T.sqrt(acc_rms_new - acc_grad_new ** 2 + epsilon))
    return updates


def main(side=7, n_actions=3, n_games=220, batch_size=32, discount=0.9, memory=600):
    rng = np.random.RandomState(15)
    network, target = QNetwork(rng, side, n_actions), QNetwork(rng, side, n_actions)
    states, next_states = T.tensor3('states'), T.tensor3('next_states')
    rewards, actions = T.col('rewards'), T.icol('actions')
    terminals = T.icol('terminals')
    q_vals = network(states)
    next_q_vals = theano.gradient.disconnected_grad(target(next_states))
    goal = (rewards + (T.ones_like(terminals) - terminals)
            * discount * T.max(next_q_vals, axis=1, keepdims=True))
    diff = goal - q_vals[T.arange(batch_size), actions.reshape((-1,))].reshape((-1, 1))
    # errors beyond 1 count linearly
    quadratic_part = T.minimum(abs(diff), 1.)
    linear_part = abs(diff) - quadratic_part
    loss = T.sum(0.5 * quadratic_part ** 2 + linear_part)
    updates = deepmind_rmsprop(loss, network.params, 0.002, 0.95, 0.01)
    floatX = theano.config.floatX
    shared = {
        states: theano.shared(np.zeros((batch_size, side, side), dtype=floatX)),
        next_states: theano.shared(np.zeros((batch_size, side, side), dtype=floatX)),
        rewards: theano.shared(np.zeros((batch_size, 1), dtype=floatX),
                               broadcastable=(False, True)),
        actions: theano.shared(np.zeros((batch_size, 1), dtype='int32'),
                               broadcastable=(False, True)),
        terminals: theano.shared(np.zeros((batch_size, 1), dtype='int32'),
                                 broadcastable=(False, True))}
    train = theano.function([], [loss, q_vals], updates=updates, givens=shared)
    q_of = theano.function([states], q_vals)
    copy = theano.function([], [], updates=list(zip(target.params, network.params)))
    copy()

    game, replay, losses, scores = Catch(side, rng), [], [], []
    for played in range(n_games):
        state, done = game.reset(), False
        epsilon = max(0.1, 1. - played / 100.)
        while not done:
            if rng.rand() < epsilon:
                action = rng.randint(n_actions)
            else:
                action = int(np.argmax(q_of(state[None])[0]))
            seen, reward, done = game.act(action)
            replay = (replay + [(state, [action], [reward], seen, [int(done)])])[-memory:]
            state = seen
            if len(replay) >= 2 * batch_size:
                batch = [replay[i] for i in rng.randint(0, len(replay), batch_size)]
                for var, column in zip((states, actions, rewards, next_states, terminals),
                                       zip(*batch)):
                    old = shared[var]
                    old.set_value(np.array(column).astype(old.dtype))
                losses.append(train()[0])
        if played % 10 == 9:
            copy()
        scores.append(reward)
        if played % 55 == 54:
            print('%d games, mean score %.2f' % (played + 1, np.mean(scores[-50:])))
    caught = []
    for _ in range(50):
        state, done = game.reset(), False
        while not done:
            state, reward, done = game.act(int(np.argmax(q_of(state[None])[0])))
        caught.append(reward > 0)
    return {'losses': np.array(losses[::20]), 'scores': np.array(scores),
            'caught': np.mean(caught)}


if __name__ == '__main__':
    main()
