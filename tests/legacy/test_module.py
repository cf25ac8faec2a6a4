"""Modules: what attributes become, how state is shared, how instances are made, what is refused."""

import copy
import pickle

import numpy as np
import pytest

from opwise import (
    Component,
    ComponentDict,
    ComponentList,
    External,
    FancyModule,
    In,
    Member,
    Method,
    Module,
    Out,
    shared,
)
from opwise.compile import (
    ComponentDictInstance,
    ComponentListInstance,
    ModuleInstance,
    default_initialize,
    func_to_mod,
    name_join,
    name_split,
    register_wrapper,
    wrap,
)
from opwise.errors import AllocationError
from opwise.tensor import TensorType, constant
from opwise.tensor.elemwise import elemwise

pytestmark = pytest.mark.null

add, mul = map(elemwise, ("add", "mul"))
scalar, vector = TensorType("float64", ()), TensorType("float64", (False,))


class Accumulator(Module):
    """Adds what it is given to its state."""

    def __init__(self):
        super().__init__()
        self.inc = scalar()
        self.state = scalar()
        self.new = add(self.state, self.inc)
        self.k = 3
        self.add = Method(self.inc, self.new, updates={self.state: self.new})
        self.get = Method([], self.state)
        self.both = Method([self.inc], [self.new, self.state])
        self.quiet = Method([self.inc], None, updates=[(self.state, self.inc)])

    def _instance_initialize(self, obj, start=1.0, **kwargs):
        obj.state = start
        default_initialize(obj, **kwargs)

    def _instance_report(self, obj, x):
        return self.k, x, float(obj.state)


class Nest(Module):
    """Modules, a list and a dict inside a Module."""

    def __init__(self):
        super().__init__()
        self.a1, self.a2 = Accumulator(), Accumulator()
        self.lst = [scalar(), scalar()]
        self.d = {"p": scalar()}
        self.total = Method([], add(self.a1.state, add(self.a2.state, self.lst[0])))


class Holder(Module):
    """Whatever attributes the test gives it."""


def make(module, **kwargs):
    return module.make(mode="FAST_COMPILE", **kwargs)


@pytest.fixture
def acc():
    return make(Accumulator(), start=5.0)


@pytest.fixture
def y():
    return scalar("y")


# --- state and functions ------------------------------------------------------------------------


def test_methods_share_the_state(acc):
    assert acc.add(2.0) == 7.0
    assert acc.state == 7.0 and acc["state"] == 7.0
    assert [float(v) for v in acc.both(1.0)] == [8.0, 7.0]
    assert acc.get() == 7.0
    acc.state = 100
    assert acc.get() == 100.0 and acc.state.dtype == "float64"


def test_a_method_without_outputs_returns_none(acc):
    assert acc.quiet(4.0) is None
    assert acc.state == 4.0


def test_instances_are_independent():
    module = Accumulator()
    one, two = make(module, start=1.0), make(module, start=2.0)
    one.add(10.0)
    assert (one.state, two.state) == (11.0, 2.0)


def test_expressions_and_plain_attributes(acc):
    assert acc.k == 3
    assert acc.inc is None
    with pytest.raises(AttributeError, match="ModuleInstance'> has no new attribute"):
        acc.new  # noqa: B018
    with pytest.raises(KeyError, match="nope"):
        acc["nope"]


def test_methods_of_the_class_get_the_instance(acc):
    assert acc.report(7) == (3, 7, 5.0)


def test_an_array_that_a_member_was_set_to_is_not_overwritten():
    module = Holder()
    module.w = vector()
    module.grow = Method([], None, updates={module.w: add(module.w, module.w)})
    start = np.ones(2)
    instance = module.make(mode="FAST_RUN", w=start)
    instance.grow()
    assert instance.w.tolist() == [2, 2] and start.tolist() == [1, 1]


def test_values_are_converted_or_refused(acc):
    acc.state = [[1.0]][0][0]
    with pytest.raises(ValueError, match="could not convert string to float") as caught:
        acc.state = "abc"
    assert 'Container name "state": give it a value of' in str(caught.value)
    assert acc.state == 1.0


def test_a_member_without_a_value():
    instance = Accumulator().make_no_init(mode="FAST_COMPILE")
    assert instance.state is None
    with pytest.raises(ValueError, match="expected an ndarray, not None"):
        instance.get()


def test_a_failed_call_leaves_the_state():
    module = Holder()
    module.w = vector()
    v = vector("v")
    module.step = Method([v], None, updates={module.w: add(module.w, v)})
    instance = make(module, w=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"(?i)shape|mismatch"):
        instance.step([1.0, 2.0, 3.0])
    assert instance.w.tolist() == [1, 2]


def test_constants_cannot_be_set():
    module = Holder()
    module.c = constant(5.0)
    module.f = Method([], add(module.c, 1.0))
    instance = make(module)
    assert (instance.c, instance.f()) == (5.0, 6.0)
    with pytest.raises(Exception, match="Cannot set readonly storage: c"):
        instance.c = 7.0
    assert module.c.name is None


def test_shared_variables_bring_their_storage():
    module = Holder()
    module.s = shared(2.0, name="s")
    other = shared(10.0)
    module.f = Method([], add(module.s, other), updates={module.s: add(module.s, 1.0)})
    one, two = make(module), make(module)
    assert (one.f(), two.f()) == (12.0, 13.0)
    assert one.s == 4.0 and module.s.get_value() == 4.0


def test_inputs_with_defaults_and_borrowed_outputs(y):
    module = Holder()
    module.y = y
    module.f = Method([In(y, value=9.0)], add(y, 1.0))
    module.g = Method([y], Out(y, borrow=True))
    instance = make(module, y=1.0)
    assert (instance.f(), instance.f(1.0), instance.g(4.0)) == (10.0, 2.0, 4.0)
    assert instance.y == 1.0


# --- what is refused ----------------------------------------------------------------------------


def test_variables_without_storage(y):
    module = Holder()
    module.f = Method([], add(y, 1.0))
    with pytest.raises(AllocationError, match=r"associated to y used by f = Method\(\[\] -> Elem"):
        make(module)


def test_updates_of_arguments_and_constants(y):
    module = Holder()
    module.y = y
    module.f = Method([y], y, updates={y: add(y, 1.0)})
    with pytest.raises(ValueError, match="Variable listed in both inputs and updates"):
        make(module)
    module = Holder()
    module.c = constant(1.0)
    module.f = Method([], [], updates={module.c: add(module.c, 1.0)})
    with pytest.raises(TypeError, match="only members can be updated"):
        make(module)


def test_updates_of_another_type(y):
    module = Holder()
    module.y = y
    module.f = Method([], [], updates={y: vector("v")})
    with pytest.raises(TypeError, match="shared_var=y"):
        make(module)


def test_methods_are_called_on_instances():
    with pytest.raises(TypeError, match=r"'Method' object is not callable .* compile your module"):
        Accumulator().add(1.0)


def test_an_unknown_mode():
    with pytest.raises(Exception, match="No predefined mode exist for string: zork"):
        Accumulator().make(mode="zork")


# --- making ---------------------------------------------------------------------------------------


def test_names_are_given_when_an_instance_is_made():
    module = Nest()
    assert module.a1.state.name is None
    make(module)
    assert module.a1.state.name == "state" and module.a1.new.name == "new"
    assert (module.lst[0].name, module.d["p"].name) == ("lst.0", "d.p")
    named = Holder()
    named.attribute = scalar("mine")
    make(named)
    assert named.attribute.name == "mine"


def test_default_initialize_takes_a_dict_and_keywords():
    module = Holder()
    module.p, module.q = scalar(), scalar()
    instance = make(module, init={"p": 1.0}, q=2.0, more="kept")
    assert (instance.p, instance.q, instance.more) == (1.0, 2.0, "kept")
    assert module.make({"p": 3.0}).p == 3.0


def test_the_mode_of_a_method_wins(y):
    module = Holder()
    module.y = y
    module.f = Method([], add(y, 1.0), mode="FAST_COMPILE")
    module.g = Method([], add(y, 1.0))
    instance = module.make(mode="FAST_RUN")
    assert instance.f.maker.mode is make(module).g.maker.mode
    assert instance.f.maker.mode is not instance.g.maker.mode


def test_functions_are_named_after_their_attributes(acc):
    assert (acc.add.name, acc.get.name) == ("add", "get")


def test_submodules():
    instance = make(Nest())
    assert (instance.a1.state, instance.a2.state) == (None, None)
    instance.a1.initialize(start=3.0)
    instance.a2.state = 4.0
    instance.lst[0] = 10.0
    assert instance.total() == 17.0
    assert str(instance.lst) == "[<10.0>, <None>]" and len(instance.lst) == 2
    assert instance.d["p"] is None
    instance.a1.add(1.0)
    assert instance.total() == 18.0


def test_lists_dicts_and_submodules_are_initialized_by_assignment():
    instance = make(Nest(), lst=[1.0, 2.0], d={"p": 3.0}, a1=7.0)
    assert [float(v) for v in instance.lst] == [1.0, 2.0]
    assert (instance.d["p"], instance.a1.state) == (3.0, 7.0)
    assert isinstance(instance.lst, ComponentListInstance)
    assert isinstance(instance.d, ComponentDictInstance)


def test_one_variable_in_two_modules_is_one_state():
    x = scalar("x")

    def module():
        holder = Holder()
        holder.x = x
        holder.get = Method([], mul(x, 2.0))
        return holder

    two = Holder()
    two.m1, two.m2 = module(), module()
    instance = make(two)
    instance.m1.x = 3.0
    assert (instance.m1.get(), instance.m2.get(), instance.m2.x) == (6.0, 6.0, 3.0)


def test_a_method_held_twice_is_compiled_once(y):
    module = Holder()
    module.y = y
    module.f = Method([], add(y, 1.0))
    module.all = [module.f]
    instance = make(module, y=1.0)
    assert instance.f is instance.all[0]


def test_a_module_may_hold_its_parent(y):
    parent, child = Holder(), Holder()
    parent.y, parent.child, child.parent = y, child, parent
    child.get = Method([], add(y, 1.0))
    instance = make(parent, y=1.0)
    assert instance.child.parent is instance
    assert instance.child.get() == 2.0


def test_a_method_alone(y):
    assert Method([y], add(y, 1.0)).make(mode="FAST_COMPILE")(2.0) == 3.0


def test_an_instance_type_of_ones_own():
    class Own(ModuleInstance):
        def initialize(self, y):
            self.y = y

        def double(self):
            return 2 * float(self.y)

    class WithType(Module):
        InstanceType = Own

        def _instance_double(self, obj):
            raise AssertionError("the method of the instance's class comes first")

    module = WithType()
    module.y = scalar()
    with pytest.warns(UserWarning, match="not overriding already-defined method double"):
        instance = module.make(4.0)
    assert instance.double() == 8.0

    module.InstanceType = ComponentDictInstance
    with pytest.raises(TypeError, match="should inherit from ModuleInstance"):
        module.make()


@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda i: pickle.loads(pickle.dumps(i, -1))],
    ids=["deep", "pickle"],
)
def test_copies_of_instances_have_state_of_their_own(acc, duplicate):
    twin = duplicate(acc)
    assert type(twin) is ModuleInstance
    assert twin.add(1.0) == 6.0
    assert (twin.state, twin.get(), twin.report(0)[2]) == (6.0, 6.0, 6.0)
    assert (acc.state, acc.get()) == (5.0, 5.0)
    twin.state = 50.0
    assert twin.get() == 50.0


# --- components ---------------------------------------------------------------------------------


def test_texts(acc, y):
    module = Accumulator()
    assert str(module) == "Accumulator(add, both, get, inc, k, new, quiet, state)"
    assert repr(module.add) == (
        "Method(<TensorType(float64, scalar)> -> Elemwise{add,no_inplace}.0; "
        "<TensorType(float64, scalar)> <= Elemwise{add,no_inplace}.0)"
    )
    assert str(Method([], y)) == "Method([] -> y)"
    assert str(acc) == "{inc: None\n k: 3\n state: 5.0}"
    assert str(Member(y)) == "Member(y)"
    assert str(ComponentDict(y=Member(y), _z=Member(y))) == "ComponentDict(y)"


def test_pretty():
    text = Accumulator().make_module_instance().pretty()
    assert "state:\n    Member :: TensorType(float64, scalar)" in text
    assert "new:\n    External :: TensorType(float64, scalar)\n    = Elemwise{add" in text
    assert "quiet:\n    inputs: inc\n    state <- inc" in text
    assert "k:" not in text


def test_component_list(y):
    with pytest.raises(TypeError, match="not a Component"):
        ComponentList(y)
    parts = ComponentList()
    parts.append(y)
    parts.extend([Member(y), mul(y, y)])
    assert str(parts) == "[Member(y), Member(y), Member(Elemwise{mul,no_inplace}.0)]"
    assert len(parts + [y]) == 4 and len([y] + parts) == 4 and len(parts + parts) == 6
    assert parts[0] is y and list(parts)[:2] == [y, y]
    parts[1] = scalar()
    assert parts[1] is not y
    with pytest.raises(TypeError, match="only contain Components"):
        parts.append(3)
    with pytest.raises(TypeError):
        parts + 3


def test_component_dict(y):
    parts = ComponentDict({"y": Member(y)})
    assert parts["y"] is y
    parts["e"] = External(mul(y, y))
    instance = parts.make(init={"y": 2.0})
    assert instance["y"] == 2.0 and str(instance) == "{y: 2.0}"
    with pytest.raises(TypeError, match="register_wrapper"):
        parts["n"] = 3
    with pytest.raises(TypeError, match="not a Component"):
        ComponentDict(y=y)


def test_flat_components():
    module = Nest()
    paths = ["/".join(map(str, path)) for path, _ in module.flat_components_map()]
    assert {"a1/state", "a2/add", "lst/1", "d/p", "total"} <= set(paths)
    assert len(list(module.flat_components(include_self=True))) == len(paths) + 5


def test_members_and_externals_that_are_assigned_are_unwrapped(y):
    module = Holder()
    with pytest.warns(UserWarning, match=r"Member object Member\(y\) .* deprecated.  Just use Var"):
        module.y = Member(y)
    with pytest.warns(UserWarning, match="External object"):
        module.l = [External(mul(y, y)), y]
    with pytest.warns(UserWarning, match="Member object"):
        module.d = {"y": Member(y)}
    assert module.y is y and module.l[1] is y and module.d == {"y": y}
    plain = [y]
    module.plain = plain
    assert module.plain is plain


def test_wrap_and_register_wrapper(y):
    assert isinstance(wrap(y), Member) and isinstance(wrap(mul(y, y)), External)
    assert isinstance(wrap([y, [y]]), ComponentList) and isinstance(wrap({"y": y}), ComponentDict)
    assert wrap([y, 3]) == [y, 3] and wrap(3) == 3

    class Celsius:
        def __init__(self, variable):
            self.variable = variable

    register_wrapper(lambda x: isinstance(x, Celsius), lambda x: Member(x.variable))
    module = Holder()
    module.t = Celsius(y)
    assert make(module, t=4.0).t == 4.0


def test_modules_take_components_as_arguments(y):
    instance = make(FancyModule(y=y), y=2.0)
    assert instance.y == 2.0


def test_func_to_mod():
    module = func_to_mod(lambda a=1: add(scalar("w"), a))(a=2)
    assert str(module.output) == "Elemwise{add,no_inplace}.0"
    several = func_to_mod(lambda: [scalar("p"), scalar("q")])()
    assert str(several.output1) == "q"


def test_names_join_and_split():
    assert name_join("a", "", "b") == "a.b"
    assert name_split("a.b.c") == ["a", "b", "c"]
    assert name_split("a.b.c", 1) == ["a", "b.c"]


def test_a_component_must_say_how_it_is_built():
    with pytest.raises(NotImplementedError, match="does not define allocate"):
        Component().make()
