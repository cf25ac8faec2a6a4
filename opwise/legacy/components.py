"""Components of Modules: state (Member), named expressions (External) and functions (Method).

Also what an attribute of a Module becomes (``wrap``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from opwise.compile import io
from opwise.compile.construct import construct, created, update_expression
from opwise.compile.maker import FunctionMaker, stats_for
from opwise.compile.shared import SharedVariable
from opwise.errors import AllocationError
from opwise.graph import traversal
from opwise.graph.variable import Constant, Variable
from opwise.linkers.storage import Container
from opwise.modes.mode import get_mode

#: in one ``make``: {variable: its Container, component: what it built}
Memo = dict[Any, Any]


def name_join(*args: str) -> str:
    """Return the non-empty names joined by dots."""
    return ".".join(arg for arg in args if arg)


def name_split(sym: str, n: int = -1) -> list[str]:
    """Return the parts of a dotted name, split at most ``n`` times (default: at every dot)."""
    return sym.split(".", n)


class Component:
    """A part of a Module: it allocates storage and then builds its part of an instance."""

    _name = ""

    @property
    def name(self) -> str:
        """The attribute, index or key of this component in the component that holds it."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self.set_name(name)

    def set_name(self, name: str) -> None:
        """Set the name; a component that holds others also sets theirs."""
        self.__dict__["_name"] = name

    def allocate(self, memo: Memo) -> None:
        """Add a container to ``memo`` for each variable of this component that has none."""
        raise NotImplementedError(f"{type(self).__name__} does not define allocate")

    def build(self, mode: Any, memo: Memo) -> Any:
        """Return what an instance holds for this component; None if it holds nothing."""
        raise NotImplementedError(f"{type(self).__name__} does not define build")

    def make_no_init(self, mode: Any = None) -> Any:
        """Return an instance whose members have no values yet."""
        memo: Memo = {}
        self.allocate(memo)
        return self.build(mode, memo)

    def make(self, *args: Any, mode: Any = None, **kwargs: Any) -> Any:
        """Return an instance after ``initialize(*args, **kwargs)``, if it has that method.

        mode: for Methods without a mode of their own (default: the default mode).
        """
        instance = self.make_no_init(mode)
        initialize = getattr(instance, "initialize", None)
        if initialize is not None:
            initialize(*args, **kwargs)
        return instance

    def pretty(self, **kwargs: Any) -> str:
        """Return a description of one or more lines."""
        return str(self)

    def __str__(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        return str(self)


class VariableComponent(Component):
    """A component for one variable, ``r``; it names the variable if that has no name."""

    def __init__(self, r: Variable) -> None:
        self.r = r

    def set_name(self, name: str) -> None:
        super().set_name(name)
        # other graphs may use a constant too
        if self.r.name is None and not isinstance(self.r, Constant):
            self.r.name = name

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.r})"

    def pretty(self, **kwargs: Any) -> str:
        return f"{type(self).__name__} :: {self.r.type}"


class External(VariableComponent):
    """A variable that is computed from others; instances have no storage for it."""

    def allocate(self, memo: Memo) -> None:
        pass

    def build(self, mode: Any, memo: Memo) -> None:
        return None

    def pretty(self, **kwargs: Any) -> str:
        (text,) = traversal.as_string([], [self.r])
        return f"{super().pretty()}\n= {text}"


class Member(VariableComponent):
    """A variable that is state: each instance has one storage, which all its functions share.

    A constant keeps its value and cannot be set. A shared variable keeps its own storage, which
    all instances share.
    """

    def allocate(self, memo: Memo) -> None:
        if self.r not in memo:
            memo[self.r] = self._container()

    def _container(self) -> Container:
        if isinstance(self.r, SharedVariable):
            return self.r.container
        value = self.r.data if isinstance(self.r, Constant) else None
        return Container(
            self.r,
            storage=[value],
            readonly=isinstance(self.r, Constant),
            name=self.r.name or self.name,
        )

    def build(self, mode: Any, memo: Memo) -> Any:
        return memo[self.r]


class Method(Component):
    """A function of the instance, over the state of its Module.

    inputs: a variable, an In, or a list of these. outputs: a variable, an Out, a list of these, or
    None for a function that returns None. updates: dict or list of pairs, from members to their
    next values. mode: replaces the mode that the Module is made with.

    The function reads members that outputs and updates depend on from the instance. A member in
    ``inputs`` is an argument instead; the instance's value is neither read nor changed.
    """

    def __init__(
        self,
        inputs: Any,
        outputs: Any,
        updates: Mapping[Any, Any] | Iterable[tuple[Any, Any]] | None = None,
        mode: Any = None,
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.updates = dict(updates or {})
        self.mode = mode

    def allocate(self, memo: Memo) -> None:
        pass

    def build(self, mode: Any, memo: Memo) -> Any:
        """Compile the function.

        Raises AllocationError if it needs a variable that has no storage, ValueError if a member is
        both an input and updated, TypeError if a constant is updated.
        """
        if self not in memo:
            memo[self] = self._compile(mode if self.mode is None else self.mode, memo)
        return memo[self]

    def _compile(self, mode: Any, memo: Memo) -> Any:
        inputs = [io.as_input(unwrapped(item)) for item in _as_list(self.inputs)]
        arguments = {spec.variable for spec in inputs}
        outputs = self._outputs()
        state, shared_updates = self._updated(arguments, memo)
        inputs += state
        known = {spec.variable for spec in inputs}
        expressions = [_variable_of(out) for out in _as_list(outputs)]
        expressions += [spec.update for spec in inputs if spec.update is not None]
        expressions += shared_updates.values()
        for var in traversal.inputs(expressions, blockers=known):
            if var not in known and not isinstance(var, Constant | SharedVariable):
                inputs.append(self._state(var, memo))
        construction = construct(inputs, outputs, shared_updates, on_unused_input="ignore")
        name = self.name or None
        maker = FunctionMaker(
            construction, get_mode(mode), name, stats_for(None, name, get_mode(mode)),
            output_none=self.outputs is None,
        )  # fmt: skip
        return maker.create()

    def _outputs(self) -> Any:
        if isinstance(self.outputs, list | tuple):
            return [unwrapped(out) for out in self.outputs]
        return unwrapped(self.outputs)

    def _updated(
        self, arguments: set[Variable], memo: Memo
    ) -> tuple[list[io.In], dict[SharedVariable, Any]]:
        """Return (inputs for the updated members, updates of shared variables)."""
        state: list[io.In] = []
        of_shared: dict[SharedVariable, Any] = {}
        for var, expression in self.updates.items():
            var, expression = unwrapped(var), unwrapped(expression)
            if not isinstance(var, Variable) or isinstance(var, Constant):
                raise TypeError(
                    f"{self.name}: only members can be updated, not {var!r}. A variable becomes a "
                    "member when it is assigned to an attribute of the module."
                )
            if var in arguments:
                raise ValueError(
                    "Variable listed in both inputs and updates. Use inputs to use your own "
                    f"storage, use updates to work on module-shared storage: {var}"
                )
            if isinstance(var, SharedVariable):
                of_shared[var] = expression
            else:
                expression = update_expression(var, expression)
                state.append(self._state(var, memo, expression))
        return state, of_shared

    def _state(self, var: Variable, memo: Memo, update: Variable | None = None) -> io.In:
        if var not in memo:
            raise AllocationError(
                f"There is no storage associated to {var} used by {self.name} = {self}. Verify "
                "that it is indeed a Member of the enclosing module or of one of its submodules: "
                f"make it an attribute of the module, or an input of {self.name}.{created(var)}"
            )
        return io.In(
            var,
            value=memo[var],
            update=update,
            mutable=update is not None,
            borrow=True,
            implicit=True,
            shared=True,
        )

    def pretty(self, **kwargs: Any) -> str:
        updates = {unwrapped(k): unwrapped(v) for k, v in self.updates.items()}
        outputs = [_variable_of(out) for out in _as_list(self._outputs())]
        inputs = [io.as_input(unwrapped(item)).variable for item in _as_list(self.inputs)]
        lines = [f"inputs: {', '.join(map(str, inputs))}"] if inputs else []
        texts = traversal.as_string(inputs, [*outputs, *updates.values()])
        lines += texts[: len(outputs)]
        lines += [f"{k} <- {v}" for k, v in zip(updates, texts[len(outputs) :], strict=True)]
        return "\n".join(lines)

    def __str__(self) -> str:
        updates = ", ".join(f"{var} <= {new}" for var, new in self.updates.items())
        return f"Method({self.inputs} -> {self.outputs}{'; ' if updates else ''}{updates})"

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(
            "'Method' object is not callable  (Hint: compile your module first.  "
            "See Component.make())"
        )


def _as_list(items: Any) -> list[Any]:
    if items is None:
        return []
    return list(items) if isinstance(items, list | tuple) else [items]


def _variable_of(out: Any) -> Any:
    return out.variable if isinstance(out, io.SymbolicOutput) else out


def unwrapped(item: Any) -> Any:
    """Return the variable of a VariableComponent; another object as it is."""
    return item.r if isinstance(item, VariableComponent) else item


# --- what an attribute becomes ------------------------------------------------------------------


#: (condition, wrapper) pairs; the first whose condition holds makes the component
_wrappers: list[tuple[Callable[[Any], bool], Callable[[Any], Component]]] = []


def register_wrapper(condition: Callable[[Any], bool], wrapper: Callable[[Any], Component]) -> None:
    """Let ``wrapper(x)`` make the Component of an attribute ``x`` if ``condition(x)`` holds."""
    _wrappers.append((condition, wrapper))


def _wrapper_of(x: Any) -> Callable[[Any], Component] | None:
    for condition, wrapper in _wrappers:
        if condition(x):
            return wrapper
    return None


def wrap(x: Any) -> Any:
    """Return the Component of ``x``, or ``x`` itself if no wrapper takes it."""
    wrapper = _wrapper_of(x)
    return x if wrapper is None else wrapper(x)


def all_wrappable(items: Iterable[Any]) -> bool:
    """Return whether every item can become a Component."""
    return all(_wrapper_of(item) is not None for item in items)
