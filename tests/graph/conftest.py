"""A toy language for the tests of the graph layer: Ops whose values are texts, not arrays."""

import pytest

from opwise import Apply, Op, generic


class Toy(Op):
    """An Op whose value is the text of its call.

    views, destroys: index of the input that output 0 is a view of, or overwrites.
    """

    __props__ = ("name", "outs", "views", "destroys")

    def __init__(self, name, outs=1, views=None, destroys=None):
        self.name = name
        self.outs = outs
        self.views = views
        self.destroys = destroys
        if views is not None:
            self.view_map = {0: [views]}
        if destroys is not None:
            self.destroy_map = {0: [destroys]}

    def make_node(self, *inputs):
        return Apply(self, inputs, [generic() for _ in range(self.outs)])

    def perform(self, node, inputs, output_storage):
        for i, storage in enumerate(output_storage):
            storage[0] = f"{self.name}{i}({', '.join(map(str, inputs))})"

    def __str__(self):
        return self.name


@pytest.fixture
def toy():
    """The class of toy Ops."""
    return Toy


@pytest.fixture
def leaves():
    """A function from names to variables: ``x, y = leaves('xy')``."""
    return lambda names: [generic(name) for name in names]
