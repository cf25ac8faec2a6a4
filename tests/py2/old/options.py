#!/usr/bin/env python
# -*- coding: utf-8 -*-
"""Arguments of functions: defaults, updates, givens, names, casts, borrowing, copies, pickles."""
from __future__ import absolute_import, print_function, division

import copy
import pickle
import sys
import warnings

import numpy
import theano
from theano import In, Out, function, shared
from theano import tensor as tt
from theano.compile.function_module import UnusedInputError
from theano.tensor.shared_randomstreams import RandomStreams

warnings.simplefilter('ignore')


def attempt(label, call):
    try:
        result = call()
    except Exception as e:
        print(label, '!', type(e).__name__)
    else:
        print(label, result)


x, y, w = tt.dscalars('x', 'y', 'w')
s = shared(10., name='s')

f = function([x, In(y, value=1), In(w, value=2, name='w_by_name')], (x + y) * w)
print(f(33), f(33, 2), f(33, 0, 1), f(33, w_by_name=1), f(33, w_by_name=1, y=0))
attempt('no name', lambda: f(33, w=1))
attempt('twice', lambda: f(33, x=1))
attempt('missing', lambda: f())
attempt('many', lambda: f(1, 2, 3, 4))

# states
state = shared(0)
inc = tt.iscalar('inc')
accumulator = function([inc], state, updates=[(state, state + inc)])
decrement = function([inc], state, updates={state: state - inc})
print(accumulator(1), accumulator(300), state.get_value(), decrement(2), state.get_value())
state.set_value(-1)
print(accumulator(3), state.get_value())
foo = tt.scalar(dtype=state.dtype)
skip = function([inc, foo], state * 2 + inc, givens=[(state, foo)])
print(skip(1, 3), state.get_value())
other = accumulator.copy(swap={state: shared(0)})
print(other(100), other(0), state.get_value(), accumulator(0))
silent = accumulator.copy(delete_updates=True)
print(silent(100), silent(100))
attempt('dtype of an update', lambda: function([], [], updates=[(state, state * 1.5)]))
attempt('two updates', lambda: function([], updates=[(s, s + 1), (s, s + 2)]))
attempt('no shared', lambda: function([x], x, updates=[(x, x + 1)]))
attempt('given type', lambda: function([x], x, givens={x: tt.dvector()}))
pair = function([In(x, update=x * y, value=2., mutable=True), y], x)
print(pair(y=3), pair(y=3), pair[x], pair['x'])
swap_a, swap_b = shared(1., 'a'), shared(2., 'b')
both = function([], [swap_a, swap_b], updates=[(swap_a, swap_b), (swap_b, swap_a)])
print(both(), both(), swap_a.get_value())

# default updates
counter = shared(5)
counter.default_update = counter + 1
print([function([], counter)() for _ in range(2)], function([], counter, no_default_updates=True)(),
      function([], counter, no_default_updates=[counter])(),
      function([], counter, updates=[(counter, counter * 10)])(), counter.get_value())
streams = RandomStreams(seed=234)
u = streams.uniform((2, 2))
rv = function([], u)
fixed = function([], u, no_default_updates=True)
nearly_zeros = function([], u + u - 2 * u)
print(rv().round(4).tolist(), (fixed() == fixed()).all(), abs(nearly_zeros()).max() < 1e-12)
generator = u.rng.get_value(borrow=True)
generator.seed(89234)
u.rng.set_value(generator, borrow=True)
first = rv()
streams.seed(902340)
print(first[0].round(4), rv()[0].round(4), len(streams.state_updates))
saved = u.rng.get_value().get_state()[1][:3].tolist()
print(saved == u.rng.get_value().get_state()[1][:3].tolist())

# casts
v = tt.fvector('v')
attempt('float64 for float32', lambda: function([v], v)(numpy.array([.1])))
attempt('a list', lambda: function([v], v)([1, 2]).dtype)
attempt('downcast', lambda: function([v], v, allow_input_downcast=True)(numpy.array([.1])))
attempt('strict', lambda: function([In(v, strict=True)], v)([1]))
attempt('int', lambda: function([tt.bvector()], [], on_unused_input='ignore')([300]))
attempt('scalar for a vector', lambda: function([v], v)(3))
attempt('nan', lambda: function([x], tt.isnan(x))(float('nan')))
attempt('text', lambda: function([x], x)('abc'))
attempt('unused', lambda: function([x, y], x))
attempt('is UnusedInputError', lambda: issubclass(UnusedInputError, Exception))
attempt('int8 + 0.5', lambda: (tt.bscalar() + .5).dtype)

# outputs
attempt('none', lambda: function([x], [])(1))
attempt('list', lambda: function([x], [x])(1))
attempt('dict', lambda: sorted(function([x], {'double': 2 * x, 'same': x})(1.).items()))
attempt('subset', lambda: function([x], [x, x + 1, x + 2])(1., output_subset=[0, 2]))
attempt('borrowed', lambda: function([v], Out(v * 2, borrow=True))([1.]))
attempt('constants', lambda: function([], [3, tt.constant(2.)])())
attempt('of None', lambda: function([x], None)(2))

# borrowing and copies
array = numpy.ones(2)
s_false, s_true = shared(array, borrow=False), shared(array, borrow=True)
array += 1
print(s_false.get_value(), s_true.get_value(), s_true.get_value(borrow=True) is array,
      s_true.get_value(borrow=True, return_internal_type=True).dtype)
s_true.set_value(numpy.zeros(3))
attempt('other ndim', lambda: s_true.set_value(numpy.zeros((2, 2))))
attempt('of what', lambda: shared([1, 2]).type)
attempt('generic', lambda: shared({'a': 1}).type)
attempt('broadcastable', lambda: shared(numpy.ones((1, 3)), broadcastable=(True, False)).type)
attempt('clone', lambda: (s_true.clone().get_value() == s_true.get_value()).all())

model = {'W': shared(numpy.eye(2), name='W'), 'step': None}
model['step'] = function([], model['W'].sum(), updates=[(model['W'], model['W'] * 2)])
for protocol in (0, 2, pickle.HIGHEST_PROTOCOL):
    loaded = pickle.loads(pickle.dumps(model, protocol=protocol))
    print(protocol > 2, loaded['step'](), loaded['W'].get_value()[0], model['W'].get_value()[0])
deep = copy.deepcopy(accumulator)
print(deep(5), deep(0), accumulator(0), isinstance(deep.maker.mode, theano.Mode))
sys.setrecursionlimit(3000)
z = x
for _ in range(40):
    z = tt.tanh(z) + x
graph = pickle.loads(pickle.dumps((x, z)))
print('%.6f %.6f' % (function([graph[0]], graph[1])(.3), z.eval({x: .3})))
attempt('eval', lambda: (x + y).eval({x: 1, y: 2}))
attempt('eval without', lambda: (x + y).eval({x: 1}))
for name, value in sorted({'b': 2, 'a': 1}.items()):
    print(name, value / 2, end='; ')
print()
