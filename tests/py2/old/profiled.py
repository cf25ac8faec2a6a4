"""Times of functions: profiles that are printed and read, modes with names, a settings file."""
import os
import re
import StringIO
import sys
import tempfile

path = os.path.join(tempfile.mkdtemp(), 'settings')
with open(path, 'w') as f:
    print >> f, '[global]'
    print >> f, 'floatX = float32'
    print >> f, 'cast_policy = custom'
    print >> f, '[blas]'
    print >> f, 'ldflags ='
    print >> f, '[scan]'
    print >> f, 'allow_gc = True'
os.environ['THEANORC'] = path

import numpy as N
import theano
from theano import config, tensor
from theano.compile.mode import get_default_mode, get_mode, Mode

print config.floatX, config.scan.allow_gc, config.blas.ldflags == '', config.cast_policy
print tensor.scalar().dtype, (tensor.bscalar() + .5).dtype, (tensor.lscalar() * 1.).dtype, \
    tensor.cast(2, 'floatX').dtype, tensor.matrix().type
try:
    config.floatX = 'float13'
except Exception, e:
    print type(e).__name__, config.floatX
try:
    print config.no_such_flag
except AttributeError:
    print 'no such flag'
for name in 'exception_verbosity', 'on_unused_input', 'warn_float64', 'allow_gc':
    print name, getattr(config, name),
print


def sections(text):
    """Return the titles of the sections of a profile, and what its functions are called."""
    titles = [re.split(r'[:\s]{2,}|:', line)[0] for line in text.splitlines()
              if re.match(r'[A-Z<]', line)]
    return [t for t in 'Function profiling|Class|Ops|Apply'.split('|')
            if [u for u in titles if u.lstrip('<').startswith(t)]]


x = tensor.matrix('x')
W = theano.shared(N.ones((3, 3), config.floatX), 'W')
y = tensor.tanh(tensor.dot(x, W)).sum(axis=1)
stats = theano.compile.ProfileStats(atexit_print=False)
f = theano.function([x], y, profile=stats, updates={W: W * .5}, name='layer')
for k in range(3):
    out = f(N.ones((2, 3), 'float32'))
print out, out.dtype
text = StringIO.StringIO()
f.profile.summary(file=text, n_ops_to_print=20, n_apply_to_print=20)
text = text.getvalue()
print sections(text), f.profile is stats
print 'Time in 3 calls to Function.__call__' in text, stats.fct_callcount
counts = sorted(set(stats.apply_callcount.values() if hasattr(stats.apply_callcount, 'values')
                    else stats.apply_callcount))
print counts, all(t >= 0 for t in stats.apply_time.values()), len(stats.op_callcount()) > 1
kinds = stats.class_callcount()
print sorted(c.__name__ for c in kinds)[0] == 'DimShuffle' or len(kinds) > 1, sum(kinds.values()) % 3

if hasattr(theano, 'ProfileMode'):
    mode = theano.ProfileMode(optimizer='fast_run', linker=theano.gof.OpWiseCLinker())
    g = theano.function([x], y, mode=mode)
    g(N.ones((2, 3), 'float32'))
    out, sys.stdout = sys.stdout, StringIO.StringIO()
    try:
        mode.print_summary()
        printed = sys.stdout.getvalue()
    finally:
        sys.stdout = out
    assert 'Apply-wise summary' in printed and 'Op-wise summary' in printed, printed

# modes by their names and parts
for name in 'FAST_COMPILE', 'FAST_RUN', Mode(linker='py', optimizer='fast_compile'):
    mode = get_mode(name)
    h = theano.function([x], y, mode=mode)
    print type(mode).__name__, '%.4f' % h(N.ones((1, 3), 'float32'))[0]
mode = get_default_mode().excluding('fusion').including('local_remove_all_assert')
h = theano.function([x], tensor.exp(x) * 2 + 1, mode=mode)
print [n.op.scalar_op.__class__.__name__ for n in h.maker.fgraph.toposort()
       if isinstance(n.op, tensor.Elemwise)][:1], h([[0]])
h = theano.function([x], theano.tensor.opt.assert_(x, x.sum() > 0), mode=mode)
print h([[-1]])
try:
    theano.function([x], theano.tensor.opt.Assert('must grow')(x, x.sum() > 0))([[-1]])
except AssertionError, e:
    print str(e).split('\n')[0]
os.remove(path)
os.rmdir(os.path.dirname(path))
