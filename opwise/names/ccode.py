"""Theano's functions that register C code of a type for an Op; opwise keeps the code and runs none.

opwise runs these Ops for every type: they only make views and copies, or read shapes.
"""

from __future__ import annotations

import sysconfig
from typing import Any


def get_lib_extension() -> str:
    """Return how the names of extension modules end, without a dot."""
    return sysconfig.get_config_var("EXT_SUFFIX").rpartition(".")[2]


#: the code that programs have registered: {(name of the Op, class of the type): arguments}
registered: dict[tuple[str, type], tuple[Any, ...]] = {}

#: types to which loops may add a dimension
expandable_types: tuple[type, ...] = ()


def _registrar(op: str, function: str) -> Any:
    def register(typ: type, code: Any, *arguments: Any, **keywords: Any) -> None:
        registered[op, typ] = (code, *arguments, *keywords.values())

    register.__name__ = register.__qualname__ = function
    register.__doc__ = f"Keep C code of ``typ`` for {op}; opwise does not run it."
    return register


register_view_op_c_code = _registrar("ViewOp", "register_view_op_c_code")
register_deep_copy_op_c_code = _registrar("DeepCopyOp", "register_deep_copy_op_c_code")
register_shape_c_code = _registrar("Shape", "register_shape_c_code")
register_shape_i_c_code = _registrar("Shape_i", "register_shape_i_c_code")
register_rebroadcast_c_code = _registrar("Rebroadcast", "register_rebroadcast_c_code")
register_specify_shape_c_code = _registrar("SpecifyShape", "register_specify_shape_c_code")
