"""Number formats of accelerators: one name each, its short form, and its size."""

from __future__ import annotations

SIZES = {
    "float64": 8,
    "float32": 4,
    "tf32": 4,  # stored as float32, multiplied with 10 mantissa bits
    "float16": 2,
    "bfloat16": 2,
    "float8": 1,
    "int8": 1,
}
_SHORT = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16",
          "fp8": "float8"}


def dtype_name(dtype: object) -> str:
    """The catalogue's name of a number format, from that name, a short form or a numpy dtype.

    Raises
    ------
    ValueError
        For a format that is not one of ``SIZES``.

    Examples
    --------
    >>> import numpy as np
    >>> dtype_name("bf16"), dtype_name(np.float16), dtype_name(np.dtype("float64"))
    ('bfloat16', 'float16', 'float64')
    """
    text = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or str(dtype)
    name = _SHORT.get(text, text)
    if name not in SIZES:
        raise ValueError(f"dtype must be one of {', '.join(SIZES)} (or {', '.join(_SHORT)}); "
                         f"got {dtype!r}")
    return name


def itemsize(dtype: object) -> int:
    """Bytes of one number of this format in memory.

    Examples
    --------
    >>> itemsize("bfloat16"), itemsize("tf32")
    (2, 4)
    """
    return SIZES[dtype_name(dtype)]
