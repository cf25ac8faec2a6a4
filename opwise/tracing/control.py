"""What converted text calls for loops.

On Python's values it does what Python does. On traced values a loop becomes ``scan``.
"""

from __future__ import annotations

import builtins
import itertools
import operator
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from opwise import tensor as T
from opwise.errors import TracingError
from opwise.graph.provenance import located
from opwise.graph.traversal import ancestors, clone_replace, io_toposort
from opwise.graph.variable import Variable
from opwise.loops.build import scan
from opwise.loops.op import Scan
from opwise.loops.program import can_append
from opwise.loops.returned import until
from opwise.tensor.assertion import Assert
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.ifelse import IfElse, ifelse
from opwise.tensor.subtensor import Subtensor
from opwise.tensor.type import TensorType, tensor_type
from opwise.tracing import generators, lists, trees
from opwise.tracing.branches import (
    HasValue,
    Undefined,
    as_bool,
    condition,
    decided,
    if_statement,
    is_element,
    rewrite,
    same_graph,
    speculative,
    trace_branch,
    truth_of,
    undo,
    watched,
)
from opwise.tracing.indexing import converted
from opwise.tracing.kinds import (
    OWN,
    Kind,
    LoopError,
    as_kind,
    is_exact,
    is_numeric,
    stepped,
    what_is,
)
from opwise.tracing.lists import NeedsMemory, memory_of, with_memory
from opwise.tracing.trace import current, demand, untraceable
from opwise.tracing.values import (
    UNKNOWN,
    Length,
    Number,
    Root,
    Traced,
    array,
    fitted,
    hint_of,
    leave_to_python,
    number_text,
)

slice = builtins.slice

#: loops over a known number of items, up to this number, are written out
UNROLLED = 8
#: a loop in a loop of the program is not written out if it would make more choices than these: many
#: that wait for each other are slower than a loop, and hardly fit one order
MOST_CHOICES = 16
#: why a variable has no value after a loop
NOT_KEPT = "is not kept after a loop, because nothing reads it."
#: loops that cannot become a scan are written out up to this number of steps
MOST_UNROLLED = 2000
#: loops whose steps need the values of numbers are written out up to this number
MOST_NAMED = 100


class Steps:
    """What a loop goes through if calls decide how long it is: a number of items, and each."""

    def __init__(self, length: Any, item: Callable[[Any], Any]) -> None:
        self.length, self.item = length, item

    def __iter__(self) -> Iterator[Any]:
        return (self.item(k) for k in builtins.range(operator.index(self.length)))

    def __len__(self) -> int:
        return operator.index(self.length)

    def __getitem__(self, index: Any) -> Any:
        return self.item(index)


def steps_of(iterated: Any) -> Steps | None:
    """Return what a loop goes through as Steps, or None for what Python goes through itself."""
    if isinstance(iterated, Steps):
        return iterated
    if isinstance(iterated, builtins.range):
        start, step = iterated.start, iterated.step
        return Steps(len(iterated), lambda k: start + k * step)
    if type(iterated) is Traced and iterated.ndim:
        return Steps(iterated.dims[0], lambda k: iterated[k])
    if (memory := memory_of(iterated)) is not None:
        return Steps(memory.length, memory.item)
    return None


def for_statement(
    iterated: Any,
    step: Callable[[Any], None],
    get: Callable[[], tuple[Any, ...]],
    set_: Callable[[tuple[Any, ...]], None],
    names: tuple[str, ...],
    used: tuple[str, ...],
    stop: str | None,
) -> None:
    """Do ``for item in iterated: step(item)``."""
    trace = current()
    steps = steps_of(iterated) if trace is not None else None
    if steps is None:
        _python_loop(iterated, step, get, set_, names, used, stop)
        return
    short = type(steps.length) is not Number and steps.length <= UNROLLED
    if short and _is_written_out(steps, step, get, set_, names, used, stop):
        return
    before = get()
    try:
        _make(lambda: _Loop(get, set_, names, used, stop).build(steps, step), set_, before)
    except Exception as error:
        set_(before)
        if isinstance(error, NeedsMemory):
            raise
        if short:
            _python_loop(steps, step, get, set_, names, used, stop)
            return
        if hint_of(steps.length) == 0:
            # it takes no step for these arguments, so what fails in it does not matter
            if type(steps.length) is Number:
                demand(f"{steps.length.text} == 0")
            return
        known = type(steps.length) is not Number or steps.length.known
        if not isinstance(error, LoopError):
            # a step may need to know which one it is, as for the name of a parameter
            if type(error) is TracingError and known and hint_of(steps.length) <= MOST_NAMED:
                _python_loop(steps, step, get, set_, names, used, stop)
                return
            raise
        if not known or hint_of(steps.length) > MOST_UNROLLED:
            raise no_loop(error) from error
        _python_loop(steps, step, get, set_, names, used, stop)


class _NeedsJoins(Exception):
    """No C function will run the steps of a loop, and a choice between arrays copies one."""


def _make(
    loop: Callable[[], None], set_: Callable[[tuple[Any, ...]], None], before: tuple[Any, ...]
) -> None:
    """Make a loop, of choices between arrays where a C function runs it."""
    try:
        with_memory(loop)
    except _NeedsJoins:
        set_(before)
        with joined_writes():
            with_memory(loop)


@contextmanager
def joined_writes() -> Iterator[None]:
    """Let loops join what branches write, element by element: other code than C runs them."""
    trace = current()
    if trace is None:
        yield
        return
    joins, trace.joins = trace.joins, True
    try:
        yield
    finally:
        trace.joins = joins


def _needs_joins(outputs: Sequence[Any], moving: set[Any]) -> bool:
    """Return whether steps choose between arrays, and no C function can run them.

    outputs: variables of a step. moving: those that differ from step to step; what depends on none
    of them is computed before the loop.
    """
    nodes: list[Any] = []
    moving = set(moving)
    for node in io_toposort([], outputs):
        if not moving.isdisjoint(node.inputs):
            moving.update(node.outputs)
            nodes += [node, *_inside(node)]
    chooses = any(
        isinstance(node.op, IfElse) and any(getattr(v.type, "ndim", 0) for v in node.outputs)
        for node in nodes
    )
    return chooses and not all(can_append(node.op) or node.op.branches for node in nodes)


def _inside(node: Any) -> Iterator[Any]:
    """Yield the Applys of the step of a loop, and those of loops in it."""
    if isinstance(node.op, Scan):
        for one in {v.owner for v in ancestors(node.op._inner_outputs)} - {None}:
            yield one
            yield from _inside(one)


class _TooManyChoices(Exception):
    """A loop had better not be written out."""


def _is_written_out(
    steps: Steps,
    step: Callable[[Any], None],
    get: Callable[[], tuple[Any, ...]],
    set_: Callable[[tuple[Any, ...]], None],
    names: tuple[str, ...],
    used: tuple[str, ...],
    stop: str | None,
) -> bool:
    """Write a short loop out; return False, and leave all as it was, if its steps choose much."""
    trace = current()
    assert trace is not None
    choices = trace.choices

    def first_step(item: Any) -> None:
        step(item)
        if trace.loops and (trace.choices - choices) * steps.length > MOST_CHOICES:
            raise _TooManyChoices

    before, added, first = get(), lists.counts(), next(Root.serials)
    with watched() as log:
        try:
            _python_loop(steps, step, get, set_, names, used, stop, first_step)
        except _TooManyChoices:
            lists.reset(added)
            undo(log, first)
            set_(before)
            return False
    return True


def _python_loop(
    iterated: Any,
    step: Callable[[Any], None],
    get: Callable[[], tuple[Any, ...]],
    set_: Callable[[tuple[Any, ...]], None],
    names: tuple[str, ...],
    used: tuple[str, ...],
    stop: str | None,
    first_step: Callable[[Any], None] | None = None,
) -> None:
    """Go through a loop in Python; steps after one that calls decide to stop change nothing.

    first_step: what is done for the first item, instead.
    """
    trace = current()

    def numbered(k: int, item: Any) -> None:
        do = step if k or first_step is None else first_step
        if trace is None:
            do(item)
            return
        trace.steps.append(k)
        try:
            do(item)
        finally:
            trace.steps.pop()

    if stop is None:
        for k, item in enumerate(iterated):
            numbered(k, item)
        return
    at = names.index(stop)
    items = iter(iterated)
    for k, item in enumerate(items):
        numbered(k, item)
        flag = get()[at]
        if flag is True:
            return
        if flag is False:
            continue
        made = condition(flag)
        if items is iterated and type(flag) is Number and flag.known:
            made = decided(flag)  # what is left of an iterator may have no end
        if isinstance(made, bool):
            if made:
                return
            continue
        rest = list(itertools.islice(items, MOST_UNROLLED + 1))
        if len(rest) > MOST_UNROLLED:
            raise untraceable(
                "A loop over an iterator, which ends as values in arrays decide, is too long to be "
                "written out.",
                "Write a while statement, or go through a range or an array.",
            )

        def go_on(rest: list[Any] = rest) -> None:
            _python_loop(rest, step, get, set_, names, used, stop)

        def nothing() -> None:
            pass

        if rest:
            if_statement(flag, nothing, go_on, get, set_, names)
        return


def while_statement(
    tested: Callable[[], Any],
    step: Callable[[], None],
    get: Callable[[], tuple[Any, ...]],
    set_: Callable[[tuple[Any, ...]], None],
    names: tuple[str, ...],
    used: tuple[str, ...],
    stop: str | None,
    again: bool = False,
) -> None:
    """Do ``while tested(): step()``.

    again: its first steps have been written out, because it could not become a loop before.
    """

    def test() -> Any:
        return truth_of(tested())

    with watched() as log:
        value = test()
    after = {root: root.variable for root in log}

    def build() -> None:
        """Make a loop, which makes the first test itself."""
        for root, variable in log.items():
            rewrite(root, variable)
        try:
            _make(lambda: _Loop(get, set_, names, used, stop).build_while(test, step), set_, before)
        except BaseException:
            for root, variable in after.items():
                rewrite(root, variable)
            raise

    if type(value) not in (Number, Traced):
        if not value:
            return
        if current() is not None and _calls_decide(test, step, get, set_, names, stop):
            before = get()
            try:
                build()
            except LoopError as error:
                set_(before)
                if isinstance(error, NeedsMemory):
                    raise
                if again:
                    raise no_loop(error) from error
            else:
                return
            again = True
        value = _written_out(test, step, get, set_, names, used, stop, again)
        if value is None:
            return
    before = get()
    try:
        build()
    except LoopError as error:
        set_(before)
        if isinstance(error, NeedsMemory):
            raise
        if not (type(value) is Number and value.known):
            raise no_loop(error) from error
        count = 0
        while decided(value):
            step()
            count += 1
            if count > MOST_UNROLLED:
                raise untraceable(
                    f"This loop cannot be one of opwise: {error.why}; and it is too long to be "
                    "written out.", error.remedy,
                ) from error  # fmt: skip
            if stop is not None and decided(get()[names.index(stop)]):
                return
            value = test()


def _calls_decide(
    test: Callable[[], Any],
    step: Callable[[], None],
    get: Callable[[], tuple[Any, ...]],
    set_: Callable[[tuple[Any, ...]], None],
    names: tuple[str, ...],
    stop: str | None,
) -> bool:
    """Return whether calls decide if a loop goes on after its next step; take the step back."""
    found: list[Any] = []

    def once() -> None:
        step()
        found.append(False if stop is None else get()[names.index(stop)])
        if found[0] is False:
            found.append(test())

    with suppress(TracingError, LoopError):
        trace_branch(once, get, set_, get())
    return any(type(each) in (Number, Traced) for each in found)


def _written_out(
    test: Callable[[], Any],
    step: Callable[[], None],
    get: Callable[[], tuple[Any, ...]],
    set_: Callable[[tuple[Any, ...]], None],
    names: tuple[str, ...],
    used: tuple[str, ...],
    stop: str | None,
    again: bool,
) -> Any:
    """Take the steps of a loop until calls decide whether it goes on.

    Returns the condition then, and None if the loop has ended. again: see ``while_statement``.
    """
    for _ in builtins.range(10 * MOST_UNROLLED):
        step()
        if stop is not None:
            flag = get()[names.index(stop)]
            made = condition(flag)
            if made is True:
                return None
            if made is not False:
                if_statement(
                    flag,
                    lambda: None,
                    lambda: while_statement(test, step, get, set_, names, used, stop, again),
                    get, set_, names,
                )  # fmt: skip
                return None
        value = test()
        if type(value) in (Number, Traced):
            return value
        if not value:
            return None
    raise untraceable(
        "A while loop whose condition does not depend on arguments takes too many steps.",
        "Let it depend on an argument, or compute before the function.",
    )


def no_loop(error: LoopError) -> TracingError:
    """Return the error for a loop that cannot be one of opwise."""
    return untraceable(
        f"This loop cannot be one of opwise: {error.why}.",
        error.remedy
        or "Let each step give every variable the dtype and the shape that it had before.",
    )


#: why an array cannot be changed after a loop
SHARED = "that a variable may share with another one since a loop"


class _Leaf:
    """A number or an array in a variable that a loop assigns."""

    def __init__(self, value: Any) -> None:
        #: its value before the loop
        self.before = value
        self.kind = as_kind(value)
        #: whether each step gets it as a value; arrays that only their memory changes are not
        self.by_value = not (type(value) is Traced and not value.scalar)
        #: the variable that stands for it in the step, and the value with it
        self.place: Any = None
        self.given: Any = value
        self.after: Any = value
        #: whether it may share memory with another variable after the loop
        self.shared = False
        #: whether its value after a step is no value of the loop
        self.lost = False
        #: {an axis: its length in a step, and by how much a step makes it longer}
        self.moving: dict[int, tuple[Number, int]] = {}
        #: an axis whose length each step decides, and the variable of that in the step; or None.
        #: The array is the first part of a buffer that is as long as it was before the loop
        self.ragged: int | None = None
        self.count: Any = None

    def put(self) -> Any:
        """Return the value with which a step is traced."""
        if self.by_value:
            self.place = self.kind.type()
            self.given = self.kind.value(self.place)
            if self.lost and self.is_array:  # its lengths are its own, too
                self.given = array(self.place)
            if self.ragged is not None:
                self.count = tensor_type("int64", ())()
                self.given = self._first(self.place, self.count)
            if self.moving:
                dims = list(self.kind.dims)
                for axis, (length, _) in self.moving.items():
                    dims[axis] = length
                part = self._part([length for length, _ in self.moving.values()])
                self.given = array(part, dims, False, len(dims) == 1)
            trace = current()
            if trace is not None and type(self.before) in (int, float, complex):
                trace.weak[self.place] = self.before
        return self.given

    def _first(self, buffer: Any, count: Any) -> Traced:
        """Return the part of a buffer that holds an array whose length steps decide."""
        dims, axis = list(self.kind.dims), self.ragged
        assert axis is not None
        dims[axis] = Number("i", count)
        part = buffer[(*[slice(None)] * axis, slice(None, count))]
        return array(fitted(part, dims), dims, False, len(dims) == 1)

    def require_room(self) -> None:
        """Let Python run calls in which a step makes an array longer than its buffer."""
        axis, after = self.ragged, self.after
        if axis is not None and type(after) is Traced and after is not self.given:
            if len(after.dims) == len(self.kind.dims):
                leave_to_python(T.gt(variable_length(after.dims[axis]), self.place.shape[axis]))

    @property
    def counted(self) -> Any:
        """The variable of the length after a step that it decides."""
        assert self.ragged is not None
        return T.cast(T.as_tensor_variable(variable_length(self.after.dims[self.ragged])), "int64")

    def _part(self, lengths: Sequence[Any], buffer: Any = None) -> Any:
        """Return the part of a buffer that holds an array with moving lengths."""
        key: list[Any] = [slice(None)] * len(self.kind.dims)
        for axis, length in zip(self.moving, lengths, strict=True):
            key[axis] = slice(None, variable_length(length))
        return (self.place if buffer is None else buffer)[tuple(key)]

    def initial(self, steps: Any) -> Any:
        """Return the variable before the first step. steps: how many there are, if that is known.

        Of an array whose lengths move it is a buffer that has room for it after all steps.
        """
        if not self.moving:
            return self.kind.variable(self.before)
        first = self.kind.variable(self.before)
        if all(change < 0 for _, change in self.moving.values()):
            return first
        room = list(map(variable_length, self.before.dims))
        for axis, (_, change) in self.moving.items():
            room[axis] = room[axis] + max(change, 0) * steps
        zeros = T.unbroadcast(T.zeros(room, dtype=self.kind.type.dtype), *range(len(room)))
        zeros = T.patternbroadcast(zeros, self.kind.type.broadcastable)
        return T.set_subtensor(self._part(self.before.dims, zeros), first)

    def stepped(self) -> Any:
        """Return the variable after a step."""
        if self.ragged is not None:
            count = T.minimum(self.counted, self.place.shape[self.ragged])
            key = (*[slice(None)] * self.ragged, slice(None, count))
            part, value = self.place[key], converted(self.after.variable, self.kind.what)[key]
            return T.set_subtensor(part, T.patternbroadcast(value, part.type.broadcastable))
        if not self.moving:
            return self.kind.variable(self.after)
        lengths = [length.variable + change for length, change in self.moving.values()]
        part = self._part(lengths)
        value = converted(self.after.variable, self.kind.what)
        return T.set_subtensor(part, T.patternbroadcast(value, part.type.broadcastable))

    def last(self, buffer: Any, steps: Any, count: Any = None) -> Any:
        """Return the value after the loop. steps: how many it has taken. count: its length, where
        steps decide it."""
        if self.ragged is not None:
            return self._first(buffer, count)
        if not self.moving:
            return self.kind.value(buffer)
        dims = list(self.kind.dims)
        for axis, (_, change) in self.moving.items():
            dims[axis] = _after_steps(self.before.dims[axis], change, steps)
        part = self._part([dims[axis] for axis in self.moving], buffer)
        return array(fitted(part, dims), dims, False, len(dims) == 1)

    @property
    def is_array(self) -> bool:
        return type(self.before) is Traced and not self.before.scalar

    @property
    def changes(self) -> bool:
        return self.after is not self.given


def _decided_inside(before: Kind, after: Kind) -> int | None:
    """Return the only axis of an array whose length a step decides; None if there is no such."""
    if before.what != after.what or len(before.dims) != len(after.dims):
        return None
    found = [
        k for k, (a, b) in enumerate(zip(before.dims, after.dims, strict=True))
        if UNKNOWN in (hint_of(a), hint_of(b)) and a is not b
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _after_steps(dim: Any, change: int, steps: Any) -> Any:
    """Return a length to which each of some steps has added a number."""
    if type(steps) is Number or type(dim) is Number:
        made = steps * abs(change)
        return dim + made if change > 0 else dim - made
    return dim + change * steps


def _values_of(*functions: Any) -> list[Any]:
    """Return the variables of numbers and arrays that functions read in those around them."""
    found, pending, seen = [], list(functions), set()
    while pending:
        function = pending.pop(0)
        seen.add(function)
        for cell in function.__closure__ or ():
            with suppress(ValueError):  # a variable without a value
                value = cell.cell_contents
                if isinstance(value, types.FunctionType) and value not in seen:
                    pending.append(value)
                for leaf in trees.flatten(value)[0]:
                    if type(leaf) is Number:
                        found.append(as_kind(leaf).variable(leaf))
                    elif type(leaf) is Traced:
                        found.append(leaf.variable)
                    elif (memory := memory_of(leaf)) is not None:
                        found += memory.variables()
    return found


class _Loop:
    """Makes a loop of the program a loop of opwise.

    A step is traced with placeholders for the variables and arrays that it changes, again until it
    changes nothing else, and no dtypes. What it computed then is the step of a ``scan``.
    """

    def __init__(
        self,
        get: Callable[[], tuple[Any, ...]],
        set_: Callable[[tuple[Any, ...]], None],
        names: tuple[str, ...],
        used: tuple[str, ...],
        stop: str | None,
    ) -> None:
        self._get, self._set, self._names, self._used, self._stop = get, set_, names, used, stop
        self._before = get()
        #: {index of a name: its leaves}, and the structures in which they are
        self._leaves: dict[int, list[_Leaf]] = {}
        self._structures: dict[int, Any] = {}
        #: arrays whose memory steps change, and what stands for it in the step
        self._roots: dict[Root, Any] = {}
        self._written: dict[Root, Any] = {}
        self._after: tuple[Any, ...] = ()
        #: the numbers and arrays that steps read and none assigns
        self._known: list[Any] = []
        #: {index of a name that nothing reads after the loop: why it is no state of it}
        self._lost: dict[int, LoopError] = {}
        #: why it would be no loop, if arrays whose lengths move were no variables of one
        self._moved: LoopError | None = None
        #: {(a length before the loop, what a step adds): it in a step}
        self._lengths: dict[tuple[Any, int], Number] = {}
        #: which step it is
        self._number = tensor_type("int64", ())("step")
        for k, value in enumerate(self._before):
            leaves, structure = trees.flatten(value)
            if self._names[k] != stop and leaves and all(map(is_numeric, leaves)):
                self._leaves[k] = [_Leaf(leaf) for leaf in leaves]
                self._structures[k] = structure

    def build(self, steps: Steps, step: Callable[[Any], None]) -> None:
        """Make a loop over items."""
        self._known = _values_of(step)
        self._settle(lambda: step(steps.item(Number("i", self._number))), steps.length)
        length = steps.length.variable if type(steps.length) is Number else steps.length
        self._scan(length, None, steps.length)

    def build_while(self, test: Callable[[], Any], step: Callable[[], None]) -> None:
        """Make a loop with a condition."""
        self._known = _values_of(test, step)
        start = condition(test())
        held: list[Any] = []

        def once() -> None:
            step()
            held[:] = [condition(test())]

        self._settle(once, None)
        if isinstance(held[0], bool) and (self._stop is None or not held[0]):
            raise LoopError("its condition does not change")
        go_on = None if isinstance(held[0], bool) else as_bool(held[0])
        many, none = np.int64(2**62), np.int64(0)
        if start is True:
            self._scan(T.constant(many), go_on, 1)
        else:
            self._scan(T.switch(as_bool(start), many, none), go_on, None)

    @property
    def _ending(self) -> set[Any]:
        """The memories of bools that end all loops of a call."""
        trace = current()
        return set() if trace is None else {trace.raised, trace.crowded}

    # --- one step

    def _settle(self, run: Callable[[], None], length: Any) -> None:
        """Trace the step until it is known what it changes."""
        for _ in range(8):
            try:
                if self._once(run, length):
                    break
            except Exception as error:
                if self._moved is None or isinstance(error, NeedsMemory):
                    raise
                # what needs to know the lengths of a step is written out
                raise self._moved from error
        else:
            raise LoopError("the dtypes of its variables change in every step")
        for leaves in self._leaves.values():
            for leaf in leaves:
                if leaf.changes and not as_kind(leaf.before).same(leaf.kind):
                    # a Python number that becomes another type does so in the first step
                    if type(length) is Number and length.known:
                        if length.hint == 0:
                            raise LoopError("it takes no step")
                        demand(f"{length.text} > 0")

    def _once(self, run: Callable[[], None], length: Any) -> bool:
        """Trace a step; return whether it changed only what was known to change.

        length: how many steps there are, or None.
        """
        added, known = lists.counts(), False
        first = self._first = next(Root.serials)
        values = list(self._before)
        for k, leaves in self._leaves.items():
            values[k] = trees.unflatten(self._structures[k], [leaf.put() for leaf in leaves])
        if self._stop is not None:  # it ends the loop, so no step begins with it
            values[self._names.index(self._stop)] = False
        with watched() as log, speculative(), _in_loop():
            for root in self._roots:
                log[root] = root.variable
                self._roots[root] = root.variable.type()
                rewrite(root, self._roots[root])
            self._set(tuple(values))
            try:
                run()
                self._after = self._get()
                self._require_room()
                known = self._note(log, first)
                if known:
                    self._outputs = self._collect()
                    ends = self._stop is not None or not self._ending.isdisjoint(self._written)
                    lists.repeat(added, length, ends)
            finally:
                if not known:
                    lists.reset(added)
                undo(log, first)
                self._set(self._before)
        return known

    def _require_room(self) -> None:
        for k, leaves in self._leaves.items():
            parts, structure = trees.flatten(self._after[k])
            if structure == self._structures[k]:
                for leaf, part in zip(leaves, parts, strict=True):
                    leaf.after = part
                    leaf.require_room()

    def _note(self, log: dict[Root, Any], first: int) -> bool:
        """Note what the step changed; return whether that was known."""
        known = True
        self._written = {}
        for root, before in log.items():
            place = self._roots.get(root, before)
            if root.serial < first and root.variable is not place:
                if root not in self._roots:
                    self._roots[root] = None
                    known = False
                self._written[root] = root.variable
        for k, name in enumerate(self._names):
            value = self._after[k]
            if name == self._stop:
                continue
            if k not in self._leaves:
                if value is not self._before[k] and not isinstance(self._before[k], Undefined):
                    if not _equal(value, self._before[k]):
                        raise LoopError(
                            f"{name} is {what_is(self._before[k])} before and {what_is(value)} "
                            "after a step"
                        )
                continue
            self._lost.pop(k, None)
            try:
                known &= self._note_leaves(k, value)
            except LoopError as error:
                if name in self._used:
                    raise
                self._lost[k] = error
                for leaf in self._leaves[k]:
                    if not (leaf.by_value and leaf.lost):
                        # what a step reads of it is not what it was before the loop
                        leaf.by_value, leaf.lost, known = True, True, False
                    leaf.after = leaf.given
        return known

    def _note_leaves(self, k: int, value: Any) -> bool:
        """Note what the step gave a variable; return whether that was known."""
        known, name = True, self._names[k]
        if isinstance(value, Undefined):
            raise LoopError(f"{name} may have no value after a step")
        parts, structure = trees.flatten(value)
        if structure != self._structures[k]:
            raise LoopError(f"{name} has another structure after a step")
        for leaf, part in zip(self._leaves[k], parts, strict=True):
            leaf.after = part
            if not leaf.changes:
                continue
            if not is_numeric(part):
                raise LoopError(
                    f"{name} is {what_is(leaf.before)} before and {what_is(part)} after a step"
                )
            kind = self._stepped(name, leaf, part)
            if kind is None:
                known = False
                continue
            if leaf.kind.sort == "number" != kind.sort and not is_exact(leaf.before, kind.what):
                raise LoopError(
                    f"{name} is {what_is(leaf.before)} before and {what_is(part)} after a step",
                    f"Begin with {kind.what}: {name} = numpy.{kind.what}(...).",
                )
            if not leaf.by_value or not kind.same(leaf.kind):
                known = False
            leaf.by_value, leaf.kind = True, kind
        return known

    def _stepped(self, name: str, leaf: _Leaf, part: Any) -> Kind | None:
        """Return what a variable is; None if its lengths move, which was not known."""
        other = as_kind(part)
        if leaf.moving:
            for axis, (length, change) in leaf.moving.items():
                assert length.origin is not None
                after = other.dims[axis] if len(other.dims) == len(leaf.kind.dims) else 0
                moved = length.origin[0], -change
                if type(after) is not Number or after.origin != moved:
                    raise LoopError(f"the shape of {name} is decided inside")
            dims = [leaf.kind.dims[k] if k in leaf.moving else d for k, d in enumerate(other.dims)]
            other = Kind(other.sort, other.what, tuple(dims), False)
        elif leaf.ragged is not None:
            dims = [leaf.kind.dims[k] if k == leaf.ragged else d for k, d in enumerate(other.dims)]
            other = Kind(other.sort, other.what, tuple(dims), False)
        elif leaf.is_array and (axis := _decided_inside(leaf.kind, other)) is not None:
            try:
                stepped(name, leaf.kind, other)
            except LoopError as error:
                self._moved = error
            dims = [OWN if k == axis else d for k, d in enumerate(leaf.kind.dims)]
            leaf.by_value, leaf.ragged = True, axis
            leaf.kind = Kind("array", leaf.kind.what, tuple(dims), False)
            return None
        elif leaf.is_array and (moving := self._moving(leaf, other)):
            try:
                stepped(name, leaf.kind, other)
            except LoopError as error:
                self._moved = error
            leaf.by_value, leaf.moving = True, moving
            room = [OWN if k in moving else d for k, d in enumerate(leaf.kind.dims)]
            leaf.kind = Kind("array", leaf.kind.what, tuple(room), False)
            return None
        return stepped(name, leaf.kind, other)

    def _moving(self, leaf: _Leaf, after: Kind) -> dict[int, tuple[Number, int]]:
        """Return {axis: its length in a step, what a step adds} for those that a step changes."""
        before, found = leaf.kind.dims, {}
        if after.what != leaf.kind.what or len(after.dims) != len(before):
            return {}
        for axis, (a, b) in enumerate(zip(before, after.dims, strict=True)):
            one, two = hint_of(a), hint_of(b)
            if UNKNOWN in (one, two) or one == two:
                continue
            change = two - one
            key = number_text(a), change
            if key not in self._lengths:
                first, count = variable_length(a), self._number

                def length(first: Any = first, change: int = change, count: Any = count) -> Any:
                    return first + count * np.int64(change)

                self._lengths[key] = Number("i", length, origin=(Length(one, None, True), 0))
            found[axis] = self._lengths[key], change
        return found

    def _require_lengths(self, steps: Any, count: Any) -> None:
        """Let Python run calls in which steps cut more off an array than it has."""
        seen = set()
        for leaf in (leaf for leaves in self._leaves.values() for leaf in leaves):
            for axis, (number, change) in leaf.moving.items():
                assert number.origin is not None
                length = number.origin[0]
                if (id(length), change) in seen:
                    continue
                seen.add((id(length), change))
                first = leaf.before.dims[axis]
                least = first if change > 0 else _after_steps(first, change, count - 1)
                short = least < length.least
                if type(short) is not Number:
                    if short:
                        raise LoopError(f"its steps cut off more than {length.hint} elements")
                elif not short.known or short.hint is False:
                    leave_to_python(T.and_(T.gt(T.as_tensor_variable(steps), 0), short.variable))
                else:
                    raise LoopError("its steps cut off more elements than there are")

    def _collect(self) -> dict[Any, Any]:
        """Return the variables of all that the step made: {a leaf, a root or a name: variable}."""
        made: dict[Any, Any] = dict(self._written)
        for k, name in enumerate(self._names):
            if k in self._leaves:
                for leaf in self._leaves[k]:
                    if leaf.changes:
                        made[leaf] = leaf.stepped()
            elif name in self._used and (
                name == self._stop or isinstance(self._before[k], Undefined)
            ):
                made[name] = self._after[k]
        return made

    # --- the scan

    def _scan(self, length: Any, go_on: Any, dim: Any) -> None:
        ends = go_on if go_on is None else T.invert(go_on)
        if self._stop is not None:
            flag = self._after[self._names.index(self._stop)]
            stopped = flag if isinstance(flag, bool) else condition(flag)
            if stopped is not False:
                stopped = as_bool(
                    T.as_tensor_variable(np.asarray(True)) if stopped is True else stopped
                )
                ends = stopped if ends is None else T.or_(ends, stopped)
        for root in self._ending:
            if root in self._written:
                raised = self._outputs[root]
                ends = raised if ends is None else T.or_(ends, raised)
        states: list[tuple[Any, Any, Any]] = []  # (placeholder, initial, after)
        fixed: dict[Any, Any] = {}
        targets: list[Any] = []
        cycles = self._cycles()
        for root, place in list(self._roots.items()):
            if root not in self._written:  # another step than the last one wrote it
                fixed[place] = root.variable
                del self._roots[root]
                continue
            after = self._outputs[root]
            states.append((place, root.variable, self._fit(after, place.type)))
            targets.append(root)
        read = self._read(ends)
        dropped = set(self._lost)
        for k, error in self._lost.items():
            if any(leaf.place in read for leaf in self._leaves[k]):
                raise error
        for k, leaves in self._leaves.items():
            for leaf in leaves:
                if not leaf.by_value:
                    continue
                if (
                    not leaf.changes and leaf.given.root.version == 0
                    if leaf.is_array
                    else not leaf.changes
                ):
                    fixed[leaf.place] = leaf.kind.variable(leaf.before)
                    continue
                if self._names[k] not in self._used and leaf.place not in read:
                    dropped.add(k)
                    fixed[leaf.place] = leaf.kind.variable(leaf.before)
                    continue
                self._check_sharing(leaf, cycles)
                states.append((leaf.place, leaf.initial(length), self._outputs[leaf]))
                targets.append(leaf)
                if leaf.ragged is not None:
                    before = T.as_tensor_variable(variable_length(leaf.before.dims[leaf.ragged]))
                    states.append((leaf.count, T.cast(before, "int64"), leaf.counted))
                    targets.append((leaf, "count"))
        fresh: dict[int, list[Kind]] = {}
        for k, name in enumerate(self._names):
            if name in self._outputs:
                parts = self._fresh(name, self._outputs[name], dim)
                fresh[k] = [kind for kind, _ in parts]
                for j, (kind, variable) in enumerate(parts):
                    zero = T.zeros([variable_length(d) for d in kind.dims], dtype=kind.type.dtype)
                    states.append((kind.type(), self._fit(zero, kind.type), variable))
                    targets.append((k, j))
        moving = any(leaf.moving for leaves in self._leaves.values() for leaf in leaves)
        if moving and ends is not None and any(change > 0 for _, change in self._lengths):
            assert self._moved is not None
            raise self._moved  # how much room they need is not known
        counted = (moving or bool(cycles)) and ends is not None
        if counted:
            count = tensor_type("int64", ())()
            states.append((count, T.constant(np.int64(0)), count + 1))
            targets.append("count")
        results = dict(zip(targets, self._run(length, states, fixed, ends), strict=True))
        for root in self._roots:
            root.write(self._fit(results[root], root.variable.type))
        steps = results["count"] if counted else length
        taken = Number("i", steps) if counted else dim
        if moving:
            self._require_lengths(steps, taken)
        for cycle in cycles:
            self._write_back(cycle, results, steps)
        values = list(self._before)
        for k, leaves in self._leaves.items():
            if k in dropped:
                values[k] = Undefined(self._names[k], NOT_KEPT)
                continue
            made = [
                leaf.last(
                    self._fit(results[leaf], leaf.kind.type), taken, results.get((leaf, "count"))
                ) if leaf in results else leaf.before
                for leaf in leaves
            ]  # fmt: skip
            for leaf, value in zip(leaves, made, strict=True):
                if any(leaf in cycle for cycle in cycles):
                    value.root.uncertain = "after a loop that lets variables exchange their arrays"
                elif leaf.is_array and type(value) is Traced and leaf in results:
                    marks = [SHARED] if leaf.shared else []
                    if type(leaf.after) is Traced:
                        marks.append(leaf.after.root.uncertain)
                    value.root.uncertain = next(filter(None, marks), "")
                if leaf.is_array and leaf.by_value and type(leaf.given) is Traced:
                    before = leaf.before.root
                    before.uncertain = before.uncertain or leaf.given.root.uncertain
            if any(leaf in results for leaf in leaves):
                values[k] = trees.unflatten(self._structures[k], made)
        for k, kinds in fresh.items():
            made = [kind.value(self._fit(results[k, j], kind.type)) for j, kind in enumerate(kinds)]
            if not made:  # a branch that not every call takes gives it a value
                values[k] = self._after[k]
                continue
            for old, new in zip(trees.flatten(self._after[k])[0], made, strict=True):
                if type(old) is Traced and not old.scalar and old.root.serial < self._first:
                    old.root.uncertain = old.root.uncertain or SHARED
                    new.root.uncertain = SHARED
            values[k] = trees.unflatten(trees.flatten(self._after[k])[1], made)
        self._set(tuple(values))

    def _check_sharing(self, leaf: _Leaf, cycles: list[list[_Leaf]]) -> None:
        """Check a variable to which a step gives an array that is older than the step.

        Raises LoopError if steps change that array in place.
        """
        after = leaf.after
        if type(after) is not Traced or after.scalar or any(leaf in cycle for cycle in cycles):
            return
        for other in (each for leaves in self._leaves.values() for each in leaves):
            if other.is_array and other.by_value and after.root is other.given.root:
                # it has the array that another variable had before
                other.before.root.uncertain = other.before.root.uncertain or SHARED
                leaf.shared = True
        if after.root.serial > self._first:
            return
        if after.root in self._written:
            raise LoopError("two variables have an array that its steps change", "Copy the array.")
        after.root.uncertain = after.root.uncertain or SHARED
        leaf.shared = True

    def _read(self, ends: Any) -> set[Any]:
        """Return the variables that a step reads for what is kept after it, or after the loop."""
        pending = [] if ends is None else [ends]
        unused: list[_Leaf] = []
        for k, leaves in self._leaves.items():
            if self._names[k] not in self._used:
                unused += [leaf for leaf in leaves if leaf in self._outputs]
        skipped = set(unused)
        for key, value in self._outputs.items():
            if key in skipped:
                continue
            for each in trees.flatten(value)[0]:
                if isinstance(each, Variable):
                    pending.append(each)
                elif type(each) in (Traced, Number):
                    pending.append(each.variable)
        read: set[Any] = set()
        while pending:
            read.update(ancestors(pending))
            found = [leaf for leaf in unused if leaf.place in read]
            unused = [leaf for leaf in unused if leaf.place not in read]
            pending = [self._outputs[leaf] for leaf in found]
        return read

    def _cycles(self) -> list[list[_Leaf]]:
        """Return the groups of variables that exchange arrays that steps change in place.

        Raises LoopError if a changed array is left behind by its variable, or shared.
        """
        leaves = [leaf for each in self._leaves.values() for leaf in each if leaf.by_value]
        arrays = [leaf for leaf in leaves if leaf.is_array]
        by_root = {leaf.given.root: leaf for leaf in arrays}
        written = [leaf for leaf in arrays if leaf.given.root.version]
        if not written:
            return []
        roots = [leaf.before.root for leaf in arrays]
        if len(set(roots)) < len(roots) or set(roots) & set(self._written):
            raise LoopError("variables share an array that it changes", "Copy the array.")
        next_: dict[_Leaf, _Leaf] = {}
        for leaf in arrays:
            after = leaf.after
            if type(after) is Traced and not after._path and after.root in by_root:
                next_[leaf] = by_root[after.root]
        cycles: list[list[_Leaf]] = []
        for leaf in written:
            if any(leaf in cycle for cycle in cycles):
                continue
            cycle, at = [leaf], next_.get(leaf)
            while at is not None and at is not leaf and at not in cycle:
                cycle.append(at)
                at = next_.get(at)
            if at is not leaf or any(each.before._path for each in cycle):
                raise LoopError(
                    "a step changes an array in place and then gives its variable another one",
                    "Write the array whole (a[...] = values), or copy it before it is changed.",
                )
            cycles.append(cycle)
        if len({id(next_[leaf]) for cycle in cycles for leaf in cycle}) < sum(map(len, cycles)):
            raise LoopError("two variables have the same array after a step", "Copy the array.")
        return cycles

    def _write_back(self, cycle: list[_Leaf], results: dict[Any, Any], steps: Any) -> None:
        """Write what the arrays of a cycle hold after a number of steps.

        The variable cycle[j] has in a step the array that cycle[j + 1] had before it.
        """
        order = len(cycle)
        phase = T.mod(T.as_tensor_variable(steps), order)
        contents = []
        for i in range(order):
            # after n steps, variable j has the array of j + n
            value = results[cycle[i]]
            for r in range(1, order):
                value = ifelse(T.eq(phase, r), results[cycle[(i - r) % order]], value)
            contents.append(value)
        for leaf, value in zip(cycle, contents, strict=True):
            root = leaf.before.root
            root.write(self._fit(value, root.variable.type))

    def _fresh(self, name: str, value: Any, dim: Any) -> list[tuple[Kind, Any]]:
        """Return what a variable is that has no value before the loop."""
        if isinstance(value, Undefined):
            return []
        leaves = trees.flatten(value)[0]
        if not all(map(is_numeric, leaves)):
            raise LoopError(f"{name} has no value before it and is no number after it")
        if not name.startswith("ow_"):
            if dim is None or hint_of(dim) is UNKNOWN or hint_of(dim) < 1:
                raise LoopError(
                    f"{name} has no value if the loop takes no step",
                    f"Give {name} a value before the loop.",
                )
            if type(dim) is Number:
                demand(f"{dim.text} > 0")
        made = [as_kind(leaf).variable(leaf) for leaf in leaves]
        if any(v.owner is not None and isinstance(v.owner.op, HasValue) for v in ancestors(made)):
            raise LoopError(
                f"{name} may have no value after a step", f"Give {name} a value before the loop."
            )
        kinds = [as_kind(leaf) for leaf in leaves]
        for kind in kinds:
            for d in kind.dims:
                if type(d) is Number and not d.known:
                    raise LoopError(
                        f"the shape of {name} is decided inside",
                        f"Give {name} a value before the loop.",
                    )
        return [(kind, kind.variable(leaf)) for kind, leaf in zip(kinds, leaves, strict=True)]

    @staticmethod
    def _fit(variable: Any, wanted: Any) -> Any:
        if variable.type == wanted:
            return variable
        if variable.type.dtype != wanted.dtype:
            variable = converted(variable, wanted.dtype)
        return T.patternbroadcast(variable, wanted.broadcastable)

    def _run(
        self,
        length: Any,
        states: list[tuple[Any, Any, Any]],
        fixed: dict[Any, Any],
        ends: Any,
    ) -> list[Any]:
        """Return the last values of the states."""
        number = self._number
        if not states:
            return []
        results: list[Any] = [None] * len(states)
        objects = [k for k, s in enumerate(states) if not isinstance(s[0].type, TensorType)]
        # {what a step draws: what has been drawn for all steps}
        drawn: dict[Any, Any] = {}
        trace = current()
        when = trace.condition() if objects and trace is not None else None
        if when is not None:  # a branch that is not taken may compute it
            length = T.switch(when, length, np.int64(0))
        if ends is None:
            moving = {number, *(place for place, _, _ in states)}
            for k in tuple(objects):
                found = generators.drawn_before(*states[k], length, fixed, moving)
                if found is not None:
                    results[k] = found[0]
                    drawn |= found[1]
                    objects.remove(k)
        chains = _delayed([s for s in states if isinstance(s[0].type, TensorType)])
        tensors = [k for k, s in enumerate(states) if isinstance(s[0].type, TensorType)]
        chains = [[tensors[k] for k in chain] for chain in chains]
        outputs = [states[chain[0]][2] for chain in chains]
        if ends is not None:
            outputs.append(ends)
        outputs += [states[k][2] for k in objects]
        # a step is given the oldest value of each chain first
        places = [states[k][0] for chain in chains for k in reversed(chain)]
        new = [states[chain[0]][0].type for chain in chains]
        initial: list[Any] = []
        for chain in chains:
            firsts = [self._fit(states[k][1], states[k][0].type) for k in reversed(chain)]
            taps = list(builtins.range(-len(chain), 0))
            initial.append(
                firsts[0] if len(chain) == 1 else {"initial": T.stack(firsts), "taps": taps}
            )

        def last(rows: Sequence[Any], kept: Any) -> list[Any]:
            for chain, of in zip(chains, rows, strict=True):
                whole = kept(of)
                for back, k in enumerate(chain, 1):
                    results[k] = whole[-back]
            for k in objects:
                results[k] = updates[states[k][1]]
            return results

        if trace is not None and not trace.loops and not trace.joins:
            if _needs_joins(outputs, {number, *(place for place, _, _ in states)}):
                raise _NeedsJoins
        rows_of = drawn | _sequences(outputs, number, length, {*places, *fixed}, ends is None)
        elements = list(rows_of)
        # Python has computed them before the loop: no branch of a step guards them
        read = set(ancestors(outputs))
        known = [v for v in dict.fromkeys(self._known) if v.owner is not None and v in read]

        def step(count: Any, *values: Any) -> tuple[list[Any], dict[Any, Any]]:
            given, values = values[: len(elements)], values[len(elements) :]
            values = values[: len(places)]
            replacements = {
                **fixed, **dict(zip(places, values, strict=True)),
                **dict(zip(elements, given, strict=True)), number: count,
                **{states[k][0]: states[k][1] for k in objects},
            }  # fmt: skip
            made = list(clone_replace(outputs, replacements))
            handed = made[len(made) - len(objects) :]
            fitted = [self._fit(m, kind) for m, kind in zip(made, new, strict=False)]
            return (
                [*fitted, *made[len(new) : len(made) - len(objects)]],
                {states[k][1]: m for k, m in zip(objects, handed, strict=True)},
            )

        if ends is None:
            rows, updates = scan(
                step,
                sequences=[T.arange(length), *rows_of.values()],
                outputs_info=initial,
                non_sequences=known,
                return_list=True,
            )
            return last(rows, _whole)

        def counting(*values: Any) -> Any:
            given, (count, *values) = values[: len(elements)], values[len(elements) :]  # type: ignore[assignment]
            (*made, stop), handed = step(count, *given, *values)
            return [count + 1, *made], handed, until(stop)

        rows, updates = scan(
            counting,
            sequences=list(rows_of.values()),
            outputs_info=[T.constant(np.int64(0)), *initial],
            non_sequences=known,
            n_steps=length,
            return_list=True,
        )
        values, objects_after = _only_last(rows, [1, *map(len, chains)])
        updates = dict(zip(updates, objects_after, strict=True))
        return last(rows[1:], dict(zip(rows, values, strict=True)).get)


def _affine(variable: Any, number: Any) -> tuple[int, int] | None:
    """Return (a, b) if a variable is a * number + b, and None otherwise."""
    if variable is number:
        return 1, 0
    value = T.extract_constant(variable, only_process_constants=True)
    if isinstance(value, np.ndarray | np.generic) and np.asarray(value).ndim == 0:
        return 0, int(value)
    node = variable.owner
    if node is None:
        return None
    if isinstance(node.op, T.ScalarFromTensor | T.TensorFromScalar):
        return _affine(node.inputs[0], number)
    if not isinstance(node.op, Elemwise) or len(node.inputs) > 3:
        return None
    parts = [_affine(x, number) for x in node.inputs]
    if None in parts:
        return None
    name = type(node.op.scalar_op).__name__
    if name == "Add":
        return sum(p[0] for p in parts), sum(p[1] for p in parts)  # type: ignore[index]
    if name == "Sub":
        (a, b), (c, d) = parts  # type: ignore[misc]
        return a - c, b - d
    if name == "Mul" and len(parts) == 2:
        (a, b), (c, d) = parts  # type: ignore[misc]
        return (a * d + b * c, b * d) if a == 0 or c == 0 else None
    if name == "Cast" or name.startswith("Cast"):
        return parts[0]
    return None


def _sequences(
    outputs: Sequence[Any], number: Any, length: Any, inner: set[Any], whole: bool
) -> dict[Any, Any]:
    """Return {an element that each step reads: the array of the elements of all steps}.

    An element ``x[..., k, ...]`` of an array from outside becomes a sequence of the loop, which it
    hands to its steps without indexing. whole: the loop takes all steps, so all are read.
    """
    if not whole:
        return {}
    needed: list[Any] = []
    pending, seen = list(outputs), set()
    while pending:  # what each step computes, whatever branches it takes
        variable = pending.pop()
        if variable in seen or variable.owner is None:
            continue
        seen.add(variable)
        node = variable.owner
        if node.op.branches:
            pending.append(node.inputs[0])
            continue
        pending += node.inputs
        if isinstance(node.op, Subtensor):
            needed.append(variable)
    varying = {number, *inner}
    trace = current()
    is_outer = trace is None or not trace.loops
    found: dict[Any, Any] = {}
    for variable in needed:
        x, *indices = variable.owner.inputs
        items = variable.owner.op.idx_list
        if not indices or any(isinstance(item, slice) and item != slice(None) for item in items):
            continue
        if varying & set(ancestors([x])):
            continue
        places = [k for k, item in enumerate(items) if not isinstance(item, slice)]
        moving = [k for k, index in enumerate(indices) if varying & set(ancestors([index]))]
        if len(moving) != 1:
            continue
        rule = _affine(indices[moving[0]], number)
        if rule is None or rule[0] == 0:
            continue
        key: list[Any] = [slice(None)] * len(items)
        for k, index in enumerate(indices):
            if k != moving[0]:
                key[places[k]] = index
        axis = sum(1 for item in key[: places[moving[0]]] if isinstance(item, slice))
        with located(variable.owner.trace):
            part = x[tuple(key)] if len(indices) > 1 else x
            order = [axis, *(k for k in range(part.ndim) if k != axis)]
            part = part.dimshuffle(order) if axis else part
            a, b = rule
            if rule == (1, 0) and _has_length(part, length):
                pass
            elif a > 0 and b >= 0 and is_outer:
                part = _rows(part, a, b, length)
            else:  # inside another loop its C function reads the elements where they are
                steps = T.arange(length)
                part = part[steps if rule == (1, 0) else steps * np.int64(a) + np.int64(b)]
        if variable.type.broadcastable != part.type.broadcastable[1:]:
            continue
        if part.type.broadcastable[0]:
            part = T.unbroadcast(part, 0)
        found[variable] = part
    return found


class _ReadsInRange(Assert):
    """The elements that the steps of a loop read, if the array has them."""

    def failure(self) -> Exception:
        return IndexError(self.msg)


def _rows(part: Any, step: int, start: int, length: Any) -> Any:
    """Return ``part[start], part[start + step], ...``, as many as a loop has steps, as a view."""
    last = T.as_tensor_variable(length) * step + (start - step)
    rows = part[start : last + 1 : step]
    if part.type.broadcastable[0]:
        rows = T.unbroadcast(rows, 0)
    fits = T.or_(T.le(length, 0), T.lt(last, part.shape[0]))
    return _ReadsInRange("a step reads an element that is out of bounds for its array")(rows, fits)


def _has_length(part: Any, length: Any) -> bool:
    """Return whether the number of rows is surely the number of steps."""
    if not isinstance(length, Variable) or length.owner is None:
        return False
    own = part.shape[0]
    return same_graph(own, length)


def _equal(a: Any, b: Any) -> bool:
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:
        return False


def variable_length(dim: Any) -> Any:
    return dim.variable if type(dim) is Number else dim


def _only_last(rows: Sequence[Any], counts: Sequence[int]) -> tuple[list[Any], list[Any]]:
    """Return the last values of the states of a loop, which keeps no others, and of its objects.

    The most steps that a ``while`` may take are more than memory has rows for. counts: how many
    values of each.
    """
    node = rows[0].owner.inputs[0].owner
    op = node.op
    kept = op.variant(op.step_inputs, op.step_outputs, op.layout.taps, dict(enumerate(counts)))
    outputs = kept(*node.inputs, return_list=True)
    values = [outputs[each.owner.inputs[0].index] for each in rows]
    return values, outputs[len(outputs) - op.layout.objects :]


def _whole(rows: Any) -> Any:
    """Return the values of a state, those before the loop too."""
    node = rows.owner
    if node is not None and isinstance(node.op, Subtensor):
        return node.inputs[0]
    return rows


def _delayed(states: Sequence[tuple[Any, Any, Any]]) -> list[list[int]]:
    """Return the states in groups: each one after the first has the value that the one before it
    had a step ago.

    Then steps copy no arrays from one state to the next, and can write each new value where the
    oldest one was. Loops over elements keep their arrays where they are, in states of their own.
    """
    trace = current()
    alone = [[k] for k in builtins.range(len(states))]
    number_of_place = {place: k for k, (place, _, _) in enumerate(states)}
    next_: dict[int, int] = {}
    for k, (place, _, after) in enumerate(states):
        before = number_of_place.get(after)
        if before not in (None, k) and place.type.ndim and place.type == after.type:
            next_.setdefault(before, k)  # type: ignore[arg-type]
    if not next_ or (trace is not None and trace.loops):
        return alone
    nodes = {v.owner for v in ancestors([after for _, _, after in states]) if v.owner is not None}
    for node in nodes:
        if isinstance(node.op, Scan) or is_element(node):
            if not number_of_place.keys().isdisjoint(ancestors(node.inputs)):
                return alone
    chains = []
    for k in builtins.range(len(states)):
        if k in next_.values():
            continue
        chain = [k]
        while chain[-1] in next_:
            chain.append(next_[chain[-1]])
        chains.append(chain)
    found = {k for chain in chains for k in chain}
    return [*chains, *([k] for k in builtins.range(len(states)) if k not in found)]


@contextmanager
def _in_loop() -> Iterator[None]:
    trace = current()
    if trace is None:
        yield
        return
    trace.loops += 1
    try:
        yield
    finally:
        trace.loops -= 1
