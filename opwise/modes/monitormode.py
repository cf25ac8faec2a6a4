"""MonitorMode: calls functions of the user's before and after every Apply."""

from __future__ import annotations

import numpy as np

from opwise.graph.printing import debugprint
from opwise.linkers.base import OpWiseCLinker
from opwise.linkers.wrap import WrapLinker
from opwise.modes.mode import Mode, find_linker


class MonitorMode(Mode):
    """Runs ``pre_func(i, node, thunk)`` and ``post_func(i, node, thunk)`` around every Apply.

    thunk.inputs and thunk.outputs are lists of one-element lists that hold the values.
    """

    def __init__(self, pre_func=None, post_func=None, optimizer="default", linker=None):
        self.pre_func = pre_func
        self.post_func = post_func
        inner = OpWiseCLinker() if linker is None else find_linker(linker)
        super().__init__(WrapLinker([inner], self._around), optimizer)
        self._inner = inner

    def _around(self, i, node, thunk):
        if self.pre_func is not None:
            self.pre_func(i, node, thunk)
        thunk()
        if self.post_func is not None:
            self.post_func(i, node, thunk)

    def __getstate__(self):
        return {"optimizer": self.provided_optimizer, "linker": self._inner,
                "pre_func": self.pre_func, "post_func": self.post_func}  # fmt: skip

    def __setstate__(self, state):
        self.__init__(**state)


def detect_nan(i, node, thunk):
    """A ``post_func`` that prints every Apply of which an output holds NaN."""
    for storage in thunk.outputs:
        value = storage[0]
        if isinstance(value, np.ndarray) and value.dtype.kind in "fc" and np.isnan(value).any():
            print("*** NaN detected ***")
            debugprint(node)
            print(f"Inputs : {[c[0] for c in thunk.inputs]}")
            print(f"Outputs: {[c[0] for c in thunk.outputs]}")
            return
