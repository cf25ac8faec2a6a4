"""Operations on bits; on bool they are logical."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwise.scalar import dtypes as d
from opwise.scalar.spec import row


def _bits(name: str, cls: str, numpy: Callable[..., Any], operator: str) -> None:
    row(
        name, cls, 2, d.bitwise, numpy, f"{{x}} {operator} {{y}}", lambda F, x, y, z, g: (0, 0),
        compute=d.bits, commutative=True, associative=True, kinds="biu",
        doc=f"x {operator} y, bit by bit.",
    )  # fmt: skip


_bits("or_", "OR", np.bitwise_or, "|")
_bits("xor", "XOR", np.bitwise_xor, "^")
_bits("and_", "AND", np.bitwise_and, "&")
row(
    "invert", "Invert", 1, d.bitwise, np.invert, {"i": "~{x}", "u": "~{x}", "b": "!{x}"},
    lambda F, x, z, g: 0, kinds="biu", doc="The bits of x inverted; not x for bool.",
)  # fmt: skip
