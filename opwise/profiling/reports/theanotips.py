"""The tips that end Theano's profile: what might make the program faster, read off its profile.

``opwise.tuning`` measures its advice; these tips are guesses.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from opwise.profiling import aggregate
from opwise.profiling.model import ApplyProfile, ArrayProfile, ProfileData
from opwise.profiling.reports.wording import short_path

#: there is no tip about less than this share of the time
_WORTH = 0.01
#: a convolution is slow if another one of the profile computes so many times as fast
_SLOW = 4


def tips(profile: ProfileData) -> list[str]:
    """Return tips, each a sentence or two, for the functions of a profile."""
    return [
        *_without_compiler(profile), *_narrower(profile), *_in_python(profile),
        *_convolutions(profile),
    ]  # fmt: skip


def without_compiler(profile: ProfileData) -> str:
    """Return why functions of a profile ran without a C compiler; '' if they did not."""
    reasons = (e.get("no_compiler") for e in profile.environments)
    return next((str(reason) for reason in reasons if reason), "")


def _without_compiler(profile: ProfileData) -> Iterator[str]:
    reason = without_compiler(profile)
    if reason:
        yield (
            f"{reason}: elementwise loops ran on built-in kernels, which are slower. Install gcc "
            "or clang, or set the flag cxx to the path of a compiler"
        )


def _narrower(profile: ProfileData) -> Iterator[str]:
    wide = sum(
        a.total
        for a in profile.applys
        if any("float64" in text for text in (*a.inputs, *a.outputs))
    )
    if wide > _WORTH * profile.local_ns:
        yield "Try the Theano flag floatX=float32"


def _in_python(profile: ProfileData) -> Iterator[str]:
    local = profile.local_ns
    for row in sorted(aggregate.by_op(profile), key=lambda r: -r.ns):
        if row.c or row.ns <= _WORTH * local:
            continue
        why = next(a.why for a in profile.applys if a.op_key == row.key and not a.c)
        yield "%s runs in Python, %.1f%% of the time: %s" % (row.label, 100 * row.ns / local, why)


def _convolutions(profile: ProfileData) -> Iterator[str]:
    """Yield tips on convolutions and their gradients: Applys that choose between algorithms."""
    found = [a for a in profile.applys if a.algorithm not in ("", "strips") and a.total]
    rates = {
        dtype: max((_rate(a) for a in found if _dtype(a) == dtype), default=0.0)
        for dtype in ("float32", "float64")
    }
    for a in sorted(found, key=lambda a: (-a.total, a.position)):
        if a.total <= _WORTH * profile.local_ns:
            continue
        what = f"{a.name}{_line(a)}, {100 * a.total / profile.local_ns:.1f}% of the time,"
        if _dtype(a) == "float64":
            yield (
                f"{what} computes in float64. In float32 it takes half of the time or less: "
                "declare its images and filters float32, or cast them"
            )
        layout = _layout(a)
        if layout:
            yield f"{what} {layout}"
        most = rates.get(_dtype(a), 0.0)
        if 0 < _rate(a) * _SLOW < most and not a.why_algorithm.startswith("measured"):
            yield (
                f"{what} computes {_rate(a):.3g} GFLOP/s with the algorithm {a.algorithm}, another "
                f"convolution {most:.3g}. The flag conv.algo=measure tries each algorithm"
            )


def _rate(a: ApplyProfile) -> float:
    """Return GFLOP/s of an Apply, 0 if they are not known."""
    return a.flops * a.count / a.total if a.flops and a.total else 0.0


def _line(a: ApplyProfile) -> str:
    """Return where the user wrote an Apply, in parentheses; "" if it is not known."""
    return f" ({short_path(a.lines[0][0])}:{a.lines[0][1]})" if a.lines else ""


def _dtype(a: ApplyProfile) -> str:
    return next((array.dtype for array in a.output_arrays if array is not None), "")


def _layout(a: ApplyProfile) -> str:
    """Return what the layout of an image costs; "" if nothing.

    The image is what kernels slide over: of a gradient by images, the gradient by the result.
    """
    image = dict(enumerate(a.input_arrays)).get(1 if "gradInputs" in a.op else 0)
    if image is None or len(image.shape) < 3:
        return ""
    item = image.bytes // max(1, prod(image.shape))
    if image.shape[-1] > 1 and image.strides[-1] != item:
        order = (
            "has its channels last in memory" if image.strides[1] == item
            else f"has neighbouring pixels {image.strides[-1]} bytes apart"
        )  # fmt: skip
        return (
            f"reads an image that {order}, and copies it pixel by pixel. Store it as (batch, "
            "channels, rows, columns), contiguous, before the calls"
        )
    if a.algorithm != "image" and _is_pointwise(a) and not _has_whole_planes(image, item):
        return (
            "has 1 x 1 kernels, but copies its image, whose rows are not contiguous. Of a "
            "contiguous image it is a matrix product that copies nothing"
        )
    return ""


def _is_pointwise(a: ApplyProfile) -> bool:
    """Return whether a convolution has 1 x 1 kernels, and a result as large as its image."""
    arrays = (*a.input_arrays[:2], *a.output_arrays[:1])
    if "grad" in a.op or len(arrays) < 3 or any(array is None for array in arrays):
        return False
    image, kernel, result = (array.shape[2:] for array in arrays if array is not None)
    return set(kernel) == {1} and image == result


def _has_whole_planes(image: ArrayProfile, item: int) -> bool:
    """Return whether the pixels of a channel follow each other."""
    expected = item
    for length, stride in zip(image.shape[:1:-1], image.strides[:1:-1], strict=True):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True
