import configparser
from collections import UserDict

import numpy as np
import theano
import theano.tensor as T


class Registered(type):
    known = {}

    def __new__(cls, name, bases, fields):
        made = type.__new__(cls, name, bases, fields)
        cls.known[name.lower()] = made
        return made


class Cost(metaclass=Registered):
    scale = 0o10

    def __init__(self, weight=1):
        self.weight = weight

    def expr(self, x):
        raise NotImplementedError("%s has no expression" % self.__class__.__name__)

    def __bool__(self):
        return self.weight > 0

    def __floordiv__(self, n):
        return self.__class__(self.weight // n)

    def __eq__(self, other):
        return self.weight == other.weight

    __hash__ = object.__hash__

    def __str__(self):
        return '%s(%d)' % (self.__class__.__name__, self.weight)


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

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Settings(UserDict):
    pass


print('classes:', ' '.join(sorted(Registered.known)), Cost.scale)
x = T.dvector('x')
values = np.array([3., -4.])
for name, kind in sorted(Registered.known.items(), reverse=True):
    cost = kind(7)
    try:
        f = theano.function([x], [cost.expr(x), T.grad(cost.expr(x), x)], name=name)
        value, gradient = f(values)
        print(cost, '%.3f' % value, gradient)
    except NotImplementedError as problem:
        text = str(problem)
        print('refused:', text)
print('kept after its block:', text)

half = Square(7) // 2
print(half, bool(half // 9), half == Square(3), len({half, half, Square(3)}))
print(list(Countdown(3)), next(Countdown(1)))

settings = Settings()
settings['rate'] = 1 // 2
print('rate' in settings, list(settings), list(settings.values())[0], 1 / 2., 7 // 2, -7 // 2)

counts = {}
for letter in 'abracadabra':
    counts[letter] = counts.get(letter, 0) + 1
pairs = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
print(pairs[:2], ''.join(c for c in 'abcd' if c > 'b'), [(1, 'a'), (2, None)],
      list(zip('ab', (1, 2))))

scope = {'n': 9}
exec('root = n // 2', scope)
print(scope['root'], eval('n // 4', scope), repr(scope['n']), 0xFF, 'text', r'\d')
print(isinstance(3, int), type('') is str, type(None) is type(None))
print(True, list(range(3)) + [3], [1, 2], 3.0, True, -1)

integers = T.ivector('integers')
thirds = theano.function([integers], [integers // 3, (integers // 3).sum() // integers.shape[0]])
print(thirds([7, -7, 8]), (integers // 2).dtype, (integers / 2.).dtype)
a = np.arange(5)
a //= 2
a[1:3] //= 2
settings.total = 9
settings.total //= 2
print(a, a // 2, a.dtype.kind, settings.total, True, True, np.ones(1).item())

parser = configparser.ConfigParser()
parser.add_section('net')
parser.set('net', 'units', '12')
print(parser.getint('net', 'units') // 5, parser.sections())
