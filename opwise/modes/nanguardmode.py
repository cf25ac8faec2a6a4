"""NanGuardMode: stops at the first NaN, infinity or huge number in an input or a result."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np

from opwise.config import config
from opwise.graph import provenance
from opwise.graph.apply import Apply
from opwise.graph.printing import debugprint
from opwise.graph.variable import Variable
from opwise.linkers.base import VM_Linker
from opwise.linkers.errors import steps_running
from opwise.linkers.vm import Thunk
from opwise.modes.mode import Mode

_log = logging.getLogger("opwise.nanguardmode")
#: the largest absolute value that is not a big one
_BIG = 1e10


class NanGuardMode(Mode):
    """Checks every value of a call; raises AssertionError for the first wrong one.

    The flag NanGuardMode.action may be set to warn, or to start the debugger, instead. A variable
    with ``tag.nan_guard_mode_check = False`` is not checked. The arguments nan_is_error,
    inf_is_error and big_is_error default to the flags NanGuardMode.*; linker is ignored.
    """

    def __init__(
        self, nan_is_error: bool | None = None, inf_is_error: bool | None = None,
        big_is_error: bool | None = None, optimizer: Any = "default", linker: Any = None,
    ) -> None:  # fmt: skip
        flags = config.NanGuardMode
        #: whether NaN is an error
        self.nan_is_error = flags.nan_is_error if nan_is_error is None else nan_is_error
        #: whether infinities are errors
        self.inf_is_error = flags.inf_is_error if inf_is_error is None else inf_is_error
        #: whether numbers beyond 1e10 and -1e10 are errors
        self.big_is_error = flags.big_is_error if big_is_error is None else big_is_error
        if not (self.nan_is_error or self.inf_is_error or self.big_is_error):
            raise AssertionError(
                "NanGuardMode has nothing to check: set nan_is_error, inf_is_error or big_is_error"
            )
        super().__init__(
            VM_Linker(callback=self._after_apply, callback_input=self._input), optimizer
        )

    def __getstate__(self) -> dict[str, Any]:
        return {
            "nan_is_error": self.nan_is_error, "inf_is_error": self.inf_is_error,
            "big_is_error": self.big_is_error, "optimizer": self.provided_optimizer,
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        NanGuardMode.__init__(self, **state)

    def _faults(self, value: Any) -> list[str]:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc" or not value.size:
            return []
        found = []
        with np.errstate(all="ignore"):
            if self.nan_is_error and np.isnan(value).any():
                found.append("NaN detected")
            if self.inf_is_error and np.isinf(value).any():
                found.append("Inf detected")
            if self.big_is_error and (np.abs(value) > _BIG).any():
                found.append("Big value detected")
        return found

    def _input(self, var: Variable, value: Any) -> None:
        self._check(var, value, None)

    def _after_apply(
        self, node: Apply, thunk: Thunk, storage_map: Mapping[Any, Any], compute_map: Any
    ) -> None:
        for var, storage in zip(node.outputs, thunk.outputs, strict=True):
            self._check(var, storage[0], node)

    def _check(self, var: Variable, value: Any, node: Apply | None) -> None:
        """Report a wrong value; node: the Apply that computed it, None for an input."""
        if var._tag is not None and not getattr(var.tag, "nan_guard_mode_check", True):
            return
        found = self._faults(value)
        if found:
            _report("\n".join([*found, _explanation(var, node)]) + _backtrace(var, node))


def _explanation(var: Variable, node: Apply | None) -> str:
    if node is None:
        return (
            "NanGuardMode found an error in an input of the graph.\n"
            f"Check where the value of {var} comes from."
        )
    return (
        "NanGuardMode found an error in the output of a node in this variable:\n"
        f"{debugprint(var, file='str')}\n"
        "The inputs of this Apply contain no such value, so this Apply produces it: look for a "
        "division by 0, the logarithm of a number that is not positive, or the exp of a large "
        "number. To allow it, set tag.nan_guard_mode_check = False on the variable."
    )


def _backtrace(var: Variable, node: Apply | None) -> str:
    trace = next((n.trace for n in node.origins if n.trace), None) if node else var.made_at
    if not trace:
        return ""
    return "\nBacktrace when that variable is created:\n\n" + str(provenance.format_trace(trace))


def _report(message: str) -> None:
    """Log, print or raise a message, as the flag NanGuardMode.action says."""
    # an error gets a note for each loop that it leaves
    where = "".join(f"\nIt happened in {step}." for step in steps_running())
    if config.NanGuardMode.action == "warn":
        _log.error(message + where)
        return
    if config.NanGuardMode.action == "pdb":
        print(message + where)
        import pdb

        pdb.set_trace()
    raise AssertionError(message)
