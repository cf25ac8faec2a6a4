"""What Jupyter shows of compiled functions and of graphs. Imports what it needs when it is asked.

Profiles are shown by ``opwise.profiling.html.page.brief``.
"""

from __future__ import annotations

from typing import Any


def html(shown: Any) -> str:
    """Return a Function, a Variable, an Apply or a FunctionGraph as a piece of HTML.

    It has no scripts, loads nothing, and takes its colours from the page that it is part of.
    """
    from opwise.compile.executable import Function
    from opwise.notebook import functions, graphs

    return functions.html(shown) if isinstance(shown, Function) else graphs.html(shown)
