"""The legacy C++ interface of TensorType: values are ``PyArrayObject *``, or NULL for no value."""

from __future__ import annotations

from typing import Any

from opwise.scalar.cinterface import NumpyInterface, c_type
from opwise.scalar.types import get_scalar_type


class TensorInterface(NumpyInterface):
    """The methods of TensorType that return C++ text."""

    def dtype_specs(self) -> tuple[Any, str, str]:
        """Return (Python type, C type of an element, numpy's number of the type as a macro)."""
        kind = self.dtype.rstrip("0123456789")
        python: Any = {"bool": bool, "float": float, "complex": complex}.get(kind, int)
        return python, c_type(self.dtype), f"NPY_{self.dtype.upper()}"

    def c_headers(self, c_compiler: Any = None) -> list[str]:
        return get_scalar_type(self.dtype).c_headers(c_compiler)

    def c_support_code(self) -> str:
        return get_scalar_type(self.dtype).c_support_code()

    def c_init_code(self) -> list[str]:
        return get_scalar_type(self.dtype).c_init_code()

    def c_code_cache_version(self) -> tuple[Any, ...]:
        return (1, *get_scalar_type(self.dtype).c_code_cache_version())

    def c_declare(self, name: str, sub: Any, check_input: bool = True) -> str:
        typedef = f"typedef {c_type(self.dtype)} dtype_{name};\n" if check_input else ""
        return f"{typedef}PyArrayObject *{name};\n"

    def c_init(self, name: str, sub: Any) -> str:
        return f"{name} = NULL;\n"

    def c_extract(self, name: str, sub: Any, check_input: bool = True, **ignored: Any) -> str:
        """Return the statements that take the array, a new reference; wrong arrays fail."""
        typenum = f"NPY_{self.dtype.upper()}"
        check = (
            f"{name} = NULL;\n"
            f'if (ow_check_array(py_{name}, {typenum}, "{typenum}") != 0) {sub["fail"]}\n'
        )
        return (
            f"{check if check_input else ''}{name} = (PyArrayObject *)(py_{name});\n"
            f"Py_XINCREF({name});\n"
        )

    def c_cleanup(self, name: str, sub: Any) -> str:
        return f"Py_XDECREF({name});\n"

    def c_sync(self, name: str, sub: Any) -> str:
        return (
            f"Py_XDECREF(py_{name});\n"
            f"py_{name} = {name} ? (PyObject *){name} : Py_None;\n"
            f"Py_INCREF(py_{name});\n"
        )
