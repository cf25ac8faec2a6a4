"""Inputs and outputs of a function, with what the user says about each: In, Out, Param.

How their expressions become one graph is in ``opwise.compile.construct``.
"""

from __future__ import annotations

import warnings

from opwise.compile.shared import SharedVariable
from opwise.graph.variable import Constant, Variable
from opwise.linkers.storage import Container


class SymbolicInput:
    """An input of a function: a variable, and how the values given for it are treated.

    name: the keyword of the call; that of the variable unless told (not even that with
    autoname=False). update: what replaces the value after a call, of the type of the variable.
    mutable: the function may overwrite the value given; true by default where there is an update.
    strict: the value must be of the type already. allow_downcast: whether precision may be lost in
    conversion; None: only that of Python floats where floatX is float32. implicit: the caller must
    not give a value.
    """

    def __init__(
        self,
        variable,
        name=None,
        update=None,
        mutable=None,
        strict=False,
        allow_downcast=None,
        autoname=True,
        implicit=False,
    ):
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
        self.name = name
        self.update = update
        self.mutable = update is not None if mutable is None else mutable
        self.strict = strict
        self.allow_downcast = allow_downcast
        self.implicit = implicit

    def __str__(self):
        if self.update is not None:
            return f"{type(self).__name__}({self.variable} -> {self.update})"
        return f"{type(self).__name__}({self.variable})"

    def __repr__(self):
        return str(self)


def _check_update(variable, update):
    if not isinstance(update, Variable):
        raise TypeError(f"The update of {variable} must be a Variable, not {update!r}")
    if variable.type != update.type:
        raise TypeError(
            f"Variable '{variable}' has type {variable.type} but an update of type {update.type}. "
            "The type of the update should be the same as the type of the variable: convert it."
        )


class In(SymbolicInput):
    """An input with, possibly, a value of its own.

    value: the default, used whenever the call gives none; a Container or a shared variable instead
    lends its storage, which makes the input implicit. borrow: outputs may be views of the value
    given; as ``mutable`` unless told. shared: the value lives in a storage that others see too. The
    other arguments are those of SymbolicInput.

    Raises AssertionError for mutable=True with borrow=False, and TypeError for an implicit input
    without a value.
    """

    def __init__(
        self,
        variable,
        name=None,
        value=None,
        update=None,
        mutable=None,
        strict=False,
        allow_downcast=None,
        autoname=True,
        implicit=None,
        borrow=None,
        shared=False,
    ):
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
        self.value = value
        self.borrow = self.mutable if borrow is None else borrow
        self.shared = shared


class Param(In):
    """The former name of ``In``, whose ``value`` it calls ``default``; warns."""

    def __init__(
        self,
        variable,
        default=None,
        name=None,
        mutable=False,
        strict=False,
        allow_downcast=None,
        implicit=None,
        borrow=None,
    ):
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
    """An output of a function.

    borrow: the caller takes the memory as it is, which the next call may overwrite, and which may
    be that of an input; otherwise every call returns memory of its own.
    """

    def __init__(self, variable, borrow=False):
        self.variable = variable
        self.borrow = borrow

    def __str__(self):
        return f"Out({self.variable},{self.borrow})"

    def __repr__(self):
        return str(self)


Out = SymbolicOutput


def as_input(spec):
    """Return what stands in the list of inputs of a function as an In.

    spec: an In; a variable; or, in brackets of either kind, ``[name,] variable``, ``[name,]
    variable, value`` or ``[name,] (variable, update), value``. Raises TypeError for anything else.
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
            f"Constants not allowed in param list: {spec}. A constant has its value: leave it out."
        )
    if isinstance(spec, Variable):
        return In(spec)
    if isinstance(spec, list | tuple):
        return _from_sequence(spec)
    raise TypeError(
        f"Unknown parameter type: {type(spec)}: {spec!r}. An input is a variable, or In(variable)."
    )


def _from_sequence(spec):
    name, rest = (spec[0], spec[1:]) if spec and isinstance(spec[0], str) else (None, spec)
    if not 1 <= len(rest) <= 2:
        raise TypeError(
            f"Invalid input syntax: {spec}. Write a variable, (variable, value), "
            "((variable, update), value), each with a name before it if wanted, or an In."
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
