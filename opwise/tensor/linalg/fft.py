"""Fourier transforms of real arrays, and their inverses; as in ``theano.tensor.fft``.

The first dimension counts arrays that are transformed separately. Complex numbers are pairs of real
ones along a last dimension of length 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph import upcalls
from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Lengths, Storage, Values
from opwise.graph.opmethods import connects
from opwise.graph.variable import Var
from opwise.scalar import dtypes
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.reduce import prod
from opwise.tensor.shape import length
from opwise.tensor.shape import shape as shape_of
from opwise.tensor.subtensor import getitem, set_subtensor
from opwise.tensor.type import TensorType, tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable

__all__ = ["IRFFTOp", "RFFTOp", "irfft", "irfft_op", "rfft", "rfft_op"]


class _RealTransform(TensorOp):
    """Base of both transforms; inputs (a, s), s: the lengths of the real array, all but the first.

    Without s, they are taken from a. Results have the dtype of a.
    """

    __props__ = ()

    def make_node(self, a: TensorLike, s: TensorLike | None = None) -> Apply:
        a = as_tensor_variable(a)
        self.check(a)
        s = self.lengths(a) if s is None else as_tensor_variable(s)
        if s.type.dtype not in dtypes.INTEGERS:
            raise TypeError(
                f"{type(self).__name__}: length of the transformed axis must be of type integer, "
                f"not {s.type}"
            )
        return Apply(self, [a, s], [self.output_type(a).make_variable()])

    def check(self, a: Tensor) -> None:
        """Raise TypeError if ``a`` has too few dimensions."""
        raise NotImplementedError

    def lengths(self, a: Tensor) -> Tensor:
        """Return the lengths of the real array."""
        raise NotImplementedError

    def output_type(self, inp: Tensor) -> TensorType:
        """Return the type of the output for an input."""
        raise NotImplementedError

    connection_pattern = connects(0)


class RFFTOp(_RealTransform):
    """The transform of a: the last dimension has the frequencies 0 to half of its length."""

    def check(self, a: Tensor) -> None:
        if a.type.ndim < 2:
            raise TypeError(
                f"RFFTOp: input must have dimension >= 2, with first dimension batches, not {a}"
            )

    def lengths(self, a: Tensor) -> Tensor:
        return shape_of(a)[1:]

    def output_type(self, inp: Tensor) -> TensorType:
        return tensor_type(inp.type.dtype, (False,) * (inp.type.ndim + 1))

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        a, s = inputs
        output_storage[0][0] = _as_pairs(_transform("rfft", a, s), a.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        lengths = _entries(node.inputs[1], node.inputs[0].type.ndim - 1)
        return [(shapes[0][0], *lengths[:-1], lengths[-1] // 2 + 1, length(2))]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (_, s), (gz,) = inputs, output_gradients
        return [irfft_op(_scaled_inside(gz, s, 0.5), s), disconnected_type.make_variable()]


class IRFFTOp(_RealTransform):
    """The real array with the given transform, times the product of its lengths."""

    def check(self, a: Tensor) -> None:
        if a.type.ndim < 3:
            raise TypeError(
                "IRFFTOp: input must have dimension >= 3, with first dimension batches and last "
                f"real/imag parts, not {a}"
            )

    def lengths(self, a: Tensor) -> Tensor:
        return _lengths_of_inverse(a, False)

    def output_type(self, inp: Tensor) -> TensorType:
        return tensor_type(inp.type.dtype, (False,) * (inp.type.ndim - 1))

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        a, s = inputs
        result = _transform("irfft", _from_pairs(a), s, norm="forward")
        output_storage[0][0] = result.astype(a.dtype, copy=False)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [(shapes[0][0], *_entries(node.inputs[1], node.inputs[0].type.ndim - 2))]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (_, s), (gz,) = inputs, output_gradients
        return [_scaled_inside(rfft_op(gz, s), s, 2), disconnected_type.make_variable()]


rfft_op = RFFTOp()
irfft_op = IRFFTOp()


#: how many numbers are worth the start of threads
_WORTH_THREADS = 1 << 18


def _transform(name: str, a: np.ndarray, s: np.ndarray, **options: Any) -> np.ndarray:
    """Return what scipy's function makes of the last dimensions; numpy's is slow in float32."""
    from scipy import fft

    if a.size >= _WORTH_THREADS:
        options["workers"] = upcalls.threads()
    if len(s) == 1:
        along_one: np.ndarray = getattr(fft, name)(a, int(s[0]), **options)
        return along_one
    result: np.ndarray = getattr(fft, name + "n")(a, tuple(s), axes=range(-len(s), 0), **options)
    return result


def _as_pairs(z: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return an array of complex numbers as one of their real and imaginary parts."""
    z = np.ascontiguousarray(z)
    return z.view(z.real.dtype).reshape(*z.shape, 2).astype(dtype, copy=False)


def _from_pairs(a: np.ndarray) -> np.ndarray:
    """Return the complex numbers of which an array has the real and imaginary parts."""
    if a.dtype in (np.float32, np.float64) and a.flags.c_contiguous:
        return a.view(np.result_type(a, np.complex64))[..., 0]
    return a[..., 0] + 1j * a[..., 1]


def _entries(s: Var, count: int) -> list[Tensor]:
    return [cast(s[k], "int64") for k in range(count)]


def _lengths_of_inverse(a: Tensor, is_odd: bool) -> Tensor:
    s = shape_of(a)[1:-1]
    return set_subtensor(s[-1], (s[-1] - 1) * 2 + int(is_odd))


def _scaled_inside(spectrum: Tensor, s: Tensor, factor: float) -> Tensor:
    """Return a spectrum with ``factor`` times the frequencies that stand for two.

    Those are all but 0 and, for an even length, the last one.
    """
    twice = (*[slice(None)] * (spectrum.type.ndim - 2), slice(1, s[-1] // 2 + s[-1] % 2))
    part = getitem(spectrum, twice)
    return set_subtensor(part, part * factor)


def rfft(inp: TensorLike, norm: str | None = None) -> Tensor:
    """Return the Fourier transforms of the real arrays ``inp[0]``, ``inp[1]`` and so on.

    inp: of shape (m, ..., n); the result has shape (m, ..., n // 2 + 1, 2), the real and imaginary
    parts last, and the dtype of inp, which should be of floats: the transform of integers is
    rounded towards 0. norm: None and 'no_norm' do not scale the result; 'ortho' divides it by the
    square root of the product of all lengths but m. Raises ValueError for another norm, TypeError
    for fewer than 2 dimensions; at run time TypeError for complex numbers, ValueError if n is 0.
    """
    inp = as_tensor_variable(inp)
    _check_norm(norm)
    s = shape_of(inp)[1:]
    result = rfft_op(inp, s)
    return result / _root_of_size(s, inp) if norm == "ortho" else result


def irfft(inp: TensorLike, norm: str | None = None, is_odd: bool = False) -> Tensor:
    """Return the real arrays with the Fourier transforms ``inp[0]``, ``inp[1]`` and so on.

    inp: floats of shape (m, ..., k, 2), as rfft returns it; the result has shape (m, ..., n), n
    being 2 * (k - 1), and one more if ``is_odd``, and the dtype of inp. norm: None divides the
    result by the product of all its lengths but m, 'ortho' by the square root of that, 'no_norm' by
    nothing. Raises ValueError for another norm or is_odd, TypeError for fewer than 3 dimensions;
    ValueError at run time if the last dimension is not 2.
    """
    if is_odd not in (True, False):
        raise ValueError(f"Invalid value {is_odd} for is_odd, must be True or False")
    inp = as_tensor_variable(inp)
    _check_norm(norm)
    s = _lengths_of_inverse(inp, is_odd)
    result = irfft_op(inp, s)
    if norm is None:
        return result / cast(prod(s), inp.type.dtype)
    return result / _root_of_size(s, inp) if norm == "ortho" else result


def _root_of_size(s: Tensor, inp: Tensor) -> Tensor:
    return elemwise("sqrt")(cast(prod(s), inp.type.dtype))


def _check_norm(norm: str | None) -> None:
    if norm not in (None, "ortho", "no_norm"):
        raise ValueError(f"Invalid value {norm} for norm, must be None, 'ortho' or 'no_norm'")
