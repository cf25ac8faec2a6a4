"""numexpr, for what is an expression of arrays."""

from __future__ import annotations

import re

import numpy as np

from benchmark.suite.contenders.base import Contender


class Numexpr(Contender):
    def __init__(self, name):
        super().__init__(name, needs=("numexpr",))

    def declines(self, workload):
        return "" if workload.numexpr else "the program is not an expression of numexpr"

    def load(self, workload):
        import numexpr

        self.numexpr = numexpr
        self.expressions = workload.numexpr
        self.inputs = workload.data().inputs

    def build(self):
        # numexpr calls single precision by the name of Python's float.
        kinds = {np.dtype("float32"): float, np.dtype("float64"): np.float64}
        calls = []
        for text in self.expressions:
            used = [name for name in self.inputs if re.search(rf"\b{name}\b", text)]
            signature = [(name, kinds[self.inputs[name].dtype]) for name in used]
            expression = self.numexpr.NumExpr(text, signature)
            calls.append((expression, [self.inputs[name] for name in used]))
        return lambda: [expression(*arguments) for expression, arguments in calls]

    def state(self):
        return {}
