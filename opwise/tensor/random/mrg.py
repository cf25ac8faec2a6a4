"""MRG31k3p: uniform numbers from many parallel streams, each with a state of six integers.

The generator is that of L'Ecuyer and Touzin, Fast combined multiple recursive generators with
multipliers of the form a = +/- 2^d +/- 2^e, WSC 2000; the jumps between streams are those of
L'Ecuyer, Simard, Chen and Kelton, An object-oriented random-number package with many long streams
and substreams, Operations Research 50(6), 2002.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.null import grad_undefined
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.variable import Var, Variable
from opwise.scalar import dtypes
from opwise.tensor.knownvalues import get_vector_length, is_one, vector_entries, vector_entry
from opwise.tensor.shape import length
from opwise.tensor.type import TensorType
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable, constant

# The legacy names of the generator's parameters. A step computes
#   x[n] = (2^22 x[n-2] + (2^7 + 1) x[n-3]) mod M1
#   y[n] = (2^15 y[n-1] + (2^15 + 1) y[n-3]) mod M2
# and returns (x[n] - y[n]) mod M1, where 0 counts as M1. A state is the last three x and y, the
# newest first.
M1 = np.asarray(np.int32(2147483647))  # 2^31 - 1
M2 = np.asarray(np.int32(2147462579))  # 2^31 - 21069
MASK12 = np.int32(511)
MASK13 = np.int32(16777215)
MASK2 = np.int32(65535)
MULT2 = np.int32(21069)
NORM = 4.656612873077392578125e-10  # about 1 / 2^31


def _matrix(*rows: tuple[int, int, int]) -> np.ndarray:
    return np.asarray(rows, dtype="int64")


#: the matrices of a jump over 2^72 steps, for x and for y
A1p72 = _matrix(
    (1516919229, 758510237, 499121365),
    (1884998244, 1516919229, 335398200),
    (601897748, 1884998244, 358115744),
)
A2p72 = _matrix(
    (1228857673, 1496414766, 954677935),
    (1133297478, 1407477216, 1496414766),
    (2002613992, 1639496704, 1407477216),
)
#: those of a jump over 2^134 steps
A1p134 = _matrix(
    (1702500920, 1849582496, 1656874625),
    (828554832, 1702500920, 1512419905),
    (1143731069, 828554832, 102237247),
)
A2p134 = _matrix(
    (796789021, 1464208080, 607337906),
    (1241679051, 1431130166, 1464208080),
    (1401213391, 1178684362, 1431130166),
)

# --- jumps ----------------------------------------------------------------------------------------


def matVecModM(A: np.ndarray, s: np.ndarray, m: Any) -> Any:
    """Return the product of an int64 matrix and a vector modulo ``m``, as int32.

    A: of shape (n, n), s: (n,), and so the result. Raises AssertionError if A has another dtype.
    """
    if A.dtype != "int64":
        raise AssertionError(f"the matrix must have dtype int64, not {A.dtype}")
    return np.int32(np.sum((A * s) % m, 1) % m)


def multMatVect(v: np.ndarray, A: np.ndarray, m1: Any, B: np.ndarray, m2: Any) -> np.ndarray:
    """Return the state ``v`` after a jump: its halves times A modulo m1 and B modulo m2.

    v: integers of shape (6,); A, B: int64 matrices of shape (3, 3). The result is int32, of the
    shape of v.
    """
    return np.concatenate([_jumped(A, v[:3], m1), _jumped(B, v[3:], m2)])


# Theano kept a compiled function here
multMatVect.dot_modulo = None  # type: ignore[attr-defined]


def _jumped(A: np.ndarray, s: np.ndarray, m: Any) -> np.ndarray:
    """Return A s modulo m as int32; the remainder of a negative number is negative, as in C."""
    m = np.int64(m)
    result: np.ndarray = np.fmod(np.fmod(A * s, m).sum(1), m).astype("int32")
    return result


def ff_2p134(rstate: np.ndarray) -> np.ndarray:
    """Return the state 2^134 steps later: the first one of the next stream, int32 of shape (6,)."""
    return multMatVect(rstate, A1p134, M1, A2p134, M2)


def ff_2p72(rstate: np.ndarray) -> np.ndarray:
    """Return the state 2^72 steps later: the first one of the next substream, of shape (6,)."""
    return multMatVect(rstate, A1p72, M1, A2p72, M2)


def substreams(rstate: np.ndarray, n: int) -> np.ndarray:
    """Return the states of ``n`` substreams, one in each row, of which ``rstate`` is the first.

    rstate: six integers. The result is an int32 matrix of shape (n, 6).
    """
    states = np.empty((n, 6), dtype="int32")
    states[0] = rstate
    if (states[0] < 0).any():  # remainders of different signs do not commute with jumps
        for i in range(1, n):
            states[i] = ff_2p72(states[i - 1])
        return states
    done, jumps = 1, [(A1p72, np.int64(M1)), (A2p72, np.int64(M2))]
    while done < n:  # each round jumps from all known states to as many new ones
        more = min(done, n - done)
        for half, (A, m) in zip((slice(3), slice(3, 6)), jumps, strict=True):
            products = states[:more, half, None] * A.T % m
            states[done : done + more, half] = products.sum(1) % m
        jumps = [((A[:, :, None] * A % m).sum(1) % m, m) for A, m in jumps]
        done += more
    return states


class DotModulo(TensorOp):
    """Two products of a matrix and a vector, each modulo a number, joined to one vector."""

    __props__ = ()

    def make_node(
        self,
        A: TensorLike,
        s: TensorLike,
        m: np.ndarray,
        A2: np.ndarray,
        s2: TensorLike,
        m2: np.ndarray,
    ) -> Apply:
        inputs = [as_tensor_variable(x) for x in (A, s, m, A2, s2, m2)]
        return Apply(self, inputs, [inputs[1].type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        A, s, m, A2, s2, m2 = inputs
        output_storage[0][0] = np.concatenate([_jumped(A, s, m), _jumped(A2, s2, m2)])


# --- numbers --------------------------------------------------------------------------------------


def _reduced(y: np.ndarray, modulus: Any) -> np.ndarray:
    """Return ``y``, or ``y - modulus`` if y as an unsigned number is not less than it."""
    y = y.view("uint32")
    result: np.ndarray = np.minimum(y, y - modulus).view("int32")
    return result


_U1, _U2 = np.uint32(M1), np.uint32(M2)


def _step(state: list[np.ndarray]) -> np.ndarray:
    """Advance a list of six int32 arrays by one step; return the integers that it yields."""
    x1, x2, x3, y1, y2, y3 = state
    x = ((x2 & MASK12) << 22) + (x2 >> 9) + ((x3 & MASK13) << 7) + (x3 >> 24)
    x = _reduced(_reduced(x, _U1) + x3, _U1)
    first = _reduced(((y1 & MASK2) << 15) + MULT2 * (y1 >> 16), _U2)
    third = _reduced(((y3 & MASK2) << 15) + MULT2 * (y3 >> 16), _U2)
    y = _reduced(_reduced(third + y3, _U2) + first, _U2)
    state[:] = x, x1, x2, y, y1, y2
    result: np.ndarray = np.where(x <= y, x - y + M1, x - y)
    return result


def mrg_next_value(rstate: Any, new_rstate: np.ndarray, NORM: Any, mask: int, offset: int) -> Any:
    """Return the next number of a state, ``((z & mask) + offset) * NORM``; fill ``new_rstate``.

    rstate, new_rstate: int32 arrays of shape (6,).
    """
    state = list(np.array(rstate, dtype="int32")[:, None])
    (z,) = _step(state)
    new_rstate[...] = np.concatenate(state)
    return ((int(z) & mask) + offset) * NORM


#: the factors of the integers of a step; those of float16 have only 15 bits, and are multiplied as
#: float64
NORMS: dict[str, Any] = {
    "float16": float(np.float16(3.0458e-05)),
    "float32": np.float32(4.6566126e-10),
    "float64": NORM,
}
MASK_FLOAT16 = 0x7FFF


def _float32(z: np.ndarray) -> np.ndarray:
    result: np.ndarray = z.astype("float32") * NORMS["float32"]
    return result


def _float64(z: np.ndarray) -> np.ndarray:
    result: np.ndarray = z * NORMS["float64"]
    return result


def _float16(z: np.ndarray) -> np.ndarray:
    result: np.ndarray = (((z & MASK_FLOAT16) + 1) * NORMS["float16"]).astype("float16")
    return result


#: integers of a step to numbers between 0 and 1, by dtype
_NUMBERS = {"float16": _float16, "float32": _float32, "float64": _float64}


def draw(rstate: np.ndarray, n: int, dtype: str) -> np.ndarray:
    """Return ``n`` numbers and advance the states, rows of ``rstate``, in place.

    rstate: an int32 array of shape (streams, 6). The result is a vector of ``dtype``, float16,
    float32 or float64. Number k comes from stream k modulo the number of streams. Raises KeyError
    for another dtype.
    """
    streams = len(rstate)
    values = np.empty(n, dtype=dtype)
    state = list(rstate.T.copy())
    number = _NUMBERS[dtype]
    for start in range(0, n, streams or 1):
        count = n - start
        if count < streams:  # the last numbers come from the first streams only
            rstate.T[:] = state
            state, rstate = list(rstate[:count].T.copy()), rstate[:count]
        values[start : start + streams] = number(_step(state))
    rstate.T[:] = state
    return values


class mrg_uniform_base(Op):
    """Base of Ops that draw uniform numbers from the streams of MRG31k3p.

    output_type: TensorType of the numbers; its broadcastable dimensions come from the size.
    inplace: advance the states in the memory of the input.
    """

    __props__ = ("output_type", "inplace")
    advances_state = True

    def __init__(self, output_type: TensorType, inplace: bool = False) -> None:
        self.output_type = output_type
        self.inplace = inplace
        if inplace:
            self.destroy_map = {0: [0]}

    def __str__(self) -> str:
        how = "inplace" if self.inplace else "no_inplace"
        return f"{type(self).__name__}{{{self.output_type},{how}}}"

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        why = "No gradient defined through random sampling op"
        return [grad_undefined(self, k, x, why) for k, x in enumerate(inputs)]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        return [None] * 2


class mrg_uniform(mrg_uniform_base):
    """The states after the draw, and numbers between 0 and 1, both excluded, of a given size.

    Inputs are an int32 matrix of states, one in each row, and an integer vector.
    """

    @classmethod
    def new(cls, rstate: Any, ndim: int | None, dtype: str, size: TensorLike) -> list[Variable]:
        """Return the states after the draw, and the numbers.

        ndim: the length of ``size`` (default: the known one).
        """
        none = isinstance(size, tuple | list) and not size
        size = constant([], dtype="int64") if none else as_tensor_variable(size)
        if ndim is None:
            ndim = get_vector_length(size)
        result: list[Variable] = cls(TensorType(dtype, (False,) * ndim))(rstate, size)
        return result

    def make_node(self, rstate: TensorLike, size: TensorLike) -> Apply:
        rstate, size = as_tensor_variable(rstate), as_tensor_variable(size)
        dtype = self.output_type.dtype
        if dtype not in NORMS:
            raise TypeError(f"Uniform numbers have a floating dtype, float16 to float64: {dtype}")
        if size.type.ndim != 1 or size.type.dtype not in dtypes.INTEGERS:
            raise TypeError(f"The size must be a vector of integers, not {size} of {size.type}")
        pattern = [is_one(vector_entry(size, i)) for i in range(self.output_type.ndim)]
        out = self.output_type.clone(broadcastable=pattern)
        return Apply(self, [rstate, size], [rstate.type.make_variable(), out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        rstate, size = inputs
        if rstate.dtype != "int32":
            raise _no_states(rstate.dtype, rstate.shape)
        shape = self.shape(rstate.shape, size)
        if not self.inplace:
            rstate = rstate.copy()
        numbers = draw(rstate, int(np.prod(shape, dtype="object")), self.output_type.dtype)
        output_storage[0][0] = rstate
        output_storage[1][0] = numbers.reshape(shape)

    def shape(self, states: tuple[int, ...], size: Any) -> tuple[int, ...]:
        """Return the shape of the numbers; raise ValueError if an input does not fit.

        states: the shape of the states.
        """
        if len(states) != 2 or states[1] != 6:
            raise _no_states("int32", states)
        shape = tuple(map(int, size))
        if len(shape) != self.output_type.ndim:
            raise ValueError(
                f"size must have length {self.output_type.ndim} (not {len(shape)}), one entry for "
                "each dimension"
            )
        if min(shape, default=0) < 0:
            raise ValueError(f"negative dimensions are not allowed in a size: {shape}")
        n = int(np.prod(shape, dtype="object"))
        if n > M1:
            raise ValueError(
                f"rng_mrg does not support more then (2**31 -1) samples: size {shape} has {n}"
            )
        if n and not states[0]:
            raise ValueError("rstate has no rows: there is no stream to draw from")
        return shape

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        entries = vector_entries(node.inputs[1], self.output_type.ndim)
        return [shapes[0], tuple(map(length, entries))]


def _no_states(dtype: str, shape: tuple[int, ...]) -> ValueError:
    return ValueError(
        "rstate must be a matrix of int32 with 6 columns, one state in each row, not an array of "
        f"dtype {dtype} and shape {shape}"
    )


def guess_n_streams(size: Any, warn: bool = False) -> int:
    """Return a good number of streams for a draw: a sixth of its numbers, at most 15360.

    size: the shape of the numbers, a tuple or list; if it is not one of ints, the result is 15360.
    warn: warn then.
    """
    if isinstance(size, tuple | list) and all(isinstance(n, int) for n in size):
        total = 1
        for n in size:
            total *= n
        return min(total // 6 if total > 6 else total, 60 * 256)
    if warn:
        warnings.warn(
            f"MRG_RandomStreams Can't determine #streams from size ({size}), guessing 60*256",
            stacklevel=3,
        )
    return 60 * 256
