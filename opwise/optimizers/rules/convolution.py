"""Rules on convolutions: what programs write around them becomes parameters of the Op.

A rule holds for a convolution and for both of its gradients: where the image of a convolution is
padded, so is that of the gradient by kernels, and the gradient by images is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Constant, Var, Variable
from opwise.optimizers.rule import Replacements, rule
from opwise.optimizers.rules.lengths import LengthSum, difference
from opwise.optimizers.rules.matching import is_private, number_within, shuffled
from opwise.optimizers.rules.shape import as_type, is_read_once, lengths_of
from opwise.optimizers.rules.subtensor import index_of, part_of
from opwise.optimizers.rules.zeros import Pads, inside_zeros, permutation
from opwise.tensor.conv.geometry import pads
from opwise.tensor.conv.ops import (
    AbstractConv,
    AbstractConv_gradInputs,
    AbstractConv_gradWeights,
)
from opwise.tensor.creation import alloc
from opwise.tensor.dimshuffle import DimShuffle, dimshuffle
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.knownvalues import vector_entry
from opwise.tensor.slices import known_int
from opwise.tensor.subtensor import IncSubtensor, Subtensor, getitem
from opwise.tensor.variable import constant

_WHOLE = slice(None)
_REVERSED = slice(None, None, -1)
_TWICE = ("canonicalize", "specialize")


def _image_lengths(fgraph: FunctionGraph, node: Apply) -> Any:
    """Return the spatial lengths of the image of a convolution or of a gradient, or None."""
    op, n = node.op, node.op.convdim
    if isinstance(op, AbstractConv_gradInputs):
        return [_entry(node.inputs[2], a) for a in range(n)]
    lengths = lengths_of(fgraph, node.inputs[0])
    return None if lengths is None else lengths[2:]


def _kernel_lengths(fgraph: FunctionGraph, node: Apply) -> list[int | None]:
    """Return the spatial lengths of the kernels as far as they are known."""
    op, n = node.op, node.op.convdim
    if isinstance(op, AbstractConv_gradWeights):
        found: Any = [_entry(node.inputs[2], a) for a in range(n)]
    else:
        lengths = lengths_of(fgraph, node.inputs[0 if _is_by_images(op) else 1])
        found = [None] * n if lengths is None else lengths[-n:]
    return [None if one is None else known_int(one) for one in found]


def _entry(vector: Variable, i: int) -> Any:
    """Return an entry of a vector of lengths."""
    entry = vector_entry(vector, i)
    return getitem(vector, i) if entry is None else entry


def _is_by_images(op: Any) -> bool:
    return isinstance(op, AbstractConv_gradInputs)


def _pads(fgraph: FunctionGraph, node: Apply) -> Pads | None:
    """Return the zeros around the image of a convolution or gradient, None if not known."""
    op = node.op
    kernel = _kernel_lengths(fgraph, node)
    if op.border_mode in ("full", "half"):
        if any(k is None for k in kernel):
            return None
        return [pads(op.border_mode, op.geometry.reach(kernel, a)) for a in op.geometry.axes]
    around: Pads = op.geometry.pads([1] * op.convdim)
    return around


def _with_image(op: Any, padded: Pads, around: Pads) -> Any:
    """Return an Op for an image without zeros that were around it. padded: by the Op already."""
    n = op.convdim
    border = tuple((b + c, e + f) for (b, e), (c, f) in zip(padded, around, strict=True))
    lengths = [
        None if known is None or known < before + behind else known - before - behind
        for known, (before, behind) in zip(op.imshp[-n:], around, strict=True)
    ]
    return op.with_changes(border_mode=border, imshp=(*op.imshp[:2], *lengths))


# --- zeros around images --------------------------------------------------------------------------


def _without_zeros(fgraph: FunctionGraph, x: Any) -> tuple[Any, Pads] | None:
    """Return the part of an image around which a program put zeros, and how many, or None."""
    step = inside_zeros(fgraph, x)
    if step is None or step[1][:2] != [(0, 0), (0, 0)]:
        return None
    inner, around = step
    return as_type(cast(inner, x.type.dtype), x.type), around[2:]


@rule(AbstractConv, AbstractConv_gradWeights, stage=_TWICE)
def local_conv_of_padded(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces zeros that a program puts around an image by a border_mode."""
    image = node.inputs[0]
    found = _without_zeros(fgraph, image)
    padded = None if found is None else _pads(fgraph, node)
    if padded is None or found is None:
        return None
    inner, around = found
    new = _with_image(node.op, padded, around)(inner, *node.inputs[1:])
    return [as_type(new, node.outputs[0].type)]


@rule(Subtensor, stage=_TWICE)
def local_gradient_of_padded(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces the middle of a gradient by an image by the gradient with a border_mode.

    The dimensions of the gradient may have been permuted.
    """
    x: Var
    x, index = node.inputs[0], index_of(node)
    order = permutation(x)
    if order is not None and is_read_once(x):
        x = x.owner.inputs[0]
        if any(not isinstance(item, slice) for item in index):
            return None
        index = [index[order.index(d)] for d in range(len(order))]
    made = x.owner
    if made is None or not isinstance(made.op, AbstractConv_gradInputs) or not is_read_once(x):
        return None
    padded, n = _pads(fgraph, made), made.op.convdim
    if padded is None or index[:2] != [_WHOLE] * 2 or not all(map(_is_plain, index[2:])):
        return None
    lengths: list[Any] = []
    around: Pads = []
    for item, total in zip(index[2:], _image_lengths(fgraph, made), strict=True):
        start = item.start or 0
        behind = _behind(item.stop, total)
        if not isinstance(start, int) or start < 0 or behind is None:
            return None
        left = LengthSum(total)
        left.number -= start + behind
        if not left.is_positive():
            return None
        around.append((start, behind))
        lengths.append(left.as_length())
    if around == [(0, 0)] * n:
        return None
    kern, top, _ = made.inputs
    new = _with_image(made.op, padded, around)(kern, top, lengths)
    if order is not None:
        new = dimshuffle(new, order)
    return [as_type(new, node.outputs[0].type)]


def _is_plain(item: Any) -> bool:
    """Return whether an index is a slice with step 1."""
    return isinstance(item, slice) and item.step in (None, 1)


def _behind(stop: Any, total: Any) -> int | None:
    """Return how many of ``total`` elements are behind the stop of a slice, None if not known."""
    if stop is None:
        return 0
    found = -stop if isinstance(stop, int) and stop < 0 else difference(total, stop)
    return found if found is not None and found >= 0 else None


# --- parts of results -----------------------------------------------------------------------------


class _Part(NamedTuple):
    """A convolution that computes a part of the result of another."""

    border_mode: Any
    subsample: tuple[int, ...]


def _part_of_result(
    fgraph: FunctionGraph, node: Apply, index: Sequence[Any], totals: Sequence[Any]
) -> _Part | None:
    """Return how to compute only a part of the result of a convolution.

    node: the convolution or a gradient of it. index: of the part, a slice for each spatial axis.
    totals: the lengths of the result. None if it is no convolution, or the same.
    """
    op = node.op
    if op.unshared or all(item == _WHOLE for item in index):
        return None
    if not all(isinstance(item, slice) for item in index):
        return None
    steps = [1 if item.step is None else item.step for item in index]
    if not all(isinstance(step, int) and step > 0 for step in steps):
        return None
    subsample = tuple(s * step for s, step in zip(op.subsample, steps, strict=True))
    if all(not item.start and item.stop is None for item in index):
        return _Part(op.border_mode, subsample)
    padded = _pads(fgraph, node)
    if padded is None:
        return None
    border = []
    for item, total, step, s, (before, behind) in zip(
        index, totals, steps, op.subsample, padded, strict=True
    ):
        start, left = item.start or 0, _behind(item.stop, total)
        if not isinstance(start, int) or start < 0 or left is None:
            return None
        if left and (s, step) != (1, 1):
            return None
        if start * s > before or left > behind:
            return None  # what would be cut off the image is a part of it
        border.append((before - start * s, behind - left))
    return _Part(tuple(border), subsample)


@rule(Subtensor, stage=_TWICE)
def local_part_of_conv(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Computes only the part of a convolution that is read.

    That is every n-th place, what a 'full' convolution has inside its border, some images of a
    batch, and some outputs.
    """
    x = node.inputs[0]
    made = x.owner
    if made is None or not isinstance(made.op, AbstractConv) or not is_read_once(x):
        return None
    op, index = made.op, index_of(node)
    img, kern = made.inputs
    totals = lengths_of(fgraph, x)
    if totals is None:
        return None
    part = _part_of_result(fgraph, made, index[2:], totals[2:])
    changes: dict[str, Any] = {} if part is None else part._asdict()
    rest: list[Any] = [_WHOLE] * len(index) if part is not None else [_WHOLE] * 2 + index[2:]
    for axis, shape in ((0, "imshp"), (1, "kshp")):
        taken = _as_slice(index[axis])
        operand = kern if axis else img
        single = not isinstance(index[axis], slice) and operand.type.broadcastable[0]
        if taken is None or single or (axis == 1 and op.num_groups > 1):
            rest[axis] = index[axis]
            continue
        if not isinstance(index[axis], slice):
            rest[axis] = 0
        if taken == _WHOLE:
            continue
        changes[shape] = (None, *getattr(op, shape)[1:])
        if axis == 0:
            img = _taken(img, index[axis])
        else:
            kern = _taken(kern, index[axis])
    if not changes:
        return None
    new = op.with_changes(**changes)(img, kern)
    return [as_type(part_of(new, rest), node.outputs[0].type)]


def _taken(x: Any, item: Any) -> Any:
    """Return a part of an array along the first axis; one element of it is known to be one, so that
    nothing takes it again."""
    if isinstance(item, slice):
        return part_of(x, [item])
    return dimshuffle(getitem(x, (item,)), ("x", *range(x.type.ndim - 1)))


def _as_slice(item: Any) -> Any:
    """Return an index as a slice; None for a variable position."""
    if isinstance(item, slice):
        return item
    return slice(item, item + 1 if item != -1 else None) if isinstance(item, int) else None


@rule(AbstractConv_gradWeights, AbstractConv_gradInputs, stage=_TWICE)
def local_gradient_of_part_of_conv(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces the zeros of a gradient by a part of a result by the gradient for that part."""
    top = node.inputs[1]
    put = top.owner
    if put is None or not isinstance(put.op, IncSubtensor):
        return None
    zeros, y = put.inputs[:2]
    if number_within(zeros) != 0 or y.type.ndim != zeros.type.ndim:
        return None
    if any(one and not z for one, z in zip(y.type.broadcastable, zeros.type.broadcastable,
                                            strict=True)):  # fmt: skip
        return None
    totals = lengths_of(fgraph, zeros)
    index = index_of(put)
    if totals is None or index[:2] != [_WHOLE] * 2:
        return None
    part = _part_of_result(fgraph, node, index[2:], totals[2:])
    if part is None:
        return None
    new = node.op.with_changes(**part._asdict())
    out = new(node.inputs[0], cast(y, top.type.dtype), node.inputs[2])
    return [as_type(out, node.outputs[0].type)]


# --- flips ----------------------------------------------------------------------------------------


def _unflipped(x: Any, n: int) -> Any:
    """Return the kernels whose last ``n`` axes are all reversed in ``x``, or None."""
    node = x.owner
    if node is None:
        return None
    if isinstance(node.op, DimShuffle):
        order, ndim = node.op.new_order, node.inputs[0].type.ndim
        if order[-n:] != tuple(range(ndim - n, ndim)):
            return None
        inner = _unflipped(node.inputs[0], n)
        return None if inner is None else shuffled(inner, order)
    if not isinstance(node.op, Subtensor):
        return None
    index, ones = index_of(node), x.type.broadcastable[-n:]
    if len(index) != x.type.ndim or any(item != _WHOLE for item in index[:-n]):
        return None
    flips = [item == _REVERSED for item in index[-n:]]
    if not any(flips):
        return None
    is_turned = (
        flip or (one and item == _WHOLE)
        for flip, one, item in zip(flips, ones, index[-n:], strict=True)
    )
    return node.inputs[0] if all(is_turned) else None


@rule(AbstractConv, AbstractConv_gradInputs, stage=_TWICE)
def local_conv_of_flipped(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces reversed kernels by filter_flip."""
    i = 0 if _is_by_images(node.op) else 1
    kern = _unflipped(node.inputs[i], node.op.convdim)
    if kern is None:
        return None
    inputs = list(node.inputs)
    inputs[i] = kern
    new = node.op.with_changes(filter_flip=not node.op.filter_flip)(*inputs)
    return [as_type(new, node.outputs[0].type)]


@rule(Subtensor, stage=_TWICE)
def local_flipped_gradient(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces a reversed gradient by kernels by filter_flip."""
    x = node.inputs[0]
    made = x.owner
    if made is None or not isinstance(made.op, AbstractConv_gradWeights) or not is_read_once(x):
        return None
    if _unflipped(node.outputs[0], made.op.convdim) is not x:
        return None
    new = made.op.with_changes(filter_flip=not made.op.filter_flip)(*made.inputs)
    return [as_type(new, node.outputs[0].type)]


# --- gradients that are written as convolutions ---------------------------------------------------


@rule(AbstractConv, stage=_TWICE)
def local_conv_of_transposed(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces the convolution of a batch, as channels, by the gradient by kernels that it is.

    Programs write that gradient as the convolution of the transposed images with the transposed
    gradient by the result, which would be a kernel as large as an image.
    """
    op, n = node.op, node.op.convdim
    img, kern = (_transposed(x) for x in node.inputs)
    if img is None or kern is None or op.filter_flip or op.num_groups > 1 or op.unshared:
        return None
    padded, lengths = _pads(fgraph, node), lengths_of(fgraph, node.outputs[0])
    if padded is None or lengths is None or op.subsample != (1,) * n:
        return None
    imshp, kshp = op.imshp, op.kshp
    new = op.with_changes(
        1,
        imshp=(imshp[1], imshp[0], *imshp[2:]),
        kshp=(kshp[0], imshp[0], *[None] * n),
        border_mode=tuple(padded),
        subsample=op.filter_dilation,
        filter_dilation=op.subsample,
    )
    out = new(img, kern, list(lengths[2:]))
    return [as_type(dimshuffle(out, _swapped(out.type.ndim)), node.outputs[0].type)]


def _swapped(ndim: int) -> tuple[int, ...]:
    """Return the order that exchanges the first two dimensions."""
    return (1, 0, *range(2, ndim))


def _transposed(x: Any) -> Any:
    """Return an array of which ``x`` has the first two dimensions exchanged, or None."""
    if x.owner is None or not isinstance(x.owner.op, DimShuffle):
        return None
    (inner,) = x.owner.inputs
    same = inner.type.ndim == x.type.ndim
    return inner if same and x.owner.op.new_order == _swapped(x.type.ndim) else None


# --- images that were spread ----------------------------------------------------------------------


class _Spread(NamedTuple):
    """Images whose elements were put some steps apart, between zeros, and convolved.

    That is a gradient of a strided convolution by its images: nothing is multiplied by the zeros.
    """

    image: Any
    #: what turns the convolution into that strided one
    changes: dict[str, Any]


def _spread(fgraph: FunctionGraph, node: Apply, image: Any) -> _Spread | None:
    """Return the image that was spread into zeros before a convolution, or None."""
    op, put = node.op, image.owner
    if put is None or not isinstance(put.op, IncSubtensor) or op.num_groups > 1 or op.unshared:
        return None
    zeros, y = put.inputs[:2]
    if number_within(zeros) != 0 or y.type.broadcastable != zeros.type.broadcastable:
        return None
    index, totals = index_of(put), lengths_of(fgraph, zeros)
    if totals is None or index[:2] != [_WHOLE] * 2 or op.subsample != (1,) * op.convdim:
        return None
    if not all(isinstance(item, slice) for item in index[2:]):
        return None
    steps = [1 if item.step is None else item.step for item in index[2:]]
    if not all(isinstance(step, int) and step > 0 for step in steps) or max(steps) == 1:
        return None
    border = _opposite_border(fgraph, node, index[2:], totals[2:])
    if border is None:
        return None
    changes = {
        "border_mode": border,
        "subsample": tuple(steps),
        "filter_flip": not op.filter_flip,
        "imshp": (op.imshp[0], op.kshp[0], *[None] * op.convdim),
        "kshp": (op.imshp[1], op.kshp[0], *op.kshp[2:]),
    }
    return _Spread(cast(y, image.type.dtype), changes)


def _opposite_border(
    fgraph: FunctionGraph, node: Apply, index: Sequence[Any], totals: Sequence[Any]
) -> Any:
    """Return the border of the strided convolution of a _Spread, None if there is none."""
    op = node.op
    if all(not item.start and item.stop is None for item in index):
        simple = {"valid": "full", "full": "valid"}.get(str(op.border_mode))
        if simple is not None:
            return simple
    kernel, padded = _kernel_lengths(fgraph, node), _pads(fgraph, node)
    if padded is None or any(k is None for k in kernel):
        return None
    border = []
    for a, (item, total, (before, behind)) in enumerate(zip(index, totals, padded, strict=True)):
        start, left = item.start or 0, _behind(item.stop, total)
        if not isinstance(start, int) or start < 0 or left is None:
            return None
        reach = op.geometry.reach(kernel, a)
        border.append((reach - 1 - before - start, reach - 1 - behind - left))
    return tuple(border) if min(min(pair) for pair in border) >= 0 else None


@rule(AbstractConv, stage=_TWICE)
def local_conv_of_spread(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces a convolution of images with zeros between their elements by a transposed one."""
    kern: Var
    img, kern = node.inputs
    found = _spread(fgraph, node, img)
    lengths = lengths_of(fgraph, node.outputs[0])
    if found is None or lengths is None:
        return None
    turned = dimshuffle(kern, _swapped(kern.type.ndim))
    new = node.op.with_changes(2, **found.changes)(turned, found.image, list(lengths[2:]))
    return [as_type(new, node.outputs[0].type)]


@rule(AbstractConv_gradWeights, stage=_TWICE)
def local_gradient_of_conv_of_spread(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces the gradient by the kernels of a convolution of images with zeros between."""
    img, top, shape = node.inputs
    found = _spread(fgraph, node, img)
    if found is None:
        return None
    new = node.op.with_changes(1, **found.changes)(top, found.image, shape)
    turned = dimshuffle(new, _swapped(new.type.ndim))
    return [as_type(turned, node.outputs[0].type)]


@rule(Subtensor, stage=_TWICE)
def local_part_of_gradient_by_images(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces every n-th element of a gradient by images by a strided convolution.

    It is the gradient through images with zeros between their elements.
    """
    x = node.inputs[0]
    made = x.owner
    if made is None or not _is_by_images(made.op) or not is_read_once(x):
        return None
    op, index = made.op, index_of(node)
    if op.num_groups > 1 or op.unshared or op.subsample != (1,) * op.convdim:
        return None
    if index[:2] != [_WHOLE] * 2 or not all(isinstance(item, slice) for item in index[2:]):
        return None
    steps = [1 if item.step is None else item.step for item in index[2:]]
    if not all(isinstance(step, int) and step > 0 for step in steps) or max(steps) == 1:
        return None
    border = _opposite_border(fgraph, made, index[2:], _image_lengths(fgraph, made))
    if border is None:
        return None
    kern: Var
    top: Var
    kern, top, _ = made.inputs
    new = op.with_changes(
        0,
        border_mode=border,
        subsample=tuple(steps),
        filter_flip=not op.filter_flip,
        imshp=(op.imshp[0], op.kshp[0], *[None] * op.convdim),
        kshp=(op.imshp[1], op.kshp[0], *op.kshp[2:]),
    )
    out = new(top, dimshuffle(kern, _swapped(kern.type.ndim)))
    return [as_type(out, node.outputs[0].type)]


# --- numbers --------------------------------------------------------------------------------------


@rule(AbstractConv, AbstractConv_gradWeights, AbstractConv_gradInputs, stage=_TWICE)
def local_conv_of_zeros(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces a convolution of zeros, or with zeros, by zeros."""
    (out,) = node.outputs
    if all(number_within(x) != 0 for x in node.inputs[:2]):
        return None
    lengths = lengths_of(fgraph, out)
    if lengths is None:
        return None
    return [as_type(alloc(constant(0, dtype=out.type.dtype), *lengths), out.type)]


@rule("row:mul", stage="specialize")
def local_scaled_conv(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Moves factors of a convolution to constant kernels, where they are multiplied once.

    The factors are numbers, or one for each output.
    """
    (out,) = node.outputs
    for i, x in enumerate(node.inputs):
        made = x.owner
        if made is None or not isinstance(made.op, AbstractConv) or not is_private(x):
            continue
        img, kern = made.inputs
        factors = [one for j, one in enumerate(node.inputs) if j != i]
        if not isinstance(kern, Constant) or x.type != out.type:
            continue
        if not all(_is_by_output(one) and isinstance(one, Constant) for one in factors):
            continue
        order = (1, *["x"] * (kern.type.ndim - 1))
        by_output = [cast(shuffled(one, order), kern.type.dtype) for one in factors]
        scaled = elemwise("mul")(kern, *by_output)
        return [as_type(made.op(img, scaled), out.type)]
    return None


def _is_by_output(x: Any) -> bool:
    """Return whether an operand has one number, or one for each output of a convolution."""
    return all(one for d, one in enumerate(x.type.broadcastable) if d != 1)
