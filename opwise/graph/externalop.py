"""COp: an Op whose C++ code lies in files; OpenMPOp: one whose code may use OpenMP."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opwise.errors import MethodNotDefined
from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.graph.params import ParamsType

_SECTION = re.compile(r"^#section ([a-zA-Z0-9_]+)$", re.MULTILINE)
_OLD_SECTION = re.compile(r"^THEANO_(APPLY|SUPPORT)_CODE_SECTION$", re.MULTILINE)
_OLD_NAMES = {"APPLY": "support_code_apply", "SUPPORT": "support_code"}


class COp(Op):
    """An Op whose C++ code lies in files, in sections that begin with lines ``#section NAME``.

    func_files: a path, or a list of paths; relative ones begin at the file of the class. Sections
    of equal names are joined. func_name: a function of the section support_code or
    support_code_apply to call with the inputs, the addresses of the outputs and the params; it
    returns 0, or sets an exception (default: the section ``code`` is run). Raises ValueError for
    files without or with unknown sections.

    Macros in all sections that name an Apply: APPLY_SPECIFIC(name), DTYPE_INPUT_0, TYPENUM_INPUT_0,
    ITEMSIZE_INPUT_0, the same of outputs, PARAMS_TYPE and DTYPE_PARAM_name. In code and
    code_cleanup also INPUT_0, OUTPUT_0, PARAMS, and FAIL, the statement that ends the code.
    """

    SECTIONS = frozenset(
        """
        init_code init_code_apply init_code_struct support_code support_code_apply
        support_code_struct cleanup_code_struct code code_cleanup
        """.split()
    )

    def __init__(self, func_files: str | Sequence[str], func_name: str | None = None):
        self.func_files = [func_files] if isinstance(func_files, str) else list(func_files)
        self.func_name = func_name
        self.load_c_code(self.func_files)
        if not self.code_sections:
            raise ValueError("No sections where defined in C files")
        if func_name is not None and "code" in self.code_sections:
            raise ValueError('Cannot have a "code" section and specify the func_name')
        if func_name is not None and "code_cleanup" in self.code_sections:
            raise ValueError('Cannot have a "code_cleanup" section and specify the func_name')

    @classmethod
    def get_path(cls, f: str) -> str:
        """Return the path of a file: relative ones begin at the file of the class."""
        if os.path.isabs(f):
            return f
        return os.path.realpath(os.path.join(os.path.dirname(inspect.getfile(cls)), f))

    def load_c_code(self, func_files: Sequence[str]) -> None:
        """Read the files into ``code_sections``."""
        paths = [self.get_path(f) for f in func_files]
        self.func_codes = []
        for path in paths:
            with open(path, encoding="utf-8") as f:
                self.func_codes.append(f.read())
        styles = [
            any(marker.search(code) for code in self.func_codes)
            for marker in (_SECTION, _OLD_SECTION)
        ]
        if all(styles):
            raise ValueError(
                "Both the new and the old syntax for identifying code sections are present in the "
                "provided C code. These two syntaxes should not be used at the same time."
            )
        self.code_sections: dict[str, str] = {}
        for path, code in zip(paths, self.func_codes, strict=True):
            self._add_sections(path, code)

    def _add_sections(self, path: str, code: str) -> None:
        if _OLD_SECTION.search(code):
            _, *parts = _OLD_SECTION.split(code)
            self.code_sections.update(
                (_OLD_NAMES[name], text) for name, text in zip(parts[::2], parts[1::2], strict=True)
            )
            return
        if not _SECTION.search(code):
            raise ValueError(
                f"No valid section marker was found in file {path}: begin each section with a line "
                "such as #section support_code"
            )
        stray, *parts = _SECTION.split(code)
        if stray.strip():
            raise ValueError(
                f"Stray code before first #section statement (in file {path}): {stray}"
            )
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            if name not in self.SECTIONS:
                raise ValueError(f"Unknown section type (in file {path}): {name}")
            self.code_sections[name] = self.code_sections.get(name, "") + text

    # --- macros -----------------------------------------------------------------------------------

    def get_c_macros(
        self, node: Apply, name: str, check_input: bool | None = None
    ) -> tuple[str, str]:
        """Return the lines that define the macros of an Apply, and those that undefine them."""
        macros = {"APPLY_SPECIFIC(str)": f"str##_{name}"}
        if getattr(self, "check_input", True) if check_input is None else check_input:
            for kind, variables in (("INPUT", node.inputs), ("OUTPUT", node.outputs)):
                for i, var in enumerate(variables):
                    if hasattr(var.type, "dtype"):
                        dtype = np.dtype(var.type.dtype)
                        macros[f"DTYPE_{kind}_{i}"] = f"npy_{dtype.name}"
                        macros[f"TYPENUM_{kind}_{i}"] = str(dtype.num)
                        macros[f"ITEMSIZE_{kind}_{i}"] = str(dtype.itemsize)
        params = getattr(self, "params_type", None)
        if isinstance(params, ParamsType):
            macros["PARAMS_TYPE"] = params.name
            for field, type_ in params.by_field():
                try:
                    macros[f"DTYPE_PARAM_{field}"] = type_.c_element_type()
                except MethodNotDefined:
                    continue
        return _defined(macros)

    def get_sub_macros(self, sub: Mapping[str, Any]) -> tuple[str, str]:
        """Return the lines that define FAIL and PARAMS, and those that undefine them."""
        macros = {"FAIL": sub["fail"].replace("\n", " \\\n")}
        if "params" in sub:
            macros["PARAMS"] = sub["params"]
        return _defined(macros)

    def get_io_macros(self, inputs: Sequence[str], outputs: Sequence[str]) -> tuple[str, str]:
        """Return the lines that define INPUT_0 ... and OUTPUT_0 ..., and that undefine them."""
        macros = {f"INPUT_{i}": name for i, name in enumerate(inputs)}
        macros.update((f"OUTPUT_{i}", name) for i, name in enumerate(outputs))
        return _defined(macros)

    def format_c_function_args(self, inp: Sequence[str], out: Sequence[str]) -> str:
        """Return the arguments of the function ``func_name``.

        Attributes ``_cop_num_inputs`` and ``_cop_num_outputs`` are how many it has at least.
        """
        args = list(inp)
        args += ["NULL"] * (getattr(self, "_cop_num_inputs", 0) - len(inp))
        args += [f"&{name}" for name in out]
        args += ["NULL"] * (getattr(self, "_cop_num_outputs", 0) - len(out))
        return ", ".join(args)

    def _section(self, name: str, method: str) -> str:
        if name not in self.code_sections:
            raise MethodNotDefined(method, type(self), type(self).__name__)
        return self.code_sections[name]

    def _with_macros(self, text: str, *macros: tuple[str, str]) -> str:
        return "\n".join(["", *(m[0] for m in macros), text, *(m[1] for m in reversed(macros)), ""])

    def _of_apply(self, section: str, node: Apply, name: str) -> str:
        text = self._section(section, f"c_{section}")
        return self._with_macros(text, self.get_c_macros(node, name))

    # --- the methods of CLinkerOp -----------------------------------------------------------------

    def c_code_cache_version(self) -> tuple[Any, ...]:
        params = getattr(self, "params_type", None)
        return (tuple(self.func_codes), params and params.c_code_cache_version())

    def c_init_code(self) -> list[str]:
        return [self._section("init_code", "c_init_code")]

    def c_support_code(self) -> str:
        return self._section("support_code", "c_support_code")

    def c_init_code_apply(self, node: Apply, name: str) -> str:
        return self._of_apply("init_code_apply", node, name)

    def c_support_code_apply(self, node: Apply, name: str) -> str:
        return self._of_apply("support_code_apply", node, name)

    def c_support_code_struct(self, node: Apply, name: str) -> str:
        return self._of_apply("support_code_struct", node, name)

    def c_cleanup_code_struct(self, node: Apply, name: str) -> str:
        return self._of_apply("cleanup_code_struct", node, name)

    def c_init_code_struct(self, node: Apply, name: str, sub: Mapping[str, Any]) -> str:
        text = self._section("init_code_struct", "c_init_code_struct")
        return self._with_macros(text, self.get_c_macros(node, name), self.get_sub_macros(sub))

    def c_code(
        self,
        node: Apply,
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        sub: Mapping[str, Any],
    ) -> str:
        if self.func_name is None:
            return self._run("code", node, name, inputs, outputs, sub)
        args = self.format_c_function_args(inputs, outputs)
        if "params" in sub:
            args += f", {sub['params']}"
        call = f"{{ if ({self.func_name}({args}) != 0) {sub['fail']} }}"
        return self._with_macros(call, self.get_c_macros(node, name, check_input=False))

    def c_code_cleanup(
        self,
        node: Apply,
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        sub: Mapping[str, Any],
    ) -> str:
        return self._run("code_cleanup", node, name, inputs, outputs, sub)

    def _run(
        self,
        section: str,
        node: Apply,
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        sub: Mapping[str, Any],
    ) -> str:
        return self._with_macros(
            self._section(section, f"c_{section}"),
            self.get_c_macros(node, name),
            self.get_sub_macros(sub),
            self.get_io_macros(inputs, outputs),
        )


#: the name of a later release
ExternalCOp = COp


def _defined(macros: Mapping[str, str]) -> tuple[str, str]:
    """Return the lines that define macros, and those that undefine them."""
    return (
        "\n".join(f"#define {name} {value}" for name, value in macros.items()),
        "\n".join(f"#undef {name.partition('(')[0]}" for name in macros),
    )


class OpenMPOp(Op):
    """An Op whose C++ code may use OpenMP.

    openmp: whether it is compiled with OpenMP (default: False).
    """

    def __init__(self, openmp: bool | None = None):
        self.openmp = bool(openmp)

    def c_compile_args(self) -> Sequence[str]:
        return ["-fopenmp"] if self.openmp else []

    def c_headers(self) -> Sequence[str]:
        return ["<omp.h>"] if self.openmp else []
