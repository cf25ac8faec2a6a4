"""Python's ``heapq`` and ``bisect`` on lists that traced functions make: functions to convert."""

from __future__ import annotations

import bisect
import heapq
from typing import Any


def push(heap: Any, item: Any) -> None:
    """Do ``heapq.heappush``."""
    heap.append(item)
    rise(heap, 0, len(heap) - 1, item)


def pop(heap: Any) -> Any:
    """Return what ``heapq.heappop`` does."""
    least = heap[0]
    end = len(heap) - 1
    sink(heap, 0, heap[end], end)
    heap.pop()
    return least


def push_and_pop(heap: Any, item: Any) -> Any:
    """Return what ``heapq.heappushpop`` does."""
    least = item
    if len(heap) > 0 and heap[0] < item:
        least = heap[0]
        sink(heap, 0, item, len(heap))
    return least


def replace(heap: Any, item: Any) -> Any:
    """Return what ``heapq.heapreplace`` does."""
    least = heap[0]
    sink(heap, 0, item, len(heap))
    return least


def make(heap: Any) -> None:
    """Do ``heapq.heapify``."""
    for place in range(len(heap) // 2 - 1, -1, -1):
        sink(heap, place, heap[place], len(heap))


def rise(heap: Any, first: Any, place: Any, item: Any) -> None:
    """Put an item at a place or nearer to the root at ``first``, before those that are larger."""
    while place > first and item < heap[(place - 1) // 2]:
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = item


def sink(heap: Any, first: Any, item: Any, end: Any) -> None:
    """Put an item into the tree at ``first``: to a leaf, below smaller ones, and then up again."""
    place = first
    while 2 * place + 1 < end:
        below = 2 * place + 1
        if below + 1 < end and not heap[below] < heap[below + 1]:
            below = below + 1
        heap[place] = heap[below]
        place = below
    rise(heap, first, place, item)


def left(values: Any, x: Any) -> Any:
    """Return what ``bisect.bisect_left`` does."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


def right(values: Any, x: Any) -> Any:
    """Return what ``bisect.bisect_right`` does."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if x < values[middle]:
            high = middle
        else:
            low = middle + 1
    return low


def insert_left(values: Any, x: Any) -> None:
    """Do ``bisect.insort_left``."""
    values.append(x)
    place = len(values) - 1
    while place > 0 and not values[place - 1] < x:
        values[place] = values[place - 1]
        place = place - 1
    values[place] = x


def insert_right(values: Any, x: Any) -> None:
    """Do ``bisect.insort_right``."""
    values.append(x)
    place = len(values) - 1
    while place > 0 and x < values[place - 1]:
        values[place] = values[place - 1]
        place = place - 1
    values[place] = x


#: {a function of heapq or bisect: what does the same on lists whose items calls decide}
FUNCTIONS = {
    heapq.heappush: push,
    heapq.heappop: pop,
    heapq.heappushpop: push_and_pop,
    heapq.heapreplace: replace,
    heapq.heapify: make,
    bisect.bisect_left: left,
    bisect.bisect_right: right,
    bisect.insort_left: insert_left,
    bisect.insort_right: insert_right,
}
