"""A recommender: factors and biases of users and items, by momentum and by row-wise AdaGrad."""
from __future__ import print_function

from collections import OrderedDict

import numpy as np

import theano
import theano.tensor as T


def floatX(x):
    return np.asarray(x, dtype=theano.config.floatX)


class BiasedMF(object):
    def __init__(self, n_users, n_items, n_factors, mean, reg=0.02, seed=0):
        rng = np.random.RandomState(seed)
        self.U = theano.shared(floatX(0.1 * rng.randn(n_users, n_factors)), name='U')
        self.V = theano.shared(floatX(0.1 * rng.randn(n_items, n_factors)), name='V')
        self.bu = theano.shared(floatX(np.zeros(n_users)), name='bu')
        self.bi = theano.shared(floatX(np.zeros(n_items)), name='bi')
        self.params = [self.U, self.V, self.bu, self.bi]
        self.user, self.item = T.ivectors('user', 'item')
        self.rating = T.vector('rating')
        self.rows = [self.U[self.user], self.V[self.item], self.bu[self.user],
                     self.bi[self.item]]
        u, v, bu, bi = self.rows
        self.prediction = floatX(mean) + bu + bi + T.sum(u * v, axis=1)
        error = T.sum(T.sqr(self.rating - self.prediction))
        self.cost = error + reg * sum(T.sum(T.sqr(row)) for row in self.rows)
        self.inputs = [self.user, self.item, self.rating]
        self.rmse = T.sqrt(T.mean(T.sqr(T.clip(self.prediction, 1, 5) - self.rating)))


def momentum_updates(model, lr=0.01, momentum=0.8):
    """Dense gradients: every row moves on by its momentum."""
    updates = OrderedDict()
    for param, grad in zip(model.params, T.grad(model.cost, model.params)):
        velocity = theano.shared(param.get_value() * floatX(0.))
        updates[velocity] = momentum * velocity - lr * grad
        updates[param] = param + updates[velocity]
    return updates


def adagrad_updates(model, lr=0.1, eps=1e-6):
    """Only the rows of the batch: their sums of squares, then they themselves."""
    updates = []
    for row, grad in zip(model.rows, T.grad(model.cost, model.rows)):
        param, index = row.owner.inputs
        acc = theano.shared(np.zeros_like(param.get_value()), name='acc_' + param.name)
        new_acc = T.inc_subtensor(acc[index], grad ** 2)
        step = lr * grad / T.sqrt(new_acc[index] + eps)
        updates.append((acc, new_acc))
        updates.append((param, T.inc_subtensor(row, -step)))
    return updates


def main(n_users=12, n_items=15, n_factors=3, n_ratings=120, n_epochs=4, batch_size=20):
    rng = np.random.RandomState(21)
    user = rng.randint(0, n_users, n_ratings).astype('int32')
    item = rng.randint(0, n_items, n_ratings).astype('int32')
    true = np.sum(rng.randn(n_users, 2)[user] * rng.randn(n_items, 2)[item], axis=1)
    rating = floatX(np.clip(np.round(3 + true), 1, 5))
    held_out = n_ratings - 20
    results = {}
    for make_updates in (momentum_updates, adagrad_updates):
        model = BiasedMF(n_users, n_items, n_factors, rating[:held_out].mean())
        train = theano.function(model.inputs, model.cost, updates=make_updates(model))
        test = theano.function(model.inputs, model.rmse)
        costs, rmses = [], []
        for epoch in range(n_epochs):
            for i in range(0, held_out, batch_size):
                s = slice(i, i + batch_size)
                costs.append(train(user[s], item[s], rating[s]))
            rmses.append(test(user[held_out:], item[held_out:], rating[held_out:]))
            print('%s, epoch %d, held-out rmse %.5f' % (make_updates.__name__, epoch, rmses[-1]))
        # the items that the first user should see
        u = T.iscalar('u')
        scores = T.dot(model.V, model.U[u]) + model.bi
        recommend = theano.function([u], [T.argsort(-scores)[:5], scores])
        best, scores = recommend(0)
        results[make_updates.__name__] = {
            'costs': np.array(costs), 'rmses': np.array(rmses), 'scores': scores, 'best': best,
            'params': [p.get_value() for p in model.params]}
    return results


if __name__ == '__main__':
    main()
