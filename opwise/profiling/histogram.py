"""Histograms of times: which bucket a time is in, and what buckets tell.

Up to 8 nanoseconds a bucket is one nanosecond wide; from there on, eight buckets divide each
power of two, so a time is known within an eighth. Machines fill them
(``linkers/csupport/clock.h``).
"""

from __future__ import annotations

#: how many there are; the last one holds all times from 2**42 nanoseconds, an hour, on
BUCKETS = 320


def bucket(ns):
    """Return the bucket of a time in nanoseconds."""
    if ns < 8:
        return max(ns, 0)
    power = ns.bit_length() - 1
    return min(8 * (power - 2) + (ns >> power - 3 & 7), BUCKETS - 1)


def bounds(bucket):
    """Return (least nanoseconds, the first nanoseconds that are too many) of a bucket."""
    bucket = min(max(bucket, 0), BUCKETS - 1)
    if bucket < 8:
        return bucket, bucket + 1
    power, eighth = bucket // 8 + 2, bucket % 8
    width = 1 << power - 3
    return (8 + eighth) * width, (9 + eighth) * width


def quantile(pairs, share):
    """Return the nanoseconds that a share of what is counted does not exceed; 0 without any.

    pairs: (bucket, count) by rising bucket. Inside a bucket times are taken as evenly spread.
    """
    wanted = share * sum(count for _, count in pairs)
    for number, count in pairs:
        if count and wanted <= count:
            low, high = bounds(number)
            return low + (high - 1 - low) * wanted / count
        wanted -= count
    return 0


def merged(*several):
    """Return histograms as one."""
    sums: dict = {}
    for pairs in several:
        for number, count in pairs:
            sums[number] = sums.get(number, 0) + count
    return tuple(sorted(sums.items()))
