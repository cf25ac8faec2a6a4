"""Random sparse matrices, drawn by numpy's global generator: ``numpy.random.seed`` repeats them.

Each call of a function draws anew, so rewrites must not compute these Ops beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.gradient import grad_undefined
from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import connects, shapes_of
from opwise.graph.variable import Var
from opwise.sparse.type import SparseType
from opwise.sparse.variable import as_compressed, as_sparse_variable, discrete_dtypes, float_dtypes
from opwise.tensor.variable import as_tensor_variable


class _Draws(Op):
    """Base of Ops whose values differ from call to call."""

    def do_constant_folding(self, node: Apply) -> bool:
        return False

    def _no_gradient(self, inputs: Any, i: int) -> Any:
        return grad_undefined(self, i, inputs[i], f"{self} draws random numbers")


class Poisson(_Draws):
    """For each entry of a sparse matrix a number from the Poisson distribution with that mean."""

    __props__ = ()

    def make_node(self, x: Var) -> Apply:
        x = as_sparse_variable(x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        if x.format not in ("csr", "csc"):
            raise AssertionError(f"{self} takes CSR and CSC matrices, not one of format {x.format}")
        z = x.copy()
        z.data = np.asarray(np.random.poisson(x.data), dtype=x.dtype)
        z.eliminate_zeros()
        output_storage[0][0] = z

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        return [self._no_gradient(inputs, 0)]

    infer_shape = shapes_of(0)


poisson = Poisson()


class Binomial(_Draws):
    """A sparse matrix of a shape, a format and a dtype: successes in n trials of probability p."""

    __props__ = ("format", "dtype")

    def __init__(self, format: str, dtype: str) -> None:
        self.format = format
        self.dtype = dtype

    def make_node(self, n: Var, p: Var, shape: Any) -> Apply:
        n, p, shape = map(as_tensor_variable, (n, p, shape))
        for what, var, dtypes in (
            ("n", n, discrete_dtypes),
            ("p", p, float_dtypes),
            ("shape", shape, discrete_dtypes),
        ):
            if var.type.dtype not in dtypes:
                raise AssertionError(f"{self}: {what} has dtype {var.type.dtype}, not one of "
                                     f"{', '.join(dtypes)}")  # fmt: skip
        out = SparseType(dtype=self.dtype, format=self.format)
        return Apply(self, [n, p, shape], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        n, p, shape = inputs
        drawn = np.random.binomial(n, p, size=tuple(shape))
        cls = SparseType.format_cls[self.format]
        output_storage[0][0] = cls(drawn, dtype=node.outputs[0].type.dtype)

    connection_pattern = connects(0, 1)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        undefined = [self._no_gradient(inputs, i) for i in range(2)]
        return [*undefined, disconnected_type.make_variable()]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        shape: Var = node.inputs[2]
        return [(shape[0], shape[1])]


csr_fbinomial = Binomial("csr", "float32")
csc_fbinomial = Binomial("csc", "float32")
csr_dbinomial = Binomial("csr", "float64")
csc_dbinomial = Binomial("csc", "float64")


class Multinomial(_Draws):
    """For each row of a CSR matrix of probabilities, the outcomes of n trials.

    n: an integer, or a vector with one for each row. The entries of each row of p add up to 1.
    """

    __props__ = ()

    def make_node(self, n: Var, p: Var) -> Apply:
        n, p = as_tensor_variable(n), as_compressed(p)
        return Apply(self, [n, p], [p.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        n, p = inputs
        if p.format != "csr":
            raise NotImplementedError(f"{self} takes a CSR matrix, not one of format {p.format}")
        if n.ndim == 1 and len(n) != p.shape[0]:
            raise ValueError(
                "The number of element of n must be the same as the number of row of p: "
                f"{len(n)} and {p.shape[0]}"
            )
        z = p.copy()
        for i, trials in enumerate(np.broadcast_to(n, (p.shape[0],))):
            row = slice(p.indptr[i], p.indptr[i + 1])
            z.data[row] = np.random.multinomial(trials, p.data[row])
        output_storage[0][0] = z

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        return [self._no_gradient(inputs, i) for i in range(2)]

    infer_shape = shapes_of(1)


multinomial = Multinomial()
