"""Closed queueing networks: what a fixed number of customers get done per clock.

Mean value analysis (Reiser and Lavenberg, Journal of the ACM 27(2), 1980; as a fixed point: Bard,
and Schweitzer, 1979) for customers that walk from one server to the next, also for those that do
two walks at the same time (a fork and a join: Varki, SIGMETRICS 1999), and the machine repairman's
birth and death chain for those that alternate between a wait and one such network (its
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


def throughput(customers: int, stations: Sequence[Station], wait: float = 0.0,
               beside: Sequence[Station] = (), beside_wait: float = 0.0) -> float:
    """Customers served per clock.

    Parameters
    ----------
    customers : int
        How many there are, at least one; where a station has copies, each has its share of them.
    stations : sequence of Station
        Visited one after the other.
    wait : float
        Clocks that a customer spends elsewhere, with no one in front, before it comes back.
    beside : sequence of Station
        What a customer has done at the same time, also one after the other. It waits for the later
        of both, as two exponentially distributed times have it.
    beside_wait : float
        Clocks with no one in front that come to those.

    >>> round(throughput(1, [Station(10)], 90), 4), round(throughput(1000, [Station(10)], 90), 4)
    (0.01, 0.1)
    >>> round(throughput(1, [Station(10)], beside=[Station(10)]), 4)
    0.0667
    """
    every = (*stations, *beside)
    queues, rate = [customers / len(every)] * len(every), 0.0
    # Of those who belong to the same copies, an arriving customer finds all but itself.
    others = [max(0.0, 1 - copies / customers) / copies for _, copies in every]
    for _ in range(STEPS):
        responses = [service * (1 + queue * part) for (service, _), queue, part in
                     zip(every, queues, others, strict=True)]
        first = sum(responses[:len(stations)])
        second = sum(responses[len(stations):]) + beside_wait
        rate = customers / (wait + _later(first, second))
        queues = [rate * response for response in responses]
    return rate


def _later(first: float, second: float) -> float:
    """Mean of the larger of two exponentially distributed times with these means."""
    earlier = first * second / (first + second) if first and second else 0.0
    return first + second - earlier


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
