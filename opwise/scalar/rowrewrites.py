"""Forms of row programs that take less time, with results that differ in the last bits at most.

- Elements that are divided by a square root of their row are multiplied by its reciprocal: a
  division takes several times as long, and the reciprocal of a root is finite.
- Sums of squared deviations of float32 from a mean, in float64, come from the pass that computes
  the mean. See ``opwise.optimizers.rules.deviations`` for the formula and its error.
"""

from __future__ import annotations

from dataclasses import replace

from opwise.scalar.op import OPS, cast_op
from opwise.scalar.program import Instruction
from opwise.scalar.rowloops import RowFirst, RowFold, RowLength, RowProgram

_FLOATS = ("float32", "float64")


def rewritten(program: RowProgram) -> RowProgram:
    """Return a program with the same results in a faster form."""
    return _without_divisions(_with_deviations(program))


class _Copy:
    """A copy of a program, made instruction by instruction."""

    def __init__(self, program: RowProgram) -> None:
        self.of = program
        self.instructions: list[Instruction] = []
        #: slots of the copy, by those of the program
        self.at = list(range(len(program.in_dtypes)))

    def add(self, one: Instruction) -> int:
        """Append an instruction on slots of the copy; return its slot."""
        self.instructions.append(one)
        return len(self.of.in_dtypes) + len(self.instructions) - 1

    def apply(self, name: str, *args: int, dtype: str = "float64") -> int:
        """Append an operation of the table; return its slot."""
        return self.add(Instruction(OPS[name], args, dtype))

    def cast(self, slot: int, dtype: str = "float64") -> int:
        """Append a cast; return its slot."""
        return self.add(Instruction(cast_op(dtype), (slot,), dtype))

    def sum(self, slot: int) -> int:
        """Append the sum of a slot of float64; return its slot."""
        return self.add(Instruction(RowFold("add", "float64"), (slot,), "float64"))

    def same(self, one: Instruction) -> int:
        """Append an instruction of the program as it is; return its slot."""
        return self.add(one._replace(args=tuple(self.at[a] for a in one.args)))

    def program(self) -> RowProgram:
        """Return the copy without instructions that nothing reads."""
        n, outs = len(self.of.in_dtypes), [self.at[s] for s in self.of.outs]
        needed, pending = set(), list(outs)
        while pending:
            slot = pending.pop()
            if slot >= n and slot not in needed:
                needed.add(slot)
                pending.extend(self.instructions[slot - n].args)
        order = sorted(needed)
        places = {s: s for s in range(n)} | {s: n + k for k, s in enumerate(order)}
        kept = (self.instructions[s - n] for s in order)
        instructions = (one._replace(args=tuple(places[a] for a in one.args)) for one in kept)
        outs = [places[s] for s in outs]
        return replace(self.of, instructions=tuple(instructions), outs=tuple(outs))


def _of(program: RowProgram, slot: int, name: str) -> Instruction | None:
    """Return the instruction of a slot if it applies this operation of the table."""
    one = program.instruction(slot)
    is_it = one is not None and one.op.row is not None and one.op.row.name == name
    return one if is_it else None


# --- divisions ------------------------------------------------------------------------------------


def _without_divisions(program: RowProgram) -> RowProgram:
    copy, reciprocals = _Copy(program), {}
    for slot, one in program.numbered():
        if _divides_by_root(program, slot):
            element, root = (copy.at[a] for a in one.args)
            if root not in reciprocals:
                reciprocals[root] = copy.apply("inv", root, dtype=one.dtype)
            copy.at.append(copy.apply("mul", element, reciprocals[root], dtype=one.dtype))
        else:
            copy.at.append(copy.same(one))
    return copy.program() if reciprocals else program


def _divides_by_root(program: RowProgram, slot: int) -> bool:
    division = _of(program, slot, "true_div")
    if division is None or not program.wide[slot] or program.wide[division.args[1]]:
        return False
    root = _of(program, division.args[1], "sqrt")
    return root is not None and division.dtype in _FLOATS and root.dtype == division.dtype


# --- deviations -----------------------------------------------------------------------------------


def _with_deviations(program: RowProgram) -> RowProgram:
    squares = _sums_of_squares(program)
    if not squares:
        return program
    copy, of_squares_too = _Copy(program), {x for x, _ in squares.values()}
    #: by x, slots of: its first element, deviations from that, their sum, the length of the row
    deviations: dict[int, tuple[int, int, int, int]] = {}
    for slot, one in program.numbered():
        if slot in squares:
            x, centre = squares[slot]
            first, d, total, n = deviations[x]
            of_squares = copy.sum(copy.apply("sqr", d))
            mean = copy.apply("true_div", total, n)
            about_mean = copy.apply("sub", of_squares, copy.apply("mul", total, mean))
            off = copy.apply("sub", copy.apply("add", first, mean), copy.cast(copy.at[centre]))
            moved = copy.apply("mul", n, copy.apply("sqr", off))
            about_centre = copy.apply("add", about_mean, moved)
            # without elements, both are NaN, and the sum is 0
            found = copy.apply("switch", n, about_centre, of_squares)
            copy.at.append(copy.cast(found, one.dtype))
        elif _is_sum(one) and one.args[0] in of_squares_too:
            (x,) = one.args
            if x not in deviations:
                first = copy.add(Instruction(RowFirst(), (x,), program.dtypes[x]))
                first = copy.cast(first)
                d = copy.apply("sub", copy.cast(x), first)
                total = copy.sum(d)
                n = copy.add(Instruction(RowLength(), (), "float64"))
                deviations[x] = first, d, total, n
            first, _, total, n = deviations[x]
            whole = copy.apply("add", total, copy.apply("mul", n, first))
            copy.at.append(copy.cast(whole, one.dtype))
        else:
            copy.at.append(copy.same(one))
    return copy.program()


def _is_sum(one: Instruction) -> bool:
    """Return whether an instruction adds up float32 in float64."""
    return one.op == RowFold("add", "float64") and one.dtype == "float32"


def _sums_of_squares(program: RowProgram) -> dict[int, tuple[int, int]]:
    """Return {slot of a sum of (x - c)**2: (x, c)} where c depends on the sum of a wide input x."""
    n = len(program.in_dtypes)
    #: the wide inputs on whose sums each narrow slot depends
    depends: list[frozenset[int]] = [frozenset()] * n
    found = {}
    for slot, one in enumerate(program.instructions, n):
        sums = frozenset().union(*(depends[a] for a in one.args if not program.wide[a]))
        if _is_sum(one):
            (summed,) = one.args
            if summed < n and program.dtypes[summed] == "float32":
                sums |= {summed}
            deviation = _squared_deviation(program, summed)
            if deviation is not None:
                x, centre = deviation
                if x in depends[centre]:
                    found[slot] = deviation
        depends.append(sums)
    return found


def _squared_deviation(program: RowProgram, slot: int) -> tuple[int, int] | None:
    """Return (x, c) if a slot is (x - c)**2 of a wide input of float32 and a narrow slot."""
    square = _of(program, slot, "sqr") or _of(program, slot, "mul")
    if square is None or square.args not in ((square.args[0],), (square.args[0],) * 2):
        return None
    difference = _of(program, square.args[0], "sub")
    if difference is None:
        return None
    x, centre = difference.args
    is_input = x < len(program.in_dtypes) and program.wide[x]
    dtypes = {program.dtypes[s] for s in (slot, square.args[0], x, centre)}
    return (x, centre) if is_input and not program.wide[centre] and dtypes == {"float32"} else None
