"""Compiled functions on a Dask cluster: mapped over collections, summed over data, profiled.

``map_blocks``, ``map_bag`` and ``delayed`` apply a function to Dask's collections; ``tree_sum`` and
``DataParallel`` add up what it returns for chunks of a data set; ``Profiler`` brings the profiles
of all workers back. Needs the extra ``dask``.
"""

try:
    import distributed as _distributed  # noqa: F401
except ImportError as _error:
    raise ImportError(
        f"opwise.distributed needs Dask ({_error}): install it by `pip install 'opwise[dask]'`, in "
        "a checkout by `pip install -e '.[dask]'`.",
        name=_error.name,
    ) from None

from opwise.distributed.clusters import cluster
from opwise.distributed.mapping import delayed, map_bag, map_blocks
from opwise.distributed.profiler import Profiler
from opwise.distributed.training import Chunks, DataParallel, load_chunks, tree_sum
from opwise.profiling.workers import Spread, Wait, WorkerProfile, WorkersProfile

__all__ = [
    "Chunks",
    "DataParallel",
    "Profiler",
    "Spread",
    "Wait",
    "WorkerProfile",
    "WorkersProfile",
    "cluster",
    "delayed",
    "load_chunks",
    "map_bag",
    "map_blocks",
    "tree_sum",
]
