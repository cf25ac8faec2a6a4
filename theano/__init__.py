"""The package for old programs: those that ``import theano`` run on opwise unchanged.

It has the names of opwise, and its own release. ``opwise.names`` lists where names come from.
"""

from opwise import __version__ as opwise_version  # noqa: F401
from opwise.names import front as _front
from opwise.names import homes as _homes
from opwise.names.release import version as __version__  # noqa: F401

_front.install("theano")
_homes.adopt()
