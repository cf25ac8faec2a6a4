"""Draws from numpy's legacy generator: an Op that calls one of its methods, and distributions.

Each distribution is a function of the state and the size, and returns the state after the draw and
the numbers. ``size`` is a tuple or list of lengths, which may be variables; -1 stands for the
length that an argument has along the dimension; None for the shape to which arguments broadcast. Or
it is an integer vector; ``ndim`` is its length, if that is not known.

Each raises TypeError for a state that is no variable and for a size that is not of integers;
ValueError for a negative length, if ``ndim`` is not the number of lengths, if that is not known and
if an argument has more dimensions; ValueError at run time if the arguments do not broadcast to the
size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from opwise.config import config
from opwise.errors import ShapeError
from opwise.graph import provenance
from opwise.graph.apply import Apply
from opwise.graph.null import grad_undefined
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.variable import Constant, Var, Variable
from opwise.scalar import dtypes
from opwise.tensor.elemwise import cast
from opwise.tensor.join import stack
from opwise.tensor.knownvalues import get_vector_length, vector_entries
from opwise.tensor.random.state import RandomStateType, copied, random_state_type
from opwise.tensor.selection import permute_row_elements
from opwise.tensor.shape import length
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, TensorLike, as_tensor_variable, constant

__all__ = [
    "RandomFunction",
    "RandomStateType",
    "RandomStreamsBase",
    "binomial",
    "choice",
    "choice_helper",
    "multinomial",
    "multinomial_helper",
    "normal",
    "permutation",
    "permutation_helper",
    "poisson",
    "random_integers",
    "random_integers_helper",
    "random_state_type",
    "uniform",
]


class RandomFunction(Op):
    """Draws numbers by a method of ``numpy.random.RandomState``.

    fn: name of the method, or a function ``(state, *arguments, shape)``. outtype: type of the
    numbers. ndim_added: how many dimensions the numbers have besides those of the shape. inplace:
    advance the state itself, not a copy. Inputs are the state, the shape (an integer vector; one
    without entries leaves the shape to the arguments) and the arguments; outputs are the state
    after the draw and the numbers.
    """

    __props__ = ("fn", "outtype", "inplace", "ndim_added")
    advances_state = saves_state = True

    def __init__(self, fn: Any, outtype: Any, inplace: bool = False, ndim_added: int = 0) -> None:
        self.fn = fn
        self.outtype = outtype
        self.inplace = inplace
        self.ndim_added = ndim_added
        if inplace:
            self.destroy_map = {0: [0]}

    @property
    def exec_fn(self) -> Callable[..., Any]:
        """The function that is called."""
        if isinstance(self.fn, str):
            method: Callable[..., Any] = getattr(np.random.RandomState, self.fn)
            return method
        result: Callable[..., Any] = self.fn
        return result

    def __str__(self) -> str:
        return f"RandomFunction{{{self.exec_fn.__name__}}}"

    def make_node(self, r: Any, shape: TensorLike, *args: TensorLike) -> Apply:
        if not isinstance(r, Variable):
            raise TypeError(f"The state must be a variable of {random_state_type}, not {r!r}")
        if not isinstance(r.type, RandomStateType):
            provenance.warn(f"RandomState instances should be in RandomStateType: {r} has {r.type}")
        if isinstance(shape, tuple | list) and not shape:
            shape = constant([], dtype="int64")
        shape = as_tensor_variable(shape, ndim=1)
        if shape.type.dtype not in ("int64", "int32"):
            raise AssertionError(f"The shape must be a vector of int64 or int32: {shape.type}")
        inputs = [r, shape, *map(as_tensor_variable, args)]
        return Apply(self, inputs, [r.type.make_variable(), self.outtype.make_variable()])

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        shape = node.inputs[1]
        if self.ndim_added or (isinstance(shape, Constant) and not len(shape.data)):
            raise ShapeError(f"the arguments of {self} decide the shape")
        entries = vector_entries(shape, node.outputs[1].type.ndim)
        return [None, tuple(map(length, entries))]

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        state, lengths, *args = inputs
        # numpy takes None for: the shape that the arguments have
        shape = tuple(map(int, lengths)) or None
        out = node.outputs[1].type
        if shape is not None and out.ndim != len(shape) + self.ndim_added:
            raise ValueError(
                f"Shape mismatch: the numbers have {out.ndim} dimensions, but the shape {shape} "
                f"and {self.ndim_added} more make {len(shape) + self.ndim_added}"
            )
        if not self.inplace:
            state = copied(state)
        numbers = np.asarray(self.exec_fn(state, *args, shape)).astype(out.dtype, copy=False)
        if shape is None and numbers.ndim == 0:
            numbers = numbers.reshape([1] * out.ndim)
        if numbers.ndim != out.ndim:
            raise ValueError(
                f"Shape mismatch: {self} should draw {out.ndim} dimensions, but the arguments make "
                f"{numbers.ndim}"
            )
        if shape is not None and numbers.shape[: len(shape)] != shape:
            raise ValueError(
                f"Shape mismatch: {self} should draw the shape {shape}, but drew {numbers.shape}"
            )
        output_storage[0][0] = state
        output_storage[1][0] = numbers

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        why = "No gradient defined through raw random numbers op"
        return [grad_undefined(self, k, x, why) for k, x in enumerate(inputs)]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        return [None, None]


# --- sizes ----------------------------------------------------------------------------------------


def _infer_ndim_bcast(
    ndim: int | None, shape: TensorLike, *args: Any
) -> tuple[int, Tensor, tuple[bool, ...]]:
    """Return (number of dimensions, shape as an int64 vector, broadcastable dimensions) of a draw.

    ndim, shape: as given for a distribution. args: the arguments that broadcast.
    """
    if isinstance(shape, tuple | list):
        if ndim is not None and ndim != len(shape):
            raise ValueError(
                f"ndim should be equal to len(shape), but ndim = {ndim}, len(shape) = "
                f"{len(shape)}, shape = {shape}"
            )
        ndim = len(shape)
        entries = [_length(entry, i, ndim, args) for i, entry in enumerate(shape)]
        vector = stack([n for n, _ in entries]) if entries else constant([], dtype="int64")
        pattern = tuple(one for _, one in entries)
    elif shape is None:
        if not args:
            raise TypeError("_infer_ndim_bcast cannot infer shape without either shape or args")
        template = reduce(add, args)
        vector, pattern, ndim = template.shape, template.type.broadcastable, template.type.ndim
    else:
        vector = as_tensor_variable(shape)
        if vector.type.ndim != 1:
            raise TypeError(f"shape must be a vector or list of scalar, got '{vector}'")
        ndim = get_vector_length(vector) if ndim is None else ndim
        pattern = (False,) * ndim
    if vector.type.dtype not in dtypes.INTEGERS:
        raise TypeError(f"shape must be an integer vector or list, not one of {vector.type.dtype}")
    needed = max((x.type.ndim for x in args), default=0)
    if needed > ndim:
        raise ValueError(
            "ndim should be at least as big as required by args value: the size has "
            f"{ndim} dimensions, the arguments have {needed}"
        )
    return ndim, cast(vector, "int64"), pattern


def _length(entry: Any, i: int, ndim: int, args: Any) -> tuple[Tensor, bool]:
    """Return (length, whether it is known to be 1) for entry ``i`` of a shape."""
    if hasattr(entry, "type"):
        return entry, False
    if entry >= 0:
        return as_tensor_variable(entry), bool(entry == 1)
    if entry != -1:
        raise ValueError(f"negative shape: entry {i} is {entry}")
    overlapping = [(x, i + x.type.ndim - ndim) for x in args if i + x.type.ndim >= ndim]
    if not overlapping:
        raise ValueError(
            "Auto-shape of -1 must overlap with the shape of one of the broadcastable inputs: "
            f"none has dimension {i}"
        )
    for x, d in overlapping:
        if not x.type.broadcastable[d]:
            return x.shape[d], False
    return as_tensor_variable(1), True


def _generate_broadcasting_indices(out_shape: Sequence[int], *shapes: Sequence[int]) -> list[Any]:
    """Return the indices of each element of ``out_shape``, and those from which it broadcasts.

    Further dimensions of ``shapes`` on the right are ignored. Raises ValueError for a length that
    is neither 1 nor that of ``out_shape``.
    """
    for shape in shapes:
        for d, (n, wanted) in enumerate(zip(shape, out_shape, strict=False)):
            if n not in (1, wanted):
                raise ValueError(
                    f"shape[{d}] ({n}) should be equal to out_shape[{d}] ({wanted}) or to 1"
                )
    at = list(np.ndindex(*out_shape))
    limits = [np.asarray(shape[: len(out_shape)], dtype=int) != 1 for shape in shapes]
    return [at, *([tuple(map(int, keep * index)) for index in at] for keep in limits)]


def _padded(x: np.ndarray, ndim: int, name: str) -> np.ndarray:
    """Return an argument with ``ndim`` dimensions."""
    if x.ndim > ndim:
        raise ValueError(f"{name} has {x.ndim} dimensions, more than the size, which has {ndim}")
    return x.reshape((1,) * (ndim - x.ndim) + x.shape)


def _sized(size: tuple[int, ...] | None, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return a size as a tuple; the largest lengths of the arguments if it is None."""
    if size is not None:
        return tuple(size)
    ndim = max(map(len, shapes))
    padded = [(1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(map(max, *padded)) if ndim else ()


# --- distributions --------------------------------------------------------------------------------


def _at_least_floatX(dtype: str | None, *args: Tensor) -> str:
    return dtypes.upcast(config.floatX, *(x.type.dtype for x in args)) if dtype is None else dtype


def uniform(
    random_state: Variable, size: Any = None, low: TensorLike = 0.0, high: TensorLike = 1.0,
    ndim: int | None = None, dtype: str | None = None,
) -> list[Variable]:  # fmt: skip
    """Draw numbers uniform between ``low`` (included) and ``high`` (excluded).

    Returns the state after the draw and the numbers. The numbers have the shape ``size``. low,
    high: tensors that broadcast to the size. dtype: of the numbers (default: the upcast of floatX,
    low and high); they are drawn in double precision. Raises errors of the size as the module says;
    at run time OverflowError for infinite bounds.
    """
    low, high = as_tensor_variable(low), as_tensor_variable(high)
    dtype = _at_least_floatX(dtype, low, high)
    ndim, size, pattern = _infer_ndim_bcast(ndim, size, low, high)
    result: list[Variable] = RandomFunction("uniform", tensor_type(dtype, pattern))(
        random_state, size, low, high
    )
    return result


def normal(
    random_state: Variable, size: Any = None, avg: TensorLike = 0.0, std: TensorLike = 1.0,
    ndim: int | None = None, dtype: str | None = None,
) -> list[Variable]:  # fmt: skip
    """Draw numbers of a normal distribution of mean ``avg`` and standard deviation ``std``.

    Returns the state after the draw and the numbers. The numbers have the shape ``size``. avg, std:
    tensors that broadcast to the size. dtype: of the numbers (default: the upcast of floatX, avg
    and std). Raises errors of the size as the module says; at run time ValueError for a negative
    std.
    """
    avg, std = as_tensor_variable(avg), as_tensor_variable(std)
    dtype = _at_least_floatX(dtype, avg, std)
    ndim, size, pattern = _infer_ndim_bcast(ndim, size, avg, std)
    result: list[Variable] = RandomFunction("normal", tensor_type(dtype, pattern))(
        random_state, size, avg, std
    )
    return result


def binomial(
    random_state: Variable, size: Any = None, n: TensorLike = 1, p: TensorLike = 0.5,
    ndim: int | None = None, dtype: str = "int64", prob: TensorLike | None = None,
) -> list[Variable]:  # fmt: skip
    """Draw how many of ``n`` trials succeed, each with probability ``p``.

    Returns the state after the draw and the numbers. The numbers have the shape ``size``. n:
    integers, p: tensors that broadcast to the size. dtype: of the counts. prob: old name of p.
    Raises errors of the size as the module says; at run time ValueError for a negative n and a p
    that is no probability, TypeError for an n that is not of integers.
    """
    n, p = _trials(n), as_tensor_variable(_renamed(p, prob))
    ndim, size, _ = _infer_ndim_bcast(ndim, size, n, p)
    result: list[Variable] = RandomFunction("binomial", tensor_type(dtype, (False,) * ndim))(
        random_state, size, n, p
    )
    return result


def _trials(n: TensorLike) -> Tensor:
    """Return a number of trials as a variable; numpy takes no uint64."""
    count = as_tensor_variable(n)
    return cast(count, "int64") if count.type.dtype == "uint64" else count


def _renamed(p: TensorLike, prob: TensorLike | None) -> TensorLike:
    if prob is None:
        return p
    provenance.warn("The parameter prob of binomial is now p, as in numpy.")
    return prob


def random_integers_helper(random_state: Any, low: Any, high: Any, size: Any) -> np.ndarray:
    """Draw integers from ``low`` to ``high``, which may be arrays, by ``randint``.

    The result is a float64 array of shape ``size`` (None: the largest lengths of low and high).
    Raises ValueError if low is above high, or if they do not broadcast to the size.
    """
    shape = _sized(size, low.shape, high.shape)
    low, high = (_padded(x, len(shape), name) for x, name in ((low, "low"), (high, "high")))
    _generate_broadcasting_indices((), low.shape, high.shape)
    low, high = low.astype("int64"), high.astype("int64")
    drawn = random_state.randint(np.broadcast_to(low, shape), np.broadcast_to(high + 1, shape))
    # Theano gathered them in an array of doubles
    return np.asarray(drawn, dtype="float64")


def random_integers(
    random_state: Variable, size: Any = None, low: TensorLike = 0, high: TensorLike = 1,
    ndim: int | None = None, dtype: str = "int64",
) -> list[Variable]:  # fmt: skip
    """Draw integers from ``low`` to ``high``, both included.

    Returns the state after the draw and the numbers. The numbers have the shape ``size``. low,
    high: tensors that broadcast to the size. dtype: of the integers. Raises errors of the size as
    the module says; at run time ValueError if low is above high.
    """
    low, high = as_tensor_variable(low), as_tensor_variable(high)
    ndim, size, pattern = _infer_ndim_bcast(ndim, size, low, high)
    op = RandomFunction(random_integers_helper, tensor_type(dtype, pattern))
    result: list[Variable] = op(random_state, size, low, high)
    return result


def choice_helper(random_state: Any, a: Any, replace: Any, p: Any, size: Any) -> Any:
    """Draw by ``choice``; ``p`` without elements stands for None.

    a: an array of 0 or 1 dimensions, p: of 1. The result has the shape ``size``. Raises ValueError
    for other dimensions.
    """
    if a.ndim > 1:
        raise ValueError(f"a.ndim ({a.ndim}) must be 0 or 1")
    if p.ndim != 1:
        raise ValueError(f"p.ndim ({p.ndim}) must be 1")
    return random_state.choice(a, size, bool(replace), p if p.size else None)


def choice(
    random_state: Variable, size: Any = None, a: TensorLike = 2, replace: TensorLike = True,
    p: TensorLike | None = None, ndim: int | None = None, dtype: str = "int64",
) -> list[Variable]:  # fmt: skip
    """Draw elements of the vector ``a``, or integers from 0 to a - 1.

    Returns the state after the draw and the numbers. The numbers have the shape ``size``. size must
    be given. a: a vector, or a number of 1 or more. replace: whether an element may be drawn again.
    p: vector of probabilities, as long as a (default: all equal). dtype: of the numbers, to which
    elements of a are cast. Raises errors of the size as the module says; at run time ValueError for
    other dimensions of a and p, for a p whose sum is not 1, and for too many draws without
    replacement.
    """
    a = as_tensor_variable(a)
    if isinstance(replace, bool):
        replace = constant(replace, dtype="int8")
    # programs also give 0 for None, as Theano permits
    equal = p is None or (isinstance(p, int | float) and p == 0)
    p = as_tensor_variable([] if p is None or equal else p)
    ndim, size, pattern = _infer_ndim_bcast(ndim, size)
    op = RandomFunction(choice_helper, tensor_type(dtype, pattern))
    result: list[Variable] = op(random_state, size, a, as_tensor_variable(replace), p)
    return result


def poisson(
    random_state: Variable, size: Any = None, lam: TensorLike = 1.0, ndim: int | None = None,
    dtype: str = "int64",
) -> list[Variable]:  # fmt: skip
    """Draw numbers of a Poisson distribution of mean ``lam``.

    Returns the state after the draw and the numbers. The numbers have the shape ``size``. size must
    be given. lam: a tensor that broadcasts to it. dtype: of the numbers. Raises errors of the size
    as the module says; at run time ValueError for a negative lam.
    """
    lam = as_tensor_variable(lam)
    ndim, size, pattern = _infer_ndim_bcast(ndim, size)
    result: list[Variable] = RandomFunction("poisson", tensor_type(dtype, pattern))(
        random_state, size, lam
    )
    return result


def permutation_helper(random_state: Any, n: Any, shape: Any) -> np.ndarray:
    """Draw permutations of the numbers from 0 to ``n`` - 1, as many as ``shape`` has elements.

    The result is an int64 array of shape (*shape, n). Raises AssertionError unless n has shape ().
    """
    if n.shape != ():
        raise AssertionError(f"n must be a number, not an array of shape {n.shape}")
    shape = () if shape is None else tuple(shape)
    out = np.empty((*shape, int(n)), dtype=int)
    for index in np.ndindex(*shape):
        out[index] = random_state.permutation(int(n))
    return out


def permutation(
    random_state: Variable, size: Any = None, n: TensorLike = 1, ndim: int | None = None,
    dtype: str = "int64",
) -> list[Variable]:  # fmt: skip
    """Draw permutations of the numbers from 0 to ``n`` - 1.

    Returns the state after the draw and the numbers. The numbers have the shape (*size, n) (default
    size: one permutation). n: a number, 0 or more. dtype: of the numbers. Raises errors of the size
    as the module says; at run time ValueError for a negative n, AssertionError for an n of another
    shape than ().
    """
    pattern: tuple[bool, ...] = ()
    if size is None or (isinstance(size, tuple) and not size):
        if ndim not in (None, 1):
            raise TypeError(
                f"You asked for just one permutation but asked for more then 1 dimensions: {ndim}"
            )
        size = ()
    else:
        ndim, size, pattern = _infer_ndim_bcast(ndim, size)
    op = RandomFunction(permutation_helper, tensor_type(dtype, (*pattern, False)), ndim_added=1)
    result: list[Variable] = op(random_state, size, n)
    return result


def multinomial_helper(random_state: Any, n: Any, pvals: Any, size: Any) -> np.ndarray:
    """Draw by ``multinomial`` for each distribution, which lie along the last axis of ``pvals``.

    The result is a float64 array of shape (*size, outcomes). Raises AssertionError for negative
    probabilities and for sums above 1, ValueError for shapes that do not broadcast to the size.
    """
    shape = _sized(size, n.shape, pvals.shape[:-1])
    n = _padded(n, len(shape), "n")
    pvals = _padded(pvals, len(shape) + 1, "pvals")
    if pvals.min() < 0:
        raise AssertionError(f"pvals must not be negative: the least is {pvals.min()}")
    out = np.empty((*shape, pvals.shape[-1]))
    indices = _generate_broadcasting_indices(shape, n.shape, pvals.shape[:-1])
    for at, at_n, at_p in zip(*indices, strict=True):
        row = _scaled(pvals[at_p])
        out[at] = random_state.multinomial(n=n[at_n], pvals=row.astype("float64"))
    return out


def _scaled(row: np.ndarray) -> np.ndarray:
    """Return probabilities whose sum is at most 1: numpy refuses what rounding makes larger."""
    if 1.0 < np.sum(row) < 1.0 + 1e-5 or row[-1] < 5e-5:
        row = row * (1.0 - 5e-5)
    if not np.sum(row) <= 1.0:
        raise AssertionError(f"The probabilities must have a sum of 1 at most, not {np.sum(row)}")
    return row


def multinomial(
    random_state: Variable, size: Any = None, n: TensorLike = 1, pvals: TensorLike = (0.5, 0.5),
    ndim: int | None = None, dtype: str = "int64",
) -> list[Variable]:  # fmt: skip
    """Draw how often each outcome occurs in ``n`` trials.

    Returns the state after the draw and the numbers. pvals: probabilities of outcomes along the
    last axis, the distributions along the others. size: without the last axis (default: the shape
    to which n and the distributions broadcast). The counts have the shape (*size, outcomes). dtype:
    of the counts. Raises errors of the size as the module says; at run time AssertionError for
    negative probabilities and a sum above 1, ValueError for a negative n.
    """
    n, pvals = _trials(n), as_tensor_variable(pvals)
    ndim, size, pattern = _infer_ndim_bcast(ndim, size, n, pvals[..., 0])
    out = tensor_type(dtype, (*pattern, pvals.type.broadcastable[-1]))
    result: list[Variable] = RandomFunction(multinomial_helper, out, ndim_added=1)(
        random_state, size, n, pvals
    )
    return result


class RandomStreamsBase:
    """The methods of random streams; ``gen(distribution, *arguments)`` makes a random variable.

    Arguments are those of the distributions of this module, without the state.
    """

    def gen(self, op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return a random variable; subclasses define this.

        It has the shape and dtype that ``op`` draws. Raises NotImplementedError in this class.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no gen")

    def binomial(
        self, size: Any = None, n: TensorLike = 1, p: TensorLike = 0.5, ndim: int | None = None,
        dtype: str = "int64", prob: TensorLike | None = None,
    ) -> Tensor:  # fmt: skip
        """Return how many of ``n`` trials succeed, each with probability ``p``.

        Arguments, shape, dtype and errors are those of ``raw_random.binomial``, without the state.
        Raises, at run time, ValueError for a negative n and a p that is no probability, TypeError
        for an n that is not of integers.
        """
        p = _renamed(p, prob)
        result: Tensor = self.gen(binomial, size, n, p, ndim=ndim, dtype=dtype)
        return result

    def uniform(
        self, size: Any = None, low: TensorLike = 0.0, high: TensorLike = 1.0,
        ndim: int | None = None, dtype: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Return numbers uniform between ``low`` (included) and ``high`` (excluded).

        Arguments, shape, dtype and errors are those of ``raw_random.uniform``, without the state.
        Raises, at run time, OverflowError for infinite bounds.
        """
        result: Tensor = self.gen(uniform, size, low, high, ndim=ndim, dtype=dtype)
        return result

    def normal(
        self, size: Any = None, avg: TensorLike = 0.0, std: TensorLike = 1.0,
        ndim: int | None = None, dtype: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Return numbers of a normal distribution of mean ``avg`` and standard deviation ``std``.

        Arguments, shape, dtype and errors are those of ``raw_random.normal``, without the state.
        Raises, at run time, ValueError for a negative std.
        """
        result: Tensor = self.gen(normal, size, avg, std, ndim=ndim, dtype=dtype)
        return result

    def random_integers(
        self, size: Any = None, low: TensorLike = 0, high: TensorLike = 1,
        ndim: int | None = None, dtype: str = "int64",
    ) -> Tensor:  # fmt: skip
        """Return integers from ``low`` to ``high``, both included.

        Arguments, shape, dtype and errors are those of ``raw_random.random_integers``, without the
        state. Raises, at run time, ValueError if low is above high.
        """
        result: Tensor = self.gen(random_integers, size, low, high, ndim=ndim, dtype=dtype)
        return result

    def choice(
        self, size: Any = None, a: TensorLike = 2, replace: Any = True,
        p: TensorLike | None = None, ndim: int | None = None, dtype: str = "int64",
    ) -> Tensor:  # fmt: skip
        """Return elements of the vector ``a``, or integers from 0 to a - 1.

        Arguments, shape, dtype and errors are those of ``raw_random.choice``, without the state.
        Raises, at run time, ValueError for other dimensions of a and p, for a p whose sum is not 1,
        and for too many draws without replacement.
        """
        result: Tensor = self.gen(choice, size, a, replace, p, ndim=ndim, dtype=dtype)
        return result

    def poisson(
        self, size: Any = None, lam: TensorLike | None = None, ndim: int | None = None,
        dtype: str = "int64",
    ) -> Tensor:  # fmt: skip
        """Return numbers of a Poisson distribution of mean ``lam``.

        Arguments, shape, dtype and errors are those of ``raw_random.poisson``, without the state;
        TypeError without lam. Raises, at run time, ValueError for a negative lam.
        """
        result: Tensor = self.gen(poisson, size, lam, ndim=ndim, dtype=dtype)
        return result

    def permutation(
        self, size: Any = None, n: TensorLike = 1, ndim: int | None = None, dtype: str = "int64",
    ) -> Tensor:  # fmt: skip
        """Return permutations of the numbers from 0 to ``n`` - 1.

        Arguments, shape, dtype and errors are those of ``raw_random.permutation``, without the
        state. Raises, at run time, ValueError for a negative n, AssertionError for an n of another
        shape than ().
        """
        result: Tensor = self.gen(permutation, size, n, ndim=ndim, dtype=dtype)
        return result

    def multinomial(
        self, size: Any = None, n: TensorLike = 1, pvals: TensorLike = (0.5, 0.5),
        ndim: int | None = None, dtype: str = "int64",
    ) -> Tensor:  # fmt: skip
        """Return how often each outcome occurs in ``n`` trials.

        Arguments, shape, dtype and errors are those of ``raw_random.multinomial``, without the
        state. Raises, at run time, AssertionError for negative probabilities and a sum above 1,
        ValueError for a negative n.
        """
        result: Tensor = self.gen(multinomial, size, n, pvals, ndim=ndim, dtype=dtype)
        return result

    def shuffle_row_elements(self, input: Tensor) -> Tensor:
        """Return ``input`` with the elements of each row, along the last axis, shuffled.

        input: a variable of 1 dimension or more; the result has its shape and dtype. The result has
        the random variable ``permutation``. Raises ValueError for a number.
        """
        perm = self.permutation(size=input.shape[:-1], n=input.shape[-1], ndim=input.type.ndim - 1)
        shuffled = permute_row_elements(input, perm)
        shuffled.permutation = perm  # type: ignore[attr-defined]
        return shuffled
