"""The table of operations: the text of each in opwise's language, and in numpy's.

A text has fields: ``{0}``, ``{1}`` are the operands; others, as ``{axis}``, are drawn for the shape
of the first operand (``PARAMETERS``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: returns a random integer in 0 to n-1
Below = Callable[[int], int]
Array = NDArray[Any]


@dataclass(frozen=True)
class Operation:
    """One operation, written twice."""

    #: text over the names T and those of the operands
    symbolic: str
    #: text over np, up() and the names of the operands; up() is float64, longdouble if the dtype is
    numpy: str
    #: a letter for the dtypes of each operand: d float64, f float, c float or complex, i integer,
    #: b bool, r real and not bool, n number, a any; a digit behind it is the rank that it must have
    operands: tuple[str, ...]
    #: how shapes go together: "broadcast", "any", or a condition on shapes s and t
    shapes: str = "broadcast"
    #: the operands are converted to the dtype of the result, or to the one that they have in common
    cast: str = ""
    #: the operands that may not have been rounded, since the result jumps
    exact: bool = False
    #: the result is computed, and not only moved: NaN and infinity go through one such operation
    computes: bool = True
    #: a condition on the value x of the first operand, for a result that is finite
    domain: str = "True"
    #: scipy or LAPACK compute it: no longdouble
    double: bool = False
    #: it adds or multiplies many elements, in an order of its own: what is not finite depends on it
    folds: bool = False


def _same(text: str, operands: str, **options: Any) -> Operation:
    """Return an operation with the same text in both languages."""
    return Operation(text, text.replace("T.", "np."), tuple(operands.split()), **options)


def _pair(symbolic: str, numpy: str, operands: str, **options: Any) -> Operation:
    return Operation(symbolic, numpy, tuple(operands.split()), **options)


_MOVES: dict[str, Any] = {"computes": False, "shapes": "any"}
_SUMS: dict[str, Any] = {"cast": "result", "shapes": "any", "folds": True}
_FUNCTIONS = {
    "exp": "abs(x) < 20", "expm1": "abs(x) < 20", "sin": "abs(x) < 50", "cos": "abs(x) < 50",
    "tanh": "True", "arctan": "True", "arcsinh": "True", "log": "x > 0", "log2": "x > 0",
    "log1p": "x > -.9", "sqrt": "x >= 0", "arcsin": "abs(x) < .9", "arccosh": "x > 1.1",
    "arctanh": "abs(x) < .9", "cosh": "abs(x) < 20", "sinh": "abs(x) < 20", "tan": "abs(x) < 1.4",
    "exp2": "abs(x) < 20", "arccos": "abs(x) < .9", "log10": "x > 0",
}  # fmt: skip

OPERATIONS: list[Operation] = [
    # elementwise
    *(_same(f"{{0}} {op} {{1}}", "n n", cast="result") for op in ("+", "-", "*")),
    *(_same(f"{{0}} {op} {{number}}", "f", shapes="any") for op in ("+", "-", "*", "/")),
    _same("{number} - {0}", "f", shapes="any"),
    _same("{number} / {0}", "f", shapes="any", domain="abs(x) > 1e-3"),
    _same("{0} / {1}", "c c", cast="result", domain="abs(y) > 1e-3"),
    _same("{0} ** {power}", "f", shapes="any", domain="x > 1e-3"),
    _same("{0} ** 2", "r", shapes="any"),
    _same("-{0}", "r", shapes="any"),
    _same("abs({0})", "r", shapes="any"),
    *(_same(f"T.{name}({{0}})", "f", shapes="any", domain=domain)
      for name, domain in _FUNCTIONS.items()),
    _pair("T.nnet.sigmoid({0})", "special.expit({0})", "f", shapes="any",
          domain="abs(x) < 30"),
    _pair("T.nnet.softplus({0})", "np.logaddexp(0, {0})", "f", shapes="any",
          domain="abs(x) < 30"),
    _pair("T.nnet.relu({0})", "({0} + abs({0})) / 2", "f", shapes="any"),
    _pair("T.erf({0})", "special.erf({0})", "f", shapes="any", double=True),
    _pair("T.gammaln({0})", "special.gammaln({0})", "f", shapes="any", domain="x > .1",
          double=True),
    *(_same(f"T.{name}({{0}}, {{1}})", "r r", cast="result", exact=True)
      for name in ("maximum", "minimum")),
    *(_pair(f"T.{name}({{0}}, {{1}})", f"np.{other}({{0}}, {{1}})", "r r", cast="common",
            exact=True)
      for name, other in (("lt", "less"), ("ge", "greater_equal"), ("eq", "equal"))),
    *(_same(f"T.{name}({{0}})", "f", shapes="any", exact=True)
      for name in ("floor", "ceil", "isnan", "isinf")),
    *(_same(f"{{0}} {op} {{1}}", "b b") for op in ("&", "|", "^")),
    *(_same(f"{{0}} {op} {{1}}", "i i", cast="result") for op in ("&", "|", "^")),
    _pair("~{0}", "~{0}", "b", shapes="any"),
    _pair("T.switch({0}, {1}, {2})", "np.where({0}, {1}, {2})", "b n n", cast="branches",
          computes=False),
    _pair("T.clip({0}, -1.5, 1.25)", "np.clip({0}, -1.5, 1.25)", "f", shapes="any", exact=True),
    _pair("T.cast({0}, 'float32')", "up({0}, 'float32')", "r", shapes="any"),
    _pair("T.cast({0}, 'float64')", "up({0}, 'float64')", "r", shapes="any"),
    _pair("T.cast({0}, 'int32')", "{0}.astype('int32')", "b", shapes="any"),
    # reductions and what is like them
    _same("{0}.sum(axis={axis})", "n", **_SUMS),
    _same("{0}.sum()", "n", **_SUMS),
    _same("{0}.mean(axis={axis})", "f", **_SUMS),
    _same("{0}.prod(axis={axis})", "f", **_SUMS, domain="abs(x) < 4"),
    _same("{0}.max(axis={axis})", "r", shapes="s", exact=True, computes=False),
    _same("{0}.min(axis={axis})", "r", shapes="s", exact=True, computes=False),
    _same("{0}.argmax(axis={axis})", "r", shapes="s", exact=True),
    _same("{0}.any(axis={axis})", "b", shapes="any"),
    _same("{0}.all(axis={axis})", "b", shapes="any"),
    _same("{0}.var(axis={axis})", "f", **_SUMS),
    _pair("T.extra_ops.cumsum({0}, axis={axis})", "np.cumsum({0}, axis={axis})", "f", **_SUMS),
    _pair("T.nnet.softmax({0})", "softmax({0})", "f2", shapes="any", folds=True),
    _pair("T.sort({0}, axis={axis})", "np.sort({0}, axis={axis})", "r", shapes="s", exact=True,
          computes=False),
    # products
    _pair("T.dot({0}, {1})", "np.dot({0}, {1})", "f2 f2", cast="result", shapes="s[1] == t[0]",
          folds=True),
    _pair("T.dot({0}, {1})", "np.dot({0}, {1})", "f2 f1", cast="result", shapes="s[1] == t[0]",
          folds=True),
    _pair("T.dot({0}, {1})", "np.dot({0}, {1})", "f1 f1", cast="result", shapes="s == t",
          folds=True),
    _pair("T.outer({0}, {1})", "np.outer({0}, {1})", "f1 f1", cast="result", shapes="any"),
    _pair("T.dot({0}, {0}.T) + T.eye({0}.shape[0], dtype={0}.dtype)",
          "np.dot({0}, {0}.T) + np.eye(len({0}), dtype={0}.dtype)", "f2", shapes="any",
          folds=True),
    _pair("matrix_inverse(T.dot({0}, {0}.T) + T.eye({0}.shape[0], dtype={0}.dtype))",
          "np.linalg.inv(np.dot({0}, {0}.T) + np.eye(len({0}), dtype={0}.dtype))", "d2",
          shapes="any", double=True, domain="abs(x) < 30"),
    # moves
    _same("{0}.T", "a", **_MOVES),
    _pair("{0}.dimshuffle({order})", "np.transpose({0}, ({order}))", "a", computes=False,
          shapes="s"),
    _pair("{0}.dimshuffle('x', {all})", "{0}[None]", "a", computes=False, shapes="s"),
    _same("{0}[{index}]", "a", computes=False, shapes="s"),
    _same("{0}[{rows}]", "a", computes=False, shapes="s and s[0]"),
    _pair("{0}.flatten()", "{0}.ravel()", "a", **_MOVES),
    _same("{0}.reshape({shape})", "a", **_MOVES),
    _pair("T.concatenate([{0}, {1}], axis={axis})", "np.concatenate([{0}, {1}], axis={axis})",
          "n n", cast="result", computes=False, shapes="s and s == t"),
    _pair("T.stack([{0}, {1}], axis=0)", "np.stack([{0}, {1}], axis=0)", "n n", cast="result",
          computes=False, shapes="s == t"),
    _pair("T.inc_subtensor({0}[{index}], {0}[{index}])", "added({0}, np.s_[{index}])", "f",
          shapes="s"),
    _pair("T.set_subtensor({0}[{rows}], {number})", "put({0}, np.s_[{rows}], {number})", "f",
          computes=False, shapes="s and s[0]"),
    _pair("T.zeros_like({0}) + {0}.shape[0]", "np.zeros_like({0}) + {0}.shape[0]", "f",
          shapes="s"),
    _pair("T.tile({0}, {tiles})", "np.tile({0}, {tiles})", "a", computes=False, shapes="s"),
    _pair("T.repeat({0}, 2, axis={axis})", "np.repeat({0}, 2, axis={axis})", "a", computes=False,
          shapes="s"),
    _same("{0}[::-1]", "a", computes=False, shapes="s"),
    # control
    _pair("ifelse(T.gt({0}.sum(), 0), {1}, {1} * 2)", "({1} if {0}.sum() > 0 else {1} * 2)", "i f",
          shapes="any"),
    _pair("theano.scan(lambda row, s: s * np.float32(.5) + row, {0}, T.zeros_like({0}[0]))[0]",
          "recurrence({0})", "f", shapes="s and s[0]", folds=True),
    _pair("theano.scan(lambda row: row.sum() + row, {0})[0]",
          "{0} + {0}.sum(axis=tuple(range(1, {0}.ndim)), keepdims=True)", "f",
          shapes="len(s) > 1", folds=True),
    _pair("T.grad((T.tanh({0}) ** 2).sum(), {0})",
          "2 * np.tanh({0}) * (1 - np.tanh({0}) ** 2)", "f", shapes="any", domain="abs(x) < 20"),
    _pair("T.grad(T.sqr({0}[{index}]).sum(), {0})", "2 * kept({0}, np.s_[{index}])", "f",
          shapes="s"),
]  # fmt: skip


# --- parameters -----------------------------------------------------------------------------------


def _index(below: Below, shape: tuple[int, ...]) -> str:
    """Return the text of an index by integers and slices that fits a shape."""
    parts = []
    for n in shape[: 1 + below(len(shape))]:
        kind = below(4)
        if kind == 0 and n:
            parts.append(str(below(2 * n) - n))
        elif kind == 1:
            parts.append(f"{below(n + 1)}:")
        elif kind == 2:
            parts.append(f"::{(-1, 2, -2, 3)[below(4)]}")
        else:
            parts.append(f":{below(n + 1)}")
    return ", ".join(parts)


def _split(below: Below, shape: tuple[int, ...]) -> str:
    """Return a shape of as many elements."""
    size = math.prod(shape)
    divisors = [k for k in range(1, size + 1) if size % k == 0] or [1]
    rows = divisors[below(len(divisors))]
    return f"({rows}, {size // rows})" if below(3) else "(-1,)"


PARAMETERS: dict[str, Callable[[Below, tuple[int, ...]], str]] = {
    "axis": lambda below, s: (
        str(below(len(s))) if s and below(3) else str(len(s) - 1 if s else None)
    ),
    "number": lambda below, s: ("2.0", "0.5", "-1.25", "3.0", "-1.0")[below(5)],
    "power": lambda below, s: ("0.5", "1.5", "3.0", "-1.0", "-2.0", "0.3")[below(6)],
    "order": lambda below, s: ", ".join(map(str, np.roll(range(len(s)), below(len(s) + 1)))) + ",",
    "all": lambda below, s: ", ".join(map(str, range(len(s)))),
    "index": _index,
    "rows": lambda below, s: str([below(2 * s[0]) - s[0] for _ in range(1 + below(4))]),
    "shape": _split,
    "tiles": lambda below, s: str(tuple(1 + below(2) for _ in s)),
}


# --- what numpy lacks -----------------------------------------------------------------------------


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return np.asarray(e / e.sum(-1, keepdims=True))


def recurrence(rows: Array) -> Array:
    state, found = np.zeros_like(rows[0]), []
    for row in rows:
        state = state * rows.dtype.type(0.5) + row
        found.append(state)
    return np.stack(found)


def put(x: Array, index: Any, value: Any) -> Array:
    x = x.copy()
    x[index] = value
    return x


def added(x: Array, index: Any) -> Array:
    return put(x, index, x[index] + x[index])


def kept(x: Array, index: Any) -> Array:
    return put(np.zeros_like(x), index, x[index])
