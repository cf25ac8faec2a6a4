"""``pfunc``, the function that ``function`` calls in Theano."""

from __future__ import annotations

from typing import Any

from opwise.compile.executable import Function
from opwise.compile.function import function


def pfunc(params: Any, *args: Any, **options: Any) -> Function:
    """Compile a function: ``opwise.function``, whose first argument is named ``params`` here."""
    return function(params, *args, **options)
