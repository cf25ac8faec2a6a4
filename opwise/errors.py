"""The exception tree of opwise.

Legacy names are kept; those that Theano derived from ``Exception`` still are, so ``except`` clauses
of old programs keep working.

    Exception
     +-- InconsistencyError            a graph edit would break the graph
     +-- MissingInputError             a function needs a variable that is not among its inputs
     +-- UnusedInputError              a function does not need one of its inputs
     +-- AliasedMemoryError            values of a function that is pickled share memory
     +-- MethodNotDefined              an Op does not define a method that the caller needs
     |    +-- GradNotDefined           ... grad; this is an AttributeError too
     |    +-- ROpNotDefined            ... R_op; this is a NotImplementedError too
     +-- AllocationError               a Module has no storage for a variable
     +-- NotScalarConstantError        the value of a variable is not known before running
     |    +-- EmptyConstantError       ... because it has no element
     +-- ShapeError                    the shape of a variable cannot be expressed
     +-- CompileError                  the C compiler refused a generated kernel
     +-- DebugModeError                a check of DebugMode failed
          +-- BadOptimization          a rewrite changed what a graph computes
          +-- BadThunkOutput
          |    +-- BadCLinkerOutput
          +-- BadDestroyMap
          +-- BadViewMap
          +-- StochasticOrder
          +-- InvalidValueError
    TypeError
     +-- AsTensorError                 a value cannot become a tensor variable
     +-- TracingError                  a function of numpy does what cannot be traced
    ValueError
     +-- DisconnectedInputError        the cost does not depend on a variable of the gradient
     +-- ProfileFormatError            a file or text is not a profile that this version can read
    TypeError
     +-- NullTypeGradError             an undefined gradient was needed
    NotImplementedError
     +-- ComplexError                  an operation has no meaning for complex numbers
     +-- MissingFeatureError           a program uses a name of Theano that opwise lacks;
                                       this is an AttributeError too

A failing Apply raises the class that its implementation raised, with the Apply, its inputs and the
line of the user's program added to the text (``linkers/errors.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

TYPE_CHECKING = False  # importing typing for it would slow the import down
if TYPE_CHECKING:
    from typing import Any


class InconsistencyError(Exception):
    """A replacement would make the graph invalid: a cycle, a destroyed value that is read."""


class MissingInputError(Exception):
    """The outputs depend on a variable that is neither an input, nor shared, nor constant.

    ``variable`` is the missing one, or None if it is not known.
    """

    def __init__(self, *args: object, variable: Any = None):
        super().__init__(*args)
        self.variable = variable


class UnusedInputError(Exception):
    """No output and no update depends on an input."""


class AliasedMemoryError(Exception):
    """Values of a function that is pickled share memory, and the function forbids that."""


class MethodNotDefined(Exception):
    """An Op does not define a method that the caller needs.

    Its arguments are the name of the method, the class and the name of the Op.
    """

    def __str__(self) -> str:
        if len(self.args) != 3:
            return super().__str__()
        method, _, op = self.args
        text = f"{op} does not define the method {method}."
        return f"{text} {_WHAT_METHODS_DO[method]}" if method in _WHAT_METHODS_DO else text


class GradNotDefined(MethodNotDefined, AttributeError):
    """An Op without ``grad`` was differentiated. Theano raised AttributeError."""


class ROpNotDefined(MethodNotDefined, NotImplementedError):
    """An Op without ``R_op`` was differentiated forward. Theano raised NotImplementedError."""


_WHAT_METHODS_DO = {
    "perform": "Define perform(self, node, inputs, output_storage), which puts each result into "
    "output_storage[i][0].",
    "grad": "Define grad(self, inputs, output_gradients), which returns the gradient with "
    "respect to each input; or stop the gradient there with consider_constant or "
    "disconnected_grad.",
    "R_op": "Define R_op(self, inputs, eval_points), which returns the derivative of each output "
    "in that direction.",
    "impl": "Define impl(self, *inputs), which returns the value for numbers.",
    "get_params": "Define get_params(self, node), which returns the fourth argument of perform.",
}


class AllocationError(Exception):
    """A Method of a Module uses a variable for which the Module has no storage."""


class NotScalarConstantError(Exception):
    """The value of a scalar variable is not known before the function runs."""


class EmptyConstantError(NotScalarConstantError):
    """The constant has no element, hence no value."""


class ProfileFormatError(ValueError):
    """A file or text is not a profile, is cut off, or was written by a newer version of opwise."""


class ShapeError(Exception):
    """The shape of a variable cannot be expressed without computing it."""


class CompileError(Exception):
    """The compiler refused a generated kernel or the C++ code of an Op.

    ``messages`` is all that the compiler said.
    """

    def __init__(self, *args: object, messages: str = ""):
        super().__init__(*args)
        self.messages = messages


class DeviceError(RuntimeError):
    """The GPU cannot be used; the text says what is missing and what to do."""


class DebugModeError(Exception):
    """Base class of the faults that DebugMode finds; keyword arguments become attributes."""

    def __init__(self, *args: object, **found: Any):
        super().__init__(*args)
        self.__dict__.update(found)


class BadOptimization(DebugModeError):
    """A rewrite replaced a variable by one of another type or value.

    DebugMode sets ``old_r`` and ``new_r``, ``old_r_val`` and ``new_r_val``, ``reason`` (the rule),
    ``stage``, ``old_graph`` and ``new_graph`` (texts).
    """


class BadThunkOutput(DebugModeError):
    """Two runs of one Apply, by other code or in other memory, computed different values.

    ``r``: the variable. ``thunk1``, ``val1``, ``thunk2``, ``val2``: what computed which value.
    ``inputs_val``: the values of the Apply's inputs.
    """

    r: Any

    def offending_op(self) -> Any:
        """Return the class of the Op that is to blame."""
        return type(self.r.owner.op)


class BadCLinkerOutput(BadThunkOutput):
    """The C implementation of an Apply differs from the Python one."""


class BadDestroyMap(DebugModeError):
    """An Op overwrote an input that its destroy_map does not name.

    ``node``, ``idx`` (the input), ``old_val``, ``new_val``, ``perform`` ('py' or 'c').
    """


class BadViewMap(DebugModeError):
    """An Op returned memory of an input, or of another output, that its view_map does not name.

    ``node``, ``output_idx``, ``out_storage``, ``in_alias_idx``, ``out_alias_idx``.
    """


class StochasticOrder(DebugModeError):
    """Optimizing the same graph twice gave two different results."""


class InvalidValueError(DebugModeError):
    """A value does not fit the type of its variable, or is not finite.

    ``r``, ``v`` (the value), ``client_node``, ``hint``, ``specific_hint``.
    """


class AsTensorError(TypeError):
    """A value cannot be converted into a tensor variable."""


class TracingError(TypeError):
    """A function that is traced does something that opwise cannot turn into a program.

    The text names the line of the function, the reason, and what to write instead.
    """


class DisconnectedInputError(ValueError):
    """The cost does not depend on a variable that its gradient is taken by."""


class ComplexError(NotImplementedError):
    """An operation, like ``%``, has no meaning for complex numbers."""


class NullTypeGradError(TypeError):
    """A gradient that is undefined or not implemented was needed."""


class MissingFeatureError(NotImplementedError, AttributeError):
    """A program uses a name of Theano that opwise lacks.

    ``name`` and ``obj``: those of an AttributeError. It is one so that ``hasattr`` of what stands
    for the name returns False.
    """

    def __init__(self, *args: object, name: str | None = None, obj: object = None):
        super().__init__(*args)
        self.name = name
        self.obj = obj


#: each is called with what the code that explains an error raised; the test suite notes that
on_failed_explanation: list[Callable[[Exception], None]] = []


def explanation(make: Callable[[], str], otherwise: str = "") -> str:
    """Return ``make()``, a part of an error's text, or ``otherwise`` if that fails.

    A fault in an explanation must not hide the error that it explains: values, types and Ops of
    users may raise anything when they are shown.
    """
    try:
        return make()
    except Exception as fault:
        for call in on_failed_explanation:
            call(fault)
        note = f"(This could not be explained further: {type(fault).__name__} in {_place(fault)}.)"
        return f"{otherwise}\n{note}" if otherwise else note


def _place(fault: BaseException) -> str:
    """Return the function and line that raised an exception."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "an unknown place"
    code = trace.tb_frame.f_code
    return f"{code.co_name}, {code.co_filename}:{trace.tb_lineno}"


def message_of(error: BaseException) -> str:
    """Return the text of an exception, also of a class whose ``__str__`` fails."""
    return explanation(lambda: str(error), type(error).__name__)


def similar(name: str, known: Iterable[str]) -> str:
    """Return a question that names those of ``known`` spelled like ``name``, or an empty text."""
    import difflib  # only wrong names need it

    folded = {each.lower(): each for each in reversed([*known])}
    close = difflib.get_close_matches(name.lower(), folded, n=2)
    return f" Did you mean {' or '.join(folded[each] for each in close)}?" if close else ""


def likely_typo(name: str, known: Iterable[str]) -> str:
    """Return a question that names those of ``known`` that ``name`` is a likely misspelling of.

    Names of another case, or that differ in one letter, of long names in two. Of other libraries'
    names a program may mean something that is spelled otherwise: such a name is no misspelling.
    """
    allowed = 0 if len(name) < 3 else 1 if len(name) < 7 else 2
    wrong = name.lower()
    letters = set(wrong)
    distances = [
        (_distance(wrong, each.lower()), _distance(name, each), each)
        for each in known
        if abs(len(each) - len(name)) <= allowed
        and len(letters.symmetric_difference(each.lower())) <= 2 * allowed
    ]
    least = min(distances, default=(allowed + 1, 0, ""))[0]
    close = [each for distance, _, each in sorted(distances) if distance == least]
    return f" Did you mean {' or '.join(close[:2])}?" if least <= allowed else ""


def _distance(a: str, b: str) -> int:
    """Return how many letters to insert, drop, replace or swap with the next make a into b."""
    earlier: list[int] = []
    last: list[int] = [*range(len(b) + 1)]
    for i, letter in enumerate(a):
        row = [i + 1]
        for j, other in enumerate(b):
            row.append(min(last[j + 1] + 1, row[j] + 1, last[j] + (letter != other)))
            if i and j and letter == b[j - 1] and a[i - 1] == other:
                row[-1] = min(row[-1], earlier[j - 1] + 1)
        earlier, last = last, row
    return last[-1]


def with_message(error: BaseException, text: str, note: str) -> BaseException:
    """Return an exception of the class of ``error`` with the message ``text``.

    If that class cannot be made from a text alone, return ``error`` itself, with ``note`` added.
    """
    try:
        return type(error)(text)
    except Exception:  # whatever a class of the user raises
        error.add_note(note)
        return error
