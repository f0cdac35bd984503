"""The thread index explorer: which element is mine? Grid, block, warp and lane of one thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from distlearn.widgets.lane_patterns import counted
from distlearn.widgets.panel import Panel, View, slider, whole

Sizes = tuple[int, ...]
BLOCK, GRID, ARRAY = (32, 8, 4), (8, 3, 2), (256, 24, 8)
WARP = 32


class ThreadIndexExplorer(Panel):
    """A grid of blocks of threads over an array: the indices of one thread, formulas filled in.

    Parameters
    ----------
    block, grid, array : int or tuple of 1 to 3 int
        Sizes as (x, y, z): threads of a block, at most (32, 8, 4); blocks of the grid, at most
        (8, 3, 2); elements of the array, at most (256, 24, 8).
    thread : int or tuple of 1 to 3 int
        The chosen thread's place in the whole grid.

    Raises
    ------
    ValueError
        For a size or place that is out of range.

    Examples
    --------
    >>> ThreadIndexExplorer(8, 5, 36, thread=35).status
    'Thread (3) of block (4): x = 4 · 8 + 3 = 35. It is number 3 of its block: warp 0, lane 3. \
It takes A[35], element 35 of 36.'
    """

    label = "Threads, blocks and the elements they take"
    scripts: ClassVar[Sequence[str]] = (
        "numbers.js", "player.js", "panel.js", "thread_index_explorer.js")
    mount = "mountThreadIndexExplorer"
    picture = ("Threads over the array; the arrow keys choose a thread, Page Up and Page Down go "
               "through z")
    hint = ("Click a thread, or use the arrow keys; Page Up and Page Down go through z. Dark: its "
            "warp. Tinted: its block. Dashed: threads without an element.")

    def __init__(self, block: int | Sizes = (8, 4), grid: int | Sizes = (3, 2),
                 array: int | Sizes = (21, 7), thread: int | Sizes = (11, 2)) -> None:
        sizes = {"blockDim": _sizes("block", block, BLOCK), "gridDim": _sizes("grid", grid, GRID),
                 "array": _sizes("array", array, ARRAY)}
        setting = {f"{name}.{axis}": n for name, three in sizes.items()
                   for axis, n in zip("xyz", three, strict=True)}
        most = tuple(b * g for b, g in zip(sizes["blockDim"], sizes["gridDim"], strict=True))
        at = thread if isinstance(thread, tuple) else (thread,)
        place = [whole(f"thread[{i}]", n, 0, most[i] - 1) for i, n in enumerate(at)]
        super().__init__(**setting, thread=[*place, 0, 0][:3])

    def controls(self) -> Sequence[str]:
        """The three sizes."""
        return [slider(f"{name}.{axis}", self.setting[f"{name}.{axis}"], 1, most[i])
                for name, most in (("blockDim", BLOCK), ("gridDim", GRID), ("array", ARRAY))
                for i, axis in enumerate("xyz")]

    def view(self) -> View:
        """The indices of the chosen thread."""
        s, place = self.setting, self.setting["thread"]
        block, grid, array = ([s[f"{name}.{axis}"] for axis in "xyz"]
                              for name in ("blockDim", "gridDim", "array"))
        most = [b * g for b, g in zip(block, grid, strict=True)]
        axes = max([i for i in range(3) if max(most[i], array[i]) > 1], default=0) + 1
        outer, inner = ([f(p, b) for p, b in zip(place, block, strict=True)]
                        for f in (int.__floordiv__, int.__mod__))
        sums = "; ".join(f"{'xyz'[i]} = {outer[i]} · {block[i]} + {inner[i]} = {place[i]}"
                         for i in range(axes))
        threads = block[0] * block[1] * block[2]
        number = (inner[2] * block[1] + inner[1]) * block[0] + inner[0]
        linear = (f"({inner[2]} · {block[1]} + {inner[1]}) · {block[0]} + {inner[0]}",
                  f"{inner[1]} · {block[0]} + {inner[0]}", f"{inner[0]}")[3 - axes]
        warps = -(-threads // WARP)
        empty = warps * WARP - threads
        blocks = grid[0] * grid[1] * grid[2]
        held = 1
        for m, n in zip(most, array, strict=True):
            held *= min(m, n)
        elements = array[0] * array[1] * array[2]
        out = [f"{'xyz'[i]} = {place[i]} is not below {array[i]}" for i in range(axes)
               if place[i] >= array[i]]
        name = f"A[{', '.join(str(place[i]) for i in reversed(range(axes)))}]"
        flat = (place[2] * array[1] + place[1]) * array[0] + place[0]
        guard = " and ".join(f"{'xyz'[i]} < {array[i]}" for i in range(axes))

        def triple(three: list[int]) -> str:
            return f"({', '.join(map(str, three[:axes]))})"

        return View(
            (("threadIdx", triple(inner), f"blockDim {triple(block)}"),
             ("blockIdx", triple(outer), f"gridDim {triple(grid)}"),
             ("global index", triple(place), sums),
             ("in its block", str(number), f"{linear}; of {counted(threads, 'thread')}"),
             ("warp, lane", f"{number // WARP}, {number % WARP}",
              f"{number} div 32, mod 32; {counted(warps, 'warp')} a block, {empty} lanes empty"),
             ("guard", "false" if out else "true", f"if {guard}"),
             ("element", "none" if out else name, f"of {elements}, in rows along x"),
             ("threads", str(threads * blocks), (
                 f"{threads * blocks - held} without an element, {elements - held} elements "
                 "without a thread"))),
            f"Thread {triple(inner)} of block {triple(outer)}: {sums}. It is number {number} of "
            f"its block: warp {number // WARP}, lane {number % WARP}. "
            + (f"The guard keeps it out: {' and '.join(out)}." if out
               else f"It takes {name}, element {flat} of {elements}."))


def _sizes(name: str, size: int | Sizes, most: Sizes) -> Sizes:
    given = size if isinstance(size, tuple) else (size,)
    if not 1 <= len(given) <= 3:
        raise ValueError(f"{name} must have 1 to 3 sizes; got {size!r}")
    return tuple(whole(f"{name}[{i}]", n, 1, most[i]) for i, n in enumerate((*given, 1, 1)[:3]))
