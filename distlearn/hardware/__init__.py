"""Devices and their limits: the catalogue, the roofline, how much work a kernel is."""

from __future__ import annotations

from distlearn.hardware.collectives import (
    collective_bytes,
    collective_messages,
    collective_time,
)
from distlearn.hardware.compute_capability import SMLimits, sm_limits
from distlearn.hardware.devices import DeviceSpec, Rate, device, devices
from distlearn.hardware.dtypes import dtype_name, itemsize
from distlearn.hardware.link import Link, Network, TwoLevelNetwork
from distlearn.hardware.memory_system import (
    GlobalAccess,
    SharedAccess,
    global_access,
    shared_access,
)
from distlearn.hardware.occupancy import (
    BestBlock,
    Occupancy,
    best_block,
    dynamic_shared_room,
    occupancy,
)
from distlearn.hardware.roofline import Roofline, roofline
from distlearn.hardware.work import Work, adam_step, gemm, layer_norm

__all__ = [
    "BestBlock",
    "DeviceSpec",
    "GlobalAccess",
    "Link",
    "Network",
    "Occupancy",
    "Rate",
    "Roofline",
    "SMLimits",
    "SharedAccess",
    "TwoLevelNetwork",
    "Work",
    "adam_step",
    "best_block",
    "collective_bytes",
    "collective_messages",
    "collective_time",
    "device",
    "devices",
    "dtype_name",
    "dynamic_shared_room",
    "gemm",
    "global_access",
    "itemsize",
    "layer_norm",
    "occupancy",
    "roofline",
    "shared_access",
    "sm_limits",
]
