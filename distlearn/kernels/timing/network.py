"""Closed queueing networks: what a fixed number of customers get done per clock.

Mean value analysis (Reiser and Lavenberg, Journal of the ACM 27(2), 1980; as a fixed point: Bard,
and Schweitzer, 1979) for customers that walk from one server to the next, and the machine
repairman's birth and death chain for those that alternate between a wait and one such network (its
flow-equivalent server: Chandy, Herzog and Woo, IBM Journal of Research and Development 19(1),
1975).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

STEPS = 100  # towards the fixed point


class Station(NamedTuple):
    """Something that serves one customer after another.

    Attributes
    ----------
    service : float
        Clocks that one customer needs of it.
    copies : int
        There are so many, and each customer belongs to one of them.
    """

    service: float
    copies: int = 1


def throughput(customers: int, stations: Sequence[Station], wait: float = 0.0) -> float:
    """Customers served per clock.

    Parameters
    ----------
    customers : int
        How many there are, at least one; where a station has copies, each has its share of them.
    wait : float
        Clocks that a customer spends elsewhere, with no one in front, before it comes back.

    >>> round(throughput(1, [Station(10)], 90), 4), round(throughput(1000, [Station(10)], 90), 4)
    (0.01, 0.1)
    """
    queues, rate = [customers / len(stations)] * len(stations), 0.0
    # Of those who belong to the same copies, an arriving customer finds all but itself.
    others = [max(0.0, 1 - copies / customers) / copies for _, copies in stations]
    for _ in range(STEPS):
        responses = [service * (1 + queue * part) for (service, _), queue, part in
                     zip(stations, queues, others, strict=True)]
        rate = customers / (wait + sum(responses))
        queues = [rate * response for response in responses]
    return rate


def alternating(rates: Sequence[float], wait: float) -> float:
    """Customers per clock that alternate between a wait and a server as fast as ``rates`` says.

    Parameters
    ----------
    rates : sequence of float
        Customers per clock if 0, 1, ... are at the server; as many as there are, and none.

    >>> round(alternating([0, 0.1, 0.1], 90), 4)
    0.0198
    """
    if not wait:
        return rates[-1]
    customers, weight, total, served = len(rates) - 1, 1.0, 1.0, 0.0
    for n in range(1, customers + 1):
        weight *= (customers - n + 1) / wait / rates[n]
        total += weight
        served += weight * rates[n]
    return served / total
