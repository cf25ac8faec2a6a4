"""Translations of linear algebra, of one matrix and of batches."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.linalg.constructors import BlockDiagonal
from pytensor.tensor.linalg.decomposition.cholesky import Cholesky as PyTensorCholesky
from pytensor.tensor.linalg.decomposition.eigen import Eigh as PyTensorEigh
from pytensor.tensor.linalg.decomposition.eigen import Eigvalsh as PyTensorEigvalsh
from pytensor.tensor.linalg.decomposition.lu import LU as PyTensorLU
from pytensor.tensor.linalg.decomposition.lu import LUFactor as PyTensorLUFactor
from pytensor.tensor.linalg.decomposition.lu import PivotToPermutations
from pytensor.tensor.linalg.decomposition.qr import QR as PyTensorQR
from pytensor.tensor.linalg.decomposition.svd import SVD as PyTensorSVD
from pytensor.tensor.linalg.inverse import MatrixInverse as PyTensorInverse
from pytensor.tensor.linalg.inverse import MatrixPinv as PyTensorPinv
from pytensor.tensor.linalg.products import Expm as PyTensorExpm
from pytensor.tensor.linalg.solvers.core import SolveBase
from pytensor.tensor.linalg.solvers.general import Solve as PyTensorSolve
from pytensor.tensor.linalg.solvers.psd import CholeskySolve
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.linalg.summary import Det as PyTensorDet
from pytensor.tensor.linalg.summary import SLogDet as PyTensorSLogDet
from pytensor.tensor.signal.conv import AbstractConvolveNd

from opwise.frontends import Translator, Untranslated
from opwise.graph.variable import Var
from opwise.loops.layout import Parts
from opwise.loops.op import Scan
from opwise.pytensor.frontend import translates
from opwise.pytensor.signal import convolved
from opwise.tensor.creation import alloc, arange, tri
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.join import vector_of
from opwise.tensor.linalg.eigen import Eigh, Eigvalsh, Expm
from opwise.tensor.linalg.factor import SVD, Cholesky, LUFactor, PivotPermutation, QRFull
from opwise.tensor.linalg.inverse import Det, MatrixInverse, MatrixPinv, SLogDet
from opwise.tensor.linalg.systems import Solve
from opwise.tensor.shape import Reshape, shape_i_op
from opwise.tensor.subtensor import set_subtensor
from opwise.tensor.variable import constant


def _in_dtype(node: Any, *matrices: Var) -> list[Var]:
    """Return operands in the dtype of the result, in which PyTensor computes."""
    dtype = node.outputs[0].type.dtype
    return [x if x.type.dtype == dtype else cast(x, dtype) for x in matrices]


def _real(node: Any) -> None:
    """Raise Untranslated for complex numbers."""
    if any(var.type.dtype.startswith("complex") for var in node.inputs):
        raise Untranslated(f"{node.op} of complex matrices has no translation")


@translates(PyTensorCholesky)
def _cholesky(t: Translator, node: Any, x: Var) -> Var:
    _real(node)
    (x,) = _in_dtype(node, x)
    return Cholesky(bool(node.op.lower), on_error="nan", check_finite=False)(x)


def _solution(structure: str, A: Var, b: Var, unit_diagonal: bool = False) -> Var:
    lower = structure == "lower_triangular"
    op = Solve(structure, lower, check_finite=False, on_error="nan", unit_diagonal=unit_diagonal)
    return op(A, b)


@translates(SolveTriangular)
def _solve_triangular(t: Translator, node: Any, A: Var, b: Var) -> Var:
    _real(node)
    structure = "lower_triangular" if node.op.lower else "upper_triangular"
    A, b = _in_dtype(node, A, b)
    return _solution(structure, A, b, bool(node.op.unit_diagonal))


@translates(CholeskySolve)
def _cholesky_solve(t: Translator, node: Any, factor: Var, b: Var) -> Var:
    _real(node)
    factor, b = _in_dtype(node, factor, b)
    lower, upper = "lower_triangular", "upper_triangular"
    if node.op.lower:
        return _solution(upper, factor.T, _solution(lower, factor, b))
    return _solution(upper, factor, _solution(lower, factor.T, b))


@translates(PyTensorSolve)
def _solve(t: Translator, node: Any, A: Var, b: Var) -> Var:
    _real(node)
    op = node.op
    A, b = _in_dtype(node, A, b)
    if op.assume_a == "pos":
        half = Cholesky(bool(op.lower), on_error="nan", check_finite=False)(A)
        lower, upper = "lower_triangular", "upper_triangular"
        if op.lower:
            return _solution(upper, half.T, _solution(lower, half, b))
        return _solution(upper, half, _solution(lower, half.T, b))
    if op.assume_a in ("sym", "her"):
        A = _mirrored(A, bool(op.lower))
    elif op.assume_a == "tridiagonal":
        A = _tridiagonal(A)
    elif op.assume_a not in ("gen", "banded"):
        raise Untranslated(f"systems whose matrix is {op.assume_a} have no translation")
    return _solution("general", A, b)


def _mirrored(A: Var, lower: bool) -> Var:
    """Return the symmetric matrix of which ``A`` has one half; the other half is not read."""
    n = shape_i_op(0)(A)
    below = tri(n, n, dtype="bool")
    return elemwise("switch")(below, *((A, A.T) if lower else (A.T, A)))


def _tridiagonal(A: Var) -> Var:
    """Return a matrix without what is not on its three diagonals, which is not read."""
    n = shape_i_op(0)(A)
    inside = elemwise("xor")(tri(n, n, 1, "bool"), tri(n, n, -2, "bool"))
    return elemwise("switch")(inside, A, constant(np.zeros((), A.type.dtype)))


@translates(PyTensorInverse)
def _inverse(t: Translator, node: Any, x: Var) -> Var:
    return MatrixInverse()(*_in_dtype(node, x))


@translates(PyTensorPinv)
def _pinv(t: Translator, node: Any, x: Var) -> Var:
    (x,) = _in_dtype(node, x)
    if node.op.hermitian:  # numpy reads the lower half alone
        _real(node)
        x = _mirrored(x, lower=True)
    return MatrixPinv()(x)


@translates(PyTensorDet)
def _det(t: Translator, node: Any, x: Var) -> Var:
    return Det()(*_in_dtype(node, x))


def _factored(x: Var, on_error: str) -> tuple[Var, Var]:
    """Return the LU factors of a matrix, as one matrix, and the pivots."""
    if x.type.dtype not in ("float32", "float64"):
        raise Untranslated(f"LU factors of {x.type.dtype} have no translation")
    factors, pivots = LUFactor(on_error)(x, return_list=True)
    return factors, pivots


@translates(PyTensorSLogDet)
def _slogdet(t: Translator, node: Any, x: Var) -> list[Var]:
    _real(node)
    results: list[Var] = SLogDet()(*_in_dtype(node, x), return_list=True)
    return results


def _places(x: Var) -> Var:
    """Return the numbers 0, 1, ..., one for each row."""
    return arange(0, shape_i_op(0)(x), 1, dtype="int64")


@translates(PyTensorLUFactor)
def _lu_factor(t: Translator, node: Any, x: Var) -> list[Var]:
    return list(_factored(x, "nan"))


@translates(PivotToPermutations)
def _permutation(t: Translator, node: Any, pivots: Var) -> Var:
    # PyTensor calls the order in which the rows are after the exchanges the inverse
    return PivotPermutation(inverse=not node.op.inverse)(pivots)


@translates(PyTensorLU)
def _lu(t: Translator, node: Any, x: Var) -> list[Var]:
    op = node.op
    dtype = node.outputs[-1].type.dtype
    factors, pivots = _factored(x if x.type.dtype == dtype else cast(x, dtype), "ignore")
    n = shape_i_op(0)(factors)
    below, diagonal_too = tri(n, n, -1, "bool"), tri(n, n, 0, "bool")
    L = elemwise("switch")(below, factors, cast(diagonal_too, dtype))
    U = elemwise("switch")(below, constant(np.zeros((), dtype)), factors)
    if op.permute_l:
        return [L[PivotPermutation(inverse=True)(pivots)], U]
    if op.p_indices:
        return [cast(PivotPermutation(inverse=True)(pivots), "int32"), L, U]
    order = PivotPermutation()(pivots)
    rows = _places(pivots).dimshuffle(0, "x")
    P = cast(elemwise("eq")(rows, order.dimshuffle("x", 0)), node.outputs[0].type.dtype)
    return [P, L, U]


@translates(PyTensorExpm)
def _expm(t: Translator, node: Any, x: Var) -> Var:
    return Expm()(*_in_dtype(node, x))


@translates(BlockDiagonal)
def _block_diagonal(t: Translator, node: Any, *matrices: Var) -> Var:
    lengths = [[shape_i_op(d)(x) for x in matrices] for d in range(2)]
    rows, columns = (_ends(one) for one in lengths)
    whole: Var = alloc(constant(np.zeros((), node.outputs[0].type.dtype)), rows[-1], columns[-1])
    for k, x in enumerate(_in_dtype(node, *matrices)):
        part = whole[rows[k] : rows[k + 1], columns[k] : columns[k + 1]]
        whole = set_subtensor(part, x)
    return whole


def _ends(lengths: Sequence[Var]) -> list[Var]:
    """Return where blocks of some lengths begin, and where the last one ends."""
    ends: list[Var] = [constant(np.int64(0))]
    for length in lengths:
        ends.append(elemwise("add")(ends[-1], length))
    return ends


@translates(PyTensorSVD)
def _svd(t: Translator, node: Any, x: Var) -> list[Var]:
    op = node.op
    if node.inputs[0].type.dtype.startswith("complex"):
        raise Untranslated("singular values of complex matrices have no translation")
    (x,) = _in_dtype(node, x)
    results: list[Var] = SVD(op.full_matrices, op.compute_uv)(x, return_list=True)
    return results


@translates(PyTensorQR)
def _qr(t: Translator, node: Any, x: Var) -> list[Var]:
    op = node.op
    _real(node)
    if op.pivoting or op.mode not in ("full", "economic"):
        raise Untranslated(f"QR with mode {op.mode} or pivots has no translation")
    (x,) = _in_dtype(node, x)
    mode = "complete" if op.mode == "full" else "reduced"
    results: list[Var] = QRFull(mode)(x, return_list=True)
    return results


@translates(PyTensorEigh)
def _eigh(t: Translator, node: Any, *matrices: Var) -> list[Var]:
    op = node.op
    _real(node)
    if len(matrices) > 1:
        raise Untranslated("generalized eigenvalues have no translation")
    results: list[Var] = Eigh("L" if op.lower else "U")(
        *_in_dtype(node, *matrices), return_list=True
    )
    return results


@translates(PyTensorEigvalsh)
def _eigvalsh(t: Translator, node: Any, *matrices: Var) -> Var:
    _real(node)
    return Eigvalsh(bool(node.op.lower))(*_in_dtype(node, *matrices))


# --- batches --------------------------------------------------------------------------------------


@translates(Blockwise)
def _blockwise(t: Translator, node: Any, *inputs: Var) -> list[Var]:
    """Translate an Op over batches: a loop of independent steps over all indices of the batch."""
    op = node.op
    translation = t.frontend.translation_of(op.core_op)
    if translation is None:
        raise Untranslated(f"{type(op.core_op).__name__} has no translation")
    core = op._create_dummy_core_node(node.inputs)
    n_batch = node.outputs[0].type.ndim - len(op.outputs_sig[0])
    lengths = [_batch_length(inputs, d) for d in range(n_batch)]
    count = _product(lengths)

    def translated(given: Sequence[Var]) -> list[Var]:
        found: Any = translation(t, core, *given)
        made = found if isinstance(found, list) else [found]
        return [t.fitted(one, out.type) for one, out in zip(made, core.outputs, strict=True)]

    # an operand that is the same for the whole batch is given to each step as it is
    varying = [not all(x.type.broadcastable[:n_batch]) for x in inputs]
    if not any(varying):
        same = [_reshaped(x, _lengths(x)[n_batch:]) for x in inputs]
        return [_reshaped(out, [*lengths, *_lengths(out)]) for out in translated(same)]
    if isinstance(op.core_op, SolveBase) and varying == [False, True]:
        return [_solved_together(t, node, core, inputs[0], inputs[1], lengths)]
    if isinstance(op.core_op, AbstractConvolveNd) and varying in (
        [True, False, False], [False, True, False],
    ):  # fmt: skip
        same, *several = sorted(inputs[:2], key=lambda x: not all(x.type.broadcastable[:n_batch]))
        return [_convolved_together(core, several[0], same, inputs[2], lengths)]
    step = [t.frontend.type_of(var.type).make_variable() for var in core.inputs]
    sequences, constants = [], []
    for x, var, varies in zip(inputs, step, varying, strict=True):
        own = _lengths(x)[n_batch:]
        if not varies:
            constants.append((var, _reshaped(x, own)))
            continue
        repeated = any(x.type.broadcastable[d] and not _is_one(inputs, d) for d in range(n_batch))
        whole = alloc(x, *lengths, *own) if repeated else x
        sequences.append((var, _reshaped(whole, [count, *own])))
    loop = Scan.of(
        Parts(sequences=[var for var, _ in sequences], constants=[var for var, _ in constants]),
        Parts(results=translated(step)), [], name=str(op),
    )  # fmt: skip
    given = Parts(sequences=[x for _, x in sequences], constants=[x for _, x in constants])
    rows = loop.repeat(count, given).results
    return [_reshaped(out, [*lengths, *_lengths(out)[1:]]) for out in rows]


def _solved_together(
    t: Translator, node: Any, core: Any, A: Var, b: Var, lengths: Sequence[Var]
) -> Var:
    """Return the solutions of systems with one matrix: their right-hand sides are columns of one.

    lengths: of the batch.
    """
    op = node.op.core_op
    one = type(op)(**{**op._props_dict(), "b_ndim": 2})
    n_batch = len(lengths)
    own = _lengths(b)[n_batch:]
    # the dimension of the equations first, then the batch, then the columns
    order = (n_batch, *range(n_batch), *range(n_batch + 1, b.type.ndim))
    columns = _product([*lengths, *own[1:]])
    flat = _reshaped(b.dimshuffle(*order), [own[0], columns])
    matrix = _reshaped(A, _lengths(A)[n_batch:])
    translation = t.frontend.translation_of(one)
    assert translation is not None
    joined = SimpleNamespace(op=one, inputs=core.inputs, outputs=core.outputs)
    solved = _reshaped(translation(t, joined, matrix, flat), [own[0], *lengths, *own[1:]])
    back = (*range(1, n_batch + 1), 0, *range(n_batch + 1, b.type.ndim))
    return solved.dimshuffle(*back)


def _convolved_together(core: Any, x: Var, y: Var, full: Var, lengths: Sequence[Var]) -> Var:
    """Return the convolutions of a batch with one array. lengths: of the batch."""
    n_batch = len(lengths)
    several = _reshaped(x, [_product(lengths), *_lengths(x)[n_batch:]])
    made = convolved(core, several, _reshaped(y, _lengths(y)[n_batch:]), _reshaped(full, []))
    return _reshaped(made, [*lengths, *_lengths(made)[1:]])


def _product(lengths: Sequence[Var]) -> Var:
    product: Var = constant(np.int64(1))
    for length in lengths:
        product = elemwise("mul")(product, length)
    return product


def _lengths(x: Var) -> list[Var]:
    """Return the length of each dimension; 1 as a constant where it is known to be 1."""
    return [
        constant(np.int64(1)) if one else shape_i_op(d)(x)
        for d, one in enumerate(x.type.broadcastable)
    ]


def _reshaped(x: Var, lengths: Sequence[Var]) -> Var:
    shape = vector_of(lengths) if lengths else constant(np.zeros(0, np.int64))
    return Reshape(len(lengths))(x, shape)


def _is_one(inputs: Sequence[Var], axis: int) -> bool:
    """Return whether the batch is known to have length 1 along an axis."""
    return all(x.type.broadcastable[axis] for x in inputs)


def _batch_length(inputs: Sequence[Var], axis: int) -> Var:
    """Return the length of the batch along an axis."""
    varying = [x for x in inputs if not x.type.broadcastable[axis]]
    return shape_i_op(axis)(varying[0]) if varying else constant(np.int64(1))
