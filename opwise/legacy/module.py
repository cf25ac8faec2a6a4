"""Modules: classes whose attributes are state and whose methods are functions that share it.

A Module is a declaration. ``make`` allocates a storage for each variable without an owner in it or
in its submodules, compiles every Method, and returns an instance with the values and functions.
Theano had all of ``opwise.legacy`` in one module; its names are imported here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from opwise.errors import AllocationError, similar  # noqa: F401
from opwise.graph.variable import Variable
from opwise.legacy.components import (  # noqa: F401  (legacy programs import them from here)
    Component,
    External,
    Member,
    Memo,
    Method,
    VariableComponent,
    all_wrappable,
    name_join,
    name_split,
    register_wrapper,
    wrap,
)
from opwise.legacy.structures import (  # noqa: F401
    ComponentDict,
    ComponentDictInstance,
    ComponentDictInstanceNoInit,
    ComponentList,
    ComponentListInstance,
    Composite,
    CompositeComponent,
    CompositeInstance,
    default_initialize,
)

register_wrapper(lambda x: isinstance(x, Component), lambda x: x)
register_wrapper(lambda x: isinstance(x, Variable) and x.owner is None, Member)
register_wrapper(lambda x: isinstance(x, Variable) and x.owner is not None, External)
register_wrapper(
    lambda x: isinstance(x, list | tuple) and all_wrappable(x),
    lambda x: ComponentList([wrap(item) for item in x]),
)
register_wrapper(
    lambda x: isinstance(x, dict) and all_wrappable(x.values()),
    lambda x: ComponentDict({key: wrap(item) for key, item in x.items()}),
)


class Curry:
    """Calls method ``name`` of ``obj`` with ``arg`` as the first argument; can be pickled."""

    def __init__(self, obj: Any, name: str, arg: Any) -> None:
        self.obj = obj
        self.name = name
        self.arg = arg

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.obj, self.name)(self.arg, *args, **kwargs)


class ModuleInstance(ComponentDictInstanceNoInit):
    """What a Module builds: its items are attributes too."""

    def __getattr__(self, attr: str) -> Any:
        # called only if normal lookup fails, also while a copy has no items yet
        items = self.__dict__.get("__items__", {})
        if attr in items:
            return self[attr]
        raise AttributeError(
            f"{type(self)} has no {attr} attribute. It has {', '.join(map(str, items)) or 'none'}."
            f"{similar(attr, map(str, items))}"
        )

    def __setattr__(self, attr: str, value: Any) -> None:
        self[attr] = value


class Module(ComponentDict):
    """Base class of declarations of state and of functions over it.

    A subclass calls ``super().__init__()`` and assigns attributes. ``make`` turns each attribute
    into a part of the instance:

    - a variable without an owner into state;
    - a variable with an owner into nothing: it is a name for an expression;
    - a Method into a function, a Module into an instance of its own;
    - a list or dict of these into a list or dict of their parts;
    - any other object is the same object in the instance.

    A variable without a name gets the name of its attribute. A method ``_instance_xxx(self, obj,
    ...)`` becomes ``obj.xxx(...)``; ``make`` passes its arguments to ``_instance_initialize``.
    """

    InstanceType = ModuleInstance

    def __init__(self, components: Mapping[str, Any] | None = None, **kwcomponents: Any) -> None:
        for key, value in {**(components or {}), **kwcomponents}.items():
            setattr(self, key, value)

    def __setattr__(self, attr: str, value: Any) -> None:
        object.__setattr__(self, attr, _without_deprecated(value))

    @property
    def local_attr(self) -> dict[str, Any]:
        """The attributes that were assigned, by name."""
        return {key: value for key, value in vars(self).items() if key != "_name"}

    def components_map(self) -> list[tuple[Any, Component]]:
        pairs = []
        for key, value in self.local_attr.items():
            component = wrap(value)
            if isinstance(component, Component):
                component.name = key
                pairs.append((key, component))
        return pairs

    def get(self, item: Any) -> Component:
        components: dict[str, Component] = dict(self.components_map())
        return components[item]

    def set(self, item: Any, value: Any) -> None:
        setattr(self, item, value)

    def set_name(self, name: str) -> None:
        # components are named by the attributes of the Module, without the name of the Module
        Component.set_name(self, name)

    def make_module_instance(self, *args: Any, **kwargs: Any) -> Module:
        """Name variables after their attributes, as ``make`` does, and return the Module."""
        self.components_map()
        return self

    def build(self, mode: Any, memo: Memo) -> Any:
        if self in memo:
            return memo[self]
        instance = super().build(mode, memo)
        if not isinstance(instance, ModuleInstance):
            raise TypeError(
                f"The InstanceType of a Module should inherit from ModuleInstance: {self} has "
                f"{type(instance)}"
            )
        for key, value in self.local_attr.items():
            if not isinstance(wrap(value), Component):
                instance.__items__[key] = value
        self._add_methods(instance)
        return instance

    def _add_methods(self, instance: ModuleInstance) -> None:
        for method in dir(self):
            if not method.startswith("_instance_"):
                continue
            name = method.removeprefix("_instance_")
            if not hasattr(instance, name):
                instance.__dict__[name] = Curry(self, method, instance)
            elif getattr(type(self), method, None) is not getattr(Module, method, None):
                warnings.warn(
                    f"not overriding already-defined method {name} of {self} with {method}",
                    stacklevel=2,
                )

    def _instance_initialize(
        self, obj: ModuleInstance, init: Mapping[str, Any] | None = None, **kwinit: Any
    ) -> None:
        """Set items of a new instance; subclasses may take other arguments."""
        default_initialize(obj, init, **kwinit)

    def __str__(self) -> str:
        keys = sorted(self.local_attr)
        return f"{type(self).__name__}({', '.join(k for k in keys if not k.startswith('_'))})"


FancyModule = Module
FancyModuleInstance = ModuleInstance


def _without_deprecated(value: Any) -> Any:
    """Return an assigned value with Members and Externals replaced by their variables."""
    if isinstance(value, VariableComponent):
        kind = type(value).__name__
        warnings.warn(
            f"assignment of {kind} object {value} (either directly or indirectly) to Module is "
            "deprecated.  Just use Variable.",
            stacklevel=3,
        )
        return value.r
    if type(value) in (list, tuple):
        replaced = [_without_deprecated(item) for item in value]
        changed = any(new is not old for new, old in zip(replaced, value, strict=True))
        return type(value)(replaced) if changed else value
    if type(value) is dict:
        items = {key: _without_deprecated(item) for key, item in value.items()}
        return items if any(items[key] is not value[key] for key in value) else value
    return value


def func_to_mod(f: Callable[..., Any]) -> Callable[..., Module]:
    """Return a function that makes a Module whose ``output`` is what ``f(**kwargs)`` returns.

    The items of a list become ``output0``, ``output1``, ...
    """

    def make(**kwinit: Any) -> Module:
        module = Module()
        outputs = f(**kwinit)
        if isinstance(outputs, list):
            for i, output in enumerate(outputs):
                setattr(module, f"output{i}", output)
        else:
            module.output = outputs
        return module

    return make
