"""Clusters and clients: a LocalCluster for opwise, the client in use, names of tasks."""

from __future__ import annotations

import os
import re
from typing import Any

import distributed

#: a word that Dask takes for a hash, and leaves out of the name of a task
_LIKE_A_HASH = re.compile(r"[a-f].{7}")


def cluster(workers: int, threads: int = 1, **options: Any) -> Any:
    """Return a ``distributed.LocalCluster`` of worker processes on this computer.

    workers: how many processes. threads: how many threads one kernel, and BLAS, use in each of
    them; each process runs one task at a time. options: passed to LocalCluster; the dashboard is at
    ``dashboard_link`` of the result, on any free port, if Bokeh is installed. Programs that call
    this need the guard ``if __name__ == "__main__":``, since workers import the program. Raises
    ValueError unless both numbers are at least 1.
    """
    for name, value in (("workers", workers), ("threads", threads)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} is {value!r}; it must be a whole number of at least 1")
    environment = dict(options.pop("env", None) or {})
    flags = environment.get("OPWISE_FLAGS", os.environ.get("OPWISE_FLAGS", ""))
    environment["OPWISE_FLAGS"] = ",".join(filter(None, [flags, f"threads={threads}"]))
    # any free port: a second cluster on this computer would find the usual one taken
    settings = {"dashboard_address": "127.0.0.1:0", "threads_per_worker": 1, **options}
    return distributed.LocalCluster(n_workers=workers, env=environment, **settings)


def client_for(client: Any, what: str) -> Any:
    """Return a client, the one in use if ``client`` is None.

    what: names the caller in the error. Raises ValueError if there is none, or if it is
    asynchronous, and TypeError for any other object.
    """
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError:
            raise ValueError(
                f"{what} needs a Dask client, and there is none. Make one first: "
                "client = distributed.Client(opwise.distributed.cluster(2))."
            ) from None
    if not isinstance(client, distributed.Client):
        raise TypeError(f"client is {client!r}; it must be a distributed.Client")
    if client.asynchronous:
        raise ValueError(
            f"{what} waits for results, which an asynchronous client cannot: make the client "
            "without asynchronous=True, outside of coroutines."
        )
    return client


def task_name(name: str | None, what: str = "") -> str:
    """Return the name of the tasks of a function, which keys begin with and dashboards show.

    name: that of the function, or file:line. It is ``opwise-NAME``, but ``opwise_NAME`` if Dask
    would cut it: at a hyphen before a word that has other characters than letters, or looks like a
    hash. what: appended.
    """
    name = os.path.basename(name or "function")
    words = [word for word in re.split(r"[^\w.:]+", name) if word] or ["function"]
    if all(word.isalpha() and not _LIKE_A_HASH.fullmatch(word) for word in words):
        return "-".join(["opwise", *words, *([what] if what else [])])
    return "_".join(["opwise", *words, *([what] if what else [])])
