"""The legacy C++ interface of the type Scalar: values are C numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwise.graph.clinker import CLinkerType

_NAMES = {"bool": "Bool", "float": "Float", "complex": "Complex", "int": "Int", "uint": "UInt"}


def c_type(dtype: str) -> str:
    """Return the C++ type of a dtype in code of users: npy_float64, or theano_complex128."""
    return f"{'theano' if dtype.startswith('complex') else 'npy'}_{dtype}"


class NumpyInterface(CLinkerType):
    """The methods that types of numbers and of arrays have in common: they need numpy alone."""

    dtype: str

    def c_element_type(self) -> str:
        return c_type(self.dtype)

    def c_header_dirs(self) -> list[str]:
        return []

    def c_libraries(self, c_compiler: Any = None) -> list[str]:
        return []

    def c_lib_dirs(self) -> list[str]:
        return []

    def c_compile_args(self, c_compiler: Any = None) -> list[str]:
        return []


class ScalarInterface(NumpyInterface):
    """The methods of Scalar that return C++ text."""

    def dtype_specs(self) -> tuple[Any, str, str]:
        """Return (numpy type, C type, name in numpy's macros for scalars, as 'Float64')."""
        kind = self.dtype.rstrip("0123456789")
        return np.dtype(self.dtype).type, c_type(self.dtype), _NAMES[kind] + self.dtype[len(kind) :]

    def c_is_simple(self) -> bool:
        return True

    def c_headers(self, c_compiler: Any = None) -> list[str]:
        return ["<math.h>", "<numpy/arrayobject.h>", "<numpy/arrayscalars.h>"]

    def c_support_code(self) -> str:
        return ""

    def c_init_code(self) -> list[str]:
        return ["import_array();"]

    def c_code_cache_version(self) -> tuple[Any, ...]:
        return (1,)

    def c_literal(self, data: Any) -> str:
        if self.dtype.startswith("complex"):
            raise NotImplementedError("No literal for complex values.")
        return str(int(data)) if self.dtype == "bool" else str(data)

    def c_declare(self, name: str, sub: Any, check_input: bool = True) -> str:
        typedef = f"typedef {c_type(self.dtype)} dtype_{name};\n" if check_input else ""
        return f"{typedef}{c_type(self.dtype)} {name};\n"

    def c_init(self, name: str, sub: Any) -> str:
        return f"{name} = 0;\n"

    def c_extract(self, name: str, sub: Any, check_input: bool = True) -> str:
        check = (
            f"if (!PyObject_TypeCheck(py_{name}, &Py{self.dtype_specs()[2]}ArrType_Type)) {{\n"
            f'    PyErr_SetString(PyExc_ValueError, "Scalar check failed ({self.dtype})");\n'
            f"    {sub['fail']}\n}}\n"
        )
        return f"{check if check_input else ''}PyArray_ScalarAsCtype(py_{name}, &{name});\n"

    def c_sync(self, name: str, sub: Any) -> str:
        typenum = f"NPY_{self.dtype.upper()}"
        return (
            f"Py_XDECREF(py_{name});\n"
            f"{{ PyArray_Descr *descr = PyArray_DescrFromType({typenum});\n"
            f"py_{name} = PyArray_Scalar(&{name}, descr, NULL);\nPy_DECREF(descr); }}\n"
            f"if (!py_{name}) {{\n    Py_INCREF(Py_None);\n    py_{name} = Py_None;\n"
            f"    {sub['fail']}\n}}\n"
        )

    def c_cleanup(self, name: str, sub: Any) -> str:
        return ""
