"""The makers of kernels by Op class; modules of makers register theirs here."""

from __future__ import annotations

#: by Op class, the function from an Apply to an Implementation, or why there is none
makers: dict[type, object] = {}


def cuda_maker(*op_classes):
    """Register a maker for Op classes; subclasses use it too unless they have their own."""

    def register(maker):
        for cls in op_classes:
            makers[cls] = maker
        return maker

    return register
