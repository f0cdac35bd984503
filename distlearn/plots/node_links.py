"""How the devices of a node are joined: a mesh of thin links, or a switch."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from distlearn.hardware import Cluster
from distlearn.plots.boxes import NORMAL, SMALL, canvas, note
from distlearn.plots.palette import PALETTE, box_colour, ink

_LIGHT = PALETTE["light"]


def node_links(clusters: Sequence[Cluster]) -> Figure:
    """Draw one node of each of two clusters side by side; a line's width is its bandwidth.

    Returns
    -------
    Figure
        Its label is the text alternative, `node_links_text`.

    Raises
    ------
    ValueError
        For other than two clusters, or nodes of more than 16 devices.
    """
    text = node_links_text(clusters)
    figure, axes = canvas(6.0, 3.6, (24, 14.4))
    axes.set_aspect("equal")
    figure.set_label(text)
    for cluster, x in zip(clusters, (6.0, 18.0), strict=True):
        note(axes, (x, 0.8), f"{cluster.devices_per_node} x {cluster.spec.name}", bold=True)
        _node(axes, cluster, (x, 6.9))
        note(axes, (x, 13.3), _words(cluster), fontsize=SMALL)
    return figure


def node_links_text(clusters: Sequence[Cluster]) -> str:
    """What the figure shows, in words. Errors as `node_links`.

    Examples
    --------
    >>> print(node_links_text([Cluster("Ascend-910B2"), Cluster("A100-SXM4-80GB")]))
    8 x Ascend-910B2: 28 links, each pair has its own: 28 GB/s each way.
    8 x A100-SXM4-80GB: one switch, any pair has up to 300 GB/s each way.
    """
    if len(clusters) != 2 or any(cluster.devices_per_node > 16 for cluster in clusters):
        raise ValueError("node_links draws two clusters with nodes of at most 16 devices; got "
                         f"{[cluster.devices_per_node for cluster in clusters]}")
    return "\n".join(f"{c.devices_per_node} x {c.spec.name}: " + _words(c).replace("\n", ": ", 1)
                     .replace("\n", ", ") + "." for c in clusters)


def _speed(cluster: Cluster) -> float:
    return 1 / cluster.intra.beta_s_per_byte


def _words(cluster: Cluster) -> str:
    speed = f"{_speed(cluster) / 1e9:g} GB/s each way"
    if cluster.mesh:
        pairs = math.comb(cluster.devices_per_node, 2)
        return f"{pairs} links, each pair has its own\n{speed}"
    return f"one {cluster.joined_by}, any pair has up to {speed}"


def _node(axes: Axes, cluster: Cluster, centre: tuple[float, float]) -> None:
    count, radius = cluster.devices_per_node, 4.7
    spots = [(centre[0] + radius * math.sin(2 * math.pi * k / count),
              centre[1] - radius * math.cos(2 * math.pi * k / count)) for k in range(count)]
    width = max(0.6, _speed(cluster) / 60e9)
    pairs = ([(a, b) for k, a in enumerate(spots) for b in spots[k + 1:]] if cluster.mesh
             else [(spot, centre) for spot in spots])
    for a, b in pairs:
        axes.plot([a[0], b[0]], [a[1], b[1]], color=_LIGHT["muted"], linewidth=width, zorder=1)
    circles = [(spot, 0.85, str(k)) for k, spot in enumerate(spots)]
    if not cluster.mesh:
        circles.append((centre, 1.5, cluster.joined_by))
    for spot, size, text in circles:
        fill = box_colour("F" if size < 1 else "W")
        axes.add_patch(Circle(spot, size, facecolor=fill, edgecolor=_LIGHT["background"],
                              zorder=2))
        axes.text(*spot, text, ha="center", va="center", color=ink(fill), fontsize=NORMAL,
                  zorder=3)
