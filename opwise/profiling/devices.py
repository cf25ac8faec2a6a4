"""A program on the CPU and on a device: what its lines, Ops and Applys took on either side.

The rows are those of ``compare``; a transfer counts for the Apply that made the value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

from opwise.profiling import compare
from opwise.profiling.compare import Difference
from opwise.profiling.model import ApplyProfile, FunctionProfile, ProfileData

#: the comparisons, by what their rows are about
GROUPINGS = compare.GROUPINGS


@dataclass(frozen=True)
class DeviceDifference:
    """What one row took on the CPU alone and with a device; nanoseconds, for as many calls."""

    #: the row, without transfers
    difference: Difference
    #: on the CPU alone
    cpu: float
    #: with the device: what ran there
    device: float
    #: with the device: transfers of values that the row's Applys make
    transfers: float
    #: with the device: what still ran on the CPU
    left: float
    #: with the device: transfers of arguments and shared variables
    given: float
    #: why Applys ran on the CPU, in rows about Applys
    why: tuple[str, ...] = ()

    @property
    def key(self) -> Hashable:
        """The key of the row in a comparison."""
        return self.difference.key

    @property
    def label(self) -> str:
        """What the row is about, for people."""
        return self.difference.label

    @property
    def with_device(self) -> float:
        """Time of the row with the device: there, in transfers and on the CPU."""
        return self.device + self.transfers + self.left

    @property
    def about_given(self) -> bool:
        """Whether transfers of arguments and shared variables are all that took time."""
        return bool(self.given) and self.given == self.with_device and not self.cpu

    @property
    def speedup(self) -> float | None:
        """Time on the CPU by time with the device; None if a side has no time."""
        return self.cpu / self.with_device if self.cpu and self.with_device else None


def sides(mine: ProfileData, theirs: ProfileData) -> tuple[ProfileData, ProfileData] | None:
    """Return (profile of the CPU, profile with a device); None if both or none used a device.

    ``theirs`` is scaled to as many calls as ``mine``.
    """
    theirs = compare.scaled_to(theirs, mine)
    found = [any(a.device for a in profile.applys) for profile in (mine, theirs)]
    if found[0] == found[1]:
        return None
    return (mine, theirs) if found[1] else (theirs, mine)


def rows(by: str, mine: ProfileData, theirs: ProfileData) -> list[DeviceDifference]:
    """Return a DeviceDifference for each row of a comparison; [] unless one side used a device.

    by: a name of ``GROUPINGS``. Each Apply, and each transfer, is in one row.
    """
    found = sides(mine, theirs)
    if found is None:
        return []
    cpu, there = found
    turned = there is mine
    comparison = GROUPINGS[by]
    parts = [_with_times(there, part) for part in (_on_device, _of_transfers, _left, _of_given)]
    parted = [comparison(part, cpu) if turned else comparison(cpu, part) for part in parts]
    return [_row(same, turned) for same in zip(*parted, strict=True)]


def _row(same: tuple[Difference, ...], turned: bool) -> DeviceDifference:
    """Return one row of several comparisons, each about a part of the time.

    turned: the device is the first side.
    """
    cpu, device, transfers, left, given = (
        side.ns if side else 0
        for side in (
            same[0].theirs if turned else same[0].mine,
            *(d.mine if turned else d.theirs for d in same),
        )
    )
    there = same[0].parts[0 if turned else 1]
    why = tuple(dict.fromkeys(a.on_host for a in there if a.on_host and a.count))
    return DeviceDifference(same[0], cpu, device, transfers, left, given, why)


#: from an Apply and the nanoseconds of transfers of what it makes, to a part of its time
_Part = Callable[[ApplyProfile, int], int]


def _with_times(profile: ProfileData, part: _Part) -> ProfileData:
    """Return a profile with a part of the time of each Apply.

    Leaves out transfers of values that an Apply made.
    """
    functions = []
    for f in profile.functions:
        moved = dict.fromkeys(range(len(f.applys)), 0)
        for a in f.applys:
            if a.transfer:
                moved[_source(f, a)] += a.total
        applys = tuple(
            replace(a, total=part(a, moved[a.position]))
            for a in f.applys
            if not a.transfer or _source(f, a) == a.position
        )
        functions.append(replace(f, applys=applys))
    return replace(profile, functions=tuple(functions))


def _source(function: FunctionProfile, transfer: ApplyProfile) -> int:
    """Return the position of the Apply that made what is moved; its own if none did."""
    at = transfer
    while at.transfer:
        if not at.reads or at.reads[0] < 0:
            return transfer.position
        at = function.applys[at.reads[0]]
    return at.position


def why_transferred(function: FunctionProfile, transfer: ApplyProfile) -> str:
    """Return which Applys of the host make a transfer necessary, each with why it runs there.

    "" for an argument or a result of the function.
    """
    source = function.applys[transfer.reads[0]] if transfer.reads[:1] > (-1,) else None
    if source is not None and not source.device:
        found = [source]
    else:
        found = [a for a in function.applys if transfer.position in a.reads and not a.device]
    return "; ".join(dict.fromkeys(f"{a.op}: {a.on_host}" for a in found if a.on_host))


def _on_device(apply: ApplyProfile, moved: int) -> int:
    return apply.total if apply.device and not apply.transfer else 0


def _of_transfers(apply: ApplyProfile, moved: int) -> int:
    return moved


def _left(apply: ApplyProfile, moved: int) -> int:
    return apply.total if not apply.device else 0


def _of_given(apply: ApplyProfile, moved: int) -> int:
    return moved if apply.transfer else 0
