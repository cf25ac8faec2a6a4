"""Life: what happens to one function, event by event, beside a model of it in numpy."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from opwise.compile.executable import Function
from opwise.compile.function import function
from opwise.compile.io import In, Out
from opwise.compile.perthread import PerThread
from opwise.config import change_flags
from opwise.linkers import opwise_c
from opwise.modes.mode import Mode
from opwise.testing.fuzz.layouts import LAYOUTS, laid_out
from opwise.testing.stateful.operations import Array, Below
from opwise.testing.stateful.program import Program, random_values


class Fault(AssertionError):
    """A function gives something else than its model."""


#: an argument: its value, and the name of its layout
Argument = tuple[Array, str]
Event = Callable[["Life"], object]
#: the events, each as often as its weight says
EVENTS: list[Event] = []


def event(weight: int) -> Callable[[Event], Event]:
    """Add a function to the events."""

    def decorate(found: Event) -> Event:
        EVENTS.extend([found] * weight)
        return found

    return decorate


class Life:
    """The life of one function."""

    def __init__(self, program: Program, below: Below) -> None:
        self.program, self.below = program, below
        self.rng = np.random.RandomState(below(1 << 16))
        #: the names of the events so far
        self.events: list[str] = []
        #: the values that shared variables have now
        self.state = {name: value.copy() for name, value in program.shared_values.items()
                      if name in {leaf.name for leaf in program.shared()}}  # fmt: skip
        self.begun = dict(self.state)
        self.arguments = [self.argument(leaf, program.sizes) for leaf in program.inputs()]
        #: results that the caller holds, and copies of them
        self.held: list[tuple[Array, Array]] = []
        self.f = self.compiled()
        #: the bits of the results for ``arguments`` and ``begun``
        self.first = [value.copy() for value in self.checked(self.f, self.arguments)]

    def compiled(self, mode: Any = None, **options: Any) -> Function:
        """Return the function of the program, compiled anew."""
        program = self.program
        made: Function = function(
            [program.variables[leaf.name] for leaf in program.inputs()],
            [program.variables[name] for name in program.outputs],
            updates=[(program.variables[s], program.variables[v])
                     for s, v in program.updates.items()],
            mode=mode, on_unused_input="ignore", **options,
        )  # fmt: skip
        return made

    def run(self, events: int) -> None:
        """Let a number of events happen; raise Fault if the function is wrong then."""
        for _ in range(events):
            found = EVENTS[self.below(len(EVENTS))]
            self.events.append(found.__name__)
            found(self)
        for array, kept in self.held:
            if not same_bits([array], [kept]):
                raise Fault(f"a result that the caller holds has changed from {kept} to {array}")

    # --- calls ------------------------------------------------------------------------------------

    def argument(self, leaf: Any, sizes: list[int]) -> Argument:
        """Return a random value in a random layout."""
        value = random_values(leaf, sizes, self.rng, self.program.special)
        names = list(LAYOUTS)
        return value, names[self.below(len(names))] if self.below(2) else "plain"

    def given(self, arguments: list[Argument]) -> dict[str, Array]:
        """Return the values of inputs and shared variables, by name."""
        inputs = self.program.inputs()
        return self.state | {
            leaf.name: value for leaf, (value, _) in zip(inputs, arguments, strict=True)
        }

    def checked(self, f: Function, arguments: list[Argument]) -> list[Array]:
        """Call a function, compare it with the model, which advances; return all results.

        Shared variables may have other lengths by now, for which numpy refuses the call.
        """
        program = self.program
        if self.refused(arguments):
            attempted(self, arguments)
            return []
        given = self.given(arguments)
        bounds = program.bounds(given, seed=len(self.events))
        found = self.called(f, arguments)
        for name, value in zip(program.results(), found, strict=True):
            problem = differs(value, *bounds[name], program.variables[name].dtype)
            if problem:
                raise Fault(f"{name}: {problem}")
        return found

    def refused(self, arguments: list[Argument], lengths_of_1: bool = False) -> bool:
        """Return whether numpy refuses arguments, as the shared variables are now.

        lengths_of_1: also if a length is 1 by chance, where numpy broadcasts and opwise does not.
        """
        program = self.program
        given = self.given(arguments)
        try:
            values = program.computed(given)
        except (ValueError, IndexError, TypeError, np.linalg.LinAlgError):
            return True
        declared = {name: program.variables[name].broadcastable for name in values}
        return lengths_of_1 and any(
            n < 2 and not known
            for name, value in values.items()
            for n, known in zip(value.shape, declared[name], strict=True)
        )

    def called(self, f: Function, arguments: list[Argument]) -> list[Array]:
        """Call a function, and return its results and the new values of shared variables."""
        program = self.program
        arrays = [laid_out(value, layout) for value, layout in arguments]
        try:
            outputs = f(*arrays)
        except Exception as e:
            raise Fault(f"the call raises {type(e).__name__}: {e}") from e
        for leaf, array, (value, _) in zip(program.inputs(), arrays, arguments, strict=True):
            if not same_bits([array], [value]):
                raise Fault(f"the argument {leaf.name} was overwritten")
        for name, output in zip(program.outputs, outputs, strict=True):
            if not isinstance(output, np.ndarray):
                raise Fault(f"{name} is a {type(output).__name__}")
            if any(np.shares_memory(output, array) for array in arrays):
                raise Fault(f"{name} shares memory with an argument")
            self.held.append((output, output.copy()))
        own = shared_of(f)
        new = {name: own[name].get_value() for name in self.state if name in own}
        for name, value in new.items():
            if name not in program.updates and not same_bits([value], [self.state[name]]):
                raise Fault(f"the shared variable {name} has changed")
        self.state.update(new)
        return [*outputs, *(new[name] for name in program.updates)]

    def set_state(self, f: Function, state: dict[str, Array]) -> None:
        """Give shared variables their values."""
        own = shared_of(f)
        for name, value in state.items():
            self.state[name] = value.copy()
            if name in own:
                own[name].set_value(value.copy())

    def same(self, f: Function) -> None:
        """Raise Fault unless a function gives the first bits for the first arguments."""
        self.set_state(f, self.begun)
        found = self.called(f, self.arguments)
        for name, one, two in zip(self.program.results(), self.first, found, strict=True):
            if not same_bits([one], [two]):
                raise Fault(f"{name}: other bits than at first:\n{one!r}\n{two!r}")

    def other_sizes(self) -> list[int]:
        """Return other lengths for the dimensions that no shared variable has."""
        program = self.program
        kept = {d for leaf in program.shared() for d in leaf.dims}
        return [n if d in kept else 2 + self.below(9) for d, n in enumerate(program.sizes)]


def shared_of(f: Function) -> dict[str, Any]:
    """Return the shared variables of a function, by name."""
    return {str(variable.name): variable for variable in f.get_shared()}


def same_bits(first: list[Array], second: list[Array]) -> bool:
    """Return whether arrays have equal dtypes, shapes and bits; the bits of a NaN do not count."""
    for one, two in zip(first, second, strict=True):
        if one.dtype != two.dtype or one.shape != two.shape:
            return False
        if one.dtype.kind == "c":
            one, two = (x.copy(order="C").view(x.real.dtype) for x in (np.atleast_1d(one),
                                                                  np.atleast_1d(two)))  # fmt: skip
        if one.dtype.kind == "f":
            one, two = (np.where(np.isnan(x), x.dtype.type(np.nan), x) for x in (one, two))
        if one.tobytes() != two.tobytes():
            return False
    return True


def differs(value: Array, exact: Array, bound: Array, dtype: str) -> str | None:
    """Return how a value is farther from the exact one than its bound, or None."""
    if value.dtype != dtype:
        return f"{value.dtype} where {dtype} is declared"
    if value.shape != exact.shape:
        return f"the shape is {value.shape}, and numpy's {exact.shape}"
    with np.errstate(all="ignore"):
        equal = (value == exact) | (np.isnan(value) & np.isnan(exact))
        distance = abs(value - exact) if dtype[0] in "fc" else np.full(exact.shape, np.inf)
        near = np.isfinite(exact) & (distance <= bound)
    wrong = ~(equal | near | np.isnan(bound))
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0]) if value.ndim else ()
    return f"{value[at]!r} at {at}, and numpy's is {exact[at]!r} (allowed: {bound[at]:.3g})"


# --- events ---------------------------------------------------------------------------------------


@event(4)
def call_with_other_values(life: Life) -> None:
    """Also in other layouts."""
    program = life.program
    life.checked(life.f, [life.argument(leaf, program.sizes) for leaf in program.inputs()])


@event(3)
def call_with_other_sizes(life: Life) -> None:
    """What numpy refuses may fail, and may not fail, but changes no shared variable if it fails."""
    sizes = life.other_sizes()
    arguments = [life.argument(leaf, sizes) for leaf in life.program.inputs()]
    if life.refused(arguments, lengths_of_1=True):
        attempted(life, arguments)
    else:
        life.checked(life.f, arguments)


def attempted(life: Life, arguments: list[Argument]) -> None:
    """Call the function; if that fails, shared variables have the values that they had."""
    before = {name: v.get_value() for name, v in shared_of(life.f).items()}
    try:
        life.f(*(laid_out(value, layout) for value, layout in arguments))
    except Exception:
        after = shared_of(life.f)
        for name, value in before.items():
            if not same_bits([value], [after[name].get_value()]):
                raise Fault(f"the failed call has changed the shared variable {name}") from None
    else:
        life.state.update({name: v.get_value() for name, v in shared_of(life.f).items()})


@event(2)
def call_with_a_wrong_argument(life: Life) -> None:
    if not life.arguments:
        return
    arrays: list[Any] = [laid_out(value, layout) for value, layout in life.arguments]
    at = life.below(len(arrays))
    wrong = (None, "text", arrays[at][None], np.array([None, 1]), object())[life.below(5)]
    before = {name: v.get_value() for name, v in shared_of(life.f).items()}
    try:
        life.f(*arrays[:at], wrong, *arrays[at + 1 :])
    except (TypeError, ValueError) as e:
        if "argument" not in str(e) and "input" not in str(e).lower():
            raise Fault(f"the error for {wrong!r} names no argument: {e}") from e
    else:
        if wrong is not None:  # None is taken where nothing reads the argument
            raise Fault(f"{wrong!r} is taken as argument {at}")
        life.set_state(life.f, before)
    for name, value in before.items():
        if not same_bits([value], [shared_of(life.f)[name].get_value()]):
            raise Fault(f"the failed call has changed the shared variable {name}")
    life.same(life.f)


@event(2)
def call_with_one_array_twice(life: Life) -> None:
    """Arguments that are the same array, or overlap."""
    inputs = life.program.inputs()
    arguments = [life.argument(leaf, life.program.sizes) for leaf in inputs]
    for i, leaf in enumerate(inputs):
        for j, other in enumerate(inputs[:i]):
            if (leaf.dtype, leaf.dims) == (other.dtype, other.dims):
                arguments[i] = arguments[j]
    bounds = life.program.bounds(life.given(arguments), seed=0)
    made = {id(value): laid_out(value, layout) for value, layout in arguments}
    outputs = life.f(*(made[id(value)] for value, _ in arguments))
    for name, value in zip(life.program.outputs, outputs, strict=True):
        problem = differs(value, *bounds[name], life.program.variables[name].dtype)
        if problem:
            raise Fault(f"{name}, called with one array twice: {problem}")
    life.state.update({name: v.get_value() for name, v in shared_of(life.f).items()})


@event(2)
def write_into_results(life: Life) -> None:
    """The caller owns what it got."""
    for array, _ in life.held:
        if array.flags.writeable and array.size:
            array[...] = 0
    life.held.clear()
    life.same(life.f)


@event(2)
def set_shared_values(life: Life) -> None:
    new = {
        leaf.name: random_values(leaf, life.program.sizes, life.rng, life.program.special)
        for leaf in life.program.shared()
    }
    life.set_state(life.f, new)
    life.checked(life.f, life.arguments)


@event(1)
def call_again(life: Life) -> None:
    for _ in range(3):
        life.same(life.f)


@event(1)
def copy_the_function(life: Life) -> None:
    life.f = life.f.copy()
    life.same(life.f)


@event(1)
def deepcopy_the_function(life: Life) -> None:
    old, life.f = life.f, copy.deepcopy(life.f)
    before = {name: v.get_value() for name, v in shared_of(old).items()}
    life.same(life.f)
    life.checked(life.f, life.arguments)  # updates go on
    for name, value in before.items():
        if not same_bits([value], [shared_of(old)[name].get_value()]):
            raise Fault(f"the deep copy shares {name} with the function")


@event(1)
def pickle_the_function(life: Life) -> None:
    life.f = pickle.loads(pickle.dumps(life.f, life.below(2) + 4))
    life.same(life.f)


@event(1)
def compile_again(life: Life) -> None:
    """The graph comes from the cache; shared variables are those of the program."""
    life.f = life.compiled()
    life.same(life.f)


@event(2)
def compile_in_another_mode(life: Life) -> None:
    """Another linker, other rewrites, or a profile."""
    linkers = ("py", "vm", "cvm", "c|py_nogc", "cvm_nogc")
    ways: list[dict[str, Any]] = [{"mode": Mode(linker, "fast_run")} for linker in linkers]
    ways += [{"mode": "FAST_COMPILE"}, {"profile": True}]
    f = life.compiled(**ways[life.below(len(ways))])
    life.set_state(f, life.begun)
    life.checked(f, life.arguments)
    life.f = life.compiled()
    life.set_state(life.f, life.begun)


@event(1)
def borrow_results(life: Life) -> None:
    """Results that the next call may overwrite."""
    program = life.program
    f: Function = function(
        [In(program.variables[leaf.name], borrow=True) for leaf in program.inputs()],
        [Out(program.variables[name], borrow=True) for name in program.outputs],
        on_unused_input="ignore",
    )
    life.set_state(f, life.begun)
    arrays = [laid_out(value, layout) for value, layout in life.arguments]
    for _ in range(3):
        found = f(*arrays)
        if not same_bits(life.first[: len(found)], found):
            raise Fault("other bits with borrowed results")
        del found
    life.set_state(life.f, life.begun)


@event(1)
def collect_garbage(life: Life) -> None:
    life.f.free()
    gc.collect()
    life.same(life.f)


@event(1)
def change_threads(life: Life) -> None:
    """Results do not depend on the number of threads."""
    with change_flags(threads=1 + life.below(2)):
        life.same(life.compiled())
    life.f = life.compiled()
    life.set_state(life.f, life.begun)


@event(1)
def call_from_threads(life: Life) -> None:
    """Several threads call the function, or copies of their own."""
    if life.program.updates:
        return
    life.set_state(life.f, life.begun)
    called: Any = PerThread(life.f) if life.below(2) else life.f
    problems: list[str] = []

    def work() -> None:
        arrays = [laid_out(value, layout) for value, layout in life.arguments]
        for _ in range(3):
            try:
                if not same_bits(life.first, called(*arrays)):
                    problems.append("other bits in a thread")
            except Exception as e:
                problems.append(f"the call in a thread raises {type(e).__name__}: {e}")

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise Fault(problems[0])


def swap_kernels(life: Life) -> None:
    """Compiled kernels take the place of built-in loops; rare, since a compiler takes long."""
    if isinstance(life.f.fn, opwise_c.VM):
        life.f.fn.wait_for_kernels()
    life.same(life.f)
