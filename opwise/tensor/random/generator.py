"""GeneratorDraw: draws from a ``numpy.random.Generator``."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.errors import ShapeError
from opwise.graph.apply import Apply
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.tensor.knownvalues import vector_entries
from opwise.tensor.shape import length


class GeneratorDraw(Op):
    """A draw: the Generator after it, and the numbers. Subclasses make the Apply.

    Its inputs are the Generator, the shape, an integer vector, if ``sized``, and the parameters.
    distribution: the name of the distribution (see linkers/csupport/distributions.h) if C may draw
    the numbers, otherwise None. inplace: advance the Generator itself, not a copy.
    """

    advances_state = saves_state = True
    distribution: str | None
    sized: bool
    inplace: bool = False

    def numbers(self, generator: np.random.Generator, given: Sequence[Any]) -> np.ndarray:
        """Return the numbers for the values of the inputs after the Generator, which advances."""
        raise NotImplementedError

    def overwriting(self) -> GeneratorDraw:
        """Return the Op that advances the Generator itself."""
        new = copy.copy(self)
        new.inplace = True
        new.destroy_map = {0: [0]}
        return new

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        if not self.sized or self.distribution is None:
            raise ShapeError(f"the parameters of {self} decide the shape")
        entries = vector_entries(node.inputs[1], node.outputs[1].type.ndim)
        return [None, tuple(map(length, entries))]

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        generator, *given = inputs
        if not self.inplace:
            generator = copied(generator)
        output_storage[0][0] = generator
        output_storage[1][0] = self.numbers(generator, given)

    def do_constant_folding(self, node: Apply) -> bool:
        return False


def copied(generator: np.random.Generator) -> np.random.Generator:
    """Return a Generator that will draw the same numbers; numpy's own copies take longer."""
    bits: Any = generator.bit_generator
    new = type(bits)(copy.deepcopy(bits.seed_seq))
    new.state = bits.state
    return np.random.Generator(new)
