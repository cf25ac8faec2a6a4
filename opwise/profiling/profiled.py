"""Profiled: what a profile can be written and drawn as; the same for what records one.

What writes and draws is imported where it is used.
"""

from __future__ import annotations


class Profiled:
    """A Profile, or what records one: ``profile()`` returns it."""

    def profile(self):
        """Return what has been recorded up to now, as plain data."""
        raise NotImplementedError

    def export_chrome_trace(self, path, max_events=50_000):
        """Write the kept calls as a file that Perfetto and chrome://tracing open.

        max_events: how many slices; the shortest Applys are left out first.
        """
        from opwise.profiling import traces

        traces.export_chrome_trace(self.profile(), path, max_events)

    def export_speedscope(self, path, by="scope"):
        """Write the profile as a file that speedscope opens.

        by: what stands above the Ops: 'scope' for scopes and lines, 'line' for lines alone.
        """
        from opwise.profiling import traces

        traces.export_speedscope(self.profile(), path, by)

    def report(self, path):
        """Write a page of the profile to a file: one HTML file that needs no network. OSError."""
        from opwise.profiling.html import page

        page.write(self.profile(), path)

    def report_diff(self, other, path):
        """Write a page of the difference to another profile to a file; self is what was before.

        other: a ProfileMode, ProfileStats or Profile, else TypeError.
        """
        from opwise.profiling.html import page

        page.write_difference([self.profile()], [profile_from(other, "other")], path)

    def _repr_html_(self):
        from opwise.profiling.html import page

        return page.brief(self.profile())

    def records(self):
        """Return a list of dicts, one for each Apply, with the keys ``records.COLUMNS``."""
        from opwise.profiling import records

        return records.records(self.profile())

    def to_csv(self, path):
        """Write the records to a file as CSV, a header first. OSError."""
        from opwise.profiling import records

        records.save_csv(self.profile(), path)

    def to_pandas(self):
        """Return the records as a pandas DataFrame."""
        from opwise.profiling import records

        return records.to_pandas(self.profile())

    def compare(self, other, by="apply"):
        """Return the rows of the difference to another profile; self is what was before.

        other: a ProfileMode, ProfileStats or Profile, else TypeError. by: 'apply', 'op', 'class',
        'line', 'scope' or 'shapes'. Each row is a ``compare.Difference``.
        """
        from opwise.profiling.compare import WAYS

        if by not in WAYS:
            raise ValueError(f"by is {by!r}; it must be one of {', '.join(WAYS)}")
        return WAYS[by](self.profile(), profile_from(other, "other"))

    def compare_devices(self, other, by="line"):
        """Return what a move between CPU and device gained; [] where both ran on the same.

        other: a ProfileMode, ProfileStats or Profile, else TypeError. by: as for ``compare``. Each
        row is a ``devices.Moved``: nanoseconds on either side, of transfers, and the speed-up.
        """
        from opwise.profiling import devices

        if by not in devices.WAYS:
            raise ValueError(f"by is {by!r}; it must be one of {', '.join(devices.WAYS)}")
        return devices.rows(by, self.profile(), profile_from(other, "other"))

    def plot(self, path=None, n=15):
        """Return a matplotlib Figure of the n largest Applys, and of memory where it is known.

        path: where to save it too. Needs the extra ``plot``.
        """
        from opwise.profiling import plots

        return plots.plot(self.profile(), path, n)

    def plot_diff(self, other, path=None, n=15):
        """Return a matplotlib Figure of the n largest differences, self minus other.

        other: a ProfileMode, ProfileStats or Profile, else TypeError.
        """
        from opwise.profiling import plots

        return plots.plot_difference(self.profile(), profile_from(other, "other"), path, n)


def profile_from(value, name):
    """Return the Profile of what is one or records one; TypeError, which names the argument."""
    if isinstance(value, Profiled):
        return value.profile()
    raise TypeError(
        f"{name} is {type(value).__name__}; it must be a ProfileMode, a ProfileStats or a Profile"
    )
