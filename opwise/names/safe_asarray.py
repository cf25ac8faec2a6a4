"""``theano.misc.safe_asarray``."""

import numpy as np


def _asarray(a, dtype, order=None):
    """Return ``a`` as an array of ``dtype``, which may be 'floatX'; copies only if necessary."""
    from opwise.config import config

    return np.asarray(a, dtype=config.floatX if str(dtype) == "floatX" else dtype, order=order)
