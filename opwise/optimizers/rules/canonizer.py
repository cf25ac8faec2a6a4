"""The canonical form of sums and differences, and of products and quotients.

Both have the same algebra, of terms ``above`` and ``below``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.variable import Constant, Var, Variable
from opwise.optimizers.rules.matching import (
    is_private,
    number_filled,
    number_like,
    row_name,
    typed_like,
)
from opwise.scalar import dtypes
from opwise.scalar.op import OPS
from opwise.tensor.elemwise import cast, elemwise

#: the most operands of a sum or product, so that it fits into a fused kernel
WIDEST = 16
#: the most terms that are compared if parts with other readers are opened, as sharing may multiply
#: terms, or if products inside products are compared, which takes quadratic time
MOST_TERMS = 32


@dataclass
class Terms:
    """A sum of ``above`` minus ``below``, or a product of ``above`` divided by ``below``."""

    above: list[Variable] = field(default_factory=list)
    below: list[Variable] = field(default_factory=list)
    #: whether it contains a reciprocal, which the canonical form does not
    inverted: bool = False
    #: whether a part was not opened because it has other readers
    met_shared: bool = False


@dataclass
class _Form:
    """The canonical form of an expression: a number in front, and the terms."""

    lead: Variable | None
    above: list[Variable]
    below: list[Variable]
    cancelled: bool
    changed: bool

    @property
    def size(self) -> int:
        return (self.lead is not None) + len(self.above) + len(self.below)


class Canonizer:
    """Brings expressions into the form ``inverse(main(number, *above), main(*below))``.

    main: an associative row of any number of operands. inverse: its inverse row. reciprocal: the
    inverse with the neutral element as first operand. lone_reciprocal: whether the form without
    ``above`` is ``reciprocal(...)`` rather than ``inverse(neutral, ...)``. simplify: replaces terms
    by others: (above, below) to (above, below, whether it changed them). soon: other rows that
    rules of the same stage replace by one of these.

    Equal terms above and below cancel, for all values; the shape is kept. Numbers are collected in
    one, which comes first. Parts with other readers are opened only if terms cancel or nothing is
    computed twice. An expression in this form stays as it is, except that operands of the same kind
    are flattened.
    """

    def __init__(
        self,
        main: str,
        inverse: str,
        reciprocal: str,
        neutral: int,
        lone_reciprocal: bool,
        simplify: Callable[..., Any] | None = None,
        soon: tuple[str, ...] = (),
    ) -> None:
        self.main, self.inverse, self.reciprocal = main, inverse, reciprocal
        self.neutral = neutral
        self.lone_reciprocal = lone_reciprocal
        self.simplify = simplify
        self._roles = frozenset((main, inverse, reciprocal))
        self._opens = self._roles.union(soon)
        #: Applys of ``main`` that are plain -> their inputs when they were looked at
        self._plain: WeakKeyDictionary[Apply, list[ref[Variable]]] = WeakKeyDictionary()

    def __call__(self, node: Apply) -> Var:
        """Return the replacement for the output of an Apply of one of the rows, or None."""
        if node.op.inplace_pattern:
            return None
        (out,) = node.outputs
        reader = self._reader(out)
        if reader is None or node in self._plain:
            is_plain = self._is_plain(node, out)
            new = self._in_form(out) if reader is None and not is_plain else None
            if new is not None:
                return new
        return self._wide(node, out, reader)

    # --- who is part of whom ----------------------------------------------------------------------

    def _role(self, var: Var, dtype: str) -> str | None:
        """Return the row that computes ``var`` if it is one of the three and of ``dtype``."""
        name = row_name(var.owner)
        return name if name in self._roles and var.type.dtype == dtype else None

    def opens(self, var: Var) -> bool:
        """Return whether a variable is computed by one of the rows."""
        return row_name(var.owner) in self._roles

    def _reader(self, out: Var) -> Apply | None:
        """Return the only reader of ``out`` if it will open it, else None."""
        if not is_private(out):
            return None
        ((reader, _),) = out._clients
        if reader == "output" or row_name(reader) not in self._opens:
            return None
        return reader if reader.outputs[0].type.dtype == out.type.dtype else None

    # --- sums of sums -----------------------------------------------------------------------------

    def _wide(self, node: Apply, out: Var, reader: Apply | None) -> Var:
        """Return a sum with the operands of its inner sums; None if there are none.

        Only sums of the same type are opened: narrower ones are added before they broadcast.
        """
        if node.op.row_name != self.main:
            return None
        found, stack = [], node.inputs[::-1]
        room = WIDEST - len(node.inputs)
        while stack:
            var: Var = stack.pop()
            if self._is_sum_within(var, out) and len(var.owner.inputs) - 1 <= room:
                room -= len(var.owner.inputs) - 1
                stack.extend(var.owner.inputs[::-1])
            else:
                found.append(var)
        if len(found) == len(node.inputs):
            return None
        if (
            reader is not None
            and reader.op == node.op
            and reader.outputs[0].type == out.type
            and len(found) + len(reader.inputs) - 1 <= WIDEST
        ):
            return None  # the reader will open all of it at once
        return node.op(*found)

    def _is_sum_within(self, var: Var, out: Var) -> bool:
        return (
            var.type == out.type
            and is_private(var)
            and self._role(var, out.type.dtype) == self.main
        )

    # --- the one form -----------------------------------------------------------------------------

    def _in_form(self, out: Var) -> Var:
        terms = self.opened(out)
        form = self._form(terms, out)
        if terms.met_shared:
            more = self.opened(out, shared=True)
            if more is not None:
                wider = self._form(more, out)
                if wider.changed and (
                    wider.size <= form.size or (wider.cancelled and not form.cancelled)
                ):
                    terms, form = more, wider
        if not form.changed:
            return None
        return typed_like(self._built(form, out), out, terms.above + terms.below)

    def _is_plain(self, node: Apply, out: Var) -> bool:
        """Return whether an Apply clearly is in canonical form: no number, nothing to open.

        Plain parts of a sum need not be opened, so the terms of a long one that grows by one term
        after the other are not looked at each time.
        """
        row = node.op.row_name
        if row == self.reciprocal and not self.lone_reciprocal:
            return False
        for var in node.inputs:
            role = self._role(var, out.type.dtype)
            is_part = role is not None and row == role == self.main and self._is_plain_part(var)
            if (role is not None and not is_part) or number_filled(var) is not None:
                self._plain.pop(node, None)
                return False
        if row == self.main:
            self._plain[node] = list(map(ref, node.inputs))
        if row != self.inverse:
            return True
        above, below = node.inputs
        simplified = self.simplify is not None and self.simplify([above], [below])[2]
        return above is not below and not simplified

    def _is_plain_part(self, var: Var) -> bool:
        """Return whether only one Apply reads a sum that was plain, and still has its operands."""
        operands = self._plain.get(var.owner)
        return is_private(var) and operands == list(map(ref, var.owner.inputs))

    def opened(self, out: Var, shared: bool = False, most: int | None = None) -> Any:
        """Return the terms of a variable; None if they are more than ``most``.

        shared: open parts with other readers as well, up to MOST_TERMS.
        """
        terms = Terms()
        dtype, roles = out.type.dtype, self._roles
        if shared:
            most = MOST_TERMS
        stack = [(out, False)]
        while stack:
            var, is_below = stack.pop()
            row = row_name(var.owner)
            if row not in roles or var.type.dtype != dtype:
                row = None
            elif not (shared or var is out or is_private(var)):
                terms.met_shared = True
                row = None
            if row is None:
                (terms.below if is_below else terms.above).append(var)
            elif row == self.main:
                for x in reversed(var.owner.inputs):
                    stack.append((x, is_below))
            elif row == self.inverse:
                first, second = var.owner.inputs
                stack += [(second, not is_below), (first, is_below)]
            else:
                terms.inverted |= var is not out or not self.lone_reciprocal
                stack.append((var.owner.inputs[0], not is_below))
            if most and len(terms.above) + len(terms.below) + len(stack) > most:
                return None
        return terms

    def _form(self, terms: Any, out: Var) -> _Form:
        """Return the canonical form of opened terms, and whether it differs from the present."""
        above, numbers_above = _split(terms.above)
        below, numbers_below = _split(terms.below)
        value = None
        if numbers_above or numbers_below:
            value = self._collected(numbers_above, numbers_below, out.type.dtype)
        if value is None:
            above, below = terms.above, terms.below
        above, below, cancelled = _without_common(above, below)
        if self.simplify is not None:
            above, below, simplified = self.simplify(above, below)
            cancelled |= simplified
        changed = cancelled or terms.inverted
        lead = None
        if value is not None:
            if value != self.neutral or (below and not above and not self.lone_reciprocal):
                lead = number_like(out, value)
            changed |= not self._is_led(terms, lead, len(numbers_above) + len(numbers_below))
        return _Form(lead, above, below, cancelled, changed)

    @staticmethod
    def _is_led(terms: Any, lead: Var, count: int) -> bool:
        """Return whether the only number of ``count`` is in front already, and is ``lead``."""
        if lead is None or count != 1 or not terms.above:
            return False
        first = terms.above[0]
        return isinstance(first, Constant) and first.type == lead.type

    def _collected(self, above: Sequence[Any], below: Sequence[Any], dtype: str) -> Any:
        """Return one number for those above and below, computed in ``dtype``.

        None if it overflows or underflows: applied one by one, the numbers might not.
        """
        if len(above) == 1 and not below:
            return above[0].astype(dtype)
        given = [np.array([value]).astype(dtype) for value in (*above, *below)]
        total = np.array([self.neutral]).astype(dtype)
        with np.errstate(all="ignore"):
            for k, operand in enumerate(given):
                row = self.main if k < len(above) else self.inverse
                (total,) = OPS[row].on_arrays([total, operand], [dtype])
        if dtype in dtypes.CONTINUOUS:
            lost = not np.isfinite(total[0]) and all(np.isfinite(g[0]) for g in given)
            if self.main == "mul" and all(g[0] != 0 for g in given):
                lost |= bool(abs(total[0]) < np.finfo(dtype).tiny)
            if lost:
                return None
        return total[0]

    # --- building ---------------------------------------------------------------------------------

    def expression(self, terms: Any, out: Var) -> Var:
        """Return terms in canonical form, in the dtype of ``out``; it may have to broadcast."""
        return cast(self._built(self._form(terms, out), out), out.type.dtype)

    def _built(self, form: _Form, out: Var) -> Var:
        """Return the expression of a form; it may have to broadcast to ``out``."""
        dtype = out.type.dtype
        above = ([] if form.lead is None else [form.lead]) + form.above
        if not form.below:
            return self._joined(above, out) if above else number_like(out, self.neutral)
        divisor = self._joined(form.below, out)
        if not above:
            if self.lone_reciprocal:
                return elemwise(self.reciprocal)(cast(divisor, dtype))
            above = [number_like(out, self.neutral)]
        dividend = self._joined(above, out)
        op = elemwise(self.inverse)
        if op.scalar_op.output_dtypes([dividend.type.dtype, divisor.type.dtype]) != [dtype]:
            dividend, divisor = cast(dividend, dtype), cast(divisor, dtype)
        return op(dividend, divisor)

    def _joined(self, terms: Any, out: Var) -> Var:
        """Return the sum of terms, in order, except that narrow ones are added first."""
        if len(terms) == 1:
            return terms[0]
        terms = self._grouped(terms, out)
        result, rest = self._sum(terms[:WIDEST], out), terms[WIDEST:]
        while rest:
            result = self._sum([result, *rest[: WIDEST - 1]], out)
            rest = rest[WIDEST - 1 :]
        return result

    def _grouped(self, terms: list[Var], out: Var) -> list[Var]:
        """Return the terms; those of one narrower pattern are replaced by their sum."""
        groups: dict[Any, Any] = {}
        for i, var in enumerate(terms):
            narrow = var.type.broadcastable != out.type.broadcastable
            alone = not narrow or isinstance(var, Constant)
            groups.setdefault(i if alone else var.type.broadcastable, []).append(var)
        if len(groups) == 1:
            return terms
        return [self._sum(group, out) for group in groups.values()]

    def _sum(self, terms: Any, out: Var) -> Var:
        """Return the sum of terms, computed in the dtype of ``out``."""
        if len(terms) == 1:
            return terms[0]
        if dtypes.upcast(*(v.type.dtype for v in terms)) != out.type.dtype:
            terms = [cast(v, out.type.dtype) for v in terms]
        return elemwise(self.main)(*terms)


def _split(terms: Any) -> tuple[list[Var], list[Any]]:
    """Return (the terms that are no numbers, the numbers)."""
    others, numbers = [], []
    for var in terms:
        value = number_filled(var)
        if value is None:
            others.append(var)
        else:
            numbers.append(value)
    return others, numbers


def _without_common(above: list[Var], below: list[Var]) -> tuple[list[Var], list[Var], bool]:
    """Return (above, below, whether they had terms in common), without those."""
    if not above or not below:
        return above, below, False
    common = Counter(above) & Counter(below)
    if not common:
        return above, below, False
    return _less(above, common), _less(below, common), True


def _less(terms: Any, removed: Counter[Any]) -> list[Var]:
    left = Counter(removed)
    kept = []
    for var in terms:
        if left[var] > 0:
            left[var] -= 1
        else:
            kept.append(var)
    return kept


def _signs(above: list[Var], below: list[Var]) -> tuple[list[Var], list[Var], bool]:
    """Replace x above |x| by the sign of x, which is 0 where x is 0."""
    kept = []
    for var in below:
        node = var.owner
        x = node.inputs[0] if row_name(node) == "abs_" else None
        if x is not None and x in above and x.type.dtype not in dtypes.COMPLEX:
            above = list(above)
            above[above.index(x)] = elemwise("sgn")(x)
        else:
            kept.append(var)
    return above, kept, len(kept) < len(below)


SUMS = Canonizer("add", "sub", "neg", neutral=0, lone_reciprocal=True)
PRODUCTS = Canonizer(
    "mul", "true_div", "inv", neutral=1, lone_reciprocal=False, simplify=_signs, soon=("neg",)
)
