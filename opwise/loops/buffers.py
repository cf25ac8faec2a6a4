"""``scan`` over memory buffers: the interface of ``theano.sandbox.scan``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opwise.compile.updates import OrderedUpdates
from opwise.errors import NotScalarConstantError
from opwise.graph.variable import Var
from opwise.loops.build import LoopBuilder, State
from opwise.loops.layout import as_list
from opwise.loops.returned import Returned
from opwise.tensor import as_tensor_variable, get_scalar_constant_value
from opwise.tensor.elemwise import elemwise
from opwise.tensor.shape import Rebroadcast


def scan(
    fn: Callable[..., Any],
    sequences: Any = None,
    states: Any = None,
    params: Any = None,
    n_steps: Any = None,
    mode: Any = None,
    name: str | None = None,
    profile: Any = False,
    allow_gc: bool | None = None,
) -> tuple[Any, OrderedUpdates]:
    """Repeat a step whose states are in buffers that the caller gives.

    fn, mode, name, profile, allow_gc: as of ``opwise.loops.scan``. sequences: a variable or a list;
    no taps. params: what all steps read. n_steps: the number of steps.
    states: for each output a buffer, whose first rows are the values before the first step. The
    number of its rows is the number of last rows that are returned, at most those before the first
    step and one for each step: a buffer of one row gives the last value, one of ``n_steps + 1``
    rows the initial value and all others. A dict ``{'membuf': buffer, 'taps': [-2, -1]}`` has other
    taps. None, or ``{'steps': n}``: no step reads earlier values, and all, or the last n, are
    returned.

    Returns (outputs, updates), as ``opwise.loops.scan``; if n_steps is the constant 1, each output
    has the row of that step only. Raises ValueError for taps without a buffer and without a number
    of steps, otherwise as ``opwise.loops.scan``.
    """
    if n_steps is None:
        raise ValueError("scan over memory buffers needs n_steps, the number of steps")
    settings = {"name": name, "truncate_gradient": -1, "mode": mode, "profile": profile,
                "allow_gc": allow_gc}  # fmt: skip
    return _BufferBuilder(fn, sequences, as_list(states), params, n_steps, settings).build()


class _BufferBuilder(LoopBuilder):
    """Builds one loop whose states are in buffers."""

    def __init__(
        self,
        fn: Callable[..., Any],
        sequences: Any,
        states: list[Any],
        params: Any,
        n_steps: Any,
        settings: dict[str, Any],
    ) -> None:
        #: by output, how many of its last rows are returned; None: all
        self.lengths: list[Var | None] = []
        info = [self._initial(state) for state in states]
        super().__init__(fn, sequences, info, params, n_steps, False, False, False, settings)
        self.ends_early = False

    def _initial(self, state: Any) -> Any:
        """Return an element of ``outputs_info`` for one of ``states``, and note its length."""
        given = state if isinstance(state, Mapping) else {"membuf": state}
        buffer, taps = given.get("membuf"), given.get("taps")
        if buffer is None:
            if taps:
                raise ValueError(
                    "If you are using slices of an output you need to provide a memory buffer for "
                    f"the state: {dict(given)} has no 'membuf'"
                )
            self.lengths.append(given.get("steps"))
            return None
        buffer = as_tensor_variable(buffer)
        self.lengths.append(_number_of_rows(buffer))
        taps = as_list(taps) or [-1]
        return buffer[0] if taps == [-1] else {"initial": buffer, "taps": taps}

    def _over(self, returned: Returned, once: bool) -> tuple[Any, OrderedUpdates]:
        self.ends_early = returned.condition is not None
        return super()._over(returned, once)

    def _of_state(self, k: int, state: State, whole: Var) -> Var:
        return self._last(whole, k, max(state.taps))

    def _of_result(self, k: int, rows: Var) -> Var:
        return rows if k >= len(self.lengths) else self._last(rows, k, 0)

    def _last(self, rows: Var, k: int, before: int) -> Var:
        """Return the last rows of output k; before: how many come before the first step."""
        length = self.lengths[k]
        if length is None:
            return rows
        if isinstance(length, int) or self.ends_early:
            return rows[-length:]
        # the length is often the number of steps: then this is a constant
        return rows[elemwise("maximum")(before + self.n_steps - length, 0) :]


def _number_of_rows(buffer: Var) -> Any:
    """Return how many rows a buffer has, as an int if it is known."""
    declared = buffer
    while declared.owner is not None and isinstance(declared.owner.op, Rebroadcast):
        declared = declared.owner.inputs[0]
    if declared.type.broadcastable[:1] == (True,):
        return 1
    rows = buffer.shape[0]
    try:
        return int(get_scalar_constant_value(rows))
    except NotScalarConstantError:
        return rows
