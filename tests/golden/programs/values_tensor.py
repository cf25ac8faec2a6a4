"""Values of tensor ops that are not elementwise, of shared variables and of training."""

from functools import partial

from .compiling import MODES, descent, each_in_modes, in_modes, tensor
from .encoding import attempt, attempt_each
from .register import add_program, program

NAN, INF = float("nan"), float("inf")

REDUCED = {
    "float64": [[1.5, -2.0, 0.25], [4.0, 0.0, -1.0]],
    "float32": [[1.5, -2.0, 0.25], [4.0, 0.0, -1.0]],
    "float16": [[1.5, -2.0, 0.25], [4.0, 0.0, -1.0]],
    "int8": [[100, -2, 100], [4, 0, 100]],
    "int32": [[100, -2, 3], [4, 0, 70000]],
    "uint8": [[200, 2, 100], [4, 0, 255]],
    "bool": [[True, False, True], [True, True, False]],
    "complex64": [[1, 2j, 0], [1 - 1j, 0, 3]],
}
REDUCTIONS = "sum prod mean max min argmax argmin any all var std".split()


def _reduction(name, theano, T, np):
    reduce = getattr(T, name)

    def case(dtype, options):
        x = tensor(T, dtype, 2, "x")
        return in_modes(theano, [x], reduce(x, **options), np.array(REDUCED[dtype], dtype))

    options = {
        "all": {},
        "0": {"axis": 0},
        "1": {"axis": 1},
        "-1 keepdims": {"axis": -1, "keepdims": True},
    }
    cases = {}
    for dtype in REDUCED:
        for label, arguments in options.items():
            if dtype not in ("float64", "float32", "int8") and label != "0":
                continue
            cases[f"{dtype} {label}"] = partial(case, dtype, arguments)
    return attempt_each(cases)


for _name in REDUCTIONS:
    add_program("values.reductions." + _name, partial(_reduction, _name))


@program("values.reductions.edges")
def reduction_edges(theano, T, np):
    """Empty arrays, not-a-numbers, infinities, ties, and no or all axes."""
    x, m, t3 = T.dvector("x"), T.dmatrix("m"), T.dtensor3("t3")
    results = {}
    vectors = {
        "empty": [],
        "one": [2.5],
        "nan": [1.0, NAN, 3.0],
        "nan first": [NAN, 1.0, 3.0],
        "inf": [INF, 1.0],
        "both infs": [INF, -INF],
        "ties": [1.0, 3.0, 3.0, 1.0],
        "zeros": [0.0, -0.0],
    }
    for label, values in vectors.items():
        for name in ("sum", "prod", "mean", "max", "min", "argmax", "argmin", "any", "var"):
            results[f"{name} of {label}"] = in_modes(
                theano, [x], getattr(T, name)(x), np.array(values)
            )
    cube = np.arange(24.0).reshape(2, 3, 4) % 7
    for label, axis in {"(0, 2)": (0, 2), "[1, 2]": [1, 2], "(-1, 0)": (-1, 0)}.items():
        for name in ("sum", "max", "mean", "std", "prod", "min"):
            results[f"{name} {label}"] = in_modes(
                theano, [t3], getattr(T, name)(t3, axis=axis), cube
            )
    results["argmax (1, 2)"] = in_modes(theano, [t3], T.argmax(t3, axis=(1, 2)), cube)
    results["max_and_argmax"] = in_modes(theano, [t3], T.max_and_argmax(t3, axis=1), cube)
    results["sum 0 of no rows"] = in_modes(theano, [m], m.sum(axis=0), np.zeros((0, 3)))
    results["sum 1 of no rows"] = in_modes(theano, [m], m.sum(axis=1), np.zeros((0, 3)))
    results["max 1 of no rows"] = in_modes(theano, [m], m.max(axis=1), np.zeros((0, 3)))
    results["max 0 of no rows"] = in_modes(theano, [m], m.max(axis=0), np.zeros((0, 3)))
    results["std ddof"] = in_modes(theano, [x], x.std(ddof=1), np.array([1.0, 2.0, 4.0]))
    results["var corrected"] = in_modes(
        theano, [x], T.var(x, corrected=True), np.array([1e8 + 1, 1e8 + 2, 1e8 + 4])
    )
    results["ptp"] = in_modes(theano, [m], T.ptp(m, axis=1), np.array([[1.0, 5.0], [2.0, 2.0]]))
    results["sum of a large offset"] = in_modes(theano, [x], x.sum(), np.array([1e16, 1.0, -1e16]))
    for number in (1, 2, 3, "inf", "-inf", 0):
        order = float(number) if isinstance(number, str) else number
        build = partial(x.norm, order)
        results[f"norm {number}"] = attempt(
            lambda make: in_modes(theano, [x], make(), np.array([3.0, -4.0, 0.0])), build
        )
    results["norm 2 axis"] = in_modes(theano, [m], m.norm(2, axis=1), np.array([[3.0, 4.0]]))
    return results


@program("values.reductions.dtypes")
def reduction_dtypes(theano, T, np):
    """dtype and acc_dtype arguments, and overflow."""
    b, f, i = T.bvector("b"), T.fvector("f"), T.ivector("i")
    bytes_, singles = np.array([100, 100, 27], "int8"), np.array([1e8, 1.0, -1e8], "float32")
    ints = np.array([2**30, 2**30, 2**30], "int32")
    return {
        "sum int8": in_modes(theano, [b], b.sum(), bytes_),
        "sum int8 as int8": in_modes(theano, [b], b.sum(dtype="int8"), bytes_),
        "sum int8 as float32": in_modes(theano, [b], b.sum(dtype="float32"), bytes_),
        "prod int8": in_modes(theano, [b], b.prod(), bytes_),
        "mean int8": in_modes(theano, [b], b.mean(), bytes_),
        "mean int8 as float32": in_modes(theano, [b], b.mean(dtype="float32"), bytes_),
        "sum float32": in_modes(theano, [f], f.sum(), singles),
        "sum float32 in float32": in_modes(
            theano, [f], f.sum(acc_dtype="float32"), np.array([1.5, 2.5], "float32")
        ),
        "sum float32 as float64": in_modes(theano, [f], f.sum(dtype="float64"), singles),
        "mean float32": in_modes(theano, [f], f.mean(), singles),
        "var float32": in_modes(theano, [f], f.var(), np.array([1.0, 2.0, 4.0], "float32")),
        "sum int32": in_modes(theano, [i], i.sum(), ints),
        "sum int32 as int32": in_modes(theano, [i], i[:1].sum(dtype="int32"), ints),
        "cumsum int8": in_modes(theano, [b], T.cumsum(b), np.array([1, 2, 3], "int8")),
    }


DOT_SHAPES = {
    "matrix matrix": ((2, 3), (3, 2)),
    "matrix vector": ((2, 3), (3,)),
    "vector matrix": ((3,), (3, 2)),
    "vector vector": ((3,), (3,)),
    "scalar matrix": ((), (3, 2)),
    "3-d matrix": ((2, 2, 3), (3, 2)),
    "3-d 3-d": ((2, 2, 3), (2, 3, 2)),
    "nothing": ((2, 0), (0, 3)),
    "no rows": ((0, 3), (3, 2)),
}


@program("values.products.dot")
def dot(theano, T, np):
    """dot of every rank and dtype."""

    def case(first, second, dtypes):
        x, y = tensor(T, dtypes[0], len(first), "x"), tensor(T, dtypes[1], len(second), "y")
        count = int(np.prod(first)), int(np.prod(second))
        left = (np.arange(count[0]) - 2).reshape(first).astype(dtypes[0])
        right = (np.arange(count[1]) % 5 - 1).reshape(second).astype(dtypes[1])
        return in_modes(theano, [x, y], T.dot(x, y), left, right)

    pairs = [("float64", "float64"), ("float32", "float32"), ("int8", "int8")]
    pairs += [("float32", "float64"), ("int32", "float32"), ("complex64", "complex64")]
    cases = {}
    for label, (first, second) in DOT_SHAPES.items():
        for dtypes in pairs:
            if dtypes[0] != dtypes[1] and label != "matrix matrix":
                continue
            cases[f"{label} {dtypes[0]} {dtypes[1]}"] = partial(case, first, second, dtypes)
    return attempt_each(cases)


@program("values.products.others")
def products(theano, T, np):
    """Products with transpositions, additions, batches and named axes."""
    x, y, v, a = T.dmatrix("x"), T.dmatrix("y"), T.dvector("v"), T.dscalar("a")
    t, u = T.dtensor3("t"), T.dtensor3("u")
    inputs = [x, y, v, a, t, u]
    values = (
        np.arange(9.0).reshape(3, 3) - 4,
        np.arange(9.0).reshape(3, 3)[::-1] / 8,
        np.array([0.5, -1.0, 2.0]),
        np.array(0.25),
        np.arange(18.0).reshape(2, 3, 3) / 3,
        (np.arange(18.0) % 4).reshape(2, 3, 3),
    )
    cases = {
        "x.T y": lambda: T.dot(x.T, y),
        "x y.T": lambda: T.dot(x, y.T),
        "(x y).T": lambda: T.dot(x, y).T,
        "x.dot(y)": lambda: x.dot(y),
        "a * dot + y": lambda: a * T.dot(x, y) + y,
        "y - a * dot": lambda: y - a * T.dot(x, y),
        "dot - y": lambda: T.dot(x, y) - y,
        "2 * y - dot": lambda: 2 * y - T.dot(x, y),
        "dot + dot": lambda: T.dot(x, y) + T.dot(y, x),
        "dot + v": lambda: T.dot(x, y) + v,
        "dot of dot": lambda: T.dot(T.dot(x, y), x),
        "x + outer": lambda: x + T.outer(v, v),
        "x - a * outer": lambda: x - a * T.outer(v, v),
        "v + dot": lambda: v + T.dot(x, v),
        "v - a * dot": lambda: v - a * T.dot(x.T, v),
        "outer": lambda: T.outer(v, v),
        "outer of matrices": lambda: T.outer(x, v),
        "dot of slices": lambda: T.dot(x[::2], y[:, 1:]),
        "dot of reversed": lambda: T.dot(x[::-1], y),
        "dot of row": lambda: T.dot(v.dimshuffle("x", 0), x),
        "batched_dot": lambda: T.batched_dot(t, u),
        "batched_dot 2-d": lambda: T.batched_dot(x, y),
        "batched_dot 3-d 2-d": lambda: T.batched_dot(t, x[:2]),
        "batched_dot of transposed": lambda: T.batched_dot(t, u.dimshuffle(0, 2, 1)),
        "tensordot 1": lambda: T.tensordot(t, x, axes=1),
        "tensordot 2": lambda: T.tensordot(t, u, axes=[[1, 2], [1, 2]]),
        "tensordot 0": lambda: T.tensordot(x, v, axes=0),
        "tensordot default": lambda: T.tensordot(t, x),
        "tensordot pairs": lambda: T.tensordot(t, x, axes=[[2], [0]]),
        "tensordot numbers": lambda: T.tensordot(t, x, axes=(2, 0)),
        "batched_tensordot": lambda: T.batched_tensordot(t, u, axes=[[1], [2]]),
        "tanh of affine": lambda: T.tanh(T.dot(x, y) + v),
    }
    return each_in_modes(theano, inputs, cases, values)


@program("values.shapes")
def shapes(theano, T, np):
    """Reordering, joining, repeating and cutting."""
    x, y, v, t, n = T.dmatrix("x"), T.dmatrix("y"), T.dvector("v"), T.dtensor3("t"), T.lscalar("n")
    i = T.lvector("i")
    inputs = [x, y, v, t, n, i]
    values = (
        np.arange(6.0).reshape(2, 3),
        -np.arange(6.0).reshape(2, 3),
        np.array([3.0, 1.0, 2.0]),
        np.arange(12.0).reshape(2, 3, 2),
        np.array(2),
        np.array([2, 0, 1]),
    )
    cases = {
        "x.T": lambda: x.T,
        "dimshuffle": lambda: t.dimshuffle(2, "x", 0, 1),
        "transpose": lambda: T.transpose(t),
        "transpose axes": lambda: t.transpose((1, 0, 2)),
        "swapaxes": lambda: t.swapaxes(0, 2),
        "reshape": lambda: x.reshape((3, 2)),
        "reshape -1": lambda: t.reshape((n, -1)),
        "reshape transposed": lambda: x.T.reshape((2, 3)),
        "T.reshape": lambda: T.reshape(x, (6,)),
        "flatten": lambda: x.T.flatten(),
        "flatten 2": lambda: t.flatten(2),
        "T.flatten": lambda: T.flatten(t, 2),
        "ravel": lambda: x.ravel(),
        "squeeze": lambda: v.dimshuffle("x", 0).squeeze(),
        "concatenate 0": lambda: T.concatenate([x, y], axis=0),
        "concatenate 1": lambda: T.concatenate([x, y], axis=1),
        "concatenate -1": lambda: T.concatenate([x, y], axis=-1),
        "concatenate three": lambda: T.concatenate([v, v * 2, [9.0]]),
        "concatenate dtypes": lambda: T.concatenate([i, v]),
        "join": lambda: T.join(1, x, y),
        "join symbolic axis": lambda: T.join(n - 1, x, y),
        "stack": lambda: T.stack([v, v * 2]),
        "stack 1": lambda: T.stack([v, v * 2], axis=1),
        "stack old call": lambda: T.stack(v, v * 2),
        "stacklists": lambda: T.stacklists([[v[0], v[1]], [v[2], n]]),
        "horizontal_stack": lambda: T.horizontal_stack(x, y),
        "vertical_stack": lambda: T.vertical_stack(x, y),
        "tile": lambda: T.tile(v, 2),
        "tile pair": lambda: T.tile(x, (2, 1)),
        "tile n": lambda: T.tile(x, (n, 1)),
        "tile more": lambda: T.tile(v, (2, 2)),
        "repeat": lambda: T.repeat(v, 2),
        "repeat 0": lambda: T.repeat(x, 2, axis=0),
        "repeat 1": lambda: x.repeat(n, axis=1),
        "repeat each": lambda: T.repeat(v, i),
        "repeat flat": lambda: T.repeat(x, 2),
        "roll": lambda: T.roll(v, 1),
        "roll -1": lambda: T.roll(v, -1),
        "roll axis": lambda: T.roll(x, 1, axis=1),
        "split": lambda: T.split(v, [1, 2], 2),
        "split axis": lambda: T.split(x, [1, 2], 2, axis=1),
        "diag": lambda: T.diag(v),
        "diag of matrix": lambda: T.diag(x),
        "diagonal": lambda: x.diagonal(),
        "diagonal 1": lambda: x.diagonal(1),
        "trace": lambda: x.trace(),
        "fill_diagonal": lambda: T.fill_diagonal(x, 9.0),
        "fill_diagonal_offset": lambda: T.fill_diagonal_offset(x, 9.0, 1),
        "tril": lambda: T.tril(x),
        "triu 1": lambda: T.triu(x, 1),
        "shape_padleft": lambda: T.shape_padleft(v, 2),
        "shape_padright": lambda: T.shape_padright(v),
        "shape_padaxis": lambda: T.shape_padaxis(x, -1),
        "broadcast sum": lambda: T.addbroadcast(x[:1], 0) + y,
        "patternbroadcast": lambda: T.patternbroadcast(x[:1], (True, False)) + y,
        "unbroadcast": lambda: T.unbroadcast(v.dimshuffle("x", 0), 0),
        "shape": lambda: t.shape,
        "shape of a sum": lambda: (x + y).shape[1],
        "size": lambda: t.size,
        "T.shape": lambda: T.shape(x),
        "copy": lambda: x.copy(),
        "tensor_copy": lambda: T.tensor_copy(x),
        "specify_shape": lambda: T.specify_shape(x, (2, 3)) * 2,
        "reshape by another": lambda: v.reshape(T.concatenate([[1], i.shape])),
    }
    return each_in_modes(theano, inputs, cases, values)


@program("values.creation")
def creation(theano, T, np):
    """Arrays made from shapes and ranges."""
    n, k, f, v = T.lscalar("n"), T.iscalar("k"), T.dscalar("f"), T.dvector("v")
    inputs = [n, k, f, v]
    values = (np.array(3), np.array(2, "int32"), np.array(0.5), np.array([1.0, -2.0, 0.5]))
    cases = {
        "zeros": lambda: T.zeros((2, n)),
        "zeros int8": lambda: T.zeros((n,), dtype="int8"),
        "ones": lambda: T.ones((n, k)),
        "ones of a number": lambda: T.ones(3),
        "zeros of nothing": lambda: T.zeros((0, n)),
        "zeros of ()": lambda: T.zeros(()),
        "zeros of shape": lambda: T.zeros(v.shape),
        "zeros_like": lambda: T.zeros_like(v),
        "ones_like": lambda: T.ones_like(v, dtype="int32"),
        "alloc": lambda: T.alloc(f, n, 2),
        "alloc of vector": lambda: T.alloc(v, 2, n),
        "alloc wrong": lambda: T.alloc(v, 2, 5),
        "fill": lambda: T.fill(v, f),
        "arange n": lambda: T.arange(n),
        "arange 1 n": lambda: T.arange(1, n),
        "arange step": lambda: T.arange(0, 10, n),
        "arange back": lambda: T.arange(5, 0, -2),
        "arange float": lambda: T.arange(0.0, 1.0, 0.25),
        "arange f": lambda: T.arange(0, 2, f),
        "arange nothing": lambda: T.arange(5, n),
        "arange int32": lambda: T.arange(k),
        "arange dtype": lambda: T.arange(n, dtype="float32"),
        "arange step 0": lambda: T.arange(0, n, n - 3),
        "eye": lambda: T.eye(n),
        "eye k": lambda: T.eye(3, 4, 1),
        "eye -1 int": lambda: T.eye(n, n + 1, -1, dtype="int32"),
        "identity_like": lambda: T.identity_like(T.outer(v, v)),
        "tri": lambda: T.tri(n, 4, 1),
        "mgrid": lambda: list(T.mgrid[0:2, 0:3]),
        "ogrid": lambda: list(T.ogrid[0:2, 0:3]),
        "one hot": lambda: T.extra_ops.to_one_hot(T.cast(T.arange(n), "int32"), 4),
        "one hot by eq": lambda: T.eq(T.arange(4), T.arange(n).dimshuffle(0, "x")),
        "make_vector": lambda: T.stack([n, n + 1, k]),
        "constant": lambda: T.constant(np.array([[1.5, 2.5]])),
        "constant scalar": lambda: T.constant(3),
        "cast of number": lambda: T.cast(2.7, "int32"),
    }
    return each_in_modes(theano, inputs, cases, values)


@program("values.sorting")
def sorting(theano, T, np):
    """Sorting, searching, counting and choosing."""
    x, v, i, t = T.dmatrix("x"), T.dvector("v"), T.lvector("i"), T.ivector("t")
    inputs = [x, v, i, t]
    values = (
        np.array([[3.0, 1.0, 2.0], [0.5, -1.0, 4.0]]),
        np.array([3.0, 1.0, 2.0, 1.0]),
        np.array([2, 0, 1]),
        np.array([0, 2, 2, 5], "int32"),
    )
    extra = T.extra_ops
    cases = {
        "sort": lambda: T.sort(v),
        "sort 0": lambda: T.sort(x, axis=0),
        "sort 1": lambda: x.sort(axis=1),
        "sort None": lambda: T.sort(x, axis=None),
        "sort back": lambda: T.sort(v)[::-1],
        "argsort": lambda: T.argsort(v, kind="mergesort"),
        "argsort 0": lambda: T.argsort(x, axis=0),
        "argsort None": lambda: T.argsort(x, axis=None),
        "sort int": lambda: T.sort(t),
        "topk": lambda: T.sort(T.topk(v, 2, sorted=False)),
        "cumsum": lambda: T.cumsum(v),
        "cumsum 0": lambda: T.cumsum(x, axis=0),
        "cumsum None": lambda: T.cumsum(x),
        "cumprod": lambda: T.cumprod(x, axis=1),
        "extra cumsum": lambda: extra.cumsum(x, axis=1),
        "method cumsum": lambda: x.cumsum(axis=0),
        "diff": lambda: extra.diff(v),
        "diff 2": lambda: extra.diff(x, n=2, axis=1),
        "bincount": lambda: extra.bincount(t),
        "bincount minlength": lambda: extra.bincount(t, minlength=8),
        "bincount weights": lambda: extra.bincount(t, weights=v),
        "searchsorted": lambda: extra.searchsorted(T.sort(v), v),
        "searchsorted right": lambda: extra.searchsorted(T.sort(v), v, side="right"),
        "searchsorted scalar": lambda: T.sort(v).searchsorted(2.0),
        "nonzero": lambda: list((x > 1).nonzero()),
        "nonzero stacked": lambda: T.nonzero(x > 1, return_matrix=True),
        "flatnonzero": lambda: T.flatnonzero(x > 1),
        "nonzero_values": lambda: T.nonzero_values(x - 1),
        "nonzero of vector": lambda: v.nonzero()[0],
        "take": lambda: v.take(i),
        "take axis": lambda: T.take(x, i, axis=1),
        "take flat": lambda: x.take([0, 5]),
        "choose": lambda: T.choose(T.constant(np.array([1, 0, 1])), x),
        "compress": lambda: extra.compress(T.constant(np.array([1, 0, 1])), x, axis=1),
        "permute_row_elements": lambda: T.permute_row_elements(x, i),
        "inverse_permutation": lambda: T.inverse_permutation(t[:1] * 0),
        "unravel_index": lambda: list(extra.unravel_index(i, (2, 2))),
        "ravel_multi_index": lambda: extra.ravel_multi_index((i % 2, i), (2, 3)),
        "isclose": lambda: T.isclose(v, v + 1e-9),
        "allclose": lambda: T.allclose(v, v + 1e-3),
        "unique": lambda: extra.Unique()(v),
        "squeeze": lambda: extra.squeeze(v.dimshuffle(0, "x")),
    }
    return each_in_modes(theano, inputs, cases, values)


@program("values.linear_algebra")
def linear_algebra(theano, T, np):
    """Decompositions and solutions; only what is unique up to no sign is recorded."""
    import theano.tensor.slinalg as slinalg  # the old package does not load it by itself

    a, s, b = T.dmatrix("a"), T.dmatrix("s"), T.dvector("b")
    inputs = [a, s, b]
    values = (
        np.array([[2.0, 1.0, 0.0], [0.5, 3.0, -1.0], [1.0, 0.0, 4.0]]),
        np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]]),
        np.array([1.0, -2.0, 3.0]),
    )
    n = T.nlinalg
    cases = {
        "matrix_inverse": lambda: n.matrix_inverse(a),
        "det": lambda: n.det(a),
        "trace": lambda: n.trace(a),
        "pinv": lambda: n.pinv(a),
        "singular values": lambda: n.svd(a, compute_uv=False),
        "usv": lambda: _reassembled(T, n.svd(a)),
        "eigenvalues": lambda: n.eigh(s)[0],
        "abs of eigenvectors": lambda: abs(n.eigh(s)[1]),
        "general eigenvalues": lambda: T.sort(abs(n.eig(s)[0])),
        "abs of r": lambda: abs(n.qr(a)[1]),
        "matrix_power": lambda: n.matrix_power(a, 3),
        "matrix_dot": lambda: n.matrix_dot(a, s, a),
        "norm": lambda: n.norm(a, None),
        "extract_diag": lambda: n.extract_diag(a),
        "alloc_diag": lambda: n.alloc_diag(b),
        "diag": lambda: n.diag(b),
        "cholesky": lambda: slinalg.cholesky(s),
        "upper cholesky": lambda: slinalg.Cholesky(lower=False)(s),
        "solve": lambda: slinalg.solve(a, b),
        "solve matrix": lambda: slinalg.solve(a, s),
        "solve lower": lambda: slinalg.solve_lower_triangular(a, b),
        "solve upper": lambda: slinalg.solve_upper_triangular(a, b),
        "expm": lambda: slinalg.expm(s / 4),
        "kron": lambda: slinalg.kron(a[:2, :2], s[:2, :2]),
        "eigvalsh": lambda: slinalg.eigvalsh(s, T.eye(3)),
        "inverse times": lambda: T.dot(n.matrix_inverse(a), b),
        "tensorinv": lambda: n.tensorinv(a.reshape((3, 3)), ind=1),
        "lstsq": lambda: n.lstsq()(a, b, 1e-9)[0],
    }
    return each_in_modes(theano, inputs, cases, values)


def _reassembled(T, parts):
    u, s, v = parts
    return T.dot(u * s, v)


@program("values.linear_algebra_refused")
def linear_algebra_refused(theano, T, np):
    """Singular, indefinite and ill-shaped matrices."""
    import theano.tensor.slinalg as slinalg  # the old package does not load it by itself

    a = T.dmatrix("a")
    singular, indefinite = np.ones((2, 2)), np.array([[1.0, 2.0], [2.0, 1.0]])
    return {
        "inverse of a singular": in_modes(theano, [a], T.nlinalg.matrix_inverse(a), singular),
        "det of a singular": in_modes(theano, [a], T.nlinalg.det(a), singular),
        "det of oblong": in_modes(theano, [a], T.nlinalg.det(a), np.ones((2, 3))),
        "cholesky of indefinite": in_modes(theano, [a], slinalg.cholesky(a), indefinite),
        "inverse of vector": attempt(lambda: T.nlinalg.matrix_inverse(T.dvector())),
        "pinv of a singular": in_modes(theano, [a], T.nlinalg.pinv(a), singular),
    }


@program("values.complex")
def complex_numbers(theano, T, np):
    """Complex inputs and parts."""
    z, x = T.zvector("z"), T.dvector("x")
    points, reals = np.array([1 + 2j, -1j, 0.5, -2.0]), np.array([1.0, -1.0, 0.5, 2.0])
    cases = {
        "z * z": lambda: z * z,
        "z + x": lambda: z + x,
        "z / z": lambda: z / (z + 1),
        "abs": lambda: abs(z),
        "real": lambda: z.real,
        "imag": lambda: z.imag,
        "conj": lambda: z.conj(),
        "angle": lambda: T.angle(z),
        "exp": lambda: T.exp(z),
        "sqrt": lambda: T.sqrt(z),
        "complex": lambda: T.complex(x, x * 2),
        "from polar": lambda: T.complex_from_polar(abs(x), x),
        "real of real": lambda: x.real,
        "imag of real": lambda: x.imag,
        "sum": lambda: z.sum(),
        "eq": lambda: T.eq(z, z),
        "dot": lambda: T.dot(z, z),
    }
    return each_in_modes(theano, [z, x], cases, (points, reals))


@program("values.evaluation")
def evaluation(theano, T, np):
    """eval, clones, prints and other ways to a value."""
    x, y, v = T.dscalar("x"), T.dscalar("y"), T.dvector("v")
    s = theano.shared(np.array([1.0, 2.0]), name="s")
    constant_value = T.get_scalar_constant_value

    def inner():
        return theano.OpFromGraph([x, y], [x * y + 1])

    return attempt_each(
        {
            "eval": lambda: (x + y).eval({x: 1.0, y: 2.5}),
            "eval without inputs": lambda: T.constant(3).eval(),
            "eval of shared": lambda: (s * 2).eval(),
            "eval twice": lambda: [(v * 2).eval({v: [1.0]}), (v * 2).eval({v: [3.0]})],
            "eval text key": lambda: (x + 1).eval({"x": 1.0}),
            "eval missing": lambda: (x + y).eval({x: 1.0}),
            "eval extra": lambda: _error_class(lambda: (x + 1).eval({x: 1.0, y: 1.0})),
            "clone replace": lambda: theano.clone(x + y, replace={x: y * 2}).eval({y: 3.0}),
            "clone replace shared": lambda: theano.clone(s * 2, replace={s: v}).eval({v: [7.0]}),
            "clone strict": lambda: theano.clone(x + y, replace={x: T.fscalar()}),
            "Print": lambda: theano.printing.Print("", attrs=())(x * 2).eval({x: 4.0}),
            "OpFromGraph": lambda: inner()(x, y + 1).eval({x: 2.0, y: 3.0}),
            "OpFromGraph gradient": lambda: T.grad(inner()(x, x), x).eval({x: 2.0}),
            "as_op": lambda: theano.as_op([T.dvector], [T.dvector])(_half)(v).eval({v: [3.0, 5.0]}),
            "Assert": lambda: T.opt.Assert("is positive")(x, T.gt(x, 0)).eval({x: 1.0}),
            "Assert fails": lambda: T.opt.Assert("is positive")(x, T.gt(x, 0)).eval({x: -1.0}),
            "constant_value of number": lambda: constant_value(3),
            "constant_value of constant": lambda: constant_value(T.constant(2.5)),
            "constant_value of alloc": lambda: constant_value(T.alloc(4.0, 2)),
            "constant_value of shape": lambda: constant_value(T.zeros((2, 3)).shape[1]),
            "constant_value of input": lambda: constant_value(x),
            "constant_value of sum": lambda: constant_value(T.constant(1) + 2),
            "get_vector_length": lambda: [
                T.get_vector_length(T.stack([x, y])),
                T.get_vector_length(T.dmatrix().shape),
                T.get_vector_length([x, y, x]),
            ],
            "get_vector_length of input": lambda: T.get_vector_length(v),
            "test_value": lambda: _with_test_value(theano, T, np),
            "inputs of a graph": lambda: [
                str(variable) for variable in theano.gof.graph.inputs([x * y + 1])
            ],
            "ancestors": lambda: len(theano.gof.graph.ancestors([x * y + 1])),
            "is_same_graph": lambda: [
                theano.gof.graph.is_same_graph(x + y, x + y),
                theano.gof.graph.is_same_graph(x + y, y + x),
            ],
            "io_toposort": lambda: [
                str(node) for node in theano.gof.graph.io_toposort([x, y], [x * y + 1])
            ],
        }
    )


def _error_class(call):
    # The message names a position in an order that is not fixed.
    return attempt(call).split(":")[0]


def _half(values):
    return values / 2


def _with_test_value(theano, T, np):
    with theano.change_flags(compute_test_value="raise"):
        x = T.dvector("x")
        x.tag.test_value = np.array([1.0, 2.0])
        return (x * 3).tag.test_value


@program("values.shared")
def shared(theano, T, np):
    """Kinds of shared variables and how their values are read and written."""
    s = theano.shared(np.zeros(3), name="s")
    s32 = theano.shared(np.float32(0), name="s32")

    def set_and_get(variable, value):
        before = variable.get_value()
        variable.set_value(value)
        after = variable.get_value()
        variable.set_value(before)
        return after

    def borrowed():
        value = np.ones(2)
        variable = theano.shared(value, borrow=True)
        copied = theano.shared(value)
        value[0] = 5
        return [variable.get_value(), copied.get_value()]

    return attempt_each(
        {
            "int": lambda: str(theano.shared(1).type),
            "float": lambda: str(theano.shared(1.0).type),
            "bool": lambda: str(theano.shared(True).type),
            "float32": lambda: str(theano.shared(np.float32(1)).type),
            "list": lambda: str(theano.shared([1, 2]).type),
            "text": lambda: type(theano.shared("abc")).__name__,
            "None": lambda: str(theano.shared(None).type),
            "variable": lambda: theano.shared(T.dscalar()),
            "class of array": lambda: type(s).__name__,
            "class of scalar": lambda: type(s32).__name__,
            "set other length": lambda: set_and_get(s, np.ones(5)),
            "set other ndim": lambda: set_and_get(s, np.ones((2, 2))),
            "set ints": lambda: set_and_get(s, np.arange(3)),
            "set list": lambda: set_and_get(s, [1.0, 2.0]),
            "set text": lambda: set_and_get(s, "abc"),
            "set None": lambda: set_and_get(s, None),
            "set float64 exact": lambda: set_and_get(s32, np.float64(1.5)),
            "set float64 inexact": lambda: set_and_get(s32, np.float64(1.1)),
            "set Python float": lambda: set_and_get(s32, 1.1),
            "set float64 array": lambda: set_and_get(
                theano.shared(np.zeros(2, "float32")), np.ones(2)
            ),
            "allow_downcast": lambda: set_and_get(
                theano.shared(np.zeros(2, "float32"), allow_downcast=True), np.array([1.1, 2.0])
            ),
            "strict": lambda: theano.shared(np.ones(2), strict=True).set_value([1, 2]),
            "strict exact": lambda: set_and_get(theano.shared(np.ones(2), strict=True), np.ones(4)),
            "broadcastable": lambda: theano.shared(np.ones((2, 3)), broadcastable=(True, False)),
            "borrowed": borrowed,
            "get is a copy": lambda: s.get_value() is s.get_value(),
            "get borrowed": lambda: s.get_value(borrow=True) is s.get_value(borrow=True),
            "shape": lambda: s.shape.eval(),
            "clone shares": lambda: s.clone().container is s.container,
            "name": lambda: [s.name, str(s), theano.shared(1.0, name="q").name],
            "arithmetic": lambda: (s + s32 + 1).eval(),
            "get_scalar_constant_value": lambda: T.get_scalar_constant_value(s32),
        }
    )


def _train(build, mode, theano, T, np):
    inputs, cost, parameters, values = build(theano, T, np)
    steps = descent(T, cost, parameters, 0.1)
    train = theano.function(inputs, cost, updates=steps, mode=mode)
    costs = [train(*values) for _ in range(10)]
    return {"costs": np.array(costs), "parameters": [p.get_value() for p in parameters]}


def _data(np):
    generator = np.random.RandomState(7)
    return generator.uniform(-1, 1, (8, 4)), generator.randint(0, 3, 8).astype("int32")


def _logistic(theano, T, np):
    x, y = T.dmatrix("x"), T.dvector("y")
    w, b = theano.shared(np.linspace(-1, 1, 4), name="w"), theano.shared(0.1, name="b")
    p = 1 / (1 + T.exp(-T.dot(x, w) - b))
    cost = (-y * T.log(p) - (1 - y) * T.log(1 - p)).mean() + 0.01 * (w**2).sum()
    rows, labels = _data(np)
    return [x, y], cost, [w, b], (rows, (labels > 0).astype("float64"))


def _perceptron(theano, T, np):
    x, y = T.dmatrix("x"), T.ivector("y")
    generator = np.random.RandomState(3)
    w1 = theano.shared(generator.uniform(-1, 1, (4, 5)), name="w1")
    b1 = theano.shared(np.zeros(5), name="b1")
    w2 = theano.shared(generator.uniform(-1, 1, (5, 3)), name="w2")
    b2 = theano.shared(np.zeros(3), name="b2")
    p = T.nnet.softmax(T.dot(T.tanh(T.dot(x, w1) + b1), w2) + b2)
    cost = -T.mean(T.log(p)[T.arange(y.shape[0]), y])
    return [x, y], cost, [w1, b1, w2, b2], _data(np)


def _layer(theano, T, np):
    x, t = T.dmatrix("x"), T.dmatrix("t")
    generator = np.random.RandomState(1827)
    w = theano.shared(generator.uniform(-0.5, 0.5, (10, 3)), name="w")
    b = theano.shared(np.zeros(3), name="b")
    cost = T.sum((t - T.nnet.sigmoid(T.dot(x, w) + b)) ** 2) + 0.01 * T.sum(w * w)
    return [x, t], cost, [w, b], (generator.uniform(size=(4, 10)), generator.uniform(size=(4, 3)))


def _float32_perceptron(theano, T, np):
    x, y = T.fmatrix("x"), T.ivector("y")
    generator = np.random.RandomState(3)
    w = theano.shared(generator.uniform(-1, 1, (4, 3)).astype("float32"), name="w")
    p = T.nnet.softmax(T.dot(T.nnet.relu(x), w))
    cost = T.nnet.categorical_crossentropy(p, y).mean()
    rows, labels = _data(np)
    return [x, y], cost, [w], (rows.astype("float32"), labels)


TRAINED = {
    "logistic regression": _logistic,
    "multilayer perceptron": _perceptron,
    "regression layer": _layer,
}


@program("values.training")
def training(theano, T, np):
    """Ten steps of gradient descent on small models."""
    return {
        f"{label} {mode}": attempt(_train, build, mode, theano, T, np)
        for label, build in TRAINED.items()
        for mode in MODES
    }


@program("values.training_float32", floatx="float32")
def training_float32(theano, T, np):
    """The same with single precision."""
    return {mode: attempt(_train, _float32_perceptron, mode, theano, T, np) for mode in MODES}
