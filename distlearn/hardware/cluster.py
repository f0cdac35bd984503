"""Nodes of devices: how the devices of a node are joined, and the nodes to each other.

Within a node there is a switch (NVSwitch: any two devices talk at the full bandwidth), a mesh
(HCCS: a thin link of its own between any two devices), or the bus of the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from distlearn.hardware.devices import DeviceSpec, device
from distlearn.hardware.link import Link

Topology = Literal["switch", "mesh", "host"]


@dataclass(frozen=True)
class Cluster:
    """Equal nodes of equal devices.

    Attributes
    ----------
    device : DeviceSpec or str
        A device, or its name in the catalogue.
    nodes, devices_per_node : int
    topology : "switch", "mesh", "host" or None
        Within a node. None: what the device's links are made for; ``"host"`` where it has none.
    inter_bytes_per_s : float
        From each device to other nodes, one direction. Default: 25 GB/s, a network adapter of
        200 Gbit/s for each device, as in a DGX A100.
    intra_latency_s, inter_latency_s : float
        Before the first byte of a message arrives. Default: 0, bandwidth only.

    Raises
    ------
    ValueError
        Naming the argument that is out of range, or a topology that the device's links do not give.

    Examples
    --------
    Two 910B alone have one link of their mesh, two A100 have all of theirs:

    >>> for name in ("Ascend-910B2", "A100-SXM4-80GB"):
    ...     print(f"{Cluster(name, 1, 2).intra.time(28e9):.3f} s for 28 GB")
    1.000 s for 28 GB
    0.093 s for 28 GB
    """

    device: DeviceSpec | str
    nodes: int = 1
    devices_per_node: int = 8
    topology: Topology | None = None
    inter_bytes_per_s: float = 25e9
    intra_latency_s: float = 0.0
    inter_latency_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("nodes", "devices_per_node"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be an integer >= 1; got {name}={value!r}")
        if not self.inter_bytes_per_s > 0:
            raise ValueError("inter_bytes_per_s must be positive; got "
                             f"inter_bytes_per_s={self.inter_bytes_per_s!r}")
        links = self.spec.link_count
        if self.topology not in (None, "switch", "mesh", "host"):
            raise ValueError("topology must be 'switch', 'mesh', 'host' or None; got "
                             f"{self.topology!r}")
        if self.joined_by != "host" and not self.spec.link_bytes_per_s:
            raise ValueError(f"topology = {self.topology!r}: {self.spec.name} has no links to "
                             "other devices")
        if self.joined_by == "mesh" and (links is None or self.devices_per_node > links + 1):
            raise ValueError(f"devices_per_node = {self.devices_per_node}: a mesh of "
                             f"{self.spec.name} joins at most {(links or 0) + 1} devices")

    @property
    def spec(self) -> DeviceSpec:
        """The device."""
        return device(self.device) if isinstance(self.device, str) else self.device

    @property
    def size(self) -> int:
        """All devices."""
        return self.nodes * self.devices_per_node

    @property
    def joined_by(self) -> Topology:
        """The topology within a node."""
        if self.topology is not None:
            return self.topology
        if not self.spec.link_bytes_per_s:
            return "host"
        return "mesh" if self.spec.link_type == "HCCS" else "switch"

    @property
    def mesh(self) -> bool:
        """Whether each device has a link of its own to each other device of its node."""
        return self.joined_by == "mesh"

    @property
    def intra(self) -> Link:
        """From a device to one other device of its node: in a mesh, the one link between them."""
        if self.joined_by == "host":
            return Link.from_bandwidth(self.spec.host_bytes_per_s, self.intra_latency_s)
        links = self.spec.link_count if self.mesh else 1
        return Link.from_bandwidth(self.spec.link_bytes_per_s / (links or 1), self.intra_latency_s)

    @property
    def inter(self) -> Link:
        """From a device to other nodes."""
        return Link.from_bandwidth(self.inter_bytes_per_s, self.inter_latency_s)
