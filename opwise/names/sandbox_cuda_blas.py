"""``theano.sandbox.cuda.blas``: correlations, whose border has also the older name ``pad``."""

from __future__ import annotations

from typing import Any

from opwise.tensor.blas import batched_dot  # noqa: F401
from opwise.tensor.conv import older


def _with_pad(cls: type[older.BaseCorrMM], n: int) -> type[older.BaseCorrMM]:
    """Return an Op of correlation with the arguments that it had for GPUs."""

    def __init__(
        self: Any, border_mode: Any = "valid", subsample: Any = (1,) * n, pad: Any = (0,) * n
    ) -> None:
        if pad not in (0, (0,) * n):
            if border_mode != "valid":
                raise ValueError("border_mode must be 'valid' if pad is given")
            border_mode = pad
        cls.__init__(self, border_mode, subsample)

    namespace = {"__init__": __init__, "__module__": __name__, "__doc__": cls.__doc__}
    return type(f"Gpu{cls.__name__}", (cls,), namespace)


GpuCorrMM = _with_pad(older.CorrMM, 2)
GpuCorrMM_gradWeights = _with_pad(older.CorrMM_gradWeights, 2)
GpuCorrMM_gradInputs = _with_pad(older.CorrMM_gradInputs, 2)
GpuCorr3dMM = _with_pad(older.Corr3dMM, 3)
GpuCorr3dMM_gradWeights = _with_pad(older.Corr3dMM_gradWeights, 3)
GpuCorr3dMM_gradInputs = _with_pad(older.Corr3dMM_gradInputs, 3)
