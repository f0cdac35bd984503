"""The device catalogue: what an accelerator computes, holds and moves; a source per figure."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

from distlearn.hardware.compute_capability import SMLimits, sm_limits
from distlearn.hardware.dtypes import dtype_name
from distlearn.hardware.occupancy import Occupancy, occupancy

Unit = Literal["vector", "matrix"]


@dataclass(frozen=True)
class Rate:
    """How fast one kind of unit computes in one number format.

    Attributes
    ----------
    unit : "vector" or "matrix"
        CUDA cores or the vector cores of an Ascend; tensor cores or the cube cores.
    dtype : str
        Format of the operands, one of ``distlearn.hardware.SIZES``.
    flop_per_clock : int
        FLOP of one core (SM, AI core) per clock; a multiply-add is 2.
    clock_hz : float
        Boost clock of this unit in this format.
    peak_flops : float
        FLOP/s of the whole device as published, dense. It equals ``cores * flop_per_clock *
        clock_hz`` but for the rounding of the document, and what ``doubts`` of the device says.
    """

    unit: Unit
    dtype: str
    flop_per_clock: int
    clock_hz: float
    peak_flops: float


@dataclass(frozen=True)
class DeviceSpec:
    """One accelerator, as its vendor publishes it. Peaks are ceilings, not what a program reaches.

    Attributes
    ----------
    name, vendor, architecture : str
    core : str
        What the vendor calls a core: ``SM`` or ``AI core``.
    compute_capability : str or None
        NVIDIA only, such as ``"8.0"``.
    cores : int
        SMs or AI cores that are switched on.
    rates : tuple of Rate
        FLOP/s per unit and number format.
    l2_bytes : int
        Level-2 cache.
    l2_bytes_per_clock : int or None
        What all cores together read from it per clock, where the vendor says.
    memory_bytes : int
        Device memory.
    memory_type : str
    memory_bytes_per_s : float
        Bandwidth of the device memory.
    link_type : str
    link_count : int or None
        Links to other devices, where the vendor says.
    link_bytes_per_s : float
        To the other devices of the node (scale-up), one direction, all links together; 0 if there
        are none, ``link_type`` then is ``"none"``.
    host_type : str
    host_bytes_per_s : float
        To the host, one direction.
    sources, doubts : mapping of str to str
        Per figure, where it is from, and what speaks against it. A rate's figure is called
        ``"unit dtype"``, such as ``"matrix float16"``.

    Examples
    --------
    >>> a100 = device("A100-SXM4-80GB")
    >>> a100.peak_flops("float16") / 1e12, a100.peak_flops("float32") / 1e12
    (312.0, 19.5)
    >>> a100.sources["memory_bytes_per_s"]
    'NVIDIA A100 Tensor Core GPU, datasheet, 2021 (A100 80GB SXM)'
    """

    name: str
    vendor: str
    architecture: str
    core: str
    compute_capability: str | None
    cores: int
    rates: tuple[Rate, ...] = field(repr=False)
    l2_bytes: int
    l2_bytes_per_clock: int | None
    memory_bytes: int
    memory_type: str
    memory_bytes_per_s: float
    link_type: str
    link_count: int | None
    link_bytes_per_s: float
    host_type: str
    host_bytes_per_s: float
    sources: Mapping[str, str] = field(repr=False, compare=False)
    doubts: Mapping[str, str] = field(repr=False, compare=False)

    @property
    def clock_hz(self) -> float:
        """Boost clock of the cores; their matrix units may run at one of their own (``rates``)."""
        return self.rate("float32", "vector").clock_hz

    @property
    def sm(self) -> SMLimits:
        """What one SM holds: registers, shared memory, warps, blocks.

        Raises
        ------
        ValueError
            If the device has no SMs.
        """
        if self.compute_capability is None:
            raise ValueError(f"{self.name} has no SMs; its cores are of another kind: {self.core}")
        return sm_limits(self.compute_capability)

    def occupancy(self, *, threads_per_block: int, registers_per_thread: int,
                  shared_bytes_per_block: int = 0) -> Occupancy:
        """Blocks and warps of a kernel that one SM holds, as `distlearn.hardware.occupancy`."""
        return occupancy(compute_capability=self.sm.compute_capability,
                         threads_per_block=threads_per_block,
                         registers_per_thread=registers_per_thread,
                         shared_bytes_per_block=shared_bytes_per_block)

    def rate(self, dtype: object, unit: Unit | None = None) -> Rate:
        """The rate of a number format on one kind of unit, or on the fastest that has it.

        Raises
        ------
        ValueError
            If the device does not compute in this format (on this unit).
        """
        name = dtype_name(dtype)
        if unit not in (None, "vector", "matrix"):
            raise ValueError(f"unit must be 'vector', 'matrix' or None; got {unit!r}")
        found = [rate for rate in self.rates if rate.dtype == name and unit in (None, rate.unit)]
        if not found:
            where = f" {unit}" if unit else ""
            has = ", ".join(dict.fromkeys(r.dtype for r in self.rates if unit in (None, r.unit)))
            raise ValueError(f"{self.name} has no{where} rate for {name}; it has {has}")
        return max(found, key=lambda rate: rate.peak_flops)

    def peak_flops(self, dtype: object, unit: Unit | None = None) -> float:
        """Peak FLOP/s in a number format, dense; arguments and errors as `rate`."""
        return self.rate(dtype, unit).peak_flops


class UnknownDeviceError(KeyError):
    """A name that is not in the catalogue; its text reads as written, unlike KeyError's."""

    def __str__(self) -> str:
        return str(self.args[0])


def device(name: str) -> DeviceSpec:
    """A device of the catalogue by name; case does not matter.

    Raises
    ------
    KeyError
        For an unknown name, listing near matches.

    Examples
    --------
    >>> device("A100-SXM4-80GB").cores
    108
    >>> device("910B2")
    Traceback (most recent call last):
    distlearn.hardware.devices.UnknownDeviceError: no device is called '910B2'; \
did you mean 'Ascend-910B2'?
    """
    catalogue = {spec.name.lower(): spec for spec in devices()}
    key = str(name).lower()
    if key in catalogue:
        return catalogue[key]
    near = [known for known in catalogue if key and key in known]
    near += [k for k in get_close_matches(key, catalogue, n=3, cutoff=0.5) if k not in near]
    if near:
        hint = f"did you mean {' or '.join(repr(catalogue[k].name) for k in near[:3])}?"
    else:
        hint = "devices are " + ", ".join(spec.name for spec in devices())
    raise UnknownDeviceError(f"no device is called {name!r}; {hint}")


@cache
def devices() -> tuple[DeviceSpec, ...]:
    """Every device of the catalogue, in the order of the file."""
    text = files("distlearn.hardware").joinpath("devices.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    return tuple(_read(entry, data["sources"]) for entry in data["device"])


# Figure in the file -> attribute, and how many of the attribute's unit one is.
_FIGURES: dict[str, tuple[str, int | None]] = {
    "compute_capability": ("compute_capability", None),
    "cores": ("cores", 1),
    "l2_mib": ("l2_bytes", 2**20),
    "l2_bytes_per_clock": ("l2_bytes_per_clock", 1),
    "memory_gib": ("memory_bytes", 2**30),
    "memory_type": ("memory_type", None),
    "memory_gb_per_s": ("memory_bytes_per_s", 10**9),
    "link_type": ("link_type", None),
    "link_count": ("link_count", 1),
    "link_gb_per_s": ("link_bytes_per_s", 10**9),
    "host_type": ("host_type", None),
    "host_gb_per_s": ("host_bytes_per_s", 10**9),
}


def _read(entry: dict[str, Any], documents: dict[str, str]) -> DeviceSpec:
    values: dict[str, Any] = {"compute_capability": None, "l2_bytes_per_clock": None,
                              "link_count": None}
    sources: dict[str, str] = {}
    doubts: dict[str, str] = {}
    for key, figure in entry.items():
        if key == "rates":
            for row in figure:
                name = f"{row['unit']} {row['dtype']}"
                sources[name] = documents[row["source"]]
                if "doubt" in row:
                    doubts[name] = row["doubt"]
        elif key in _FIGURES:
            name, scale = _FIGURES[key]
            values[name] = figure["value"] if scale is None else figure["value"] * scale
            sources[name] = documents[figure["source"]]
            if "doubt" in figure:
                doubts[name] = figure["doubt"]
        else:
            values[key] = figure
    rates = tuple(
        Rate(row["unit"], dtype_name(row["dtype"]), row["flop_per_clock"],
             row["clock_mhz"] * 1e6, row["tflops"] * 1e12)
        for row in entry["rates"]
    )
    return DeviceSpec(**{**values, "rates": rates}, sources=MappingProxyType(sources),
                      doubts=MappingProxyType(doubts))
