"""Time of a collective against the size of its buffer, an algorithm a line, in the α-β model."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from distlearn.hardware import Link, Network, collective_time
from distlearn.plots.palette import PALETTE
from distlearn.plots.picture import Picture

_LIGHT = PALETTE["light"]
_COLOURS = (_LIGHT["F"], _LIGHT["B"], _LIGHT["W"], _LIGHT["I"], _LIGHT["muted"])
_MARKERS, _DASHES = "os^Dv", ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def crossovers(algorithms: Sequence[str], p: int, smallest: float, largest: float,
               link: Link | Network, operation: str = "all_reduce") -> list[tuple[float, str]]:
    """Where the fastest algorithm changes, by the formula `hardware.collective_time`.

    Parameters
    ----------
    algorithms : sequence of str
    p : int
        Ranks.
    smallest, largest : float
        Range of buffer sizes to search, bytes.
    link : Link or Network
    operation : str

    Returns
    -------
    list of (float, str)
        From which size on, in bytes, which algorithm is the fastest. The first entry is
        ``(smallest, ...)``. Where two are equally fast, the one named first counts.

    Raises
    ------
    ValueError
        Unless ``0 < smallest < largest``.

    Examples
    --------
    >>> link = Link(alpha_s=1e-6, beta_s_per_byte=1e-9)
    >>> found = crossovers(["recursive_doubling", "ring"], 8, 1, 1e9, link)
    >>> [(round(n), name) for n, name in found]     # 11 α = 1.25 n β
    [(1, 'recursive_doubling'), (8800, 'ring')]
    """
    if not 0 < smallest < largest:
        raise ValueError(f"needs 0 < smallest < largest; got smallest={smallest}, "
                         f"largest={largest}")

    def fastest(n: float) -> str:
        times = {name: collective_time(operation, n, p, link, name) for name in algorithms}
        least = min(times.values())
        return next(name for name in algorithms if times[name] <= least * (1 + 1e-12))

    grid = np.geomspace(smallest, largest, 400)
    found = [(float(smallest), fastest(float(smallest)))]
    for low, high in itertools.pairwise(grid.tolist()):
        before, after = found[-1][1], fastest(float(high))
        if after == before:
            continue
        for _ in range(60):  # halve the interval, on the logarithmic axis
            middle = float(np.sqrt(low * high))
            low, high = (middle, high) if fastest(middle) == before else (low, middle)
        found.append((float(high), after))
    return found


def collective_cost(algorithms: Sequence[str], p: int, link: Link | Network, *,
                    smallest: float = 64, largest: float = 2**30, operation: str = "all_reduce",
                    title: str | None = None) -> Figure:
    """Draw predicted time against buffer size, and mark where the fastest algorithm changes.

    Parameters
    ----------
    algorithms : sequence of str
        One to five of ``distlearn.comm.ALGORITHMS[operation]``.
    p, smallest, largest, link, operation
        As in `crossovers`.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
        Log-log; a line per algorithm, a dotted vertical line per crossover.

    Raises
    ------
    ValueError
        For no algorithm, or more than five; as `crossovers` and `hardware.collective_time`.
    """
    if not 1 <= len(algorithms) <= len(_COLOURS):
        raise ValueError(f"collective_cost draws 1 to {len(_COLOURS)} algorithms; "
                         f"got {len(algorithms)}")
    changes = crossovers(algorithms, p, smallest, largest, link, operation)[1:]
    figure = Picture(7.2, 3.9)
    axes = figure.add_subplot()
    sizes = np.geomspace(smallest, largest, 200)
    for k, name in enumerate(algorithms):
        times = [collective_time(operation, float(n), p, link, name) for n in sizes]
        axes.plot(sizes, times, label=name.replace("_", " "), color=_COLOURS[k],
                  linestyle=_DASHES[k], marker=_MARKERS[k], markevery=(4 * k, 25), markersize=4.5,
                  linewidth=1.8)
    for n, name in changes:
        axes.axvline(n, color=_LIGHT["muted"], linestyle=":", linewidth=1.2)
        axes.annotate(f"from {size_text(n)}: {name.replace('_', ' ')}", (n, 0.98),
                      xycoords=("data", "axes fraction"), xytext=(-3, 0),
                      textcoords="offset points", rotation=90, ha="right", va="top", fontsize=8,
                      color=_LIGHT["text"])
    axes.set(xscale="log", yscale="log", xlim=(smallest, largest),
             xlabel=f"buffer of each of the {p} ranks", ylabel=f"time of one {operation}")
    axes.xaxis.set_major_locator(LogLocator(base=2, subs=(1.0,), numticks=9))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: size_text(n)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda t, _: _time_text(t)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.grid(color=_LIGHT["grid"], linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(_LIGHT["grid"])
    axes.tick_params(which="both", color=_LIGHT["grid"])
    axes.legend(frameon=False, loc="upper left")
    if title:
        figure.suptitle(title, fontsize=11, fontweight="bold")
    return figure


def size_text(nbytes: float) -> str:
    """A number of bytes for an axis.

    Examples
    --------
    >>> size_text(64), size_text(2**20), size_text(56_320), size_text(1.2 * 2**20)
    ('64 B', '1 MiB', '55 KiB', '1.2 MiB')
    """
    for exponent, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if nbytes >= 2**exponent:
            return f"{nbytes / 2**exponent:.3g} {unit}"
    return f"{nbytes:.3g} B"


def _time_text(seconds: float) -> str:
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= scale * (1 - 1e-9):
            return f"{seconds / scale:g} {unit}"
    return f"{seconds * 1e6:g} µs"
