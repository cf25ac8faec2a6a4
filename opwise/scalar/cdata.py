"""CDataType: pointers of C as values, in capsules; only the C++ code of Ops reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from opwise.graph import upcalls
from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.graph.type import Type
from opwise.graph.variable import Constant
from opwise.scalar.op import cast
from opwise.scalar.types import as_scalar, get_scalar_type

_SUPPORT = """\
#ifndef OW_CAPSULES
#define OW_CAPSULES
static void _capsule_destructor(PyObject *capsule)
{
    void (*release)(void *) = (void (*)(void *))PyCapsule_GetContext(capsule);
    void *pointer = PyCapsule_GetPointer(capsule, NULL);
    if (release != NULL)
        release(pointer);
}
static PyObject *ow_capsule(void *pointer, void (*release)(void *))
{
    if (pointer == NULL) {
        Py_INCREF(Py_None);
        return Py_None;
    }
    PyObject *capsule = PyCapsule_New(pointer, NULL, _capsule_destructor);
    if (capsule != NULL && PyCapsule_SetContext(capsule, (void *)release) == 0)
        return capsule;
    Py_XDECREF(capsule);
    if (release != NULL)
        release(pointer);
    return NULL;
}
#endif
"""


class CDataConstant(Constant):
    """A pointer that is a constant; each differs from all others."""

    def signature(self) -> Any:
        return (self.type, id(self.data))


class CDataType(Type):
    """The type of a pointer of C, such as ``CDataType("FILE *", freefunc="close_it")``.

    ctype: its C type, with the ``*``. freefunc: a C function of type ``void (void *)`` that frees
    it. headers, header_dirs, libraries, lib_dirs, compile_args, extra_support_code: what C code
    with the type needs. version: changes if one of these changes.
    """

    Constant: ClassVar[type[Constant]] = CDataConstant
    __props__ = (
        "ctype", "freefunc", "headers", "header_dirs", "libraries", "lib_dirs",
        "extra_support_code", "compile_args", "version",
    )  # fmt: skip

    def __init__(
        self,
        ctype: str,
        freefunc: str | None = None,
        headers: Sequence[str] = (),
        header_dirs: Sequence[str] = (),
        libraries: Sequence[str] = (),
        lib_dirs: Sequence[str] = (),
        compile_args: Sequence[str] = (),
        extra_support_code: str = "",
        version: Any = None,
    ) -> None:
        if not isinstance(ctype, str) or not isinstance(freefunc, str | None):
            raise AssertionError(f"ctype and freefunc are texts, not {ctype!r} and {freefunc!r}")
        self.ctype, self.freefunc, self.version = ctype, freefunc, version
        self.headers, self.header_dirs = tuple(headers), tuple(header_dirs)
        self.libraries, self.lib_dirs = tuple(libraries), tuple(lib_dirs)
        self.compile_args, self.extra_support_code = tuple(compile_args), extra_support_code
        self._maker: Any = None

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return a capsule or None; raises TypeError for anything else."""
        if data is not None and type(data).__name__ != "PyCapsule":
            raise TypeError("expected None or a PyCapsule")
        return data

    def make_value(self, ptr: int) -> Any:
        """Return the capsule of an address, which is not checked."""
        if self._maker is None:
            address = get_scalar_type("uint64")()
            self._maker = upcalls.compile_function([address], _FromAddress(self)(address))
        return self._maker(ptr)

    def _identity(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__props__)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((type(self), self._identity()))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_maker": None}

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.ctype}}}"

    __repr__ = __str__

    # --- C++ --------------------------------------------------------------------------------------

    def c_declare(self, name: str, sub: Any, check_input: bool = True) -> str:
        return f"{self.ctype} {name};\n"

    def c_init(self, name: str, sub: Any) -> str:
        return f"{name} = NULL;\n"

    def c_extract(self, name: str, sub: Any, check_input: bool = True) -> str:
        return (
            f"{name} = ({self.ctype})PyCapsule_GetPointer(py_{name}, NULL);\n"
            f"if ({name} == NULL) {sub['fail']}\n"
        )

    def c_sync(self, name: str, sub: Any) -> str:
        release = f"(void (*)(void *)){self.freefunc}" if self.freefunc else "NULL"
        return (
            f"Py_XDECREF(py_{name});\npy_{name} = ow_capsule((void *){name}, {release});\n"
            f"if (py_{name} == NULL) {sub['fail']}\n"
        )

    def c_cleanup(self, name: str, sub: Any) -> str:
        return ""

    def c_support_code(self) -> list[str]:
        return [_SUPPORT, self.extra_support_code]

    def c_headers(self) -> Sequence[str]:
        return self.headers

    def c_header_dirs(self) -> Sequence[str]:
        return self.header_dirs

    def c_libraries(self) -> Sequence[str]:
        return self.libraries

    def c_lib_dirs(self) -> Sequence[str]:
        return self.lib_dirs

    def c_compile_args(self) -> Sequence[str]:
        return self.compile_args

    def c_code_cache_version(self) -> tuple[Any, ...]:
        return (1,) if self.version is None else (1, self.version)


class _FromAddress(Op):
    """The capsule of an address."""

    __props__ = ("rtype",)

    def __init__(self, rtype: CDataType) -> None:
        self.rtype = rtype

    def do_constant_folding(self, node: Apply) -> bool:
        return False

    def make_node(self, address: Any) -> Apply:
        return Apply(self, [cast(as_scalar(address), "uint64")], [self.rtype()])

    def c_code(self, node: Apply, name: str, inputs: Any, outputs: Any, sub: Any) -> str:
        return f"{outputs[0]} = ({self.rtype.ctype}){inputs[0]};\n"

    def c_code_cache_version(self) -> tuple[Any, ...]:
        return (1, self.rtype.version)
