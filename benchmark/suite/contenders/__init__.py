"""All contenders, in the order of the table. None of their libraries is imported here."""

from __future__ import annotations

from benchmark.contenders import profile_mode
from benchmark.suite.contenders.base import Contender
from benchmark.suite.contenders.in_jax import Jax
from benchmark.suite.contenders.in_numba import Numba
from benchmark.suite.contenders.in_numexpr import Numexpr
from benchmark.suite.contenders.in_numpy import Numpy
from benchmark.suite.contenders.in_torch import Torch, TorchCompile
from benchmark.suite.contenders.symbolic import Opwise, Pytensor

SUBJECT, PROFILED = "opwise", "opwise-profile"

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


def is_peer(name: str) -> bool:
    """Whether opwise is compared with it."""
    return name not in (SUBJECT, PROFILED)
