"""ProfileMethods: what users do with a Profile, a ProfileStats or a ProfileMode.

Each method calls a function of another module, which is imported when it is first needed: only
those who profile wait for it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from opwise.profiling.compare import Difference
    from opwise.profiling.devices import DeviceDifference
    from opwise.profiling.model import ProfileData


class ProfileMethods:
    """Methods of a Profile and of what records one; ``profile()`` returns it."""

    def profile(self) -> ProfileData:
        """Return what has been recorded up to now, as plain data."""
        raise NotImplementedError

    def export_chrome_trace(self, path: str | Path, max_events: int = 50_000) -> None:
        """Write the kept calls as a file that Perfetto and chrome://tracing open.

        max_events: how many slices; the shortest Applys are left out first.
        """
        from opwise.profiling import traces

        traces.export_chrome_trace(self.profile(), path, max_events)

    def export_speedscope(self, path: str | Path, by: str = "call") -> None:
        """Write the profile as a file that speedscope opens.

        by: what stands above the Ops: 'call' for scopes and the calls that wrote them, 'scope' for
        scopes and lines, 'line' for lines alone.
        """
        from opwise.profiling import traces

        traces.export_speedscope(self.profile(), path, by)

    def report(self, path: str | Path) -> None:
        """Write a page of the profile to a file: one HTML file that needs no network. OSError."""
        from opwise.profiling.html import page

        page.write(self.profile(), path)

    def report_diff(self, other: ProfileMethods, path: str | Path) -> None:
        """Write a page of the difference to another profile to a file; self is the side before.

        other: a ProfileMode, ProfileStats or Profile, else TypeError.
        """
        from opwise.profiling.html import page

        page.write_difference([self.profile()], [profile_from(other, "other")], path)

    def _repr_html_(self) -> str:
        from opwise.profiling.html import page

        return page.brief(self.profile())

    def records(self) -> list[dict[str, Any]]:
        """Return a list of dicts, one for each Apply, with the keys ``tabular.COLUMNS``."""
        from opwise.profiling import tabular

        return tabular.records(self.profile())

    def to_csv(self, path: str | Path) -> None:
        """Write the records to a file as CSV, a header first. OSError."""
        from opwise.profiling import tabular

        tabular.save_csv(self.profile(), path)

    def to_pandas(self) -> Any:
        """Return the records as a pandas DataFrame."""
        from opwise.profiling import tabular

        return tabular.to_pandas(self.profile())

    def compare(self, other: ProfileMethods, by: str = "apply") -> list[Difference]:
        """Return the rows of the difference to another profile; self is the side before.

        other: a ProfileMode, ProfileStats or Profile, else TypeError. by: 'apply', 'op', 'class',
        'line', 'scope' or 'shapes'. Each row is a ``compare.Difference``.
        """
        from opwise.profiling.compare import GROUPINGS

        _check_name(by, GROUPINGS)
        return GROUPINGS[by](self.profile(), profile_from(other, "other"))

    def compare_devices(self, other: ProfileMethods, by: str = "line") -> list[DeviceDifference]:
        """Return what moving between CPU and device gained; [] if both ran on the same hardware.

        other: a ProfileMode, ProfileStats or Profile, else TypeError. by: as for ``compare``. Each
        row is a ``devices.DeviceDifference``: nanoseconds on either side, of transfers, and the
        speed-up.
        """
        from opwise.profiling import devices

        _check_name(by, devices.GROUPINGS)
        return devices.rows(by, self.profile(), profile_from(other, "other"))

    def plot(self, path: str | Path | None = None, n: int = 15) -> Any:
        """Return a matplotlib Figure of the n largest Applys, and of memory if it was measured.

        path: where to save it too. Needs the extra ``plot``.
        """
        from opwise.profiling import plots

        return plots.plot(self.profile(), path, n)

    def plot_diff(self, other: ProfileMethods, path: str | Path | None = None, n: int = 15) -> Any:
        """Return a matplotlib Figure of the n largest differences, self minus other.

        other: a ProfileMode, ProfileStats or Profile, else TypeError.
        """
        from opwise.profiling import plots

        return plots.plot_difference(self.profile(), profile_from(other, "other"), path, n)


def _check_name(by: str, groupings: Collection[str]) -> None:
    if by not in groupings:
        raise ValueError(f"by is {by!r}; it must be one of {', '.join(groupings)}")


def profile_from(value: object, name: str) -> ProfileData:
    """Return the profile of an object that is or records one; TypeError names the argument."""
    if isinstance(value, ProfileMethods):
        return value.profile()
    raise TypeError(
        f"{name} is {type(value).__name__}; it must be a ProfileMode, a ProfileStats or a Profile"
    )
