"""Links between devices in the α-β model: a message of n bytes takes α + n β seconds.

Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2", Parallel Computing
20(3), 1994.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Link:
    """A connection in the α-β model.

    Attributes
    ----------
    alpha_s : float
        Seconds before the first byte arrives.
    beta_s_per_byte : float
        Seconds per byte: one over the bandwidth.

    Examples
    --------
    >>> round(Link.from_bandwidth(25e9, latency_s=5e-6).time(1_000_000), 9)
    4.5e-05
    """

    alpha_s: float
    beta_s_per_byte: float

    def __post_init__(self) -> None:
        if self.alpha_s < 0 or self.beta_s_per_byte < 0:
            raise ValueError(f"alpha_s = {self.alpha_s} and beta_s_per_byte = "
                             f"{self.beta_s_per_byte} must not be negative")

    @classmethod
    def from_bandwidth(cls, bytes_per_s: float, latency_s: float = 0.0) -> Link:
        """A link of this bandwidth and latency."""
        if bytes_per_s <= 0:
            raise ValueError(f"bytes_per_s = {bytes_per_s} must be positive")
        return cls(latency_s, 1 / bytes_per_s)

    def time(self, nbytes: float, messages: float = 1) -> float:
        """Seconds for ``messages`` messages, one after the other, of ``nbytes`` in all."""
        return messages * self.alpha_s + nbytes * self.beta_s_per_byte


class Network(Protocol):
    """What `collective_time` needs to know of a cluster."""

    @property
    def intra(self) -> Link:
        """Link of each device to those of its own node."""

    @property
    def inter(self) -> Link:
        """Link of each device to other nodes."""

    @property
    def devices_per_node(self) -> int:
        """Consecutive ranks that share a node."""


@dataclass(frozen=True)
class TwoLevelNetwork:
    """Nodes of ``devices_per_node`` devices: one link within the node, another between nodes."""

    intra: Link
    inter: Link
    devices_per_node: int

    def __post_init__(self) -> None:
        if self.devices_per_node < 1:
            raise ValueError(f"devices_per_node = {self.devices_per_node} must be at least 1")
