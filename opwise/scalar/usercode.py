"""The ``c_code`` of users' scalar operations, as C++ functions that generated loops call."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from opwise.errors import MethodNotDefined
from opwise.graph.clinker import CLinkerOp, texts
from opwise.scalar import dtypes
from opwise.scalar.cinterface import c_type
from opwise.scalar.composite import Composite
from opwise.scalar.op import ScalarOp
from opwise.scalar.program import Program
from opwise.scalar.types import get_scalar_type

#: what may need the GIL, or has a state that calls share
_NOT_PURE = re.compile(r"\b(Py\w*|static|extern|rand\w*|ow_failed)\b")
_STRUCT_METHODS = ("c_support_code_struct", "c_init_code_struct", "c_cleanup_code_struct")


@dataclass(frozen=True)
class UserFunction:
    """A C++ function ``name`` from numbers to a number."""

    op: ScalarOp
    name: str
    #: its definition
    text: str
    #: definitions that precede it, and headers
    support: tuple[str, ...]
    headers: tuple[str, ...]
    #: whether it needs the GIL: it may set an exception, or has a state that calls share
    needs_gil: bool
    #: the user's texts by the names of their lines
    parts: tuple[tuple[str, str], ...]


def has_c_code(op: Any) -> bool:
    """Return whether a scalar operation has ``c_code`` of a user."""
    return isinstance(op, ScalarOp) and op.row is None and type(op).c_code is not CLinkerOp.c_code


def is_c_only(op: Any) -> bool:
    """Return whether a scalar operation, or one in a Composite, has ``c_code`` but no ``impl``."""
    if isinstance(op, Composite):
        return any(is_c_only(one.op) for one in op.instructions)
    return has_c_code(op) and type(op).impl is ScalarOp.impl


def call(op: ScalarOp, args: Sequence[str], in_dtypes: Sequence[str], out_dtype: str) -> str | None:
    """Return the C expression that calls a user's operation, or None if it has no ``c_code``."""
    function = function_of(op, tuple(in_dtypes), out_dtype)
    return None if function is None else f"{function.name}({', '.join(args)})"


@lru_cache(256)
def function_of(op: ScalarOp, in_dtypes: tuple[str, ...], out_dtype: str) -> UserFunction | None:
    """Return the function of a user's operation on numbers of some dtypes, or None.

    There is none without ``c_code``, or if it needs a struct or has several outputs.
    """
    if not has_c_code(op) or op.nout != 1 or not op._op_use_c_code:
        return None
    if any(d == "float16" or d in dtypes.COMPLEX for d in (*in_dtypes, out_dtype)):
        return None
    if any(getattr(type(op), m) is not getattr(CLinkerOp, m) for m in _STRUCT_METHODS):
        return None
    node = op.make_node(*(get_scalar_type(d).make_variable() for d in in_dtypes))
    if node.outputs[0].type.dtype != out_dtype:
        return None
    try:
        first = _texts(op, node, "node_0", in_dtypes, out_dtype)
    except (MethodNotDefined, NotImplementedError):
        return None
    identity = "\0".join((type(op).__name__, *in_dtypes, out_dtype, *first))
    digest = hashlib.blake2b(identity.encode(), digest_size=8)
    name = f"ow_user_{digest.hexdigest()}"
    body, support = _texts(op, node, f"node_{digest.hexdigest()}", in_dtypes, out_dtype)
    both = line_name(op, "c_code"), line_name(op, "c_support_code")
    return UserFunction(
        op=op,
        name=name,
        text=_definition(name, both[0], body, in_dtypes, out_dtype),
        support=(f'\n#line 1 "{both[1]}"\n{support}\n',) if support else (),
        headers=tuple(texts(op, "c_headers", None)),
        needs_gil=bool(_NOT_PURE.search(body + support)),
        parts=((both[0], body), (both[1], support)),
    )


def _texts(op: Any, node: Any, name: str, in_dtypes: Sequence[str], out: str) -> tuple[str, str]:
    """Return the user's statements, and the definitions that they need."""
    n = len(in_dtypes)
    inputs, outputs = [f"V{2 * i + 1}" for i in range(n)], [f"V{2 * n + 1}"]
    sub = {
        "failure_var": "__failure",
        "id": 1,
        "fail": "{ __failure = ow_failed(1); goto __label_1; }",
    }
    code = op.c_code(node, name, inputs, outputs, sub)
    if not isinstance(code, str):
        raise TypeError(f"{op}.c_code returned {code!r}: it must return a text, the C++ code")
    cleanup = texts(op, "c_code_cleanup", node, name, inputs, outputs, sub)
    support = [*texts(op, "c_support_code"), *texts(op, "c_support_code_apply", node, name)]
    return (
        # without cleanup code, jumps to the label may cross declarations
        (f"{code}\n__label_1: ;\n{''.join(cleanup)}" if cleanup else f"{{{code}\n}}\n__label_1: ;"),
        "\n".join(support),
    )


def line_name(owner: Any, method: str) -> str:
    """Return the name that a ``#line`` directive gives to the text of a method.

    Characters that could end the C string in the directive are replaced: a class may have any name.
    """
    return re.sub(r"[^\w.<>]", "_", f"{type(owner).__name__}.{method}")


def _definition(name: str, lines: str, body: str, in_dtypes: Sequence[str], out: str) -> str:
    types = [*map(c_type, in_dtypes), c_type(out)]
    names = [f"V{2 * i + 1}" for i in range(len(types))]
    parameters = ", ".join(f"{t} {v}" for t, v in zip(types[:-1], names[:-1], strict=True))
    declared = "\n".join(f"typedef {t} dtype_{v};" for t, v in zip(types, names, strict=True))
    return (
        f"static inline __attribute__((always_inline)) {types[-1]} {name}({parameters})\n{{\n"
        f"{declared}\n{types[-1]} {names[-1]} = 0;\nint __failure = 0;\n(void)__failure;\n"
        f'#line 1 "{lines}"\n{body}\n#line 1 "generated by opwise"\nreturn {names[-1]};\n}}\n'
    )


def functions_of(program: Program) -> list[UserFunction]:
    """Return the functions that a program calls, each once."""
    found: dict[str, UserFunction] = {}
    for one in program.instructions:
        if has_c_code(one.op):
            function = function_of(one.op, tuple(program.arguments(one)), one.dtype)
            if function is not None:
                found[function.name] = function
    return list(found.values())


def definitions(functions: Iterable[UserFunction]) -> str:
    """Return the C++ text that defines functions: headers, support code, then the functions."""
    functions = list(functions)
    headers = dict.fromkeys(h.strip() for f in functions for h in f.headers)
    return "\n".join(
        [
            *(f"#include {h}" if h[:1] in '<"' else f'#include "{h}"' for h in headers),
            *dict.fromkeys(s for f in functions for s in f.support),
            '#line 1 "generated by opwise"',
            *(f.text for f in functions),
        ]
    )
