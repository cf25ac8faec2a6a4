"""Front ends: how graphs of another library become opwise's, and run as its functions.

A library describes its graphs by a ``Frontend``: translations of its Ops, its types, and how an Op
without a translation runs. Nothing here knows a library; ``opwise.pytensor`` is the first user.
"""

from opwise.compile.report import FrontEndTimes
from opwise.frontends.compiled import compile_graph
from opwise.frontends.opaque import Opaque
from opwise.frontends.performed import Performed
from opwise.frontends.translation import Frontend, Performance, Translator, Untranslated

__all__ = [
    "FrontEndTimes",
    "Frontend",
    "Opaque",
    "Performance",
    "Performed",
    "Translator",
    "Untranslated",
    "compile_graph",
]
