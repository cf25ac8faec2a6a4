"""Histograms of times: the bucket of a time, and quantiles from buckets.

Up to 8 nanoseconds a bucket is one nanosecond wide; from there on, eight buckets divide each
power of two, so a time is known within an eighth. The VMs fill them
(``linkers/csupport/clock.h``).
"""

from __future__ import annotations

from collections.abc import Iterable

#: (bucket, count) pairs by rising bucket
Pairs = Iterable[tuple[int, int]]

#: number of buckets; the last one holds all times from 2**42 nanoseconds (an hour)
BUCKETS = 320


def bucket(ns: int) -> int:
    """Return the bucket of a time in nanoseconds."""
    if ns < 8:
        return max(ns, 0)
    power = ns.bit_length() - 1
    return min(8 * (power - 2) + (ns >> power - 3 & 7), BUCKETS - 1)


def bounds(bucket: int) -> tuple[int, int]:
    """Return the first nanosecond of a bucket, and the first one beyond it."""
    bucket = min(max(bucket, 0), BUCKETS - 1)
    if bucket < 8:
        return bucket, bucket + 1
    power, eighth = bucket // 8 + 2, bucket % 8
    width = 1 << power - 3
    return (8 + eighth) * width, (9 + eighth) * width


def quantile(pairs: Pairs, share: float) -> float:
    """Return the nanoseconds that a share of the counted times does not exceed; 0 without any.

    Times are taken as evenly spread within a bucket.
    """
    pairs = list(pairs)
    wanted = share * sum(count for _, count in pairs)
    for number, count in pairs:
        if count and wanted <= count:
            low, high = bounds(number)
            return low + (high - 1 - low) * wanted / count
        wanted -= count
    return 0


def merged(*several: Pairs) -> tuple[tuple[int, int], ...]:
    """Return the sum of histograms."""
    sums: dict[int, int] = {}
    for pairs in several:
        for number, count in pairs:
            sums[number] = sums.get(number, 0) + count
    return tuple(sorted(sums.items()))
