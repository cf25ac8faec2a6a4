"""Lists of a traced function: Python's, until calls decide what is in them; then arrays.

A list that a loop appends to, or of which calls decide an item that is set, gets a ``Memory``: an
array for the items (several, if the items are tuples), and, if its length may change, a number for
it. Writes into these are found by loops and branches as those into other arrays are.
"""

from __future__ import annotations

import collections
import copy
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from opwise import tensor as T
from opwise.tensor.type import tensor_type
from opwise.tracing import shaping, trees
from opwise.tracing.kinds import Kind, LoopError, as_kind, is_numeric, stepped
from opwise.tracing.reducing import lexsort, number_from
from opwise.tracing.trace import Room, current, untraceable
from opwise.tracing.values import (
    HANDLERS,
    UNKNOWN,
    Number,
    Root,
    Traced,
    array,
    as_traced,
    constant_of,
    dim_variable,
    fitted,
    hint_of,
    leave_to_python,
    number_of,
    number_text,
)

#: why an array that a list has cannot be changed in place
SHARED = "that is an item of a list, too"
#: an index that no array has
NOWHERE = 2**62


class NeedsMemory(LoopError):
    """A loop or a branch changes a list that it has not made: its items are to be in arrays.

    what: what it does with the list. item: one that is not in it yet. room: 'some' if it must have
    room for further items, 'any' if calls decide how many.
    """

    def __init__(self, owner: TracedList, what: str, item: Any, room: str) -> None:
        super().__init__(
            f"it {what} of a list", "Make an array before the loop, and assign its elements."
        )
        self.owner, self.items, self.room = owner, [] if item is None else [item], room


class Part:
    """An item of a list, or a part of one that is a tuple: a number, an array, or a list of them.

    kind: of the number or the array. dims: the lengths of the lists around it, in the item.
    """

    def __init__(self, kind: Kind, dims: tuple[Any, ...] = ()) -> None:
        self.kind, self.dims = kind, dims

    @property
    def shape(self) -> tuple[Any, ...]:
        """The lengths of the axes of the array that holds it."""
        return (*self.dims, *self.kind.dims)

    def joined(self, other: Part) -> Part:
        """Return what this one and another one are. Raises LoopError if they differ."""
        if len(self.dims) != len(other.dims):
            raise LoopError("items of a list are a list and no list")
        for a, b in zip(self.dims, other.dims, strict=True):
            if a is not b and (UNKNOWN in (hint_of(a), hint_of(b)) or bool(a != b)):
                raise LoopError("items of a list are lists of other lengths")
        return Part(stepped("an item of a list", self.kind, other.kind), self.dims)

    def same(self, other: Part) -> bool:
        return self.kind.same(other.kind)

    def value(self, x: Traced) -> Any:
        """Return the item that the part of an array is."""
        if self.dims:
            memory = Memory(trees.LEAF, [Part(self.kind, self.dims[1:])], [x])
            return TracedList((), memory)
        if self.kind.sort == "number":
            made = number_from(x)
            return made if made.kind == self.kind.what else Number(self.kind.what, made.variable)
        if self.kind.sort == "array":
            x = array(x.variable, x.dims)
            x.root.uncertain = SHARED  # it is a copy, which the list would not see change
        return x

    def variable(self, value: Any) -> Any:
        """Return an item as a variable."""
        if not self.dims:
            return self.kind.variable(value)
        if isinstance(value, TracedList) and value.memory is not None:
            kind = Kind("array", self.kind.type.dtype, self.shape)
            return kind.variable(value.memory.part())
        rows = [Part(self.kind, self.dims[1:]).variable(each) for each in value]
        return T.stack(rows)


def _taken_apart(item: Any) -> tuple[Any, list[Part], list[Any]]:
    """Return (structure, what its parts are, the parts) of an item. Raises LoopError."""
    leaves, structure = _flattened(item)
    parts = [_part(leaf) for leaf in leaves]
    if not parts:
        raise LoopError("items of a list are empty")
    return structure, parts, leaves


def _flattened(item: Any) -> tuple[list[Any], Any]:
    if type(item) is not tuple:
        return [item], trees.LEAF
    leaves: list[Any] = []
    nodes = []
    for each in item:
        more, structure = _flattened(each)
        leaves += more
        nodes.append(structure)
    return leaves, trees.Node(tuple, (), tuple(nodes))


def _part(value: Any) -> Part:
    if (memory := memory_of(value)) is not None:
        if memory.structure is not trees.LEAF or memory.size is not None:
            raise LoopError("items of a list are lists whose lengths calls decide, or of tuples")
        part = memory.parts[0]
        return Part(part.kind, (memory.length, *part.dims))
    if isinstance(value, list):
        if not value:
            raise LoopError("items of a list are empty lists")
        parts = [_part(each) for each in value]
        first = parts[0]
        for other in parts[1:]:
            first = first.joined(other)
        return Part(first.kind, (len(value), *first.dims))
    if not is_numeric(value):
        raise LoopError(f"an item of a list is {type(value).__name__}")
    made = as_kind(value)
    if any(type(d) is Number and not d.known for d in made.dims):
        raise LoopError("calls decide the shapes of the items of a list")
    return Part(made)


def _share(value: Any) -> None:
    """Note that a list has an array: what it holds is copied into that of the list."""
    trace = current()
    if type(value) is Traced and not value.scalar and not value.root.uncertain:
        value.root.uncertain = SHARED
        if trace is not None:
            trace.shared.append(value.root)


class Memory:
    """The items of a list, in arrays.

    structure: of an item. data: an array for each part of it. size: the memory of the number of
    items; None if it is that of the rows, and does not change.
    """

    def __init__(
        self, structure: Any, parts: list[Part], data: list[Traced], size: Root | None = None
    ) -> None:
        self.structure, self.parts, self.data, self.size = structure, parts, data, size
        #: the memory of the number of the row of the first item; None if it is the first row
        self.head: Root | None = None
        #: how many rows there are; None if no item can be added now
        self.capacity: Any = None
        #: whether calls decide how many are added
        self.is_any = False
        #: how many have been added at most, by one step of the loops that are being traced
        self.count: Any = 0
        #: whether this is the number, and the number of items before
        self.exact, self.before = True, 0
        #: how many branches are around the statement that has room
        self.branches = 0

    @property
    def is_row(self) -> bool:
        """Whether the list is an item of another one, whose memory it shares."""
        return bool(self.data[0]._path)

    @property
    def length(self) -> Any:
        """The number of items: an int or a Number."""
        if self.size is None:
            return self.data[0].dims[0]
        known = constant_of(self.size.variable)
        return Number("i", self.size.variable) if known is None else int(known)

    def variables(self) -> list[Any]:
        """Return the variables that it consists of."""
        roots = [root.variable for root in (self.size, self.head) if root is not None]
        every = [*(x.variable for x in self.data), *roots, self.capacity]
        return [variable for variable in every if variable is not None]

    def item(self, key: Any) -> Any:
        """Return an item."""
        return self._item([x[self.place(key)] for x in self.data])

    def _item(self, rows: Sequence[Any]) -> Any:
        values = [part.value(row) for part, row in zip(self.parts, rows, strict=True)]
        return trees.unflatten(self.structure, values)

    def place(self, key: Any) -> Any:
        """Return where an item is: NOWHERE if there is none."""
        key = number_of(key)
        if self.size is None:
            return key
        length, zero = self.size.variable, np.int64(0)
        if type(key) is not Number:
            at = length + np.int64(key) if key < 0 else T.constant(np.int64(key))
            is_there = T.ge(at, zero) if key < 0 else T.lt(at, length)
        else:
            at = T.switch(T.lt(key.variable, zero), key.variable + length, key.variable)
            is_there = T.and_(T.ge(at, zero), T.lt(at, length))
        return Number("i", T.switch(is_there, self._row(at), np.int64(NOWHERE)))

    def _row(self, at: Any) -> Any:
        """Return in which row an item is."""
        head = None if self.head is None else self.head.variable
        return at if head is None or constant_of(head) == 0 else at + head

    def set_item(self, place: Any, item: Any) -> None:
        """Write an item."""
        for x, part, value in zip(self.data, self.parts, _flattened(item)[0], strict=True):
            _share(value)
            row = part.variable(value)
            if x.ndim == 1:
                x[place] = array(row, (), True)
            else:
                x[place] = array(fitted(row, x.dims[1:]), x.dims[1:])

    def fits(self, structure: Any, parts: Sequence[Part]) -> bool:
        """Return whether an item of such parts can be written. Raises LoopError if none can be."""
        return all(
            part.same(each) for part, each in zip(self.joined(structure, parts), self.parts,
                                                  strict=True)
        )  # fmt: skip

    def joined(self, structure: Any, parts: Sequence[Part]) -> list[Part]:
        """Return what these items and one of such parts are. Raises LoopError if they differ."""
        if structure != self.structure:
            raise LoopError("items of a list have other structures")
        return [a.joined(b) for a, b in zip(self.parts, parts, strict=True)]

    def rows(self, x: Traced) -> Traced:
        """Return the part of an array that holds items."""
        if self.size is None:
            return x
        dims = (self.length, *x.dims[1:])
        return array(fitted(x.variable[self.part_of_rows()], dims), dims)

    def part_of_rows(self) -> slice:
        """Return which rows hold items."""
        assert self.size is not None
        first = self._row(np.int64(0))
        stop = self._row(self.size.variable)
        return slice(None if type(first) is np.int64 else first, stop)

    def part(self) -> Traced:
        """Return all items as a new array."""
        if self.structure is trees.LEAF:
            rows = self.rows(self.data[0])
            return array(rows.variable, rows.dims)
        return shaping.stack([self.rows(x) for x in self.data], axis=1)

    def array(self) -> Traced:
        """Return the array that numpy makes of the list."""
        made = self.part()
        if self.size is not None and (made.dtype != np.float64 or made.ndim > 1):
            # numpy's array of no items is another
            leave_to_python(T.eq(self.size.variable, 0))
        return made

    def closed(self) -> Memory:
        """Return the memory without room; its length is that of the array if it can be known."""
        self.capacity = None
        if not self.exact or hint_of(self.before) is UNKNOWN:
            return self
        length = self.before + self.count
        stop = T.as_tensor_variable(dim_variable(length))
        data = [_resized(x, x.variable[:stop], (length, *x.dims[1:])) for x in self.data]
        return Memory(self.structure, self.parts, data)

    def widened(self, parts: list[Part]) -> Memory:
        """Return the same items as other numbers."""
        data = []
        for x, part in zip(self.data, parts, strict=True):
            kind = Kind("array", part.kind.type.dtype, x.dims)
            data.append(x if x.dtype == np.dtype(kind.what) else kind.value(kind.variable(x)))
        made = Memory(self.structure, parts, data, self.size)
        made.head = self.head
        return made


def _of_python(name: str) -> Callable[..., Any]:
    python = getattr(list, name)

    def method(self: Any, *args: Any) -> Any:
        if self.stored(f"calls {name}") is not None:
            self.in_python(f"list.{name}")
        return python(self, *args)

    return method


def _reading(name: str) -> Callable[..., Any]:
    python = getattr(list, name)
    compare = {"__eq__": operator.eq, "__ne__": operator.ne}.get(name)

    def method(self: Any, *args: Any) -> Any:
        memory = memory_of(self)
        if memory is not None and compare is not None and isinstance(args[0], list):
            if memory_of(args[0]) is None and not args[0]:
                return compare(memory.length, 0)
        for each in (self, *args):
            if isinstance(each, TracedList):
                each.in_python(f"list.{name}")
        return python(self, *args)

    return method


class TracedList(trees.OwnList):
    """A list that a traced function makes. memory: what holds its items, if it does not itself.

    python: what it is in Python.
    """

    python: type = list

    def __init__(self, items: Iterable[Any] = (), memory: Memory | None = None) -> None:
        super().__init__(items)
        self.memory = memory
        self.serial = next(Root.serials)
        self._unfit = ""

    # --- where its items are

    def stored(self, what: str, item: Any = None) -> Memory | None:
        """Return the memory to change, or None if Python's list is to be changed.

        Raises NeedsMemory if an enclosing statement must make it.
        """
        older = self._is_older
        if self.memory is None:
            if not older:
                return None
            if self._unfit:
                raise LoopError(f"it {what} of a list, and {self._unfit}")
            raise NeedsMemory(self, what, item, "")
        if item is not None:
            try:
                structure, parts, _ = _taken_apart(item)
                if not self.memory.fits(structure, parts):
                    if older:
                        raise NeedsMemory(self, what, item, "")
                    self.memory = self.memory.widened(self.memory.joined(structure, parts))
            except LoopError:
                if older:
                    raise
                self.in_python("An item of another kind")
        return self.memory

    @property
    def _is_older(self) -> bool:
        """Whether it is older than a part of the program that may not run, or several times."""
        trace = current()
        return trace is not None and bool(trace.speculative) and (
            self.serial < trace.speculative[-1]
        )  # fmt: skip

    def unfit(self, why: str) -> None:
        """Note why its items cannot be in arrays."""
        self._unfit = why

    def by_calls(self, what: str, item: Any = None) -> Memory:
        """Return the memory of a list of which calls decide an item that is read or set."""
        memory = self.stored(what, item)
        if memory is None:
            self.memory = memory = _memory(self, [] if item is None else [item])
        return memory

    def in_python(self, what: str) -> None:
        """Take the items out of arrays, for what only Python's lists can do."""
        memory, trace = self.memory, current()
        if memory is None:
            return
        speculative = trace is not None and trace.speculative
        if memory.size is not None or speculative or hint_of(memory.length) is UNKNOWN:
            raise untraceable(
                f"{what} of a list whose items calls decide cannot be traced.",
                "Make an array of it (numpy.array), and use functions of numpy.",
            )
        items = [memory.item(k) for k in range(operator.index(memory.length))]
        self.memory = None
        super().extend(items)

    def grown(self, room: str, item: Any = None) -> Memory | None:
        """Return a memory with room for one item more, or None if Python's list is to grow."""
        memory = self.stored("calls append", item)
        if memory is None or memory.capacity is not None:
            return memory
        if memory.is_row:
            raise LoopError("it changes the length of a list that is an item of another one")
        if self._is_older:
            raise NeedsMemory(self, "calls append", item, room)
        self.memory = memory = _with_room(memory, 1)
        memory.capacity = None
        return memory

    # --- what a program does with it

    def append(self, item: Any) -> None:
        memory = self.grown("some", item)
        if memory is None:
            super().append(item)
            return
        trace = current()
        assert memory.size is not None
        size = memory.size.variable
        place, after = memory._row(size), size + np.int64(1)
        if memory.is_any:
            assert trace is not None
            full = T.ge(place, memory.capacity)
            trace.crowded.write(T.or_(trace.crowded.variable, full))
            place, after = T.switch(full, np.int64(0), place), T.switch(full, size, after)
        memory.set_item(Number("i", place), item)
        memory.size.write(after)
        memory.count = memory.count + 1
        if trace is not None and trace.branches > memory.branches:
            memory.exact = False
        if memory.capacity is None:  # it stands in no loop and no branch
            self.memory = memory.closed()

    def pop(self, index: Any = -1) -> Any:
        memory = self.stored("calls pop")
        if memory is None:
            return super().pop(index)
        if type(index) is not int or index not in (-1, 0):
            self.in_python("list.pop with an index")
            return super().pop(index)
        if memory.size is None:
            memory = self.grown("some")
            assert memory is not None
        memory.exact = False
        assert memory.size is not None and memory.head is not None
        leave_to_python(T.le(memory.size.variable, np.int64(0)))  # it raises an IndexError there
        item = memory.item(index)
        memory.size.write(memory.size.variable - np.int64(1))
        if not index:
            memory.head.write(memory.head.variable + np.int64(1))
        return item

    def clear(self) -> None:
        memory = self.stored("calls clear")
        if memory is None:
            super().clear()
            return
        if memory.size is None:
            memory = self.grown("some")
            assert memory is not None
        assert memory.size is not None
        memory.exact = False
        memory.size.write(T.constant(np.int64(0)))

    def extend(self, items: Iterable[Any]) -> None:
        for item in items:
            self.append(item)

    def __iadd__(self, items: Iterable[Any]) -> TracedList:  # type: ignore[misc,override]
        self.extend(items)
        return self

    def sort(self, *, key: Any = None, reverse: bool = False) -> None:
        memory = self.stored("calls sort")
        if memory is not None and key is None and all(x.ndim == 1 for x in memory.data):
            rows = [memory.rows(x) for x in memory.data]
            if len(rows) == 1:
                made: Any = [np.sort(rows[0])]  # type: ignore[call-overload]
                _rewritten(memory, [made[0][::-1]] if reverse else made)
            else:
                order = lexsort(rows[::-1])
                self.permute(order[::-1] if reverse else order)
            return
        self.in_python("list.sort")
        super().sort(key=key, reverse=reverse)

    def permute(self, order: Traced) -> None:
        """Put the items into another order: an array of the places where they are now."""
        memory = self.stored("calls sort")
        assert memory is not None
        _rewritten(memory, [memory.rows(x)[order] for x in memory.data])

    def reverse(self) -> None:
        memory = self.stored("calls reverse")
        if memory is None:
            super().reverse()
        else:
            _rewritten(memory, [memory.rows(x)[::-1] for x in memory.data])

    def count(self, value: Any) -> Any:
        if self.memory is None:
            return super().count(value)
        return number_from(np.sum(np.equal(self.memory.part(), value)))

    def index(self, value: Any, *bounds: Any) -> Any:
        if self.memory is None or bounds:
            self.in_python("list.index with bounds")
            return super().index(value, *bounds)
        found = np.equal(self.memory.part(), value)
        leave_to_python(np.logical_not(np.any(found)).variable)  # it raises a ValueError there
        return number_from(np.argmax(found))

    def copy(self) -> TracedList:
        if self.memory is None:
            return TracedList(self)
        memory = self.memory
        data = [array(memory.rows(x).variable, memory.rows(x).dims) for x in memory.data]
        return TracedList((), Memory(memory.structure, memory.parts, data))

    def __len__(self) -> int:
        return super().__len__() if self.memory is None else operator.index(self.memory.length)

    def __bool__(self) -> bool:
        return bool(len(self))

    def __iter__(self) -> Iterator[Any]:
        memory = self.memory
        if memory is None:
            return super().__iter__()
        if hint_of(memory.length) is UNKNOWN:
            raise untraceable(
                "Python cannot go through a list of which calls decide how long it is.",
                "Write a for statement over it, or make an array of it (numpy.array).",
            )
        return (memory.item(k) for k in range(operator.index(memory.length)))

    def __getitem__(self, key: Any) -> Any:
        memory = self.memory
        if memory is None:
            made = super().__getitem__(key)
            return TracedList(made) if isinstance(key, slice) else made
        if not isinstance(key, slice):
            return memory.item(key)
        data = [memory.rows(x)[key] for x in memory.data]
        return TracedList(
            (), Memory(memory.structure, memory.parts, [array(x.variable, x.dims) for x in data])
        )

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, slice):
            if self.stored("changes a part") is None:
                super().__setitem__(key, value)
                return
            raise untraceable(
                "A slice of a list whose items calls decide cannot be set.", "Write a loop."
            )
        if type(key) in (Number, Traced):
            try:
                memory: Memory | None = self.by_calls("changes an item", value)
            except LoopError as error:
                if self._is_older:
                    raise
                raise untraceable(
                    f"A value of an array decides which item of a list changes: {error.why}.",
                    "Make an array of the list, and assign its elements.",
                ) from error
        else:
            memory = self.stored("changes an item", value)
        if memory is None:
            super().__setitem__(key, value)
        else:
            memory.set_item(memory.place(key), value)

    def __add__(self, other: Any) -> Any:
        return _joined(self, other)

    def __radd__(self, other: Any) -> Any:
        return _joined(TracedList(other), self) if isinstance(other, list) else NotImplemented

    def __mul__(self, times: Any) -> Any:
        if self.memory is None and type(times) is Number and len(self) == 1:
            if not times.known or bool(times >= 0):
                with suppress(LoopError):  # its length is that number
                    return _repeated(self[0], times)
        self.in_python("A multiple")
        return TracedList(super().__mul__(times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return super().__repr__() if self.memory is None else "<traced list>"

    def __deepcopy__(self, memo: Any) -> TracedList:
        if self.memory is not None:
            return self.copy()
        return TracedList(
            HANDLERS.methods["copy"](each) if type(each) is Traced else copy.deepcopy(each, memo)
            for each in self
        )

    insert, remove = _of_python("insert"), _of_python("remove")
    __eq__, __ne__ = _reading("__eq__"), _reading("__ne__")
    __lt__, __le__ = _reading("__lt__"), _reading("__le__")
    __gt__, __ge__ = _reading("__gt__"), _reading("__ge__")
    __hash__ = None  # type: ignore[assignment]


class Deque(TracedList):
    """A ``collections.deque`` that a traced function makes."""

    python = collections.deque

    def popleft(self) -> Any:
        return self.pop(0)

    def appendleft(self, item: Any) -> None:
        if self.stored("calls appendleft") is not None:
            self.in_python("deque.appendleft")
        list.insert(self, 0, item)


def own_list(values: Any) -> Any:
    """Return a list that a traced function makes."""
    if current() is None:
        return values if type(values) is list else list(values)
    if isinstance(values, TracedList):
        return TracedList((), values.copy().memory) if values.memory else TracedList(values)
    if type(values) is Traced and values.ndim == 1 and type(values.dims[0]) is Number:
        kind = as_kind(values[0])
        data = [array(values.variable, values.dims)]
        return TracedList((), Memory(trees.LEAF, [Part(kind)], data))
    return TracedList(values)


def memory_of(value: Any) -> Memory | None:
    """Return the memory of a list, if its items are there."""
    return value.memory if isinstance(value, TracedList) else None


# --- making memory --------------------------------------------------------------------------------


def _memory(made: TracedList, more: Iterable[Any] = ()) -> Memory:
    """Return the memory of a list's items; more: items that it will get. Raises LoopError."""
    items, more = list(made), list(more)
    if len({id(each) for each in items if isinstance(each, list)}) < sum(
        isinstance(each, list) for each in items
    ):
        raise LoopError("several items of a list are the same list")
    structure, parts = None, None
    for item in [*items, *more]:
        other, found, _ = _taken_apart(item)
        if parts is None:
            structure, parts = other, found
        elif other != structure:
            raise LoopError("items of a list have other structures")
        else:
            parts = [a.joined(b) for a, b in zip(parts, found, strict=True)]
    if parts is None:
        raise LoopError("nothing is known of the items of a list")
    columns = [_flattened(item)[0] for item in items]
    data = []
    for k, part in enumerate(parts):
        dims = (len(items), *part.shape)
        if items:
            rows = [part.variable(each[k]) for each in columns]
            if all(isinstance(row, T.TensorConstant) for row in rows):
                variable = T.constant(np.stack([row.data for row in rows]))
            else:
                variable = T.stack(rows)
        else:
            lengths = [0, *map(dim_variable, part.shape)]
            variable = T.zeros(lengths, dtype=part.kind.type.dtype)
        data.append(array(fitted(variable, dims), dims))
        for each in columns:
            _share(each[k])
    memory = Memory(structure, parts, data)
    for k, item in enumerate(items):
        if isinstance(item, TracedList) and item.memory is None:
            # another name of it is a view of the row
            view = memory.item(k)
            list.clear(item)
            item.memory = view.memory
    list.clear(made)
    return memory


def _with_room(memory: Memory, room: Any) -> Memory:
    """Return a memory with the same items, and room for some more."""
    length = memory.length
    many = dim_variable(length)
    capacity = T.as_tensor_variable(many + np.int64(room) if type(room) is int else many + room)
    data = []
    for x, part in zip(memory.data, memory.parts, strict=True):
        lengths = [capacity, *map(dim_variable, part.shape)]
        dims = (Number("i", capacity), *part.shape)
        whole = fitted(T.zeros(lengths, dtype=part.kind.type.dtype), dims)
        if type(length) is Number or length:
            items = memory.rows(x).variable
            whole = T.set_subtensor(whole[: T.as_tensor_variable(many)], items)
        data.append(_resized(x, whole, dims))
    size = Root(T.cast(T.as_tensor_variable(many), "int64"))
    made = Memory(memory.structure, memory.parts, data, size)
    made.head = Root(T.constant(np.int64(0)))
    made.capacity, made.before = capacity, length
    return made


def _resized(x: Traced, variable: Any, dims: tuple[Any, ...]) -> Traced:
    """Return an array with another number of rows in the same memory: lists that are rows stay."""
    x.root.write(fitted(variable, dims))
    return Traced(x.root, dims)


def _rewritten(memory: Memory, rows: Sequence[Traced]) -> None:
    """Write all items of a list: those of each array."""
    for x, each in zip(memory.data, rows, strict=True):
        if memory.size is None:
            x[...] = each
        else:
            x.write(T.set_subtensor(x.variable[memory.part_of_rows()], each.variable))


def _joined(one: TracedList, other: Any) -> TracedList:
    """Return the sum of two lists."""
    if memory_of(one) is None and memory_of(other) is None:
        return TracedList(list.__add__(one, other))
    if not isinstance(other, list):
        raise TypeError(f'can only concatenate list (not "{type(other).__name__}") to list')
    try:
        first, second = (
            memory_of(each) or (_memory(TracedList(each)) if each else None)
            for each in (one, other)
        )
        if first is None or second is None:
            return TracedList((), first or second).copy()
        both = first.joined(second.structure, second.parts)
        first, second = first.widened(both), second.widened(both)
    except LoopError:  # their items are of other kinds
        for each in (one, other):
            if isinstance(each, TracedList):
                each.in_python("A sum")
        return TracedList(list.__add__(one, other))
    data = [
        np.concatenate([first.rows(a), second.rows(b)])
        for a, b in zip(first.data, second.data, strict=True)
    ]
    return TracedList((), Memory(first.structure, both, data))


def _repeated(item: Any, times: Number) -> TracedList:
    structure, parts, leaves = _taken_apart(item)
    if any(part.dims for part in parts):
        raise LoopError("several items of a list are the same list")
    least = times if times.known else number_from(np.maximum(as_traced(times), 0))
    data = []
    for part, leaf in zip(parts, leaves, strict=True):
        if part.kind.sort == "array":
            raise LoopError("several items of a list are the same array")
        value = array(part.variable(leaf), (), True)
        data.append(shaping.full((least,), value, value.dtype))
    return TracedList((), Memory(structure, parts, data))


def _nested(made: TracedList) -> list[TracedList]:
    """Return a list and the lists in it whose items are in Python's."""
    found = [made]
    for each in list.__iter__(made):
        if isinstance(each, TracedList):
            found += _nested(each)
    return found


# --- statements that change lists -----------------------------------------------------------------


class Growing:
    """The lists for which a statement has made memory."""

    def __init__(self) -> None:
        #: {id of a list: (it, its items or memory before)}
        self._before: dict[int, tuple[TracedList, list[Any], Memory | None]] = {}
        #: {an array of such a memory: its variable}
        self._roots: dict[Root, Any] = {}
        #: how many arrays were items of lists before
        self._shared = 0
        self._needs: dict[int, NeedsMemory] = {}

    def need(self, needed: NeedsMemory) -> None:
        """Note what a list needs beyond what is known."""
        known = self._needs.get(id(needed.owner))
        if known is not None:
            if needed.room in ("", known.room) and len(known.items) > 8:
                needed.owner.unfit("its items are of many kinds")
            needed.items += known.items
            order = ("", "some", "any")
            needed.room = max(needed.room, known.room, key=order.index)
        self._needs[id(needed.owner)] = needed

    def open(self) -> None:
        """Give the lists their memory."""
        trace = current()
        assert trace is not None
        self._shared = len(trace.shared)
        for needed in self._needs.values():
            owner = needed.owner
            for each in _nested(owner):
                self._before[id(each)] = each, list.copy(each), each.memory
                for x in () if each.memory is None else each.memory.data:
                    self._roots[x.root] = x.root.variable
            try:
                memory = owner.memory or _memory(owner, needed.items)
                for item in needed.items:
                    structure, parts, _ = _taken_apart(item)
                    memory = memory.widened(memory.joined(structure, parts))
            except LoopError as error:
                owner.unfit(error.why)
                continue
            if needed.room:
                room = Room(tensor_type("int64", ())("room"))
                trace.rooms.append(room)
                memory = _with_room(memory, room.variable)
                memory.is_any, memory.branches = needed.room == "any", trace.branches
                if memory.is_any:
                    memory.exact = False
                trace.growing.append((owner, memory, room))
            owner.memory = memory

    def undo(self) -> None:
        """Give the lists the items that they had."""
        trace = current()
        assert trace is not None
        for owner, items, memory in self._before.values():
            owner.memory = memory
            list.clear(owner)
            list.extend(owner, items)
            for each in [each for each in trace.growing if each[0] is owner]:
                trace.growing.remove(each)
                trace.rooms.remove(each[2])
        for root, variable in self._roots.items():
            root.variable, root.version = variable, root.version + 1
        for root in trace.shared[self._shared :]:
            root.uncertain = ""
        del trace.shared[self._shared :]
        self._before.clear()
        self._roots.clear()

    def close(self) -> None:
        """Note how much room the lists need; no more items can be added."""
        trace = current()
        assert trace is not None
        for owner, memory, room in [e for e in trace.growing if id(e[0]) in self._before]:
            if not memory.is_any:
                room.text = f"max(1, {number_text(memory.count)})"
            owner.memory = memory.closed()
        trace.growing[:] = [each for each in trace.growing if id(each[0]) not in self._before]


def with_memory(do: Callable[[], Any]) -> Any:
    """Do what traces a statement; again with other lists in memory while it changes some.

    It must leave everything as it was where it raises NeedsMemory.
    """
    trace = current()
    if trace is None:
        return do()
    growing = Growing()
    outer = trace.speculative[-1] if trace.speculative else -1
    while True:
        try:
            growing.open()
            made = do()
        except NeedsMemory as needed:
            growing.undo()
            if needed.owner.serial < outer:
                raise
            growing.need(needed)
        except BaseException:
            growing.undo()
            raise
        else:
            growing.close()
            return made


def counts() -> list[tuple[Memory, Any]]:
    """Return how many items have been added to the lists that grow."""
    trace = current()
    return [] if trace is None else [(m, m.count) for _, m, _ in trace.growing]


def reset(before: Sequence[tuple[Memory, Any]]) -> None:
    """Forget the items that have been added since."""
    for memory, count in before:
        memory.count = count


def repeat(before: Sequence[tuple[Memory, Any]], length: Any, ends: bool) -> None:
    """Note that a loop has traced one of its steps, whose number is known or not.

    ends: whether a step may end it. Raises NeedsMemory where calls decide how much room is needed.
    """
    trace = current()
    assert trace is not None
    owners = {id(memory): owner for owner, memory, _ in trace.growing}
    for memory, count in before:
        added = memory.count - count
        if type(added) is not Number and added == 0:
            continue
        many = type(added) is Number and type(length) is Number
        if many and not memory.exact and not memory.is_any:
            # most pairs of steps may append nothing: room for all would be too much
            raise NeedsMemory(owners[id(memory)], "calls append", None, "any")
        known = length is not None and hint_of(length) is not UNKNOWN
        total = count + added * length if known else None
        if total is not None and number_text(total) is None:
            total = None
        if ends or total is None:
            memory.exact = False
        if total is not None:
            memory.count = total
        elif not memory.is_any:
            raise NeedsMemory(owners[id(memory)], "calls append", None, "any")
