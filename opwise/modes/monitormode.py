"""MonitorMode: calls the user's functions before and after every Apply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.printing import debugprint
from opwise.linkers.base import OpWiseCLinker
from opwise.linkers.errors import steps_running
from opwise.linkers.vm import Thunk
from opwise.linkers.wrap import WrapLinker
from opwise.modes.mode import Mode, find_linker

#: called as (i, node, thunk): the index of the Apply, the Apply, and what runs it
Monitor = Callable[[int, Apply, Thunk], object]


class MonitorMode(Mode):
    """Runs ``pre_func(i, node, thunk)`` and ``post_func(i, node, thunk)`` around every Apply.

    thunk.inputs and thunk.outputs are lists of one-element lists that hold the values. The Applys
    in a loop are monitored too; ``opwise.linkers.errors.steps_running()`` returns which step it is.
    """

    def __init__(
        self, pre_func: Monitor | None = None, post_func: Monitor | None = None,
        optimizer: Any = "default", linker: Any = None,
    ) -> None:  # fmt: skip
        self.pre_func = pre_func
        self.post_func = post_func
        inner = OpWiseCLinker() if linker is None else find_linker(linker)
        super().__init__(WrapLinker([inner], self.eval), optimizer)
        self._inner = inner

    def eval(self, i: int, node: Apply, thunk: Thunk) -> None:
        """Run an Apply between the two functions."""
        if self.pre_func is not None:
            self.pre_func(i, node, thunk)
        thunk()
        if self.post_func is not None:
            self.post_func(i, node, thunk)

    def __getstate__(self) -> dict[str, Any]:
        return {"optimizer": self.provided_optimizer, "linker": self._inner,
                "pre_func": self.pre_func, "post_func": self.post_func}  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        MonitorMode.__init__(self, **state)


def detect_nan(i: int, node: Apply, thunk: Thunk) -> None:
    """A ``post_func`` that prints each Apply that has NaN in an output."""
    for storage in thunk.outputs:
        value = storage[0]
        if isinstance(value, np.ndarray) and value.dtype.kind in "fc" and np.isnan(value).any():
            print("*** NaN detected ***")
            debugprint(node)
            for step in steps_running():
                print(f"It happened in {step}.")
            print(f"Inputs : {[c[0] for c in thunk.inputs]}")
            print(f"Outputs: {[c[0] for c in thunk.outputs]}")
            return
