"""Translations of what draws random numbers from numpy's Generator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.tensor.random import basic as pr
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.type_other import NoneTypeT

from opwise.frontends import Performance, Translator, Untranslated
from opwise.graph.apply import Apply
from opwise.graph.records import ByReference
from opwise.graph.variable import Var, Variable
from opwise.linkers import opwise_c
from opwise.pytensor.frontend import translates
from opwise.tensor.random.generator import GeneratorDraw

#: PyTensor's distributions that C may draw -> their names there, and parameters to try
_IN_C: dict[type, tuple[str, tuple[float, ...]]] = {
    pr.UniformRV: ("uniform", (-1.5, 2.75)),
    pr.TriangularRV: ("triangular", (-1.0, 0.5, 2.0)),
    pr.BetaRV: ("beta", (0.7, 2.5)),
    pr.NormalRV: ("normal", (0.3, 1.7)),
    pr.LogNormalRV: ("lognormal", (0.3, 0.7)),
    pr.GammaRV: ("gamma", (0.7, 1.3)),
    pr.ExponentialRV: ("exponential", (1.3,)),
    pr.WeibullRV: ("weibull", (1.3,)),
    pr.LogisticRV: ("logistic", (0.3, 1.7)),
    pr.LaplaceRV: ("laplace", (0.3, 1.7)),
    pr.VonMisesRV: ("vonmises", (0.3, 1.7)),
    pr.WaldRV: ("wald", (1.3, 0.7)),
    pr.HalfNormalRV: ("halfnormal", (0.3, 1.7)),
    pr.StudentTRV: ("t", (2.5, 0.3, 1.7)),
    pr.InvGammaRV: ("invgamma", (1.7, 0.3)),
    pr.GenGammaRV: ("gengamma", (0.7, 1.3, 1.7)),
    pr.ParetoRV: ("pareto", (2.5, 1.3)),
    pr.GumbelRV: ("gumbel", (0.3, 1.7)),
    pr.CauchyRV: ("cauchy", (0.3, 1.7)),
    pr.HalfCauchyRV: ("halfcauchy", (0.3, 1.7)),
    pr.TruncExponentialRV: ("truncexpon", (1.7, 0.3, 1.3)),
    pr.PoissonRV: ("poisson", (2.5,)),
    pr.GeometricRV: ("geometric", (0.3,)),
    pr.BinomialRV: ("binomial", (50, 0.7)),
    pr.BernoulliRV: ("bernoulli", (0.3,)),
    pr.NegBinomialRV: ("negative_binomial", (2.5, 0.3)),
    pr.HyperGeometricRV: ("hypergeometric", (15, 25, 12)),
}
#: {class: its distribution in C, None if that would not give PyTensor's numbers}
_tried: dict[type, str | None] = {}


def _distribution(op: Any) -> str | None:
    """Return the distribution in C that gives an Op's numbers; None if there is none.

    Whether it gives them with the releases of numpy and scipy that are installed is tried out.
    """
    cls = type(op)
    if cls not in _tried:
        _tried[cls] = None
        name, parameters = _IN_C.get(cls, ("", ()))
        if opwise_c.distributions().get(name) == len(parameters):
            own, reference = (np.random.Generator(np.random.PCG64(5)) for _ in range(2))
            found = np.empty(20)
            opwise_c.draw_numbers(name, own, parameters, found)
            arrays = [np.asarray(p, "int64" if type(p) is int else "float64") for p in parameters]
            expected = op.rng_fn(reference, *arrays, (20,))
            alike = np.allclose(found, expected, rtol=1e-12, atol=1e-14)
            if alike and own.bit_generator.state == reference.bit_generator.state:
                _tried[cls] = name
    return _tried[cls]


class Drawn(ByReference, GeneratorDraw):
    """A draw of a RandomVariable of PyTensor.

    op: of PyTensor. types: of the Generator and of the numbers. sized: whether the shape is given.
    distribution: as of every GeneratorDraw.
    """

    def __init__(
        self, op: Any, types: Sequence[Any], sized: bool, distribution: str | None
    ) -> None:
        self.op, self.types, self.sized = op, tuple(types), sized
        self.distribution = distribution
        self.why_python = "" if distribution else _reason(op)

    def make_node(self, *inputs: Any) -> Apply:
        return Apply(self, list(inputs), [type_.make_variable() for type_ in self.types])

    def numbers(self, generator: np.random.Generator, given: Sequence[Any]) -> np.ndarray:
        size = tuple(map(int, given[0])) if self.sized else None
        drawn = self.op.rng_fn(generator, *given[self.sized :], size)
        return np.asarray(drawn, dtype=self.types[1].dtype)

    def record_text(self) -> str:
        return f"{self} {self._identity()[1:]}"

    def _identity(self) -> tuple[Any, ...]:
        return self.op, self.types, self.sized, self.distribution, self.inplace

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((Drawn, self.op, self.types))

    def __str__(self) -> str:
        return f"PyTensor:{self.op}"


def _reason(op: Any) -> str:
    return f"numbers of the distribution {op.name} are drawn by numpy's Generator"


@translates(RandomVariable, any_type=True)
def _draw(t: Translator, node: Any, generator: Variable, size: Variable, *given: Var) -> list[Var]:
    op = node.op
    if type(op).perform is not RandomVariable.perform:
        raise Untranslated(f"{type(op).__name__} has a perform of its own")
    sized = not isinstance(node.inputs[1].type, NoneTypeT)
    drawn = Drawn(
        op, [t.frontend.type_of(out.type) for out in node.outputs], sized, _distribution(op)
    )
    if drawn.distribution is None:
        t.performed.append(Performance(str(drawn), drawn.why_python))
    made: list[Var] = drawn.make_node(generator, *[size][:sized], *given).outputs
    return made
