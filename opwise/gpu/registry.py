"""The makers of kernels by Op class; modules of makers register theirs here."""

from __future__ import annotations

from collections.abc import Callable

#: by Op class, the function from an Apply to an Implementation, or why there is none
makers: dict[type, Callable] = {}
#: by maker, the types of variables that it knows beside tensors; these are the host's
beside: dict[Callable, tuple[type, ...]] = {}


def cuda_maker(*op_classes, types=()):
    """Register a maker for Op classes; subclasses use it too unless they have their own.

    types: those of variables that it knows beside tensors.
    """

    def register(maker):
        for cls in op_classes:
            makers[cls] = maker
        if types:
            beside[maker] = tuple(types)
        return maker

    return register
