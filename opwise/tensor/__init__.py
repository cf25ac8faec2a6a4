"""Tensors: their type, variables and operations; these are the names of ``theano.tensor``."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from opwise.graph.apply import Apply  # noqa: F401
from opwise.graph.op import Op  # noqa: F401
from opwise.graph.variable import Constant, Variable  # noqa: F401
from opwise.tensor import (  # noqa: F401  (modules; the last one registers)
    linalg,
    nnet,
    operators,
    printers,
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

if _TYPE_CHECKING:  # opwise.names finds the names of layers above, and those that only Theano has

    def __getattr__(name: str) -> _Any: ...
