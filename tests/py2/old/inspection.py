"""What programs look at: printed graphs, nodes of functions, modes that watch, test values, errors."""
import cPickle
import cStringIO
import os
import sys
import warnings

import numpy as np
import theano
import theano.tensor as T
from theano import pp
from theano.compile.monitormode import MonitorMode
from theano.compile.nanguardmode import NanGuardMode
from theano.printing import debugprint, min_informative_str, pydotprint

x, y = T.dmatrices('x', 'y')
v = T.dvector('v')
b = theano.shared(np.array([1., 2.]), name='b')
z = T.nnet.sigmoid(T.dot(x, y) + b)
cost = T.mean(T.sqr(z - v.dimshuffle('x', 0)))

print pp(z)
print pp(T.grad(T.sqr(v).sum(), v))
debugprint(cost)
debugprint([z, cost], depth=2, print_type=True)
print min_informative_str(z)
text = debugprint(z, file='str')
print type(text) is str, len(text.splitlines())
buffered = cStringIO.StringIO()
debugprint(v * 2, file=buffered)
print buffered.getvalue().splitlines()[0]

# variables and nodes
print z, z.name, z.type, z.owner.op, repr(x), str(v.type), v.broadcastable, x.T.owner.op.new_order
print [str(n.op) for n in theano.gof.graph.io_toposort([x, y, b], [z])]
print theano.gof.graph.inputs([cost]), [str(i) for i in theano.gof.graph.ancestors([v * 2])]
c = T.constant(3)
print c, c.data, c.type, T.constant([1., 2.]).type, repr(T.constant(np.ones(2, 'float32')).dtype)
print T.lscalar().type == T.TensorType('int64', ()), T.matrix().type.filter([[1, 2]]).dtype
cloned = theano.clone(cost, replace={v: v + 1})
print theano.function([x, y, v], [cost, cloned])(np.eye(2), np.eye(2), [.5, 1])

# functions
f = theano.function([x, y, theano.In(v, value=[0., 0.], name='weights')], [z, cost], name='f')
print f.name, len(f.maker.inputs), [i.name for i in f.maker.fgraph.inputs], f.get_shared()
print f['weights'], f.value['weights'].shape if hasattr(f.value, '__getitem__') else ''
f['weights'] = [1., 1.]
print f(np.eye(2), np.eye(2))[1], f.finder['x'].value if hasattr(f.finder, '__getitem__') else ''
g = f.copy(share_memory=False, swap={b: theano.shared(np.zeros(2))})
print g(np.eye(2), np.eye(2))[0].tolist() <> f(np.eye(2), np.eye(2))[0].tolist()
small = theano.function([v], v * 2 + 1, mode='FAST_COMPILE')
print small.trust_input, small.unpack_single, small.maker.mode.__class__.__name__, small.nodes_with_inner_function
again = cPickle.loads(cPickle.dumps(small, -1))
print again([1, 2]), again.maker.fgraph is small.maker.fgraph

# modes that watch
seen = []
mode = MonitorMode(pre_func=lambda i, node, fn: seen.append(str(node.op)),
                   post_func=lambda i, node, fn: [o[0].shape for o in fn.outputs])
mode = mode.excluding('local_elemwise_fusion', 'inplace')
print theano.function([v], T.exp(v).sum(), mode=mode)([0, 0]), seen
h = theano.function([v], T.log(v), mode=NanGuardMode(nan_is_error=True, inf_is_error=True,
                                                     big_is_error=False))
try:
    h([-1., 1.])
except AssertionError, e:
    print 'nan found', 'NaN detected' in str(e)
printed = theano.printing.Print('a value', attrs=['shape', 'min'])
theano.function([v], printed(v) + 1)([3, 1])

# values while the graph is built
theano.config.compute_test_value = 'raise'
a, w = T.dmatrix('a'), T.dmatrix('w')
a.tag.test_value = np.ones((2, 3))
w.tag.test_value = np.ones((2, 3))
print (a + w).tag.test_value.sum(), T.dot(a, w.T).tag.test_value.tolist()
try:
    T.dot(a, w)
except ValueError, e:
    print 'shapes do not fit'
theano.config.compute_test_value = 'off'

# errors
for call in (lambda: f(np.ones((2, 3)), np.ones((2, 3))), lambda: f(1), lambda: f(x='a', y=[[2]]),
             lambda: T.dot(x, 'a'), lambda: theano.function([x], y), lambda: x + T.TensorType('int8', ()),
             lambda: T.grad(z, x), lambda: T.grad(cost, T.dscalar()), lambda: bool(x > 1),
             lambda: theano.function([x], x, updates=[(x, x)]),
             lambda: len(x), lambda: theano.function([x, x], x), lambda: theano.shared(x),
             lambda: T.join(0, x, v), lambda: x.dimshuffle(0), lambda: b.set_value([[1.]])):
    try:
        call()
        print 'passed',
    except Exception, e:
        print type(e).__name__,
print
path = os.path.join(os.getcwd(), 'graph.png')
try:
    pydotprint(f, outfile=path, var_with_name_simple=True,
               print_output_file=False)
    os.remove(path)
except (RuntimeError, ImportError, OSError):
    pass
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter('always')
    theano.function([x, v], x, on_unused_input='warn')
print len(caught), theano.config.floatX, theano.config.mode in ('Mode', 'FAST_RUN')
print >> sys.stderr, 'done'
