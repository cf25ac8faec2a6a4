"""MRG_RandomStreams: random variables whose numbers come from the parallel streams of MRG31k3p."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.compile.shared import SharedVariable, shared
from opwise.config import config
from opwise.gradient import undefined_grad
from opwise.graph.variable import Variable
from opwise.scalar import dtypes
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.join import join, stack
from opwise.tensor.random import mrg
from opwise.tensor.random.mrg import guess_n_streams, mrg_uniform
from opwise.tensor.random.multinomial import ChoiceFromUniform, MultinomialFromUniform
from opwise.tensor.reduce import prod
from opwise.tensor.selection import nonzero
from opwise.tensor.shape import reshape
from opwise.tensor.variable import Tensor, TensorLike, as_tensor_variable, constant

_INTEGERS = (int, np.integer)

#: an update of a random variable: state, state after a draw, size, number of streams or None
Update = tuple[SharedVariable, Variable, Any, int | None]


class MRG_RandomStreams:
    """Makes random variables; each has streams of its own, and draws anew in every call.

    seed: a positive int less than 2147462579, or six ints that are the first state: the first three
    less than 2147483647, the last three less than 2147462579, and neither three all 0. use_cuda:
    has no effect. Raises ValueError or TypeError for another seed.
    """

    #: an update for each random variable
    state_updates: list[Update]

    def __init__(self, seed: int | Sequence[int] = 12345, use_cuda: bool | None = None) -> None:
        self.state_updates = []
        self.default_instance_seed = seed
        self.set_rstate(seed)

    def updates(self) -> list[Update]:
        """Return the updates of all random variables made so far."""
        return list(self.state_updates)

    # --- states ---------------------------------------------------------------------------------

    def set_rstate(self, seed: int | Sequence[int]) -> None:
        """Set the state from which the next random variable starts; ``seed`` as for the class.

        The state is an int32 array of shape (6,). Raises ValueError or TypeError as the class does.
        """
        if isinstance(seed, _INTEGERS):
            if seed == 0:
                raise ValueError(
                    "seed should not be 0, with which all numbers would be equal: give an int from "
                    f"1 to {mrg.M2 - 1}"
                )
            if seed >= mrg.M2:
                raise ValueError(f"seed should be less than {mrg.M2}, not {seed}")
            self.rstate = np.asarray([seed] * 6, dtype="int32")
            return
        if len(seed) != 6:
            raise TypeError(f"seed should be 1 integer or 6 integers, not {len(seed)}")
        for which, half, limit in (("first", seed[:3], mrg.M1), ("last", seed[3:], mrg.M2)):
            if not any(half):
                raise ValueError(f"The {which} 3 values of seed should not be all 0: {seed}")
            if max(half) >= limit:
                raise ValueError(
                    f"The {which} 3 values of seed should be less than {limit}: {seed}"
                )
        self.rstate = np.asarray(seed, dtype="int32")

    def seed(self, seed: int | Sequence[int] | None = None) -> None:
        """Set the states of all random variables as if they had been made with ``seed``.

        seed: as for the class (default: that of the class). Raises ValueError or TypeError as the
        class does.
        """
        self.set_rstate(self.default_instance_seed if seed is None else seed)
        for old, new, size, nstreams in self.state_updates:
            assert new.owner is not None
            dtype = new.owner.outputs[1].type.dtype
            n = self.n_streams(size) if nstreams is None else nstreams
            old.set_value(self.get_substream_rstates(n, dtype), borrow=True)

    def inc_rstate(self) -> None:
        """Move on to the start of the next stream, 2^134 steps later."""
        self.rstate = mrg.ff_2p134(self.rstate)

    def get_substream_rstates(
        self, n_streams: int, dtype: str, inc_rstate: bool = True
    ) -> np.ndarray:
        """Return the states of ``n_streams`` substreams, 2^72 steps apart: an int32 matrix.

        Its shape is (n_streams, 6). dtype: that of the numbers; it has no effect. inc_rstate: move
        on to the next stream. Raises AssertionError unless n_streams is positive and dtype a
        string.
        """
        if not isinstance(dtype, str):
            raise AssertionError(f"dtype must be a string, not {dtype!r}")
        if not 0 < n_streams < 2**72:
            raise AssertionError(f"The number of streams must be positive, not {n_streams}")
        states = mrg.substreams(self.rstate, int(n_streams))
        if inc_rstate:
            self.inc_rstate()
        return states

    def n_streams(self, size: Any) -> int:
        """Return the number of streams for a draw of a given size, the shape of the numbers."""
        return guess_n_streams(size)

    def pretty_return(
        self, node_rstate: Any, new_rstate: Any, sample: Any, size: Any, nstreams: int | None
    ) -> Any:
        """Return the random variable ``sample``, and let its state be updated in every call."""
        sample.rstate = node_rstate
        sample.update = (node_rstate, new_rstate)
        self.state_updates.append((node_rstate, new_rstate, size, nstreams))
        node_rstate.default_update = new_rstate
        return sample

    # --- distributions --------------------------------------------------------------------------

    def uniform(
        self, size: Any, low: TensorLike = 0.0, high: TensorLike = 1.0, ndim: int | None = None,
        dtype: str | None = None, nstreams: int | None = None, **kwargs: Any,
    ) -> Tensor:  # fmt: skip
        """Return numbers uniform between ``low`` and ``high``, both excluded but for rounding.

        size: the shape of the result, a tuple of positive ints and 0-d integer variables, or an
        integer vector. low, high: tensors that broadcast to it. ndim: the length of such a vector
        if it is not known. dtype: float16, float32 or float64 (default: the upcast of floatX, low
        and high). nstreams: number of streams (default: ``n_streams``). Raises ValueError if a
        length is not positive or the length of size is not known, TypeError or AssertionError for
        another size, TypeError for another dtype, NotImplementedError if low or high have more
        dimensions than the size; ValueError at run time if they do not broadcast to it or if a
        length is negative.
        """
        low, high = as_tensor_variable(low), as_tensor_variable(high)
        if dtype is None:
            dtype = dtypes.upcast(config.floatX, low.type.dtype, high.type.dtype)
        low, high = (undefined_grad(cast(bound, dtype)) for bound in (low, high))
        _check_uniform_size(size)
        target = {"target": kwargs.pop("target")} if "target" in kwargs else {}
        if kwargs:
            raise TypeError(f"uniform() got unexpected keyword arguments {', '.join(kwargs)}")
        n = self.n_streams(size) if nstreams is None else nstreams
        state = shared(self.get_substream_rstates(n, dtype), **target)
        # tells this shared variable from others
        state.tag.is_rng = True
        new_state, sample = mrg_uniform.new(state, ndim, dtype, size)
        sample = self.pretty_return(state, new_state, sample, size=size, nstreams=nstreams)
        first: Any = low
        result: Tensor = sample * (high - first) + first
        if result.type.broadcastable != sample.type.broadcastable:
            raise NotImplementedError(
                "Increase the size to match the broadcasting pattern of `low` and `high` "
                f"arguments: it makes {sample.type}, they make {result.type}"
            )
        return result

    def binomial(
        self, size: Any = None, n: int = 1, p: TensorLike = 0.5, ndim: int | None = None,
        dtype: str = "int64", nstreams: int | None = None, **kwargs: Any,
    ) -> Tensor:  # fmt: skip
        """Return numbers that are 1 with probability ``p``, otherwise 0.

        size, nstreams: as for ``uniform``; the result has the shape to which size and p broadcast,
        and the dtype ``dtype``. n: must be 1, otherwise raises NotImplementedError. ndim: has no
        effect. Raises the errors of ``uniform`` for a size.
        """
        if n != 1:
            raise NotImplementedError(
                f"MRG_RandomStreams.binomial with n > 1 (n is {n}): RandomStreams has it"
            )
        p = undefined_grad(as_tensor_variable(p))
        below: Any = self.uniform(size=size, nstreams=nstreams, **kwargs) < p
        return cast(below, dtype)

    def multinomial(
        self, size: Any = None, n: Any = 1, pvals: TensorLike | None = None,
        ndim: int | None = None, dtype: str = "int64", nstreams: int | None = None, **kwargs: Any,
    ) -> Tensor:  # fmt: skip
        """Return how often each outcome occurs in ``n`` draws, in each row of ``pvals``.

        pvals: a matrix of probabilities, each row of sum 1; this is not checked. n: an int or a 0-d
        integer variable. The result has the shape of pvals, and the dtype ``dtype`` ('auto': that
        of pvals). size, ndim: must be None, otherwise raises ValueError. Raises TypeError without
        pvals and for another n, NotImplementedError unless pvals is a matrix; ValueError at run
        time for a negative n.
        """
        if pvals is None:
            raise TypeError("You have to specify pvals, a matrix of probabilities")
        for name, given in (("a size", size), ("an ndim", ndim)):
            if given is not None:
                raise ValueError(
                    f"Provided {name} argument to MRG_RandomStreams.multinomial, which does not "
                    f"use the {name.split()[1]} argument: {given}"
                )
        pvals = _probabilities(pvals, "multinomial", "pvals")
        uniform = self.uniform(size=_rows(pvals) * n, ndim=1, nstreams=nstreams, **kwargs)
        counts: Tensor = MultinomialFromUniform(dtype)(pvals, uniform, as_tensor_variable(n))
        return counts

    def choice(
        self, size: Any = 1, a: None = None, replace: bool = True, p: TensorLike | None = None,
        ndim: int | None = None, dtype: str = "int64", nstreams: int | None = None, **kwargs: Any,
    ) -> Tensor:  # fmt: skip
        """Return ``size`` different outcomes, drawn one after the other, of each row of ``p``.

        size: an int or 0-d integer variable, at most the number of columns of p. p: a matrix of
        probabilities, each row of sum 1; this is not checked. The result has shape (rows of p,
        size) and the dtype ``dtype``. a, ndim: must be None. replace: must be False, otherwise
        raises NotImplementedError. Raises TypeError for an a, without p and for another size,
        ValueError for an ndim, NotImplementedError unless p is a matrix; ValueError at run time if
        size is larger than the number of columns.
        """
        if replace:
            raise NotImplementedError(
                "MRG_RandomStreams.choice only works without replacement for now: give "
                "replace=False"
            )
        if a is not None:
            raise TypeError(
                "For now, a has to be None in MRG_RandomStreams.choice. Sampled values are between "
                f"0 and p.shape[1]-1; index {a} by them."
            )
        if p is None:
            raise TypeError("For now, p has to be specified in MRG_RandomStreams.choice.")
        if ndim is not None:
            raise ValueError(f"ndim argument to MRG_RandomStreams.choice is not used: {ndim}")
        p = _probabilities(p, "choice", "p")
        uniform = self.uniform(size=_rows(p) * size, ndim=1, nstreams=nstreams, **kwargs)
        chosen: Tensor = ChoiceFromUniform(odtype=dtype)(p, uniform, as_tensor_variable(size))
        return chosen

    def multinomial_wo_replacement(
        self, size: None = None, n: Any = 1, pvals: TensorLike | None = None,
        ndim: int | None = None, dtype: str = "int64", nstreams: int | None = None, **kwargs: Any,
    ) -> Tensor:  # fmt: skip
        """Return what ``choice`` returns, which replaces this method, of shape (rows of pvals, n).

        n: the number of draws. Raises AssertionError for a size, and the errors of ``choice``;
        warns.
        """
        warnings.warn(
            "MRG_RandomStreams.multinomial_wo_replacement() is deprecated: use "
            "MRG_RandomStreams.choice() instead.",
            stacklevel=2,
        )
        if size is not None:
            raise AssertionError(f"size must be None, not {size}: n is the number of draws")
        return self.choice(
            size=n, replace=False, p=pvals, dtype=dtype, nstreams=nstreams, ndim=ndim, **kwargs
        )

    def normal(
        self, size: Any, avg: TensorLike = 0.0, std: TensorLike = 1.0, ndim: int | None = None,
        dtype: str | None = None, nstreams: int | None = None, truncate: bool = False,
        **kwargs: Any,
    ) -> Tensor:  # fmt: skip
        """Return numbers of a normal distribution of mean ``avg`` and standard deviation ``std``.

        size: the shape of the result, a positive int, a tuple or list of them and of 0-d variables,
        or an integer vector. avg, std: tensors that broadcast against it. ndim, nstreams: as for
        ``uniform``. dtype: of the numbers (default: the upcast of floatX, avg and std; float16
        gives float32). truncate: only numbers at most 2 ``std`` from ``avg``; their standard
        deviation is smaller. The numbers are those of the Box-Muller transform. Raises ValueError
        for another size, or one of unknown length, TypeError for a dtype that is not of floats;
        ValueError at run time if shapes do not broadcast or a length is negative.
        """
        size = _check_size(size)
        avg, std = as_tensor_variable(avg), as_tensor_variable(std)
        if dtype is None:
            dtype = dtypes.upcast(config.floatX, avg.type.dtype, std.type.dtype)
        avg, std = cast(undefined_grad(avg), dtype), cast(undefined_grad(std), dtype)
        n = prod(size, dtype="int64")
        even = n + n % 2

        def uniform(count: Any, low: Any = 0.0) -> Any:
            return self.uniform(
                (count,), low=low, high=1.0, ndim=1, dtype=dtype, nstreams=nstreams, **kwargs
            )

        numbers = uniform(even)
        radius = _radius(numbers[: even // 2])
        angle = np.array(2.0 * np.pi, dtype=dtype) * numbers[even // 2 :]
        sides = elemwise("cos")(angle), elemwise("sin")(angle)
        if truncate:
            parts = _within_two(radius, sides, uniform, dtype)
        else:
            parts = [radius * side for side in sides]
        result: Tensor = reshape(join(0, *parts)[:n], size, ndim=ndim) * std + avg
        return result

    def truncated_normal(
        self, size: Any, avg: TensorLike = 0.0, std: TensorLike = 1.0, ndim: int | None = None,
        dtype: str | None = None, nstreams: int | None = None, **kwargs: Any,
    ) -> Tensor:  # fmt: skip
        """Return normal numbers without those far from the mean, of standard deviation ``std``.

        Arguments, shape, dtype and errors are those of ``normal``; none is more than about 2.27
        ``std`` from ``avg``. Raises ValueError for another size, TypeError for a dtype that is not
        of floats.
        """
        std = std / constant(_DEVIATION_WITHIN_TWO)
        return self.normal(
            size, avg, std, truncate=True, ndim=ndim, dtype=dtype, nstreams=nstreams, **kwargs
        )


#: standard deviation of the standard normal distribution between -2 and 2
_DEVIATION_WITHIN_TWO = 0.87962566103423978


def _radius(uniform: Any) -> Any:
    return elemwise("sqrt")(-2.0 * elemwise("log")(uniform))


def _within_two(radius: Any, sides: Sequence[Any], uniform: Any, dtype: str) -> list[Any]:
    """Return normal numbers in four parts: those of each side that are valid, and replacements.

    Numbers of a magnitude above 2 are drawn again, with the same angles, from the radii below 2.
    """
    numbers = [radius * side for side in sides]
    invalid = [elemwise("or_")(z < -2.0, z > 2.0) for z in numbers]
    valid = [z[nonzero(elemwise("invert")(bad))] for z, bad in zip(numbers, invalid, strict=True)]
    first, second = (nonzero(bad)[0] for bad in invalid)
    again = _radius(uniform(first.size + second.size, constant(math.exp(-2), dtype=dtype)))
    fixed = again[: first.size] * sides[0][first], again[first.size :] * sides[1][second]
    return [valid[0], fixed[0], valid[1], fixed[1]]


def _probabilities(given: TensorLike, method: str, name: str) -> Tensor:
    """Return a matrix of probabilities as a variable, by which gradients are undefined."""
    pvals = as_tensor_variable(given)
    if pvals.type.ndim != 2:
        raise NotImplementedError(
            f"MRG_RandomStreams.{method} is only implemented for {name}.ndim = 2, not "
            f"{pvals.type.ndim}"
        )
    undefined: Tensor = undefined_grad(pvals)
    return undefined


def _rows(matrix: Any) -> Tensor:
    """Return the number of rows of a matrix, as a vector."""
    rows: Tensor = matrix[:, 0].shape
    return rows


def _check_uniform_size(size: Any) -> None:
    """Raise unless ``size`` is a tuple of positive ints and variables, or a symbolic vector."""
    if isinstance(size, tuple):
        if not all(isinstance(n, (*_INTEGERS, Variable)) for n in size):
            raise AssertionError(f"size must be a tuple of int or a Theano variable, not {size}")
        if any(isinstance(n, _INTEGERS) and n <= 0 for n in size):
            raise ValueError(
                f"The specified size contains a dimension with value <= 0: {size}. Give positive "
                "lengths."
            )
    elif not (isinstance(size, Variable) and getattr(size.type, "ndim", None) == 1):
        raise TypeError(
            "size must be a tuple of int or a Theano variable with 1 dimension, got "
            f"{size} of type {type(size)}"
        )


def _check_size(size: Any) -> Any:
    """Return ``size`` as an integer vector; ValueError unless it can be one."""
    if isinstance(size, Variable):
        ndim = getattr(size.type, "ndim", None)
        if ndim == 1:
            return size
        if ndim == 0:
            return stack([size])
        raise ValueError(f"A Theano variable must have 1 dimension to be a valid size: {size}")
    if isinstance(size, _INTEGERS):
        return constant([size], ndim=1)
    if not isinstance(size, tuple | list):
        raise ValueError(f"Size must be a int, tuple, list or Theano variable, not {size!r}")
    for n in size:
        if isinstance(n, Variable):
            if getattr(n.type, "ndim", None) != 0:
                raise ValueError(f"Non-scalar Theano variable in size {size}: {n}")
        elif not isinstance(n, _INTEGERS):
            raise ValueError(
                f"Only Theano variables and integers are allowed in a size-tuple: {n!r}"
            )
        elif n <= 0:
            raise ValueError(f"Non-positive dimensions not allowed in size: {size}")
    return as_tensor_variable(size, ndim=1)
