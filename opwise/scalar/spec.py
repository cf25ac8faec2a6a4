"""The rows of the scalar table, and the algebra in which their gradients are written.

From a row come the op and its legacy class, the tensor function, C and CUDA text in fused kernels,
gradients, flop counts, documentation and tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from opwise.graph.variable import Constant, Var
from opwise.scalar import dtypes

#: name -> row, in the order of definition
ROWS: dict[str, ScalarSpec] = {}

#: a text, one for each kind of dtype, or None if the operation has none
CText: TypeAlias = str | dict[str, str] | None
#: an array or a number of numpy; checkers of types do not know what its functions return
Array: TypeAlias = Any
#: a dtype of each kind -> the kind, in docstrings
_KINDS = {
    "bool": "bool", "int32": "signed integers", "uint32": "unsigned integers", "float32": "floats",
    "complex64": "complex numbers",
}  # fmt: skip
#: an operand in the formula of a gradient
Operand: TypeAlias = "Expression | float | np.generic"
#: see ``ScalarSpec.grad``
Gradient: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class ScalarSpec:
    """One scalar operation: a row of the scalar table."""

    #: the name of the instance, and of the tensor function unless ``tensor_name`` is given
    name: str
    #: the legacy class name
    cls: str
    #: the number of inputs; -1: any number from 1
    nin: int
    #: (dtype of each input) -> dtype of the output; raises TypeError if it is not defined for them
    out: Callable[..., str]
    #: function of arrays of the computing dtype, or "module:name" to import it when first needed
    numpy: Callable[..., Any] | str
    #: C expression of {x}, {y}, {w} (or {0}, {1}, ...), with {T} the C type, {S} its short name and
    #: {f} the suffix of the math library's names; a dict: by the kind of dtype (b, i, u, f)
    c: CText
    #: (algebra, inputs, output, output gradient) -> a gradient for each input (None: undefined,
    #: 0: zero); None if the operation has no gradient
    grad: Gradient | None = None
    #: (dtype of each input) -> the dtype to compute in, to which inputs are cast (default: out's)
    compute: Callable[..., str] | None = None
    #: how it prints inside a Composite (default: the class name)
    label: str | None = None
    #: the operator that is printed between operands
    infix: str | None = None
    #: C expression of complex operands, which are structs with the parts r and i; {Z} is the C type
    #: of its value
    complex_c: str | None = None
    #: as ``c_support`` and ``libm``, of ``complex_c``
    complex_support: tuple[str, ...] = ()
    complex_libm: tuple[str, ...] = ()
    #: whether the result is complex for real operands
    makes_complex: bool = False
    #: whether the result for operands of float16 needs no rounding
    exact: bool = False
    #: by dtype, C expression for one number at a time: it may branch, which vectors cannot
    alone: dict[str, str] = field(default_factory=dict)
    #: CUDA expression, as ``c`` (default: the same)
    cuda: CText = None
    #: functions of ``csupport/`` that the expression calls
    c_support: tuple[str, ...] = ()
    #: math functions that the expression, or a function of ``c_support``, calls; also those of
    #: ``borrowed.BORROWED``
    libm: tuple[str, ...] = ()
    #: x op y = y op x
    commutative: bool = False
    #: (x op y) op z = x op (y op z)
    associative: bool = False
    #: the floating-point operations for one element; None if there is no exact count
    flops: int | None = None
    #: roughly how many nanoseconds one element takes, to decide on threads
    cost: float = 0.3
    #: the kinds of dtypes for which it is defined: bool, signed, unsigned, float, complex
    kinds: str = "biufc"
    #: the interval of test values for each input
    domain: tuple[tuple[float, float], ...] = ((-3.0, 3.0),)
    #: the name of the tensor function, if it differs from ``name``
    tensor_name: str | None = None
    #: the docstring of the class and of the tensor function
    doc: str = ""
    #: the first input is a condition: it is true or false, and not cast to the computing dtype
    first_is_condition: bool = False
    #: only the shape of the first input matters
    ignores_first: bool = False

    @property
    def n_uncast(self) -> int:
        """How many inputs, from the first, are not cast to the computing dtype."""
        return 1 if self.first_is_condition or self.ignores_first else 0

    def compute_dtype(self, in_dtypes: Sequence[str], out_dtype: str) -> str:
        """Return the dtype in which the operation runs on inputs of ``in_dtypes``.

        It is that of the output, unless the output's dtype was chosen by a user and cannot hold the
        result: then the operation runs in its own dtype, and the result is cast.
        """
        if self.compute is not None:
            return self.compute(*in_dtypes)
        try:
            own = self.out(*in_dtypes)
        except TypeError:  # the user chose the output's dtype for inputs that the row does not take
            return out_dtype
        if own in dtypes.CONTINUOUS and all(d in dtypes.DISCRETE for d in in_dtypes):
            holds = out_dtype in dtypes.CONTINUOUS  # any of them: integers have no precision
        else:
            holds = dtypes.promote(out_dtype, own) == out_dtype
        return out_dtype if holds else own

    def described(self) -> str:
        """Return the docstring of the tensor function: ``doc``, the operands and the result."""
        names = [name for dtype, name in _KINDS.items() if self._takes(dtype)]
        text = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        if self.nin == 1:
            operands = "Elementwise."
        else:
            operands = "Elementwise; operands broadcast along dimensions declared broadcastable."
        errors = "" if len(names) == len(_KINDS) else "; TypeError for others"
        rule = (self.out.__doc__ or "").partition("\n")[0]
        result = f"\ndtype of the result: {rule[0].lower()}{rule[1:]}" if rule else ""
        return f"{self.doc}\n\n{operands}\nTakes {text}{errors}.{result}"

    def _takes(self, dtype: str) -> bool:
        """Return whether operands may have a dtype."""
        try:
            self.out(*[dtype] * (2 if self.nin < 0 else self.nin))
        except TypeError:
            return False
        return True

    def c_expression(self, dtype: str, cuda: bool = False, alone: bool = False) -> str | None:
        """Return the C template for a computing dtype, or that for CUDA; None if there is none.

        alone: that for one number at a time.
        """
        if alone and dtype in self.alone:
            return self.alone[dtype]
        if dtypes.kind(dtype) == "c":
            return None if cuda else self.complex_c
        if cuda and self.makes_complex:
            return None
        text = self.cuda if cuda and self.cuda is not None else self.c
        return text.get(dtypes.kind(dtype)) if isinstance(text, dict) else text


def row(
    name: str,
    cls: str,
    nin: int,
    out: Callable[..., str],
    numpy: Callable[..., Any] | str,
    c: CText,
    grad: Gradient | None = None,
    **more: Any,
) -> None:
    """Add a row to the table."""
    if name in ROWS:
        raise ValueError(f"there is a scalar operation {name} already")
    ROWS[name] = ScalarSpec(name, cls, nin, out, numpy, c, grad, **more)


class Expression:
    """A variable in the formula of a gradient; Python's operators apply rows of the table."""

    __slots__ = ("algebra", "var")

    def __init__(self, algebra: Algebra, var: Var) -> None:
        self.algebra = algebra
        self.var = var

    @property
    def dtype(self) -> str:
        dtype: str = self.var.type.dtype
        return dtype

    def never(self, number: int) -> bool:
        """Return whether this is a constant that does not contain ``number``."""
        var = self.var
        while var.owner is not None and len(var.owner.inputs) == 1 and var.owner.op.view_map:
            var = var.owner.inputs[0]  # a reshaped constant
        return isinstance(var, Constant) and not np.any(np.equal(var.data, number))

    def like(self, number: float) -> Array:
        """Return ``number`` in this variable's dtype: a Python float might widen the result."""
        return np.dtype(self.dtype).type(number)

    def __add__(self, other: Operand) -> Expression:
        return self.algebra.add(self, other)

    def __radd__(self, other: Operand) -> Expression:
        return self.algebra.add(other, self)

    def __sub__(self, other: Operand) -> Expression:
        return self.algebra.sub(self, other)

    def __rsub__(self, other: Operand) -> Expression:
        return self.algebra.sub(other, self)

    def __mul__(self, other: Operand) -> Expression:
        return self.algebra.mul(self, other)

    def __rmul__(self, other: Operand) -> Expression:
        return self.algebra.mul(other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return self.algebra.true_div(self, other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return self.algebra.true_div(other, self)

    def __pow__(self, other: Operand) -> Expression:
        return self.algebra.pow(self, other)

    def __neg__(self) -> Expression:
        return self.algebra.neg(self)


class Algebra:
    """The functions in formulas of gradients: ``F.exp(x)`` applies row ``exp``.

    apply: function of a row's name and variables that makes an Apply and returns its output.
    """

    def __init__(self, apply: Callable[..., Var]) -> None:
        self._apply = apply

    def __getattr__(self, name: str) -> Callable[..., Expression]:
        if name not in ROWS:
            raise AttributeError(name)

        def make(*args: Operand) -> Expression:
            plain = [a.var if isinstance(a, Expression) else a for a in args]
            return Expression(self, self._apply(name, *plain))

        self.__dict__[name] = make
        return make

    def gradients(
        self, row_: ScalarSpec, inputs: Sequence[Var], output: Var, output_gradient: Var
    ) -> list[Var]:
        """Return the gradient by each input, as variables; None where undefined, 0 where zero."""
        if row_.grad is None:
            return [None] * len(inputs)
        arguments = [Expression(self, v) for v in (*inputs, output, output_gradient)]
        result = row_.grad(self, *arguments)
        if not isinstance(result, tuple):
            result = (result,)
        return [r.var if isinstance(r, Expression) else r for r in result]
