"""numba, for recurrences of numbers: loops of Python, compiled."""

from __future__ import annotations

from benchmark.suite.contenders.base import Contender


class Numba(Contender):
    def __init__(self, name):
        super().__init__(name, needs=("numba",))

    def environment(self, cache):
        return {"NUMBA_CACHE_DIR": str(cache / "numba")}

    def declines(self, workload):
        return "" if workload.loop else "the program is not a loop over numbers"

    def load(self, workload):
        import numba

        self.compiler = numba.njit(cache=True)
        self.workload = workload
        self.inputs = workload.data().inputs

    def build(self):
        return self.workload.bind_loop(self.compiler(self.workload.loop), self.inputs)

    def outputs(self, returned):
        return super().outputs(returned if isinstance(returned, tuple) else [returned])

    def state(self):
        return {}
