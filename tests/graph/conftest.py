"""A toy language for the tests of the graph layer: Ops on texts, which know nothing of arrays."""

import pytest

from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.graph.type import generic


class Toy(Op):
    """An Op that writes what it was called with; views and destroys what it is told."""

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
        for i, cell in enumerate(output_storage):
            cell[0] = f"{self.name}{i}({', '.join(map(str, inputs))})"

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
