import ConfigParser
import string
import sys
import types
from UserDict import UserDict

import numpy as np
import theano
import theano.tensor as T


class Registered(type):
    known = {}

    def __new__(cls, name, bases, fields):
        made = type.__new__(cls, name, bases, fields)
        cls.known[name.lower()] = made
        return made


class Cost(object):
    __metaclass__ = Registered
    scale = 010

    def __init__(self, weight=1L):
        self.weight = weight

    def expr(self, x):
        raise NotImplementedError, "%s has no expression" % self.__class__.__name__

    def __nonzero__(self):
        return self.weight > 0

    def __div__(self, n):
        return self.__class__(self.weight / n)

    def __eq__(self, other):
        return self.weight == other.weight

    def __unicode__(self):
        return u'%s(%d)' % (self.__class__.__name__, self.weight)


class Square(Cost):
    def expr(self, x):
        return self.weight * T.sqr(x).sum()


class Absolute(Cost):
    def expr(self, x):
        return self.weight * abs(x).sum()


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def next(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Settings(UserDict):
    pass


print 'classes:', string.join(sorted(Registered.known), ' '), Cost.scale
x = T.dvector('x')
values = np.array([3., -4.])
for name, kind in sorted(Registered.known.iteritems(), cmp=lambda a, b: cmp(b[0], a[0])):
    cost = kind(7)
    try:
        f = theano.function([x], [cost.expr(x), T.grad(cost.expr(x), x)], name=name)
        value, gradient = f(values)
        print unicode(cost), '%.3f' % value, gradient
    except NotImplementedError, problem:
        print 'refused:', problem
print 'kept after its block:', problem.message

half = Square(7) / 2
print unicode(half), bool(half / 9), half == Square(3), len(set([half, half, Square(3)]))
print list(Countdown(3)), Countdown(1).next()

settings = Settings()
settings['rate'] = 1 / 2
print settings.has_key('rate'), settings.keys(), settings.values()[0], 1 / 2., 7 // 2, -7 / 2

counts = {}
for letter in 'abracadabra':
    counts[letter] = counts.get(letter, 0) + 1
pairs = counts.items()
pairs.sort(lambda a, b: cmp((-a[1], a[0]), (-b[1], b[0])))
print pairs[:2], filter(lambda c: c > 'b', 'abcd'), map(None, [1, 2], 'a'), zip('ab', (1, 2))

scope = {'n': 9}
exec 'root = n / 2' in scope
print scope['root'], eval('n / 4', scope), `scope['n']`, 0xFFL, u'text', ur'\d'
print isinstance(3L, (int, long)), type('') is types.StringType, type(None) is types.NoneType
print sys.maxint > 2 ** 31 - 1, range(3) + [3], [k for k in 1, 2],
print round(2.5), round(-0.5) == -1.0, cmp(1, 2)

integers = T.ivector('integers')
thirds = theano.function([integers], [integers / 3, (integers / 3).sum() / integers.shape[0]])
print thirds([7, -7, 8]), (integers / 2).dtype, (integers / 2.).dtype
a = np.arange(5)
a /= 2
a[1:3] /= 2
settings.total = 9
settings.total /= 2
print a, a / 2, a.dtype.kind, settings.total, np.float is float, np.bool(1), np.asscalar(np.ones(1))

parser = ConfigParser.ConfigParser()
parser.add_section('net')
parser.set('net', 'units', '12')
print parser.getint('net', 'units') / 5, parser.sections()
