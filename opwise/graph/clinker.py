"""The legacy interface of Ops and Types that have C++ code of their own.

Every method returns C++ text, or settings of the compiler; one that is not defined raises
MethodNotDefined. ``opwise.linkers.userops`` makes a library of the texts of one Apply.

``name`` is the C name of a variable, or a suffix for names of one Apply. ``sub['fail']`` is the
statement that ends the code once a Python exception is set.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from opwise.errors import MethodNotDefined

if TYPE_CHECKING:
    from opwise.graph.apply import Apply


def _undefined(owner: object, method: str) -> NoReturn:
    raise MethodNotDefined(method, type(owner), type(owner).__name__)


def called(method: Callable[..., Any], *args: Any) -> Any:
    """Call a method with as many of the arguments as it takes.

    Methods of older programs take fewer: no ``check_input``, and no compiler, which is None.
    """
    parameters = inspect.signature(method).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return method(*args)
    by_position = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return method(*args[: len(by_position)])


def texts(owner: Any, method: str, *args: Any) -> list[str]:
    """Return the texts that a method of an Op or a Type gives; [] if it is not defined."""
    if not hasattr(owner, method):
        return []
    try:
        found = called(getattr(owner, method), *args)
    except MethodNotDefined:
        return []
    return [found] if isinstance(found, str) else list(found or ())


class CLinkerObject:
    """What the C++ code of an Op and that of a Type may need."""

    def c_headers(self) -> Sequence[str]:
        """Return the headers to include: names, with or without <> or quotes."""
        _undefined(self, "c_headers")

    def c_header_dirs(self) -> Sequence[str]:
        """Return the folders of the headers."""
        _undefined(self, "c_header_dirs")

    def c_libraries(self) -> Sequence[str]:
        """Return the libraries to link with, without ``-l``."""
        _undefined(self, "c_libraries")

    def c_lib_dirs(self) -> Sequence[str]:
        """Return the folders of the libraries."""
        _undefined(self, "c_lib_dirs")

    def c_support_code(self) -> str | Sequence[str]:
        """Return definitions that precede all other code."""
        _undefined(self, "c_support_code")

    def c_code_cache_version(self) -> tuple[Any, ...]:
        """Return a tuple to change if anything outside the texts changes, as a linked library."""
        return ()

    def c_compile_args(self) -> Sequence[str]:
        """Return arguments for the compiler."""
        _undefined(self, "c_compile_args")

    def c_no_compile_args(self) -> Sequence[str]:
        """Return arguments that the compiler must not get."""
        _undefined(self, "c_no_compile_args")

    def c_init_code(self) -> Sequence[str]:
        """Return statements to run once, when the library is loaded."""
        _undefined(self, "c_init_code")


class CLinkerOp(CLinkerObject):
    """The C++ code of an Op. Only ``c_code`` is necessary."""

    def c_code(
        self,
        node: Apply,
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        sub: Mapping[str, Any],
    ) -> str:
        """Return statements that compute the outputs, given the C names of all variables.

        sub: 'fail', and 'params' if the Op has params.
        """
        _undefined(self, "c_code")

    def c_code_cleanup(
        self,
        node: Apply,
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        sub: Mapping[str, Any],
    ) -> str:
        """Return statements that run after ``c_code``, also if it fails."""
        _undefined(self, "c_code_cleanup")

    def c_code_cache_version_apply(self, node: Apply) -> tuple[Any, ...]:
        """Return ``c_code_cache_version`` for one Apply."""
        return self.c_code_cache_version()

    def c_support_code_apply(self, node: Apply, name: str) -> str:
        """Return definitions for one Apply."""
        _undefined(self, "c_support_code_apply")

    def c_init_code_apply(self, node: Apply, name: str) -> str:
        """Return statements to run once, when the library of one Apply is loaded."""
        _undefined(self, "c_init_code_apply")

    def c_support_code_struct(self, node: Apply, name: str) -> str:
        """Return members of the struct in which ``c_code`` runs; each thunk has such a struct."""
        _undefined(self, "c_support_code_struct")

    def c_init_code_struct(self, node: Apply, name: str, sub: Mapping[str, Any]) -> str:
        """Return statements that run when the struct is made."""
        _undefined(self, "c_init_code_struct")

    def c_cleanup_code_struct(self, node: Apply, name: str) -> str:
        """Return statements that run when the struct is deleted."""
        _undefined(self, "c_cleanup_code_struct")


class CLinkerType(CLinkerObject):
    """The C++ code of a Type: what its values are in C, and how they come from Python objects.

    The Python object of the variable ``name`` is ``py_name``.
    """

    def c_element_type(self) -> str:
        """Return the C type of one element."""
        _undefined(self, "c_element_type")

    def c_is_simple(self) -> bool:
        """Return whether values are plain C values, without memory to release."""
        return False

    def c_literal(self, data: Any) -> str:
        """Return a C expression for a value."""
        _undefined(self, "c_literal")

    def c_declare(self, name: str, sub: Mapping[str, Any], check_input: bool = True) -> str:
        """Return declarations of the variable."""
        _undefined(self, "c_declare")

    def c_init(self, name: str, sub: Mapping[str, Any]) -> str:
        """Return statements that make the variable empty."""
        _undefined(self, "c_init")

    def c_extract(self, name: str, sub: Mapping[str, Any], check_input: bool = True) -> str:
        """Return statements that set the variable from ``py_name``."""
        _undefined(self, "c_extract")

    def c_extract_out(self, name: str, sub: Mapping[str, Any], check_input: bool = True) -> str:
        """Return statements that set an output from its earlier value; None makes it empty."""
        return (
            f"if (py_{name} == Py_None) {{\n{self.c_init(name, sub)}\n}} else {{\n"
            f"{called(self.c_extract, name, sub, check_input)}\n}}\n"
        )

    def c_cleanup(self, name: str, sub: Mapping[str, Any]) -> str:
        """Return statements that release what the variable holds."""
        _undefined(self, "c_cleanup")

    def c_sync(self, name: str, sub: Mapping[str, Any]) -> str:
        """Return statements that set ``py_name`` from the variable."""
        _undefined(self, "c_sync")
