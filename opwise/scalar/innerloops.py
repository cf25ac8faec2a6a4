"""Loops in the C text of a recurrence whose indices grow evenly from step to step.

Such an index is in range in all steps if it is in the first and in the last one: where all of them
are, the loop runs without looking at indices. There, an element that one step writes and a later
one reads is handed on in a variable: the chain from step to step does not lead through memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, isnan, nan
from typing import Any

#: without it, gcc might take functions of several steps at once, by vector functions that round
#: otherwise than those of the VM's loops over one element
_SEPARATE = '__asm__ volatile("");'
#: without it, each run of a loop for vectors asks which of its arrays overlap
_IVDEP = "#pragma GCC ivdep"
#: characters of the longest sums
_LONGEST = 200
#: the most steps from the one that writes an element to the one that reads it in a variable
_LONGEST_WAY = 4


@dataclass(frozen=True)
class Sum:
    """A C expression of integers, ``of + number``; without ``of`` it is known."""

    of: str = ""
    number: int = 0

    def __str__(self) -> str:
        if not self.of:
            return f"({self.number}LL)"
        return f"({self.of} + {self.number}LL)" if self.number else self.of

    def plus(self, other: Sum, sign: int = 1) -> Sum:
        """Return the sum, or with sign -1 the difference."""
        number = self.number + sign * other.number
        if not other.of or (self.of == other.of and sign < 0):
            return Sum("" if other.of else self.of, number)
        if not self.of and sign > 0:
            return Sum(other.of, number)
        return Sum(f"({self.of or '0'} {'+' if sign > 0 else '-'} {other.of})", number)

    def times(self, other: Sum) -> Sum:
        """Return the product."""
        for x, y in ((self, other), (other, self)):
            if not x.of:
                of = "" if x.number == 0 else y.of if x.number == 1 else f"({y.of} * {x.number}LL)"
                return Sum(of if y.of else "", x.number * y.number)
        return Sum(f"({self} * {other})")


@dataclass(frozen=True)
class Growth:
    """An integer that is ``first`` in the first step of a loop, and grows by as much in each."""

    first: Sum
    by: Sum = Sum()

    @property
    def fits(self) -> bool:
        """Whether it is short, and numbers in it are no wider than they seem."""
        numbers = self.first.number, self.by.number
        short = len(self.first.of) + len(self.by.of) < _LONGEST
        return short and all(abs(number) < 2**40 for number in numbers)

    def plus(self, other: Growth, sign: int = 1) -> Growth:
        """Return the sum, or with sign -1 the difference."""
        return Growth(self.first.plus(other.first, sign), self.by.plus(other.by, sign))

    def times(self, other: Growth) -> Growth | None:
        """Return the product; None if it does not grow evenly."""
        still = Sum()
        if self.by != still and other.by != still:
            return None
        moves, stays = (other, self) if self.by == still else (self, other)
        return Growth(moves.first.times(stays.first), moves.by.times(stays.first))

    def steps_to(self, later: Growth) -> float | None:
        """Return after how many steps it is what the other one is now.

        None if that is not known; infinity if never, and NaN if at any time.
        """
        if self.by != later.by or self.by.of or self.first.of != later.first.of:
            return None
        ahead = later.first.number - self.first.number
        if not self.by.number:
            return inf if ahead else nan
        return ahead / self.by.number


@dataclass(eq=False)
class Access:
    """The statement that reads or writes an element of an array in memory."""

    operand: int
    writes: bool
    #: C type of the element, and the variable that is set, or the value that is written
    type: str
    value: str
    #: from C expressions of indices to that of the address of the element
    place: Callable[[Sequence[str]], str]
    #: C expressions of the indices, and of the lengths of their dimensions
    indices: Sequence[str]
    lengths: Sequence[str]
    #: by index, whether to look at it
    looked: Sequence[bool]
    #: by index, how it grows; None if that is not known
    growths: Sequence[Growth | None]
    #: whether it stands in a branch of the body
    in_branch: bool
    #: a name for variables of its own
    name: str

    def text(self, looks: bool) -> list[str]:
        """Return the statements. looks: at all indices that may be out of range."""
        lines, places = [], []
        for d, (index, length) in enumerate(zip(self.indices, self.lengths, strict=True)):
            grown = self.growths[d]
            if self.looked[d] and (looks or grown is None or _is_negative(grown)):
                name = f"j{self.name}_{d}"
                lines.append(f"const ow_i64 {name} = {index} + ({index} < 0 ? {length} : 0);")
                if looks or grown is None:
                    lines.append(f"if ((ow_u64){name} >= (ow_u64){length}) goto failed;")
                index = name
            places.append(index)
        element = f"({self.type} *)({self.place(places)})"
        if self.writes:
            return [*lines, f"*{element} = {self.value};"]
        return [*lines, f"const {self.type} {self.value} = *(const {element[1:]};"]

    @property
    def is_side_by_side(self) -> bool:
        """Whether it is the element beside the last step's in a row, or always the same."""
        *others, last = [Growth(Sum()), *self.growths]
        still = all(grown is not None and grown.by == Sum() for grown in others)
        return still and last is not None and last.by in (Sum(), Sum("", 1), Sum("", -1))

    def conditions(self, count: str) -> Iterator[str]:
        """Yield what holds if the indices that need no look are in range in ``count`` steps."""
        for look, grown, length in zip(self.looked, self.growths, self.lengths, strict=True):
            if look and grown is not None:
                least = f"-{length}" if _is_negative(grown) else "0"
                ends = [f"(__int128){grown.first}"]
                if grown.by != Sum():
                    ends.append(f"{ends[0]} + (__int128){grown.by} * ({count} - 1)")
                yield from (f"{least} <= {end} && {end} < {length}" for end in ends)

    def steps_to(self, later: Access) -> float | None:
        """Return after how many steps this one is at the element where the other one is now.

        None if that is not known, infinity if never, and NaN if at any time.
        """
        ways: list[float | None] = []
        for a, b in zip(self.growths, later.growths, strict=True):
            if a is None or b is None or _is_negative(a) or _is_negative(b):
                ways.append(None)
            else:
                ways.append(a.steps_to(b))
        known = {way for way in ways if way is not None and not isnan(way)}
        if len(known) > 1 or inf in known or any(way % 1 for way in known):
            return inf
        return None if None in ways else known.pop() if known else nan


def _is_negative(grown: Growth) -> bool:
    """Return whether an index is known to begin behind the end, as in ``x[i - 1]`` for i = 0."""
    return not grown.first.of and grown.first.number < 0


@dataclass
class Repeated:
    """A loop whose body is being made."""

    #: C expression of the number of steps
    count: str
    #: how many blocks are around the body
    depth: int
    head: str
    body: list[Any] = field(default_factory=list)
    #: the slots that grow evenly
    grows: dict[int, Growth] = field(default_factory=dict)
    accesses: list[Access] = field(default_factory=list)
    is_innermost: bool = True
    #: whether vectors of steps are no gain: floats go from step to step, or would round otherwise,
    #: since functions are called
    one_by_one: bool = False
    #: the variables of sums, in any order
    sums: Sequence[str] = ()

    @property
    def conditions(self) -> list[str]:
        """C expressions of what holds where the loop looks at no index that grows evenly."""
        every = (text for one in self.accesses for text in one.conditions(self.count))
        return list(dict.fromkeys(every))

    @property
    def is_independent(self) -> bool:
        """Whether no step reads or writes an element that another one writes.

        Arrays that are written share no memory with others.
        """
        written = {one.operand: list(one.indices) for one in self.accesses if one.writes}
        return all(
            written.get(one.operand, one.indices) == list(one.indices) for one in self.accesses
        ) and all(
            any(g is not None and g.by != Sum() for g in one.growths)
            for one in self.accesses if one.writes
        )  # fmt: skip

    def texts(self, depth: int, twice: bool) -> Iterator[str]:
        """Yield the statements of the loop. twice: whether it may also stand without looks."""
        indent, conditions = "    " * depth, self.conditions
        if not (self.is_innermost and twice and conditions):
            yield from self._version(depth, twice, not self.is_innermost or bool(conditions))
            return
        yield f"{indent}if ({' && '.join(conditions)}) {{"
        yield from self._version(depth + 1, twice, False)
        yield f"{indent}}} else {{"
        yield from self._version(depth + 1, twice, True)
        yield f"{indent}}}"

    def _version(self, depth: int, twice: bool, looks: bool) -> Iterator[str]:
        before, after, instead = _handed_on([] if looks else self.accesses, self.count)
        # what looks at indices is no loop for vectors anyway
        looks_always = any(
            look and grown is None
            for one in self.accesses
            for look, grown in zip(one.looked, one.growths, strict=True)
        )
        separated = self.one_by_one or looks_always or not self.is_innermost
        separate = [_SEPARATE] if separated or (looks and self.conditions) else []
        body = [*separate, *self.body, *after]
        # vectors of elements that lie apart are no gain, and compilers do less for such a loop
        if not separate and all(one.is_side_by_side for one in self.accesses):
            if self.sums:
                before.append(f'_Pragma("omp simd reduction(+ : {", ".join(self.sums)})")')
            elif self.is_independent:
                before.append(_IVDEP)
        yield from texts([*before, self.head, body, "}"], depth, twice, looks, instead)


def texts(
    lines: Sequence[Any],
    depth: int,
    twice: bool,
    looks: bool = True,
    instead: dict[Access, list[str]] | None = None,
) -> Iterator[str]:
    """Yield the statements of blocks, a list each, of loops and of accesses.

    twice: whether innermost loops also stand without looks at indices. looks: whether this is the
    body of one with them. instead: the statements of accesses that do not go to memory.
    """
    for line in lines:
        if isinstance(line, str):
            yield "    " * depth + line
        elif isinstance(line, list):
            yield from texts(line, depth + 1, twice, looks, instead)
        elif isinstance(line, Access):
            given = (instead or {}).get(line)
            yield from texts(line.text(looks) if given is None else given, depth, twice)
        else:
            yield from line.texts(depth, twice)


# --- values that are handed on --------------------------------------------------------------------


def _handed_on(
    accesses: list[Access], count: str
) -> tuple[list[str], list[str], dict[Access, list[str]]]:
    """Return (statements before the loop, at the end of its body, those of some reads)."""
    before: list[str] = []
    after: list[str] = []
    instead: dict[Access, list[str]] = {}
    for number, write in enumerate(accesses):
        if not write.writes or write.in_branch:
            continue
        ways = {
            read: way
            for place, read in enumerate(accesses)
            if not read.writes and read.operand == write.operand and read not in instead
            and (way := _way(accesses, number, place))
        }  # fmt: skip
        if not ways:
            continue
        name, most = f"h{write.name}", max(ways.values())
        for back in range(1, most + 1):
            # what the loop finds there if no step has written it: the first step that reads it
            read = min((r for r in ways if ways[r] >= back), key=ways.__getitem__)
            first = ways[read] - back
            at = [f"({g.first} + {g.by} * {first}LL)" for g in read.growths if g is not None]
            element = f"*(const {write.type} *)({read.place(at)})"
            before.append(
                f"{write.type} {name}_{back} = {count} > {first} ? {element} : ({write.type}){{0}};"
            )
        for read, way in ways.items():
            instead[read] = [f"const {read.type} {read.value} = {name}_{way};"]
        after += [f"{name}_{back} = {name}_{back - 1};" for back in range(most, 1, -1)]
        after.append(f"{name}_1 = {write.value};")
    return before, after, instead


def _way(accesses: list[Access], number: int, place: int) -> int:
    """Return after how many steps a read finds what a write wrote, 0 if that is not sure."""
    write, read = accesses[number], accesses[place]
    way = read.steps_to(write)
    if way is not None and isnan(way) and place < number:
        way = 1  # one element in all steps
    if write.type != read.type or way is None or not 1 <= way <= _LONGEST_WAY:
        return 0
    for k, other in enumerate(accesses):
        if not other.writes or other.operand != write.operand or other is write:
            continue
        # how many steps after the write this one is at the element
        later = other.steps_to(write)
        if later is None or isnan(later):
            return 0
        first, last = (0 if k > number else 1), (way if k < place else way - 1)
        if first <= later <= last:
            return 0
    return int(way)
