"""Orders, lengths and peaks equal what peers' real schedulers produced (tests/data/schedules)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from distlearn.pipeline import Schedule, build, simulate, validate

DATA = Path(__file__).parents[1] / "data" / "schedules"
FILES = {
    "GPipe": "gpipe",
    "1F1B": "1f1b",
    "Interleaved1F1B": "interleaved_1f1b",
    "ZB-H1": "zb_h1",
    "PipeDream": "pipedream",
}
RECORDS = [
    pytest.param(name, record, id=f"{name}-p{record['p']}-m{record['m']}-v{record['v']}-{index}")
    for file, name in FILES.items()
    for index, record in enumerate(json.loads((DATA / f"{file}.json").read_text()))
]


def test_no_record_is_lost() -> None:
    assert len(RECORDS) == 10 + 15 + 45 + 11 + 8


def schedule_of(name: str, record: dict[str, Any]) -> Schedule:
    options = {"group": record["group"]} if "group" in record else {}
    return build(name, p=record["p"], m=record["m"], v=record["v"], **options)


@pytest.mark.parametrize(("name", "record"), RECORDS)
def test_order_equals_the_peers(name: str, record: dict[str, Any]) -> None:
    schedule = schedule_of(name, record)
    assert [list(map(str, actions)) for actions in schedule.ranks] == record["ranks"]
    assert list(schedule.placement) == record["placement"]
    assert [list(row) for row in schedule.versions] == record.get("versions", [])
    validate(schedule)


@pytest.mark.parametrize(("name", "record"), RECORDS)
def test_simulation_equals_the_referee(name: str, record: dict[str, Any]) -> None:
    timeline = simulate(schedule_of(name, record))
    referee = record["referee"]
    assert timeline.makespan == referee["makespan_F1_I1_W1_B2_comm0"]
    assert timeline.longest_span == referee["longest_rank_span"]
    assert list(timeline.peak_activations) == referee["peak_kept_until_B_or_W"]


@pytest.mark.parametrize(("name", "record"), RECORDS)
def test_versions_kept_equal_the_peers(name: str, record: dict[str, Any]) -> None:
    """A rank's queue reaches from the oldest version still to be read to the newest one."""
    if "versions_kept" not in record:
        assert not schedule_of(name, record).versions
        return
    schedule = schedule_of(name, record)
    for rank, (actions, versions) in enumerate(
        zip(schedule.ranks, schedule.versions, strict=True)
    ):
        kept = []
        for k, action in enumerate(actions):
            newest = sum(a.kind == "B" for a in actions[:k])  # one update after every backward
            kept.append(newest - min(versions[k:]) + 1)
            if action.kind == "F":
                assert versions[k] == newest
        assert max(kept) == record["versions_kept"][rank]
