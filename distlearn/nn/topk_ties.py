"""Which of several equal values ``torch.topk`` takes on a CPU.

torch leaves it open, so a record of a program that calls it on a 0/1 mask (DeepSpeed's top-1
gating) can be reproduced only by doing what the C++ library does: quickselect with the median of
three for large k (``std::nth_element``), a heap of k for small k (``std::partial_sort``).
"""

from __future__ import annotations

import numpy as np

from distlearn.nn.arrays import Array


def torch_topk(values: Array, k: int) -> Array:
    """Indices of the k largest values, in no order, with torch's choice among equals.

    Examples
    --------
    >>> sorted(torch_topk(np.array([1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 1]), 4).tolist())
    [0, 9, 12, 13]
    """
    items = [(value, index) for index, value in enumerate(values.tolist())]
    if 0 < k:
        if k * 64 <= len(items):
            _heap_select(items, k)
        else:
            _nth_element(items, k - 1)
    return np.array([index for _, index in items[:k]], np.int64)


Item = tuple[float, int]


def _before(a: Item, b: Item) -> bool:
    return a[0] > b[0]  # the index does not count: equal values are equal


def _nth_element(items: list[Item], nth: int) -> None:
    """Quickselect: afterwards nothing before ``nth`` comes after it in order."""
    first, last = 0, len(items)
    depth = 2 * (len(items).bit_length() - 1)
    while last - first > 3:
        if depth == 0:
            part = items[first:last]
            _heap_select(part, nth + 1 - first)
            part[0], part[nth - first] = part[nth - first], part[0]
            items[first:last] = part
            return
        depth -= 1
        cut = _partition(items, first, last)
        first, last = (cut, last) if cut <= nth else (first, cut)
    for end in range(first + 1, last):  # insertion sort; equal values keep their order
        place, item = end, items[end]
        while place > first and _before(item, items[place - 1]):
            items[place] = items[place - 1]
            place -= 1
        items[place] = item


def _partition(items: list[Item], first: int, last: int) -> int:
    """Split around the median of the second, middle and last item, put in first place."""
    a, b, c = first + 1, first + (last - first) // 2, last - 1
    if _before(items[a], items[b]):
        median = b if _before(items[b], items[c]) else c if _before(items[a], items[c]) else a
    else:
        median = a if _before(items[a], items[c]) else c if _before(items[b], items[c]) else b
    items[first], items[median] = items[median], items[first]
    pivot, low, high = items[first], first + 1, last
    while True:
        while _before(items[low], pivot):
            low += 1
        high -= 1
        while _before(pivot, items[high]):
            high -= 1
        if low >= high:
            return low
        items[low], items[high] = items[high], items[low]
        low += 1


def _heap_select(items: list[Item], k: int) -> None:
    """Keep the first k items a heap with the last in order on top; each better one replaces it."""
    for parent in range((k - 2) // 2, -1, -1):
        _sift(items, parent, k, items[parent])
    for index in range(k, len(items)):
        if _before(items[index], items[0]):
            item, items[index] = items[index], items[0]
            _sift(items, 0, k, item)


def _sift(items: list[Item], hole: int, length: int, item: Item) -> None:
    """Move the hole down to a leaf, always to the later child, then the item up from there."""
    top = hole
    while 2 * hole + 2 < length:
        child = 2 * hole + 2
        if _before(items[child], items[child - 1]):
            child -= 1
        items[hole] = items[child]
        hole = child
    if length % 2 == 0 and hole == (length - 2) // 2:
        items[hole] = items[2 * hole + 1]
        hole = 2 * hole + 1
    while hole > top and _before(items[(hole - 1) // 2], item):
        items[hole] = items[(hole - 1) // 2]
        hole = (hole - 1) // 2
    items[hole] = item
