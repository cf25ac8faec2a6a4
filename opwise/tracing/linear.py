"""Products, and the functions of numpy.linalg and numpy.fft, on traced arrays."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwise import linalg as L
from opwise import tensor as T
from opwise.tensor.variable import Tensor
from opwise.tracing.indexing import broadcast_dims, converted, with_ones
from opwise.tracing.ops import numpy_call
from opwise.tracing.reducing import _NO_VALUE, _finish, amax, amin, sum_
from opwise.tracing.shaping import (
    array,
    astype,
    axes_of,
    axis_of,
    expand_dims,
    implements,
    moveaxis,
    ravel,
    reshape,
    transpose,
)
from opwise.tracing.trace import untraceable
from opwise.tracing.values import (
    HANDLERS,
    UNKNOWN,
    Dim,
    Number,
    Traced,
    as_traced,
    fitted,
    guess,
    hint_of,
    is_one,
    is_traced,
    number_of,
    require_equal,
    shape_text,
)

#: numpy's own classes of results
_OWN = inspect.unwrap(np.linalg.eig).__globals__
SlogdetResult, QRResult, SVDResult = _OWN["SlogdetResult"], _OWN["QRResult"], _OWN["SVDResult"]
EigResult, EighResult = _OWN["EigResult"], _OWN["EighResult"]


def _no_float16(*arrays: Traced) -> None:
    if any(x.dtype == np.float16 for x in arrays):
        raise TypeError("array type float16 is unsupported in linalg")


def _common(*arrays: Traced) -> tuple[list[Traced], np.dtype[Any]]:
    made = np.result_type(*[x.dtype for x in arrays])
    return [astype(x, made, copy=False) for x in arrays], made


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    x, y = as_traced(a), as_traced(b)
    if not x.ndim or not y.ndim:
        return _finish(np.multiply(x, y), out)
    made = tensordot(x, y, ([x.ndim - 1], [max(y.ndim - 2, 0)]))
    made.scalar = not made.ndim
    return _finish(made, out)


HANDLERS.methods["dot"] = dot


def _inner(x: Traced, y: Traced, i: int, j: int) -> None:
    require_equal(
        x.dims[i],
        y.dims[j],
        lambda: ValueError(
            f"shapes {shape_text(x.dims)} and {shape_text(y.dims)} not aligned: "
            f"{hint_of(x.dims[i])} (dim {i}) != {hint_of(y.dims[j])} (dim {j})"
        ),
    )


def _product2(x: Traced, y: Traced) -> Tensor:
    """Return the product of vectors and matrices of one dtype."""
    dtype = x.dtype
    if dtype.kind == "b":
        made = _product2(astype(x, np.int64), astype(y, np.int64))
        return T.neq(made, 0)
    if dtype.kind in "iu" or dtype == np.float16:
        wide = np.dtype(np.float32) if dtype == np.float16 else dtype
        u, v = (astype(z, wide, copy=False).variable for z in (x, y))
        return converted(T.dot(u, v), dtype)
    return T.dot(x.variable, y.variable)


@implements(np.matmul, np.linalg.matmul)
def matmul(x1: Any, x2: Any, /, out: Any = None, **keywords: Any) -> Any:
    x, y = as_traced(x1), as_traced(x2)
    if not x.ndim or not y.ndim:
        raise ValueError(
            "matmul: Input operand 0 does not have enough dimensions (has 0, gufunc core with "
            "signature (n?,k),(k,m?)->(n?,m?) requires 1)"
        )
    (x, y), dtype = _common(x, y)
    i, j = x.ndim - 1, max(y.ndim - 2, 0)
    require_equal(
        x.dims[i],
        y.dims[j],
        lambda: ValueError(
            "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc "
            f"signature (n?,k),(k,m?)->(n?,m?) (size {hint_of(y.dims[j])} is different from "
            f"{hint_of(x.dims[i])})"
        ),
    )
    if x.ndim <= 2 and y.ndim <= 2:
        dims = (*x.dims[:-1], *y.dims[1:])
        made = _product2(x, y)
        result = array(fitted(converted(made, dtype), dims), dims, not dims)
        return _finish(result, out)
    if y.ndim == 2 and x.ndim > 2:
        flat = reshape(x, (-1, x.dims[-1]))
        made = reshape(matmul(flat, y), (*x.dims[:-1], y.dims[-1]))
        return _finish(made, out)
    if y.ndim == 1:
        made = matmul(x, y[:, None])
        return _finish(made[..., 0], out)
    if x.ndim == 1:
        return _finish(matmul(x[None, :], y)[..., 0, :], out)
    batch, own = broadcast_dims([x.dims[:-2], y.dims[:-2]])
    wide = []
    for z, shape in zip((x, y), own, strict=True):
        full = (*[1] * (len(batch) - len(shape)), *shape, *z.dims[-2:])
        variable = with_ones(z.variable, [*shape, *z.dims[-2:]], len(full))
        z = array(variable, full)
        wide.append(reshape(HANDLERS.functions[np.broadcast_to](z, (*batch, *z.dims[-2:])),
                            (-1, *z.dims[-2:])))  # fmt: skip
    u, v = (w.variable for w in wide)
    if dtype.kind in "biu" or dtype == np.float16:
        made = numpy_call("matmul", [u, v], [(dtype, [False, False, False])])[0]
    else:
        made = T.batched_dot(T.unbroadcast(u, 0), T.unbroadcast(v, 0))
    dims3 = (wide[0].dims[0], x.dims[-2], y.dims[-1])
    result = array(fitted(made, dims3), dims3)
    return _finish(reshape(result, (*batch, x.dims[-2], y.dims[-1])), out)


@implements(np.vecdot, np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, **_: Any) -> Any:
    x, y = as_traced(x1), as_traced(x2)
    return sum_(np.multiply(np.conjugate(x), y), axis, np.result_type(x.dtype, y.dtype))


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    x = ravel(a)
    return dot(np.conjugate(x) if x.dtype.kind == "c" else x, ravel(b))


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    x, y = as_traced(a), as_traced(b)
    if not x.ndim or not y.ndim:
        return np.multiply(x, y)
    made = tensordot(x, y, ([x.ndim - 1], [y.ndim - 1]))
    made.scalar = not made.ndim
    return made  # type: ignore[no-any-return]


@implements(np.outer, np.linalg.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    return _finish(np.multiply(ravel(a)[:, None], ravel(b)[None, :]), out)


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    x, y = as_traced(a), as_traced(b)
    ndim = max(x.ndim, y.ndim)
    x = x[(*[None] * (ndim - x.ndim), Ellipsis)]
    y = y[(*[None] * (ndim - y.ndim), Ellipsis)]
    left = expand_dims(x, tuple(range(1, 2 * ndim, 2)))
    right = expand_dims(y, tuple(range(0, 2 * ndim, 2)))
    shape = tuple(m * n for m, n in zip(x.dims, y.dims, strict=True))
    return reshape(np.multiply(left, right), shape)


@implements(np.tensordot, np.linalg.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    x, y = as_traced(a), as_traced(b)
    (x, y), dtype = _common(x, y)
    if isinstance(axes, int | np.integer):
        left, right = list(range(x.ndim - axes, x.ndim)), list(range(axes))
    else:
        left, right = (list(k) if isinstance(k, list | tuple) else [k] for k in axes)
        left, right = list(axes_of(tuple(left), x.ndim)), list(axes_of(tuple(right), y.ndim))
    if len(left) != len(right):
        raise ValueError("shape-mismatch for sum")
    for i, j in zip(left, right, strict=True):
        _inner(x, y, i, j)
    kept_x = [k for k in range(x.ndim) if k not in left]
    kept_y = [k for k in range(y.ndim) if k not in right]
    dims = (*[x.dims[k] for k in kept_x], *[y.dims[k] for k in kept_y])
    if len(left) == 1 and x.ndim <= 2 and y.ndim <= 2:
        u = transpose(x, [*kept_x, *left])
        v = transpose(y, [*right, *kept_y])
        return array(fitted(converted(_product2(u, v), dtype), dims), dims)
    inner_size: Dim = 1
    for k in left:
        inner_size = x.dims[k] if is_one(inner_size) else inner_size * x.dims[k]
    u = reshape(transpose(x, [*kept_x, *left]), (-1 if kept_x else 1, inner_size))
    v = reshape(transpose(y, [*right, *kept_y]), (inner_size, -1 if kept_y else 1))
    made = _product2(u, v)
    flat = (u.dims[0], v.dims[1])
    return reshape(array(fitted(converted(made, dtype), flat), flat), dims)


@implements(np.einsum)
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **keywords: Any) -> Any:
    if keywords:
        raise untraceable("numpy.einsum with dtype=, order= or casting= cannot be traced.", "")
    if not isinstance(operands[0], str):
        raise untraceable(
            "numpy.einsum with lists of axes cannot be traced.", "Write a string of subscripts."
        )
    text = operands[0].replace(" ", "")
    arrays = [as_traced(x) for x in operands[1:]]
    arrays, dtype = _common(*arrays)
    inputs, arrow, result = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(arrays):
        raise ValueError("fewer operands provided to einstein sum function than specified in the "
                         "subscripts string" if len(terms) > len(arrays) else
                         "more operands provided to einstein sum function than specified in the "
                         "subscripts string")  # fmt: skip
    terms, result, arrow = _without_ellipses(terms, arrays, result, arrow)
    if not arrow:
        letters = "".join(terms)
        result = "".join(c for c in sorted(set(letters)) if letters.count(c) == 1)
    current = [_distinct(x, term) for x, term in zip(arrays, terms, strict=True)]
    while len(current) > 1:
        one, two = current[0], current[1]
        rest = "".join(t for _, t in current[2:]) + result
        current[0:2] = [_contracted(one, two, rest)]
    x, term = current[0]
    gone = tuple(k for k, c in enumerate(term) if c not in result)
    if gone:
        x = sum_(x, gone, dtype)
        term = "".join(c for c in term if c in result)
    x = transpose(x, [term.index(c) for c in result]) if result else x
    if dtype.kind == "b":
        x = astype(x, bool, copy=False)
    x = Traced(x.root, x.dims, x._path, not x.ndim, x.contiguous)
    if not gone and len(arrays) == 1:
        return _finish(x, out)
    return _finish(x, out)


def _without_ellipses(
    terms: list[str], arrays: list[Traced], result: str, arrow: str
) -> tuple[list[str], str, str]:
    """Return subscripts in which letters stand for the axes of each '...'."""
    used = set("".join((*terms, result)))
    free = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in used]
    most = 0
    counts = []
    for term, x in zip(terms, arrays, strict=True):
        count = x.ndim - len(term.replace("...", "")) if "..." in term else 0
        if count < 0 or ("..." not in term and len(term) != x.ndim):
            raise ValueError(
                "einstein sum subscripts string does not contain the right number of subscripts "
                f"for an operand of {x.ndim} dimensions: {term!r}"
            )
        counts.append(count)
        most = max(most, count)
    letters = "".join(free[:most])
    made = [
        term.replace("...", letters[most - count :])
        for term, count in zip(terms, counts, strict=True)
    ]
    if arrow:
        return made, result.replace("...", letters), arrow
    if most:
        plain = "".join(made)
        named = "".join(c for c in sorted(set(plain) - set(letters)) if plain.count(c) == 1)
        return made, letters + named, "->"
    return made, result, arrow


def _distinct(x: Traced, term: str) -> tuple[Traced, str]:
    """Return an operand without repeated letters: their diagonals."""
    for letter in sorted(set(term)):
        while term.count(letter) > 1:
            i = term.index(letter)
            j = term.index(letter, i + 1)
            x = HANDLERS.functions[np.diagonal](x, 0, i, j)
            term = term[:i] + term[i + 1 : j] + term[j + 1 :] + letter
    return x, term


def _contracted(one: tuple[Traced, str], two: tuple[Traced, str], rest: str) -> tuple[Traced, str]:
    """Return the product of two operands, summed over the letters that nothing else needs."""
    (x, a), (y, b) = one, two
    sums = [c for c in a if c in b and c not in rest]
    x_gone = tuple(k for k, c in enumerate(a) if c not in b and c not in rest)
    y_gone = tuple(k for k, c in enumerate(b) if c not in a and c not in rest)
    if x_gone:
        x, a = sum_(x, x_gone, x.dtype), "".join(c for c in a if c in b or c in rest)
    if y_gone:
        y, b = sum_(y, y_gone, y.dtype), "".join(c for c in b if c in a or c in rest)
    batch = [c for c in a if c in b and c in rest]
    unequal = any(is_one(x.dims[a.index(c)]) != is_one(y.dims[b.index(c)]) for c in (*sums, *batch))
    if not batch and sums and not unequal and x.dtype.kind in "fc":
        made = tensordot(x, y, ([a.index(c) for c in sums], [b.index(c) for c in sums]))
        return made, "".join(c for c in a if c not in sums) + "".join(c for c in b if c not in sums)
    if batch and sums and not unequal and x.dtype.kind in "fc" and len(sums) == 1:
        own_a = [c for c in a if c not in batch and c not in sums]
        own_b = [c for c in b if c not in batch and c not in sums]
        u = transpose(x, [a.index(c) for c in (*batch, *own_a, *sums)])
        v = transpose(y, [b.index(c) for c in (*batch, *sums, *own_b)])
        if len(own_a) == 1 and len(own_b) == 1:
            return matmul(u, v), "".join((*batch, *own_a, *own_b))
    letters = [*a, *[c for c in b if c not in a]]
    u = _aligned(x, a, letters)
    v = _aligned(y, b, letters)
    product = np.multiply(u, v)
    gone = tuple(k for k, c in enumerate(letters) if c in sums)
    if gone:
        product = sum_(product, gone, x.dtype)
    return product, "".join(c for c in letters if c not in sums)


def _aligned(x: Traced, term: str, letters: Sequence[str]) -> Traced:
    """Return an operand with an axis for each letter, of length 1 for those that it lacks."""
    order = [term.index(c) for c in letters if c in term]
    x = transpose(x, order)
    return x[tuple(slice(None) if c in term else None for c in letters)]


@implements(np.cross, np.linalg.cross)
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if operator.index(x.dims[-1]) != 3 or operator.index(y.dims[-1]) != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they have other "
            "lengths"
        )
    parts = [
        np.subtract(
            np.multiply(x[..., (k + 1) % 3], y[..., (k + 2) % 3]),
            np.multiply(x[..., (k + 2) % 3], y[..., (k + 1) % 3]),
        )
        for k in range(3)
    ]
    return moveaxis(np.stack(parts, -1), -1, axisc)


# --- numpy.linalg ---------------------------------------------------------------------------------


def _matrix(a: Any, square: bool = True) -> Traced:
    """Return an operand of numpy.linalg: a matrix, or a stack of them, of floats."""
    x = as_traced(a)
    if x.ndim < 2:
        raise np.linalg.LinAlgError(
            f"{x.ndim}-dimensional array given. Array must be at least two-dimensional"
        )
    if x.dtype == np.float16:
        raise TypeError("array type float16 is unsupported in linalg")
    if x.dtype.kind in "iub":
        x = astype(x, float)
    if square:
        require_equal(
            x.dims[-2],
            x.dims[-1],
            lambda: np.linalg.LinAlgError("Last 2 dimensions of the array must be square"),
        )
    return x


def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.empty(0, dtype).real.dtype


def _by_numpy(
    name: str,
    x: Traced,
    results: Sequence[tuple[Any, Sequence[Dim]]],
    *more: Tensor,
    keywords: tuple[str, ...] = (),
    **constants: Any,
) -> list[Traced]:
    """Return results of a function of numpy.linalg, with their dtypes and shapes."""
    types = [(dtype, [is_one(d) for d in dims]) for dtype, dims in results]
    made = numpy_call(f"linalg.{name}", [x.variable, *more], types, keywords, **constants)
    return [array(v, dims, not dims) for v, (_, dims) in zip(made, results, strict=True)]


def _plain(x: Traced) -> bool:
    return x.ndim == 2 and x.dtype.kind == "f"


@implements(np.linalg.inv)
def inv(a: Any) -> Traced:
    x = _matrix(a)
    if _plain(x):
        return array(fitted(converted(L.inv(x.variable), x.dtype), x.dims), x.dims)
    return _by_numpy("inv", x, [(x.dtype, x.dims)])[0]


@implements(np.linalg.det)
def det(a: Any) -> Any:
    x = _matrix(a)
    if _plain(x):
        return array(converted(L.det(x.variable), x.dtype), (), True)
    return _by_numpy("det", x, [(x.dtype, x.dims[:-2])])[0]


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    x = _matrix(a)
    sign, log = _by_numpy("slogdet", x, [(x.dtype, x.dims[:-2]), (_real(x.dtype), x.dims[:-2])])
    return SlogdetResult(sign, log)


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Traced:
    x, y = _matrix(a), as_traced(b)
    _no_float16(y)
    if y.dtype.kind in "iub":
        y = astype(y, float)
    (x, y), dtype = _common(x, y)
    rows = 0 if y.ndim == 1 else y.ndim - 2
    require_equal(
        x.dims[-1],
        y.dims[rows],
        lambda: ValueError(
            "solve: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
            f"(m,m),(m)->(m) (size {hint_of(y.dims[rows])} is different from {hint_of(x.dims[-1])})"
        ),
    )
    if _plain(x) and y.ndim <= 2:
        made = L.solve(x.variable, y.variable)
        return array(fitted(converted(made, dtype), y.dims), y.dims)
    if y.ndim == 1:
        dims: tuple[Dim, ...] = (*x.dims[:-2], x.dims[-1])
    else:
        dims = (*broadcast_dims([x.dims[:-2], y.dims[:-2]])[0], *y.dims[-2:])
    return _by_numpy("solve", x, [(dtype, dims)], y.variable)[0]


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Traced:
    x = _matrix(a)
    if _plain(x) and not upper:
        # numpy reads the lower triangle alone
        return array(fitted(converted(L.cholesky(x.variable), x.dtype), x.dims), x.dims)
    return _by_numpy("cholesky", x, [(x.dtype, x.dims)], upper=upper)[0]


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    x = _matrix(a, False)
    rows, columns = x.dims[-2:]
    if mode == "complete":
        least: Dim = rows
    elif mode == "reduced":
        least = _least(rows, columns)
    elif mode == "r":
        least = _least(rows, columns)
        return _by_numpy("qr", x, [(x.dtype, (*x.dims[:-2], least, columns))], mode="r")[0]
    else:
        raise untraceable(f"numpy.linalg.qr with mode={mode!r} cannot be traced.", "")
    q, r = _by_numpy(
        "qr", x,
        [(x.dtype, (*x.dims[:-2], rows, least)), (x.dtype, (*x.dims[:-2], least, columns))],
        mode=mode,
    )  # fmt: skip
    return QRResult(q, r)


def _least(a: Dim, b: Dim) -> Dim:
    one, two = hint_of(a), hint_of(b)
    if UNKNOWN in (one, two):
        raise untraceable("The lengths of a matrix must be known.", "Do not take it by a mask.")
    return a if number_less(a, b) else b


def number_less(a: Dim, b: Dim) -> bool:
    """Return whether one length is at most another, which becomes a condition."""
    return bool(a <= b) if a is not b else True


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    x = _matrix(a)
    values, vectors = _by_numpy(
        "eigh", x, [(_real(x.dtype), x.dims[:-1]), (x.dtype, x.dims)], UPLO=UPLO
    )
    return EighResult(values, vectors)


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    x = _matrix(a)
    return _by_numpy("eigvalsh", x, [(_real(x.dtype), x.dims[:-1])], UPLO=UPLO)[0]


@implements(np.linalg.svd)
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    x = _matrix(a, False)
    rows, columns = x.dims[-2:]
    least = _least(rows, columns)
    before = x.dims[:-2]
    if not compute_uv:
        return _by_numpy("svd", x, [(_real(x.dtype), (*before, least))], compute_uv=False)[0]
    left = (*before, rows, rows if full_matrices else least)
    right = (*before, columns if full_matrices else least, columns)
    u, s, v = _by_numpy(
        "svd", x, [(x.dtype, left), (_real(x.dtype), (*before, least)), (x.dtype, right)],
        full_matrices=full_matrices,
    )  # fmt: skip
    return SVDResult(u, s, v)


@implements(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    return svd(x, compute_uv=False)


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    a = _matrix(x, False)
    if p not in (None, 2, -2):
        return _by_numpy("cond", _matrix(x), [(_real(a.dtype), a.dims[:-2])], p=p)[0]
    values = svd(a, compute_uv=False)
    ratio = values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    known = np.logical_not(np.isnan(a).any((-2, -1)))
    unclear = np.logical_and(np.isnan(ratio), known)
    return np.where(unclear, _real(a.dtype).type(np.inf), ratio)[()]


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = _NO_VALUE) -> Any:
    x = _matrix(a, False)
    dims = (*x.dims[:-2], x.dims[-1], x.dims[-2])
    constants = {} if rcond is None else {"rcond": float(rcond)}
    return _by_numpy("pinv", x, [(x.dtype, dims)], **constants)[0]


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    x = as_traced(A)
    if x.ndim < 2 or hermitian or tol is not None or rtol is not None:
        raise untraceable("numpy.linalg.matrix_rank of a matrix alone can be traced.", "")
    x = _matrix(x, False)
    return _by_numpy("matrix_rank", x, [(np.intp, x.dims[:-2])])[0]


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    x = as_traced(a)
    n = operator.index(n)
    if n == 0:
        from opwise.tracing.shaping import eye

        return np.multiply(eye(x.dims[-1], dtype=x.dtype), np.ones_like(x))
    if n < 0:
        x, n = inv(x), -n
    result: Any = None
    while n:
        if n % 2:
            result = x if result is None else matmul(result, x)
        n //= 2
        if n:
            x = matmul(x, x)
    return result


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    x, y = _matrix(a, False), as_traced(b)
    _no_float16(y)
    if y.dtype.kind in "iub":
        y = astype(y, float)
    (x, y), dtype = _common(x, y)
    rows, columns = x.dims
    least = _least(rows, columns)
    left: Number = Number("i", lambda: made[1].variable.shape[0])
    more, constants = [y.variable], {"rcond": rcond}
    if is_traced(rcond):
        more, constants = [y.variable, as_traced(rcond).variable], {}
    made = _by_numpy(
        "lstsq", x,
        [(dtype, (columns, *y.dims[1:])), (_real(dtype), (left,)), (np.int32, ()),
         (_real(dtype), (least,))],
        *more, keywords=() if constants else ("rcond",), **constants,
    )  # fmt: skip
    return made[0], made[1], made[2], made[3]


def _real_if_possible(real: Tensor, *found: Traced) -> list[Traced]:
    """Return complex arrays as real ones, in the calls in which a variable is true."""
    taken = guess(real, in_loops=True)
    if taken is None:
        raise untraceable(
            "numpy gives real or complex numbers here, as the values decide.",
            "Write numpy.linalg.eigh or eigvalsh for symmetric and Hermitian matrices; or add 0j "
            "to the matrix.",
        )
    return [np.real(x) if taken else x for x in found]


def _complex(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.result_type(dtype, np.complex64)


@implements(np.linalg.eig)
def eig(a: Any) -> Any:
    x = _matrix(a)
    kind, results = _complex(x.dtype), [x.dims[:-1], x.dims]
    if x.dtype.kind == "c":
        return EigResult(*_by_numpy("eig", x, [(kind, dims) for dims in results]))
    ones = [(kind, [is_one(d) for d in dims]) for dims in results]
    *made, real = numpy_call("python.eig", [x.variable], [*ones, (bool, ())])
    return EigResult(
        *_real_if_possible(real, *[array(v, d) for v, d in zip(made, results, strict=True)])
    )


@implements(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    x = _matrix(a)
    kind, dims = _complex(x.dtype), x.dims[:-1]
    if x.dtype.kind == "c":
        return _by_numpy("eigvals", x, [(kind, dims)])[0]
    made, real = numpy_call(
        "python.eigvals", [x.variable], [(kind, [is_one(d) for d in dims]), (bool, ())]
    )
    return _real_if_possible(real, array(made, dims))[0]


@implements(np.roots)
def roots(p: Any) -> Any:
    x = as_traced(p)
    if x.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    kind = _complex(np.result_type(x.dtype, float) if x.dtype.kind in "iub" else x.dtype)
    made, real = numpy_call("python.roots", [x.variable], [(kind, (False,)), (bool, ())])
    found = array(made, (Number("i", lambda: made.shape[0]),))
    return found if x.dtype.kind == "c" else _real_if_possible(real, found)[0]


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    a = as_traced(x)
    if a.dtype.kind not in "fc":
        a = astype(a, float)
    if ord is None:
        axes = axes_of(axis, a.ndim)
        if axis is None and not keepdims:
            a, axes = ravel(a), (0,)
        return np.sqrt(sum_(_squares(a), axes, None, None, keepdims))
    if axis is None:
        axes = tuple(range(a.ndim))
    else:
        axes = axes_of(axis, a.ndim)
    if len(axes) == 1:
        (k,) = axes
        size = np.abs(a)
        if ord == np.inf:
            return amax(size, k, None, keepdims)
        if ord == -np.inf:
            return amin(size, k, None, keepdims)
        if ord == 0:
            return sum_(astype(np.not_equal(a, 0), _real(a.dtype)), k, None, None, keepdims)
        if ord == 1:
            return sum_(size, k, None, None, keepdims)
        if ord == 2:
            return np.sqrt(sum_(_squares(a), k, None, None, keepdims))
        if isinstance(ord, str):
            raise ValueError(f"Invalid norm order '{ord}' for vectors")
        return np.power(sum_(np.power(size, ord), k, None, None, keepdims), 1.0 / ord)
    if len(axes) == 2:
        if ord in ("fro", "f"):
            return np.sqrt(sum_(_squares(a), axes, None, None, keepdims))
        if ord in (1, -1, np.inf, -np.inf) and not keepdims:
            rows, columns = axes if abs(ord) == 1 else axes[::-1]
            sums = sum_(np.abs(a), rows)
            rest = columns - (columns > rows)
            return amax(sums, rest) if ord > 0 else amin(sums, rest)
        if ord in (2, -2, "nuc") and not keepdims:
            values = svd(moveaxis(a, axes, (-2, -1)), compute_uv=False)
            if ord == "nuc":
                return sum_(values, -1)
            return amax(values, -1) if ord == 2 else amin(values, -1)
    raise untraceable(f"numpy.linalg.norm with ord={ord!r} and these axes cannot be traced.", "")


def _squares(a: Traced) -> Any:
    if a.dtype.kind == "c":
        return a.real * a.real + a.imag * a.imag
    return a * a


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    a = as_traced(x)
    if axis is None and not keepdims:
        return norm(ravel(a), ord, 0)
    if isinstance(axis, tuple) or axis is None:
        if ord == 2:
            return norm(a, None, axis, keepdims)
        raise untraceable("vector_norm over several axes cannot be traced for this ord.", "")
    return norm(a, ord, axis, keepdims)


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return norm(x, ord, (-2, -1), keepdims)


@implements(np.linalg.trace)
def linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return HANDLERS.functions[np.trace](x, offset, -2, -1, dtype)


@implements(np.linalg.diagonal)
def linalg_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return HANDLERS.functions[np.diagonal](x, offset, -2, -1)


# --- numpy.fft ------------------------------------------------------------------------------------


def _transform(name: str) -> Callable[..., Any]:
    def transformed(
        a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None
    ) -> Any:
        x = as_traced(a)
        axis = axis_of(axis, x.ndim)
        length = x.dims[axis] if n is None else number_of(n)
        constants: dict[str, Any] = {"axis": axis, "norm": norm}
        if name == "rfft":
            size: Dim = length // 2 + 1
        elif name == "irfft" and n is None:
            size = 2 * (length - 1)
        else:
            size = length
        inputs, keywords = [x.variable], ()
        if type(length) is Number and n is not None:
            inputs, keywords = [x.variable, length.variable], ("n",)
        elif n is not None:
            constants["n"] = length
        kind = getattr(np.fft, name)(np.ones(2, x.dtype)).dtype
        dims = tuple(size if k == axis else d for k, d in enumerate(x.dims))
        dims = tuple(operator.index(d) if hint_of(d) == 1 and not is_one(d) else d for d in dims)
        types = [(kind, [is_one(d) for d in dims])]
        (made,) = numpy_call(f"fft.{name}", inputs, types, keywords, **constants)
        return _finish(array(made, dims), out)

    return transformed


for _name in ("fft", "ifft", "rfft", "irfft"):
    implements(getattr(np.fft, _name))(_transform(_name))


def _axes_and_lengths(name: str, x: Traced, s: Any, axes: Any) -> list[tuple[int, Any]]:
    """Return (axis, its length or None) in the order of ``axes``."""
    if axes is None:
        several = x.ndim if s is None else len(s)
        axes = (-2, -1) if name.endswith("2") else range(-several, 0)
    axes = list(axes)
    lengths = [None] * len(axes) if s is None else list(s)
    if len(lengths) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    return [
        (axis, None if n is None or (type(n) is int and n == -1) else n)
        for axis, n in zip(axes, lengths, strict=True)
    ]


def _transform2(name: str, one: str) -> Callable[..., Any]:
    def transformed(
        a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None
    ) -> Any:
        x = as_traced(a)
        each = HANDLERS.functions[getattr(np.fft, one)]
        for axis, n in reversed(_axes_and_lengths(name, x, s, axes)):
            x = each(x, n, axis, norm)
        return _finish(x, out)

    return transformed


for _name, _one in (("fft2", "fft"), ("ifft2", "ifft"), ("fftn", "fft"), ("ifftn", "ifft")):
    implements(getattr(np.fft, _name))(_transform2(_name, _one))


def _real_transform(name: str, one: str, rest: str) -> Callable[..., Any]:
    """Return a transform over several axes, of which that of the last one is real."""

    def transformed(
        a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None
    ) -> Any:
        x = as_traced(a)
        last = HANDLERS.functions[getattr(np.fft, one)]
        each = HANDLERS.functions[getattr(np.fft, rest)]
        *others, (axis, n) = _axes_and_lengths(name, x, s, axes)
        if one == "rfft":
            x = last(x, n, axis, norm)
            for k, length in reversed(others):
                x = each(x, length, k, norm)
            return _finish(x, out)
        for k, length in others:
            x = each(x, length, k, norm)
        return _finish(last(x, n, axis, norm), out)

    return transformed


for _name, _one, _rest in (
    ("rfftn", "rfft", "fft"),
    ("rfft2", "rfft", "fft"),
    ("irfftn", "irfft", "ifft"),
    ("irfft2", "irfft", "ifft"),
):
    implements(getattr(np.fft, _name))(_real_transform(_name, _one, _rest))

_OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


@implements(np.fft.hfft)
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    conjugate = np.conjugate(as_traced(a))
    return HANDLERS.functions[np.fft.irfft](conjugate, n, axis, _OPPOSITE[norm], out)


@implements(np.fft.ihfft)
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    made = HANDLERS.functions[np.fft.rfft](a, n, axis, _OPPOSITE[norm])
    return _finish(np.conjugate(made), out)


def _shifted(sign: int) -> Callable[..., Any]:
    def shifted(x: Any, axes: Any = None) -> Any:
        a = as_traced(x)
        where = axes_of(axes, a.ndim)
        for k in where:
            half = a.dims[k] // 2
            a = np.roll(a, half if sign > 0 else -half, k)
        return a

    return shifted


implements(np.fft.fftshift)(_shifted(1))
implements(np.fft.ifftshift)(_shifted(-1))


@implements(np.convolve)
def convolve(a: Any, v: Any, /, mode: str = "full") -> Any:
    return _convolution("convolve", a, v, mode)


@implements(np.correlate)
def correlate(a: Any, v: Any, /, mode: str = "valid") -> Any:
    return _convolution("correlate", a, v, mode)


def _convolution(name: str, a: Any, v: Any, mode: str) -> Any:
    x, y = as_traced(a), as_traced(v)
    (x, y), dtype = _common(x, y)
    m, n = x.dims[0], y.dims[0]
    if UNKNOWN in (hint_of(m), hint_of(n)):
        raise untraceable(f"numpy.{name} needs the lengths of its arguments.", "")
    longest, shortest = (m, n) if number_less(n, m) else (n, m)
    length = {"full": m + n - 1, "same": longest, "valid": longest - shortest + 1}[mode]
    if type(length) is Number and length.hint == 1:
        length = operator.index(length)
    (made,) = numpy_call(name, [x.variable, y.variable], [(dtype, [is_one(length)])], mode=mode)
    return array(made, (length,))
