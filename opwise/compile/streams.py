"""RandomStreams: random variables whose numbers come from numpy's legacy generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwise.compile.shared import (
    RandomStateSharedVariable,
    SharedVariable,
    randomstate_constructor,
    shared,
)
from opwise.graph.variable import Variable
from opwise.tensor.random.raw_random import RandomStreamsBase
from opwise.tensor.random.state import copied

__all__ = ["RandomStateSharedVariable", "RandomStreams", "randomstate_constructor"]

#: an update of a random variable: state, state after a draw
Update = tuple[SharedVariable, Variable]


class RandomStreams(RandomStreamsBase):
    """Makes random variables; each has a generator of its own, and draws anew in every call.

    seed: an int that decides the seeds of all generators; None for a different one in each program.
    """

    #: an update for each random variable
    state_updates: list[Update]

    def __init__(self, seed: int | None = None) -> None:
        self.state_updates = []
        self.default_instance_seed = seed
        #: the generator that draws the seeds
        self.gen_seedgen = np.random.RandomState(seed)

    def updates(self) -> list[Update]:
        """Return the updates of all random variables made so far."""
        return list(self.state_updates)

    def seed(self, seed: int | None = None) -> None:
        """Seed the generators of all random variables as if they had been made with ``seed``.

        seed: as for the class (default: that of the class), an int from 0 to 2 ** 32 - 1. Raises
        ValueError for another int, TypeError for what is no int.
        """
        seedgen = np.random.RandomState(self.default_instance_seed if seed is None else seed)
        for old, _ in self.state_updates:
            old.set_value(copied(np.random.RandomState(_next_seed(seedgen))), borrow=True)

    def __getitem__(self, item: SharedVariable) -> Any:
        """Return the generator of a state, the ``rng`` of a random variable."""
        return item.get_value(borrow=True)

    def __setitem__(self, item: SharedVariable, val: Any) -> None:
        """Replace the generator of a state."""
        item.set_value(val, borrow=True)

    def gen(self, op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return a random variable that draws by a distribution of ``raw_random``.

        op: called with a state and the other arguments; returns the state after the draw and the
        numbers, whose shape and dtype the variable has. It has the attributes ``rng``, its state,
        and ``update``. Raises what op raises.
        """
        state = shared(np.random.RandomState(_next_seed(self.gen_seedgen)))
        # tells this shared variable from others
        state.tag.is_rng = True
        new_state, out = op(state, *args, **kwargs)
        out.rng = state
        out.update = (state, new_state)
        self.state_updates.append(out.update)
        state.default_update = new_state
        return out


def _next_seed(generator: Any) -> int:
    return int(generator.randint(2**30))
