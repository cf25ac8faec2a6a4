"""All contenders, in the order of the table. None of their libraries is imported here."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

from benchmark.contenders import profile_mode
from benchmark.suite.contenders.base import Contender
from benchmark.suite.contenders.in_jax import Jax
from benchmark.suite.contenders.in_numba import Numba
from benchmark.suite.contenders.in_numexpr import Numexpr
from benchmark.suite.contenders.in_numpy import Numpy
from benchmark.suite.contenders.in_torch import Torch, TorchCompile
from benchmark.suite.contenders.symbolic import Opwise, Pytensor, Symbolic

SUBJECT, PROFILED, BEFORE = "opwise", "opwise-profile", "opwise-before"

CONTENDERS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        Opwise(SUBJECT, "FAST_RUN"),
        Opwise(PROFILED, profile_mode),
        Pytensor("pytensor-numba", "NUMBA", needs=("numba",)),
        Pytensor("pytensor-cvm", "CVM"),
        Jax("jax"),
        Numpy("numpy"),
        Numexpr("numexpr"),
        Numba("numba"),
        Torch("torch"),
        TorchCompile("torch-compile"),
    )
}


class Before(Opwise):
    """The opwise of another checkout, with the programs as that checkout has them."""

    worker = SUBJECT

    def __init__(self, checkout: Path):
        super().__init__(BEFORE, "FAST_RUN")
        self.checkout = checkout

    def environment(self, cache):
        return Symbolic.environment(self, cache)  # its flags may be others

    def declines(self, workload):
        return "" if workload.name in self._workloads else "that checkout has no such workload"

    @functools.cached_property
    def _workloads(self) -> list[str]:
        code = "from benchmark.suite.workloads import WORKLOADS; print(*WORKLOADS)"
        command = [sys.executable, "-c", code]
        done = subprocess.run(
            command, cwd=self.checkout, capture_output=True, text=True, check=True
        )
        return done.stdout.split()


def is_peer(name: str) -> bool:
    """Whether opwise is compared with it as with another library."""
    return name not in (SUBJECT, PROFILED, BEFORE)
