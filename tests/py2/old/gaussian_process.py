"""Regression by a Gaussian process: marginal likelihood, its gradients, and linear algebra."""
import numpy as np
import theano
import theano.tensor as T
import theano.tensor.slinalg as sl
from theano.tensor import nlinalg as nl
from theano.tensor.slinalg import Cholesky, Solve, cholesky, solve
from theano.sandbox.linalg import ops as old

theano.config.compute_test_value = 'off'


def squared_distances(X, Z):
    return (T.sum(X ** 2, 1).dimshuffle(0, 'x') + T.sum(Z ** 2, 1).dimshuffle('x', 0)
            - 2 * T.dot(X, Z.T))


class Kernel:
    def __init__(self, **parameters):
        self.shared = {k: theano.shared(np.float64(np.log(v)), name=k)
                       for k, v in parameters.items()}

    def __getattr__(self, name):
        if name == 'shared':
            raise AttributeError(name)
        try:
            return T.exp(self.shared[name])
        except KeyError:
            raise AttributeError(name)

    def __add__(self, other):
        return Sum(self, other)


class RBF(Kernel):
    def __call__(self, X, Z):
        return self.height * T.exp(-squared_distances(X, Z) / (2 * self.length ** 2))


class White(Kernel):
    def __call__(self, X, Z):
        return T.switch(T.eq(X.shape[0], Z.shape[0]), self.noise, 0.) * T.eye(X.shape[0], Z.shape[0])


class Sum(Kernel):
    def __init__(self, *kernels):
        self.kernels = kernels
        self.shared = {}
        for kernel in kernels:
            self.shared.update(kernel.shared)

    def __call__(self, X, Z):
        return sum(k(X, Z) for k in self.kernels)


class GP:
    def __init__(self, kernel):
        X, y, Z = T.dmatrix('X'), T.dvector('y'), T.dmatrix('Z')
        K = kernel(X, X)
        L = cholesky(K)
        alpha = Solve('lower_triangular')(L, y)
        nll = (0.5 * T.sum(alpha ** 2) + T.sum(T.log(T.diag(L)))
               + 0.5 * X.shape[0] * np.log(2 * np.pi))
        other = 0.5 * (T.dot(y, T.dot(nl.matrix_inverse(K), y)) + T.log(nl.det(K))
                       + X.shape[0] * np.log(2 * np.pi))
        self.params = [p for _, p in sorted(kernel.shared.items())]
        grads = T.grad(nll, self.params)
        self.check = theano.function([X, y], [nll, other] + grads + T.grad(other, self.params))
        self.step = theano.function([X, y], nll,
                                    updates=[(p, p - 0.02 * g) for p, g in zip(self.params, grads)])
        v = sl.solve_lower_triangular(L, kernel(X, Z))
        mean = T.dot(v.T, alpha)
        variance = T.diag(kernel(Z, Z)) - T.sum(v ** 2, axis=0)
        self.predict = theano.function([X, y, Z], [mean, variance], allow_input_downcast=True)


rng = np.random.RandomState(0)
X = np.sort(rng.uniform(-3, 3, (25, 1)), axis=0)
y = np.sin(2 * X[:, 0]) + rng.normal(0, 0.1, 25)
gp = GP(RBF(height=1.0, length=1.0) + White(noise=0.1))
values = np.array(gp.check(X, y))
print('agree', np.allclose(values[0], values[1]), np.allclose(values[2:5], values[5:]))
for i in range(150):
    nll = gp.step(X, y)
    if i % 50 == 49:
        print('step', i + 1, 'nll %.4f' % nll, ['%s %.3f' % (p.name, np.exp(p.get_value()))
                                               for p in gp.params])
mean, variance = gp.predict(X, y, [[-1.], [0.], [4.]])
print(np.round(mean, 3), np.round(variance, 3))

# what the linear algebra gives
A, b = T.dmatrix('A'), T.dvector('b')
a = np.array([[4., 1, 0], [1, 3, 1], [0, 1, 2]])
r = np.arange(3.) + 1
f = theano.function([A, b], [
    nl.det(A), nl.trace(A), nl.matrix_inverse(A), solve(A, b), nl.eigh(A)[0], nl.svd(A, 0, 0),
    nl.pinv(A[:, :2]), nl.qr(A)[1].shape, sl.expm(A / 10), sl.kron(A[:1], A[:, :1]),
    nl.matrix_power(A, 3), nl.matrix_dot(A, A, b), nl.alloc_diag(b), nl.extract_diag(A),
    sl.eigvalsh(A, T.eye(3)), nl.tensorsolve(A.reshape((3, 1, 3)), b.dimshuffle(0, 'x')), nl.norm(A, 'fro'),
    old.psd(A).sum(), old.spectral_radius_bound(A, 4), nl.lstsq()(A, b, -1)[0]])
for name, value in zip('det trace inv solve eigh svd pinv qr expm kron power dot diag extract '
                       'eigvalsh tensorsolve norm psd radius lstsq'.split(), f(a, r)):
    print(name, np.round(value, 4).tolist())
for name, g in [('det', nl.det(A)), ('logdet', T.log(nl.det(A))), ('inv', nl.matrix_inverse(A).sum()),
                ('chol', cholesky(A).sum()), ('eigh', nl.eigh(A)[0].max()), ('solve', solve(A, b).sum()),
                ('expm', sl.expm(A / 10).sum()), ('kron', sl.kron(A, A[:2, :2]).sum())]:
    print(name, np.round(theano.function([A, b], T.grad(g, A), on_unused_input='ignore')(a, r),
                         4).tolist())
try:
    theano.function([A], cholesky(A))(-a)
except np.linalg.LinAlgError as e:
    print('not positive definite')
print(np.isnan(theano.function([A], Cholesky(lower=False, on_error='nan')(A))(-a)).all())
print(theano.function([A], Cholesky(lower=False)(A))(a).round(3).tolist())
try:
    theano.function([A], nl.matrix_inverse(A))(np.ones((2, 2)))
except np.linalg.LinAlgError as e:
    print(str(e).splitlines()[0])
