"""k-means in Theano."""
import optparse
import sys

import numpy as N
import theano
from theano import tensor as TT

def points(k, per, seed):
    rs = N.random.RandomState(seed)
    centers = [(N.cos(i), N.sin(i)) for i in range(0, 2 * k, 2)]
    return N.concatenate([rs.normal(c, .2, (per, 2)) for c in centers])

def compile():
    data, centers = TT.matrices('data', 'centers')
    squares = ((data.dimshuffle(0, 'x', 1) - centers.dimshuffle('x', 0, 1)) ** 2).sum(axis=2)
    nearest = TT.argmin(squares, axis=1)
    member = TT.eq(nearest.dimshuffle(0, 'x'), TT.arange(centers.shape[0]).dimshuffle('x', 0))
    counts = member.sum(axis=0)
    moved = TT.dot(TT.cast(member, data.dtype).T, data) / TT.maximum(counts, 1).dimshuffle(0, 'x')
    return theano.function([data, centers], [moved, nearest, counts, TT.min(squares, axis=1).sum()],
                           name='step')

if __name__ == "__main__":
    parser = optparse.OptionParser()
    parser.add_option('-k', type='int', default=3)
    options, rest = parser.parse_args()
    k = options.k
    x = points(k, 90 // k, seed=2)
    step = compile()
    centers = x[[i * len(x) // k for i in range(k)]]
    last = None
    for iteration in range(sys.maxsize):
        centers, labels, counts, loss = step(x, centers)
        print("iteration", iteration, "loss %.5f" % loss, "counts", counts.tolist())
        if last is not None and last - loss < 1e-9:
            break
        last = loss
    groups = {}
    for label, point in zip(labels, x):
        groups.setdefault(int(label), []).append(tuple(point))
    for label in sorted(groups.keys()):
        members = groups[label]
        middle = sorted(members)[len(members) // 2]
        print(label, len(members), "median (%.3f, %.3f)" % middle)
    longest = max(map(len, groups.values()))
    print("balanced" if longest == len(x) // k else "longest %d" % longest, N.all(counts > 0))
