"""C text of whole loops: elementwise ones, and reductions of what a scalar program computes.

Programs with several functions run as several loops, block by block (``opwise.scalar.fission``).

A loop is ``void name(const void *ctx, char **p, const ow_i64 *st, ow_i64 n)``: the operands are at
``p``, their strides in bytes in ``st``, outputs or the accumulator first. Operands are contiguous
or broadcast (stride 0); the caller copies others chunk by chunk.

A reduction folds a run of elements into one accumulator of stride 0, or several rows into
accumulators side by side: behind the strides, ``st`` has the number of rows, and the strides of the
operands from row to row.
"""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from opwise.scalar import csource, dtypes, fission, take, usercode
from opwise.scalar.program import Instruction, Program

#: elements of a block, and copies of an element that is broadcast: the copies cost little beside
#: the work on short rows, and starting a block costs little beside its work
_COPIES = 64
#: the most instructions of a cheap program, which has no function among them: its reduction waits
#: for one addition after the other, and several accumulators let more of them run at once
_MAX_CHEAP = 8
#: bytes of the accumulators of a cheap reduction: four of the widest vectors
_LANES_BYTES = 256
#: bytes of the widest vectors
_WIDEST = 64
#: elements of a run that are folded into one number, before such numbers are joined pairwise
_RUN = 1024
#: bytes of the operands, results and buffers of one block of a split loop
_BLOCK_BYTES = 16384
#: accumulators of the elements that are too few for all of them
_FEW = 8
#: how many rows are folded before accumulators side by side are stored
_ROWS = 4
#: function of the two parts of an index to the C expressions of the elements there
_Elements: TypeAlias = Callable[[str, str], list[str]]
#: function of the two parts of an index to the statement that computes what is folded there
_Value: TypeAlias = Callable[[str, str], str]
#: a placeholder for the name of a function in the text that its name is a hash of
NAME = "@"


@dataclass(frozen=True)
class Fold:
    """How an operation reduces."""

    #: C expression of accumulator {a} and element {x}
    step: str
    #: its name in OpenMP
    clause: str
    #: whether an empty reduction has no value
    needs_elements: bool = False

    def start(self, dtype: str) -> float | complex:
        """Return the number that an accumulator starts from."""
        if self.clause in ("max", "min"):
            lowest = self.clause == "max"
            if dtype in dtypes.FLOATS:
                return -np.inf if lowest else np.inf
            if dtype == "bool":
                return 0 if lowest else 1
            if dtype in dtypes.COMPLEX:
                return complex(-np.inf, -np.inf) if lowest else complex(np.inf, np.inf)
            return np.iinfo(dtype).min if lowest else np.iinfo(dtype).max
        return {"+": 0, "|": 0, "*": 1, "&": 1}[self.clause]

    def join(self, a: str, x: str, dtype: str, type_: str) -> str:
        """Return the C expression that takes element ``x``, or an accumulator, into ``a``.

        dtype: of the accumulators, whose C type is ``type_``.
        """
        if dtype in dtypes.COMPLEX:
            name = {"+": "add", "*": "mul", "max": "maximum", "min": "minimum"}[self.clause]
            return f"ow_{name}_{csource.short(dtype)}({a}, {x})"
        if self.clause in ("max", "min") and dtype in dtypes.FLOATS:
            # a NaN stays: both comparisons with it are false
            sign = ">" if self.clause == "max" else "<"
            return f"(({x} {sign} {a}) | ({x} != {x}) ? {x} : {a})"
        return f"({type_})({self.step.format(a=a, x=x)})"


#: name of a row -> how it reduces
FOLDS = {
    "add": Fold("{a} + {x}", "+"),
    "mul": Fold("{a} * {x}", "*"),
    "maximum": Fold("({x} > {a} ? {x} : {a})", "max", True),
    "minimum": Fold("({x} < {a} ? {x} : {a})", "min", True),
    "or_": Fold("{a} | {x}", "|"),
    "and_": Fold("{a} & {x}", "&"),
}


#: the most accumulators of which opwise is built with reductions in the order of a loop for all
MOST_SETS = 4
_SUMS, _EXTREMA = ("add", "mul"), ("maximum", "minimum")
#: (row, element, accumulator) of the reductions that opwise is built with; float16 has accumulators
#: of float32
REDUCTIONS = (
    *((row, d, "float64") for row in _SUMS for d in dtypes.FLOATS),
    *((row, d, "float32") for row in _SUMS for d in ("float16", "float32")),
    *((row, d, "complex128") for row in _SUMS for d in dtypes.COMPLEX),
    *((row, "complex64", "complex64") for row in _SUMS),
    *(
        (row, d, "uint64" if d.startswith("uint") else "int64")
        for row in _SUMS
        for d in dtypes.DISCRETE
    ),
    *((row, d, "float32" if d == "float16" else d) for row in _EXTREMA for d in dtypes.ALL),
    ("or_", "bool", "bool"),
    ("and_", "bool", "bool"),
)


#: (accumulator, result) of reductions whose accumulators are wider than their results
NARROWED = frozenset((
    ("float64", "float32"), ("float64", "float16"), ("float32", "float16"),
    ("complex128", "complex64"),
))  # fmt: skip


def held_in(acc: str) -> str:
    """Return the dtype of the accumulators of a reduction that accumulates in ``acc``.

    Those of float16 hold float32: elements of float16 are values of it, and so are numpy's sums.
    """
    return "float32" if acc == "float16" else acc


def lane_sets(n_acc: int) -> int:
    """Return into how many parts the lanes of a reduction are divided, for so many accumulators."""
    return 1 << (n_acc - 1).bit_length()


def lanes(acc_dtype: str, n_acc: int, in_dtypes: Sequence[str]) -> int:
    """Return in how many lanes a run is folded into each of ``n_acc`` accumulators.

    in_dtypes: of the operands of a program; none if plain elements are folded.
    """
    found = max(1, _LANES_BYTES // (np.dtype(acc_dtype).itemsize * lane_sets(n_acc)))
    if n_acc > 1 or not in_dtypes:
        return found
    # gcc takes as many elements at once as fill a vector of the narrowest operand
    return max(found, _WIDEST // min(np.dtype(d).itemsize for d in in_dtypes))


def is_cheap(instructions: Sequence[Instruction]) -> bool:
    """Return whether a program does little besides loading its operands."""
    return len(instructions) <= _MAX_CHEAP and not any(
        usercode.has_c_code(one.op)
        if one.op.row is None
        else one.op.row.libm or one.op.row.c_support
        for one in instructions
    )


def body_text(
    name: str, program: Program, printer: Any = csource, stored: bool = False
) -> str | None:
    """Return the C function ``name_one(inputs, pointers to outputs)`` of a scalar program.

    printer: the module ``csource``, or an object with the same functions for another language.
    stored: whether outputs are elements of arrays, and not values.
    Returns None if an operation of the program has no expression.
    """
    names = [f"x{i}" for i in range(len(program.in_dtypes))]
    tables = take.tables(program)
    lines = []
    for k, one in enumerate(program.instructions):
        args = [names[a] for a in one.args]
        text = (
            take.element(args[0], args[1], one.dtype)
            if isinstance(one.op, take.Take)
            else printer.step_c(one.op, args, program.arguments(one), one.dtype)
        )
        if text is None:
            return None
        lines.append(f"    const {printer.c_type(one.dtype)} t{k} = {text};")
        names.append(f"t{k}")
    store = printer.store if stored else lambda text, dtype: text
    results = list(zip(program.outs, program.out_dtypes, strict=True))
    lines += [f"    *z{k} = {store(names[s], d)};" for k, (s, d) in enumerate(results)]
    parameters = [
        take.parameter(f"x{i}", d) if i in tables else f"{printer.c_type(d)} x{i}"
        for i, d in enumerate(program.in_dtypes)
    ]
    type_of = printer.stored if stored else printer.c_type
    parameters += [f"{type_of(d)} *z{k}" for k, (_, d) in enumerate(results)]
    head = f"OW_INLINE void {name}_one({', '.join(parameters)})"
    return "\n".join([*textwrap.wrap(head, 90, subsequent_indent="    "), "{", *lines, "}"])


def elemwise_text(
    name: str,
    program: Program,
    constant_inputs: Sequence[int] = (),
    maybe_broadcast: Sequence[int] = (),
    count: int | None = None,
) -> list[str] | None:
    """Return the C definitions of an elementwise loop, or None if a part of it has no C.

    constant_inputs: the inputs that are one number in every call. maybe_broadcast: the inputs that
    may be broadcast along the innermost dimension. count: how many elements every call has, if that
    is known. The last definition is the loop; the others may be shared with other loops.
    """
    parts = fission.split(program)
    if len(parts) == 1:  # as a sub-loop its slots would have other numbers
        made = [body_text(name, program, stored=True)]
    else:
        made = [body_text(NAME, part, stored=True) for part in parts]
    bodies = [body for body in made if body is not None]
    if len(bodies) < len(made):
        return None
    n_out = len(program.outs)
    results = map(csource.stored, program.out_dtypes)
    operands = _Operands.of(program, constant_inputs, maybe_broadcast)
    pointers = [f"{type_} *z{k} = ({type_} *)p[{k}];" for k, type_ in enumerate(results)]
    if len(parts) > 1:
        definitions, lines = _in_blocks(parts, bodies, operands)
    else:
        definitions = bodies
        lines = _each_element(name, operands, n_out)
    function = _function(name, [*pointers, *lines], count=count)
    return [*operands.definitions(), *definitions, function]


def _each_element(name: str, operands: _Operands, n_out: int) -> list[str]:
    """Return the lines that run a program on n elements."""
    if not operands.maybe:
        return [*operands.declared(), *_run(name, operands.elements("0", "i"), "", n_out, "n")]
    return [
        *operands.declared(_COPIES),
        *_blocks(_COPIES, _run(name, operands.elements("from", "i"), "from + ", n_out, "m")),
    ]


def _run(name: str, args: Sequence[str], start: str, n_out: int, count: str) -> list[str]:
    """Return the lines that run a program on elements ``start`` to ``start + count``."""
    call = ", ".join([*args, *(f"z{k} + {start}i" for k in range(n_out))])
    # an output may have the memory of an input, but then with the same layout
    return [
        '_Pragma("GCC ivdep")',
        f"for (ow_i64 i = 0; i < {count}; i++)",
        f"    {name}_one({call});",
    ]


def _blocks(size: int, lines: Sequence[str]) -> list[str]:
    """Return the lines that run others on each block, of m elements from ``from`` on."""
    return [
        f"for (ow_i64 from = 0; from < n; from += {size}) {{",
        f"    const ow_i64 m = n - from < {size} ? n - from : {size};",
        *(f"    {line}" for line in lines),
        "}",
    ]


def _in_blocks(
    parts: Sequence[fission.SubLoop],
    bodies: Sequence[str],
    operands: _Operands,
) -> tuple[list[str], list[str]]:
    """Return (C definitions of the sub-loops, the lines that call them block by block)."""
    dtypes, places = fission.buffers(parts, len(operands.dtypes))
    size = sum(np.dtype(d).itemsize for d in (*operands.dtypes, *dtypes))
    block = max(64, min(512, 1 << (_BLOCK_BYTES // size).bit_length() - 1))
    args = dict(enumerate(operands.pointers("from")))
    args |= {slot: f"b{k}" for slot, k in places.items()}
    definitions, calls = [], []
    for part, body in zip(parts, bodies, strict=True):
        still_here = [k for k, slot in enumerate(part.takes) if slot in operands.constant]
        name, text = _sub_loop(part, body, still_here)
        definitions.append(text)
        # an output may take the memory of an input, which nothing reads after the last sub-loop
        to = (
            [f"z{k} + from" for k in range(len(part.gives))]
            if part is parts[-1]
            else [args[slot] for slot in part.gives]
        )
        calls.append(f"{name}({', '.join([*(args[slot] for slot in part.takes), *to, 'm'])});")
    return definitions, [
        *operands.declared(block),
        *(f"{csource.stored(d)} b{k}[{block}];" for k, d in enumerate(dtypes)),
        *_blocks(block, calls),
    ]


def _sub_loop(part: fission.SubLoop, body: str, still: Sequence[int]) -> tuple[str, str]:
    """Return (name, C definition) of the function that runs a sub-loop on n elements.

    The name is a hash of the text, so equal sub-loops have one definition.
    """
    tables, results = take.tables(part), list(map(csource.stored, part.out_dtypes))
    args, parameters = [], []
    for i, d in enumerate(part.in_dtypes):
        moves = i not in tables and i not in still
        name = f"a{i}" if moves else f"x{i}"
        args.append(csource.load(f"{name}[i]", d) if moves else name)
        is_pointer = moves or i in tables
        parameters.append(take.parameter(name, d) if is_pointer else f"{csource.c_type(d)} {name}")
    parameters += [f"{t} *z{k}" for k, t in enumerate(results)]
    text = "\n".join([
        body,
        f"static __attribute__((noinline)) void {NAME}({', '.join(parameters)}, ow_i64 n)",
        "{",
        *(f"    {line}" for line in _run(NAME, args, "", len(results), "n")),
        "}",
    ])  # fmt: skip
    name = f"ow_s{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
    return name, text.replace(NAME, name)


def reduction_text(
    name: str,
    row_name: str,
    acc_dtype: str,
    order: str,
    program: Program,
    constant_inputs: Sequence[int] = (),
    maybe_broadcast: Sequence[int] = (),
    prefix: str = "",
    apart: bool = False,
    count: int | None = None,
    beside: int = 0,
) -> list[str] | None:
    """Return the C definitions of a loop that folds what a program computes, or None.

    An accumulator of stride 0 takes in a run of elements, in blocks that are joined pairwise, so
    that rounding errors grow with the logarithm of the length; otherwise each element goes into the
    accumulator beside it. order: "run" or "rows" if every call is of that kind, else "any".
    program: its results are folded, each into accumulators of its own. prefix: C text before the
    function. apart: whether the elements of a run of the only input may not be contiguous. count:
    how many elements every call has, if that is known. beside: how many accumulators other calls
    fill at the same time; the order is that of a loop that fills all of them.
    """
    body = body_text(name, program)
    if body is None:
        return None
    n_acc, in_dtypes = len(program.outs), program.in_dtypes
    given = take.value_dtypes(program) if program.instructions else ()
    n_lanes = lanes(acc_dtype, n_acc + beside, given)
    lines = _Fold(FOLDS[row_name], program.out_dtypes, acc_dtype, n_lanes)
    operands = _Operands.of(program, constant_inputs, maybe_broadcast)

    def value(operands: _Operands, elements: _Elements | None = None) -> _Value:
        """Return a function from two parts of an index to the statement that sets v0, v1, ..."""
        results = [f"&v{k}" for k in range(n_acc)]
        return lambda start, i: (
            f"{name}_one({', '.join([*(elements or operands.elements)(start, i), *results])});"
        )

    def apart_at(row: str = "") -> _Elements:
        """Return the text of elements in steps of any length."""
        element = csource.stored(in_dtypes[0])
        at = f"(p[1] + {row} * to_next[0])" if row else "p[1]"
        return lambda start, i: [
            csource.load(f"*(const {element} *)({at} + (({start}) + {i}) * st[1])", in_dtypes[0])
        ]

    def rows(count: int, scattered: bool = False) -> list[str]:
        declared, values = [], []
        for k in range(count):
            of_row = operands.of_row(f"_{k}", f"(row + {k})")
            declared += [] if scattered else of_row.declared(_COPIES)
            values.append(value(of_row, apart_at(f"(row + {k})") if scattered else None))
        return [
            f"for (; row + {count} <= rows; row += {count}) {{",
            *(f"    {line}" for line in (*declared, *lines.rows(values, bool(operands.maybe)))),
            "}",
        ]

    declared = operands.declared(lines.lanes if lines.lanes > 1 else _RUN)
    run = [*declared, *lines.run(value(operands))]
    side_by_side = [
        f"const ow_i64 rows = st[{n_acc + len(in_dtypes)}];",
        f"const ow_i64 *to_next = st + {2 * n_acc + len(in_dtypes)};",
        "ow_i64 row = 0;",
    ]
    near = [*(rows(_ROWS) if lines.lanes > 1 else []), *rows(1)]
    if order == "run":
        text = run
    elif order == "rows":
        text = [*side_by_side, *near]
    elif apart:
        steps = f"st[1] != sizeof({csource.stored(in_dtypes[0])})"
        scattered = lines.run(value(operands, apart_at()))
        text = [
            *_if("st[0] == 0", [*_if(steps, scattered), *run]),
            *side_by_side,
            *_if(steps, [*rows(_ROWS, True), *rows(1, True)]),
            *near,
        ]
    else:
        text = [*_if("st[0] == 0", run), *side_by_side, *near]
    return [*operands.definitions(), body, _function(name, text, prefix, count)]


def _if(condition: str, lines: Sequence[str]) -> list[str]:
    """Return the lines that run ``lines`` and return if a condition holds."""
    return [f"if ({condition}) {{", *(f"    {line}" for line in (*lines, "return;")), "}"]


def _or_nan(other: str, x: str) -> str:
    """Return the C expression for x if it is NaN, else for the other."""
    return f"({x} != {x} ? {x} : {other})"


class _Fold:
    """The lines that fold, by one operation, elements of some types into accumulators of one type.

    lanes: how many accumulators a run of elements has; 1: OpenMP vectorizes the loop.
    """

    def __init__(self, fold: Fold, elements: Sequence[str], acc: str, lanes: int) -> None:
        self.fold, self.dtype = fold, acc
        self.dtypes = elements
        self.elements, self.acc = [csource.c_type(e) for e in elements], csource.c_type(acc)
        self.start = csource.literal(fold.start(acc), acc)
        self.lanes = lanes
        self.nan = fold.clause in ("max", "min") and acc in dtypes.FLOATS

    def join(self, a: str, x: str) -> str:
        """Return the expression that takes an element, or another accumulator, into one."""
        return self.fold.join(a, x, self.dtype, self.acc)

    def take(self, into: str, value: _Value, at: tuple[str, str], nans: str | None = None) -> str:
        """Return the statements that take the elements at an index into accumulators.

        into: a format string with the number of the accumulator, {k}. at: the two parts of the
        index: where a block starts, and the place in it. nans: as ``into``, what keeps the elements
        that are NaN; the accumulators then need not take them.
        """
        declared, steps = [], []
        for k, element in enumerate(self.elements):
            declared.append(f"{element} v{k};")
            v = f"v{k}"
            if element != self.acc:
                v = f"w{k}"
                widened = f"({self.acc})v{k}"
                if self.dtype in dtypes.COMPLEX:
                    widened = csource.convert(f"v{k}", self.dtypes[k], self.dtype)
                steps.append(f"const {self.acc} w{k} = {widened};")
            to = into.format(k=k)
            if nans is None:
                steps.append(f"{to} = {self.join(to, v)};")
            else:
                steps.append(f"{to} = {self.fold.step.format(a=to, x=v)};")
                steps.append(f"{nans.format(k=k)} = {_or_nan(nans.format(k=k), v)};")
        return f"{{ {' '.join([*declared, value(*at), *steps])} }}"

    def each(self, line: str) -> list[str]:
        """Return a line for each accumulator, whose number takes the place of {k}."""
        return [line.replace("{k}", str(k)) for k in range(len(self.elements))]

    def run(self, value: _Value) -> list[str]:
        """Return the lines that fold a run into one accumulator, in blocks joined pairwise."""
        block = [
            *self.each(f"{self.acc} total{{k}} = {self.start};"),
            *(self._in_lanes(value) if self.lanes > 1 else self._in_vectors(value)),
            "ow_i32 j = 0;",
            "for (; blocks >> j & 1; j++) {",
            *self.each(f"    total{{k}} = {self.join('part{k}[j]', 'total{k}')};"),
            "}",
            *self.each("part{k}[j] = total{k};"),
            "blocks++;",
        ]
        return [
            *self.each(f"{self.acc} part{{k}}[64], *acc{{k}} = ({self.acc} *)p[{{k}}];"),
            "ow_u64 blocks = 0;",
            *_blocks(_RUN, block),
            "for (ow_i32 j = 0; blocks >> j; j++)",
            "    if (blocks >> j & 1) {",
            *self.each(f"        *acc{{k}} = {self.join('*acc{k}', 'part{k}[j]')};"),
            "    }",
        ]

    def _in_lanes(self, value: _Value) -> list[str]:
        nan = "nan{k}" if self.nan else None
        return [
            "ow_i64 i = 0;",
            *(self.each(f"{self.acc} nan{{k}} = 0;") if nan else []),
            *self._by_lanes(value, self.lanes),
            # what is left over would wait for one addition after the other
            *(self._by_lanes(value, _FEW) if self.lanes > _FEW else []),
            "for (; i < m; i++)",
            f"    {self.take('total{k}', value, ('from + i', '0'), nan)}",
            *(self.each(f"total{{k}} = {_or_nan('total{k}', nan)};") if nan else []),
        ]

    def _by_lanes(self, value: _Value, lanes: int) -> list[str]:
        """Return the lines that fold as many elements as fill some lanes, and these into one."""
        nan = "q{k}[j]" if self.nan else None
        return [
            f"if (i + {lanes} <= m) {{",
            *self.each(f"    {self.acc} s{{k}}[{lanes}];"),
            *(self.each(f"    {self.acc} q{{k}}[{lanes}];") if nan else []),
            f"    for (ow_i32 j = 0; j < {lanes}; j++) {{",
            *self.each(f"        s{{k}}[j] = {self.start};"),
            *(self.each("        q{k}[j] = 0;") if nan else []),
            "    }",
            f"    for (; i + {lanes} <= m; i += {lanes})",
            f"        for (ow_i32 j = 0; j < {lanes}; j++)",
            f"            {self.take('s{k}[j]', value, ('from + i', 'j'), nan)}",
            *(f"    {line}" for line in self._joined(lanes)),
            *(f"    {line}" for line in self.each(self._pair("total{k}", "s{k}[0]"))),
            *(self.each(f"    nan{{k}} = {_or_nan('nan{k}', 'q{k}[0]')};") if nan else []),
            "}",
        ]

    def _pair(self, a: str, x: str) -> str:
        """Return the statement that takes one lane into another; NaN is kept apart."""
        text = self.fold.step.format(a=a, x=x) if self.nan else self.join(a, x)
        return f"{a} = {text};"

    def _joined(self, lanes: int) -> list[str]:
        """Return the lines that fold the upper half of some lanes into the lower half, to the end.

        Compilers are slower at a loop over the halves, and at loops over a few numbers.
        """

        def pairs(j: str | int, half: int) -> list[str]:
            a, b = f"[{j}]", f"[{j} + {half}]"
            lines = self.each(self._pair(f"s{{k}}{a}", f"s{{k}}{b}"))
            if self.nan:
                lines += self.each(f"q{{k}}{a} = {_or_nan(f'q{{k}}{a}', f'q{{k}}{b}')};")
            return lines

        lines, half = [], lanes // 2
        while half >= _FEW // 2:
            lines += [
                f"for (ow_i32 j = 0; j < {half}; j++) {{",
                *(f"    {line}" for line in pairs("j", half)),
                "}",
            ]
            half //= 2
        while half:
            for j in range(half):
                lines += pairs(j, half)
            half //= 2
        return lines

    def _in_vectors(self, value: _Value) -> list[str]:
        clause = self.fold.clause
        if not self.nan:
            totals = ", ".join(self.each("total{k}"))
            return [
                f'_Pragma("omp simd reduction({clause} : {totals})")',
                "for (ow_i64 i = 0; i < m; i++)",
                f"    {self.take('total{k}', value, ('from', 'i'))}",
            ]
        step = self.fold.step.format(a="total0", x="v0")
        return [
            "ow_i32 bad = 0;",
            f'_Pragma("omp simd reduction({clause} : total0) reduction(| : bad)")',
            "for (ow_i64 i = 0; i < m; i++) {",
            f"    {self.elements[0]} v0;",
            f"    {value('from', 'i')}",
            f"    total0 = {step};",
            "    bad |= v0 != v0;",
            "}",
            'total0 = bad ? __builtin_nan("") : total0;',
        ]

    def rows(self, values: Sequence[_Value], in_blocks: bool) -> list[str]:
        """Return the lines that take an element of each row into the accumulators beside them."""
        start, count = ("from", "m") if in_blocks else ("0", "n")
        # where NaN is kept apart, one instruction takes the larger element, without a branch
        nans = "q{k}" if self.nan else None
        found = _or_nan("s{k}", nans) if nans else "s{k}"
        lines = [
            '_Pragma("GCC ivdep")',
            f"for (ow_i64 i = 0; i < {count}; i++) {{",
            *self.each(f"    {self.acc} s{{k}} = z{{k}}[{start} + i];"),
            *(self.each(f"    {self.acc} q{{k}} = 0;") if nans else []),
            *(f"    {self.take('s{k}', value, (start, 'i'), nans)}" for value in values),
            *self.each(f"    z{{k}}[{start} + i] = {found};"),
            "}",
        ]
        pointers = self.each(f"{self.acc} *z{{k}} = ({self.acc} *)p[{{k}}];")
        return [*pointers, *(_blocks(_COPIES, lines) if in_blocks else lines)]


@dataclass(frozen=True)
class _Operands:
    """The inputs of a loop in C text: numbers x0, ..., and pointers a0, ... to elements.

    Any number of them may be broadcast in some calls and not in others, and one loop serves all
    mixes: it runs in blocks, and a broadcast input is a block of copies of its element, which stays
    in the first cache and is read again for every block.
    """

    dtypes: Sequence[str]
    #: how many operands of the loop come before them
    first: int
    #: the inputs that are one number in every call
    constant: Sequence[int]
    #: the inputs that may be broadcast: x0, ... are then copies of the element, and moves0, ... 0
    maybe: Sequence[int]
    #: the inputs that are tables: x0, ... are the pointers to their elements
    tables: frozenset[int] = frozenset()
    #: what is appended to names, and the C expression of the row that they belong to
    suffix: str = ""
    row: str = ""

    @classmethod
    def of(cls, program: Program, constant: Sequence[int], maybe: Sequence[int]) -> _Operands:
        """Return the operands of a loop whose first ones are the results of a program."""
        tables = take.tables(program)
        return cls(program.in_dtypes, len(program.outs), constant, maybe, tables)

    def of_row(self, suffix: str, row: str) -> _Operands:
        """Return the operands of a row, under names of their own."""
        return replace(self, suffix=suffix, row=row)

    def declared(self, copies: int = 1) -> list[str]:
        """Return the lines that declare them; copies: how many of an element that is broadcast."""
        lines = []
        for i, dtype in enumerate(self.dtypes):
            type_, at, of = csource.stored(dtype), f"p[{self.first + i}]", f"{i}{self.suffix}"
            if self.row:
                at = f"({at} + {self.row} * to_next[{i}])"
            if i in self.tables:
                lines.append(f"const {type_} *const x{of} = (const {type_} *){at};")
                continue
            if i in self.constant:
                value = csource.load(f"*({type_} *){at}", dtype)
                lines.append(f"const {csource.c_type(dtype)} x{of} = {value};")
                continue
            lines.append(f"const {type_} *a{of} = (const {type_} *){at};")
            if i in self.maybe:
                lines += [
                    f"const ow_i64 moves{of} = st[{self.first + i}] != 0;",
                    f"{type_} x{of}[{copies}];",
                    f"if (!moves{of})",
                    f"    a{of} = ow_copies_{type_}(x{of}, *a{of}, n < {copies} ? n : {copies});",
                ]
        return lines

    def definitions(self) -> list[str]:
        """Return the C definitions that the declarations need."""
        types = dict.fromkeys(csource.stored(self.dtypes[i]) for i in self.maybe)
        # inlined, each would be vectorized again, which takes the compiler long
        return [
            f"static __attribute__((noinline)) const {type_} *ow_copies_{type_}("
            f"{type_} *to, {type_} x, ow_i64 n)\n"
            "{\n    for (ow_i64 i = 0; i < n; i++)\n        to[i] = x;\n    return to;\n}"
            for type_ in types
        ]

    def pointers(self, start: str) -> list[str]:
        """Return the text of each at an index where a block starts."""
        return [
            f"x{i}{self.suffix}"
            if i in self.constant or i in self.tables
            else f"a{i}{self.suffix} + ({start})" + f" * moves{i}{self.suffix}" * (i in self.maybe)
            for i in range(len(self.dtypes))
        ]

    def elements(self, start: str, i: str) -> list[str]:
        """Return the text of each one's element ``i`` of the block that starts at an index."""
        return [
            text
            if k in self.constant or k in self.tables
            else csource.load(f"({text})[{i}]", self.dtypes[k])
            for k, text in enumerate(self.pointers(start))
        ]


def _function(name: str, lines: Sequence[str], prefix: str = "", count: int | None = None) -> str:
    """Return the text of a loop over ``count`` elements, or as many as each call says."""
    last = "n" if count is None else "n_"
    if count is not None:
        lines = [f"const ow_i64 n = {count};", *lines]
    head = f"{prefix}void {name}(const void *ctx, char **p, const ow_i64 *st, ow_i64 {last})"
    return "\n".join([head, "{", *(f"    {line}" for line in lines), "}"])


def file_text(
    definitions: Iterable[str],
    programs: Iterable[Program],
    simd: bool = True,
    head: str = "",
) -> str:
    """Return a C file with definitions, and only the declarations that their programs need."""
    needed: tuple[set[str], set[str], set[str]] = (set(), set(), set())
    for program in programs:
        needed[2].update(csource.SPECIAL.intersection(program.in_dtypes))
        for one in program.instructions:
            parts = csource.requirements(one.op, program.arguments(one), one.dtype)
            for all_of, part in zip(needed, parts, strict=True):
                all_of.update(part)
    support, libm, used = map(sorted, needed)
    return "\n".join(
        [
            head,
            csource.prototypes(libm, used, simd),
            csource.support(support, used),
            *dict.fromkeys(definitions),
            "",
        ]
    )
