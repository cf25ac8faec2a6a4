"""A program on the CPU and on a device: what its lines, Ops and Applys took on either side.

The rows are those of ``compare``; what a transfer takes counts for what made the value that it
moves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from opwise.profiling import compare
from opwise.profiling.compare import Difference

#: the ways to compare, by name
WAYS = compare.WAYS


@dataclass(frozen=True)
class Moved:
    """What is computed in one row, once on the CPU and once with a device.

    difference: the row without transfers. In nanoseconds, for as many calls: cpu, what it took on
    the CPU alone; with the device, ``device``, what ran there; transfers, of the values that the
    row's Applys make; left, what still ran on the CPU; given, that part of transfers whose values
    no Apply made: arguments and shared variables. why: the reasons why Applys ran on the CPU, in
    rows of Applys.
    """

    difference: Difference
    cpu: int | float
    device: int | float
    transfers: int | float
    left: int | float
    given: int | float
    why: tuple[str, ...] = ()

    @property
    def key(self):
        """The key of the row in a comparison."""
        return self.difference.key

    @property
    def label(self):
        """What the row is about, for people."""
        return self.difference.label

    @property
    def moved(self):
        """Nanoseconds of all that the row takes with the device."""
        return self.device + self.transfers + self.left

    @property
    def about_given(self):
        """Whether nothing in the row took time but transfers of what no Apply made."""
        return bool(self.given) and self.given == self.moved and not self.cpu

    @property
    def speedup(self):
        """How many times as fast it is with the device; None where one side has no time."""
        return self.cpu / self.moved if self.cpu and self.moved else None


def sides(mine, theirs):
    """Return (Profile of the CPU, Profile of the device); None where both ran on the same.

    ``theirs`` is taken as it would be with as many calls as ``mine``.
    """
    theirs = compare.like(theirs, mine)
    found = [any(a.device for a in profile.applys) for profile in (mine, theirs)]
    if found[0] == found[1]:
        return None
    return (mine, theirs) if found[1] else (theirs, mine)


def rows(by, mine, theirs):
    """Return a Moved for each row of a comparison; none where both ran on the same.

    by: a name of ``WAYS``. Each Apply, and each transfer, is in one row.
    """
    found = sides(mine, theirs)
    if found is None:
        return []
    cpu, there = found
    turned = there is mine
    way = WAYS[by]
    parts = [_with_times(there, part) for part in (_on_device, _of_transfers, _left, _of_given)]
    parted = [way(part, cpu) if turned else way(cpu, part) for part in parts]
    return [_row(same, turned) for same in zip(*parted, strict=True)]


def _row(same, turned):
    """Return the Moved of one row of several comparisons, of a part of the time each."""
    cpu, device, transfers, left, given = (
        side.ns if side else 0
        for side in (
            same[0].theirs if turned else same[0].mine,
            *(d.mine if turned else d.theirs for d in same),
        )
    )
    there = same[0].parts[0 if turned else 1]
    why = tuple(dict.fromkeys(a.on_host for a in there if a.on_host and a.count))
    return Moved(same[0], cpu, device, transfers, left, given, why)


def _with_times(profile, part):
    """Return a Profile with a part of the time of each Apply, without transfers that count for it.

    part: a function of an ApplyProfile and the nanoseconds of transfers of what it makes.
    """
    functions = []
    for f in profile.functions:
        moved = dict.fromkeys(range(len(f.applys)), 0)
        for a in f.applys:
            if a.transfer:
                moved[_maker(f, a)] += a.total
        applys = tuple(
            replace(a, total=part(a, moved[a.position]))
            for a in f.applys
            if not a.transfer or _maker(f, a) == a.position
        )
        functions.append(replace(f, applys=applys))
    return replace(profile, functions=tuple(functions))


def _maker(function, transfer):
    """Return the position of the Apply that made what is moved; its own where none did."""
    at = transfer
    while at.transfer:
        if not at.reads or at.reads[0] < 0:
            return transfer.position
        at = function.applys[at.reads[0]]
    return at.position


def _on_device(apply, moved):
    return apply.total if apply.device and not apply.transfer else 0


def _of_transfers(apply, moved):
    return moved


def _left(apply, moved):
    return apply.total if not apply.device else 0


def _of_given(apply, moved):
    return moved if apply.transfer else 0
