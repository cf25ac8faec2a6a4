"""Parts of sparse matrices: rows, blocks and elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.gradient import grad_undefined
from opwise.graph.apply import Apply
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import scalar_shape, shapes_of
from opwise.graph.type import generic
from opwise.graph.variable import Constant, Var, Variable
from opwise.sparse.type import SparseType
from opwise.sparse.variable import as_compressed, discrete_dtypes, integer_dtypes
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import as_tensor_variable
from opwise.tensor.variable import constant as tensor_constant


def _indices(x: Any) -> Any:
    """Return a vector of integers as a variable; AssertionError for anything else."""
    x = as_tensor_variable(x)
    if x.type.ndim != 1 or x.type.dtype not in integer_dtypes:
        raise AssertionError(f"rows and columns are chosen by vectors of integers, not {x.type}")
    return x


class GetItemList(Op):
    """The rows of a sparse matrix that a vector of integers names."""

    __props__ = ()

    def make_node(self, x: Var, index: Any) -> Apply:
        x = as_compressed(x)
        return Apply(self, [x, _indices(index)], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, index = inputs
        output_storage[0][0] = x[index]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [(shapes[1][0], shapes[0][1])]

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        x, index = inputs
        return [
            get_item_list_grad(x, index, output_gradients[0]),
            grad_undefined(self, 1, index, "No gradient for this input"),
        ]


get_item_list = GetItemList()


def _wrapped(index: np.ndarray, length: int) -> np.ndarray:
    """Return indices with those below 0 counted from the end."""
    index = index.astype(np.int64)
    return np.where(index < 0, index + length, index)


class GetItemListGrad(Op):
    """The gradient by ``x`` of ``x[index]``: the rows of gz, added up at the rows of x."""

    __props__ = ()

    def make_node(self, x: Var, index: Any, gz: Var) -> Apply:
        x, gz = as_compressed(x), as_compressed(gz)
        return Apply(self, [x, _indices(index), gz], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, index, gz = inputs
        out: Any = node.outputs[0].type
        cls = out.format_cls[out.format]
        rows = _wrapped(index, x.shape[0])
        chosen = (np.ones(len(rows), dtype=gz.dtype), (rows, np.arange(len(rows))))
        picked = cls(chosen, shape=(x.shape[0], len(rows)))
        output_storage[0][0] = cls(picked.dot(gz), dtype=out.dtype)

    infer_shape = shapes_of(0)


get_item_list_grad = GetItemListGrad()


class GetItem2Lists(Op):
    """The elements of a sparse matrix at pairs of a row and a column, as a vector."""

    __props__ = ()

    def make_node(self, x: Var, ind1: Var, ind2: Var) -> Apply:
        x = as_compressed(x)
        out = tensor_type(x.type.dtype, (False,))
        return Apply(self, [x, _indices(ind1), _indices(ind2)], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, rows, columns = inputs
        output_storage[0][0] = np.asarray(x[rows, columns], dtype=x.dtype).ravel()

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [(shapes[1][0],)]

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        x, rows, columns = inputs
        return [
            get_item_2lists_grad(x, rows, columns, output_gradients[0]),
            grad_undefined(self, 1, rows, "No gradient for this input"),
            grad_undefined(self, 2, columns, "No gradient for this input"),
        ]


get_item_2lists = GetItem2Lists()


class GetItem2ListsGrad(Op):
    """The gradient by ``x`` of ``x[rows, columns]``: gz, added up at the places."""

    __props__ = ()

    def make_node(self, x: Var, ind1: Var, ind2: Var, gz: Var) -> Apply:
        x = as_compressed(x)
        inputs = [x, _indices(ind1), _indices(ind2), as_tensor_variable(gz)]
        return Apply(self, inputs, [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, rows, columns, gz = inputs
        out: Any = node.outputs[0].type
        at = (_wrapped(rows, x.shape[0]), _wrapped(columns, x.shape[1]))
        made = out.format_cls[out.format]((gz.astype(out.dtype), at), shape=x.shape)
        output_storage[0][0] = made

    infer_shape = shapes_of(0)


get_item_2lists_grad = GetItem2ListsGrad()


class GetItem2d(Op):
    """A block of a sparse matrix: one or two slices, of integers and 0-d integer variables.

    Raises NotImplementedError for a number, which would make a sparse vector, and ValueError for
    any other index. It has no gradient.
    """

    __props__ = ()

    def make_node(self, x: Var, index: Any) -> Apply:
        x = as_compressed(x)
        if len(index) not in (1, 2):
            raise AssertionError(f"a sparse matrix has 2 dimensions, not {len(index)}")
        index = (*index, slice(None))[:2]
        parts = [part for entry in index for part in _slice_parts(entry)]
        return Apply(self, [x, *parts], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, *parts = inputs
        parts = [None if part is None else int(part) for part in parts]
        output_storage[0][0] = x[slice(*parts[:3]), slice(*parts[3:])]

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        raise NotImplementedError(
            f"{self} has no gradient: choose rows by a list, x[[0, 1, 2]], which has one"
        )


def _slice_parts(entry: Any) -> list[Any]:
    """Return start, stop and step of a slice as variables."""
    if isinstance(entry, slice):
        step = None if isinstance(entry.step, int) and entry.step == 1 else entry.step
        named = (("start", entry.start), ("stop", entry.stop), ("step", step))
        return [_slice_part(name, part) for name, part in named]
    if np.isscalar(entry) or getattr(getattr(entry, "type", None), "ndim", None) == 0:
        raise NotImplementedError(
            "Theano has no sparse vector. Use X[a:b, c:d], X[a:b, c:c+1] or X[a:b] instead of "
            f"the index {entry}."
        )
    raise ValueError(
        f"Advanced indexing is not implemented for sparse matrices. Argument not supported: {entry}"
    )


def _slice_part(name: str, part: Any) -> Var:
    if part is None:
        return Constant(generic, None)
    if not isinstance(part, Variable):
        part = as_tensor_variable(part)
    if part.type.ndim != 0 or part.type.dtype not in discrete_dtypes:
        raise ValueError(
            f"Impossible to index into a sparse matrix with slice where {name}={part} has type "
            f"{part.type}: it must be an integer"
        )
    return part


get_item_2d = GetItem2d()


class GetItemScalar(Op):
    """One element of a sparse matrix, as a 0-d tensor. It has no gradient."""

    __props__ = ()

    def make_node(self, x: Var, index: Any) -> Apply:
        x = as_compressed(x)
        if len(index) != 2:
            raise AssertionError(f"an element has a row and a column, not {len(index)} indices")
        out = tensor_type(x.type.dtype, ())
        return Apply(self, [x, *map(_number, index)], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, row, column = inputs
        output_storage[0][0] = np.asarray(x[int(row), int(column)], dtype=x.dtype)

    infer_shape = scalar_shape

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        raise NotImplementedError(
            f"{self} has no gradient: x[[row], [column]] is a vector of one element, which has one"
        )


def _number(index: Any) -> Var:
    if isinstance(index, slice):
        raise Exception("GetItemScalar called with a slice as index!")
    if isinstance(index, int | np.integer):
        return tensor_constant(int(index))
    if getattr(index, "type", None) is None or index.ndim != 0:
        raise NotImplementedError(f"an element is named by two integers, not by {index}")
    return index


get_item_scalar = GetItemScalar()


def getitem(x: Any, args: Any) -> Any:
    """Return ``x[args]``: a block (slices), rows (a list), elements (two lists) or one element.

    Slices and a list of rows give a sparse matrix, of the format of x and the shape of the part;
    lists of rows and columns give a dense vector of the elements at these pairs, as long as the
    lists; two integers give a 0-d tensor. All have the dtype of x. A list is a list or array of
    integers, an integer may be a 0-d variable; negative ones count from the end.

    Raises NotImplementedError for one integer, or one beside a slice, and for two numbers that are
    no integers, ValueError for other indices and for slices of anything but integers,
    AssertionError for a BSR matrix, for more than 2 indices and for lists of anything but integers;
    IndexError at run time if an index is out of range.
    """
    args = args if isinstance(args, tuple) else (args,)
    if len(args) == 2 and all(map(_is_number, args)):
        return get_item_scalar(x, args)
    if isinstance(args[0], list | np.ndarray) and len(args) <= 2:
        return get_item_2lists(x, *args) if len(args) == 2 else get_item_list(x, args[0])
    return get_item_2d(x, args)


def _is_number(index: Any) -> bool:
    """Return whether an index is an integer, or a 0-d integer variable."""
    type_ = getattr(index, "type", None)
    if type_ is None:
        return bool(np.isscalar(index))
    return (
        not isinstance(type_, SparseType)
        and getattr(type_, "ndim", None) == 0
        and type_.dtype in discrete_dtypes
    )
