"""The roofline model: whether arithmetic or memory traffic limits a kernel.

Williams, Waterman and Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", Communications of the ACM 52(4), 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from distlearn.hardware.devices import DeviceSpec, Unit, device


@dataclass(frozen=True)
class Roofline:
    """Where a kernel stands under the roof of a device.

    Attributes
    ----------
    time_s : float
        The least time in seconds: the longer of computing and of moving, both at peak.
    bound : "compute" or "memory"
        Which of the two it is; "compute" if they are equal.
    intensity : float
        FLOP per byte of device memory traffic; infinite without traffic.
    ridge : float
        The intensity, FLOP per byte, at which the device's two limits meet.
    """

    time_s: float
    bound: Literal["compute", "memory"]
    intensity: float
    ridge: float


def roofline(device: DeviceSpec | str, flops: float, bytes: float, dtype: object,  # noqa: A002
             unit: Unit | None = None) -> Roofline:
    """The least time a kernel can take, ``max(flops / peak, bytes / bandwidth)``.

    Parameters
    ----------
    device : DeviceSpec or str
        A device or its name in the catalogue.
    flops, bytes : float
        FLOP that the kernel does, and bytes it moves between the device memory and the chip.
    dtype : str or numpy dtype
        Number format of the arithmetic.
    unit : "vector" or "matrix", optional
        The unit that does it. Default: the fastest that has the format; say "vector" for kernels
        that are not matrix products.

    Raises
    ------
    KeyError
        For a device name that is not in the catalogue.
    ValueError
        If flops or bytes is negative, not finite, not a number or if both are 0, or if the device
        has no rate for ``dtype`` on ``unit``.

    Examples
    --------
    A square float16 matrix product of size n does 2 n³ FLOP and moves at least 6 n² bytes. At
    n = 256 the memory limits an A100, at n = 4096 the tensor cores do:

    >>> [roofline("A100-SXM4-80GB", 2 * n**3, 6 * n**2, "float16").bound for n in (256, 4096)]
    ['memory', 'compute']
    """
    spec = _device(device)
    for name, value in (("flops", flops), ("bytes", bytes)):
        if isinstance(value, str | bool) or not math.isfinite(value) or value < 0:
            raise ValueError(f"{name} must be a finite number >= 0; got {name}={value!r}")
    if flops == 0 and bytes == 0:
        raise ValueError("flops and bytes are both 0: that is no kernel")
    peak = spec.peak_flops(dtype, unit)
    compute_s, memory_s = flops / peak, bytes / spec.memory_bytes_per_s
    return Roofline(
        time_s=max(compute_s, memory_s),
        bound="compute" if compute_s >= memory_s else "memory",
        intensity=flops / bytes if bytes else math.inf,
        ridge=peak / spec.memory_bytes_per_s,
    )


def _device(spec: DeviceSpec | str) -> DeviceSpec:
    return spec if isinstance(spec, DeviceSpec) else device(spec)
