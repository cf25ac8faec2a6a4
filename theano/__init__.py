"""Theano's name for opwise: programs that ``import theano`` run on it unchanged.

The packages and modules below ``theano`` are given by one table, ``theano._aliases``.
"""

import sys

from opwise import *  # noqa: F403
from opwise import __version__ as opwise_version  # noqa: F401
from opwise import config, gradient, scalar, tensor  # noqa: F401
from opwise.scalar.types import as_scalar  # noqa: F401
from theano import _aliases
from theano._aliases import _asarray  # noqa: F401

#: the release whose language this is
__version__ = "1.0.5"
version = __version__

_aliases.install(sys.modules[__name__])

from theano.printing import pprint  # noqa: E402, F401  (a module that was just made)
from theano.updates import OrderedUpdates  # noqa: E402, F401


def __getattr__(name):
    """Say what is missing, and where the list is."""
    raise AttributeError(
        _aliases.lacks(f"{__name__}.{name}", [n for n in globals() if not n.startswith("_")]),
        name=name,
        obj=sys.modules[__name__],
    )
