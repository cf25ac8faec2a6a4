"""Scalar Ops, made from the rows of the scalar table with their legacy class names; and Cast."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence, Set
from typing import Any, TypeAlias

import numpy as np

from opwise.errors import ComplexError, MethodNotDefined
from opwise.graph.apply import Apply
from opwise.graph.op import Op, Storage, Values
from opwise.graph.variable import Var
from opwise.scalar import casting, dtypes, table  # noqa: F401  (the tables fill ROWS)
from opwise.scalar.preferences import specific_out
from opwise.scalar.spec import ROWS, Algebra, Array, ScalarSpec
from opwise.scalar.types import Scalar, as_scalar, constant, get_scalar_type

#: function of a list of arrays that broadcast to the arrays of the results
Computation: TypeAlias = Callable[[Sequence[Array]], list[np.ndarray]]


class ScalarOp(Op):
    """An operation on numbers. Those of the scalar table have a ``row``; users' subclasses may not.

    A subclass without a row defines ``impl`` (on Python numbers) and, for gradients, ``grad``;
    ``output_types_preference`` is a function from the scalar types of the inputs to a list of those
    of the outputs.
    """

    row: ScalarSpec | None = None
    #: the row of the base class whose ``impl`` or ``c_code`` a subclass replaces
    base_row: ScalarSpec | None = None
    nin = -1
    nout = 1
    output_types_preference: Callable[..., Sequence[Scalar]] | None = None
    #: whether the order of two operands, or of operations, does not matter; as in the row
    commutative = associative = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let a subclass with an ``impl`` or ``c_code`` of its own be an operation without a row.

        It keeps the gradient of its base class unless it defines one.
        """
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        if cls.row is not None and "row" not in own and ("impl" in own or "c_code" in own):
            cls.base_row, cls.row = cls.row, None

    def __init__(
        self,
        output_types_preference: Callable[..., Sequence[Scalar]] | None = None,
        name: str | None = None,
    ) -> None:
        self.output_types_preference = output_types_preference
        self.name = name

    @property
    def plain_row(self) -> ScalarSpec | None:
        """The row, for rules; None if a user chose the output's dtype, which they would change."""
        return self.row if self.output_types_preference is None else None

    def make_node(self, *inputs: Any) -> Apply:
        operands = [as_scalar(x) for x in inputs]
        self.check_count(len(operands))
        out = self.output_dtypes([x.type.dtype for x in operands])
        return Apply(self, operands, [get_scalar_type(d).make_variable() for d in out])

    def check_count(self, n: int) -> None:
        """Raise TypeError unless the operation takes ``n`` inputs."""
        if self.nin >= 0 and n != self.nin:
            raise TypeError(f"Wrong number of inputs for {self} (got {n}, expected {self.nin})")
        if n == 0:
            raise TypeError(f"{self} needs at least one input")

    def output_dtypes(self, in_dtypes: Sequence[str]) -> list[str]:
        """Return the dtypes of the outputs; raise TypeError for dtypes that are not supported."""
        if self.output_types_preference is not None:
            types = self.output_types_preference(*map(get_scalar_type, in_dtypes))
            return [t.dtype for t in types]
        row = self.row or self.base_row
        if row is not None:
            return [row.out(*in_dtypes)]
        return [t.dtype for t in self.output_types(list(map(get_scalar_type, in_dtypes)))]

    def output_types(self, types: Sequence[Scalar]) -> Sequence[Scalar]:
        """Return the scalar types of the outputs; a subclass without preference overrides it."""
        return [get_scalar_type(dtypes.upcast(*(t.dtype for t in types)))]

    def impl(self, *inputs: Any) -> Any:
        """Compute on Python numbers."""
        if self.base_row is not None:
            return OPS[self.base_row.name].impl(*inputs)
        if self.row is None:
            raise MethodNotDefined("impl", type(self), type(self).__name__)
        arrays = [np.asarray(x) for x in inputs]
        out = self.output_dtypes([a.dtype.name for a in arrays])
        return self.on_arrays(arrays, out)[0][()]

    def on_arrays(self, arrays: Sequence[Array], out_dtypes: Sequence[str]) -> list[np.ndarray]:
        """Compute elementwise on numpy arrays that broadcast; return a list of arrays."""
        given = [dtypes.name_of(a.dtype) for a in arrays]
        return self.computation(given, out_dtypes)(arrays)

    def computation(self, in_dtypes: Sequence[str], out_dtypes: Sequence[str]) -> Computation:
        """Return ``on_arrays`` for arrays of known dtypes: a function of a list of arrays."""
        row = self.row
        if row is None:
            return lambda arrays: self._one_by_one(arrays, out_dtypes)
        out = out_dtypes[0]
        computing = row.compute_dtype(in_dtypes, out)
        others = [i for i, d in enumerate(in_dtypes) if i >= row.n_uncast and d != computing]
        function, dtype = numpy_callable(row), np.dtype(out)

        def compute(arrays: Sequence[Array]) -> list[np.ndarray]:
            if others:
                arrays = list(arrays)
                for i in others:
                    arrays[i] = casting.cast(arrays[i], computing)
            result = function(*arrays)
            if type(result) is not np.ndarray:
                result = np.asarray(result)
            return [result if result.dtype == dtype else casting.cast(result, dtype)]

        return compute

    def _one_by_one(self, arrays: Sequence[Array], out_dtypes: Sequence[str]) -> list[np.ndarray]:
        results = np.frompyfunc(self.impl, len(arrays), self.nout)(*arrays)
        results = results if self.nout > 1 else (results,)
        return [casting.cast(np.asarray(r), d) for r, d in zip(results, out_dtypes, strict=True)]

    def element_flops(self, n_inputs: int) -> int | None:
        """Return the floating-point operations for one element; None if there is no exact count."""
        if self.row is None or self.row.flops is None:
            return None
        return self.row.flops * (n_inputs - 1 if self.row.nin < 0 else 1)

    def has_cost(self) -> bool:
        """Return whether ``element_cost`` is of the table: a user's operation may cost anything."""
        return self.row is not None

    def element_cost(self, n_inputs: int) -> float:
        """Return roughly how many nanoseconds one element takes (1 without a row)."""
        if self.row is None:
            return 1.0
        if self.row.flops == 0:  # copies
            return 0.1
        return self.row.cost * (max(1, n_inputs - 1) if self.row.nin < 0 else 1)

    def unread(self) -> Set[int]:
        """Return the positions of the inputs that a loop over elements need not read."""
        return {0} if self.row is not None and self.row.ignores_first else set()

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        results = self.impl(*inputs)
        if self.nout == 1:
            results = (results,)
        for cell, result, out in zip(output_storage, results, node.outputs, strict=True):
            cell[0] = np.dtype(out.type.dtype).type(result)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        if self.row is None and self.base_row is None:
            raise MethodNotDefined("grad", type(self), str(self))
        return self.L_op(inputs, [self(*inputs)], output_gradients)

    def L_op(
        self, inputs: Sequence[Var], outputs: Sequence[Var], output_gradients: Sequence[Var]
    ) -> Sequence[Var]:
        row = self.row or self.base_row
        own_grad = type(self).grad is not ScalarOp.grad
        if row is None or row.grad is None or (self.row is None and own_grad):
            return self.grad(inputs, output_gradients)
        results = SCALAR_ALGEBRA.gradients(row, inputs, outputs[0], output_gradients[0])
        zero = constant(0.0)
        return [zero if isinstance(r, int) else r for r in results]

    # ops of users are equal if their classes, output rules and ``__props__`` are
    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((type(self), self._identity()))

    def _identity(self) -> tuple[Any, ...]:
        props = self._props() if hasattr(self, "__props__") else ()
        return getattr(self, "output_types_preference", None), props

    def __str__(self) -> str:
        name: str | None = getattr(self, "name", None)
        if name:
            return name
        preference = getattr(self, "output_types_preference", None)
        if preference is not None and hasattr(preference, "__name__"):
            return f"{type(self).__name__}{{{preference.__name__}}}"
        return type(self).__name__


class UnaryScalarOp(ScalarOp):
    """Base of a user's scalar op of one input."""

    nin = 1


class BinaryScalarOp(ScalarOp):
    """Base of a user's scalar op of two inputs."""

    nin = 2


class LogicalComparison(BinaryScalarOp):
    """Base of comparisons."""


class UnaryBitOp(UnaryScalarOp):
    """Base of bit operations of one input."""


class BinaryBitOp(BinaryScalarOp):
    """Base of bit operations of two inputs."""


class Cast(UnaryScalarOp):
    """Conversion of a number to dtype ``o_type.dtype``."""

    def __init__(self, o_type: Scalar, name: str | None = None) -> None:
        super().__init__(name=name)
        self.o_type = o_type if not isinstance(o_type, str) else get_scalar_type(o_type)
        self.output_types_preference = specific_out(self.o_type)

    def element_flops(self, n_inputs: int) -> int | None:
        return 0

    def output_dtypes(self, in_dtypes: Sequence[str]) -> list[str]:
        if in_dtypes[0] in dtypes.COMPLEX and self.o_type.dtype not in dtypes.COMPLEX:
            raise TypeError(
                "Casting from complex to real is ambiguous: consider real(), imag(), "
                "angle() or abs()"
            )
        return [self.o_type.dtype]

    def impl(self, x: Any) -> Any:
        with np.errstate(all="ignore"):
            return casting.cast(np.asarray(x), self.o_type.dtype)[()]

    def computation(self, in_dtypes: Sequence[str], out_dtypes: Sequence[str]) -> Computation:
        dtype = np.dtype(out_dtypes[0])
        return lambda arrays: [casting.cast(arrays[0], dtype)]

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (x,), (gz,) = inputs, output_gradients
        if self.o_type.dtype not in dtypes.CONTINUOUS:
            return [constant(0.0)]
        return [Cast(x.type)(gz) if x.type.dtype in dtypes.CONTINUOUS else gz]

    def L_op(
        self, inputs: Sequence[Var], outputs: Sequence[Var], output_gradients: Sequence[Var]
    ) -> Sequence[Var]:
        return self.grad(inputs, output_gradients)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.o_type == other.o_type

    def __hash__(self) -> int:
        return hash((Cast, self.o_type))

    def __str__(self) -> str:
        return self.name or f"Cast{{{self.o_type.dtype}}}"


_callables: dict[str, Callable[..., Any]] = {}


def numpy_callable(row: ScalarSpec) -> Callable[..., Any]:
    """Return a row's function on arrays, importing what it names when first needed."""
    found = _callables.get(row.name)
    if found is None:
        found = _callables[row.name] = _imported(row.numpy)
    return found


def _imported(function: Callable[..., Any] | str) -> Callable[..., Any]:
    if isinstance(function, str):
        module, name = function.split(":")
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return found
    return function


_BASES = {1: UnaryScalarOp, 2: BinaryScalarOp}
#: what leaves the other operand as it is
_IDENTITIES = {"add": 0, "mul": 1, "or_": 0, "xor": 0, "and_": -1}
#: the legacy classes by name, and the ops by their rows' names
CLASSES: dict[str, type] = {}
OPS: dict[str, ScalarOp] = {}


def _define(row: ScalarSpec) -> None:
    base = LogicalComparison if row.compute is dtypes.promote else _BASES.get(row.nin, ScalarOp)
    traits: dict[str, Any] = {"row": row, "nin": row.nin, "__doc__": row.doc}
    traits.update(commutative=row.commutative, associative=row.associative)
    if row.name in _IDENTITIES:
        traits["identity"] = _IDENTITIES[row.name]
    cls = type(row.cls, (base,), traits)
    cls.__module__ = __name__
    CLASSES[row.cls] = globals()[row.cls] = cls
    OPS[row.name] = cls(name=row.label)


def add_missing() -> None:
    """Make the ops of rows that were added since the last call."""
    for row in ROWS.values():
        if row.name not in OPS:
            _define(row)


add_missing()
SCALAR_ALGEBRA = Algebra(lambda name, *args: OPS[name](*args))

#: legacy names that differ from those of the rows
globals().update(OPS)
scalar_maximum = OPS["maximum"]
scalar_minimum = OPS["minimum"]

_CASTS = {d: Cast(get_scalar_type(d), name=None) for d in dtypes.ALL}


def cast(x: Any, dtype: str) -> Any:
    """Return scalar variable ``x`` as ``dtype``; x itself if it has that dtype."""
    x = as_scalar(x)
    return x if x.type.dtype == dtype else _CASTS[dtype](x)


def cast_op(dtype: str) -> Cast:
    """Return the scalar op that casts to ``dtype``."""
    return _CASTS[dtype]


def mod_check(x: Any, y: Any) -> Any:
    """Return x % y; ComplexError for complex numbers, which have no remainder."""
    x, y = as_scalar(x), as_scalar(y)
    refuse_complex_mod(x.dtype, y.dtype)
    return OPS["mod"](x, y)


def refuse_complex_mod(*operand_dtypes: str) -> None:
    """Raise ComplexError if an operand of ``%`` is complex."""
    if any(each in dtypes.COMPLEX for each in operand_dtypes):
        raise ComplexError(
            f"% has no meaning for complex numbers, got {' and '.join(operand_dtypes)}: take "
            "T.real, T.imag or abs first"
        )
