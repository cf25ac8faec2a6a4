"""The legacy package: programs that ``import theano`` run on opwise unchanged.

One table, ``theano._aliases``, lists its packages and modules.
"""

import sys

from opwise import *  # noqa: F403
from opwise import __version__ as opwise_version  # noqa: F401
from opwise import config, gradient, scalar, tensor  # noqa: F401
from opwise.scalar.types import as_scalar  # noqa: F401
from opwise.tensor.subtensor import sparse_grad  # noqa: F401
from theano import _aliases
from theano._aliases import _asarray  # noqa: F401

#: the release of Theano whose language opwise compiles
__version__ = "1.0.5"
version = __version__

_aliases.install(sys.modules[__name__])

from theano.printing import pprint  # noqa: E402, F401  (install made these modules)
from theano.updates import OrderedUpdates  # noqa: E402, F401


def __getattr__(name):
    """Raise an AttributeError that names similar attributes, or says that opwise lacks this one."""
    raise AttributeError(
        _aliases.lacks(f"{__name__}.{name}", [n for n in globals() if not n.startswith("_")]),
        name=name,
        obj=sys.modules[__name__],
    )
