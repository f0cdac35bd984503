"""The core of an Ascend: one cube unit for matrices, vector units, scalar unit, and their memories.

The pipes run side by side, each in order. On the 910B the cube unit and the two vector units of a
core are cores of their own, with nothing but global memory between them (the split architecture).

======  =================================================  ================
pipe    what it does                                       from, to
======  =================================================  ================
MTE2    copies in                                          global → L1, UB
MTE1    loads fractals                                     L1 → L0A, L0B
M       multiplies 16 x 16 x 16 and accumulates            L0A, L0B → L0C
FIXP    copies results out, casts, scales, applies relu    L0C → global, L1
MTE3    copies out                                         UB → global
V       vector instructions                                UB → UB
S       control flow, addresses                            --
======  =================================================  ================
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from distlearn.hardware.devices import DeviceSpec, device
from distlearn.hardware.dtypes import dtype_name, itemsize

PIPES = ("MTE2", "MTE1", "M", "FIXP", "MTE3", "V", "S")
EVENT_IDS = 8
"""Event flags between each ordered pair of pipes."""


@dataclass(frozen=True)
class AICore:
    """One AI core.

    Attributes
    ----------
    name : str
    clock_hz : float
    vector_cores : int
        Vector cores beside one cube core.
    split : bool
        Whether they are cores of their own.
    buffers : mapping of str to int
        Bytes of L0A, L0B, L0C, L1, BT (bias table) and FB (fixpipe parameters) of a cube core, of
        UB of a vector core.
    rates : mapping of str to float
        Bytes per clock of ``"L1-L0A"``, ``"L1-L0B"``, ``"global-L1"`` (from the level-2 cache) and
        ``"L0C-global"``.
    source, doubt : str
    """

    name: str
    clock_hz: float
    vector_cores: int
    split: bool
    buffers: Mapping[str, int] = field(hash=False)
    rates: Mapping[str, float] = field(hash=False)
    source: str = field(repr=False, compare=False)
    doubt: str = field(repr=False, compare=False)

    def fractal(self, dtype: object) -> tuple[int, int]:
        """Rows and columns of a fractal of L1 and L0A, 16 rows of 32 bytes; L0B's are turned.

        Examples
        --------
        >>> [ai_core("Ascend-910B2").fractal(dtype) for dtype in ("float16", "int8", "float32")]
        [(16, 16), (16, 32), (16, 8)]
        """
        return 16, 32 // itemsize(dtype)

    def cube_clocks(self, m: int, n: int, k: int, dtype: object) -> int:
        """Clocks for (m, k) @ (k, n): one per 16 x 16 x 32 bytes; float32 runs at half of that.

        Raises
        ------
        ValueError
            For a format that the cube unit does not multiply.

        Examples
        --------
        >>> ai_core("Ascend-910B2").cube_clocks(128, 128, 128, "float16")
        512
        """
        name = dtype_name(dtype)
        if name not in ("float16", "bfloat16", "float32", "int8"):
            raise ValueError(f"dtype must be float16, bfloat16, float32 or int8; got {dtype!r}")
        rows, depth = self.fractal(name)
        steps = -(-m // rows) * -(-n // rows) * -(-k // depth)
        return steps * 2 if name == "float32" else steps


def ai_core(spec: DeviceSpec | str) -> AICore:
    """The core of an Ascend of the catalogue.

    Raises
    ------
    KeyError
        For a name that is not in the catalogue.
    ValueError
        For a device that has no AI cores, with those that have.

    Examples
    --------
    >>> core = ai_core("Ascend-910B2")
    >>> {name: size // 1024 for name, size in core.buffers.items()}
    {'L0A': 64, 'L0B': 64, 'L0C': 128, 'L1': 512, 'UB': 192, 'BT': 1, 'FB': 7}
    """
    spec = device(spec) if isinstance(spec, str) else spec
    data = _data()
    for entry in data["core"]:
        if spec.name in entry["devices"]:
            return _read(entry, data["sources"], spec)
    known = [name for entry in data["core"] for name in entry["devices"]]
    raise ValueError(f"{spec.name} has no AI cores; {', '.join(known)} have")


def _read(entry: dict[str, Any], documents: dict[str, str], spec: DeviceSpec) -> AICore:
    sizes = {"L0A": "l0a", "L0B": "l0b", "L0C": "l0c", "L1": "l1", "UB": "ub",
             "BT": "bias_table", "FB": "fixpipe_buffer"}
    rates = {"L1-L0A": "l1_to_l0a", "L1-L0B": "l1_to_l0b", "global-L1": "global_read",
             "L0C-global": "global_write"}
    return AICore(
        entry["name"], spec.rate("float16", "matrix").clock_hz, entry["vector_cores"],
        entry["split"], MappingProxyType({k: entry[v] * 1024 for k, v in sizes.items()}),
        MappingProxyType({k: float(entry[v]) for k, v in rates.items()}),
        documents[entry["source"]], entry.get("doubt", ""))


@cache
def _data() -> dict[str, Any]:
    text = files("distlearn.hardware").joinpath("ai_cores.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
