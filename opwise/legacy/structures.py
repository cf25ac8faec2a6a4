"""Components made of components, by position or name, and the instances that they build."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from opwise.graph.variable import Variable
from opwise.legacy.components import Component, Member, Memo, name_join, unwrapped, wrap
from opwise.linkers.storage import Container


class CompositeInstance:
    """What a CompositeComponent builds: items behind ``[]``; a Container reads as its value.

    Setting an item sets the value of a Container to a copy, calls ``initialize`` if the item has
    that method, and replaces the item otherwise.
    """

    component: CompositeComponent
    __items__: Any

    def __init__(self, component: CompositeComponent, __items__: Any) -> None:
        self.__dict__["component"] = component
        self.__dict__["__items__"] = __items__

    def __getitem__(self, item: Any) -> Any:
        found = self.__items__[item]
        return found.value if isinstance(found, Container) else found

    def __setitem__(self, item: Any, value: Any) -> None:
        found = self.__items__[item]
        if isinstance(found, Container):
            # functions may overwrite the value: the caller keeps an array of its own
            found.value = copy.deepcopy(value)
        elif hasattr(found, "initialize"):
            found.initialize(value)
        else:
            self.__items__[item] = value


class CompositeComponent(Component):
    """A component that holds others. Subclasses define ``components_map``, ``get`` and ``set``."""

    def components_map(self) -> list[tuple[Any, Component]]:
        """Return a list of (key, component) pairs."""
        raise NotImplementedError(f"{type(self).__name__} does not define components_map")

    def components(self) -> list[Component]:
        """Return a list of the components."""
        return [component for _, component in self.components_map()]

    def get(self, item: Any) -> Component:
        """Return the component at a key."""
        raise NotImplementedError(f"{type(self).__name__} does not define get")

    def set(self, item: Any, value: Any) -> None:
        """Set the component at a key."""
        raise NotImplementedError(f"{type(self).__name__} does not define set")

    def flat_components_map(
        self, include_self: bool = False, path: Iterable[Any] = ()
    ) -> Iterator[tuple[list[Any], Component]]:
        """Yield (list of keys, component) for every component below this one, depth first.

        include_self: yield this component, and those below that hold others, too.
        """
        path = list(path)
        if include_self:
            yield path, self
        for key, component in self.components_map():
            if isinstance(component, CompositeComponent):
                yield from component.flat_components_map(include_self, [*path, key])
            else:
                yield [*path, key], component

    def flat_components(self, include_self: bool = False) -> Iterator[Component]:
        """Yield the components of ``flat_components_map`` without their keys."""
        for _, component in self.flat_components_map(include_self):
            yield component

    def allocate(self, memo: Memo) -> None:
        # components may hold each other
        allocated = memo.setdefault(CompositeComponent, set())
        if self not in allocated:
            allocated.add(self)
            for component in self.components():
                component.allocate(memo)

    def set_name(self, name: str) -> None:
        super().set_name(name)
        for key, component in self.components_map():
            component.name = f"{name}.{key}"

    def __getitem__(self, item: Any) -> Any:
        return unwrapped(self.get(item))

    def __setitem__(self, item: Any, value: Any) -> None:
        self.set(item, value)

    def __iter__(self) -> Iterator[Any]:
        return iter([unwrapped(component) for component in self.components()])

    def pretty(self, **kwargs: Any) -> str:
        indent = "\n    "
        return "\n".join(
            f"{key}:{indent}" + component.pretty(**kwargs).replace("\n", indent)
            for key, component in self.components_map()
            if not str(key).startswith("_")
        )


#: Theano's name, which ``opwise.scalar.composite`` has too for another class
Composite = CompositeComponent


class ComponentListInstance(CompositeInstance):
    """What a ComponentList builds."""

    def __len__(self) -> int:
        return len(self.__items__)

    def initialize(self, init: Iterable[Any] = ()) -> None:
        """Set each item to the value at its position in ``init``."""
        for i, value in enumerate(init):
            self[i] = value

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.__items__))}]"


class ComponentList(CompositeComponent):
    """A sequence of components; raises TypeError for any other item."""

    def __init__(self, *components: Any) -> None:
        if len(components) == 1 and isinstance(components[0], list | tuple):
            (components,) = components
        for component in components:
            if not isinstance(component, Component):
                raise TypeError(
                    f"{component} is a {type(component)}, not a Component: write Member(variable)"
                )
        self._components: list[Component] = list(components)

    def components_map(self) -> list[tuple[Any, Component]]:
        return list(enumerate(self._components))

    def build(self, mode: Any, memo: Memo) -> Any:
        if self not in memo:
            memo[self] = ComponentListInstance(
                self, [component.build(mode, memo) for component in self._components]
            )
        return memo[self]

    def get(self, item: Any) -> Any:
        return self._components[item]

    def set(self, item: Any, value: Any) -> None:
        value = _component(value)
        value.name = name_join(self.name, str(item))
        self._components[item] = value

    def append(self, c: Any) -> None:
        """Append a component, or a variable as a Member."""
        self._components.append(_component(c))

    def extend(self, other: Iterable[Any]) -> None:
        """Append several components or variables."""
        for component in other:
            self.append(component)

    def __add__(self, other: Any) -> ComponentList:
        if isinstance(other, ComponentList):
            return ComponentList(self._components + other._components)
        if isinstance(other, list | tuple):
            return ComponentList(self._components + [wrap(x) for x in other])
        return NotImplemented

    def __radd__(self, other: Any) -> ComponentList:
        if isinstance(other, list | tuple):
            return ComponentList([wrap(x) for x in other] + self._components)
        return NotImplemented

    def __len__(self) -> int:
        return len(self._components)

    def __str__(self) -> str:
        return str(self._components)


def _component(value: Any) -> Component:
    if isinstance(value, Variable):
        return Member(value)
    if not isinstance(value, Component):
        raise TypeError(
            f"ComponentList may only contain Components, not {value} ({type(value)}). Append a "
            "Method, a Module, or a variable, which becomes a Member."
        )
    return value


def default_initialize(
    self: CompositeInstance, init: Mapping[Any, Any] | None = None, **kwinit: Any
) -> None:
    """Set items of an instance from a dict and from keywords."""
    for key, value in {**(init or {}), **kwinit}.items():
        self[key] = value


class ComponentDictInstanceNoInit(CompositeInstance):
    """Items by name; setting an unknown name adds an item."""

    def __setitem__(self, item: Any, value: Any) -> None:
        if item in self.__items__:
            super().__setitem__(item, value)
        else:
            self.__items__[item] = value

    def __str__(self) -> str:
        lines = []
        for key in sorted(self.__items__, key=str):
            value = self[key]
            if not str(key).startswith("_") and not callable(value):
                label = f"{key}: "
                lines.append(label + str(value).replace("\n", "\n" + " " * len(label)))
        return "{" + "\n".join(lines).replace("\n", "\n ") + "}"


class ComponentDictInstance(ComponentDictInstanceNoInit):
    """What a ComponentDict builds."""

    def initialize(self, init: Mapping[Any, Any] | None = None, **kwinit: Any) -> None:
        """Set items from a dict and from keywords."""
        default_initialize(self, init, **kwinit)


class ComponentDict(CompositeComponent):
    """Components by name; raises TypeError for any other item."""

    InstanceType: type[ComponentDictInstanceNoInit] = ComponentDictInstance

    def __init__(
        self, components: Mapping[str, Component] | None = None, **kwcomponents: Component
    ) -> None:
        self._components: dict[str, Component] = {}
        for key, component in {**(components or {}), **kwcomponents}.items():
            if not isinstance(component, Component):
                raise TypeError(f"{component} is a {type(component)}, not a Component")
            self._components[key] = component

    def components_map(self) -> list[tuple[Any, Component]]:
        return list(self._components.items())

    def build(self, mode: Any, memo: Memo) -> Any:
        if self not in memo:
            # in the memo before its components are built: they may hold it
            instance = memo[self] = self.InstanceType(self, {})
            for key, component in self.components_map():
                built = component.build(mode, memo)
                if built is not None:
                    instance.__items__[key] = built
        return memo[self]

    def get(self, item: Any) -> Component:
        return self._components[item]

    def set(self, item: Any, value: Any) -> None:
        if not isinstance(value, Component):
            raise TypeError(
                f"ComponentDict may only contain Components, not {value} ({type(value)}). "
                "(Hint: maybe it needs to be wrapped, see theano.compile.module.register_wrapper.)"
            )
        value.name = name_join(self.name, str(item))
        self._components[item] = value

    def __str__(self) -> str:
        keys = sorted(str(key) for key in self._components)
        return f"{type(self).__name__}({', '.join(k for k in keys if not k.startswith('_'))})"
