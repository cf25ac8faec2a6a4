"""The loops that are built with opwise: C text made from the scalar table when opwise is built.

There is one function for each row and dtype, over contiguous chunks, one for each cast and one for
each reduction of plain elements. The VM's interpreter runs them one after the other if no kernel is
generated for a function.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opwise.scalar import borrowed, csource, dtypes, loops, take
from opwise.scalar.op import OPS, ScalarOp, cast_op
from opwise.scalar.program import Program
from opwise.scalar.spec import ROWS, ScalarSpec

_DTYPES = dtypes.ALL


def generate() -> dict[str, str]:
    """Return {file name: text}: loops by family of dtypes, and the tables of them.

    Loops of real numbers and reductions are for simd_loops.h and simd_sums.h, which are compiled
    for several processors.
    """
    complexes = _row_loops(dtypes.COMPLEX)
    casts = [_cast_loop(a, b) for a in _DTYPES for b in _DTYPES if _is_cast(a, b)]
    takes = [_take_loop(d) for d in _DTYPES if csource.is_plain(d)]
    return {
        "loops_body.h": _real_loops(),
        "loops_complex.c": _file(dtypes.COMPLEX, complexes),
        "loops_cast.c": _file(_DTYPES, casts, []),
        "loops_take.c": _file(dtypes.DISCRETE, takes, []),
        "loops.h": _table([name for name, _ in (*complexes, *casts, *takes)]),
        "reducers_body.h": _reducers(),
        **borrowed.generated(),
    }


def _row_loops(computing: Iterable[str]) -> list[tuple[str, str]]:
    """Return (name, text) of the loops of all rows that compute in some dtypes."""
    return [loop for d in computing for op in OPS.values() if (loop := _row_loop(op, d))]


def _row_loop(op: ScalarOp, computing: str) -> tuple[str, str] | None:
    """Return (name, text) of a row's loop on operands of one dtype, or None if it has no C."""
    row = op.row
    assert row is not None
    n = 2 if row.nin < 0 else row.nin
    kept = row.first_is_condition
    operands = ["bool" if kept and i == 0 else computing for i in range(n)]
    try:
        (out,) = op.output_dtypes(operands)
    except TypeError:
        return None
    if row.compute_dtype(operands, out) != computing:
        return None
    if out not in ("bool", csource.result_dtype(row, computing)):
        return None
    if row.ignores_first:
        operands = operands[1:]
        text = csource.step_c(op, ["0", "a0[i]"], [computing, computing], out)
    else:
        text = csource.step_c(op, [f"a{i}[i]" for i in range(n)], operands, out)
    if text is None:
        return None
    name = f"{row.name}_{csource.short(computing)}"
    first = _equal_exponents(csource.c_type(computing)) if name in ("pow_f32", "pow_f64") else ()
    return _loop(name, text, operands, out, first)


def _is_cast(source: str, target: str) -> bool:
    """Return whether there is a cast: complex numbers are cast to others, and tested."""
    is_part = source in dtypes.COMPLEX and target not in (*dtypes.COMPLEX, "bool")
    return source != target and not is_part


def _cast_loop(source: str, target: str) -> tuple[str, str]:
    value = csource.load("a0[i]", source)
    text = csource.step_c(cast_op(target), [value], [source], target)
    assert text is not None
    text = csource.store(text, target)
    name = f"cast_{csource.short(source)}_{csource.short(target)}"
    return _loop(name, text, [source], target)


def _take_loop(dtype: str) -> tuple[str, str]:
    """Return (name, text) of the loop that takes elements of a table at indices of int64."""
    name, type_ = f"take_{csource.short(dtype)}", csource.stored(dtype)
    lines = [
        f"void ow_loop_{name}(void *out, const void *const *in, ow_i64 n)",
        "{",
        f"    const {type_} *x = in[0];",
        "    const ow_i64 *at = in[1];",
        f"    {type_} *z = out;",
        "    for (ow_i64 i = 0; i < n; i++)",
        f"        z[i] = {take.element('x', 'at[i]', dtype)};",
        "}",
    ]
    return name, "\n".join(lines)


def _reducer(row: str, element: str, acc: str, sets: int) -> str:
    """Return the name of a reduction that fills one of some sets of accumulators."""
    kind = f"{row}_{csource.short(element)}_{csource.short(acc)}"
    return kind if sets == 1 else f"{kind}_{sets}"


def _twin(row: str, element: str, acc: str) -> tuple[str, str]:
    """Return the dtypes (element, accumulator) whose loop gives the bits of a reduction.

    Integers wrap, so sums and products have the same bits with and without a sign; bool is a byte.
    """
    twin = {
        ("bool", "int64"): ("uint8", "uint64"),
        ("bool", "bool"): ("uint8", "uint8"),
        ("int64", "int64"): ("uint64", "uint64") if row in ("add", "mul") else ("int64", "int64"),
    }.get((element, acc), (element, acc))
    return twin if (row, *twin) in loops.REDUCTIONS else (element, acc)


#: what a function is that compilers make small
_COLD = "static __attribute__((cold)) "
#: of what programs multiply all elements
_MULTIPLIED = ("float32", "float64", "int32", "int64", "uint64")


def _is_rare(row: str, element: str) -> bool:
    """Return whether few programs reduce so: vectors of it are not worth a compiler's time."""
    if row == "mul":
        return element not in _MULTIPLIED
    return row in ("minimum", "maximum") and element in dtypes.COMPLEX


def _reducers() -> str:
    """Return the C text of the reductions and the table of them, for simd_sums.h."""
    texts: list[str] = []
    rows = []
    sums = [each for each in loops.REDUCTIONS if each[0] == "add" and each[1] in dtypes.FLOATS]
    several = [(*each, sets) for each in sums for sets in (2, loops.MOST_SETS)]
    for row, element, acc, sets in (*((*each, 1) for each in loops.REDUCTIONS), *several):
        kind = _reducer(row, element, acc, sets)
        loop = f"ow_reduce_{_reducer(row, *_twin(row, element, acc), sets)}"
        if loop == f"ow_reduce_{kind}":
            texts += (
                loops.reduction_text(
                    loop, row, acc, "any" if sets == 1 else "run", Program((element,), (), (0,)),
                    prefix=_COLD if _is_rare(row, element) else "static ", apart=sets == 1,
                    beside=sets - 1,
                )
                or []
            )  # fmt: skip
        fold, type_ = loops.FOLDS[row], csource.c_type(acc)
        start = csource.literal(fold.start(acc), acc)
        texts.append(f"static const {type_} ow_start_{kind} = {start};")
        needs_elements = int(fold.needs_elements)
        rows.append(
            f'    {{"{kind}", sizeof({type_}), &ow_start_{kind}, {loop}, {needs_elements}}},'
        )
    table = [
        "static const ow_reducer ow_reducer_rows[] = {",
        *rows,
        "};",
        "static const int ow_reducer_rows_count ="
        " sizeof(ow_reducer_rows) / sizeof(ow_reducer_rows[0]);",
    ]
    return loops.file_text(
        [*texts, *table], [Program(_DTYPES, ())], head="/* made by opwise/scalar/kernelgen.py */"
    )


#: exponents of floats for which a chunk of powers needs no call of pow: the results are the same,
#: bit by bit
_POWERS = {
    "2": "{x} * {x}",
    "0": "1",
}


def _equal_exponents(type_: str) -> list[str]:
    """Return the lines that compute a chunk of powers with one of the exponents above."""
    lines = [
        f"const {type_} y = a1[0];",
        "ow_i64 equal = 0;",
        "for (ow_i64 i = 0; i < n; i++)",
        "    equal += a1[i] == y;",
    ]
    for exponent, power in _POWERS.items():
        lines += [
            f"if (equal == n && y == {exponent}) {{",
            '    _Pragma("GCC ivdep")',
            "    for (ow_i64 i = 0; i < n; i++)",
            f"        z[i] = {power.format(x='a0[i]')};",
            "    return;",
            "}",
        ]
    return lines


def _loop(
    name: str, text: str, in_dtypes: Sequence[str], out_dtype: str, first: Sequence[str] = ()
) -> tuple[str, str]:
    """Return (name, text) of a loop. first: lines that may compute the chunk and return."""
    lines = [f"void ow_loop_{name}(void *out, const void *const *in, ow_i64 n)", "{"]
    for i, dtype in enumerate(in_dtypes):
        lines.append(f"    const {csource.stored(dtype)} *a{i} = in[{i}];")
    lines.append(f"    {csource.stored(out_dtype)} *z = out;")
    lines += [f"    {line}" for line in first]
    lines.append('    _Pragma("GCC ivdep")')
    lines.append("    for (ow_i64 i = 0; i < n; i++)")
    lines.append(f"        z[i] = {text};")
    lines.append("}")
    return name, "\n".join(lines)


def _file(
    members: tuple[str, ...],
    loops: Iterable[tuple[str, str]],
    rows: Iterable[ScalarSpec] | None = None,
) -> str:
    """Return the C file of some loops that compute in ``members``.

    rows: those of the loops (default: all).
    """
    rows = list(ROWS.values()) if rows is None else rows
    support = {name for row in rows for name in row.c_support}
    # functions are borrowed for floats alone
    libm = {name for row in rows for name in row.libm if name not in borrowed.BORROWED}
    if members is dtypes.COMPLEX:
        support |= {name for row in rows for name in row.complex_support}
        libm |= {name for row in rows for name in row.complex_libm}
    # the build runs on other hardware too: it must not rely on vector functions of libmvec
    head = [
        "/* made by opwise/scalar/kernelgen.py */",
        csource.prototypes(libm, members, simd=False),
        csource.support(support, members),
    ]
    return "\n".join([*head, *(text for _, text in loops), ""])


def _real_loops() -> str:
    """Return the C text of the loops of real numbers and the table of them, for simd_loops.h.

    They call no vector function of libmvec, since the build may run on other hardware.
    """
    loops = _row_loops(("float32", "float64", *dtypes.DISCRETE))
    return "\n".join([
        "/* made by opwise/scalar/kernelgen.py */",
        *(f"static {text}" for _, text in loops),
        "static const ow_loop_row ow_real_loop_rows[] = {",
        *(f'    {{"{name}", ow_loop_{name}}},' for name, _ in loops),
        "};",
        "static const int ow_real_loop_count ="
        " sizeof(ow_real_loop_rows) / sizeof(ow_real_loop_rows[0]);",
        "",
    ])  # fmt: skip


def _table(names: Sequence[str]) -> str:
    declared = "\n".join(
        f"void ow_loop_{name}(void *, const void *const *, int64_t);" for name in names
    )
    rows = "\n".join(f'    {{"{name}", ow_loop_{name}}},' for name in names)
    return f"""/* made by opwise/scalar/kernelgen.py */
#ifndef OW_LOOPS_H
#define OW_LOOPS_H

#include "simd.h"

{declared}

static const ow_loop_row ow_loop_rows[] = {{
{rows}
    {{0, 0}}}};
static const int ow_loop_count = sizeof(ow_loop_rows) / sizeof(ow_loop_rows[0]) - 1;

#endif
"""
