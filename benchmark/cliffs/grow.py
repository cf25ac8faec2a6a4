"""Random programs of several families, and neighbours that differ from one by one step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from benchmark.cliffs.programs import LEAF_LAYOUTS, Leaf, Program, Statement

DTYPES = ("float32", "float64") * 4 + (
    "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool", "float16",
    "complex64", "complex128",
)  # fmt: skip
FLOATS = ("float32", "float64")
#: for each dtype one whose operations should take about as long
SIBLINGS = {
    "float32": "float64", "float64": "float32", "int64": "int32", "int32": "int64", "int8": "uint8",
    "uint8": "int8", "int16": "uint16", "uint16": "int16", "uint32": "int32", "uint64": "int64",
    "complex64": "complex128", "complex128": "complex64",
}  # fmt: skip
_BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "add", "mul", "sub")
_UNARY = ("negative", "square", "abs", "sqrt", "floor", "exp", "log", "tanh", "sin")
_EXACT = ("add", "mul", "maximum", "minimum")


def lengths(rng: Random, ndim: int, most: float) -> tuple[int, ...]:
    """Return a random shape of up to ``most`` elements: thin or fat, odd or round."""
    total = 10 ** rng.uniform(0, most)
    shares = [rng.choice([0.05, 0.3, 1.0, 2.0]) for _ in range(ndim)]
    shape = [max(1, round(total ** (share / sum(shares)))) for share in shares]
    if rng.random() < 0.3:
        shape = [max(1, length // 8 * 8) if length > 8 else length for length in shape]
    return tuple(shape)


def _leaf(rng: Random, dtype: str, shape: tuple[int, ...]) -> Leaf:
    layout = rng.choice(LEAF_LAYOUTS) if shape and rng.random() < 0.15 else "plain"
    return Leaf(dtype, shape, layout)


def _operand(rng: Random, dtype: str, shape: tuple[int, ...]) -> Leaf:
    """Return a leaf that goes with a shape: as large, or broadcast along some dimensions."""
    if rng.random() < 0.5:
        return _leaf(rng, dtype, shape)
    return _leaf(rng, dtype, tuple(1 if rng.random() < 0.5 else length for length in shape))


def fused(rng: Random, most: float) -> Program:
    """Elementwise operations on up to ten operands, with one or two results."""
    shape = lengths(rng, rng.choice([1, 2, 2, 2, 3, 4]), most)
    dtype = rng.choice(DTYPES)
    exact = dtype not in FLOATS
    leaves = [_leaf(rng, dtype, shape)]
    leaves += [_operand(rng, dtype, shape) for _ in range(rng.randint(0, 9))]
    statements: list[Statement] = []
    n = len(leaves)
    for k in range(1, n):
        before = n + k - 2 if k > 1 else 0
        statements.append(Statement(rng.choice(_EXACT if exact else _BINARY), (before, k)))
    for _ in range(rng.randint(0 if statements else 1, 3)):
        before = n + len(statements) - 1 if statements else 0
        name = rng.choice(("negative", "square", "abs")[exact and dtype == "bool" :]
                          if exact else _UNARY)  # fmt: skip
        statements.append(Statement("square" if dtype == "bool" else name, (before,)))
    last = n + len(statements) - 1
    outs = (last,) if rng.random() < 0.75 or last == n else (last, rng.randrange(n, last))
    return Program(tuple(leaves), tuple(statements), outs)


def reduction(rng: Random, most: float) -> Program:
    """A reduction along some axes of what few operations compute."""
    shape = lengths(rng, rng.choice([1, 2, 2, 2, 3, 4]), most)
    dtype = rng.choice(DTYPES)
    leaves, statements = [_leaf(rng, dtype, shape)], []
    for _ in range(rng.choice([0, 0, 1, 2, 3])):
        leaves.append(_operand(rng, dtype, shape))
    for k in range(1, len(leaves)):
        before = len(leaves) + k - 2 if k > 1 else 0
        statements.append(Statement(rng.choice(_EXACT), (before, k)))
    axes: list = [None, *range(len(shape)), -1]
    if len(shape) > 2:
        axes += [(0, 2), (1, 2), (0, 1)]
    names = ["sum", "max", "min", "sum", "mean"]
    if dtype in FLOATS:
        names += ["var", "prod", "argmax"]
    if dtype.startswith("complex") or dtype == "bool":
        names = ["sum"]
    name, axis = rng.choice(names), rng.choice(axes)
    if name == "argmax" and isinstance(axis, tuple):
        axis = 0
    last = len(leaves) + len(statements) - 1 if statements else 0
    statements.append(Statement(name, (last,), (axis,)))
    return Program(tuple(leaves), tuple(statements), (len(leaves) + len(statements) - 1,))


def rows(rng: Random, most: float) -> Program:
    """A chain along rows: sums and maxima of rows go back into the rows."""
    shape = lengths(rng, rng.choice([2, 2, 3]), most)
    dtype = rng.choice(FLOATS)
    leaves = [_leaf(rng, dtype, shape)]
    statements: list[Statement] = []
    value = 0
    for _ in range(rng.randint(1, 3)):
        fold = rng.choice(["row max", "row sum", "row mean", "row mean", "column sum"])
        statements.append(Statement(fold, (value,)))
        statements.append(Statement(rng.choice(["sub", "div", "add"]), (value, len(statements))))
        value = len(statements)
        if rng.random() < 0.5:
            statements.append(Statement(rng.choice(["exp", "square", "abs", "tanh"]), (value,)))
            value = len(statements)
    return Program(tuple(leaves), tuple(statements), (value,))


def indexing(rng: Random, most: float) -> Program:
    """Rows and columns by number, views, parts that are set."""
    shape = tuple(max(2, length) for length in lengths(rng, 2, most))
    dtype = rng.choice(DTYPES)
    leaf = _leaf(rng, dtype, shape)
    name = rng.choice(["take", "take columns", "set part", "step", "flip", "transpose", "part"])
    if name.startswith("take"):
        length = shape[name != "take"]
        index = Leaf("int64", (max(1, round(length * rng.choice([0.1, 0.5, 1]))),), below=length)
        return Program((leaf, index), (Statement(name, (0, 1)),), (2,))
    if name == "set part":
        part = _leaf(rng, dtype, (shape[0] - 1, shape[1]))
        return Program((leaf, part), (Statement(name, (0, 1)),), (2,))
    unary = "square" if dtype == "bool" else "abs" if dtype[0] == "u" else "negative"
    after = Statement(unary, (1,))
    return Program((leaf,), (Statement(name, (0,)), after), (2,))


def products(rng: Random, most: float) -> Program:
    """Products of matrices and vectors, most of them small or thin."""
    m, n, k = (max(1, round(10 ** rng.uniform(0, min(most, 6) / 2.4))) for _ in range(3))
    dtype = rng.choice([*FLOATS, *FLOATS, "int64", "float64"])
    left, right = rng.choice([((m, k), (k, n)), ((m, k), (k,)), ((k,), (k, n)), ((k,), (k,))])
    return Program(
        (_leaf(rng, dtype, left), _leaf(rng, dtype, right)), (Statement("dot", (0, 1)),), (2,)
    )


def updates(rng: Random, most: float) -> Program:
    """A shared variable takes a new value."""
    shape = lengths(rng, rng.choice([1, 2]), most)
    dtype = rng.choice(FLOATS)
    leaves = [Leaf(dtype, shape), _operand(rng, dtype, shape), Leaf(dtype, (1,) * len(shape))]
    statements = (Statement("mul", (1, 2)), Statement(rng.choice(["sub", "add"]), (0, 3)))
    return Program(tuple(leaves), statements, (4,), update=True)


def others(rng: Random, most: float) -> Program:
    """Joins, repetitions, cumulative sums, sorting, conditions, casts."""
    shape = lengths(rng, rng.choice([1, 2, 2]), most)
    dtype = rng.choice([d for d in DTYPES if not d.startswith("complex")])
    x, y = _leaf(rng, dtype, shape), _leaf(rng, dtype, shape)
    axis = rng.randrange(len(shape))
    choices: list[Statement] = [
        Statement("concatenate", (0, 1), (axis,)),
        Statement("concatenate", (0, 1), (axis,)),
        Statement("repeat", (0,), (rng.randint(2, 5), axis)),
        Statement("cumsum", (0,), (axis,)),
        Statement("where", (0, 1, 0)),
        Statement("less", (0, 1)),
        Statement("cast", (0,), (rng.choice([d for d in DTYPES if d[0] != "c"]),)),
    ]
    if dtype in FLOATS:
        choices += [Statement("sort", (0,)), Statement("argsort", (0,))]
    return Program((x, y), (rng.choice(choices),), (2,)).only_used()


FAMILIES: dict[str, Callable[[Random, float], Program]] = {
    f.__name__: f for f in (fused, reduction, rows, indexing, products, updates, others)
}


def grow(rng: Random, most: float) -> tuple[str, Program]:
    """Return (its family, a random program) with leaves of up to 10**most elements."""
    name = rng.choice([*FAMILIES, "fused", "reduction"])
    return name, FAMILIES[name](rng, most).only_used()


def neighbours(program: Program) -> list[tuple[str, Program]]:
    """Return (what differs, program) for programs that differ from one by one step."""
    found = []
    leaves = program.leaves
    first = leaves[0]
    if first.dtype in SIBLINGS and not any(s.name == "cast" for s in program.statements):
        other = SIBLINGS[first.dtype]
        changed = tuple(replace(v, dtype=other) if v.dtype == first.dtype and not v.below else v
                        for v in leaves)  # fmt: skip
        found.append((f"{other} for {first.dtype}", replace(program, leaves=changed)))
    names = {s.name for s in program.statements}
    if not names & {"dot", "take", "take columns"} and first.shape:
        for axis, length in enumerate(first.shape):
            if length < 2:
                continue
            changed = tuple(
                replace(v, shape=tuple(
                    d + 1 if k == axis and d > 1 else d for k, d in enumerate(v.shape)))
                for v in leaves
            )  # fmt: skip
            what = f"length {length + 1} for {length} of axis {axis}"
            found.append((what, replace(program, leaves=changed)))
    if names <= {*_BINARY, *_UNARY} and not program.update:
        more = replace(first, layout="plain")
        shifted = _shift(program, len(leaves))
        out = shifted.outs[0]
        number = len(leaves) + 1 + len(program.statements)
        found.append(
            (
                "one operand more",
                replace(
                    shifted,
                    leaves=(*leaves, more),
                    statements=(*shifted.statements, Statement("add", (out, len(leaves)))),
                    outs=(number, *shifted.outs[1:]),
                ),
            )
        )
    return found


def _shift(program: Program, n: int) -> Program:
    """Return a program in which the values from ``n`` on have numbers that are larger by 1."""
    return replace(
        program,
        statements=tuple(
            replace(s, args=tuple(a + (a >= n) for a in s.args)) for s in program.statements
        ),
        outs=tuple(o + (o >= n) for o in program.outs),
    )
