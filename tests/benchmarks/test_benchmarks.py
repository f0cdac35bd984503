"""The benchmarks' own arithmetic and what they print; no time is asserted anywhere."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # benchmarks are not installed
measure = importlib.import_module("benchmarks.measure")
topics = importlib.import_module("benchmarks").TOPICS


@given(st.floats(-2, 3), st.floats(1e-6, 1e3))
def test_growth_exponent_recovers_a_power_law(exponent, factor):
    sizes = [3, 10, 40, 100]
    seconds = [factor * n**exponent for n in sizes]
    assert measure.growth_exponent(sizes, seconds) == pytest.approx(exponent, abs=1e-6)


def test_results():
    Result = measure.Result
    assert Result("a", 1.0, "b", 4.0).ratio == 0.25
    assert Result("a", 1.0).ratio is None and Result("a", 1.0).ok
    assert Result("a", 2.0, limit=2.0).ok and not Result("a", 2.1, limit=2.0).ok


def test_the_least_of_the_repeats_counts_and_the_last_result_comes_back():
    calls = []
    seconds, last = measure.cpu_seconds(lambda: calls.append(1) or len(calls), repeats=4)
    assert len(calls) == last == 4 and seconds >= 0


def test_every_topic_can_be_loaded():
    for name in topics:
        topic = importlib.import_module(f"benchmarks.{name}")
        assert topic.TITLE and callable(topic.results)


def test_table_and_numbers(tmp_path, monkeypatch, capsys):
    main = importlib.import_module("benchmarks.__main__")
    topic = importlib.import_module(f"benchmarks.{topics[0]}")
    rows = [measure.Result("walk [home]", 2.0, "run", 1.0), measure.Result("fly", 3.0, limit=1.0)]
    monkeypatch.setattr(topic, "results", lambda: iter(rows))
    target = tmp_path / "new" / "numbers.json"
    monkeypatch.setattr(sys, "argv", ["benchmarks", topics[0], "--json", str(target)])
    assert main.main() == 1  # a target is missed
    out = capsys.readouterr().out
    assert "walk [home]" in out and "missed" in out
    found = json.loads(target.read_text())["topics"][topics[0]]
    assert [(r["name"], r["ratio"], r["ok"]) for r in found] == [
        ("walk [home]", 2.0, True), ("fly", None, False)]


def test_unknown_topic():
    done = subprocess.run([sys.executable, "-m", "benchmarks", "nope"], cwd=ROOT, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 2 and "no topic is called nope; topics are" in done.stderr
