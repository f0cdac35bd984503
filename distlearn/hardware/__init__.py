"""Devices and their limits: the catalogue, the roofline, how much work a kernel is."""

from __future__ import annotations

from distlearn.hardware.ai_core import AICore, ai_core
from distlearn.hardware.cluster import Cluster
from distlearn.hardware.collectives import (
    collective_bytes,
    collective_messages,
    collective_time,
)
from distlearn.hardware.compute_capability import SMLimits, sm_limits
from distlearn.hardware.devices import DeviceSpec, Rate, device, devices
from distlearn.hardware.dtypes import dtype_name, itemsize
from distlearn.hardware.link import Link, Network, TwoLevelNetwork
from distlearn.hardware.memory_hierarchy import MemoryLevel, memory_hierarchy
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
    "AICore",
    "BestBlock",
    "Cluster",
    "DeviceSpec",
    "GlobalAccess",
    "Link",
    "MemoryLevel",
    "Network",
    "Occupancy",
    "Rate",
    "Roofline",
    "SMLimits",
    "SharedAccess",
    "TwoLevelNetwork",
    "Work",
    "adam_step",
    "ai_core",
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
    "memory_hierarchy",
    "occupancy",
    "roofline",
    "shared_access",
    "sm_limits",
]
