"""Mean word vectors under a mask, classified; trained by functions that share their gradients.

The optimizers return f_grad_shared, which computes gradients, and f_update, which uses them.
"""
from __future__ import print_function

from collections import OrderedDict

import numpy

import theano
import theano.tensor as tensor
from theano import config


def numpy_floatX(data):
    return numpy.asarray(data, dtype=config.floatX)


def zipp(params, tparams):
    for kk, vv in params.items():
        tparams[kk].set_value(vv)


def unzip(zipped):
    new_params = OrderedDict()
    for kk, vv in zipped.items():
        new_params[kk] = vv.get_value()
    return new_params


def prepare_data(seqs, labels):
    lengths = [len(s) for s in seqs]
    x = numpy.zeros((numpy.max(lengths), len(seqs))).astype('int64')
    x_mask = numpy.zeros((numpy.max(lengths), len(seqs))).astype(config.floatX)
    for idx, s in enumerate(seqs):
        x[:lengths[idx], idx] = s
        x_mask[:lengths[idx], idx] = 1.
    return x, x_mask, numpy.asarray(labels, dtype='int64')


def zeros_like_params(tparams, name):
    return [theano.shared(p.get_value() * numpy_floatX(0.), name='%s_%s' % (k, name))
            for k, p in tparams.items()]


def sgd(lr, tparams, grads, inputs, cost):
    gshared = zeros_like_params(tparams, 'grad')
    gsup = [(gs, g) for gs, g in zip(gshared, grads)]
    f_grad_shared = theano.function(inputs, cost, updates=gsup, name='sgd_f_grad_shared')
    pup = [(p, p - lr * g) for p, g in zip(tparams.values(), gshared)]
    f_update = theano.function([lr], [], updates=pup, name='sgd_f_update')
    return f_grad_shared, f_update


def adadelta(lr, tparams, grads, inputs, cost):
    zipped_grads = zeros_like_params(tparams, 'grad')
    running_up2 = zeros_like_params(tparams, 'rup2')
    running_grads2 = zeros_like_params(tparams, 'rgrad2')
    zgup = [(zg, g) for zg, g in zip(zipped_grads, grads)]
    rg2up = [(rg2, 0.95 * rg2 + 0.05 * (g ** 2)) for rg2, g in zip(running_grads2, grads)]
    f_grad_shared = theano.function(inputs, cost, updates=zgup + rg2up,
                                    name='adadelta_f_grad_shared')
    updir = [-tensor.sqrt(ru2 + 1e-6) / tensor.sqrt(rg2 + 1e-6) * zg
             for zg, ru2, rg2 in zip(zipped_grads, running_up2, running_grads2)]
    ru2up = [(ru2, 0.95 * ru2 + 0.05 * (ud ** 2)) for ru2, ud in zip(running_up2, updir)]
    param_up = [(p, p + ud) for p, ud in zip(tparams.values(), updir)]
    f_update = theano.function([lr], [], updates=ru2up + param_up, on_unused_input='ignore',
                               name='adadelta_f_update')
    return f_grad_shared, f_update


def rmsprop(lr, tparams, grads, inputs, cost):
    zipped_grads = zeros_like_params(tparams, 'grad')
    running_grads = zeros_like_params(tparams, 'rgrad')
    running_grads2 = zeros_like_params(tparams, 'rgrad2')
    zgup = [(zg, g) for zg, g in zip(zipped_grads, grads)]
    rgup = [(rg, 0.95 * rg + 0.05 * g) for rg, g in zip(running_grads, grads)]
    rg2up = [(rg2, 0.95 * rg2 + 0.05 * (g ** 2)) for rg2, g in zip(running_grads2, grads)]
    f_grad_shared = theano.function(inputs, cost, updates=zgup + rgup + rg2up,
                                    name='rmsprop_f_grad_shared')
    updir = zeros_like_params(tparams, 'updir')
    updir_new = [(ud, 0.9 * ud - lr * zg / tensor.sqrt(rg2 - rg ** 2 + 1e-4))
                 for ud, zg, rg, rg2 in zip(updir, zipped_grads, running_grads, running_grads2)]
    param_up = [(p, p + udn[1]) for p, udn in zip(tparams.values(), updir_new)]
    f_update = theano.function([lr], [], updates=updir_new + param_up, on_unused_input='ignore',
                               name='rmsprop_f_update')
    return f_grad_shared, f_update


def build_model(tparams, options):
    use_noise = theano.shared(numpy_floatX(0.))
    x = tensor.matrix('x', dtype='int64')
    mask = tensor.matrix('mask', dtype=config.floatX)
    y = tensor.vector('y', dtype='int64')
    n_timesteps, n_samples = x.shape[0], x.shape[1]
    emb = tparams['Wemb'][x.flatten()].reshape([n_timesteps, n_samples, options['dim_proj']])
    proj = (emb * mask[:, :, None]).sum(axis=0)
    proj = proj / mask.sum(axis=0)[:, None]
    trng = tensor.shared_randomstreams.RandomStreams(1234)
    proj = tensor.switch(use_noise,
                         proj * trng.binomial(proj.shape, p=0.5, n=1, dtype=proj.dtype),
                         proj * 0.5)
    pred = tensor.nnet.softmax(tensor.dot(proj, tparams['U']) + tparams['b'])
    off = 1e-8
    if pred.dtype == 'float16':
        off = 1e-6
    cost = -tensor.log(pred[tensor.arange(n_samples), y] + off).mean()
    decay_c = theano.shared(numpy_floatX(options['decay_c']), name='decay_c')
    cost += decay_c * (tparams['U'] ** 2).sum()
    return use_noise, [x, mask, y], pred, cost


def train(optimizer, batches, options, n_epochs):
    rng = numpy.random.RandomState(123)
    params = OrderedDict()
    params['Wemb'] = numpy_floatX(0.5 * rng.randn(options['n_words'], options['dim_proj']))
    params['U'] = numpy_floatX(0.5 * rng.randn(options['dim_proj'], options['ydim']))
    params['b'] = numpy_floatX(numpy.zeros((options['ydim'],)))
    tparams = OrderedDict((kk, theano.shared(vv, name=kk))
                          for kk, vv in params.items())
    use_noise, inputs, pred, cost = build_model(tparams, options)
    f_pred = theano.function(inputs[:2], pred.argmax(axis=1), name='f_pred')
    f_pred_prob = theano.function(inputs[:2], pred, name='f_pred_prob')
    grads = tensor.grad(cost, wrt=list(tparams.values()))
    lr = tensor.scalar(name='lr')
    f_grad_shared, f_update = optimizer(lr, tparams, grads, inputs, cost)
    zero_vec_tensor = tensor.vector()
    set_zero = theano.function(
        [zero_vec_tensor],
        updates=[(tparams['Wemb'],
                  tensor.set_subtensor(tparams['Wemb'][0, :], zero_vec_tensor))],
        allow_input_downcast=True)
    costs = []
    for eidx in range(n_epochs):
        for x, mask, y in batches:
            use_noise.set_value(1.)
            costs.append(f_grad_shared(x, mask, y))
            f_update(0.02)
            set_zero(numpy.zeros(options['dim_proj']))
        use_noise.set_value(0.)
        wrong = sum((f_pred(x, mask) != y).sum() for x, mask, y in batches)
        print('%s, epoch %d, cost %.5f, %d wrong' % (
            optimizer.__name__, eidx, costs[-1], wrong))
    best_p = unzip(tparams)
    zipp(params, tparams)
    first = f_pred_prob(*batches[0][:2])
    zipp(best_p, tparams)
    return {'costs': numpy.array(costs), 'first': first, 'last': f_pred_prob(*batches[0][:2]),
            'params': dict(best_p)}


def main(n=48, n_words=21, dim_proj=5, ydim=2, batch_size=12, n_epochs=3):
    rng = numpy.random.RandomState(2)
    labels = rng.randint(0, ydim, n)
    half = n_words // ydim
    seqs = [[1 + (rng.randint(0, half) + (label if rng.rand() < 0.8 else rng.randint(ydim)) * half)
             % (n_words - 1) for _ in range(rng.randint(3, 9))] for label in labels]
    batches = [prepare_data(seqs[i:i + batch_size], labels[i:i + batch_size])
               for i in range(0, n, batch_size)]
    options = dict(n_words=n_words, dim_proj=dim_proj, ydim=ydim, decay_c=0.01)
    return dict((optimizer.__name__, train(optimizer, batches, options, n_epochs))
                for optimizer in (sgd, adadelta, rmsprop))


if __name__ == '__main__':
    main()
