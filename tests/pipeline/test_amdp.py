"""AMDP's order against the lists in its authors' code."""

from __future__ import annotations

import pytest

from distlearn.pipeline import Action, Costs, Schedule, build, simulate


def amdp_of_the_authors(rounds: int) -> Schedule:
    """Four ranks, two directions: the lists in Vinsmoke86/AMDP, async_schedules.py.

    Minibatches 0, 2 of a round run down, 1, 3 up. The last backward of a round is among the next.
    """
    forward = ((0, 2, 1, 3), (0, 1, 2, 3), (1, 0, 3, 2), (1, 3, 0, 2))
    backward = ((1, 3, 0, 2), (1, 0, 3, 2), (0, 1, 2, 3), (0, 2, 1, 3))
    ranks = []
    for r in range(4):
        words: list[tuple[str, int]] = []
        for k in range(rounds):
            f = [("F", 4 * k + i) for i in forward[r]]
            b = [("B", 4 * k + i) for i in backward[r]]
            left = [("B", 4 * k - 4 + backward[r][3])] if k else []
            words += ([*f[:2], *left, f[2], b[0], f[3], *b[1:3]] if r in (0, 3)
                      else [*left, *f, *b[:3]])
        words.append(("B", 4 * rounds - 4 + backward[r][3]))
        ranks.append(tuple(Action(kind, 3 - r if i % 2 else r, i) for kind, i in words))
    down = (0, 1, 2, 3)
    return Schedule("authors", 4, 4 * rounds, 1, placement=down, ranks=tuple(ranks),
                    copies=(down, down[::-1]), direction=(0, 1, 0, 1) * rounds)


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_amdp_against_the_authors_lists(rounds: int) -> None:
    """The same on the inner ranks; on the outer ones two neighbours change places per round."""
    theirs, ours = amdp_of_the_authors(rounds), build("amdp", 4, 4, batches=rounds)
    number = {0: 0, 1: 2, 2: 1, 3: 3}  # ours: the first half of a round runs down
    for r in range(4):
        row = [Action(a.kind, a.stage, a.microbatch // 4 * 4 + number[a.microbatch % 4])
               for a in ours.ranks[r]]
        differ = sum(a != b for a, b in zip(row, theirs.ranks[r], strict=True))
        assert differ == (0 if r in (1, 2) else 2 * (rounds - 1))
    alike, usual = Costs(F=1, B=1), Costs(F=1, B=2)
    assert simulate(theirs, alike).makespan == simulate(ours, alike).makespan
    assert simulate(ours, usual).makespan - simulate(theirs, usual).makespan == rounds - 1
    assert simulate(theirs).peak_activations == simulate(ours).peak_activations
