"""Sentences of several lengths through an LSTM with a mask; parameters live in a dictionary."""
from collections import OrderedDict
import copy
import optparse
import time

import numpy
import theano
from theano import config
import theano.tensor as tensor
from theano.sandbox.rng_mrg import MRG_RandomStreams as RandomStreams


def numpy_floatX(data):
    return numpy.asarray(data, dtype=config.floatX)


def _p(pp, name):
    return '%s_%s' % (pp, name)


def zipp(params, tparams):
    for kk, vv in params.iteritems():
        tparams[kk].set_value(vv)


def unzip(zipped):
    new_params = OrderedDict()
    for kk, vv in zipped.iteritems():
        new_params[kk] = vv.get_value()
    return new_params


def ortho_weight(rng, ndim):
    u, s, v = numpy.linalg.svd(rng.randn(ndim, ndim))
    return u.dot(v).astype(config.floatX)


def init_params(options, rng):
    params = OrderedDict()
    params['Wemb'] = (0.1 * rng.randn(options['n_words'], options['dim'])).astype(config.floatX)
    for name in 'W', 'U':
        params[_p('lstm', name)] = numpy.concatenate(
            [ortho_weight(rng, options['dim']) for _ in range(4)], axis=1)
    params[_p('lstm', 'b')] = numpy.zeros((4 * options['dim'],)).astype(config.floatX)
    params['U'] = 0.1 * rng.randn(options['dim'], options['ydim']).astype(config.floatX)
    params['b'] = numpy.zeros((options['ydim'],)).astype(config.floatX)
    return params


def lstm_layer(tparams, state_below, options, prefix='lstm', mask=None):
    nsteps = state_below.shape[0]
    n_samples = state_below.shape[1] if state_below.ndim == 3 else 1
    assert mask is not None

    def _slice(_x, n, dim):
        if _x.ndim == 3:
            return _x[:, :, n * dim:(n + 1) * dim]
        return _x[:, n * dim:(n + 1) * dim]

    def _step(m_, x_, h_, c_):
        preact = tensor.dot(h_, tparams[_p(prefix, 'U')])
        preact += x_
        i = tensor.nnet.sigmoid(_slice(preact, 0, options['dim']))
        f = tensor.nnet.sigmoid(_slice(preact, 1, options['dim']))
        o = tensor.nnet.sigmoid(_slice(preact, 2, options['dim']))
        c = tensor.tanh(_slice(preact, 3, options['dim']))
        c = f * c_ + i * c
        c = m_[:, None] * c + (1. - m_)[:, None] * c_
        h = o * tensor.tanh(c)
        h = m_[:, None] * h + (1. - m_)[:, None] * h_
        return h, c

    state_below = tensor.dot(state_below, tparams[_p(prefix, 'W')]) + tparams[_p(prefix, 'b')]
    zero = tensor.alloc(numpy_floatX(0.), n_samples, options['dim'])
    rval, updates = theano.scan(_step, sequences=[mask, state_below], outputs_info=[zero, zero],
                                name=_p(prefix, '_layers'), n_steps=nsteps)
    assert not updates
    return rval[0]


def build_model(tparams, options):
    trng = RandomStreams(123)
    use_noise = theano.shared(numpy_floatX(0.))
    x, mask = tensor.matrix('x', dtype='int64'), tensor.matrix('mask', dtype=config.floatX)
    y = tensor.vector('y', dtype='int64')
    n_timesteps, n_samples = x.shape
    emb = tparams['Wemb'][x.flatten()].reshape([n_timesteps, n_samples, options['dim']])
    proj = lstm_layer(tparams, emb, options, mask=mask)
    proj = (proj * mask[:, :, None]).sum(axis=0) / mask.sum(axis=0)[:, None]
    proj = tensor.switch(use_noise, proj * trng.binomial(proj.shape, p=0.5, n=1, dtype=proj.dtype),
                         proj * 0.5)
    pred = tensor.nnet.softmax(tensor.dot(proj, tparams['U']) + tparams['b'])
    f_pred = theano.function([x, mask], pred.argmax(axis=1), name='f_pred')
    off = 1e-8
    if pred.dtype == 'float16':
        off = 1e-6
    cost = -tensor.log(pred[tensor.arange(n_samples), y] + off).mean()
    return use_noise, x, mask, y, f_pred, cost


def adadelta(lr, tparams, grads, x, mask, y, cost):
    def zeros(suffix):
        return [theano.shared(p.get_value() * numpy_floatX(0.), name='%s_%s' % (k, suffix))
                for k, p in tparams.iteritems()]
    zipped_grads, running_up2, running_grads2 = zeros('grad'), zeros('rup2'), zeros('rgrad2')
    zgup = [(zg, g) for zg, g in zip(zipped_grads, grads)]
    rg2up = [(rg2, 0.95 * rg2 + 0.05 * (g ** 2)) for rg2, g in zip(running_grads2, grads)]
    f_grad_shared = theano.function([x, mask, y], cost, updates=zgup + rg2up)
    updir = [-tensor.sqrt(ru2 + 1e-6) / tensor.sqrt(rg2 + 1e-6) * zg
             for zg, ru2, rg2 in zip(zipped_grads, running_up2, running_grads2)]
    ru2up = [(ru2, 0.95 * ru2 + 0.05 * (ud ** 2)) for ru2, ud in zip(running_up2, updir)]
    param_up = [(p, p + ud) for p, ud in zip(tparams.values(), updir)]
    f_update = theano.function([lr], [], updates=ru2up + param_up, on_unused_input='ignore')
    return f_grad_shared, f_update


def prepare_data(seqs, labels):
    lengths = [len(s) for s in seqs]
    n_samples, maxlen = len(seqs), numpy.max(lengths)
    x = numpy.zeros((maxlen, n_samples)).astype('int64')
    x_mask = numpy.zeros((maxlen, n_samples)).astype(theano.config.floatX)
    for idx, s in enumerate(seqs):
        x[:lengths[idx], idx] = s
        x_mask[:lengths[idx], idx] = 1.
    return x, x_mask, labels


def get_sentences(rng, n):
    seqs, labels = [], []
    for k in xrange(n):
        label = k % 2
        seqs.append(list(rng.randint(2, 8, 3 + k % 5)) + [label])
        if k % 3:
            seqs[-1].insert(rng.randint(len(seqs[-1])), 8 + label)
        labels.append(label)
    return seqs, labels


def main():
    parser = optparse.OptionParser()
    parser.add_option('-e', '--max-epochs', dest='max_epochs', type='int', default=4)
    given, rest = parser.parse_args()
    model_options = dict(given.__dict__, n_words=10, dim=6, ydim=2)
    print 'model options', sorted(model_options.items()), rest
    rng = numpy.random.RandomState(7)
    train = get_sentences(rng, 32)
    tparams = OrderedDict((k, theano.shared(v, name=k))
                          for k, v in init_params(model_options, rng).iteritems())
    use_noise, x, mask, y, f_pred, cost = build_model(tparams, model_options)
    cost += (tparams['U'] ** 2).sum() * 1e-4
    grads = tensor.grad(cost, wrt=tparams.values())
    lr = tensor.scalar(name='lr')
    f_grad_shared, f_update = adadelta(lr, tparams, grads, x, mask, y, cost)
    best_p, start = None, time.clock() if hasattr(time, 'clock') else time.time()
    uidx = 0
    for eidx in xrange(model_options['max_epochs']):
        for start_index in range(0, 32, 8):
            uidx += 1
            use_noise.set_value(1.)
            batch = [part[start_index:start_index + 8] for part in train]
            total = f_grad_shared(*prepare_data(*batch))
            f_update(0.1)
            if numpy.isnan(total) or numpy.isinf(total):
                print 'bad cost detected: ', total
                return 1.
        use_noise.set_value(0.)
        preds = f_pred(*prepare_data(*train)[:2])
        err = (preds != train[1]).mean()
        print 'Epoch ', eidx, 'Update ', uidx, 'Cost %.6f' % total, 'Train', err
        if best_p is None or err < 0.25:
            best_p = unzip(tparams)
    zipp(copy.copy(best_p), tparams)
    for kk, vv in best_p.iteritems():
        print '%-8s' % kk, vv.shape, '%.5f' % numpy.abs(tparams[kk].get_value()).mean()


if __name__ == '__main__':
    main()
