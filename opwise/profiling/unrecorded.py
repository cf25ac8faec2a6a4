"""Kinds of Ops read off their names, for profiles of versions that did not record ``kind``.

Nothing else in opwise tells Ops apart by name.
"""

from __future__ import annotations

import re

_PRODUCT_CLASS = re.compile(r"\.tensor\.(blas|dot)\.")
_PRODUCT = re.compile(r"(?i)(batched_?)?dot|gem[mv]|ger\b")


def is_product(op_class: str) -> bool:
    """Return whether the class of an Op, as Python prints it, is one of matrix products."""
    return bool(_PRODUCT_CLASS.search(op_class))


def names_product(op: str) -> bool:
    """Return whether the text of an Op of the user's is that of a matrix product."""
    return bool(_PRODUCT.match(op))


def is_fused(op: str) -> bool:
    """Return whether the text of an Op is that of a loop over several operations."""
    return "Composite{" in op or op.startswith(("MapReduce{", "Rowwise{"))
