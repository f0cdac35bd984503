"""The answer of a rank program: what every rank returned, and what they sent each other for it.

A run, as `rank_program` describes it, is a dict with ``results``, ``sent``, ``to`` and ``groups``.
What a case wants is a dict too: ``results``, and any of these rules about the traffic, in bytes:

``total``
    What all ranks together send.
``most``
    What no rank may exceed.
``to``
    For each rank, the ranks that it may send messages to.
``between``
    ``[k, bytes]``: with nodes of k ranks each, what the groups with ranks of several nodes may send
    in all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from distlearn.grading.answer import Answer, View
from distlearn.grading.array_answer import Array


@dataclass(frozen=True)
class OnRanks(Answer):
    """One answer a rank, and rules about the traffic.

    Attributes
    ----------
    answer : Answer
        What each rank has to return.
    """

    answer: Answer = field(default_factory=Array)

    @property
    def noun(self) -> str:
        """See `Answer`."""
        return f"{self.answer.noun} on every rank"

    def misfit(self, got: Any) -> str:
        """See `Answer`."""
        if not _is_run(got):
            return "What the ranks returned and sent could not be read."
        for rank, result in enumerate(got["results"]):
            wrong = self.answer.misfit(result)
            if wrong:
                return f"Rank {rank}: {wrong[0].lower()}{wrong[1:]}"
        return ""

    def same(self, got: Any, wanted: Any) -> bool:
        """Whether results and traffic are right; ``wanted`` may also be another run."""
        if len(got["results"]) != len(wanted["results"]) or not all(self._right(got, wanted)):
            return False
        if "sent" in wanted:
            return all(got[key] == wanted[key] for key in ("sent", "to", "groups"))
        return next(_breaches(got, wanted), None) is None

    def hint(self, got: Any, wanted: Any) -> str:
        """See `Answer`."""
        if len(got["results"]) != len(wanted["results"]):
            return "That is not one result a rank."
        right = self._right(got, wanted)
        if all(right):
            return next(_breaches(got, wanted))[1]
        first = right.index(False)
        inner = self.answer.hint(got["results"][first], wanted["results"][first])
        if any(right):
            good = _ranks([rank for rank, ok in enumerate(right) if ok])
            bad = _ranks([rank for rank, ok in enumerate(right) if not ok])
            return f"Right on {good}, wrong on {bad}. {inner}".strip()
        return inner

    def view(self, got: Any, wanted: Any) -> View:
        """The first result that is wrong; if all are right, the traffic that is not."""
        if got is None:
            return View(None, wanted["results"])
        if len(got["results"]) != len(wanted["results"]):
            return View(got["results"], wanted["results"])
        right = self._right(got, wanted)
        if all(right):
            return next(_breaches(got, wanted))[0]
        rank = right.index(False)
        inner = self.answer.view(got["results"][rank], wanted["results"][rank])
        part = f"{inner.part} of the" if inner.part else "the"
        return View(inner.got, inner.wanted, f"{part} result of rank {rank}")

    def _right(self, got: Any, wanted: Any) -> list[bool]:
        pairs = zip(got["results"], wanted["results"], strict=True)
        return [self.answer.same(a, b) for a, b in pairs]


def _breaches(got: Any, wanted: Any) -> Iterator[tuple[View, str]]:
    """The rules of traffic that are broken: what to show, and in words."""
    for rank, allowed in enumerate(wanted.get("to", [])):
        if not set(got["to"][rank]) <= set(allowed):
            yield (View(got["to"][rank], allowed, f"the ranks to which rank {rank} sends"),
                   "The results are right, but messages go to other ranks than they may.")
    if "total" in wanted and sum(got["sent"]) != wanted["total"]:
        yield (View(sum(got["sent"]), wanted["total"], "bytes sent by all ranks together"),
               "The results are right, but it takes another number of bytes than it should.")
    if "most" in wanted and max(got["sent"]) > wanted["most"]:
        busiest = got["sent"].index(max(got["sent"]))
        yield (View(max(got["sent"]), wanted["most"],
                    f"bytes sent by rank {busiest}; wanted: at most"),
               "The results are right, but one rank sends more than it has to; the others wait.")
    if "between" in wanted:
        per_node, limit = wanted["between"]
        count = sum(number for group, number in got["groups"]
                    if len({rank // per_node for rank in group}) > 1)
        if count > limit:
            yield (View(count, limit, "bytes sent between nodes; wanted: at most"),
                   "The results are right, but too much is sent between the nodes.")


def _is_run(got: Any) -> bool:
    """Whether it has the form of a run; it comes from the process with the learner's code."""
    if type(got) is not dict or not {"results", "sent", "to", "groups"} <= got.keys():
        return False
    lists = [got[key] for key in ("results", "sent", "to", "groups")]
    ranks = len(lists[0]) if type(lists[0]) is list else -1
    return (all(type(x) is list for x in lists) and len(lists[1]) == len(lists[2]) == ranks
            and _counts(lists[1]) and all(_counts(x) for x in lists[2])
            and all(type(x) is list and len(x) == 2 and _counts(x[0]) and type(x[1]) is int
                    for x in lists[3]))


def _counts(value: Any) -> bool:
    return type(value) is list and all(type(x) is int for x in value)


def _ranks(ranks: list[int]) -> str:
    shown = ", ".join(map(str, ranks[:6])) + (", …" if len(ranks) > 6 else "")
    return f"rank{'s' * (len(ranks) > 1)} {shown}"
