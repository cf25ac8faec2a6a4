"""Data-parallel sums and gradient steps, with the same bits on any number of workers.

Data are cut into chunks that do not depend on the workers. Results of chunks are added in pairs, in
a fixed binary tree. Values of shared variables travel with each sum.
"""

from __future__ import annotations

import itertools
import math
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed

from opwise.compile.construct import Pairs
from opwise.compile.executable import Function
from opwise.compile.function import function as compile_function
from opwise.compile.shared import SharedVariable
from opwise.distributed import recipe, remote
from opwise.distributed.clusters import client_for, task_name
from opwise.gradient import grad
from opwise.graph import provenance
from opwise.graph.variable import Variable

#: how many results one task adds up, a power of 2: as in a tree of pairs, with fewer tasks
_TOGETHER = 8
#: from the gradients to (shared variable, new value) pairs
Rule = Callable[[list[Any]], Pairs]


class Chunks(Sequence[Any]):
    """Chunks of a data set, which the workers of a cluster keep; made by ``load_chunks``.

    ``len(chunks)`` is their number, ``chunks[2:5]`` are some of them.
    """

    def __init__(self, client: Any, futures: Sequence[Any]) -> None:
        self.client = client
        self.futures = list(futures)

    def __len__(self) -> int:
        return len(self.futures)

    def __getitem__(self, item: Any) -> Chunks:
        """Return a chunk, or several, as Chunks."""
        found = self.futures[item]
        return Chunks(self.client, found if isinstance(item, slice) else [found])

    def __iter__(self) -> Iterator[Chunks]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return f"<Chunks: {len(self)}>"


def load_chunks(arrays: Sequence[Any], rows: int | None = None, client: Any = None) -> Chunks:
    """Cut arrays into chunks of rows, send these to the workers, and return them.

    arrays: an array for each input of a function, numpy's or Dask's, of equal length along the
    first dimension; or delayed values, of which each gives the list of arrays of one chunk. rows:
    how many rows a chunk has, the last one maybe fewer (default: the blocks of the first Dask
    array). client: the Dask client (default: the one in use).

    Chunks of numpy arrays pass through the scheduler, which keeps a copy, so that none is lost with
    a worker. Read larger data on the workers: as Dask arrays or delayed values. Raises TypeError
    and ValueError for arrays that do not fit together.
    """
    client = client_for(client, "load_chunks")
    arrays = list(arrays)
    if not arrays:
        raise ValueError("load_chunks needs at least one array")
    if all(isinstance(a, Delayed) for a in arrays):
        if rows is not None:
            raise ValueError("rows is given, but delayed values are chunks already: leave it out")
        return Chunks(client, client.compute(arrays))
    lengths = {_length(a) for a in arrays}
    if len(lengths) > 1:
        raise ValueError(
            f"The arrays have {' and '.join(map(str, sorted(lengths)))} rows, but each row of one "
            "belongs to a row of the others"
        )
    if any(isinstance(a, da.Array) for a in arrays):
        return Chunks(client, client.compute(_delayed_chunks(arrays, rows)))
    if rows is None:
        raise ValueError("rows is missing: say how many rows of numpy arrays make a chunk")
    return Chunks(client, _send(client, arrays, _starts(lengths.pop(), rows), rows))


def _length(array: Any) -> int:
    shape = array.shape if isinstance(array, da.Array) else np.shape(array)
    if not shape:
        raise TypeError(f"{array!r:.80} has no rows: each item of arrays is an array of rows")
    if math.isnan(shape[0]):
        raise ValueError(
            "The number of rows of a Dask array is not known: call its method compute_chunk_sizes"
        )
    return int(shape[0])


def _starts(length: int, rows: int) -> range:
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise ValueError(f"rows is {rows!r}; it must be a whole number of at least 1")
    if not length:
        raise ValueError("The arrays have no rows")
    return range(0, length, rows)


def _delayed_chunks(arrays: Sequence[Any], rows: int | None) -> list[Any]:
    """Return the chunks of arrays of which some are Dask's, as delayed lists."""
    first = next(a for a in arrays if isinstance(a, da.Array))
    lengths = first.chunks[0]
    if rows is not None:
        starts = _starts(first.shape[0], rows)
        lengths = tuple(min(rows, first.shape[0] - start) for start in starts)
    blocks = []
    for array in arrays:
        found = array if isinstance(array, da.Array) else da.from_array(np.asarray(array))
        whole = dict.fromkeys(range(1, found.ndim), -1)
        blocks.append(found.rechunk({0: lengths, **whole}).to_delayed().ravel())
    keep = dask.delayed(remote.keep, pure=True)
    return [
        keep(list(parts), dask_key_name=f"opwise-chunk-0{uuid.uuid4().hex}")
        for parts in zip(*blocks, strict=True)
    ]


def _send(client: Any, arrays: Sequence[Any], starts: range, rows: int) -> list[Any]:
    """Send chunks of numpy arrays to the workers, neighbours to one worker; return the futures."""
    arrays = [np.asarray(a) for a in arrays]
    workers = list(client.scheduler_info(n_workers=-1)["workers"])
    futures = []
    with _large_tasks():
        for k, start in enumerate(starts):
            place = {"workers": [workers[k * len(workers) // len(starts)]]} if workers else {}
            futures.append(
                client.submit(
                    remote.keep, [a[start : start + rows] for a in arrays],
                    key=f"opwise-chunk-0{uuid.uuid4().hex}", allow_other_workers=bool(workers),
                    **place,
                )
            )  # fmt: skip
    return futures


def _large_tasks() -> Any:
    """Return a context manager: within it, Dask does not warn of large data in tasks.

    Data are part of tasks on purpose: Dask then has them again when it has lost a worker.
    """
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1PB"})


# --- sums -----------------------------------------------------------------------------------------


def tree_sum(f: Function, chunks: Chunks) -> list[np.ndarray]:
    """Return the sums of what a function returns over chunks.

    f: a compiled function that returns tensors, of shapes that do not depend on the number of rows:
    a cost and its gradients, for example. It gets the arrays of a chunk as arguments. Shared
    variables have the values that they have now.

    The result is a list with an array for each output of f. The results of neighbouring chunks are
    added in pairs, then these sums, and so on: the bits depend on the chunks, not on the workers.
    Raises what ``map_blocks`` raises for f, and what f raises.
    """
    return _Sum(f, "tree_sum").of(chunks)


class _Sum:
    """The sums of what a function returns over chunks."""

    def __init__(self, f: Function, what: str) -> None:
        self.f = f
        self.what = what
        recipe.check(f, what)
        if f.construction.keys is not None or not f.outputs:
            raise TypeError(f"{what} takes a function that returns a tensor or a list of tensors")
        for out in f.outputs:
            _check_summand(out.variable, what)

    def of(self, chunks: Chunks) -> list[np.ndarray]:
        """Return the sums over chunks."""
        if not isinstance(chunks, Chunks):
            raise TypeError(f"chunks is {chunks!r:.80}; make it by load_chunks")
        if not len(chunks):
            raise ValueError(f"{self.what} needs at least one chunk")
        client = client_for(chunks.client, self.what)
        name = self.f.name
        # a new token each time: no worker can take what it computed for other values
        token = f"0{uuid.uuid4().hex}"
        made, values = recipe.recipe_of(self.f, self.what), recipe.values_of(self.f, token)
        kept: Any = values
        with _large_tasks():
            function = _sent(self.f, made, client)
            if values is not None:
                key = f"{task_name(name, 'values')}-{token}"
                kept = client.submit(remote.given, values, key=key)
        n = len(chunks)
        level = client.map(
            remote.call_chunk, [function] * n, [kept] * n, chunks.futures,
            key=[f"{task_name(name)}-{token}-{k}" for k in range(n)],
        )  # fmt: skip
        for height in itertools.count():
            if len(level) == 1:
                break
            groups = [level[k : k + _TOGETHER] for k in range(0, len(level), _TOGETHER)]
            keys = [f"{task_name(name, 'sum')}-{token}-{height}-{k}" for k in range(len(groups))]
            level = [
                client.submit(remote.add, *group, key=key)
                for group, key in zip(groups, keys, strict=True)
            ]
        return [remote.aligned(np.asarray(value)) for value in level[0].result()]


#: {function: (client, future of its recipe)}: workers keep the recipe for the next sum
_recipes: weakref.WeakKeyDictionary[Function, tuple[Any, Any]] = weakref.WeakKeyDictionary()


def _sent(f: Function, made: recipe.Recipe, client: Any) -> Any:
    """Return the future of a function's recipe, sent now if the cluster does not have it."""
    key = f"{task_name(f.name, 'recipe')}-{made.key}"
    owner, future = _recipes.get(f, (None, None))
    is_there = owner is client and future.key == key and future.status in ("pending", "finished")
    if not is_there:
        future = client.submit(remote.given, made, key=key)
        _recipes[f] = client, future
    return future


def _check_summand(var: Any, what: str) -> None:
    """Raise TypeError unless the values of a variable can be added."""
    dtype = getattr(var.type, "dtype", None)
    if not hasattr(var.type, "numpy_dtype"):
        raise TypeError(
            f"{what} adds tensors, but the function returns {var.type}."
            f"{provenance.created_at(var.made_at)}"
        )
    if dtype == "bool":
        raise TypeError(
            f"{what} adds what the function returns, and sums of booleans are booleans: return "
            f"T.cast(..., 'int64').{provenance.created_at(var.made_at)}"
        )


# --- gradient steps -------------------------------------------------------------------------------


class DataParallel:
    """Gradient steps whose gradients are computed by all workers of a cluster.

    inputs: the variables that a chunk has arrays for. cost: a scalar, the sum over the rows of a
    chunk, or with mean=True their mean. wrt: the shared variables to differentiate with respect to.
    updates: a function from the list of gradients over all rows to (shared variable, new value)
    pairs. mean: cost and gradients are means over rows: chunks count by their rows, which are the
    first dimension of the first input. mode: of the functions (default: the flag mode). name: of
    the tasks. ::

        step = DataParallel([x, y], cost, [w], lambda g: [(w, w - 0.1 * g[0])], name="train")
        chunks = load_chunks([rows, labels], 1000)
        for _ in range(100):
            value = step(chunks)

    The shared variables stay in this process; each step sends their values along. Workers compute
    the cost and its gradients for each chunk and add them as ``tree_sum`` does; then this process
    applies the updates. A step gives the same bits on any number of workers. A step that fails
    changes nothing. Raises what ``opwise.grad`` and ``opwise.function`` raise for the graph, and
    ValueError for one with random streams.
    """

    def __init__(
        self,
        inputs: Sequence[Any],
        cost: Any,
        wrt: Sequence[SharedVariable],
        updates: Rule,
        *,
        mean: bool = False,
        mode: Any = None,
        name: str = "train",
    ) -> None:
        _check_parameters(wrt)
        self.mean = mean
        gradients = grad(cost, list(wrt))
        outputs = [cost, *gradients]
        if mean:
            rows = _rows_of(inputs)
            outputs = [*((out * rows).astype(out.dtype) for out in outputs), rows]
        #: computes the cost and the gradients of a chunk, and with ``mean`` its number of rows
        self.gradients = compile_function(list(inputs), outputs, mode=mode, name=name)
        totals = [g.type(f"gradient of {p}") for g, p in zip(gradients, wrt, strict=True)]
        #: applies the updates, for the gradients over all rows
        self.apply = compile_function(
            totals, [], updates=updates(list(totals)), mode=mode, name=f"{name}_update",
            on_unused_input="ignore",
        )  # fmt: skip
        self._sum = _Sum(self.gradients, "DataParallel")

    def totals(self, chunks: Chunks) -> list[np.ndarray]:
        """Return the cost and the gradients over all rows of chunks; nothing is updated."""
        found = self._sum.of(chunks)
        if not self.mean:
            return found
        rows = found.pop()
        return [np.asarray(value / rows, value.dtype) for value in found]

    def __call__(self, chunks: Chunks) -> np.ndarray:
        """Apply the updates for the gradients over chunks; return the cost before."""
        cost, *gradients = self.totals(chunks)
        self.apply(*gradients)
        return cost


def _check_parameters(wrt: Any) -> None:
    if not isinstance(wrt, list | tuple) or not wrt:
        raise TypeError(f"wrt is {wrt!r}; it must be a list of shared variables")
    for var in wrt:
        if not isinstance(var, SharedVariable):
            raise TypeError(
                f"wrt has {var!r}, which is not a shared variable: updates could not change it"
            )


def _rows_of(inputs: Sequence[Any]) -> Any:
    """Return the number of rows of a chunk as a variable."""
    first: Any = getattr(inputs[0], "variable", inputs[0]) if len(inputs) else None
    if not isinstance(first, Variable) or not getattr(first.type, "ndim", 0):
        raise TypeError(
            "mean=True counts the rows of the first input, which must be a tensor of at least one "
            f"dimension, not {first}"
        )
    rows: Any = first
    return rows.shape[0]
