"""Questions that programs ask of variables: names of ``theano.tensor.blas`` and ``nlinalg``."""

from opwise.config import config
from opwise.graph.null import is_disconnected
from opwise.scalar import dtypes
from opwise.tensor.dimshuffle import DimShuffle, dimshuffle
from opwise.tensor.elemwise import cast

#: whether scipy, which opwise needs, brings BLAS
have_fblas = True


def _is_real_matrix(res):
    """Return whether a variable is a matrix of real numbers of which no length is known to be 1."""
    return _is_real(res, 2)


def _is_real_vector(res):
    """Return whether a variable is a vector of real numbers whose length is not known to be 1."""
    return _is_real(res, 1)


def _is_real(res, ndim):
    type_ = res.type
    return type_.dtype in dtypes.FLOATS and type_.broadcastable == (False,) * ndim


def _as_scalar(res, dtype=None):
    """Return a tensor of one element without its dimensions, or None if it may have more elements.

    Integers are cast to ``dtype`` (default: floatX); None if it cannot hold them.
    """
    if not all(res.type.broadcastable):
        return None
    while res.owner is not None and isinstance(res.owner.op, DimShuffle):
        res = res.owner.inputs[0]
    scalar = dimshuffle(res, ()) if res.type.broadcastable else res
    if scalar.type.dtype not in dtypes.INTEGERS:
        return scalar
    dtype = dtype or config.floatX
    return cast(scalar, dtype) if dtypes.upcast(scalar.type.dtype, dtype) == dtype else None


def _zero_disconnected(outputs, grads):
    """Return gradients with zeros in place of disconnected ones."""
    return [
        out.zeros_like() if is_disconnected(grad) else grad
        for out, grad in zip(outputs, grads, strict=True)
    ]
