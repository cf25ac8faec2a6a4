"""Expressions of numpy that are compared with numpy itself, by what they are about."""

import numpy as np

UNARY = """
negative positive absolute fabs sign square sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan
arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh logical_not invert isnan isinf
isfinite floor ceil trunc rint conjugate reciprocal deg2rad rad2deg radians degrees cbrt signbit
spacing
""".split()
BINARY = (
    "add subtract multiply divide floor_divide remainder power float_power maximum minimum fmax "
    "fmin less less_equal equal not_equal greater greater_equal logical_and logical_or logical_xor "
    "bitwise_and bitwise_or bitwise_xor left_shift right_shift arctan2 logaddexp logaddexp2 hypot "
    "copysign nextafter fmod gcd lcm heaviside ldexp"
).split()
OPERATORS = "+ - * / // % < <= == != > >= & | ^".split()
#: of two arrays x and y of one shape
ELEMENTWISE = [
    *(f"np.{name}(x)" for name in UNARY),
    *(f"np.{name}(x, y)" for name in BINARY),
    *(f"x {operator} y" for operator in OPERATORS),
    *(
        f"x {operator} {number}"
        for operator in [*OPERATORS, "**", "<<", ">>"]
        for number in ("2", "3", "-1", "300", "2.5", "True", "1j")
        if (operator, number) != ("<<", "3")
    ),
    *(
        f"{number} {operator} x"
        for operator in "+ - * / // % ** < == >> <<".split()
        for number in ("2", "2.5")
    ),
    *"""
divmod(x, y)
np.modf(x)
np.frexp(x)
abs(x)
-x
~x
x ** 0.5
x + np.float32(2)
x + np.int8(3)
np.add(x, y, dtype='float64')
np.add(2, x)
x * x.dtype.type(2)
+x
x == x
x != x
x <= x
x >= x
x < x
x + [1]
np.add.outer(x, y)
np.multiply.outer(x, y)
""".strip().splitlines(),
]
AXES = (
    "",
    ", axis=0",
    ", axis=1",
    ", axis=-1",
    ", axis=(0, 1)",
    ", axis=()",
    ", axis=0, keepdims=True",
    ", keepdims=True",
)
#: of a matrix x, a matrix y of its shape, and a mask m of its shape
REDUCTIONS = [
    *(
        f"np.{name}(x{axis})"
        for name in "sum prod max min mean var std any all ptp count_nonzero median nansum nanmean "
        "nanprod".split()
        for axis in AXES
        if not (name == "median" and axis == ", axis=()")
    ),
    *(
        f"x.{name}({axis[2:]})"
        for name in "sum prod max min mean var std any all".split()
        for axis in AXES
    ),
    *(
        f"np.{name}(x{axis})"
        for name in ("argmax", "argmin", "cumsum", "cumprod", "sort", "argsort")
        for axis in ("", ", axis=0", ", axis=1", ", axis=None")
    ),
    *"""
np.argmax(x, axis=1, keepdims=True)
np.argmax(x, keepdims=True)
np.sum(x, axis=1, dtype='float32')
np.sum(x, initial=3)
np.max(x, initial=3)
np.sum(x, where=m)
np.mean(x, where=m)
np.max(x, where=m, initial=0)
np.sum(x, axis=0, where=m)
np.var(x, ddof=1)
np.std(x, axis=0, ddof=1)
np.var(x, axis=1, where=m)
np.average(x, axis=0)
np.average(x, axis=1, weights=y)
np.add.reduce(x)
np.add.reduce(x, axis=1)
np.multiply.reduce(x)
np.maximum.reduce(x, axis=None)
np.add.accumulate(x)
np.logical_or.reduce(x)
np.diff(x)
np.diff(x, axis=0)
np.diff(x, n=2)
np.diff(x, prepend=0)
np.ediff1d(x)
np.cumulative_sum(x, axis=1)
np.round(x)
np.round(x, 1)
np.round(x, -1)
x.round(2)
np.clip(x, 1, 3)
np.clip(x, None, 2)
np.clip(x, -1, 300)
np.clip(x, y, 3)
x.clip(1, 2)
np.fix(x)
np.where(m, x, y)
np.where(m, x, 0)
np.where(m, 1, 2.5)
np.where(x > 1, x, -1)
np.where(m, 2, x)
np.where(m, x, y[0])
np.where(m)
np.nonzero(x)
np.argwhere(m)
np.flatnonzero(x)
np.select([x > 2, x > 1], [x, y], 7)
np.unique(x)
np.unique_values(x)
np.unique_counts(x)
np.unique_all(x)
np.unique_inverse(x)
np.cumulative_prod(x, axis=0)
np.cumulative_prod(x[0], include_initial=True)
np.unstack(x, axis=1)
np.unique(x, return_counts=True)
np.unique(x, return_inverse=True, return_index=True)
np.searchsorted(np.sort(x[0]), y)
np.digitize(x, [1, 2, 3])
np.histogram(x, bins=4)
np.histogram(x, bins=[0, 1, 2, 5])
np.percentile(x, 30)
np.quantile(x, [0.1, 0.5])
np.quantile(x, 0.25, axis=0)
np.isclose(x, y)
np.allclose(x, x)
np.array_equal(x, y)
np.array_equal(x, x[0])
np.nan_to_num(x)
np.take(x, [2, 0])
np.take(x, [2, 0], axis=1)
x.take([1, 1], axis=0)
np.take(x, 1, axis=0)
np.take(x, [5, -7], mode='wrap')
np.take_along_axis(x, np.argsort(x, axis=1), axis=1)
np.compress([True, False, True], x, axis=1)
np.extract(m, x)
np.trace(x)
np.trace(x, 1)
x.item(1, 2)
x[0, 0].item()
np.interp(x, [0., 2, 4], [1., 3, 2])
x.argmax()
x.argsort()
x.cumsum(1)
np.partition(x, 1)[:, 1]
(x.sum() + x.mean()) * 2
float(3) * x.sum()
x.max() - np.float32(1)
x.real
x.imag
np.real(x)
np.imag(x)
np.conj(x)
x.conj()
""".strip().splitlines(),
]
# an int of Python in old releases of numpy, where a traced function returns numpy's
if type(np.count_nonzero(np.ones(1))) is int:
    REDUCTIONS = [text for text in REDUCTIONS if "count_nonzero" not in text]
#: of a matrix x, a matrix y of its shape, a vector v as long as its rows, and an array z of rank 3
SHAPES = [
    *"""
x.T
x.transpose()
x.transpose(1, 0)
np.transpose(z, (2, 0, 1))
z.transpose((1, 0, 2))
np.swapaxes(z, 0, 2)
z.swapaxes(0, 1)
np.moveaxis(z, 0, -1)
np.moveaxis(z, [0, 1], [2, 0])
np.rollaxis(z, 2)
x.mT
np.matrix_transpose(z)
x.reshape(-1)
x.reshape(x.size)
x.reshape(x.shape[1], x.shape[0])
x.reshape((x.shape[1], -1))
x.reshape(1, *x.shape)
np.reshape(z, (z.shape[0], -1))
np.reshape(x, -1, order='F')
x.T.reshape(-1)
x.ravel()
x.ravel(order='F')
x.flatten()
x.T.flatten()
np.ravel(z)
x[:, None].squeeze()
np.squeeze(x[None])
np.squeeze(x[:, None], axis=1)
np.squeeze(x[:1], 0)
x[1:2].squeeze()
np.expand_dims(x, 0)
np.expand_dims(x, (0, 2))
np.expand_dims(x, -1)
x.copy()
np.copy(x)
np.broadcast_to(v, (4, *v.shape))
np.broadcast_to(x[:, :1], x.shape)
np.broadcast_arrays(x, v)
np.atleast_1d(x[0, 0])
np.atleast_2d(v)
np.atleast_1d(x)
np.concatenate([x, y])
np.concatenate([x, y], axis=1)
np.concatenate((x, y), axis=None)
np.concatenate([x, x[:1]])
np.concatenate([x, v[None]])
np.stack([x, y])
np.stack([x, y], axis=1)
np.stack([x, y], axis=-1)
np.stack([x[0, 0], x[0, 1]])
np.vstack([x, v])
np.hstack([x, y])
np.hstack([v, v])
np.column_stack([v, v])
np.append(x, y)
np.append(v, 3)
np.append(x, y, axis=0)
np.array_split(x, 2)
np.split(x, [1], axis=1)
np.split(x, [1, 2])
np.flip(x)
np.flip(x, 0)
np.flipud(x)
np.fliplr(x)
np.rot90(x)
np.rot90(x, 2)
np.rot90(x, 3)
np.roll(x, 1)
np.roll(x, -2, axis=1)
np.roll(x, (1, 2), axis=(0, 1))
np.roll(v, 7)
np.roll(v, 0)
np.tile(v, 3)
np.tile(x, (2, 1))
np.tile(x, 2)
np.repeat(x, 2)
np.repeat(x, 2, axis=1)
x.repeat(3, axis=0)
np.repeat(v, [1] * v.shape[0])
np.pad(x, 1)
np.pad(v, (1, 2))
np.pad(x, ((0, 1), (2, 0)), constant_values=5)
np.pad(x, 1, mode='edge')
np.pad(v, 1, mode='wrap')
np.pad(x, 1, mode='reflect')
np.zeros_like(x)
np.ones_like(x)
np.full_like(x, 3)
np.zeros_like(x, dtype='int8')
np.zeros_like(x, shape=(2, 2))
x.astype('float32')
x.astype(int)
x.astype(bool)
x.astype('complex128')
x[0, 0].astype('float32')
x.astype('uint8')
np.diagonal(x)
np.diagonal(x, 1)
x.diagonal(-1)
np.diagonal(z, 0, 1, 2)
np.diag(v)
np.diag(v, 1)
np.diag(v, -2)
np.diag(x)
np.tril(x)
np.triu(x)
np.tril(x, 1)
np.triu(x, -1)
np.triu(z)
np.meshgrid(v, v)
np.meshgrid(v, x[:, 0], indexing='ij')
np.shape(x[0])
np.ndim(x)
x.ndim
len(x.shape)
x.dtype
x.itemsize
np.result_type(x, 1.0)
x.T.ndim
list(x)
tuple(v)
[r.sum() for r in x]
np.linspace(x[0, 0].real, 5., 4)
np.concat([x, y])
np.astype(x, 'float64')
np.permute_dims(x, (1, 0))
x[...]
x.nbytes == x.size * x.itemsize
len(x)
bool(x.ndim)
""".strip().splitlines(),
]
#: of a matrix x of at least 3 rows and 4 columns, an array z of rank 3 and a vector of ints i
INDICES = [
    *"""
x[0]
x[-1]
x[1, 2]
x[-1, -1]
x[0, :]
x[:, 0]
x[1:]
x[:-1]
x[::2]
x[::-1]
x[2:0:-1]
x[:, 1:3]
x[1:, ::-2]
x[5:]
x[-100:100]
x[3:1]
x[...]
x[..., 0]
x[0, ...]
x[..., 1, 2]
x[None]
x[:, None]
x[None, :, None]
x[..., None]
x[0, None]
x[()]
z[0, 1]
z[:, 0, 1:]
z[..., -1]
z[1, ..., 0]
z[None, 0]
x[i]
x[:, i]
x[i, i]
x[i[:, None], i]
x[i, 0]
x[0, i]
x[i, None]
x[None, i]
x[1:, i]
x[i, 1:]
x[i, ::-1]
z[i]
z[:, i]
z[..., i]
z[i, :, i]
z[i, i]
z[:, i, i]
z[0, :, i]
z[i, :, 0]
z[:, 0, i]
z[0, i]
z[i, 0]
z[i, ..., i]
z[1:, i, :2]
z[i[:, None], :, i]
z[:, None, i]
z[i, None, i]
z[:, i, None, 0]
x[[0, 2]]
x[[0, -1], [1, 2]]
x[[True, False, True]]
x[x > 1]
x[~(x > 1)]
x[x[:, 0] > 0]
x[:, x[0] > 0]
x[x[:, 0] > 0, 1]
x[x[:, 0] > 0, :2]
z[z > 0]
z[z[:, :, 0] > 0]
z[:, z[0] > 0]
z[0][x[:2, :3] > 1]
x[np.array([], int)]
x[[]]
x[np.nonzero(x)]
x[np.argmax(x[:, 0])]
x[i[0]]
x[i[0]:]
x[:i[1] + 2, i[0]]
x[np.int8(1)]
x[np.array(1)]
x[i.astype('uint8')]
x[:, ::-1][:, 0]
x[1:][0]
x.T[1]
x.T[1:, ::-1].T[0]
x[7]
x[0, 9]
x[1.0]
x[0, 0, 0]
x['a']
z[i, [0, 1, 0, 1, 0, 1, 0]]
x[x[:2] > 0]
x[-5]
z[..., None].sum(-1)
x[0:1] * x
x[0:1, 0:1] + x
x[:, -1:] * x
x[0][0]
x[0][1:][0]
""".strip().splitlines(),
]
#: statements over copies of the arrays, and what they changed
WRITES = [
    *"""
x[0] = 5
x[1, 2] = 7
x[:, 0] = 2
x[1:] = 0
x[::2] = y[::2]
x[::-1] = y
x[:] = v
x[...] = 1
x[:, ::-1] = v
x += 1
x *= y
x -= v
x[0] += 1
x[:, 1] *= 2
x[1:, 1:] += x[:-1, :-1]
x[i] = 3
x[i] += 1
np.add.at(x, i, 1)
np.add.at(x, (i, i), 2)
np.subtract.at(x, i, y[i])
x[:, i] = 4
x[i, i] = 9
x[i[:, None], i] = 1
x[x > 1] = 0
x[x > 1] += 5
x[x[:, 0] > 0] = v
x[:, v > 0] = 3
x[x > 1] = x[x > 1] * 2
x.T[0] = 3
x.T[1:, 0] += 2
x[1][2] = 8
x[1:][0][1:] = 6
a = x[1]; a[:] = 3; a[0] += 1
a = x.T; a += 1; x[0] = 0
a = x[0]; b = x[:, 0]; a[0] = 9; b[1] = a[0] + b[0]
a = x; a += 1; y[...] = x
a = x.copy(); a += 1
a = x[1:]; x[1] = 7; y[0] = a[0]
np.fill_diagonal(x, 3)
x.fill(2)
np.copyto(x, y)
np.copyto(x, 1, where=x > 1)
np.add(x, y, out=x)
np.add(x, 1, out=y, where=x > 0)
np.multiply(x, 2, out=x[:, :])
x.sort()
x.sort(axis=0)
np.sum(x, axis=0, out=y[0])
x[0], x[1] = x[1].copy(), x[0].copy()
x[[0, 1]] = x[[1, 0]]
x[0] = x[1] = 5
x.real[0] = 3
np.put(x, [0, 3, -1], [7, 8])
x.T.put([1, 2], 5)
np.place(x, x > 1, [5, 6])
np.putmask(x, x > 1, y)
x[1:] = x[:-1]
x[:, 0] = x[0, 0]
x[None, 0] = 2
x.reshape(x.shape)[0] = 4
a = x.copy().reshape(-1); a[3] = 5; x[0] = a[:x.shape[1]]
a = np.zeros_like(x); a.reshape(-1)[2] = 1; x += a
a = np.zeros_like(x); b = a.ravel(); b[1] = 3; x[...] = a
x[0] = [1] * x.shape[1]
x[0, :2] = [1, 2]
x[5] = 1
x[:, 0] = v
x[0] = y
x[0] = 2.7
x[0, 0] = True
x[i] = y[i] * 2
x[:2] += y[:2, ::-1]
x -= x.mean()
x[0] -= x[0].max()
x //= 2
x **= 2
x /= 2
x @= x
x[..., 0] += v[0]
a = x[:, :2]; a *= 3
a = x[1:2]; a[0, 0] = 5
a = x.diagonal(); y[0, 0] = 3; x[0, 0] = 8; y[1, 1] = a[0]
x &= 1
x <<= 1
a = x[i]; a[0] = 5
a = x[0, 0]; a += 1; x[1, 1] = a
np.put_along_axis(x, np.argmax(x, 1)[:, None], 0, 1)
x[x == x.max()] = 0
x[-1] = x[0]
a = np.squeeze(x[:1]); a[0] = 3
a = np.expand_dims(x, 0); a[0, 1] = 2
a = np.swapaxes(x, 0, 1); a[0] = a[1]
a = np.flip(x); a[0] = 1
v[0] = 3
a = np.asarray(x) if False else x; a[0] = 1
x[0, x[0] > 0] = 1
x[y > 1] = y[y > 1]
x[0][x[0] > 1] = 7
np.clip(x, 0, 1, out=x)
""".strip().splitlines(),
]

#: of matrices a (3, 4), b (4, 5), a square matrix s, a positive definite matrix p, vectors v (4)
#: and w (3), a stack t (2, 3, 3)
LINEAR = [
    *"""
a @ b
a @ v
w @ a
v @ v
np.dot(a, b)
a.dot(v)
np.dot(v, v)
np.dot(a, 2)
np.dot(t, w)
np.dot(t, t)
t @ t
t @ s[:3, :3]
s[:3, :3] @ t
t @ w
w @ t
t[:1] @ t
t[:, None] @ t
np.matmul(a, b)
np.inner(a, v)
np.inner(v, v)
np.inner(a, a)
np.outer(v, w)
np.vdot(v, v)
np.vdot(a, a)
np.kron(a, v)
np.kron(a[:2], a[:, :2])
np.tensordot(a, b, 1)
np.tensordot(t, t, axes=([1, 2], [1, 2]))
np.tensordot(t, a, axes=([2], [0]))
np.tensordot(v, w, 0)
np.vecdot(a, v)
np.einsum('ij,jk->ik', a, b)
np.einsum('ij,jk', a, b)
np.einsum('ii', s)
np.einsum('ii->i', s)
np.einsum('ij->ji', a)
np.einsum('ij->', a)
np.einsum('ij->j', a)
np.einsum('i,j->ij', v, w)
np.einsum('bij,bjk->bik', t, t)
np.einsum('...ij,...jk->...ik', t, t)
np.einsum('...i,i->...', a, v)
np.einsum('ij,ij->i', a, a)
np.einsum('i,i', v, v)
np.einsum('ij,jk,k->i', a, b, b[0])
np.einsum('bij->bji', t)
np.einsum('bij,bij->', t, t)
np.einsum('ij,kj->ik', a, a)
np.einsum('iij->j', t[:, :2])
np.einsum('i...->...', t)
np.cross(w, w[::-1])
np.cross(t, w)
a @ a
np.dot(v, w)
np.linalg.norm(a)
np.linalg.norm(v, 1)
np.linalg.norm(v, np.inf)
np.linalg.norm(a, axis=1)
np.linalg.norm(a, axis=0, keepdims=True)
np.linalg.norm(a, 'fro')
np.linalg.norm(a, 1)
np.linalg.norm(a, np.inf)
np.linalg.norm(a, 2)
np.linalg.norm(v, 3)
np.linalg.norm(v, 0)
np.linalg.norm(a, ord=1, axis=1)
np.linalg.norm(a, 'nuc')
np.linalg.inv(p)
np.linalg.inv(t + 9 * np.eye(3))
np.linalg.det(p)
np.linalg.det(t)
np.linalg.slogdet(p)
np.linalg.solve(p, p[0])
np.linalg.solve(p, p[:, :2])
np.linalg.solve(t + 9 * np.eye(3), t)
np.linalg.cholesky(p)
np.linalg.qr(a)
np.linalg.qr(a.T)
np.linalg.qr(a, mode='r')
np.linalg.eigh(p)
np.linalg.eigvalsh(p)
np.linalg.cond(a)
np.linalg.cond(s, -2)
np.linalg.cond(t, 2)
np.linalg.cond(s * 0)
np.linalg.cond(s, 1)
np.linalg.cond(t, "fro")
np.linalg.cond(s, np.inf)
np.linalg.svd(a)
np.linalg.svd(a, full_matrices=False)
np.linalg.svd(a, compute_uv=False)
np.linalg.pinv(a)
np.linalg.matrix_power(s, 3)
np.linalg.matrix_power(s, 0)
np.linalg.lstsq(a, w)[0]
np.linalg.vector_norm(a, axis=1)
np.linalg.matrix_norm(a)
np.linalg.trace(s)
np.linalg.diagonal(t)
np.linalg.inv(a)
np.linalg.solve(p, v[:2])
np.linalg.det(v)
np.fft.fft(v)
np.fft.ifft(v)
np.fft.rfft(v)
np.fft.irfft(np.fft.rfft(v))
np.fft.fft(a, axis=0)
np.fft.fft(v, 8)
np.fft.fft(v, norm='ortho')
np.fft.fft2(a)
np.fft.ifft2(a)
np.fft.fftn(t)
np.fft.fftshift(v)
np.fft.ifftshift(a)
np.fft.rfft(a)
np.convolve(v, w)
np.convolve(v, w, 'same')
np.convolve(v, w, 'valid')
np.correlate(v, w)
np.convolve(w, v, 'same')
np.bincount(np.arange(4), weights=v)
np.trace(s)
np.linalg.matrix_transpose(t)
(a @ b).sum(0)
np.outer(a, v)
np.linalg.matmul(a, b)
np.linalg.matrix_rank(a)
np.fft.rfftn(a)
np.fft.rfft2(t)
np.fft.irfftn(np.fft.rfftn(a))
np.fft.hfft(v)
np.fft.ihfft(v)
""".strip().splitlines(),
]

#: of matrices x and y (3, 4), a vector v (7), a square matrix s and a vector of ints i (4), in a
#: function with source: what numpy has in Python, what takes lists, and what Python does itself
IN_PYTHON = [
    *"""
np.angle(x)
np.apply_along_axis(lambda r: r / r.sum(), 1, x)
np.apply_along_axis(np.sum, 0, x)
np.apply_over_axes(np.sum, x, [0, 1])
np.argpartition(v, 2)
np.atleast_3d(x)
np.block([[x, x], [y, y]])
np.choose(i, [v[:4], v[:4] * 2, 0])
np.corrcoef(x)
np.corrcoef(v, v[::-1])[0, 1]
np.cov(x)
np.cov(v)
np.cov(v, v * v)
np.cov(x, rowvar=False, bias=True)
np.delete(v, 2)
np.delete(x, [0, 2], axis=1)
np.delete(x, slice(1, 3), axis=0)
np.diag_indices_from(s)
np.diagflat(v)
np.dstack([x, y])
np.gradient(v)
np.gradient(x)
np.gradient(v, 0.5)
np.gradient(x, axis=0)
np.gradient(v, np.arange(7.0) ** 2)
np.gradient(x, np.arange(3.0) ** 2, 0.5)
np.histogram(v, bins=4, density=True)
np.histogram(v, bins=4, weights=v)
np.histogram(v, bins=[-1, 0, 2], density=True)
np.histogram2d(v, v[::-1], bins=3)
np.histogram_bin_edges(v, 4)
np.hsplit(x, [2])
np.vsplit(x, [1])
np.insert(v, 0, 0)
np.insert(v, 2, [7, 8])
np.insert(v, [1, 3], 9)
np.insert(x, 1, 5, axis=1)
np.intersect1d(x, y)
np.union1d(x, y)
np.setdiff1d(x, y)
np.setxor1d(x, y)
np.isin(x, y)
np.isin(x, [1, 2], invert=True)
np.iscomplex(x)
np.iscomplexobj(x)
np.isneginf(v.real)
np.isreal(x)
x[np.ix_([0, 2], [1, 3])]
np.lexsort((v, v * v))
np.nanargmax(x, axis=1)
np.nancumsum(x, axis=1)
np.nanmax(x, axis=0)
np.nanmin(x)
np.nanmedian(x, axis=0)
np.nanpercentile(x, 30)
np.nanstd(x)
np.nanvar(x, axis=1)
np.piecewise(v, [v < 0, v >= 1], [lambda t: -t, lambda t: t ** 2])
np.poly(v[:3])
np.polyadd(v, v[:2])
np.polyder(v)
np.polyint(v)
np.polyfit(np.arange(7.0), v, 2)
np.polyval(v, 2)
np.polyval([1, 2, 3], x)
np.putmask(v.copy(), v > 1, v[:2])
np.ravel_multi_index((i % 3, i), (3, 4))
np.unravel_index(x.argmax(), x.shape)
np.unravel_index(i, (3, 4))
np.resize(v, (2, 5))
np.sinc(v)
np.trapezoid(v)
np.trapezoid(x, dx=0.5, axis=0)
np.trapezoid(v, np.arange(7))
s[np.triu_indices_from(s, 1)]
s[np.tril_indices(s.shape[0])]
np.unwrap(v)
np.vander(v, 3)
np.linalg.multi_dot([x, x.T, x])
np.lib.stride_tricks.sliding_window_view(v, 3)
np.lib.stride_tricks.sliding_window_view(x, (2, 3)).sum((2, 3))
np.lib.stride_tricks.sliding_window_view(x, 2, axis=1)
np.c_[v, v]
np.c_[np.ones(len(v)), v, v ** 2]
np.r_[v, 0, v[:2]]
np.mgrid[0:x.shape[0], 0:3]
np.ogrid[:len(v), 0 : 1 : len(v) * 1j][1]
np.maximum.accumulate(v)
np.minimum.accumulate(x, axis=1)
np.add.reduceat(v, [0, 2, 4])
np.logaddexp.reduce(x, axis=1)
np.bitwise_xor.reduce(i)
np.fmax.reduce(x, axis=0, keepdims=True)
np.quantile(v, [0.1, v.size / 10])
np.quantile(v, abs(v[0]) / 10)
np.quantile(v, 0.3, method="nearest")
np.average(v, weights=np.arange(7), returned=True)
np.pad(v, 2, mode="mean")
np.pad(x, 1, constant_values=x.max())
np.interp(v, np.arange(5), np.arange(5) ** 2, left=-1, right=99)
np.unique(np.round(x), axis=0)
np.unique(x > 1, axis=0, return_counts=True)
np.tensordot(x, y, 2)
np.tensordot(v, v, 1)
np.nan_to_num(x, nan=np.nanmax(x))
round(float(v.real.sum()), 2)
type(v) is np.ndarray
v.view()
v.tolist()
x.tolist()
x.flat[3]
x.T.flat[1]
x.flags.c_contiguous
sorted(v)
sorted([v[1], v[0]], reverse=True)
any(v > 1)
all([v[0] > 1, v[1] > 1])
all(r.sum() > -100 for r in x)
np.sum([r.sum() for r in x])
np.mean([v, v * 2], axis=0)
np.max([v.max(), 3])
np.linalg.norm([v[0], v[1]])
np.maximum.reduce([v, -v, v * 2])
np.add.reduce([v, v])
np.logical_or.reduce((v > 0, v < -1))
np.broadcast_shapes(x.shape, (x.shape[0], 1))
np.dot([1, 2, 3], v[:3])
np.vectorize(lambda a: a * 2 + 1)(v)
np.vectorize(lambda a, b: a if a > b else -b)(x, y)
np.vectorize(lambda a: (a > 0, a * a))(x)
np.vectorize(abs, otypes=['float32'])(x)
len(v).bit_length()
1 << (len(v) + 3).bit_length()
""".strip().splitlines(),
]
