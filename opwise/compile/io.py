"""Inputs and outputs of a function and the options of each: In, Out, Param.

``opwise.compile.construct`` makes one graph of their expressions.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from opwise.compile.shared import SharedVariable
from opwise.graph.variable import Constant, Variable
from opwise.linkers.storage import Container


class SymbolicInput:
    """An input of a function: a variable, and how its values are treated."""

    #: whether its values lie on the device: see ``Interface.resident``
    resident = False

    def __init__(
        self,
        variable: Variable,
        name: str | None = None,
        update: Variable | None = None,
        mutable: bool | None = None,
        strict: bool = False,
        allow_downcast: bool | None = None,
        autoname: bool = True,
        implicit: bool = False,
    ) -> None:
        if not isinstance(variable, Variable):
            raise TypeError(
                f"An input must be a Variable, not {variable!r} of type {type(variable)}"
            )
        if name is None and autoname:
            name = variable.name
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name must be a string! (got: {name!r})")
        if update is not None:
            _check_update(variable, update)
        self.variable = variable
        #: the keyword of calls (default: the variable's name; autoname=False: None)
        self.name = name
        #: the expression that replaces the value after a call; it has the variable's type
        self.update = update
        #: whether the function may overwrite the value (default: whether there is an update)
        self.mutable = update is not None if mutable is None else mutable
        #: whether values are refused if they do not have the type already
        self.strict = strict
        #: whether a conversion may lose precision (default: only from Python floats to a float32
        #: floatX)
        self.allow_downcast = allow_downcast
        #: whether callers must not give a value
        self.implicit = implicit

    def __str__(self) -> str:
        if self.update is not None:
            return f"{type(self).__name__}({self.variable} -> {self.update})"
        return f"{type(self).__name__}({self.variable})"

    def __repr__(self) -> str:
        return str(self)


def _check_update(variable: Variable, update: Any) -> None:
    if not isinstance(update, Variable):
        raise TypeError(f"The update of {variable} must be a Variable, not {update!r}")
    if variable.type != update.type:
        raise TypeError(
            f"Variable '{variable}' has type {variable.type} but an update of type {update.type}. "
            "The type of the update should be the same as the type of the variable: cast it."
        )


class In(SymbolicInput):
    """An input that may have a value of its own.

    The arguments are described at the attributes. Raises AssertionError for mutable=True with
    borrow=False, and TypeError for an implicit input without a value.
    """

    def __init__(
        self,
        variable: Variable,
        name: str | None = None,
        value: Any = None,
        update: Variable | None = None,
        mutable: bool | None = None,
        strict: bool = False,
        allow_downcast: bool | None = None,
        autoname: bool = True,
        implicit: bool | None = None,
        borrow: bool | None = None,
        shared: bool = False,
    ) -> None:
        if mutable and borrow is not None and not borrow:
            raise AssertionError(
                f"Symbolic input for variable {variable} (name={name}) has flags mutable=True, "
                "borrow=False. This combination is incompatible since mutable=True implies that "
                "the input variable may be both aliased (borrow=True) and overwritten. Leave one "
                "of them out."
            )
        if isinstance(value, SharedVariable):
            value = value.container
        if implicit is None:
            implicit = isinstance(value, Container)
        if implicit and value is None:
            raise TypeError(
                f"An implicit input must be given a default value: {variable}. Write "
                f"In({variable}, value=...)."
            )
        super().__init__(
            variable, name, update, mutable, strict, allow_downcast, autoname, implicit
        )
        #: the value in calls that give none. The input uses the storage of a Container or shared
        #: variable, and is implicit then
        self.value = value
        #: whether outputs may be views of the value (default: ``mutable``)
        self.borrow = self.mutable if borrow is None else borrow
        #: whether other functions use the storage too
        self.shared = shared


class Param(In):
    """The former name of ``In``, with ``default`` for ``value``; warns."""

    def __init__(
        self,
        variable: Variable,
        default: Any = None,
        name: str | None = None,
        mutable: bool = False,
        strict: bool = False,
        allow_downcast: bool | None = None,
        implicit: bool | None = None,
        borrow: bool | None = None,
    ) -> None:
        warnings.warn(
            "The Param class is deprecated. Replace Param(default=N) by theano.In(value=N)",
            stacklevel=2,
        )
        super().__init__(
            variable,
            name=name,
            value=default,
            mutable=mutable,
            strict=strict,
            allow_downcast=allow_downcast,
            implicit=implicit,
            borrow=borrow,
        )
        self.default = default


class SymbolicOutput:
    """An output of a function."""

    def __init__(
        self,
        variable: Variable,
        borrow: bool = False,
        place: int | None = None,
        becomes: int | None = None,
    ) -> None:
        self.variable = variable
        #: whether results may share memory with an input, or with the next call's result;
        #: otherwise every call returns new memory
        self.borrow = borrow
        #: position of the only input whose memory results may have, if they borrow one's; they have
        #: all of it, as it is (default: any input's memory, or a part of it)
        self.place = place
        #: position of the input whose value the caller replaces by it after each call; a state of
        #: random numbers may then be advanced as it is
        self.becomes = becomes

    def __str__(self) -> str:
        return f"Out({self.variable},{self.borrow})"

    def __repr__(self) -> str:
        return str(self)


Out = SymbolicOutput


#: an input of a function, see ``as_input``
Input: TypeAlias = "Variable | SymbolicInput | Sequence[Any]"
#: an output of a function
Output: TypeAlias = "Variable | SymbolicOutput"
#: what a function returns: one output, several, several by names, or nothing
Outputs: TypeAlias = "Output | Sequence[Output] | Mapping[str, Output] | None"


def as_input(spec: Any) -> In:
    """Return an item of a function's list of inputs as an In.

    spec: an In, a variable, or a list or tuple: ``variable``, ``variable, value`` or ``(variable,
    update), value``, each with a name before it if wanted. Raises TypeError for any other object.
    """
    if isinstance(spec, In):
        return spec
    if isinstance(spec, SymbolicInput):
        return In(
            spec.variable,
            name=spec.name,
            update=spec.update,
            mutable=spec.mutable,
            strict=spec.strict,
            allow_downcast=spec.allow_downcast,
            autoname=False,
        )
    if isinstance(spec, Constant):
        raise TypeError(
            f"Constants not allowed in param list: {spec}. A constant already has a value: remove "
            "it from the inputs."
        )
    if isinstance(spec, Variable):
        return In(spec)
    if isinstance(spec, list | tuple):
        return _from_sequence(spec)
    raise TypeError(
        f"Unknown parameter type: {type(spec)}: {spec!r}. An input is a variable, or In(variable)."
    )


def _from_sequence(spec: list[Any] | tuple[Any, ...]) -> In:
    name, rest = (spec[0], spec[1:]) if spec and isinstance(spec[0], str) else (None, spec)
    if not 1 <= len(rest) <= 2:
        raise TypeError(
            f"Invalid input syntax: {spec}. Write an In, a variable, (variable, value) or "
            "((variable, update), value); a name may come first."
        )
    variable, value = rest[0], rest[1] if len(rest) == 2 else None
    update = None
    if isinstance(variable, list | tuple) and len(variable) == 2:
        variable, update = variable
    if isinstance(variable, Constant) or not isinstance(variable, Variable):
        raise TypeError(f"Unknown input type: {type(variable)}, expected a Variable in {spec}")
    symbolic = isinstance(value, Variable | SymbolicInput)
    if symbolic and not isinstance(value, SharedVariable):
        raise TypeError(
            f"The value for input {variable} should not be symbolic, but it is {value}. Give a "
            "number or an array."
        )
    return In(variable, name=name, value=value, update=update)
