"""How figures write numbers. The explorer's JavaScript writes them the same way, to the letter."""

from __future__ import annotations

import math


def number(x: float, digits: int = 4) -> str:
    """A number with ``digits`` significant digits and no trailing zeros.

    Examples
    --------
    >>> [number(x) for x in (33.0, 2 / 3, 0.1 + 0.2, 1234567.0, 2.5e-7)]
    ['33', '0.6667', '0.3', '1234567', '2.5e-7']
    """
    if x < 0:
        return "-" + number(-x, digits)
    if x == 0:
        return "0"
    e = exponent(x)
    if not -4 <= e < 9:
        return f"{fixed(x / power_of_ten(e), digits - 1)}e{e}"
    return fixed(x, max(0, digits - 1 - e))


def percent(x: float) -> str:
    """A share as percent, one decimal.

    Examples
    --------
    >>> percent(3 / 11)
    '27.3 %'
    """
    return fixed(100 * x, 1) + " %"


def fixed(x: float, decimals: int) -> str:
    """``x >= 0`` rounded to at most ``decimals`` decimals, halves up.

    Examples
    --------
    >>> fixed(0.125, 2), fixed(7.0, 2)
    ('0.13', '7')
    """
    scale = round(power_of_ten(decimals))
    # The nudge makes a half that carries rounding noise go up as well, whoever summed it.
    whole, part = divmod(math.floor(x * scale + 0.5 + 1e-7), scale)
    if part == 0:
        return str(whole)
    return f"{whole}.{part:0{decimals}d}".rstrip("0")


def exponent(x: float) -> int:
    """The e with ``10**e <= x < 10**(e+1)``, for ``x > 0``.

    Examples
    --------
    >>> exponent(0.02), exponent(1000.0)
    (-2, 3)
    """
    e = 0
    while x >= power_of_ten(e + 1):
        e += 1
    while x < power_of_ten(e):
        e -= 1
    return e


def power_of_ten(e: int) -> float:
    """The double nearest to ``10**e``, 0 or infinite at the ends; ``pow`` may miss it."""
    return _POWERS[e]


def ticks(span: float, most: float) -> list[float]:
    """Round times from 0 to ``span``, at most ``most`` steps of 1, 2 or 5 times a power of ten.

    Examples
    --------
    >>> ticks(33, 8)
    [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]
    """
    wanted = span / most
    base = power_of_ten(exponent(wanted))
    step = next(factor * base for factor in (1, 2, 5, 10) if factor * base >= wanted)
    count = math.floor(span / step + 1e-7)
    return [k * step for k in range(count + 1)]


_POWERS = {e: float(f"1e{e}") for e in range(-330, 331)}
