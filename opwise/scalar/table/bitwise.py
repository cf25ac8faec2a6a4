"""Operations on bits; on bool they are logical."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwise.scalar import dtypes as d
from opwise.scalar.spec import CText, row


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


def _shift(name: str, cls: str, numpy: Callable[..., Any], c: CText, doc: str) -> None:
    row(
        name, cls, 2, d.shifted, numpy, c, lambda F, x, y, z, g: (0, 0), kinds="iu",
        doc=f"{doc} Every bit leaves x if y is negative, or as many as x has bits, or more.",
    )  # fmt: skip


# a negative number of places is a large one without a sign, as it is for numpy
_WIDE = "unsigned long long"
_FITS, _BITS = f"({_WIDE})({{y}}) < 8 * sizeof({{T}})", "(8 * sizeof({T}) - 1)"
_shift(
    "left_shift", "LeftShift", np.left_shift,
    f"({_FITS} ? ({{T}})(({_WIDE})({{x}}) << ({{y}})) : 0)",
    "x with its bits moved y places to the left: x * 2**y, without bits that x has not.",
)  # fmt: skip
_shift(
    "right_shift", "RightShift", np.right_shift,
    {"i": f"({{x}}) >> ({_FITS} ? ({_WIDE})({{y}}) : {_BITS})",
     "u": f"({_FITS} ? ({{T}})(({{x}}) >> ({{y}})) : 0)"},
    "x with its bits moved y places to the right: x / 2**y, rounded down.",
)  # fmt: skip
