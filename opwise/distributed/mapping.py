"""Compiled functions over Dask's collections: arrays, bags and delayed values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import numpy as np
from dask.base import tokenize

from opwise.compile.executable import Function
from opwise.distributed import blockshapes, recipe, remote
from opwise.distributed.clusters import task_name
from opwise.graph import provenance


def map_blocks(
    f: Function,
    *args: Any,
    drop_axis: int | Iterable[int] = (),
    new_axis: int | Iterable[int] = (),
    chunks: Sequence[Any] | None = None,
) -> Any:
    """Return a Dask array of what a function returns for each block of Dask arrays.

    f: a compiled function whose outputs are tensors. args: a value for each of its inputs. Blocks
    of Dask arrays are paired as in ``dask.array.map_blocks``: from the last dimension on, and the
    only block of a dimension goes with every block of the others. Any other value, or array, goes
    to each call as it is. drop_axis: dimensions of the arrays that the result lacks; their blocks
    are joined before the call. new_axis: dimensions of the result that the arrays lack. chunks: the
    lengths of the result's blocks, a number or a tuple for each dimension (default: computed from
    the graph; nan where they depend on values).

    Returns a Dask array of the dtype of f's output, or a tuple of them if f returns a list. Shared
    variables have the values that they have now, whenever the array is computed. Raises TypeError
    for an argument whose dtype or number of dimensions f would refuse, and ValueError for a
    function with updates or random streams, and for blocks that do not fit together.
    """
    what = "map_blocks"
    recipe.check(f, what)
    arrays = [arg for arg in args if isinstance(arg, da.Array)]
    if not arrays:
        raise TypeError(
            "map_blocks needs a Dask array among its arguments: dask.array.from_array(x, chunks=n) "
            "makes one of a numpy array."
        )
    f.check_arguments([_like_blocks(arg) for arg in args])
    ndim = max(array.ndim for array in arrays)
    drop, new = _axes("drop_axis", drop_axis, ndim), _plain(new_axis)
    axes: list[int | None] = [i for i in range(ndim) if i not in drop]
    for axis in sorted(new):
        axes.insert(axis, None)
    outputs = _tensor_outputs(f, what)
    for k, var in enumerate(outputs):
        _check_ndim(f, var, k, ndim, drop, new, len(axes))
    counts = _counts(arrays, ndim, drop)
    name = task_name(f.name)
    sent = _sent(f, name, what)
    several = not f.unpack_single
    all_chunks = [
        tuple(chunks) if chunks is not None else _chunks(f, k, args, counts, axes, drop)
        for k in range(len(outputs))
    ]
    options = {"drop_axis": list(drop), "new_axis": list(new) or None}
    mapped = da.map_blocks(
        remote.MapBlock(name, several), *args, **sent, **options, chunks=all_chunks[0],
        meta=_meta(len(axes), object if several else outputs[0].dtype),
    )  # fmt: skip
    if not several:
        return mapped
    return tuple(
        da.map_blocks(
            remote.Pick(task_name(f.name, "output"), k), mapped, chunks=sizes,
            meta=_meta(len(axes), var.dtype),
        )
        for k, (var, sizes) in enumerate(zip(outputs, all_chunks, strict=True))
    )  # fmt: skip


def map_bag(f: Function, *bags: Any) -> Any:
    """Return a Dask bag of what a function returns for each element of bags.

    f: a compiled function. bags: a Dask bag for each of its inputs, with the same partitions. Each
    call gets one element of each bag. Shared variables have the values that they have now. Raises
    TypeError for arguments that are not bags, and ValueError for a function with updates or random
    streams.
    """
    what = "map_bag"
    recipe.check(f, what)
    for bag in bags:
        if not isinstance(bag, db.Bag):
            raise TypeError(f"map_bag takes Dask bags; {bag!r:.80} is not one")
    if len(bags) != f.arity:
        raise TypeError(
            f"Wrong number of bags for {f.name or 'the function'}: got {len(bags)}, expected "
            f"{f.arity}, one for each input"
        )
    name = task_name(f.name)
    return db.map_partitions(remote.MapPartition(name), *bags, **_sent(f, name, what))


def delayed(f: Function) -> Callable[..., Any]:
    """Return a function that calls a compiled function later, as ``dask.delayed`` does.

    The result takes the arguments of f, Dask's delayed values among them, by position or name. It
    returns a delayed value; of a function that returns a list, one that can be unpacked and
    indexed. Shared variables have the values that they have at that call. Raises what
    ``map_blocks`` raises for f.
    """
    what = "delayed"
    recipe.check(f, what)

    def call(*args: Any, **kwargs: Any) -> Any:
        name = task_name(f.name)
        sent = _sent(f, name, what)
        key = f"{name}-{tokenize(sent['recipe'].key, _token(sent['values']), args, kwargs)}"
        count = None if f.unpack_single or f.construction.keys is not None else len(f.outputs)
        later = dask.delayed(remote.call_delayed, pure=True, nout=count)
        return later(sent["recipe"], sent["values"], args, kwargs, dask_key_name=key)

    return call


def _sent(f: Function, name: str, what: str) -> dict[str, Any]:
    """Return the arguments ``recipe`` and ``values`` of tasks, as nodes of the graph."""
    made, values = recipe.recipe_of(f, what), recipe.values_of(f)
    node = dask.delayed(made, name=f"{task_name(f.name, 'recipe')}-{made.key}", traverse=False)
    if values is None:
        return {"recipe": node, "values": None}
    key = f"{task_name(f.name, 'values')}-{values.token}"
    return {"recipe": node, "values": dask.delayed(values, name=key, traverse=False)}


def _token(node: Any) -> Any:
    return None if node is None else node.key


# --- arguments ------------------------------------------------------------------------------------


def _like_blocks(arg: Any) -> Any:
    """Return an array with the dtype and the dimensions of the blocks of an argument."""
    if not isinstance(arg, da.Array):
        return arg
    # no element is as good as many; one makes a dimension that is broadcast
    return np.zeros([1 if set(sizes) == {1} else 0 for sizes in arg.chunks], arg.dtype)


def _axes(name: str, axes: int | Iterable[int], ndim: int) -> tuple[int, ...]:
    """Return dimensions as numbers from 0; ValueError if there is no such dimension."""
    found = _plain(axes)
    for axis in found:
        if not -ndim <= axis < ndim:
            raise ValueError(f"{name} is {axis}; the arrays have {ndim} dimensions")
    return tuple(sorted({axis % ndim for axis in found}))


def _plain(axes: int | Iterable[int] | None) -> tuple[int, ...]:
    if axes is None:
        return ()
    return (axes,) if isinstance(axes, int) else tuple(axes)


def _tensor_outputs(f: Function, what: str) -> list[Any]:
    outputs: list[Any] = [out.variable for out in f.outputs]
    name = f.name or "The function"
    if f.construction.keys is not None:
        raise TypeError(f"{what}: {name} returns a dict; compile it with a list of outputs.")
    if not outputs:
        raise TypeError(f"{what}: {name} returns nothing; give it an output.")
    for var in outputs:
        if not hasattr(var.type, "broadcastable") or not hasattr(var.type, "numpy_dtype"):
            raise TypeError(
                f"{what}: {name} returns {var.type}, but blocks of a Dask array are tensors. Use "
                f"opwise.distributed.delayed.{provenance.created_at(var.made_at)}"
            )
    return outputs


def _check_ndim(
    f: Function, var: Any, k: int, ndim: int, drop: Sequence[int], new: Sequence[int], wanted: int
) -> None:
    if var.type.ndim == wanted:
        return
    changes = [f"drop_axis={list(drop)}"] if drop else []
    changes += [f"new_axis={list(new)}"] if new else []
    given = f" with {' and '.join(changes)}" if changes else ""
    option = "drop_axis" if var.type.ndim < wanted else "new_axis"
    raise ValueError(
        f"map_blocks: output {k} of {f.name or 'the function'} has {var.type.ndim} dimensions, but "
        f"blocks of {ndim} dimensions{given} give {wanted}. Say which with {option}=..., or use "
        f"opwise.distributed.delayed.{provenance.created_at(var.made_at)}"
    )


# --- blocks ---------------------------------------------------------------------------------------


def _meta(ndim: int, dtype: Any) -> Any:
    return np.empty((0,) * ndim, dtype)


def _counts(arrays: Sequence[Any], ndim: int, drop: Sequence[int]) -> list[int]:
    """Return the number of blocks along each dimension, 1 where blocks are joined."""
    counts = [1] * ndim
    for array in arrays:
        for axis, count in enumerate(array.numblocks, ndim - array.ndim):
            if count > 1 and counts[axis] not in (1, count) and axis not in drop:
                raise ValueError(
                    f"map_blocks: the arrays have {counts[axis]} and {count} blocks along "
                    f"dimension {axis}, which cannot be paired. Rechunk one of them like the other."
                )
            counts[axis] = max(counts[axis], count)
    return [1 if axis in drop else count for axis, count in enumerate(counts)]


def _chunks(
    f: Function,
    k: int,
    args: Sequence[Any],
    counts: Sequence[int],
    axes: Sequence[int | None],
    drop: Sequence[int],
) -> tuple[tuple[float, ...], ...]:
    """Return the lengths of the blocks of an output."""
    ndim = len(counts)

    def blocks(arg: Any) -> Callable[[tuple[int, ...]], tuple[float, ...]]:
        if not isinstance(arg, da.Array):
            shape = np.shape(arg)
            return lambda place: shape
        first = ndim - arg.ndim
        sizes = [
            (sum(lengths),) if axis in drop else lengths
            for axis, lengths in enumerate(arg.chunks, first)
        ]

        def shape_at(place: tuple[int, ...]) -> tuple[float, ...]:
            return tuple(
                lengths[place[axis] if len(lengths) > 1 else 0]
                for axis, lengths in enumerate(sizes, first)
            )

        return shape_at

    return blockshapes.chunks_of(
        blockshapes.shapes_of(f)[k], [blocks(arg) for arg in args], counts, axes,
        f"map_blocks: {f.name or 'the function'}",
    )  # fmt: skip
