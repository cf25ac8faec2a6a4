"""numpy functions compiled as they are: ``jit``, and functions of functions.

``values`` has the traced arrays and numbers with which a function is run once, the modules
``ufuncs``, ``indexing``, ``shaping``, ``reducing`` and ``linear`` what numpy's functions do with
them, ``jitted`` the signatures and the call path.
"""

from __future__ import annotations

from opwise.tracing import (  # noqa: F401  (they register)
    linear,
    namespace,
    reducing,
    shaping,
    ufuncs,
)
from opwise.tracing.jitted import Jit, Signature, jit
from opwise.tracing.transforms import grad, hessian, jacobian, jvp, value_and_grad, vjp, vmap

__all__ = [
    "Jit", "Signature", "grad", "hessian", "jacobian", "jit", "jvp", "value_and_grad", "vjp",
    "vmap",
]  # fmt: skip
