"""The legacy package: programs that ``import theano`` run on opwise unchanged.

``theano._aliases`` lists where its names come from, ``theano._record`` which names Theano had.
"""

import sys

from opwise import __version__ as opwise_version  # noqa: F401
from theano import _homes, _modules
from theano._release import version as __version__  # noqa: F401

_modules.install(sys.modules[__name__])
_homes.adopt()
