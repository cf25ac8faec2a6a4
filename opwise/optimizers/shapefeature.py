"""Symbolic shapes of the variables of a graph, computed on demand.

The method ``infer_shape`` of an Op returns the shapes of its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from opwise.config import config
from opwise.errors import ShapeError
from opwise.graph import provenance
from opwise.graph.apply import Apply
from opwise.graph.features import AlreadyThere, Feature
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.op import Lengths
from opwise.graph.traversal import ancestors, clone_replace, equal_computations
from opwise.graph.variable import Constant, Var, Variable
from opwise.optimizers.passes import Optimizer, log
from opwise.tensor.shape import Shape_i, length, shape_i_op


class ShapeFeature(Feature):
    """Tracks the shapes of variables: ``shape_of[var]`` is a tuple of 0-d int64 variables.

    A shape is inferred when it is first read, from the inputs up, and kept. The length of a
    broadcastable dimension is the constant 1; a length that an Op cannot infer is ``Shape_i`` of
    the variable. Shapes never depend on Applys that have left the graph: where a rule has replaced
    a length, those computed from it are read from the replacement. A rule that brings the length of
    a long chain into the graph so adds one step of it, not all that others have rewritten before.
    """

    def __init__(self) -> None:
        self.fgraph: FunctionGraph | None = None
        self.forget()

    def forget(self) -> None:
        """Drop all inferred shapes."""
        self._known: dict[Any, Any] = {}
        #: output of an Op without infer_shape -> the shape of the variable that it replaced
        self._inherited: dict[Any, Any] = {}
        #: variables of the graph that known shapes depend on, and those of them that have left it
        self._relied_on: set[Any] = set()
        self._gone: set[Any] = set()
        self._recorded: set[Any] = set()
        #: parts of shapes that do not depend on a variable of _gone
        self._sound: set[Any] = set()
        #: length in the graph -> the one that replaced it, and length that is computed from such
        #: a one -> the same, computed from the replacement
        self._replaced: dict[Any, Any] = {}
        #: parts of shapes that do not depend on a length of _replaced
        self._current: set[Any] = set()

    # --- questions --------------------------------------------------------------------------------

    @property
    def shape_of(self) -> _ShapeOf:
        """A mapping from the variables of the graph to their shapes; None for other types."""
        return _ShapeOf(self)

    def shape_tuple(self, var: Var) -> tuple[Any, ...] | None:
        """Return the shape of a variable, as a tuple of 0-d int64 variables, or None."""
        if not hasattr(var.type, "ndim"):
            return None
        shape = self._inferred(var)
        return tuple(map(self._updated, shape)) if self._replaced else shape

    def get_shape(self, var: Var, idx: int) -> Var:
        """Return the length of one dimension."""
        shape = self.shape_tuple(var)
        assert shape is not None
        return shape[idx]

    def same_shape(
        self, x: Var, y: Var, dim_x: int | None = None, dim_y: int | None = None
    ) -> bool:
        """Return whether two variables, or dimensions of them, are known to be equally long."""
        if not hasattr(x.type, "ndim") or not hasattr(y.type, "ndim"):
            return False
        a, b = self._inferred(x), self._inferred(y)
        if dim_x is not None:
            a = (a[dim_x],)
        if dim_y is not None:
            b = (b[dim_y],)
        return len(a) == len(b) and all(map(same_length, a, b))

    # --- inference --------------------------------------------------------------------------------

    def _inferred(self, var: Var) -> tuple[Var, ...]:
        """Return the shape of a variable as its Apply gave it, from lengths since replaced."""
        if not self._is_sound(var):
            self._infer_shapes(var)
        shape: tuple[Var, ...] = self._known[var]
        return shape

    def _infer_shapes(self, asked: Var) -> None:
        """Infer the shape of ``asked``, and those that it depends on, without recursion."""
        known, done = self._known, set()
        stack = [asked]
        while stack:
            var = stack[-1]
            if var in done:
                stack.pop()
                continue
            node = var.owner
            if node is None or not hasattr(node.op, "infer_shape"):
                stack.pop()
                self._keep(var, self._default(var))
                done.add(var)
                continue
            missing = [
                v
                for v in node.inputs
                if v not in done and hasattr(v.type, "ndim") and not self._is_sound(v)
            ]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            shapes = self._infer(node, [known.get(v) for v in node.inputs])
            for out, shape in zip(node.outputs, shapes, strict=True):
                if hasattr(out.type, "ndim"):
                    self._keep(out, shape)
                done.add(out)

    def _infer(self, node: Apply, input_shapes: Sequence[Lengths]) -> list[tuple[Var, ...] | None]:
        """Return the shapes of the outputs by ``infer_shape``, and by their types if it fails."""
        try:
            said = node.op.infer_shape(node, input_shapes)
            if len(said) != len(node.outputs):
                raise ValueError(
                    f"infer_shape returned {len(said)} shapes for {len(node.outputs)} outputs"
                )
            return [
                self._checked(out, shape) for out, shape in zip(node.outputs, said, strict=True)
            ]
        except (ShapeError, NotImplementedError):
            pass  # the documented way to refuse
        except (
            Exception
        ) as error:  # a user's infer_shape may raise anything, and shapes are optional
            message = (
                f"The infer_shape of {node.op} failed on {node} ({_where(node)}the shapes of its "
                f"inputs are {input_shapes}): {type(error).__name__}: {error}"
            )
            if config.on_shape_error == "raise":
                error.add_note(message)
                raise
            log(
                "warning",
                "%s. The shapes of its outputs are treated as unknown; correct its infer_shape, or "
                "remove it.",
                message,
            )
        return [self._default(out) for out in node.outputs]

    def _checked(self, out: Var, shape: Lengths) -> tuple[Var, ...] | None:
        if not hasattr(out.type, "ndim"):
            return None
        if shape is None:
            return self._default(out)
        if len(shape) != out.type.ndim:
            raise ValueError(
                f"infer_shape returned {len(shape)} lengths for an output of {out.type.ndim} "
                "dimensions"
            )
        one = length(1)
        pattern = getattr(out.type, "broadcastable", (False,) * out.type.ndim)
        return tuple(one if b else _as_length(n) for b, n in zip(pattern, shape, strict=True))

    def _default(self, var: Var) -> tuple[Var, ...] | None:
        """Return a shape by the type, the value or the predecessor of a variable."""
        if not hasattr(var.type, "ndim"):
            return None
        if isinstance(var, Constant) and hasattr(var.data, "shape"):
            return tuple(length(n) for n in var.data.shape)
        inherited: tuple[Var, ...] | None = self._inherited.get(var)
        if inherited is not None and all(map(self._rests_on_graph, inherited)):
            return inherited
        pattern = getattr(var.type, "broadcastable", (False,) * var.type.ndim)
        return tuple(length(1) if b else shape_i_op(i)(var) for i, b in enumerate(pattern))

    # --- validity of shapes -----------------------------------------------------------------------

    def _keep(self, var: Var, shape: tuple[Var, ...] | None) -> None:
        """Remember a shape, and the variables of the graph that it depends on."""
        assert shape is not None  # nobody asks for the shape of a variable without dimensions
        self._known[var] = shape
        self._record(shape)

    def _record(self, lengths: Iterable[Var]) -> None:
        """Note the variables of the graph that lengths depend on."""
        stack = [n for n in lengths if n not in self._recorded]
        while stack:
            part = stack.pop()
            if part in self._recorded or isinstance(part, Constant):
                continue
            self._recorded.add(part)
            if part.fgraph is self.fgraph:
                self._relied_on.add(part)
            elif part.owner is not None:
                stack.extend(part.owner.inputs)

    def _is_sound(self, var: Var) -> bool:
        """Return whether the shape of a variable is known and does not depend on removed ones."""
        shape = self._known.get(var)
        if shape is None:
            return False
        return not self._gone or all(map(self._rests_on_graph, shape))

    def _rests_on_graph(self, length_: Var) -> bool:
        checked = set()
        stack = [length_]
        while stack:
            part = self._replacement(stack.pop())
            if part in self._gone:
                return False
            if part in checked or part in self._sound:
                continue
            if part.fgraph is not self.fgraph and part.owner is not None:
                checked.add(part)
                stack.extend(part.owner.inputs)
        self._sound |= checked
        return True

    # --- lengths that rules have replaced ---------------------------------------------------------

    def _replacement(self, part: Any) -> Var:
        """Return what a part of a shape has been replaced by, in the end; itself if it was not."""
        replaced = self._replaced
        last = part
        while last in replaced:
            last = replaced[last]
        while part is not last:
            replaced[part], part = last, replaced[part]
        return last

    def _updated(self, length_: Var) -> Var:
        """Return a length computed from the replacements of the lengths that it depends on."""
        stack = [length_]
        while stack:
            part = self._replacement(stack[-1])
            if part in self._current or part.owner is None or part.fgraph is self.fgraph:
                stack.pop()
                continue
            inputs = list(map(self._replacement, part.owner.inputs))
            missing = [v for v in inputs if self._may_be_outdated(v)]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if any(new is not old for new, old in zip(inputs, part.owner.inputs, strict=True)):
                node = part.owner.clone_with_new_inputs(inputs)
                for old, new in zip(part.owner.outputs, node.outputs, strict=True):
                    self._replaced[old] = new
                self._record(node.outputs)
                self._current.update(node.outputs)
            else:
                self._current.add(part)
        return self._replacement(length_)

    def _may_be_outdated(self, part: Any) -> bool:
        return (
            part.owner is not None and part not in self._current and part.fgraph is not self.fgraph
        )

    # --- callbacks of FunctionGraph ---------------------------------------------------------------

    def on_attach(self, fgraph: FunctionGraph) -> None:
        if fgraph.find_feature(ShapeFeature) is not None:
            raise AlreadyThere(f"{fgraph} tracks shapes already")
        self.fgraph = fgraph
        fgraph.shape_feature = self

    def on_detach(self, fgraph: FunctionGraph) -> None:
        fgraph.shape_feature = None
        self.fgraph = None
        self.forget()

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        if self._gone:
            self._gone.difference_update(node.outputs)

    def on_prune(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        for out in node.outputs:
            self._known.pop(out, None)
            self._inherited.pop(out, None)
            if out in self._relied_on and out not in self._replaced:
                self._gone.add(out)
                self._sound.clear()

    def on_change_input(
        self,
        fgraph: FunctionGraph,
        node: Any,
        i: int,
        old: Variable,
        new: Variable,
        reason: Any = None,
    ) -> None:
        # of other variables than lengths the replacement may have a shape that is better known
        is_length = old in self._recorded and getattr(old.type, "ndim", None) == 0
        if is_length and self._replaced.get(old) is not new:
            self._replaced[old] = new
            self._replaced.pop(new, None)  # if an edit was undone
            self._relied_on.add(new)
            self._recorded.add(new)
            self._current.clear()
        owner = new.owner
        if (
            owner is not None
            and not hasattr(owner.op, "infer_shape")
            and new not in self._inherited
            and new.type == old.type
            and hasattr(old.type, "ndim")
        ):
            self._inherited[new] = self._inferred(old)

    def clone(self) -> ShapeFeature:
        """Return a feature for a copy of the graph."""
        return ShapeFeature()

    def __getstate__(self) -> dict[str, Any]:
        return {"fgraph": self.fgraph}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.forget()


class _ShapeOf(Mapping[Variable, Any]):
    """``shape_of`` of a ShapeFeature; reading it infers shapes."""

    def __init__(self, feature: ShapeFeature) -> None:
        self._feature = feature

    def __getitem__(self, var: Var) -> tuple[Var, ...] | None:
        return self._feature.shape_tuple(var)

    @property
    def _graph(self) -> FunctionGraph:
        fgraph = self._feature.fgraph
        assert fgraph is not None
        return fgraph

    def __contains__(self, var: object) -> bool:
        return var in self._graph.variables

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._graph.variables)

    def __len__(self) -> int:
        return len(self._graph.variables)


def inner_shapes(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    values: Sequence[Variable | None],
    shapes: Sequence[Any],
    read: Callable[[int, int], Variable],
) -> list[tuple[Variable, ...] | None]:
    """Return the shapes of the outputs of a graph inside an Op, for its ``infer_shape``.

    values, shapes: for each input the variable outside that has the same value, and its shape; None
    if there is none. read: a function (output, dimension) to a variable outside with the length
    that only the values inside tell.
    """
    inner = FunctionGraph(inputs, outputs, features=[ShapeFeature()])
    feature = inner.shape_feature
    known: dict[Variable, Any] = {}
    for own, value, shape in zip(inner.inputs, values, shapes, strict=True):
        if value is not None:
            known[own] = value
        for n, given in zip(feature.shape_tuple(own) or (), shape or (), strict=True):
            if not isinstance(n, Constant):
                known[n] = given
    unknown = {own for own in inner.inputs if own not in known}
    found: list[tuple[Variable, ...] | None] = []
    for k, own in enumerate(inner.outputs):
        lengths = feature.shape_tuple(own)
        if lengths is not None:
            lengths = tuple(
                read(k, d) if _reads_inside(n, known, unknown) else n for d, n in enumerate(lengths)
            )
        found.append(lengths)
    # the constants and Applys that the lengths keep go into a graph of the caller
    inner.disown()
    flat = iter(clone_replace([n for lengths in found for n in lengths or ()], known))
    return [None if lengths is None else tuple(next(flat) for _ in lengths) for lengths in found]


def _reads_inside(
    length_: Variable, known: Mapping[Variable, Any], unknown: Collection[Variable]
) -> bool:
    """Return whether a length depends on a value inside, or on its length, not in ``known``."""
    return any(
        var in unknown
        or (var.owner is not None and isinstance(var.owner.op, Shape_i) and var not in known)
        for var in ancestors(length_, blockers=known)
    )


def _as_length(n: Any) -> Var:
    """Return a length from ``infer_shape`` as a 0-d int64 variable."""
    if not hasattr(n, "type"):
        if int(n) != n:
            raise TypeError(f"infer_shape returned {n!r} as a length")
        return length(int(n))
    kind = np.dtype(n.type.dtype).kind
    if n.type.ndim or kind not in "iu":
        raise TypeError(f"infer_shape returned {n} as a length, which has type {n.type}")
    return length(n)


def _where(node: Apply) -> str:
    line = provenance.user_line(node)
    return "" if line is None else f"{line[0]}, line {line[1]}; "


def same_length(a: Variable, b: Variable) -> bool:
    """Return whether two lengths are known to be equal."""
    if a is b:
        return True
    if isinstance(a, Constant) or isinstance(b, Constant):
        return isinstance(a, Constant) and isinstance(b, Constant) and a.data == b.data
    return equal_computations([a], [b])


def tracked_shapes(fgraph: FunctionGraph | None) -> ShapeFeature | None:
    """Return the ShapeFeature of a graph; None without one, and for an Apply of no graph."""
    return None if fgraph is None else fgraph.find_feature(ShapeFeature)


def same_shape(
    fgraph: FunctionGraph | None,
    x: Variable,
    y: Variable,
    dim_x: int | None = None,
    dim_y: int | None = None,
) -> bool:
    """Return whether two variables are known to have the same shape, or length of a dimension.

    False if the graph does not track shapes.
    """
    feature = tracked_shapes(fgraph)
    return feature is not None and feature.same_shape(x, y, dim_x, dim_y)


class ShapeOptimizer(Optimizer):
    """Attaches a ShapeFeature, which tracks the shapes of variables."""

    name = "ShapeOpt"

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        fgraph.attach_feature(ShapeFeature())

    def apply(self, fgraph: FunctionGraph) -> Any:
        pass
