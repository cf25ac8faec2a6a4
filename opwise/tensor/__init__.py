"""Tensors: their type, variables and operations; these are the names of ``theano.tensor``."""

from __future__ import annotations

import importlib as _importlib
import sys as _sys

from opwise.graph.apply import Apply  # noqa: F401
from opwise.graph.op import Op  # noqa: F401
from opwise.graph.variable import Constant, Variable  # noqa: F401
from opwise.tensor import (  # noqa: F401  (modules; the last one registers)
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
from opwise.tensor.operators import *  # noqa: F403
from opwise.tensor.products import *  # noqa: F403
from opwise.tensor.reduce import *  # noqa: F403
from opwise.tensor.selection import *  # noqa: F403
from opwise.tensor.shape import *  # noqa: F403
from opwise.tensor.slices import *  # noqa: F403
from opwise.tensor.sort import *  # noqa: F403
from opwise.tensor.subtensor import *  # noqa: F403
from opwise.tensor.transfer import *  # noqa: F403

#: names of ``theano.tensor`` for things above this layer, and their modules
_ABOVE = {
    **dict.fromkeys(("SharedVariable", "shared"), "opwise.compile.shared"),
    **dict.fromkeys(
        ("Lop", "Rop", "consider_constant", "grad", "numeric_grad", "subgraph_grad", "verify_grad"),
        "opwise.gradient",
    ),
}


def __getattr__(name: str) -> object:
    """Find a name of a layer above; raise AttributeError that says where another name is."""
    if name in _ABOVE:
        found = getattr(_importlib.import_module(_ABOVE[name]), name)
        globals()[name] = found
        return found
    raise elsewhere.no_attribute(_sys.modules[__name__], name)


def __dir__() -> list[str]:
    return [*globals(), *_ABOVE]
