"""The modes and linkers that PyTensor knows by name once this folder is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.compile import mode as pytensor_mode
from pytensor.compile.mode import Mode, RewriteDatabaseQuery

from opwise.modes.mode import get_mode
from opwise.modes.profilemode import ProfileMode
from opwise.pytensor import rewrites
from opwise.pytensor.linker import OpwiseLinker

if TYPE_CHECKING:
    from opwise.profiling.profile import Profile

#: opwise simplifies arithmetic itself under these modes; under FAST_COMPILE it does little
_FAST_RUN = RewriteDatabaseQuery(include=["fast_run"], exclude=rewrites.ARITHMETIC)
_FAST_COMPILE = RewriteDatabaseQuery(include=["fast_compile"])


class ProfilingMode(Mode):
    """A mode of PyTensor whose functions are timed Apply by Apply.

    ``print_summary`` and the other methods are those of opwise's ProfileMode.
    """

    @property
    def own_mode(self) -> ProfileMode:
        """The ProfileMode of opwise that records."""
        found = get_mode(self.linker.own_mode)
        assert isinstance(found, ProfileMode)
        return found

    def print_summary(self, *args: Any, **kwargs: Any) -> None:
        """Print the time of all calls by Apply, by Op and by class of Op."""
        self.own_mode.print_summary(*args, **kwargs)

    def print_diff_summary(self, other: Any, *args: Any, **kwargs: Any) -> None:
        """Print the difference to another profile, self minus other, Apply by Apply."""
        other = other.own_mode if isinstance(other, ProfilingMode) else other
        self.own_mode.print_diff_summary(other, *args, **kwargs)

    def recorded(self) -> Profile:
        """Return the data recorded so far."""
        return self.own_mode.profile()


def register() -> None:
    """Add the modes, linkers and rewrites to PyTensor's tables; those that are there stay."""
    rewrites.register()
    linkers = {
        "opwise": OpwiseLinker(),
        "opwise_fast_compile": OpwiseLinker("FAST_COMPILE"),
        "opwise_debug": OpwiseLinker("DEBUG_MODE"),
        "opwise_profile": OpwiseLinker("PROFILE_MODE"),
    }
    for name, linker in linkers.items():
        if name not in pytensor_mode.predefined_linkers:
            pytensor_mode.register_linker(name, linker)
    modes = {
        "OPWISE": Mode(linkers["opwise"], _FAST_RUN),
        "OPWISE_FAST_COMPILE": Mode(linkers["opwise_fast_compile"], _FAST_COMPILE),
        "OPWISE_DEBUG": Mode(linkers["opwise_debug"], _FAST_RUN),
        "PROFILE_MODE": ProfilingMode(linkers["opwise_profile"], _FAST_RUN),
    }
    for name, mode in modes.items():
        if name not in pytensor_mode.predefined_modes:
            pytensor_mode.register_mode(name, mode)
