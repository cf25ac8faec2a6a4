"""C text of single scalar operations, and the declarations that such text needs.

``opwise.scalar.loops`` makes loops and Composites of it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Iterable, Sequence, Set
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from opwise.scalar import borrowed, dtypes, usercode
from opwise.scalar.borrowed import BORROWED
from opwise.scalar.casting import TRUNCATED_TO
from opwise.scalar.op import Cast, ScalarOp
from opwise.scalar.program import Literal

if TYPE_CHECKING:
    from opwise.scalar.spec import ScalarSpec


#: The compiler flags that the text is written for. Without errno and floating-point traps, gcc uses
#: vector instructions for sqrt, floor and both branches of a selection; results do not change.
#: Signed integers wrap. a * b + c rounds twice, so that results have the same bits on all hardware.
#: Sums marked "omp simd" are added up in another order. -ffast-math is never used.
FLAGS = (
    "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-ffp-contract=off", "-fopenmp-simd",
)  # fmt: skip

#: functions of the math library whose results are rounded correctly, with vectors and without
EXACT = frozenset(
    ("ceil", "copysign", "fabs", "floor", "fma", "fmod", "rint", "round", "sqrt", "trunc")
)

#: a text with this line calls functions of the math library
USES_LIBM = "/* links with libm */\n"

#: a text with this line has loops of so few steps that what vectors leave over is much of them
SHORT_LOOPS = "/* has short loops */"

_SHORT = {
    "bool": "b", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8",
    "uint16": "u16", "uint32": "u32", "uint64": "u64", "float16": "f16", "float32": "f32",
    "float64": "f64", "complex64": "c64", "complex128": "c128",
}  # fmt: skip
_C_TYPES = {"float16": "float", "float32": "float", "float64": "double"}
#: the dtypes of which the text of an element differs from that of a value, or a value has parts
SPECIAL = frozenset(("float16", *dtypes.COMPLEX))
_ARITY = {
    "atan2": 2, "copysign": 2, "fdim": 2, "fmax": 2, "fmin": 2, "fmod": 2, "hypot": 2,
    "nextafter": 2, "pow": 2, "remainder": 2, "fma": 3, "cpow": 2,
}  # fmt: skip
#: the functions of complex numbers
_COMPLEX_FUNCTIONS = frozenset(
    "cexp clog csqrt cpow csin ccos ctan casin cacos catan csinh ccosh ctanh casinh cacosh catanh"
    .split()
)  # fmt: skip
#: functions that have a second name, ow_NAME: gcc makes one call of the sine and the cosine of a
#: number, of which there is no vector version, unless it does not know the names
_APART = frozenset(("cos", "sin"))
#: the functions that glibc's libmvec may have; ``vector_functions`` looks them up
_VECTOR_CANDIDATES = (
    "acos acosh asin asinh atan atan2 atanh cbrt cos cosh erf erfc exp exp10 exp2 expm1 hypot log "
    "log10 log1p log2 pow sin sinh tan tanh"
).split()


# --- types ---------------------------------------------------------------------------------------


def has_c(dtype: str) -> bool:
    """Return whether C text supports ``dtype``."""
    return dtype in _SHORT


def is_plain(dtype: str) -> bool:
    """Return whether elements of ``dtype`` are values of a C type of real numbers.

    Those of float16 are not: they are computed with as float. Complex numbers are structs.
    """
    return dtype in _SHORT and dtype not in SPECIAL


def short(dtype: str) -> str:
    """Return the short type name that ends the names of C functions: 'f64', 'i8', ... 'b'."""
    return _SHORT[dtype]


def c_type(dtype: str) -> str:
    """Return the C type of a value of ``dtype``: float, double, or a typedef from ``support``.

    A value of float16 is a float that float16 represents.
    """
    return _C_TYPES.get(dtype) or f"ow_{_SHORT[dtype]}"


def stored(dtype: str) -> str:
    """Return the C type of an element of an array of ``dtype``."""
    return "ow_f16" if dtype == "float16" else c_type(dtype)


def load(text: str, dtype: str) -> str:
    """Return the expression of the value of an element, whose expression is ``text``."""
    return f"ow_from_f16({text})" if dtype == "float16" else text


def store(text: str, dtype: str) -> str:
    """Return the expression of an element that holds a value."""
    return f"ow_to_f16({text})" if dtype == "float16" else text


def real_of(dtype: str) -> str:
    """Return the dtype with whose C functions a dtype is computed: its parts, or itself."""
    return "float32" if dtype == "float16" else dtypes.real_part(dtype)


# --- declarations --------------------------------------------------------------------------------


def support(names: Iterable[str], dtypes: Iterable[str]) -> str:
    """Return the parts from ``support_parts`` as one text."""
    return "".join(support_parts(names, dtypes))


def support_parts(
    names: Iterable[str], dtypes: Iterable[str], instead: str | None = None
) -> list[str]:
    """Return typedefs, the functions that ``convert`` calls, and functions of csupport/.

    names: of functions ``ow_<name>_<short>``, as in a row's ``c_support``; dtypes: for which of
    them. A function that does not exist for a dtype is left out: the row's expression does not call
    it there. instead: the path of a file like scalar.h, whose parts replace those of the same name.
    Raises KeyError for an unknown name.
    """
    every = {d for d in dtypes if d in _SHORT}
    wanted = {_SHORT[d] for d in (*every, *map(real_of, every))}
    files = [*_SUPPORT, *([] if instead is None else [instead])]
    parts = {name: part for file in files for name, part in _support_parts(file).items()}
    needed: list[str] = []

    def chosen(name: str, types: Set[str]) -> Set[str]:
        if name == "complex" and types:  # accumulators have more bits
            return wanted & {"c64", "c128"}
        return wanted & types

    def add(name: str) -> None:
        for types, needs, _ in parts[name]:
            if not types or chosen(name, types):
                for other in needs:
                    add(other)
        if name not in needed:
            needed.append(name)

    add("types")
    add("of_float")
    if "f16" in wanted:
        add("half")
    if wanted & {"c64", "c128"}:
        add("complex")
    for name in sorted(names):
        add(name)
    texts = []
    for name in needed:
        typed = [text for types, _, text in parts[name] if chosen(name, types)]
        if typed or not any(types for types, _, _ in parts[name]):
            shared = [text for types, _, text in parts[name] if not types]
            texts += shared + typed
    return texts


_PART = re.compile(
    r"/\*@ (\w+)((?: \w+)*)(?: :((?: \w+)+))? \*/\n"  # name, short types, names that it needs
    r"(.*?)/\*@ end \*/\n",
    re.DOTALL,
)


_CSUPPORT = os.path.join(os.path.dirname(__file__), "csupport")
_SUPPORT = [os.path.join(_CSUPPORT, name) for name in ("scalar.h", "special.h", "complexes.h")]


@cache
def _support_parts(path: str) -> dict[str, Any]:
    """Return {name: [(short types, names of parts that it needs, text)]} of a file of functions."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    parts: dict[str, list[tuple[set[str], list[str], str]]] = {}
    for name, types, needs, body in _PART.findall(text):
        parts.setdefault(name, []).append((set(types.split()), needs.split(), body))
    return parts


def prototypes(libm_functions: Iterable[str], dtypes: Iterable[str], simd: bool = True) -> str:
    """Return C prototypes of functions of the math library, and variables of borrowed functions.

    libm_functions: names without the suffix of the float version; dtypes: the float version is
    declared too if they contain float32. simd: declare that vector versions exist, for the
    functions that libmvec has here; the result then needs this glibc or a later one.
    """
    libm, lines = set(libm_functions), []
    vector = vector_functions() if simd else frozenset()
    narrow = "float32" in map(real_of, dtypes)
    versions = [("double", ""), ("float", "f")][: 1 + narrow]
    for name in sorted(libm - BORROWED.keys()):
        for part, suffix in versions:
            type_ = f"{part} _Complex" if name in _COMPLEX_FUNCTIONS else part
            arguments = ", ".join([type_] * _ARITY.get(name, 1))
            mark = '__attribute__((simd("notinbranch"), const)) ' if name in vector else ""
            lines.append(f"{mark}{type_} {name}{suffix}({arguments});\n")
            if name in _APART and mark:
                symbol = f'__asm__("{name}{suffix}")'
                lines.append(f"{mark}{type_} ow_{name}{suffix}({arguments}) {symbol};\n")
            elif name in _APART:
                lines.append(f"#define ow_{name}{suffix} {name}{suffix}\n")
    head = [USES_LIBM] if lines else []
    return "".join([*head, *lines, *borrowed.variables(sorted(libm & BORROWED.keys()))])


@cache
def vector_functions() -> frozenset[str]:
    """Return the names of the functions of which libmvec has vector versions here."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return frozenset()  # other architectures name and limit them differently
    try:
        library = ctypes.CDLL("libmvec.so.1")
    except OSError:
        return frozenset()
    return frozenset(
        name
        for name in _VECTOR_CANDIDATES
        if hasattr(library, f"_ZGVdN4{'v' * _ARITY.get(name, 1)}_{name}")
    )


def requirements(
    op: ScalarOp, in_dtypes: Sequence[str], out_dtype: str
) -> tuple[set[str], set[str], set[str]]:
    """Return what ``step_c``'s text needs: names for ``support`` and ``prototypes``, and dtypes."""
    given = {d for d in (*in_dtypes, out_dtype) if d in SPECIAL}
    if op.row is None:
        return set(), set(), given
    row, computing = op.row, op.row.compute_dtype(in_dtypes, out_dtype)
    if computing in dtypes.COMPLEX:
        return set(row.complex_support), set(row.complex_libm), {*given, computing}
    return set(row.c_support), set(row.libm), {*given, computing}


# --- expressions ---------------------------------------------------------------------------------


def step_c(
    op: ScalarOp,
    args: Sequence[str],
    in_dtypes: Sequence[str],
    out_dtype: str,
    cuda: bool = False,
    alone: bool = False,
) -> str | None:
    """Return the C expression of one scalar operation; None if it has none.

    args: C expressions of the operands, of ``in_dtypes``. The operands are converted to the dtype
    that the operation computes in (not the condition of a switch), the result to ``out_dtype``.
    cuda: use the CUDA expression of the row, if it has one. alone: that for one number at a time.
    """
    if not all(map(has_c, (*in_dtypes, out_dtype))):
        return None
    if isinstance(op, Literal):
        return literal(op.value, out_dtype)
    if isinstance(op, Cast):
        return convert(args[0], in_dtypes[0], out_dtype)
    if op.row is None:
        return None if cuda else usercode.call(op, args, in_dtypes, out_dtype)
    return _row_c(op.row, args, in_dtypes, out_dtype, cuda, alone)


def _row_c(
    row: ScalarSpec,
    args: Sequence[str],
    in_dtypes: Sequence[str],
    out_dtype: str,
    cuda: bool,
    alone: bool,
) -> str | None:
    computing = row.compute_dtype(in_dtypes, out_dtype)
    template = row.c_expression(computing, cuda, alone) if has_c(computing) else None
    if template is None:
        return None
    result = result_dtype(row, computing)
    operands = []
    for i, (arg, dtype) in enumerate(zip(args, in_dtypes, strict=True)):
        if i >= row.n_uncast:
            operands.append(convert(arg, dtype, computing))
        else:
            operands.append(_uncast(row, arg, dtype, computing))
    rounded = result == "float16" and not row.exact
    if row.nin < 0:
        text = operands[0]
        for operand in operands[1:]:
            text = f"({_fill(template, [text, operand], computing, result)})"
            text = f"ow_round_f16{text}" if rounded else text
    else:
        text = _fill(template, operands, computing, result)
        text = f"ow_round_f16({text})" if rounded else text
    if row.out is dtypes.always_bool or (text in operands and result == out_dtype):
        return _parenthesised(text)
    # C computes in int if the dtype is narrower, or if no operand is used
    exact = result in dtypes.CONTINUOUS and any(o in text for o in operands)
    return convert(text, result, out_dtype, exact)


def _uncast(row: ScalarSpec, arg: str, dtype: str, computing: str) -> str:
    """Return the operand that is not cast to the computing dtype."""
    if row.first_is_condition and dtype in dtypes.COMPLEX:
        return convert(arg, dtype, "bool")
    if row.first_is_condition and dtype == "bool" and computing in ("float64", "int64", "uint64"):
        # GCC selects among elements of 8 bytes by vectors of conditions of 8 bytes
        return f"((ow_i64){_parenthesised(arg)})"
    return _parenthesised(arg)


def result_dtype(row: Any, computing: str) -> str:
    """Return the dtype of the value of a row's expression for a computing dtype."""
    if row.out is dtypes.always_bool:
        return computing
    given = [computing] * max(1, row.nin)
    if computing in dtypes.COMPLEX or row.makes_complex:
        return str(row.out(*given))
    return computing


def _fill(template: str, operands: Sequence[str], computing: str, result: str) -> str:
    return template.format(
        *operands,
        **dict(zip("xyw", operands, strict=False)),
        T=c_type(computing),
        f="f" if real_of(computing) == "float32" else "",
        S=_SHORT["float32" if computing == "float16" else computing],
        Z=c_type(result),
    )


def convert(text: str, from_dtype: str, to_dtype: str, exact: bool = True) -> str:
    """Return the C expression ``text`` converted from one dtype to another, as numpy does.

    exact: whether the expression has the C type of ``from_dtype``, so that an equal ``to_dtype``
    needs no conversion.
    """
    text = _parenthesised(text)
    if from_dtype == to_dtype and exact:
        return text
    if from_dtype in dtypes.COMPLEX:
        return _convert_complex(text, from_dtype, to_dtype)
    if to_dtype in dtypes.COMPLEX:
        part = convert(text, from_dtype, dtypes.real_part(to_dtype), exact)
        return f"(({c_type(to_dtype)}){{{part}, 0}})"
    if to_dtype == "bool":
        return f"({text} != 0)"
    if to_dtype == "float16":
        return _convert_to_half(text, from_dtype, exact)
    if from_dtype == "float16":
        from_dtype = "float32"
        if to_dtype == "float32" and exact:
            return text
    if from_dtype in dtypes.FLOATS and to_dtype in dtypes.INTEGERS:
        wide = TRUNCATED_TO[to_dtype]
        call = f"ow_{_SHORT[wide]}_of_{_SHORT[from_dtype]}({text})"
        return call if to_dtype == wide else f"(({c_type(to_dtype)}){call})"
    if from_dtype == "bool" and to_dtype in dtypes.FLOATS:
        # GCC does not vectorize a loop in which a comparison becomes a float at once
        text = f"({text} != 0)"
    return f"(({c_type(to_dtype)}){text})"


def _convert_complex(text: str, from_dtype: str, to_dtype: str) -> str:
    if to_dtype == "bool":
        return f"ow_true_{_SHORT[from_dtype]}({text})"
    if to_dtype in dtypes.COMPLEX:
        return f"ow_{_SHORT[to_dtype]}_of_{_SHORT[from_dtype]}({text})"
    # numpy drops the imaginary part
    return convert(f"{text}.r", dtypes.real_part(from_dtype), to_dtype)


def _convert_to_half(text: str, from_dtype: str, exact: bool) -> str:
    """Return a number as the nearest one of float16; integers become float first, as in numpy."""
    if from_dtype == "float16":
        return f"((float){text})"
    if from_dtype == "float64":
        return f"ow_round_f64_to_f16({text})"
    if from_dtype in ("bool", "int8", "uint8"):
        return convert(text, from_dtype, "float32", exact)
    if from_dtype != "float32":
        text = f"(float){text}"
    return f"ow_round_f16({text})"


def literal(value: Any, dtype: str) -> str:
    """Return a C expression of ``dtype`` for a number."""
    value = np.dtype(dtype).type(value)
    if dtype == "bool":
        return "1" if value else "0"
    if dtype in dtypes.COMPLEX:
        part = dtypes.real_part(dtype)
        parts = f"{literal(value.real, part)}, {literal(value.imag, part)}"
        return f"(({c_type(dtype)}){{{parts}}})"
    if dtype in dtypes.FLOATS:
        return _float_literal(float(value), "" if dtype == "float64" else "f")
    if dtype == "int64" and value == np.iinfo("int64").min:
        return "(-9223372036854775807LL - 1)"
    suffix = {"int32": "", "int64": "LL", "uint64": "ULL", "uint32": "U"}.get(dtype)
    if suffix is None or (dtype == "int32" and value == np.iinfo("int32").min):
        return f"(({c_type(dtype)}){int(value)})"
    return _parenthesised(f"{value}{suffix}")


def _float_literal(value: float, suffix: str) -> str:
    if value != value:
        return f'__builtin_nan{suffix}("")'
    if value in (float("inf"), float("-inf")):
        sign = "-" if value < 0 else ""
        return _parenthesised(f"{sign}__builtin_inf{suffix}()")
    return _parenthesised(f"{value!r}{suffix}")


def _parenthesised(text: str) -> str:
    """Return ``text`` in parentheses, unless it can be an operand of any operator as it is."""
    return text if _is_primary(text) else f"({text})"


def _is_primary(text: str) -> bool:
    """Return whether ``text`` is a name, a number, a call, an indexed name or in parentheses."""
    head = re.match(r"\w[\w.]*", text)
    rest = text[head.end() :] if head else text
    if not rest or rest[0] not in "([":
        return not rest
    depth = 0
    for i, letter in enumerate(rest):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0:
            return i == len(rest) - 1
    return False
