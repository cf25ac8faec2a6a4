"""PyTensor on opwise: ``import opwise.pytensor`` adds modes and linkers to PyTensor.

``pytensor.function([x], y, mode="OPWISE")``; also OPWISE_FAST_COMPILE, OPWISE_DEBUG and
PROFILE_MODE. The package needs the extra: ``pip install 'opwise[pytensor]'``.
"""

try:
    import pytensor as _pytensor  # noqa: F401
except ImportError as error:
    raise ImportError(
        "opwise.pytensor needs PyTensor, which is not installed: pip install 'opwise[pytensor]' "
        "(in Python 3.12 or later)"
    ) from error

from opwise.pytensor.linker import OpwiseLinker, own_function, performed
from opwise.pytensor.modes import ProfilingMode, register
from opwise.pytensor.samplers import nutpie_model

__all__ = ["OpwiseLinker", "ProfilingMode", "nutpie_model", "own_function", "performed"]

register()
