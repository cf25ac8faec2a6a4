"""Modules: classes whose attributes are state and whose methods are functions that share it.

A Module is a declaration. ``make`` allocates one storage for each variable without an owner that it
or a submodule holds, compiles every Method, and returns an instance with the values and functions.
"""

from __future__ import annotations

import copy
import warnings

from opwise.compile import io
from opwise.compile.construct import construct, created, update_expression
from opwise.compile.maker import FunctionMaker, stats_for
from opwise.compile.shared import SharedVariable
from opwise.errors import AllocationError, similar
from opwise.graph import traversal
from opwise.graph.variable import Constant, Variable
from opwise.linkers.storage import Container
from opwise.modes.mode import get_mode


def name_join(*args):
    """Return the non-empty names joined by dots."""
    return ".".join(arg for arg in args if arg)


def name_split(sym, n=-1):
    """Return the parts of a dotted name; at most ``n`` splits are made unless n is -1."""
    return sym.split(".", n)


# --- parts --------------------------------------------------------------------------------------


class Component:
    """A part of a Module: it allocates storage and then builds its part of an instance.

    ``memo`` maps each variable that has a storage to its Container, and each component that was
    built to what it built, during one ``make``.
    """

    _name = ""

    @property
    def name(self):
        """The attribute name, list index or key under which the enclosing component holds this."""
        return self._name

    @name.setter
    def name(self, name):
        self.set_name(name)

    def set_name(self, name):
        """Take a name; components with parts name these too."""
        self.__dict__["_name"] = name

    def allocate(self, memo):
        """Add the containers of variables that have none yet to ``memo``."""
        raise NotImplementedError(f"{type(self).__name__} does not define allocate")

    def build(self, mode, memo):
        """Return the part of the instance that stands for this component; None: nothing does."""
        raise NotImplementedError(f"{type(self).__name__} does not define build")

    def make_no_init(self, mode=None):
        """Return an instance whose members have no values yet."""
        memo = {}
        self.allocate(memo)
        return self.build(mode, memo)

    def make(self, *args, mode=None, **kwargs):
        """Return an instance, after its ``initialize(*args, **kwargs)`` where it has one.

        mode: of all Methods that have none of their own; the default mode unless told.
        """
        instance = self.make_no_init(mode)
        initialize = getattr(instance, "initialize", None)
        if initialize is not None:
            initialize(*args, **kwargs)
        return instance

    def pretty(self, **kwargs):
        """Return a description of this component, of one or more lines."""
        return str(self)

    def __str__(self):
        return type(self).__name__

    def __repr__(self):
        return str(self)


class _VariableComponent(Component):
    """A component that stands for one variable, ``r``, and names it if it has no name."""

    def __init__(self, r):
        self.r = r

    def set_name(self, name):
        super().set_name(name)
        # a constant may be used in other graphs too
        if self.r.name is None and not isinstance(self.r, Constant):
            self.r.name = name

    def __str__(self):
        return f"{type(self).__name__}({self.r})"

    def pretty(self, **kwargs):
        return f"{type(self).__name__} :: {self.r.type}"


class External(_VariableComponent):
    """A variable that is computed from others: it has no storage and no place in the instance."""

    def allocate(self, memo):
        pass

    def build(self, mode, memo):
        return None

    def pretty(self, **kwargs):
        (text,) = traversal.as_string([], [self.r])
        return f"{super().pretty()}\n= {text}"


class Member(_VariableComponent):
    """A variable that is state: one storage in each instance, which all of its functions share.

    Constants keep their value and cannot be set; shared variables bring their own storage along, so
    that all instances share it.
    """

    def allocate(self, memo):
        if self.r not in memo:
            memo[self.r] = self._container()

    def _container(self):
        if isinstance(self.r, SharedVariable):
            return self.r.container
        constant = isinstance(self.r, Constant)
        return Container(
            self.r,
            storage=[self.r.data if constant else None],
            readonly=constant,
            name=self.r.name or self.name,
        )

    def build(self, mode, memo):
        return memo[self.r]


class Method(Component):
    """A function of the instance, over the state of its Module.

    inputs: a variable, an In, or a list of these. outputs: a variable, an Out, a list of these, or
    None, for a function that returns None. updates: dict or list of pairs, from members to their
    next values. mode: instead of the mode that the Module is made with.

    Members that the outputs and updates need are read from the instance. A member listed in inputs
    is an argument instead, without effect on the instance's.
    """

    def __init__(self, inputs, outputs, updates=None, mode=None):
        self.inputs = inputs
        self.outputs = outputs
        self.updates = dict(updates or {})
        self.mode = mode

    def allocate(self, memo):
        pass

    def build(self, mode, memo):
        """Compile the function.

        Raises AllocationError where it needs a variable that has no storage, ValueError where a
        member is both an input and updated, TypeError where a constant is updated.
        """
        if self not in memo:
            memo[self] = self._compile(mode if self.mode is None else self.mode, memo)
        return memo[self]

    def _compile(self, mode, memo):
        inputs = [io.as_input(_unwrapped(item)) for item in _as_list(self.inputs)]
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
            construction, get_mode(mode), name, stats_for(None, name),
            output_none=self.outputs is None,
        )  # fmt: skip
        return maker.create()

    def _outputs(self):
        if isinstance(self.outputs, list | tuple):
            return [_unwrapped(out) for out in self.outputs]
        return _unwrapped(self.outputs)

    def _updated(self, arguments, memo):
        """Return (the inputs that this method updates, its updates of shared variables)."""
        state, of_shared = [], {}
        for var, expression in self.updates.items():
            var, expression = _unwrapped(var), _unwrapped(expression)
            if not isinstance(var, Variable) or isinstance(var, Constant):
                raise TypeError(
                    f"{self.name}: only members can be updated, but not {var!r}. A variable that "
                    "is an attribute of the module becomes a member."
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

    def _state(self, var, memo, update=None):
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

    def pretty(self, **kwargs):
        updates = {_unwrapped(k): _unwrapped(v) for k, v in self.updates.items()}
        outputs = [_variable_of(out) for out in _as_list(self._outputs())]
        inputs = [io.as_input(_unwrapped(item)).variable for item in _as_list(self.inputs)]
        lines = [f"inputs: {', '.join(map(str, inputs))}"] if inputs else []
        texts = traversal.as_string(inputs, [*outputs, *updates.values()])
        lines += texts[: len(outputs)]
        lines += [f"{k} <- {v}" for k, v in zip(updates, texts[len(outputs) :], strict=True)]
        return "\n".join(lines)

    def __str__(self):
        updates = ", ".join(f"{var} <= {new}" for var, new in self.updates.items())
        return f"Method({self.inputs} -> {self.outputs}{'; ' if updates else ''}{updates})"

    def __call__(self, *args, **kwargs):
        raise TypeError(
            "'Method' object is not callable  (Hint: compile your module first.  "
            "See Component.make())"
        )


def _as_list(items):
    if items is None:
        return []
    return list(items) if isinstance(items, list | tuple) else [items]


def _variable_of(out):
    return out.variable if isinstance(out, io.SymbolicOutput) else out


def _unwrapped(item):
    """Return the variable that a component stands for; other things as they are."""
    return item.r if isinstance(item, _VariableComponent) else item


# --- structures ---------------------------------------------------------------------------------


class CompositeInstance:
    """What a Composite builds: items behind ``[]``, where a Container reads as its value.

    Setting an item sets the value of a Container, to a copy of what is given, or calls
    ``initialize`` of an item that has it; other items are replaced.
    """

    def __init__(self, component, __items__):
        self.__dict__["component"] = component
        self.__dict__["__items__"] = __items__

    def __getitem__(self, item):
        found = self.__items__[item]
        return found.value if isinstance(found, Container) else found

    def __setitem__(self, item, value):
        found = self.__items__[item]
        if isinstance(found, Container):
            # functions may overwrite it, the caller's array is not theirs
            found.value = copy.deepcopy(value)
        elif hasattr(found, "initialize"):
            found.initialize(value)
        else:
            self.__items__[item] = value


class Composite(Component):
    """A component that holds others. Subclasses define ``components_map``, ``get`` and ``set``."""

    def components_map(self):
        """Return a list of (key, component) pairs."""
        raise NotImplementedError(f"{type(self).__name__} does not define components_map")

    def components(self):
        """Return a list of the components."""
        return [component for _, component in self.components_map()]

    def get(self, item):
        """Return the component of a key."""
        raise NotImplementedError(f"{type(self).__name__} does not define get")

    def set(self, item, value):
        """Replace the component of a key, or add one."""
        raise NotImplementedError(f"{type(self).__name__} does not define set")

    def flat_components_map(self, include_self=False, path=()):
        """Yield (list of keys, component) for every component below this one, depth first.

        include_self: also for this one and those that hold others.
        """
        path = list(path)
        if include_self:
            yield path, self
        for key, component in self.components_map():
            if isinstance(component, Composite):
                yield from component.flat_components_map(include_self, [*path, key])
            else:
                yield [*path, key], component

    def flat_components(self, include_self=False):
        """Yield the components of ``flat_components_map`` without their keys."""
        for _, component in self.flat_components_map(include_self):
            yield component

    def allocate(self, memo):
        # a component may hold the one that holds it
        asked = memo.setdefault(Composite, set())
        if self not in asked:
            asked.add(self)
            for component in self.components():
                component.allocate(memo)

    def set_name(self, name):
        super().set_name(name)
        for key, component in self.components_map():
            component.name = f"{name}.{key}"

    def __getitem__(self, item):
        return _unwrapped(self.get(item))

    def __setitem__(self, item, value):
        self.set(item, value)

    def __iter__(self):
        return iter([_unwrapped(component) for component in self.components()])

    def pretty(self, **kwargs):
        indent = "\n    "
        return "\n".join(
            f"{key}:{indent}" + component.pretty(**kwargs).replace("\n", indent)
            for key, component in self.components_map()
            if not str(key).startswith("_")
        )


class ComponentListInstance(CompositeInstance):
    """What a ComponentList builds."""

    def __len__(self):
        return len(self.__items__)

    def initialize(self, init=()):
        """Set each item to the value at its position in ``init``."""
        for i, value in enumerate(init):
            self[i] = value

    def __str__(self):
        return f"[{', '.join(map(str, self.__items__))}]"


class ComponentList(Composite):
    """A sequence of components; raises TypeError for anything else."""

    def __init__(self, *components):
        if len(components) == 1 and isinstance(components[0], list | tuple):
            (components,) = components
        for component in components:
            if not isinstance(component, Component):
                raise TypeError(
                    f"{component} is a {type(component)}, not a Component: Member(variable) makes "
                    "one"
                )
        self._components = list(components)

    def components_map(self):
        return list(enumerate(self._components))

    def build(self, mode, memo):
        if self not in memo:
            memo[self] = ComponentListInstance(
                self, [component.build(mode, memo) for component in self._components]
            )
        return memo[self]

    def get(self, item):
        return self._components[item]

    def set(self, item, value):
        value = _component(value)
        value.name = name_join(self.name, str(item))
        self._components[item] = value

    def append(self, c):
        """Add a component, or a variable as a Member, at the end."""
        self._components.append(_component(c))

    def extend(self, other):
        """Append several."""
        for component in other:
            self.append(component)

    def __add__(self, other):
        if isinstance(other, ComponentList):
            return ComponentList(self._components + other._components)
        if isinstance(other, list | tuple):
            return ComponentList(self._components + [wrap(x) for x in other])
        return NotImplemented

    def __radd__(self, other):
        if isinstance(other, list | tuple):
            return ComponentList([wrap(x) for x in other] + self._components)
        return NotImplemented

    def __len__(self):
        return len(self._components)

    def __str__(self):
        return str(self._components)


def _component(value):
    if isinstance(value, Variable):
        return Member(value)
    if not isinstance(value, Component):
        raise TypeError(
            f"ComponentList may only contain Components, not {value} ({type(value)}). Append a "
            "variable, which becomes a Member, a Method or a Module."
        )
    return value


def default_initialize(self, init=None, **kwinit):
    """Set items of an instance from a dict and from keywords."""
    for key, value in {**(init or {}), **kwinit}.items():
        self[key] = value


class ComponentDictInstanceNoInit(CompositeInstance):
    """Items by name, to which others may be added."""

    def __setitem__(self, item, value):
        if item in self.__items__:
            super().__setitem__(item, value)
        else:
            self.__items__[item] = value

    def __str__(self):
        lines = []
        for key in sorted(self.__items__, key=str):
            value = self[key]
            if not str(key).startswith("_") and not callable(value):
                label = f"{key}: "
                lines.append(label + str(value).replace("\n", "\n" + " " * len(label)))
        return "{" + "\n".join(lines).replace("\n", "\n ") + "}"


class ComponentDictInstance(ComponentDictInstanceNoInit):
    """What a ComponentDict builds."""

    def initialize(self, init=None, **kwinit):
        """Set items from a dict and from keywords."""
        default_initialize(self, init, **kwinit)


class ComponentDict(Composite):
    """Components by name; raises TypeError for anything else."""

    InstanceType = ComponentDictInstance

    def __init__(self, components=None, **kwcomponents):
        self._components = {}
        for key, component in {**(components or {}), **kwcomponents}.items():
            if not isinstance(component, Component):
                raise TypeError(f"{component} is a {type(component)}, not a Component")
            self._components[key] = component

    def components_map(self):
        return list(self._components.items())

    def build(self, mode, memo):
        if self not in memo:
            # before its parts: they may hold their parent
            instance = memo[self] = self.InstanceType(self, {})
            for key, component in self.components_map():
                built = component.build(mode, memo)
                if built is not None:
                    instance.__items__[key] = built
        return memo[self]

    def get(self, item):
        return self._components[item]

    def set(self, item, value):
        if not isinstance(value, Component):
            raise TypeError(
                f"ComponentDict may only contain Components, not {value} ({type(value)}). "
                "(Hint: maybe it needs to be wrapped, see theano.compile.module.register_wrapper.)"
            )
        value.name = name_join(self.name, str(item))
        self._components[item] = value

    def __str__(self):
        keys = sorted(str(key) for key in self._components)
        return f"{type(self).__name__}({', '.join(k for k in keys if not k.startswith('_'))})"


# --- what an attribute becomes ------------------------------------------------------------------


_wrappers = []


def register_wrapper(condition, wrapper):
    """Let ``wrapper(x)`` make a Component of attributes ``x`` for which ``condition(x)`` holds."""
    _wrappers.append((condition, wrapper))


def _wrapper_of(x):
    for condition, wrapper in _wrappers:
        if condition(x):
            return wrapper
    return None


def wrap(x):
    """Return ``x`` as a Component, or ``x`` itself where no wrapper knows it."""
    wrapper = _wrapper_of(x)
    return x if wrapper is None else wrapper(x)


def _all_wrappable(items):
    return all(_wrapper_of(item) is not None for item in items)


register_wrapper(lambda x: isinstance(x, Component), lambda x: x)
register_wrapper(lambda x: isinstance(x, Variable) and x.owner is None, Member)
register_wrapper(lambda x: isinstance(x, Variable) and x.owner is not None, External)
register_wrapper(
    lambda x: isinstance(x, list | tuple) and _all_wrappable(x),
    lambda x: ComponentList([wrap(item) for item in x]),
)
register_wrapper(
    lambda x: isinstance(x, dict) and _all_wrappable(x.values()),
    lambda x: ComponentDict({key: wrap(item) for key, item in x.items()}),
)


# --- modules ------------------------------------------------------------------------------------


class Curry:
    """Calls method ``name`` of ``obj`` with ``arg`` before the other arguments; can be pickled."""

    def __init__(self, obj, name, arg):
        self.obj = obj
        self.name = name
        self.arg = arg

    def __call__(self, *args, **kwargs):
        return getattr(self.obj, self.name)(self.arg, *args, **kwargs)


class ModuleInstance(ComponentDictInstanceNoInit):
    """What a Module builds: its items are attributes too."""

    def __getattr__(self, attr):
        # reached only where normal lookup fails, also while a copy has no items yet
        items = self.__dict__.get("__items__", {})
        if attr in items:
            return self[attr]
        raise AttributeError(
            f"{type(self)} has no {attr} attribute. It has {', '.join(map(str, items)) or 'none'}."
            f"{similar(attr, map(str, items))}"
        )

    def __setattr__(self, attr, value):
        self[attr] = value


class Module(ComponentDict):
    """Base class of declarations of state and of functions over it.

    A subclass calls ``super().__init__()`` and assigns attributes. When an instance is made, a
    variable without an owner becomes state, one with an owner is only a name for an expression, a
    Method a function, a Module an instance of its own; lists and dicts of these are taken apart,
    and anything else is handed to the instance as it is. Variables without a name get that of their
    attribute.

    A method ``_instance_xxx(self, obj, ...)`` becomes ``obj.xxx(...)``;
    ``_instance_initialize`` is what ``make`` calls with its arguments.
    """

    InstanceType = ModuleInstance

    def __init__(self, components=None, **kwcomponents):
        for key, value in {**(components or {}), **kwcomponents}.items():
            setattr(self, key, value)

    def __setattr__(self, attr, value):
        object.__setattr__(self, attr, _without_deprecated(value))

    @property
    def local_attr(self):
        """The attributes that were assigned, by name."""
        return {key: value for key, value in vars(self).items() if key != "_name"}

    def components_map(self):
        pairs = []
        for key, value in self.local_attr.items():
            component = wrap(value)
            if isinstance(component, Component):
                component.name = key
                pairs.append((key, component))
        return pairs

    def get(self, item):
        return dict(self.components_map())[item]

    def set(self, item, value):
        setattr(self, item, value)

    def set_name(self, name):
        # what a Module holds is named by its attributes, not by where the Module is
        Component.set_name(self, name)

    def make_module_instance(self, *args, **kwargs):
        """Name what the attributes hold, as making an instance does, and return the Module."""
        self.components_map()
        return self

    def build(self, mode, memo):
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

    def _add_methods(self, instance):
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

    def _instance_initialize(self, obj, init=None, **kwinit):
        """Set items of a new instance; Modules override this to take arguments of their own."""
        default_initialize(obj, init, **kwinit)

    def __str__(self):
        keys = sorted(self.local_attr)
        return f"{type(self).__name__}({', '.join(k for k in keys if not k.startswith('_'))})"


FancyModule = Module
FancyModuleInstance = ModuleInstance


def _without_deprecated(value):
    """Return an assigned value with the variables of Members and Externals in their place."""
    if isinstance(value, _VariableComponent):
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
        replaced = {key: _without_deprecated(item) for key, item in value.items()}
        return replaced if any(replaced[key] is not value[key] for key in value) else value
    return value


def func_to_mod(f):
    """Return a function that makes a Module with what ``f(**kwargs)`` returns as ``output``.

    A list makes ``output0``, ``output1``, ...
    """

    def make(**kwinit):
        module = Module()
        outputs = f(**kwinit)
        if isinstance(outputs, list):
            for i, output in enumerate(outputs):
                setattr(module, f"output{i}", output)
        else:
            module.output = outputs
        return module

    return make
