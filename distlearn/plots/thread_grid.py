"""A launch as a picture: the grid and its blocks, one block and its threads, warp by warp."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from distlearn.plots.boxes import NORMAL, SMALL, box, canvas, note, shade

WARP = 32
_SHADES = (("F", 3), ("W", 3), ("B", 3), ("I", 3))


def thread_grid(grid: tuple[int, int] = (3, 2), block: tuple[int, int] = (8, 8),
                chosen: tuple[int, int] = (1, 0)) -> Figure:
    """Draw a two-dimensional launch.

    Parameters
    ----------
    grid, block : (int, int)
        Blocks of the grid and threads of a block, x first.
    chosen : (int, int)
        ``blockIdx`` of the block whose threads are shown.

    Returns
    -------
    Figure
        Its label is the text alternative, `thread_grid_text`.

    Raises
    ------
    ValueError
        For more than 8 blocks or 16 threads along an axis, which could not be read, or a chosen
        block that is not in the grid.
    """
    text = thread_grid_text(grid, block, chosen)
    figure, axes = canvas(6.0, 3.4, (24, 13.6))
    figure.set_label(text)
    note(axes, (4.6, 0.7), f"grid: {grid[0]} x {grid[1]} blocks", bold=True)
    cell = min(9.0 / grid[0], 9.0 / grid[1])
    top, left = 1.6, 0.2
    for y in range(grid[1]):
        for x in range(grid[0]):
            here = (x, y) == chosen
            box(axes, (left + x * cell, top + y * cell), (cell * 0.93, cell * 0.93),
                f"block\n({x}, {y})", fill=shade("F", 3) if here else shade(),
                fontsize=NORMAL if cell > 2.5 else SMALL)
    note(axes, (17.2, 0.7), f"block {chosen}: {block[0]} x {block[1]} threads", bold=True)
    size = min(12.4 / block[0], 10.4 / block[1])
    right = 10.9
    for y in range(block[1]):
        for x in range(block[0]):
            number = x + block[0] * y
            box(axes, (right + x * size, top + y * size), (size, size), str(number),
                fill=shade(*_SHADES[number // WARP % len(_SHADES)]),
                fontsize=SMALL if size < 1.4 else NORMAL)
    warps = -(-math.prod(block) // WARP)
    note(axes, (right, top + block[1] * size + 0.8),
         f"the number in a cell is the thread's; a colour is a warp: {warps}", ha="left",
         fontsize=SMALL)
    note(axes, (left, top + grid[1] * cell + 0.8), "x runs to the right, y down", ha="left",
         fontsize=SMALL)
    return figure


def thread_grid_text(grid: tuple[int, int], block: tuple[int, int],
                     chosen: tuple[int, int]) -> str:
    """What the figure shows, in words. Errors as `thread_grid`.

    Examples
    --------
    >>> print(thread_grid_text((3, 2), (8, 8), (1, 0)))
    A grid of 3 x 2 blocks. Block (1, 0) is shown with its 8 x 8 threads, numbered row by row from \
0 to 63, in 2 warps of 32.
    """
    for name, size, most in (("grid", grid, 8), ("block", block, 16)):
        if not all(1 <= n <= most for n in size):
            raise ValueError(f"{name} must be 1 to {most} along each axis to be drawn; got "
                             f"{name}={size!r}")
    if not all(0 <= at < n for at, n in zip(chosen, grid, strict=True)):
        raise ValueError(f"chosen must be a block of the grid {grid}; got chosen={chosen!r}")
    threads = math.prod(block)
    return (f"A grid of {grid[0]} x {grid[1]} blocks. Block {chosen} is shown with its {block[0]} "
            f"x {block[1]} threads, numbered row by row from 0 to {threads - 1}, in "
            f"{-(-threads // WARP)} warps of {WARP}.")
