"""Tensors: their type, variables and operations; these are the names of ``theano.tensor``."""

from __future__ import annotations

import sys as _sys

from opwise.tensor import (  # noqa: F401  (modules; the last two attach and register)
    elsewhere,
    linalg,
    nnet,
    operators,
    printing,
)
from opwise.tensor.advanced_subtensor import *  # noqa: F403
from opwise.tensor.assertion import *  # noqa: F403
from opwise.tensor.blas import *  # noqa: F403
from opwise.tensor.convert import *  # noqa: F403
from opwise.tensor.creation import *  # noqa: F403
from opwise.tensor.diagonal import *  # noqa: F403
from opwise.tensor.dot import *  # noqa: F403
from opwise.tensor.extra_ops import *  # noqa: F403
from opwise.tensor.functions import *  # noqa: F403
from opwise.tensor.io import *  # noqa: F403
from opwise.tensor.join import *  # noqa: F403
from opwise.tensor.knownvalues import *  # noqa: F403
from opwise.tensor.products import *  # noqa: F403
from opwise.tensor.reduce import *  # noqa: F403
from opwise.tensor.selection import *  # noqa: F403
from opwise.tensor.shape import *  # noqa: F403
from opwise.tensor.slices import *  # noqa: F403
from opwise.tensor.sort import *  # noqa: F403
from opwise.tensor.subtensor import *  # noqa: F403
from opwise.tensor.transfer import *  # noqa: F403


def __getattr__(name: str) -> object:
    """Raise AttributeError that says where a name is, if it is elsewhere."""
    raise elsewhere.no_attribute(_sys.modules[__name__], name)
