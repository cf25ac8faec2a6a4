"""Layout: which variables of a step, and of its loop, play which part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


def as_list(given: Any) -> list[Any]:
    """Return an argument that may be one thing, a list, a tuple or None as a list."""
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


@dataclass
class Parts(Generic[T]):
    """What a step reads or returns, or what its loop does, by the part that it plays."""

    #: one for each sequence: the whole of it outside, a row inside
    sequences: list[T] = field(default_factory=list)
    #: by state: outside, its first rows (as an input) or all its rows (as an output), in a list of
    #: one; inside, its values some steps ago, one for each tap, or the new value
    states: list[list[T]] = field(default_factory=list)
    #: outputs that no later step reads
    results: list[T] = field(default_factory=list)
    #: objects that each step hands to the next one
    objects: list[T] = field(default_factory=list)
    #: what is the same in every step
    constants: list[T] = field(default_factory=list)
    #: the condition that ends the loop, of a step's outputs
    condition: list[T] = field(default_factory=list)

    def flat(self) -> list[T]:
        """Return all in the order in which the step or the loop has them."""
        return [
            *self.sequences, *chain.from_iterable(self.states), *self.results, *self.objects,
            *self.constants, *self.condition,
        ]  # fmt: skip

    def with_values(self, flat: Iterable[U]) -> Parts[U]:
        """Return others in the same arrangement; flat: in the order of ``flat()``."""
        rest = iter(flat)

        def take(some: Sequence[Any]) -> list[U]:
            return list(islice(rest, len(some)))

        return Parts(
            sequences=take(self.sequences),
            states=[take(each) for each in self.states],
            results=take(self.results),
            objects=take(self.objects),
            constants=take(self.constants),
            condition=take(self.condition),
        )


@dataclass(frozen=True)
class Layout:
    """The numbers of variables of a step and its loop that play each part.

    A loop has the number of steps as its first input; the other inputs and the outputs are in the
    order of ``Parts``.
    """

    sequences: int
    #: by state, how many steps ago the values are from that a step reads: (2, 1), mostly (1,)
    taps: tuple[tuple[int, ...], ...]
    results: int
    objects: int
    until: bool
    #: by output with rows, states and then results, how many of its last rows are kept; None: all.
    #: A state keeps those that its taps reach at least
    kept: tuple[int | None, ...]

    @property
    def rows_before(self) -> list[int]:
        """By state, the number of rows that it has before the first step."""
        return [max(taps) for taps in self.taps]

    @property
    def last(self) -> dict[int, int]:
        """The outputs of which only some last rows are kept: {output: how many}."""
        return {k: n for k, n in enumerate(self.kept) if n is not None}

    @property
    def only_last(self) -> set[int]:
        """The states of which only the last row is kept."""
        return {k for k in range(len(self.taps)) if self.kept[k] == 1}

    @property
    def keeps_results(self) -> bool:
        """Whether all rows of all results are kept."""
        return all(n is None for n in self.kept[len(self.taps) :])

    def step_inputs(self, variables: Sequence[T]) -> Parts[T]:
        """Return the inputs of a step by part."""
        return self._split(variables, self.sequences, [len(taps) for taps in self.taps])

    def step_outputs(self, variables: Sequence[T]) -> Parts[T]:
        """Return the outputs of a step by part."""
        end = len(variables) - self.until
        parts = self._split(variables[:end], 0, [1] * len(self.taps), self.results)
        parts.condition = list(variables[end:])
        return parts

    def loop_inputs(self, variables: Sequence[T]) -> Parts[T]:
        """Return the inputs of the loop, without the number of steps, by part."""
        return self._split(variables, self.sequences, [1] * len(self.taps))

    def loop_outputs(self, variables: Sequence[T]) -> Parts[T]:
        """Return the outputs of the loop by part."""
        return self._split(variables, 0, [1] * len(self.taps), self.results)

    def _split(
        self, variables: Sequence[T], sequences: int, states: list[int], results: int = 0
    ) -> Parts[T]:
        rest = iter(variables)

        def take(n: int) -> list[T]:
            return list(islice(rest, n))

        return Parts(
            sequences=take(sequences),
            states=[take(n) for n in states],
            results=take(results),
            objects=take(self.objects),
            constants=list(rest),
            condition=[],
        )


def layout_of(
    step: Parts[Any],
    taps: Sequence[Sequence[int]],
    outputs: Parts[Any],
    last: Mapping[int, int] = MappingProxyType({}),
) -> Layout:
    """Return the layout of a step with these inputs and outputs.

    taps: of each state, as numbers of steps back. last: see Layout.
    """
    return Layout(
        sequences=len(step.sequences),
        taps=tuple(map(tuple, taps)),
        results=len(outputs.results),
        objects=len(step.objects),
        until=bool(outputs.condition),
        kept=tuple(last.get(k) for k in range(len(taps) + len(outputs.results))),
    )
