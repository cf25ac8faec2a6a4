"""Activation functions and other expressions of neural networks; and the names of the Ops' modules.

Softmax and cross entropies are in the modules of those names, sigmoids in ``sigm``.
"""

from __future__ import annotations

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.scalar.op import CLASSES, OPS
from opwise.scalar.types import Scalar
from opwise.tensor.blas import batched_dot
from opwise.tensor.creation import arange
from opwise.tensor.dot import dot, tensordot
from opwise.tensor.elemwise import cast, dimshuffle, elemwise
from opwise.tensor.extra_ops import Unique
from opwise.tensor.join import concatenate
from opwise.tensor.nnet import crossentropy
from opwise.tensor.nnet import softmax as softmax_module
from opwise.tensor.nnet.crossentropy import *  # noqa: F403
from opwise.tensor.nnet.sigm import sigmoid, softplus
from opwise.tensor.nnet.softmax import *  # noqa: F403
from opwise.tensor.nnet.softmax import softmax
