"""Functions of scipy.special that C text borrows: taken from scipy when a loop needs them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwise.scalar.borrowed import BORROWED

#: what Cython puts before the name of a function of several types
_FUSED = re.compile(r"^__pyx_fuse(_\d+)+")


def functions() -> Iterator[tuple[str, list[object], str]]:
    """Yield (name of the variable, capsules with functions of this name, the signature to take)."""
    from scipy.special import cython_special

    found: dict[str, list[object]] = {}
    for name, capsule in cython_special.__pyx_capi__.items():
        found.setdefault(_FUSED.sub("", name), []).append(capsule)
    for name, count in BORROWED.items():
        signature = f"double ({'double, ' * count}int __pyx_skip_dispatch)"
        yield f"ow_{name}", found.get(name.removeprefix("scipy_"), []), signature
