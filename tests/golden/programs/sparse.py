"""Programs with sparse matrices: models, operations, gradients, and what is refused."""

from .encoding import attempt_each
from .register import program

FORMATS = ("csr", "csc")


def _matrix(np, rows, columns, seed, format="csr"):
    """Return a sparse matrix, a third of it entries, made by numpy alone."""
    import scipy.sparse

    random = np.random.RandomState(seed)
    dense = random.uniform(-1, 1, (rows, columns)) * (random.uniform(size=(rows, columns)) < 0.35)
    return getattr(scipy.sparse, format + "_matrix")(dense)


def _dense(np, value):
    return value.toarray() if hasattr(value, "toarray") else np.asarray(value)


@program("sparse.logistic_regression")
def logistic_regression(theano, T, np):
    """Bag-of-words rows in CSR, labels; gradient descent on dense weights."""
    from theano import sparse

    x, y = sparse.csr_matrix("x"), T.dvector("y")
    w, b = theano.shared(np.zeros((8, 1)), name="w"), theano.shared(0.1, name="b")
    p = T.nnet.sigmoid(sparse.dot(x, w).flatten() + b)
    cost = T.nnet.binary_crossentropy(p, y).mean() + 0.01 * T.sqr(w).sum()
    gw, gb = T.grad(cost, [w, b])
    train = theano.function([x, y], cost, updates=[(w, w - 0.5 * gw), (b, b - 0.5 * gb)])
    rows = _matrix(np, 20, 8, 1)
    labels = (np.asarray(rows.sum(axis=1)).ravel() > 0).astype("float64")
    costs = [float(train(rows, labels)) for _ in range(30)]
    return {"costs": np.array(costs), "w": w.get_value(), "b": b.get_value()}


@program("sparse.autoencoder")
def autoencoder(theano, T, np):
    """A bag-of-words autoencoder with structured_dot, encoder and decoder apart."""
    from theano import sparse

    x = sparse.csr_matrix("x")
    random = np.random.RandomState(2)
    w = theano.shared(0.1 * random.randn(9, 4), name="w")
    v = theano.shared(0.1 * random.randn(4, 9), name="v")
    hidden = T.tanh(sparse.structured_dot(x, w))
    back = T.nnet.sigmoid(T.dot(hidden, v))
    cost = T.sqr(back - sparse.dense_from_sparse(x)).sum(axis=1).mean()
    gw, gv = T.grad(cost, [w, v])
    train = theano.function([x], cost, updates=[(w, w - 0.3 * gw), (v, v - 0.3 * gv)])
    rows = abs(_matrix(np, 12, 9, 3))
    costs = [float(train(rows)) for _ in range(20)]
    return {"costs": np.array(costs), "w": w.get_value(), "v": v.get_value()}


@program("sparse.factorisation")
def factorisation(theano, T, np):
    """A recommender: users and items by sampling_dot at the known ratings."""
    from theano import sparse

    ratings = abs(_matrix(np, 7, 6, 4)) * 5
    known = ratings.copy()
    known.data = np.ones_like(known.data)
    random = np.random.RandomState(5)
    users = theano.shared(random.rand(7, 3), name="users")
    items = theano.shared(random.rand(6, 3), name="items")
    mask = sparse.as_sparse_variable(known)
    miss = sparse.sampling_dot(users, items, mask) - sparse.as_sparse_variable(ratings)
    cost = sparse.sp_sum(sparse.sqr(miss), sparse_grad=True)
    gu, gi = T.grad(cost, [users, items])
    step = theano.function(
        [], cost, updates=[(users, users - 0.02 * gu), (items, items - 0.02 * gi)]
    )
    costs = [float(step()) for _ in range(25)]
    return {"costs": np.array(costs), "users": users.get_value(), "items": items.get_value()}


@program("sparse.operations")
def operations(theano, T, np):
    """Values of operations on two sparse matrices, a dense one and vectors."""
    from theano import sparse

    found = {}
    for format in FORMATS:
        a, b = _matrix(np, 4, 5, 6, format), _matrix(np, 4, 5, 7, format)
        square = _matrix(np, 4, 4, 9, format)
        d = np.random.RandomState(8).rand(4, 5)
        x, y, s = (sparse.matrix(format, n, dtype="float64") for n in "xys")
        e, u, v = T.dmatrix("e"), T.dvector("u"), T.dvector("v")
        outs = {
            "add": x + y, "sub": x - y, "mul": x * y, "neg": -x, "add dense": x + e,
            "mul dense": x * e, "mul number": 3.0 * x, "T": x.T, "sum": sparse.sp_sum(x),
            "sum 0": sparse.sp_sum(x, axis=0), "sum 1": sparse.sp_sum(x, axis=1),
            "col_scale": sparse.col_scale(x, u), "row_scale": sparse.row_scale(x, v),
            "mul_s_v": sparse.mul_s_v(x, u), "add_s_v": sparse.structured_add_s_v(x, u),
            "dot": sparse.dot(x, e.T), "dot dense": sparse.dot(e.T, x),
            "dot sparse": sparse.dot(x, y.T), "true_dot": sparse.true_dot(x, y.T),
            "structured_dot": sparse.structured_dot(x, e.T), "dot vector": sparse.dot(x, u),
            "diag": sparse.diag(s), "square_diagonal": sparse.square_diagonal(u),
            "hstack": sparse.hstack([x, y]), "vstack": sparse.vstack([x, y]),
            "block": x[1:3, ::2], "rows": x[1:], "element": x[1, 2], "list": x[[0, 2]],
            "eq": sparse.eq(x, y), "lt": sparse.lt(x, y), "ge dense": sparse.ge(x, e),
            "sigmoid": sparse.structured_sigmoid(x), "pow": sparse.structured_pow(x, 2.0),
            "tanh": sparse.tanh(x), "log1p": sparse.log1p(x), "shape": x.shape,
            "usmm": e - 0.5 * sparse.dot(x, T.eye(5)), "cast": sparse.fcast(x),
            "clean": sparse.clean(x), "zeros": x.zeros_like(), "ones": sparse.sp_ones_like(x),
        }  # fmt: skip
        names = sorted(outs)
        for mode in ("FAST_COMPILE", "FAST_RUN"):
            f = theano.function(
                [x, y, s, e, u, v], [outs[n] for n in names], mode=mode, on_unused_input="ignore"
            )
            values = f(a, b, square, d, d[0], d[:, 0])
            for k, name in enumerate(names):
                found[format + " " + mode + " " + name] = _dense(np, values[k])
    return found


@program("sparse.gradients")
def gradients(theano, T, np):
    """Gradients by sparse and dense operands."""
    from theano import sparse

    found = {}
    for format in FORMATS:
        a, d = _matrix(np, 4, 5, 6, format), np.random.RandomState(8).rand(5, 3)
        x, e = sparse.matrix(format, "x", dtype="float64"), T.dmatrix("e")
        costs = {
            "structured_dot": T.sqr(sparse.structured_dot(x, e)).sum(),
            "dot": T.sqr(sparse.dot(x, e)).sum(),
            "true_dot": sparse.sp_sum(sparse.sqr(sparse.true_dot(x, e)), sparse_grad=True),
            "mul": sparse.sp_sum(x * T.dot(e, e.T)[:4, :], sparse_grad=True),
            "add": T.sqr(x + sparse.dot(x, T.dot(e, e.T))).sum(),
            "sum": T.sqr(sparse.sp_sum(x, axis=0, sparse_grad=True) * e.sum(axis=1)).sum(),
        }
        for name, cost in sorted(costs.items()):
            for wrt, label in ((x, "x"), (e, "e")):
                key = format + " " + name + " by " + label
                f = theano.function([x, e], T.grad(cost, wrt), on_unused_input="ignore")
                found[key] = _dense(np, f(a, d))
    return found


@program("sparse.rows")
def rows(theano, T, np):
    """The sparse gradient of indexed rows, and an update by it."""
    w = theano.shared(np.arange(12.0).reshape(4, 3), name="w")
    i = T.lvector("i")
    g = T.grad(T.sqr(theano.sparse_grad(w[i])).sum(), w)
    f = theano.function([i], g, updates=[(w, w - 0.1 * g)])
    return {"type": str(g.type), "g": f(np.array([2, 0])).toarray(), "w": w.get_value()}


@program("sparse.refused")
def refused(theano, T, np):
    """What sparse operations do not take."""
    from theano import sparse

    x, c, f = sparse.csr_dmatrix("x"), sparse.csc_dmatrix("c"), sparse.csr_fmatrix("f")
    d, v = T.dmatrix("d"), T.dvector("v")
    call = theano.function([f], f)
    a = _matrix(np, 4, 5, 6)
    return attempt_each(
        {
            "format": lambda: sparse.matrix("coo"),
            "dtype": lambda: sparse.SparseType("csr", "float16"),
            "dot of dense": lambda: sparse.dot(d, d),
            "structured_dot of dense": lambda: sparse.structured_dot(d, d),
            "structured_dot of a vector": lambda: sparse.structured_dot(x, v),
            "true_dot of dtypes": lambda: sparse.true_dot(x, f),
            "add a vector": lambda: x + v,
            "mul by a vector": lambda: x * v,
            "mul_s_v of dtypes": lambda: sparse.mul_s_v(f, v),
            "eq of formats": lambda: sparse.eq(x, c),
            "ColScaleCSC of csr": lambda: sparse.ColScaleCSC()(x, v),
            "sum axis": lambda: sparse.sp_sum(x, 2),
            "index": lambda: x[1, :],
            "index by a vector": lambda: x[v],
            "convert": lambda: sparse.as_sparse_variable(np.ones((2, 2))),
            "constant": lambda: sparse.constant(np.ones((2, 2))),
            "vectors of a dense": lambda: sparse.csm_properties(d),
            "CSM of a matrix": lambda: sparse.CSR(d, T.ivector(), T.ivector(), T.ivector()),
            "3-d": lambda: sparse.csr_from_dense(T.dtensor3()),
            "argument dtype": lambda: call(a),
            "shared": lambda: sparse.shared(np.ones((2, 2))),
            "shapes": lambda: theano.function([x, d], sparse.structured_dot(x, d))(
                a, np.ones((3, 2))
            ),
            "shapes of a sum": lambda: theano.function([x, c], x + c.T)(a, a.tocsc()),
        }
    )
