"""Translations of elementwise Ops and their scalar operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor.scalar.basic as ps
import pytensor.scalar.math as psm
from pytensor.scalar.loop import ScalarLoop
from pytensor.tensor.elemwise import DimShuffle, Elemwise

from opwise.frontends import Translator, Untranslated
from opwise.graph.variable import Var
from opwise.loops.layout import Parts
from opwise.loops.op import Scan
from opwise.pytensor.frontend import translates
from opwise.scalar import dtypes
from opwise.scalar.op import OPS, ScalarOp
from opwise.scalar.preferences import specific_out
from opwise.scalar.spec import ROWS
from opwise.scalar.types import get_scalar_type
from opwise.tensor.dimshuffle import DimShuffle as OwnDimShuffle
from opwise.tensor.elemwise import Elemwise as OwnElemwise
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.join import vector_of
from opwise.tensor.shape import Reshape, addbroadcast, patternbroadcast, shape_i_op
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import constant

#: PyTensor's class of scalar operations -> the name of the row of opwise's table. Classes that have
#: the same name in both are added below
_ROWS: dict[type, str] = {
    ps.Sign: "sgn",
    ps.Reciprocal: "inv",
    psm.Sigmoid: "scalar_sigmoid",
    psm.Softplus: "scalar_softplus",
    psm.Owens_t: "owens_t",
}
_OF_CLASS = {row.cls: name for name, row in ROWS.items()}


def _row_of(op: Any) -> str | None:
    """Return the name of the row for a scalar operation of PyTensor; None if there is none."""
    for cls in type(op).__mro__:
        if cls in _ROWS:
            return _ROWS[cls]
        if cls.__module__ in (ps.__name__, psm.__name__) and cls.__name__ in _OF_CLASS:
            return _OF_CLASS[cls.__name__]
    return None


def applied(name: str, dtype: str, *inputs: Var) -> Var:
    """Apply a row of the scalar table, with the dtype that PyTensor gives the result."""
    if name in ("true_div", "int_div", "mod") and all(x.type.dtype == "bool" for x in inputs):
        raise Untranslated(f"{name} of booleans has no translation")
    try:
        own = ROWS[name].out(*[x.type.dtype for x in inputs])
    except TypeError as error:
        raise Untranslated(f"{name}: {error}") from None
    if own == dtype:
        return elemwise(name)(*inputs)
    op: ScalarOp = type(OPS[name])(specific_out(get_scalar_type(dtype)), name)
    return OwnElemwise(op)(*inputs)


def _log1mexp(dtype: str, x: Var) -> Var:
    """Return log(1 - exp(x)), exact near 0 and for large negative numbers."""
    x = x if x.type.dtype == dtype else cast(x, dtype)
    near = elemwise("log")(elemwise("neg")(elemwise("expm1")(x)))
    far = elemwise("log1p")(elemwise("neg")(elemwise("exp")(x)))
    is_far = elemwise("lt")(x, constant(np.asarray(np.log(0.5), dtype)))
    return elemwise("switch")(is_far, far, near)


def _polygamma(dtype: str, n: Var, x: Var) -> Var:
    """Return the derivative of order n of psi; n is a whole number."""
    n, x = [v if v.type.dtype == dtype else cast(v, dtype) for v in (n, x)]
    one, two = (constant(np.asarray(k, dtype)) for k in (1, 2))
    order = elemwise("add")(n, one)
    odd = elemwise("eq")(elemwise("mod")(n, two), one)
    size = elemwise("mul")(elemwise("gamma")(order), elemwise("zeta")(order, x))
    signed = elemwise("switch")(odd, size, elemwise("neg")(size))
    is_psi = elemwise("eq")(n, constant(np.asarray(0, dtype)))
    return elemwise("switch")(is_psi, elemwise("psi")(x), signed)


def _scaled_bessel(order: int) -> Callable[..., Var]:
    """Return what computes exp(-|x|) times the modified Bessel function of order 0 or 1."""

    def result(dtype: str, x: Var) -> Var:
        """Return it by the asymptotic series where the function itself may overflow."""
        x = x if x.type.dtype == dtype else cast(x, dtype)
        size = elemwise("abs_")(x)
        near = elemwise("mul")(elemwise("exp")(elemwise("neg")(size)), elemwise(f"i{order}")(x))
        most = constant(np.asarray(80 if dtype == "float32" else 500, dtype))
        part = elemwise("inv")(elemwise("maximum")(size, most))
        far: Var = constant(np.asarray(0, dtype))
        for term in reversed(_bessel_series(order)):
            far = far * part + constant(np.asarray(term, dtype))
        far = far * elemwise("sqrt")(part * constant(np.asarray(0.5 / np.pi, dtype)))
        far = elemwise("sgn")(x) * far if order else far
        return elemwise("switch")(elemwise("lt")(size, most), near, far)

    return result


def _bessel_series(order: int) -> list[float]:
    """Return the coefficients of the asymptotic series (Abramowitz and Stegun, 9.7.1) in 1 / x."""
    terms = [1.0]
    for k in range(1, 5):
        terms.append(-terms[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return terms


#: scalar operations that several rows compute, by their class or by the function of scipy that they
#: name, as operations of PyMC do: (dtype of the result, operands) -> the result
_SEVERAL: dict[type | str, Callable[..., Var]] = {
    psm.Log1mexp: _log1mexp,
    psm.PolyGamma: _polygamma,
    "scipy.special.i0e": _scaled_bessel(0),
    "scipy.special.i1e": _scaled_bessel(1),
}


def scalar_results(op: Any, out_dtypes: Sequence[str], inputs: Sequence[Var]) -> list[Var]:
    """Return the results of a scalar operation of PyTensor on tensors of one rank."""
    if isinstance(op, ps.Composite):
        return _inner(op, inputs)
    if isinstance(op, ScalarLoop):
        return _repeated(op, out_dtypes, inputs)
    (dtype,) = out_dtypes
    if isinstance(op, ps.Cast):
        (x,) = inputs
        if x.type.dtype in dtypes.COMPLEX and dtype not in dtypes.COMPLEX:
            raise Untranslated("a cast of complex numbers to real ones has no translation")
        return [cast(x, dtype)]
    for key in (*type(op).__mro__, (getattr(op, "nfunc_spec", None) or ("",))[0]):
        if key in _SEVERAL:
            return [_SEVERAL[key](dtype, *inputs)]
    name = _row_of(op)
    if name is None:
        raise Untranslated(f"{type(op).__name__} is not among opwise's scalar operations")
    return [applied(name, dtype, *inputs)]


def _inner(op: Any, inputs: Sequence[Var]) -> list[Var]:
    """Return the results of the graph of numbers inside a scalar operation, on tensors."""
    values: dict[Any, Var] = dict(zip(op.fgraph.inputs, inputs, strict=True))

    def value(var: Any) -> Var:
        if var not in values:
            values[var] = constant(np.asarray(var.data, dtype=var.type.dtype))
        return values[var]

    for node in op.fgraph.toposort():
        results = scalar_results(
            node.op, [out.type.dtype for out in node.outputs], [value(x) for x in node.inputs]
        )
        values.update(zip(node.outputs, results, strict=True))
    return [value(var) for var in op.fgraph.outputs]


_NO_LENGTHS = constant(np.zeros(0, np.int64))


def _repeated(op: Any, out_dtypes: Sequence[str], inputs: Sequence[Var]) -> list[Var]:
    """Return the results of a loop over numbers, element by element.

    Each element ends its own loop: once its condition holds, or after its number of steps.
    """
    varies = [not all(x.type.broadcastable) for x in inputs]
    if not any(varies):
        found = _of_numbers(op, out_dtypes, [Reshape(0)(x, _NO_LENGTHS) for x in inputs])
        return [x.dimshuffle(*["x"] * inputs[0].type.ndim) for x in found]
    whole = elemwise("add")(*[elemwise("second")(x, constant(np.int8(0))) for x in inputs])
    lengths = vector_of([shape_i_op(d)(whole) for d in range(whole.type.ndim)])
    step = [_number(x.type.dtype) for x in inputs]
    rows, same = [], []
    for x, var, each in zip(inputs, step, varies, strict=True):
        if each:
            flat = Reshape(1)(elemwise("second")(whole, x), constant(np.array([-1])))
            rows.append((var, flat))
        else:
            same.append((var, Reshape(0)(x, _NO_LENGTHS)))
    loop = Scan.of(
        Parts(sequences=[var for var, _ in rows], constants=[var for var, _ in same]),
        Parts(results=_of_numbers(op, out_dtypes, step)), [], name=op.name,
    )  # fmt: skip
    given = Parts(sequences=[x for _, x in rows], constants=[x for _, x in same])
    results = loop.repeat(shape_i_op(0)(rows[0][1]), given).results
    return [
        patternbroadcast(Reshape(whole.type.ndim)(x, lengths), whole.type.broadcastable)
        for x in results
    ]


def _number(dtype: str) -> Var:
    return tensor_type(dtype, ()).make_variable()


def _of_numbers(op: Any, out_dtypes: Sequence[str], inputs: Sequence[Var]) -> list[Var]:
    """Return the results of a loop over numbers for one element."""
    limit, *operands = inputs
    n_states = len(out_dtypes) - op.is_while
    limit = cast(elemwise("maximum")(limit, constant(np.int8(0))), "int64")
    first, fixed_given = operands[:n_states], operands[n_states:]
    states = [_number(x.type.dtype) for x in first]
    fixed = [_number(x.type.dtype) for x in fixed_given]
    new = _inner(op, [*states, *fixed])
    condition = []
    if op.is_while:  # the condition is said to hold if there was no step
        condition = [new[-1]]
        states.append(_number("bool"))
        first = [*first, elemwise("le")(limit, constant(np.int64(0)))]
    new = [x if x.type == s.type else cast(x, s.type.dtype)
           for x, s in zip(new, states, strict=True)]  # fmt: skip
    loop = Scan.of(
        Parts(states=[[s] for s in states], constants=fixed),
        Parts(states=[[x] for x in new], condition=condition),
        [[1]] * len(states), dict.fromkeys(range(len(states)), 1), name=op.name,
    )  # fmt: skip
    given = Parts(states=[[x.dimshuffle("x")] for x in first], constants=fixed_given)
    return [rows[-1] for (rows,) in loop.repeat(limit, given).states]


@translates(Elemwise)
def _elemwise(t: Translator, node: Any, *inputs: Var) -> list[Var]:
    return scalar_results(node.op.scalar_op, [out.type.dtype for out in node.outputs], inputs)


@translates(ps.ScalarOp)
def _scalar(t: Translator, node: Any, *inputs: Var) -> list[Var]:
    return scalar_results(node.op, [out.type.dtype for out in node.outputs], inputs)


@translates(DimShuffle)
def _dimshuffle(t: Translator, node: Any, x: Var) -> Var:
    order = node.op.new_order
    dropped = [d for d in range(x.type.ndim) if d not in order and not x.type.broadcastable[d]]
    if dropped:
        x = addbroadcast(x, *dropped)
    return OwnDimShuffle(x.type.broadcastable, order)(x)
