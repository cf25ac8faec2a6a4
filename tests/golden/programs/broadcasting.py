"""Broadcast patterns of symbolic results, and shapes and refusals at run time."""

from functools import partial

from .compiling import in_modes, tensor
from .encoding import attempt, attempt_each
from .register import program


def pattern(variable):
    """Return a broadcast pattern as a word of T and F, `()` for a scalar."""
    return "".join("T" if flag else "F" for flag in variable.broadcastable) or "()"


def patterns_of(cases):
    """Return {label: pattern} for a table of functions that return variables."""
    return {label: attempt(_pattern_of, build) for label, build in cases.items()}


def _pattern_of(build):
    return pattern(build())


def _typed(T, word):
    return T.TensorType("float64", tuple(letter == "T" for letter in word))()


WORDS = ("", "F", "T", "FF", "FT", "TF", "TT", "FFF", "FTF", "TFT")


@program("broadcast.elemwise")
def elemwise(theano, T, np):
    """Patterns of x + y for every pair of patterns."""

    def row(first):
        cells = []
        for second in WORDS:
            cells.append(pattern(_typed(T, first) + _typed(T, second)))
        return " ".join(cells)

    return {word or "()": row(word) for word in WORDS}


@program("broadcast.dot")
def dot(theano, T, np):
    """Patterns of dot for every pair of patterns."""

    def cell(first, second):
        result = attempt(lambda: pattern(T.dot(_typed(T, first), _typed(T, second))))
        return result.split(":")[0]

    return {
        word or "()": " ".join(cell(word, other) for other in WORDS if "T" not in other[2:])
        for word in WORDS
    }


@program("broadcast.dimshuffle")
def dimshuffle(theano, T, np):
    """Reordering, adding and dropping dimensions."""
    m, v, row, col = T.dmatrix("m"), T.dvector("v"), T.drow("r"), T.dcol("c")
    return patterns_of(
        {
            "m (1, 0)": lambda: m.dimshuffle(1, 0),
            "m list": lambda: m.dimshuffle([1, 0]),
            "m (0, x, 1)": lambda: m.dimshuffle(0, "x", 1),
            "m (0)": lambda: m.dimshuffle(0),
            "m (0, 0)": lambda: m.dimshuffle(0, 0),
            "m (2)": lambda: m.dimshuffle(2, 0, 1),
            "v (x, 0)": lambda: v.dimshuffle("x", 0),
            "v (0, x, x)": lambda: v.dimshuffle(0, "x", "x"),
            "row (1)": lambda: row.dimshuffle(1),
            "row (1, 0)": lambda: row.dimshuffle(1, 0),
            "col (0)": lambda: col.dimshuffle(0),
            "col ()": lambda: col.dimshuffle(),
            "row.T": lambda: row.T,
            "v.T": lambda: v.T,
            "transpose axes": lambda: T.dtensor3().transpose(2, 0, 1),
            "swapaxes": lambda: T.swapaxes(T.TensorType("float64", (True, False, False))(), 0, 2),
            "squeeze row": lambda: row.squeeze(),
            "squeeze matrix": lambda: m.squeeze(),
            "shape_padleft": lambda: T.shape_padleft(v),
            "shape_padleft 2": lambda: T.shape_padleft(v, n_ones=2),
            "shape_padright": lambda: T.shape_padright(v),
            "shape_padaxis": lambda: T.shape_padaxis(m, 1),
            "v[None]": lambda: v[None],
            "v[None, :]": lambda: v[None, :],
            "v[:, None]": lambda: v[:, None],
            "m[:, None, :]": lambda: m[:, None, :],
            "m[None, ..., None]": lambda: m[None, ..., None],
        }
    )


@program("broadcast.rebroadcast")
def rebroadcast(theano, T, np):
    """Declaring and forgetting that a dimension has length one."""
    m, row = T.dmatrix("m"), T.drow("r")
    return patterns_of(
        {
            "addbroadcast 0": lambda: T.addbroadcast(m, 0),
            "addbroadcast 0 1": lambda: T.addbroadcast(m, 0, 1),
            "unbroadcast": lambda: T.unbroadcast(row, 0),
            "patternbroadcast": lambda: T.patternbroadcast(m, (True, False)),
            "specify_shape": lambda: theano.compile.ops.specify_shape(m, (1, 3)),
            "shared (1, 3)": lambda: theano.shared(np.ones((1, 3))),
            "shared declared": lambda: theano.shared(np.ones((1, 3)), broadcastable=(True, False)),
            "constant (1, 3)": lambda: T.constant(np.ones((1, 3))),
            "constant (0, 1)": lambda: T.constant(np.ones((0, 1))),
            "as_tensor_variable (1,)": lambda: T.as_tensor_variable(np.ones(1)),
            "as_tensor_variable [2.]": lambda: T.as_tensor_variable([2.0]),
            "as_tensor_variable ndim": lambda: T.as_tensor_variable(np.ones(3), ndim=2),
            "as_tensor_variable of variables": lambda: T.as_tensor_variable(
                [T.dscalar(), T.dscalar()]
            ),
        }
    )


@program("broadcast.reductions")
def reductions(theano, T, np):
    """Axis, several axes, negative axes and keepdims."""
    m, row, t3 = T.dmatrix("m"), T.drow("r"), T.dtensor3("t3")
    cases = {}
    for name in ("sum", "max", "mean", "argmax", "any", "prod", "var", "std", "min"):
        reduce = getattr(T, name)
        cases[name + " all"] = partial(reduce, m)
        cases[name + " 0 of row"] = partial(reduce, row, axis=0)
        cases[name + " 1 of row"] = partial(reduce, row, axis=1)
        cases[name + " -1"] = partial(reduce, t3, axis=-1)
        cases[name + " keepdims"] = partial(reduce, m, axis=0, keepdims=True)
        cases[name + " keepdims all"] = partial(reduce, t3, keepdims=True)
        cases[name + " two axes"] = partial(reduce, t3, axis=(0, 2))
        cases[name + " list of axes"] = partial(reduce, t3, axis=[0, 1])
        cases[name + " out of range"] = partial(reduce, m, axis=2)
        cases[name + " float axis"] = partial(reduce, m, axis=1.0)
    cases["max_and_argmax"] = lambda: T.max_and_argmax(t3, axis=1)[1]
    cases["cumsum"] = lambda: T.cumsum(row, axis=1)
    cases["cumsum flat"] = lambda: T.cumsum(row)
    cases["norm axis"] = lambda: m.norm(2, axis=1)
    return patterns_of(cases)


@program("broadcast.shaping")
def shaping(theano, T, np):
    """reshape, alloc, joins and other makers of shapes."""
    v, m, row, col, n = T.dvector("v"), T.dmatrix("m"), T.drow("r"), T.dcol("c"), T.lscalar("n")
    return patterns_of(
        {
            "reshape (1, 3)": lambda: v.reshape((1, 3)),
            "reshape (1, -1)": lambda: v.reshape((1, -1)),
            "reshape (-1, 1)": lambda: v.reshape((-1, 1)),
            "reshape (n, 1)": lambda: v.reshape((n, 1)),
            "reshape (n, n)": lambda: v.reshape((n, n)),
            "reshape separate": lambda: v.reshape([2, 1]),
            "reshape symbolic ndim": lambda: v.reshape(T.lvector(), ndim=2),
            "reshape symbolic": lambda: v.reshape(T.lvector()),
            "reshape two -1": lambda: v.reshape((-1, -1)),
            "reshape of shape": lambda: v.reshape(m.shape),
            "reshape join": lambda: v.reshape(T.concatenate([[1], m.shape])),
            "reshape 3": lambda: m.reshape((m.shape[0], 1, m.shape[1])),
            "flatten": lambda: m.flatten(),
            "flatten 2": lambda: T.dtensor4().flatten(2),
            "flatten row": lambda: row.flatten(2),
            "ravel": lambda: m.ravel(),
            "zeros (1, 2)": lambda: T.zeros((1, 2)),
            "zeros (n,)": lambda: T.zeros((n,)),
            "zeros shape": lambda: T.zeros(m.shape),
            "alloc 1 n": lambda: T.alloc(0.0, 1, n),
            "alloc of row": lambda: T.alloc(row, 4, 5),
            "zeros_like row": lambda: T.zeros_like(row),
            "ones_like col": lambda: T.ones_like(col),
            "fill": lambda: T.fill(m, row),
            "eye 1": lambda: T.eye(1),
            "eye 1 3": lambda: T.eye(1, 3),
            "arange 1": lambda: T.arange(1),
            "identity_like": lambda: T.identity_like(row),
            "outer": lambda: T.outer(v, v),
            "concatenate rows 0": lambda: T.concatenate([row, row], axis=0),
            "concatenate rows 1": lambda: T.concatenate([row, row], axis=1),
            "concatenate row matrix 1": lambda: T.concatenate([row, m], axis=1),
            "concatenate one": lambda: T.concatenate([row], axis=0),
            "concatenate -1": lambda: T.concatenate([row, m], axis=-1),
            "concatenate ndims": lambda: T.concatenate([v, m]),
            "concatenate nothing": lambda: T.concatenate([]),
            "concatenate of a tensor": lambda: T.concatenate(m),
            "concatenate axis 2": lambda: T.concatenate([m, m], axis=2),
            "stack": lambda: T.stack([v, v]),
            "stack one": lambda: T.stack([v]),
            "stack axis 1": lambda: T.stack([row, row], axis=1),
            "stack old call": lambda: T.stack(v, v),
            "stack negative axis": lambda: T.stack([v, v], axis=-1),
            "horizontal_stack": lambda: T.horizontal_stack(m, col),
            "vertical_stack": lambda: T.vertical_stack(m, row),
            "tile": lambda: T.tile(row, (1, 1)),
            "tile ndim": lambda: T.tile(v, (2, 1)),
            "tile vector reps": lambda: T.tile(m, (n, 1)),
            "repeat": lambda: T.repeat(row, 2, axis=0),
            "repeat 1": lambda: T.repeat(row, 1, axis=0),
            "repeat all": lambda: T.repeat(row, 2),
            "diag": lambda: T.diag(v),
            "diag of row": lambda: T.diag(row),
            "split": lambda: T.split(row, [1, 2], 2, axis=1)[0],
            "switch": lambda: T.switch(row > 0, col, 0.0),
            "tensordot": lambda: T.tensordot(T.dtensor3(), m, axes=[[2], [0]]),
            "tensordot of row": lambda: T.tensordot(row, m, axes=1),
            "batched_dot": lambda: T.batched_dot(T.dtensor3(), T.dmatrix()),
            "gradient of row sum": lambda: T.grad((row + m).sum(), row),
            "gradient of col product": lambda: T.grad((col * row).sum(), col),
            "set_subtensor": lambda: T.set_subtensor(row[:, 0], 1.0),
            "softmax of vector": lambda: T.nnet.softmax(v),
            "softmax of row": lambda: T.nnet.softmax(row),
            "sort": lambda: T.sort(row, axis=0),
            "nonzero": lambda: m.nonzero()[0],
            "take": lambda: m.take([1, 0], axis=0),
            "take 1": lambda: row.take([0], axis=0),
            "shape": lambda: row.shape,
            "roll": lambda: T.roll(row, 1, axis=1),
        }
    )


SHAPE_CASES = {
    "elemwise": lambda T, x, y: x + x,
    "row of mean": lambda T, x, y: x - x.mean(axis=0),
    "sum 0": lambda T, x, y: x.sum(axis=0),
    "sum keepdims": lambda T, x, y: x.sum(axis=1, keepdims=True),
    "dot": lambda T, x, y: T.dot(x, y),
    "transpose": lambda T, x, y: x.T,
    "dimshuffle": lambda T, x, y: x.dimshuffle(1, "x", 0),
    "reshape": lambda T, x, y: x.reshape((3, 2)),
    "reshape -1": lambda T, x, y: x.reshape((-1,)),
    "flatten": lambda T, x, y: x.flatten(),
    "index": lambda T, x, y: x[1],
    "slice": lambda T, x, y: x[:1, ::2],
    "slice out of range": lambda T, x, y: x[5:, -9:],
    "reversed": lambda T, x, y: x[::-1],
    "advanced": lambda T, x, y: x[[0, 1, 1]],
    "concatenate": lambda T, x, y: T.concatenate([x, y.T], axis=0),
    "stack": lambda T, x, y: T.stack([x, x], axis=2),
    "tile": lambda T, x, y: T.tile(x, (2, 1)),
    "repeat": lambda T, x, y: T.repeat(x, 2, axis=1),
    "alloc": lambda T, x, y: T.alloc(0.0, x.shape[0], 4),
    "eye": lambda T, x, y: T.eye(x.shape[0], x.shape[1]),
    "arange": lambda T, x, y: T.arange(x.shape[1]),
    "outer": lambda T, x, y: T.outer(x[0], y[0]),
    "argmax": lambda T, x, y: T.argmax(x, axis=0),
    "softmax": lambda T, x, y: T.nnet.softmax(x),
    "diag": lambda T, x, y: T.diag(x[0]),
    "nonzero": lambda T, x, y: T.stack(x.nonzero()),
    "gradient": lambda T, x, y: T.grad(T.dot(x, y).sum(), x),
    "set_subtensor": lambda T, x, y: T.set_subtensor(x[0], 1.0),
    "zeros_like": lambda T, x, y: T.zeros_like(x),
    "cumsum": lambda T, x, y: T.cumsum(x, axis=0),
    "sort": lambda T, x, y: T.sort(x, axis=0),
    "tensordot": lambda T, x, y: T.tensordot(x, y, axes=[[0], [1]]),
}


@program("broadcast.run_time_shapes")
def run_time_shapes(theano, T, np):
    """The symbolic shape, and the shape of what is computed."""

    def case(build):
        x, y = T.dmatrix("x"), T.dmatrix("y")
        result = build(T, x, y)
        values = (np.arange(6.0).reshape(2, 3), np.ones((3, 2)))
        both = theano.function([x, y], [result.shape, result], on_unused_input="ignore")
        symbolic, computed = both(*values)
        return [symbolic, np.array(computed.shape, "int64")]

    return attempt_each({label: partial(case, build) for label, build in SHAPE_CASES.items()})


@program("broadcast.refused_at_run_time")
def refused_at_run_time(theano, T, np):
    """Shapes that do not fit: dimensions of length one do not stretch unless declared."""
    x, y, v, r = T.dmatrix("x"), T.dmatrix("y"), T.dvector("v"), T.drow("r")
    ones = np.ones
    return {
        "(1, 3) + (2, 3)": in_modes(theano, [x, y], x + y, ones((1, 3)), ones((2, 3))),
        "(2, 3) + (4, 3)": in_modes(theano, [x, y], x + y, ones((2, 3)), ones((4, 3))),
        "matrix + vector": in_modes(theano, [x, v], x + v, ones((2, 3)), ones(2)),
        "matrix + vector of 1": in_modes(theano, [x, v], x + v, ones((2, 3)), ones(1)),
        "row + matrix": in_modes(theano, [r, x], r + x, ones((1, 3)), ones((2, 3))),
        "row of 2": in_modes(theano, [r], r + 1, ones((2, 3))),
        "dot": in_modes(theano, [x, y], T.dot(x, y), ones((2, 3)), ones((2, 3))),
        "dot vector": in_modes(theano, [x, v], T.dot(x, v), ones((2, 3)), ones(2)),
        "gemm": in_modes(theano, [x, y], y + T.dot(x, x), ones((2, 2)), ones((3, 3))),
        "addbroadcast": in_modes(theano, [x], T.addbroadcast(x, 0) + 1, ones((2, 2))),
        "reshape": in_modes(theano, [v], v.reshape((2, 2)), ones(3)),
        "reshape -1": in_modes(theano, [v], v.reshape((2, -1)), ones(3)),
        "join": in_modes(theano, [x, y], T.concatenate([x, y]), ones((2, 3)), ones((2, 2))),
        "split": in_modes(theano, [v], T.split(v, [1, 1], 2)[0], ones(3)),
        "specify_shape": in_modes(
            theano, [v], theano.compile.ops.specify_shape(v, (2,)) + 1, ones(3)
        ),
        "switch": in_modes(theano, [x, y], T.switch(x > 0, y, 0), ones((2, 3)), ones((3, 3))),
        "set_subtensor": in_modes(theano, [v], T.set_subtensor(v[:2], ones(3)), ones(4)),
        "batched_dot": in_modes(
            theano,
            [x],
            T.batched_dot(x.dimshuffle(0, "x", 1), T.ones((3, 2, 2))),
            ones((2, 2)),
        ),
    }


@program("broadcast.variable_protocol")
def variable_protocol(theano, T, np):
    """What Python's own operations on variables answer."""
    x, m = T.dvector("x"), T.dmatrix("m")
    i8 = tensor(T, "int8", 1)
    return attempt_each(
        {
            "x == x": lambda: x == x,
            "x == 1": lambda: x == 1,
            "x != x": lambda: x != x,
            "x in [m]": lambda: x in [m],
            "bool(x > 0)": lambda: bool(x > 0),
            "bool(x)": lambda: bool(x),
            "0 < x < 1": lambda: 0 < x < 1,
            "len(x)": lambda: len(x),
            "iter(m)": lambda: list(m),
            "iter(shape)": lambda: len(list(m.shape)),
            "float(scalar)": lambda: float(T.dscalar()),
            "int(scalar)": lambda: int(T.lscalar()),
            "x[0] = 1": lambda: x.__setitem__(0, 1),
            "hash": lambda: hash(x) == hash(x),
            "x + True": lambda: x + True,
            "x + None": lambda: x + None,
            "x + text": lambda: x + "a",
            "x & x": lambda: x & x,
            "~x": lambda: ~x,
            "i8 & i8": lambda: (i8 & i8).dtype,
            "i8 | 1": lambda: (i8 | 1).dtype,
            "i8 ^ 1": lambda: (i8 ^ 1).dtype,
            "x << 1": lambda: x << 1,
            "i8 << 1": lambda: i8 << 1,
            "x @ x": lambda: (x.__matmul__(x)).ndim,
            "divmod": lambda: len(divmod(x, 2)),
            "abs": lambda: str(abs(x).owner.op),
            "type of np.ones(2) * x": lambda: type(np.ones(2) * x).__name__,
            "np.ones(2) + x": lambda: str((np.ones(2) + x).type),
            "np.exp(x)": lambda: str(np.exp(x).owner.op),
            "np.dot": lambda: type(np.dot(np.ones((2, 2)), m)).__name__,
            "np.sqrt(x)": lambda: str(np.sqrt(x).owner.op),
            "sum([x, x])": lambda: str(sum([x, x]).type),
            "ndim": lambda: m.ndim,
            "unknown attribute": lambda: x.nothing,
            "x(1)": lambda: x(1),
            "copy name": lambda: x.copy().name,
            "clone name": lambda: x.clone().name,
            "x.type()": lambda: str(x.type()),
            "type equality": lambda: [x.type == T.dvector().type, x.type == m.type],
            "owner of input": lambda: x.owner is None,
            "x.T of vector": lambda: str(x.T.owner),
        }
    )
