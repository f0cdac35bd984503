"""Schedules from a building block: repeat it, squeeze it, reorder the ends, fill in W.

Qi, Wan, Amar and Lin, "Pipeline Parallelism with Controllable Memory", NeurIPS 2024, sections 3
and 4. A building block says in which slot of a unit-time grid a microbatch passes each rank, four
times: F down the V, F up, I down, I up (passes 0 to 3). Microbatch i follows 6 slots after i - 1,
so peak memory is the life span of a block divided by 6. Warm-up and cool-down then have holes,
which this greedy fills by moving passes forward, as long as the peak does not grow.
"""

from __future__ import annotations

from bisect import insort

from distlearn.pipeline.action import Action

Grid = list[list[list[int]]]  # [rank][pass][microbatch] -> slot; W, if there, is pass 4 (and 5)
W = 4


def from_block(block: list[list[int]], m: int, limit: int = 0) -> tuple[tuple[Action, ...], ...]:
    """Every rank's order for m microbatches.

    Parameters
    ----------
    block : list of list of int
        ``block[r]``: the slots of the four passes on rank r.
    m : int
        Microbatches.
    limit : int
        Half-stage activations that a rank may keep while the ends are reordered. Default: as many
        as the block itself needs.

    Notes
    -----
    Cost: about linear in the number of passes (the ends, which are reordered, grow with p^2).
    """
    grid = [[list(range(x, x + 6 * m, 6)) for x in passes] for passes in block]
    grid = _squeeze(_move_up_with_weights(
        [[*row, _weights(row)[0]] for row in grid], limit))
    grid = _squeeze([[*row, _weights(row)[0]]
                     for row in _move_up_at_the_end([row[:W] for row in grid], limit)])
    return tuple(_actions(row[:W], r, len(block)) for r, row in enumerate(grid))


def _actions(row: list[list[int]], r: int, p: int) -> tuple[Action, ...]:
    stage = (r, 2 * p - 1 - r)
    halves = (stage[0], stage[1], stage[1], stage[0], stage[1], stage[0])  # I goes down the 2nd
    timed = [(slot, "FFIIWW"[n], halves[n], i)
             for n, slots in enumerate([*row, *_split_weights(row)])
             for i, slot in enumerate(slots)]
    return tuple(Action(kind, s, i) for _, kind, s, i in sorted(timed))


def _weights(row: list[list[int]]) -> tuple[list[int], int]:
    """The slots of the W's: the first empty slots, each after an I of its own; and the length."""
    taken = {slot: n for n, slots in enumerate(row) for slot in slots}
    bound, waiting = max(slots[-1] for slots in row), 0
    found = []
    for slot in range(bound + 1):
        n = taken.get(slot)
        if n is None:
            if waiting:
                waiting -= 1
                found.append(slot)
        elif n >= 2:
            waiting += 1
    found += range(bound + 1, bound + 1 + waiting)
    return found, bound


def _split_weights(row: list[list[int]]) -> tuple[list[int], list[int]]:
    """The same slots, told apart by the I they belong to: the way down goes first."""
    taken = {slot: n for n, slots in enumerate(row) for slot in slots}
    waiting = [0, 0]
    found: tuple[list[int], list[int]] = ([], [])
    slot = -1
    while slot < max(slots[-1] for slots in row[2:4]) or any(waiting):
        slot += 1
        n = taken.get(slot)
        if n is None:
            way = 0 if waiting[0] else 1
            if waiting[way]:
                waiting[way] -= 1
                found[way].append(slot)
        elif n >= 2:
            waiting[n - 2] += 1
    return found


def _in_order(grid: Grid) -> list[tuple[int, int, int, int]]:
    """All passes as (slot, rank, pass, microbatch), by time."""
    return sorted((slot, r, n, i) for r, row in enumerate(grid)
                  for n, slots in enumerate(row) for i, slot in enumerate(slots))


def _earliest(grid: Grid, r: int, n: int, i: int) -> int:
    """The first slot that what a pass (not W) needs leaves open."""
    latest = -1
    neighbour = r - 1 if n in (0, 2) else r + 1
    if 0 <= neighbour < len(grid):
        latest = grid[neighbour][n][i]
    if n:
        latest = max(latest, grid[r][n - 1][i])
    if i:
        latest = max(latest, grid[r][n][i - 1])
    return latest + 1


def _squeeze(grid: Grid) -> Grid:
    """Keep every rank's order, and start everything as early as it can, in unit slots."""
    result: Grid = [[[0] * len(slots) for slots in row] for row in grid]
    free = [0] * len(grid)
    for _, r, n, i in _in_order(grid):
        slot = free[r] if n == W else max(free[r], _earliest(result, r, n, i))
        result[r][n][i] = slot
        free[r] = slot + 1
    return result


def _stable(grid: Grid, order: list[tuple[int, int, int, int]]) -> tuple[int, int]:
    """The stable phase, as places in the order: from rank 0's first last pass to its last F."""
    last = len(grid[0][0]) - 1
    begin = next(k for k, (_, r, n, _) in enumerate(order) if n == 3 and r == 0)
    end = next((k for k in range(begin, len(order)) if order[k][2] == 0 and order[k][3] == last),
               len(order))
    return begin, end


def _move_up_with_weights(grid: Grid, limit: int) -> Grid:
    """Move passes of warm-up and cool-down into earlier empty slots; W's have slots of their own.

    Only a forward that moves up takes memory: one more piece from its new slot to its old one.
    """
    order = _in_order(grid)
    begin, end = _stable(grid, order)
    held = [_held(row) for row in grid]
    limit = max(limit, *(max(curve) for curve in held))
    taken = [bytearray(len(curve)) for curve in held]
    inputs_done: list[list[int]] = [[] for _ in grid]  # slots of the I's so far, sorted
    for k, (slot, r, n, i) in enumerate(order):
        new = slot
        if not begin <= k <= end:
            if n == W:
                first = max(inputs_done[r][i], grid[r][W][i - 1] if i else -1) + 1
            else:
                first = _earliest(grid, r, n, i)
            if n < 2:
                room = slot
                while room > first and held[r][room - 1] < limit:
                    room -= 1
                first = room
            new = taken[r].find(0, first, slot)
            new = slot if new < 0 else new
        if new != slot:
            grid[r][n][i] = new
            if n < 2 or n == W:
                more = 1 if n < 2 else -1
                for t in range(new, slot):
                    held[r][t] += more
        taken[r][new] = 1
        if n in (2, 3):
            insort(inputs_done[r], new)
    return grid


def _held(row: list[list[int]]) -> list[int]:
    """Pieces kept after each slot."""
    curve = [0] * (max(slots[-1] for slots in row) + 1)
    for n, change in ((0, 1), (1, 1), (W, -1)):
        for slot in row[n]:
            curve[slot] += change
    for t in range(1, len(curve)):
        curve[t] += curve[t - 1]
    return curve


def _move_up_at_the_end(grid: Grid, limit: int) -> Grid:
    """Move passes of the cool-down into earlier empty slots; W's take what stays empty."""
    order = _in_order(grid)
    _, end = _stable(grid, order)
    rows = [_Row(row) for row in grid]
    limit = max(limit, *(max(row.held) for row in rows))
    for slot, r, n, i in order[end + 1:]:
        new = rows[r].move(n, slot, _earliest(grid, r, n, i), limit)
        grid[r][n][i] = new
    return grid


class _Row:
    """One rank's slots, with memory and W's to do after each slot, if W's fill the empty slots."""

    def __init__(self, row: list[list[int]]) -> None:
        size = max(slots[-1] for slots in row) + 1
        self.passes = bytearray(b"\xff" * size)
        for n, slots in enumerate(row):
            for slot in slots:
                self.passes[slot] = n
        self.held, self.waiting = [0] * size, [0] * size
        self._walk(0, size, 10**9)

    def move(self, n: int, slot: int, first: int, limit: int) -> int:
        """Put the pass of ``slot`` into the first empty slot that keeps memory within the limit."""
        new = self.passes.find(0xFF, first, slot)
        while new >= 0:
            self.passes[new], self.passes[slot] = n, 0xFF
            if self._walk(new, slot, limit):
                return new
            self.passes[new], self.passes[slot] = 0xFF, n
            self._walk(new, slot, 10**9)
            new = self.passes.find(0xFF, new + 1, slot)
        return slot

    def _walk(self, start: int, until: int, limit: int) -> bool:
        """Do the sums again from a slot on; past ``until``, stop where nothing has changed."""
        held = self.held[start - 1] if start else 0
        waiting = self.waiting[start - 1] if start else 0
        for t in range(start, len(self.passes)):
            n = self.passes[t]
            if n == 0xFF:
                if waiting:
                    waiting -= 1
                    held -= 1
            elif n < 2:
                held += 1
            else:
                waiting += 1
            if held > limit:
                return False
            if t > until and self.held[t] == held and self.waiting[t] == waiting:
                break
            self.held[t], self.waiting[t] = held, waiting
        return True
