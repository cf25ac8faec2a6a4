"""Scalars: their types, the table of scalar operations, and Composite, which fuses several.

These are the names of ``theano.scalar``.
"""

from opwise.errors import ComplexError
from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.scalar import dtypes as _dtypes
from opwise.scalar.composite import Composite
from opwise.scalar.dtypes import upcast
from opwise.scalar.op import (
    CLASSES,
    OPS,
    BinaryBitOp,
    BinaryScalarOp,
    Cast,
    LogicalComparison,
    ScalarOp,
    UnaryBitOp,
    UnaryScalarOp,
    cast,
    cast_op,
    mod_check,  # noqa: F401
    scalar_maximum,
    scalar_minimum,
)
from opwise.scalar.preferences import (
    float_out,
    int_out,
    same_out,
    same_out_float_only,
    same_out_nocomplex,
    specific_out,
    transfer_type,
    upcast_out,
    upcast_out_no_complex,
    upgrade_to_float,
    upgrade_to_float64,
    upgrade_to_float_no_complex,
)
from opwise.scalar.types import (
    Scalar,
    as_scalar,
    autocast_float_as,
    constant,
    get_scalar_type,
)
from opwise.scalar.variable import ScalarConstant, ScalarVariable

globals().update(CLASSES)
globals().update(OPS)
#: the types, by dtype: ``theano.scalar.float64('x')`` makes a variable
globals().update({dtype: get_scalar_type(dtype) for dtype in _dtypes.ALL})
globals().update({f"convert_to_{dtype}": cast_op(dtype) for dtype in _dtypes.ALL})
int_types = [get_scalar_type(d) for d in _dtypes.SIGNED]
uint_types = [get_scalar_type(d) for d in _dtypes.UNSIGNED]
float_types = [get_scalar_type(d) for d in _dtypes.FLOATS]
complex_types = [get_scalar_type(d) for d in _dtypes.COMPLEX]
discrete_types = [get_scalar_type(d) for d in _dtypes.DISCRETE]
continuous_types = float_types + complex_types
all_types = discrete_types + continuous_types
discrete_dtypes = list(_dtypes.DISCRETE)
continuous_dtypes = list(_dtypes.CONTINUOUS)
float_dtypes = list(_dtypes.FLOATS)

__all__ = [
    *CLASSES,
    *OPS,
    *_dtypes.ALL,
    "Apply",
    "BinaryBitOp",
    "BinaryScalarOp",
    "Cast",
    "ComplexError",
    "Composite",
    "LogicalComparison",
    "Op",
    "Scalar",
    "ScalarConstant",
    "ScalarOp",
    "ScalarVariable",
    "UnaryBitOp",
    "UnaryScalarOp",
    "as_scalar",
    "autocast_float_as",
    "cast",
    "constant",
    "float_out",
    "get_scalar_type",
    "int_out",
    "same_out",
    "same_out_float_only",
    "same_out_nocomplex",
    "scalar_maximum",
    "scalar_minimum",
    "specific_out",
    "transfer_type",
    "upcast",
    "upcast_out",
    "upcast_out_no_complex",
    "upgrade_to_float",
    "upgrade_to_float64",
    "upgrade_to_float_no_complex",
]
