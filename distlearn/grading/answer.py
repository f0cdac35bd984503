"""Kinds of answers: when a value is the wanted one, and what the likely mistake is if it is not.

A value arrives here as plain data. Each kind says in a plain sentence if the type is wrong,
compares values, and knows the mistakes that any question of its kind meets.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from distlearn.grading.plain import Other


class View(NamedTuple):
    """The part of an answer that shows why it is wrong, beside what is wanted there.

    ``part`` names it, such as "the result of rank 2"; "" if it is the whole answer. ``listing`` is
    the source, if a count per line says more: number, text and count of each line.
    """

    got: Any
    wanted: Any
    part: str = ""
    listing: tuple[tuple[int, str, int], ...] = ()


class Answer(Protocol):
    """What a question expects."""

    @property
    def noun(self) -> str:
        """In words: "a number"."""
        ...

    def misfit(self, got: Any) -> str:
        """A sentence that says what is wrong with the type of ``got``; "" if it can be compared."""
        ...

    def same(self, got: Any, wanted: Any) -> bool:
        """Whether ``got`` is right. Only called without a misfit."""
        ...

    def credit(self, got: Any, wanted: Any) -> float:
        """The share of the points that ``got`` is worth, 0 to 1; 1 only if it is right."""
        return float(self.same(got, wanted))

    def hint(self, got: Any, wanted: Any) -> str:
        """The likely mistake, or ""."""
        ...

    def slight(self, got: Any, wanted: Any) -> bool:
        """Whether what is wrong matters less than what may be wrong in other cases."""
        return False

    def view(self, got: Any, wanted: Any) -> View:
        """What to show of them. ``got`` is None where there is nothing to compare."""
        return View(got, wanted)


@dataclass(frozen=True)
class Number(Answer):
    """A finite number, right within a relative tolerance; int or float."""

    tolerance: float = 1e-6
    noun: str = "a number"

    def misfit(self, got: Any) -> str:
        """See `Answer`."""
        if type(got) in (int, float):
            return too_large(got)
        return misfit(got, self.noun)

    def same(self, got: Any, wanted: Any) -> bool:
        """See `Answer`."""
        return math.isclose(got, wanted, rel_tol=self.tolerance, abs_tol=1e-12)

    def hint(self, got: Any, wanted: Any) -> str:
        """See `Answer`."""
        if math.isnan(got):
            return "nan is no number: somewhere 0/0 or inf - inf is computed."
        if math.isinf(got):
            return "The result is infinite: look for a division by zero or an overflow."
        guesses = [
            (100 * wanted, "This is a percentage; a fraction between 0 and 1 is asked for."),
            (-wanted, "The sign is the other way round."),
            (1 - wanted, "This is one minus the wanted value."),
            (1 / wanted if wanted else math.nan,
             "This is one over the wanted value: numerator and denominator are swapped."),
        ]
        for value, text in guesses:
            if math.isclose(got, value, rel_tol=self.tolerance, abs_tol=1e-12):
                return text
        if got == int(got) and got in (math.floor(wanted), math.ceil(wanted)):
            return "This is a whole number: is `//` or `int` used where `/` is meant?"
        if any(round(wanted, digits) == got for digits in range(1, 6)):
            return "Close, but rounded: return the full number and round only when printing."
        return ""


@dataclass(frozen=True)
class Count(Answer):
    """A whole number; 3.0 counts as 3."""

    noun: str = "a whole number"

    def misfit(self, got: Any) -> str:
        """See `Answer`."""
        if type(got) is int or (type(got) is float and got.is_integer()):
            return too_large(got)
        if type(got) is float:
            return f"It returned {got!r}, but {self.noun} is asked for."
        return misfit(got, self.noun)

    def same(self, got: Any, wanted: Any) -> bool:
        """See `Answer`."""
        return bool(got == wanted)

    def hint(self, got: Any, wanted: Any) -> str:
        """See `Answer`."""
        if abs(got - wanted) == 1:
            return f"Off by one: {'too many' if got > wanted else 'too few'}."
        return ""


@dataclass(frozen=True)
class Actions(Answer):
    """A list (or tuple) of actions as text, such as ``["F0.0", "B0.0"]``."""

    noun: str = "a list of actions such as ['F0.0', 'B0.0']"

    def misfit(self, got: Any) -> str:
        """See `Answer`."""
        if type(got) is str and got:
            return (f"It returned one text, {short(got)}; a list with one text per action is "
                    "asked for.")
        if type(got) not in (list, tuple):
            return misfit(got, self.noun)
        for k, item in enumerate(got):
            if type(item) is str:
                continue
            if isinstance(item, Other) and item.what.startswith("Action"):
                return (f"Item {k} of the list is an Action object; its text is asked for: "
                        "write str(action).")
            what = f"<{item.what}>" if isinstance(item, Other) else short(item)
            return f"Item {k} of the list is {what}; every item has to be text such as 'F0.0'."
        return ""

    def same(self, got: Any, wanted: Any) -> bool:
        """See `Answer`."""
        return list(got) == list(wanted)

    def hint(self, got: Any, wanted: Any) -> str:
        """See `Answer`."""
        got, wanted = list(got), list(wanted)
        if [x.strip().upper() for x in got] == wanted:
            return "Only the spelling differs: capital letter, stage, point, microbatch; no spaces."
        if got == list(reversed(wanted)):
            return "The order is reversed."
        have, need = Counter(got), Counter(wanted)
        if have == need:
            k = first_difference(got, wanted)
            return f"The right actions in another order: the first that differs is number {k}."
        twice = next((x for x, n in have.items() if n > need[x] > 0), None)
        if twice is not None:
            return f"{twice} is there {have[twice]} times."
        extra, missing = list(have - need), list(need - have)
        if not extra:
            return f"{len(missing)} missing, the first of them {missing[0]}."
        if not missing:
            return f"{len(extra)} too many, the first of them {extra[0]}."
        return ""


def first_difference(got: list[Any], wanted: list[Any]) -> int:
    """Index of the first item that differs, counted from 0; the shorter length if none does."""
    pairs = enumerate(zip(got, wanted, strict=False))
    return next((k for k, (a, b) in pairs if a != b), min(len(got), len(wanted)))


def misfit(got: Any, noun: str) -> str:
    """What is wrong with the type of ``got``, where ``noun`` is asked for."""
    if got is None:
        return f"It returned None, so it ended without `return`; {noun} is asked for."
    if type(got) is bool:
        return f"It returned {got}; {noun} is asked for."
    if type(got) is str:
        quoted = f"It returned text, {short(got)}; {noun} is asked for"
        one = noun in (Number.noun, Count.noun)
        return quoted + (": leave out the quotes or the formatting." if one else ".")
    if isinstance(got, Other):
        if got.what in ("generator", "map", "filter", "zip", "range", "dict_keys", "reversed"):
            advice = "wrap it in list(...)" if "list" in noun else "`return` one value"
            return f"It returned a {got.what}; {noun} is asked for: {advice}."
        if got.what == "function" or got.what.startswith("builtin_function"):
            return (f"It returned a function, not its result; {noun} is asked for: call it with "
                    "(...).")
        if got.what == "coroutine":
            return f"It is an `async def`; {noun} is asked for: write a plain `def`."
        return f"It returned an object of type {got.what}; {noun} is asked for."
    if type(got) in (list, tuple) and len(got) == 1 and "number" in noun:
        return (f"It returned a {type(got).__name__} with one item, {short(got)}; {noun} is asked "
                "for.")
    return f"It returned a {type(got).__name__}, {short(got)}; {noun} is asked for."


def too_large(number: float) -> str:
    """A sentence about an int that no float can hold; all others can be computed with."""
    if type(number) is int and abs(number) > 2**1000:
        return f"It returned a whole number of {len(str(abs(number)))} digits."
    return ""


def short(value: Any, width: int = 60) -> str:
    """``repr``, cut to a width."""
    text = repr(value)
    return text if len(text) <= width else text[: width - 1] + "…"
