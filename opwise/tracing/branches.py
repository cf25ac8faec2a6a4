"""What converted text calls for tests, branches, and the errors of the program.

On Python's values it does what Python does. Where values of arrays decide, a branch becomes
``ifelse``.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from opwise import tensor as T
from opwise.errors import TracingError
from opwise.graph.traversal import clone_replace
from opwise.graph.variable import Variable
from opwise.tensor.assertion import Assert
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.ifelse import ifelse
from opwise.tensor.subtensor import IncSubtensor, Subtensor
from opwise.tensor.type import TensorType
from opwise.tracing import shaping, trees
from opwise.tracing.indexing import converted
from opwise.tracing.kinds import (
    LoopError,
    RaisesError,
    as_kind,
    is_numeric,
    unified,
    what_is,
)
from opwise.tracing.lists import NeedsMemory, memory_of, with_memory
from opwise.tracing.members import contains
from opwise.tracing.reducing import number_from
from opwise.tracing.trace import NeedsState, current, recurs, untraceable
from opwise.tracing.values import (
    PYTHON_TYPES,
    UNKNOWN,
    Number,
    Root,
    Traced,
    array,
    guess,
    hint_of,
    is_one,
    is_traced,
    leave_to_python,
    number_text,
)

#: calls of functions by themselves are traced up to this number where values of arrays decide, or
#: where the arguments of the call may decide otherwise
MOST_RECURSIONS = 100
slice = builtins.slice


class Undefined:
    """The value of a variable that has none: every use is an error."""

    def __init__(self, name: str, why: str = "") -> None:
        object.__setattr__(self, "_why", (name, why))

    def _fail(self, *args: Any, **kwargs: Any) -> Any:
        name, why = object.__getattribute__(self, "_why")
        if why:
            raise untraceable(f"{name} {why}", f"Give {name} a value before.")
        raise UnboundLocalError(
            f"cannot access local variable '{name}' where it is not associated with a value"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._fail()

    def __setattr__(self, name: str, value: Any) -> None:
        self._fail()

    fail = _fail
    __call__ = __bool__ = __iter__ = __len__ = __getitem__ = __setitem__ = _fail
    __index__ = __float__ = __int__ = _fail
    __array_ufunc__ = _fail


for _name in (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift radd rsub rmul rtruediv "
    "rfloordiv rmod rpow rmatmul rand ror rxor neg pos abs invert lt le gt ge iadd isub imul"
).split():
    setattr(Undefined, f"__{_name}__", Undefined._fail)


def _why_undefined(value: Undefined) -> str:
    """Return why a variable that had a value has none; '' if it had none."""
    why: str = object.__getattribute__(value, "_why")[1]
    return why


def undefined(name: str) -> Any:
    """Return the value of a variable before it has one."""
    return Undefined(name)


def returned(value: Any) -> Any:
    """Return the value of a function."""
    return None if isinstance(value, Undefined) else value


# --- errors of the program ------------------------------------------------------------------------


#: what no ``except`` of the program catches
UNTRACEABLE = (TracingError, LoopError, NeedsState)


def error(made: Callable[[], Any]) -> Any:
    """Return what ``raise`` is given. Its text may need values that are not known yet."""
    trace = current()
    if trace is None or not trace.speculative:
        return made()
    try:
        return made()
    except TracingError:
        return RuntimeError("an error whose text depends on values in arrays")


def assertion(*text: Any) -> AssertionError:
    """Return the error of an assertion that does not hold."""
    return AssertionError(*text)


def handled(*classes: Callable[[], Any]) -> None:
    """Note the classes of errors that a ``try`` handles: in calls that lead to one numpy runs."""
    trace = current()
    if trace is not None:
        for made in classes:
            found = made()
            trace.handled += found if isinstance(found, tuple) else (found,)


def caught(error: BaseException) -> None:
    """Note an error that a ``try`` of the program has caught while it was traced.

    Calls with other lengths or numbers may not raise it.
    """
    trace = current()
    if trace is not None and not isinstance(error, _OF_TYPES):
        for text in trace.exact:
            trace.demand(text)


#: errors that follow from types and names, or from values that are conditions already
_OF_TYPES = (TypeError, AttributeError, KeyError, NameError, ImportError, StopIteration)

# --- conditions -----------------------------------------------------------------------------------


def condition(value: Any) -> Any:
    """Return a condition as a Python bool, or as a scalar variable if calls decide it.

    What follows from the lengths of arguments is a Python bool, and a condition of the signature.
    """
    if type(value) is Number:
        if value.of_lengths or isinstance(value._variable, T.TensorConstant):
            return bool(value)
        if value.kind != "b":
            return T.neq(value.variable, 0)
        return value.variable
    if (memory := memory_of(value)) is not None:
        return condition(memory.length != 0)
    if type(value) is Traced:
        if isinstance(value.variable, T.TensorConstant):
            return bool(value)
        if any(hint_of(d) not in (1, UNKNOWN) for d in value.dims):
            return bool(value)  # numpy's error
        scalar = number_from(_single(value))
        return condition(scalar)
    return bool(value)


def _single(x: Traced) -> Traced:
    if not x.ndim:
        return x
    for d in x.dims:
        if type(d) is Number and not is_one(d):
            d.value("A condition")
    return shaping.reshape(x, ())


def decided(value: Any) -> bool:
    """Return a condition as a Python bool, which becomes a condition of the signature."""
    return bool(value)


def not_(value: Any) -> Any:
    """Return ``not value``."""
    value = truth_of(value)
    if type(value) not in (Number, Traced):
        return not value
    made = condition(value)
    if isinstance(made, bool):
        return not made
    hint, text = UNKNOWN, None
    if type(value) is Number and value.known:
        hint, text = not value.hint, f"(not {value.text})"
    return Number("b", T.invert(T.cast(made, "bool")), hint, text)


def truth_of(value: Any) -> Any:
    """Return a value, or whether there are items in a list that is in arrays."""
    memory = memory_of(value)
    return value if memory is None else memory.length != 0


def truth(value: Any) -> Any:
    """Return a value of which only the truth matters: as a bool, if it is one number."""
    value = truth_of(value)
    if type(value) is Number and value.kind != "b":
        return value != 0
    if type(value) is Traced and value.dtype.kind != "b" and all(is_one(d) for d in value.dims):
        return _single(value) != 0
    return value


def _is_bool(value: Any) -> bool:
    if type(value) is Number:
        return value.kind == "b"
    if type(value) is Traced:
        return value.dtype.kind == "b"
    return isinstance(value, bool | np.bool)


def _joined(value: Any, rest: Callable[[], Any], both: bool) -> Any:
    value = truth_of(value)
    if type(value) is Number and value.known and recurs():
        value = decided(value)
    if type(value) not in (Number, Traced):
        if both:
            return value and rest()
        return value or rest()
    made = condition(value)
    if isinstance(made, bool):
        return rest() if made is both else value
    try:
        with watched() as log, speculative():
            other = truth_of(rest())
        if log:  # what it writes, it writes only where it is computed
            for root, before in log.items():
                rewrite(root, before)
            return if_expression(value, *((rest, lambda: value) if both else
                                          (lambda: value, rest)))  # fmt: skip
    except (TracingError, LoopError):
        raise
    except Exception:
        if type(value) is not Number or not value.known:
            raise
        # it may fail because it is not computed for these arguments
        return rest() if bool(value) is both else value
    if not (_is_bool(value) and _is_bool(other)):
        return if_expression(value, *((lambda: other, lambda: value) if both else
                                      (lambda: value, lambda: other)))  # fmt: skip
    two = condition(other)
    if isinstance(two, bool):
        if two is both:
            return value
        return other
    joined = T.and_ if both else T.or_
    if not _is_safe([two], [made]):
        pair = (two, np.asarray(False)) if both else (np.asarray(True), two)
        made = as_bool(made)
        chosen = ifelse(made, *map(as_bool, pair))
        trace = current()
        if trace is not None:
            trace.lazy[chosen] = both, made, as_bool(two)
        return _bool_like(chosen, value, other, both)
    return _bool_like(joined(as_bool(made), as_bool(two)), value, other, both)


def _bool_like(variable: Any, value: Any, other: Any, both: bool) -> Any:
    hint, text = UNKNOWN, None
    if all(type(v) is Number and v.known for v in (value, other)):
        word = "and" if both else "or"
        hint = (value.hint and other.hint) if both else (value.hint or other.hint)
        text = f"({value.text} {word} {other.text})"
    if type(other) is Traced and type(value) is Traced:
        return array(variable, (), True)
    return Number("b", variable, hint, text)


def as_bool(variable: Any) -> Any:
    if isinstance(variable, bool):
        variable = np.asarray(variable)
    return converted(T.as_tensor_variable(variable), "bool")


def and_(value: Any, rest: Callable[[], Any]) -> Any:
    """Return ``value and rest()``."""
    return _joined(value, rest, True)


def or_(value: Any, rest: Callable[[], Any]) -> Any:
    """Return ``value or rest()``."""
    return _joined(value, rest, False)


def _of_rows(name: str, python: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a comparison that compares tuples and lists of traced values item by item."""
    less = name in ("Lt", "LtE")

    def compare(a: Any, b: Any) -> Any:
        rows = isinstance(a, tuple | list) and isinstance(b, tuple | list)
        if not rows or current() is None or not is_traced([a, b]) or (
            memory_of(a) is not None or memory_of(b) is not None
        ):  # fmt: skip
            return python(a, b)
        if name == "NotEq":
            return not_(equal(a, b))
        if name == "Eq":
            made = equal(a, b)
            return number_from(made) if type(made) is Traced else made
        return ordered(a, b)

    def equal(a: Any, b: Any) -> Any:
        if len(a) != len(b) or isinstance(a, tuple) is not isinstance(b, tuple):
            return False
        result: Any = True
        for one, other in zip(a, b, strict=True):
            result = and_(result, lambda one=one, other=other: compared("Eq", one, other))
        return result

    def ordered(a: Any, b: Any) -> Any:
        if not a or not b:
            return python(len(a), len(b))
        strict = "Lt" if less else "Gt"
        rest = a[1:], b[1:]
        if len(a) == len(b) == 1:
            return compared(name, a[0], b[0])
        return or_(
            compared(strict, a[0], b[0]),
            lambda: and_(compared("Eq", a[0], b[0]), lambda: ordered(*rest)),
        )

    return compare


def compared(name: str, a: Any, b: Any) -> Any:
    """Return a comparison of two values."""
    return _COMPARE[name](a, b)


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": _of_rows("Lt", operator.lt), "LtE": _of_rows("LtE", operator.le),
    "Gt": _of_rows("Gt", operator.gt), "GtE": _of_rows("GtE", operator.ge),
    "Eq": _of_rows("Eq", operator.eq), "NotEq": _of_rows("NotEq", operator.ne),
    "Is": operator.is_, "IsNot": operator.is_not,
    "In": contains, "NotIn": lambda a, b: not_(contains(a, b)),
}  # fmt: skip


def chained(operators: Sequence[str], left: Any, *rest: Callable[[], Any]) -> Any:
    """Return ``left < a <= b``: each operand is computed once, if it is needed."""
    right = rest[0]()
    result = _COMPARE[operators[0]](left, right)
    if len(rest) == 1:
        return result
    return and_(result, lambda: chained(operators[1:], right, *rest[1:]))


@contextmanager
def speculative() -> Iterator[None]:
    trace = current()
    if trace is None:
        yield
        return
    trace.speculative.append(next(Root.serials))
    try:
        yield
    finally:
        trace.speculative.pop()


@contextmanager
def watched() -> Iterator[dict[Root, Any]]:
    """Give a dict of the arrays that a block writes, with their variables before."""
    trace = current()
    log: dict[Root, Any] = {}
    if trace is None:
        yield log
        return
    trace.written.append(log)
    try:
        yield log
    finally:
        trace.written.pop()


def _take_draws_back(log: dict[Root, Any]) -> None:
    """Let generators be as they were before."""
    for root, before in log.items():
        if _is_generator(before):
            rewrite(root, before)


def _is_generator(variable: Any) -> bool:
    return isinstance(variable, Variable) and not isinstance(variable.type, TensorType)


def undo(log: dict[Root, Any], first: int, but_draws: bool = False) -> dict[Root, Any]:
    """Give arrays that are older than a number the variables that they had; return those that they
    have. Arrays that a part has made itself keep theirs, and with but_draws generators do."""
    after = {
        root: root.variable
        for root, before in log.items()
        if root.serial < first and not (but_draws and _is_generator(before))
    }
    for root in after:
        rewrite(root, log[root])
    return after


def _frozen(value: Any, log: dict[Root, Any], first: int) -> Any:
    """Return a value without views of arrays that a branch has written, and that are older."""
    leaves, structure = trees.flatten(value)
    made = []
    for leaf in leaves:
        if type(leaf) is Traced and leaf.root in log and leaf.root.serial < first:
            root = Root(leaf.variable)
            root.uncertain = "after an if that gave its variable a part of it"
            root.source = leaf
            leaf = Traced(root, leaf.dims, (), leaf.scalar, leaf.contiguous)
        made.append(leaf)
    return trees.unflatten(structure, made)


def _unfrozen(value: Any) -> Any:
    """Return the array of the program of which ``_frozen`` has made a value."""
    if type(value) is Traced and not value._path and not value.root.version:
        return value if value.root.source is None else value.root.source
    return value


def rewrite(root: Root, variable: Any) -> None:
    root.variable = variable
    root.version += 1


# --- branches -------------------------------------------------------------------------------------


def if_expression(test: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """Return ``then() if test else other()``."""
    made = condition(test)
    if isinstance(made, bool):
        return then() if made else other()
    box: list[Any] = [None]

    def get() -> tuple[Any, ...]:
        return (box[0],)

    def set_(values: tuple[Any, ...]) -> None:
        box[0] = values[0]

    def first() -> None:
        box[0] = then()

    def second() -> None:
        box[0] = other()

    if_statement(test, first, second, get, set_, ("the value of the expression",))
    return box[0]


def if_statement(
    test: Any,
    then: Callable[[], None],
    other: Callable[[], None],
    get: Callable[[], tuple[Any, ...]],
    set_: Callable[[tuple[Any, ...]], None],
    names: tuple[str, ...],
) -> None:
    """Do ``if test: then() else: other()``; both are traced if calls decide.

    names: the variables that it assigns and that others read.
    """
    trace = current()
    known = type(test) is Number and test.known
    inside_itself = trace is not None and recurs()
    if trace is not None and inside_itself and known:  # both branches together would never end
        # and perhaps this one, which the arguments of this call may not take
        if trace.speculative and max(trace.calls.values()) > MOST_RECURSIONS:
            raise LoopError("one of them calls a function that calls itself too often")
        (then if decided(test) else other)()
        return
    made = condition(test)
    if isinstance(made, bool):
        (then if made else other)()
        return
    before = get()
    if trace is not None and inside_itself:
        trace.deeper += 1
        if trace.deeper > MOST_RECURSIONS:
            raise untraceable(
                "A function calls itself as often as values of arrays decide.",
                "Write a loop, or let an argument that is an int decide.",
            )

    def both() -> None:
        with watched() as log:
            try:
                in_turn(log)
            except BaseException:
                _take_draws_back(log)
                raise

    def in_turn(log: dict[Root, Any]) -> None:
        first = next(Root.serials)
        parts: list[Any] = []
        for run, rest, sure in ((then, other, made), (other, then, None)):
            taken = T.invert(as_bool(made)) if run is other else as_bool(made)
            try:
                parts.append(trace_branch(run, get, set_, before, taken))
            except RaisesError:
                _take_draws_back(log)
                if known or trace is None or trace.raised is None:
                    raise
                # in calls that raise the error it does not matter what the rest computes
                rest()
                leave_to_python(T.invert(as_bool(made)) if sure is None else as_bool(sure))
                return
        _join_branches(made, test, parts[0], parts[1], set_, names, first)

    try:
        with_memory(both)
    except NeedsMemory:
        set_(before)
        raise
    except LoopError as error:
        set_(before)
        taken = decided(test) if known else guess(as_bool(made))
        if taken is None:
            raise untraceable(
                f"The branches of this if cannot be one program: {error.why}.",
                error.remedy
                or "Give both branches the same variables, with the same dtypes and shapes.",
            ) from error
        (then if taken else other)()


def trace_branch(
    run: Callable[[], None],
    get: Callable[[], tuple[Any, ...]],
    set_: Callable[[tuple[Any, ...]], None],
    before: tuple[Any, ...],
    taken: Any = None,
) -> tuple[tuple[Any, ...], dict[Root, Any]]:
    """Trace a branch; return (the variables after it, what it wrote), and take both back.

    taken: a bool variable, whether it is taken. What it draws then is not taken back: draws have
    this condition, and those of the other branch come after them.
    """
    set_(before)
    first = next(Root.serials)
    with watched() as log, speculative(), _in_branch(taken):
        try:
            run()
            after = tuple(
                new if new is old else _frozen(new, log, first)
                for new, old in zip(get(), before, strict=True)
            )
        except (TracingError, LoopError):
            undo(log, first)
            set_(before)
            raise
        except Exception as error:
            undo(log, first)
            set_(before)
            raise RaisesError(f"one raises {type(error).__name__}: {error}") from error
    written = undo(log, first, taken is not None)
    set_(before)
    return after, written


def tried(make: Callable[[], Any]) -> tuple[Any, bool] | None:
    """Return (what a function makes, whether it writes into arrays), and take its writes back.

    None if no branch or loop can do what it does, as draw random numbers.
    """
    made: list[Any] = []
    try:
        _, written = trace_branch(lambda: made.append(make()), tuple, lambda values: None, ())
    except (TracingError, LoopError):
        return None
    return made[0], bool(written)


def _join_branches(
    test: Any,
    given: Any,
    one: tuple[tuple[Any, ...], dict[Root, Any]],
    two: tuple[tuple[Any, ...], dict[Root, Any]],
    set_: Callable[[tuple[Any, ...]], None],
    names: tuple[str, ...],
    first: int,
) -> None:
    pairs: list[tuple[Any, Any]] = []
    makers: list[Callable[[list[Any]], Any]] = []
    for name, a, b in zip(names, one[0], two[0], strict=True):
        a, b = (
            Undefined(name, HALF) if x is not other and _is_half_defined(x) else x
            for x, other in ((a, b), (b, a))
        )
        if isinstance(a, Undefined) is not isinstance(b, Undefined):
            makers.append(_half_defined(name, test, a, b))
            continue
        makers.append(_joiner(name, given, a, b, pairs))
    roots = list({**one[1], **two[1]})
    places = {}
    joined: dict[Root, Any] = {}
    instead: tuple[dict[Any, Any], dict[Any, Any]] = ({}, {})
    for root in roots:
        a, b = (each.get(root, root.variable) for each in (one[1], two[1]))
        made = _joined_writes(test, root.variable, a, b, instead)
        if made is None:
            places[root] = len(pairs)
            pairs.append((a, b))
        else:
            joined[root] = made
    for k in (0, 1):
        if instead[k]:
            # what a branch reads of an array that it has changed is there in the joined one too
            kept = clone_replace([pair[k] for pair in pairs], instead[k])
            pairs[:] = [
                (new, pair[1]) if k == 0 else (pair[0], new)
                for new, pair in zip(kept, pairs, strict=True)
            ]
    chosen = _choose(test, pairs)
    values = tuple(make(chosen) for make in makers)
    for root in roots:
        root.write(joined[root] if root in joined else chosen[places[root]])
    for value, a, b in zip(values, one[0], two[0], strict=True):
        if type(value) is Traced and not value.scalar and value is not _unfrozen(a):
            arrays = map(_unfrozen, (a, b))
            sources = [x.root for x in arrays if type(x) is Traced and x.root.serial < first]
            for root in (*sources, *([value.root] if sources else ())):
                # they share memory in calls that take the branch
                root.uncertain = root.uncertain or (
                    "that a variable may share with another one since an if"
                )
    set_(values)


def _computed(variables: Sequence[Any]) -> set[Any]:
    """Return what is computed for variables in every call: not what only branches need."""
    found: set[Any] = set()
    pending = [v for v in variables if isinstance(v, Variable)]
    while pending:
        variable = pending.pop()
        if variable not in found:
            found.add(variable)
            node = variable.owner
            if node is not None:
                pending += node.inputs[:1] if node.op.branches else node.inputs
    return found


class _Elements:
    """The elements of arrays that exist in a call, because what is computed anyway has them."""

    def __init__(self, variables: Sequence[Any]) -> None:
        #: {the array before its writes: [(idx_list, indices)]}
        self._found: dict[Any, list[tuple[Any, Sequence[Any]]]] = {}
        for variable in _computed(variables):
            node = variable.owner
            if node is not None and is_element(node):
                indices = node.inputs[1 if isinstance(node.op, Subtensor) else 2 :]
                place = node.op.idx_list, indices
                self._found.setdefault(_before_writes(node.inputs[0]), []).append(place)

    def has(self, x: Any, idx_list: Any, indices: Sequence[Any]) -> bool:
        """Return whether an index is surely valid."""
        return any(
            idx_list == other and all(map(same_graph, indices, places))
            for other, places in self._found.get(_before_writes(x), ())
        )


def is_element(node: Any) -> bool:
    """Return whether an Apply reads or writes one element."""
    return (
        isinstance(node.op, Subtensor | IncSubtensor)
        and len(node.op.idx_list) == node.inputs[0].type.ndim
        and not any(isinstance(item, slice) for item in node.op.idx_list)
    )


def _before_writes(x: Any) -> Any:
    """Return the array that writes of elements have made another one; their shapes are equal."""
    while x.owner is not None and isinstance(x.owner.op, IncSubtensor):
        x = x.owner.inputs[0]
    return x


def _element_writes(variable: Any, x: Any, most: int = 4) -> list[Any] | None:
    """Return the Applys that make a variable of x by writes of single elements, the first first."""
    nodes: list[Any] = []
    while variable is not x:
        node = variable.owner
        if node is None or not isinstance(node.op, IncSubtensor) or len(nodes) == most:
            return None
        if not node.op.set_instead_of_inc or not is_element(node):
            return None
        nodes.append(node)
        variable = node.inputs[0]
    return nodes[::-1]


def _joined_writes(
    test: Any, x: Any, a: Any, b: Any, instead: tuple[dict[Any, Any], dict[Any, Any]]
) -> Any:
    """Return an array as branches leave it, if they write single elements in a loop; else None.

    Each element is written, with its own value if its branch is not taken. Elements that may not
    be there are left to a choice between arrays, unless the trace says otherwise. instead: gets,
    for each branch, the arrays that take the place of those that it made.
    """
    trace = current()
    if trace is None or not trace.loops:
        return None
    ones, others = _element_writes(a, x), _element_writes(b, x)
    if ones is None or others is None:
        return None
    if (
        len(ones) == len(others) == 1
        and ones[0].op == others[0].op
        and all(map(same_graph, ones[0].inputs[2:], others[0].inputs[2:]))
    ):
        value = _select(test, ones[0].inputs[1], others[0].inputs[1], x)
        made = T.set_subtensor(x[_element(ones[0].inputs[2:])], value)
        instead[0][ones[0].outputs[0]] = instead[1][others[0].outputs[0]] = made
        return made
    result, elements = x, _Elements([test, x])
    for nodes, taken, known in ((ones, True, instead[0]), (others, False, instead[1])):
        for node in nodes:
            value, *indices = (
                clone_replace(list(node.inputs[1:]), known) if known else node.inputs[1:]
            )
            place = _element(indices)
            if not elements.has(result, node.op.idx_list, indices):
                if not trace.joins:
                    return None
                place = tuple(
                    _select(test, i, zero) if taken else _select(test, zero, i)
                    for i in place
                    for zero in [T.constant(np.asarray(0, i.type.dtype))]
                )
            part = result[place]
            value = converted(value, part.type.dtype)
            pair = (value, part) if taken else (part, value)
            result = T.set_subtensor(part, _select(test, *pair, result))
            known[node.outputs[0]] = result
    return result


def _element(indices: Sequence[Any]) -> tuple[Any, ...]:
    """Return scalar indices as tensors."""
    return tuple(map(_tensor, indices))


def _tensor(index: Any) -> Any:
    if isinstance(index.type, TensorType):
        return index
    node = index.owner
    if node is not None and isinstance(node.op, T.ScalarFromTensor):
        return node.inputs[0]
    return T.tensor_from_scalar(index)


def _select(test: Any, one: Any, other: Any, *known: Any) -> Any:
    return _choose(test, [(one, other)], known)[0]


def _choose(test: Any, pairs: list[tuple[Any, Any]], known: Sequence[Any] = ()) -> list[Any]:
    """Return variables that have the first value of each pair if the test holds.

    known: variables that are computed anyway.
    """
    if not pairs:
        return []
    chosen: list[Any] = [None] * len(pairs)
    lazy = []
    for k, (a, b) in enumerate(pairs):
        if a is b:
            chosen[k] = a
        elif a.type.ndim == 0 and _is_safe([a, b], [test, *known]):
            chosen[k] = T.switch(as_bool(test), a, b)
        else:
            lazy.append(k)
    if lazy:
        results = _if(as_bool(test), [pairs[k][0] for k in lazy], [pairs[k][1] for k in lazy])
        for k, result in zip(lazy, results, strict=True):
            chosen[k] = result
    return chosen


def _if(test: Any, ones: list[Any], others: list[Any]) -> list[Any]:
    """Return the first variables if a test holds, else the others.

    A test of two parts becomes two choices: what the second part and a branch both compute, such as
    an element, may then be left out together.
    """
    trace = current()
    parts = None if trace is None else trace.lazy.get(test)
    if parts is None:
        if trace is not None:
            trace.choices += 1
        return list(ifelse(test, ones, others))
    both, first, second = parts
    inner = _if(second, ones, others)
    return _if(first, inner, others) if both else _if(first, ones, inner)


def _is_safe(variables: Sequence[Any], known: Sequence[Any], most: int = 30) -> bool:
    """Return whether computing variables is cheap and cannot fail: numbers and elementwise work.

    Reading an element may fail, unless it surely exists. known: variables that are computed anyway.
    """
    computed = _computed(known)
    elements = _Elements(known)
    pending, seen = list(variables), set()
    while pending:
        variable = pending.pop()
        if variable in seen or variable in computed or variable.owner is None:
            continue
        seen.add(variable)
        if len(seen) > most:
            return False
        node = variable.owner
        if isinstance(node.op, Subtensor):
            x, *indices = node.inputs
            if not is_element(node) or x not in computed:
                return False
            if not elements.has(x, node.op.idx_list, indices):
                return False
            pending += indices
            continue
        if not isinstance(node.op, Elemwise | T.ScalarFromTensor | T.TensorFromScalar):
            return False
        if getattr(variable.type, "ndim", 0):
            return False
        pending += node.inputs
    return True


class HasValue(Assert):
    """A variable of the program, which has a value if a condition holds."""

    def failure(self) -> Exception:
        return UnboundLocalError(self.msg)


#: why a variable has no value after a branch
HALF = "has a value in one branch of an if only."


def _is_half_defined(value: Any) -> bool:
    """Return whether a variable has a value in some calls only: a branch would compute it."""
    variable = value.variable if type(value) in (Number, Traced) else None
    return (
        variable is not None
        and variable.owner is not None
        and isinstance(variable.owner.op, HasValue)
    )


def _half_defined(name: str, test: Any, a: Any, b: Any) -> Callable[[list[Any]], Any]:
    """Return a function that gives a variable that has a value in one branch only."""
    value = b if isinstance(a, Undefined) else a
    if name == "ow_value":  # a flag says whether it is used
        return lambda chosen: value
    if not is_numeric(value):
        return lambda chosen: Undefined(name, HALF)
    if any(isinstance(x, Undefined) and _why_undefined(x) for x in (a, b)):
        return lambda chosen: Undefined(name, HALF)
    has = as_bool(test) if value is a else T.invert(as_bool(test))
    found = as_kind(value)
    check = HasValue(
        f"cannot access local variable '{name}' where it is not associated with a value"
    )
    made = found.value(check(found.variable(value), has))
    if type(made) is Traced and not made.scalar:
        made.root.uncertain = "to which one branch of an if has given a value"
    return lambda chosen: made


def _joiner(
    name: str, given: Any, a: Any, b: Any, pairs: list[tuple[Any, Any]]
) -> Callable[[list[Any]], Any]:
    """Return a function from the chosen variables to the value of a variable after a branch."""
    if a is b:
        return lambda chosen: a
    if isinstance(a, Undefined) and isinstance(b, Undefined):
        return lambda chosen: a
    if isinstance(a, list | tuple | dict) or (hasattr(a, "__dataclass_fields__")):
        leaves, structure = trees.flatten(a)
        more, same = trees.flatten(b)
        if structure != same:
            raise LoopError(f"{name} is a {type(a).__name__} of another structure in each")
        made = [
            _joiner(f"a part of {name}", given, x, y, pairs)
            for x, y in zip(leaves, more, strict=True)
        ]
        return lambda chosen: trees.unflatten(structure, [each(chosen) for each in made])
    if not (is_numeric(a) and is_numeric(b)):
        try:
            same_value = type(a) is type(b) and bool(a == b)
        except Exception:
            same_value = False
        if same_value:
            return lambda chosen: a
        raise LoopError(f"{name} is {what_is(a)} in one and {what_is(b)} in the other")
    one, two = _unfrozen(a), _unfrozen(b)
    if type(one) is type(two) is Traced and not one.scalar and one.is_same_view(two):
        return lambda chosen: one  # the same array, however it was changed
    kind = unified(name, [a, b])
    place = len(pairs)
    pairs.append((kind.variable(a), kind.variable(b)))
    parts = [x for x in (given, a, b) if type(x) is Number]
    if kind.sort == "number" and type(given) is Number and all(x.known for x in parts):
        if given.kind == "b":
            hint = hint_of(a) if given.hint else hint_of(b)
            text = f"({number_text(a)} if {given.text} else {number_text(b)})"
            python = PYTHON_TYPES[kind.what]
            if type(hint) is python:
                return lambda chosen: Number(kind.what, chosen[place], hint, text)
    return lambda chosen: kind.value(chosen[place])


def same_graph(a: Any, b: Any, depth: int = 6) -> bool:
    if a is b:
        return True
    if a.owner is None or b.owner is None or depth == 0:
        one, two = (T.extract_constant(v, only_process_constants=True) for v in (a, b))
        return all(isinstance(v, np.ndarray | np.generic) for v in (one, two)) and bool(
            np.asarray(one).ndim == 0 and one == two
        )
    return (
        a.owner.op == b.owner.op
        and len(a.owner.inputs) == len(b.owner.inputs)
        and a.owner.outputs.index(a) == b.owner.outputs.index(b)
        and all(
            same_graph(x, y, depth - 1) for x, y in zip(a.owner.inputs, b.owner.inputs, strict=True)
        )
    )


@contextmanager
def _in_branch(taken: Any) -> Iterator[None]:
    trace = current()
    if trace is None:
        yield
        return
    trace.branches += 1
    if taken is not None:
        trace.conditions.append(taken)
    try:
        yield
    finally:
        trace.branches -= 1
        if taken is not None:
            trace.conditions.pop()
