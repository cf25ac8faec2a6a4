"""Arrays in all of numpy's memory layouts, and Python text that makes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: name -> Python text that gives {a}, a C-contiguous array, another layout
LAYOUTS = {
    "plain": "{a}",
    "fortran": "np.asfortranarray({a})",
    "transposed": "np.ascontiguousarray({a}.T).T",
    "reversed": "np.flip(np.flip({a}).copy())",
    "strided": "np.repeat({a}, 2, axis=-1)[..., ::2]",
    "rows apart": "np.repeat({a}, 2, axis=0)[::2]",
    "axes moved": "np.moveaxis(np.moveaxis({a}, 0, -1).copy(), -1, 0)",
    "part of a larger one": "np.pad({a}, 1)[tuple(slice(1, -1) for _ in {a}.shape)]",
    "read-only": "np.lib.stride_tricks.as_strided({a}, writeable=False)",
}
#: the layouts of an array without dimensions
_OF_NUMBERS = ("read-only",)


def laid_out(array: Array, layout: str) -> Array:
    """Return a copy of an array in a layout of ``LAYOUTS``; a 0-d array ignores most layouts."""
    if not array.ndim and layout not in _OF_NUMBERS:
        return array.copy()
    made: Array = eval(LAYOUTS[layout].format(a="a"), {"np": np, "a": array.copy()})
    return made


def array_text(array: Array, layout: str) -> str:
    """Return Python text for an array in a layout; it uses the names np, nan and inf."""
    flat = np.array2string(
        array.ravel(), separator=", ", threshold=array.size + 1, max_line_width=88,
        floatmode="unique", formatter={"bool": str},
    )  # fmt: skip
    text = f"np.array({flat}, {array.dtype.name!r})"
    if array.ndim != 1:
        text += f".reshape({array.shape})"
    return text if not array.ndim and layout not in _OF_NUMBERS else LAYOUTS[layout].format(a=text)
