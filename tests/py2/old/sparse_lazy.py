"""Logistic regression of sparse rows; branches that are not computed; functions inside of graphs."""
import time
from collections import defaultdict

import numpy as np
import scipy.sparse as sp
import theano
import theano.sparse as S
import theano.tensor as T
from theano.compile import OpFromGraph
from theano.ifelse import IfElse, ifelse
from theano.sparse.basic import SparseType
from theano.tensor.basic import switch


class SparseLogistic(object):
    def __init__(self, n_in, n_out, l2=1e-3):
        self.W = theano.shared(np.zeros((n_in, n_out)), name='W')
        self.b = theano.shared(np.zeros(n_out), name='b')
        self.x = S.csr_matrix('x', dtype='float64')
        self.y = T.ivector('y')
        p = T.nnet.softmax(S.structured_dot(self.x, self.W) + self.b)
        nll = T.mean(T.nnet.categorical_crossentropy(p, self.y))
        cost = nll + l2 * (self.W ** 2).sum()
        updates = [(v, v - .5 * g) for v, g in zip([self.W, self.b], T.grad(cost, [self.W, self.b]))]
        self.fit = theano.function([self.x, self.y], [cost, nll], updates=updates)
        self.predict = theano.function([self.x], p.argmax(1))


rng = np.random.RandomState(4)
dense = (rng.uniform(size=(60, 20)) < .15) * rng.uniform(.5, 1.5, (60, 20))
labels = (dense[:, :7].sum(1) > dense[:, 7:14].sum(1)).astype('int32')
data = sp.csr_matrix(dense)
model = SparseLogistic(20, 2)
for epoch in range(60):
    cost, nll = model.fit(data, labels)
    if epoch % 20 == 19:
        print('epoch {0}: {1:.5f} {2:.5f} right {3:.3f}'.format(
            epoch + 1, float(cost), float(nll), (model.predict(data) == labels).mean()))

x, c = S.csr_matrix('x'), S.csc_matrix('c')
v, m = T.dvector('v'), T.dmatrix('m')
small = sp.csr_matrix(np.array([[1., 0, 2], [0, 0, 3]]))
print(x.type, c.type, SparseType('csr', 'float32')().dtype, x.format, x.ndim)
ops = [
    ('transpose', S.transpose(x)), ('add', x + x), ('add dense', x + T.ones((2, 3))),
    ('mul', S.mul(x, x)), ('times', x * 2.), ('dot', S.dot(x, S.transpose(x))),
    ('true dot', S.true_dot(x, S.transpose(x))), ('dense', S.dense_from_sparse(x)),
    ('neg', -x), ('sub', x - x), ('sum', S.sp_sum(x, axis=0)), ('diag', S.diag(x[:, :2])),
    ('col', S.col_scale(x, T.arange(3.) + 1)), ('row', S.row_scale(x, T.constant([2., 3.]))),
    ('slice', x[0:1, 1:3]), ('item', x[1, 2]), ('square', S.sqr(x)), ('rint', S.rint(x)),
    ('structured', S.structured_exp(x)), ('clean', S.clean(x - x)), ('csc', S.hstack([x, x])),
    ('cast', S.cast(x, 'float32')), ('vstack', S.vstack([x, x], format='csr')),
    ('data', S.csm_data(x)), ('indptr', S.csm_indptr(x)), ('gt', S.gt(x, T.ones((2, 3)))),
]
for name, variable in ops:
    value = theano.function([x], variable)(small)
    kind = value.format if sp.issparse(value) else 'dense'
    print(name, kind, value.dtype, (value.toarray() if sp.issparse(value) else value).round(6).tolist())
g = T.grad(S.sp_sum(S.structured_sigmoid(x), sparse_grad=True), x)
print('gradient', theano.function([x], g)(small).toarray().round(4).tolist(), g.type)
sd = S.sampling_dot(m, m, x)
print('sampled', theano.function([m, x], sd)(np.ones((3, 2))[:2], small[:, :2]).toarray().tolist())

# only one branch is computed
counts = defaultdict(int)


class Counted(theano.Op):
    __props__ = ('name',)

    def __init__(self, name):
        self.name = name

    def make_node(self, x):
        x = T.as_tensor_variable(x)
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        counts[self.name] += 1
        outputs[0][0] = inputs[0] * 2

    def grad(self, inputs, gradients):
        return [gradients[0] * 2]


a, b = T.scalars('a', 'b')
yes, no = Counted('yes')(v), Counted('no')(v)
lazy = theano.function([a, b, v], ifelse(T.lt(a, b), yes.mean(), no.max()),
                       mode=theano.Mode(linker='vm'))
eager = theano.function([a, b, v], switch(T.lt(a, b), yes.mean(), no.max()))
for f, name in (lazy, 'ifelse'), (eager, 'switch'):
    counts.clear()
    print(name, f(0., 1., [1., 4.]), f(1., 0., [1., 4.]), f(1, 0, [2]), sorted(counts.items()))
both = ifelse(a > b, (v * 2, v.sum()), (v + 1, T.zeros(())), name='two')
print(theano.function([a, b, v], both)(1, 0, [1, 2]), theano.function([a, b, v], both)(0, 1, [1, 2]))
grads = theano.function([a, b, v], T.grad(ifelse(a > b, (v ** 2).sum(), (3 * v).sum()), v))
print(grads(1, 0, [1, 2]), grads(0, 1, [1, 2]), isinstance(both[0].owner.op, IfElse))
nested = ifelse(a > 0, ifelse(b > 0, v, -v), T.zeros_like(v))
f = theano.function([a, b, v], nested)
print([f(p, q, [1.]).tolist() for p in (1, -1) for q in (1, -1)])

# graphs as Ops
p, q, s = T.dmatrices('p', 'q', 's')
op = OpFromGraph([p, q, s], [p + q * s, T.dot(p, q)], inline=False)
e1, e2 = op(m, m + 1, m.T)
fn = theano.function([m], [e1, e2, T.grad((e1 * e2).sum(), m)])
for value in fn(np.arange(4.).reshape(2, 2)):
    print(value.tolist())
cube = OpFromGraph([a], [a ** 3], inline=True, grad_overrides=lambda i, g: [g[0] * 100])
print(theano.function([b], [cube(b), T.grad(cube(b), b), cube(cube(b))])(2.))
k = theano.shared(3., name='k')
scaled = OpFromGraph([v], [v * k])
f = theano.function([v], scaled(v) + scaled(v + 1))
print(f([1., 2.]), k.set_value(10.), f([1., 2.]))
