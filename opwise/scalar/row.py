"""Row: all that opwise knows of one scalar operation; and the algebra gradients are written in.

From a row come the op and its legacy class, the tensor function, C and CUDA text in fused kernels,
gradients, flop counts, documentation and tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from opwise.graph.variable import Constant
from opwise.scalar import dtypes

#: every row by its name, in the order of the tables
ROWS: dict[str, Row] = {}


@dataclass(frozen=True, eq=False)
class Row:
    """One scalar operation.

    name: of the instance and of the tensor function. cls: the legacy class name. nin: number of
    inputs, or -1 for any number from 1. out: rule from input dtypes to the output's. compute: rule
    for the dtype that inputs are cast to before the operation (the output's unless told). numpy:
    callable on arrays of the computing dtype, or "module:name" to import when first needed.
    c: C expression over {x}, {y}, {w} (or {0}, {1}, ...) with {T} the C type, {S} its short name,
    {f} the suffix of the math library's name; a dict gives one for each kind of dtype (b, i, u, f).
    c_support: names of C functions in csupport/scalar.h. libm: math functions that the expression
    or the C functions call. cuda: as c where it differs. grad: function of the algebra, inputs,
    output and output gradient, giving a gradient for each input (None: undefined; 0: zero). label:
    how it prints inside a Composite, if not by class name. infix: operator to print between
    operands. commutative, associative, identity: algebra. flops: floating-point operations, None
    where there is no exact count. cost: rough nanoseconds an element, to decide on threads.
    domain: interval for tests, by input. doc: a sentence.
    """

    name: str
    cls: str
    nin: int
    out: Callable
    numpy: object
    c: object
    grad: Callable | None = None
    compute: Callable | None = None
    label: str | None = None
    infix: str | None = None
    cuda: object = None
    c_support: tuple[str, ...] = ()
    libm: tuple[str, ...] = ()
    commutative: bool = False
    associative: bool = False
    identity: float | None = None
    flops: int | None = None
    cost: float = 0.3
    domain: tuple = ((-3.0, 3.0),)
    tensor_name: str | None = None
    doc: str = ""
    #: gradient is defined for discrete inputs too (their gradient is then made of zeros elsewhere)
    impl_complex: bool = True
    kinds: str = "biufc"
    extra: dict = field(default_factory=dict)

    def compute_dtype(self, in_dtypes, out_dtype):
        """Return the dtype in which the operation runs on inputs of ``in_dtypes``."""
        return self.compute(*in_dtypes) if self.compute is not None else out_dtype

    def c_expression(self, dtype, cuda=False):
        """Return the C template for a computing dtype, or that for CUDA; None if there is none."""
        text = self.cuda if cuda and self.cuda is not None else self.c
        if isinstance(text, dict):
            return text.get(dtypes.kind(dtype))
        return text if dtypes.kind(dtype) != "c" else None


def row(name, cls, nin, out, numpy, c, grad=None, **more):
    """Add a row to the table."""
    if name in ROWS:
        raise ValueError(f"there is a scalar operation {name} already")
    ROWS[name] = Row(name, cls, nin, out, numpy, c, grad, **more)


class Expression:
    """A variable in a gradient's formula: Python operators make rows of the algebra."""

    __slots__ = ("algebra", "var")

    def __init__(self, algebra, var):
        self.algebra = algebra
        self.var = var

    @property
    def dtype(self):
        return self.var.type.dtype

    def never(self, number):
        """Return whether this is a constant in which ``number`` does not occur."""
        var = self.var
        while var.owner is not None and len(var.owner.inputs) == 1 and var.owner.op.view_map:
            var = var.owner.inputs[0]  # a constant with other dimensions
        return isinstance(var, Constant) and not np.any(np.equal(var.data, number))

    def like(self, number):
        """Return ``number`` in this variable's dtype: a Python float might widen the result."""
        return np.dtype(self.dtype).type(number)

    def __add__(self, other):
        return self.algebra.add(self, other)

    def __radd__(self, other):
        return self.algebra.add(other, self)

    def __sub__(self, other):
        return self.algebra.sub(self, other)

    def __rsub__(self, other):
        return self.algebra.sub(other, self)

    def __mul__(self, other):
        return self.algebra.mul(self, other)

    def __rmul__(self, other):
        return self.algebra.mul(other, self)

    def __truediv__(self, other):
        return self.algebra.true_div(self, other)

    def __rtruediv__(self, other):
        return self.algebra.true_div(other, self)

    def __pow__(self, other):
        return self.algebra.pow(self, other)

    def __neg__(self):
        return self.algebra.neg(self)


class Algebra:
    """The functions that gradients are written in: ``F.exp(x)`` makes row ``exp`` of whatever x is.

    apply: function of a row's name and variables, which makes the Apply and returns its output.
    """

    def __init__(self, apply):
        self._apply = apply

    def __getattr__(self, name):
        if name not in ROWS:
            raise AttributeError(name)

        def make(*args):
            plain = [a.var if isinstance(a, Expression) else a for a in args]
            return Expression(self, self._apply(name, *plain))

        self.__dict__[name] = make
        return make

    def gradients(self, row_, inputs, output, output_gradient):
        """Return the gradient by each input, as variables; None where undefined, 0 where zero."""
        if row_.grad is None:
            return [None] * len(inputs)
        arguments = [Expression(self, v) for v in (*inputs, output, output_gradient)]
        result = row_.grad(self, *arguments)
        if not isinstance(result, tuple):
            result = (result,)
        return [r.var if isinstance(r, Expression) else r for r in result]
