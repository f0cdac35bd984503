"""`check` ends what does not end by itself, and the process goes on as before."""

from __future__ import annotations

import importlib.util
import signal
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from distlearn.grading import check, deadline

SECONDS = 0.03
LOOP = "def bubble_fraction(p, m):\n    while True: pass\n"
CATCHES_ALL = """
def bubble_fraction(p, m):
    while True:
        try:
            while True: pass
        except BaseException:
            pass
"""
CATCHES_ALL_TWICE = """
def inner():
    while True:
        try:
            for k in range(100): k += 1
        except BaseException: pass

def bubble_fraction(p, m):
    while True:
        try: inner()
        except BaseException: pass
        finally: inner()
"""
SUPPRESSES = """
from contextlib import suppress
def bubble_fraction(p, m):
    while True:
        with suppress(BaseException):
            while True: len([])
"""
CALLS_AGAIN = """
def bubble_fraction(p, m, depth=0):
    while depth == 100: pass
    try: return bubble_fraction(p, m, depth + 1)
    except BaseException: return bubble_fraction(p, m, depth + 1)
"""
RETURNS_ALL_THE_SAME = """
def bubble_fraction(p, m):
    try:
        while True: pass
    finally:
        return (p - 1) / (m + p - 1)
"""
RAISES_ANOTHER = """
def bubble_fraction(p, m):
    try:
        while True: pass
    except BaseException: raise ValueError from None
"""
SLEEPS = "import time\ndef bubble_fraction(p, m): time.sleep(600)"
WAITS = "import threading\ndef bubble_fraction(p, m): threading.Event().wait()"
COMPILED = """
import numpy
def bubble_fraction(p, m):
    while True: numpy.ones((200, 200)) @ numpy.ones((200, 200))
"""
GENERATES = """
def numbers():
    while True:
        try: yield 1
        except BaseException: pass
def bubble_fraction(p, m): return sum(numbers())
"""


def names(source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, "answer.py", "exec"), namespace)
    return namespace


@pytest.mark.parametrize("source", [
    LOOP, CATCHES_ALL, CATCHES_ALL_TWICE, SUPPRESSES, CALLS_AGAIN, RETURNS_ALL_THE_SAME,
    RAISES_ANOTHER, SLEEPS, WAITS, COMPILED, GENERATES,
])
def test_what_does_not_end_is_ended_and_said(
        source: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGALRM), sys.gettrace()
    result = check("pipeline/bubble", names(source), time_limit=SECONDS).result
    assert result.status == "time limit"
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("pipeline/bubble: FAIL")
    for words in ("our code did not finish: it took longer than 0.03 s", "Does every loop end?",
                  "not run bubble_fraction(p=2, m=2)", "answer.py, line "):
        assert words in out
    assert (signal.getsignal(signal.SIGALRM), sys.gettrace()) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_rank_program_that_does_not_end(
        capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder) -> None:
    source = ("async def ring_all_reduce(comm, x):\n    while True:\n        try: comm.rank"
              "\n        except BaseException: pass")
    assert check("ranks/ring", names(source), time_limit=SECONDS).result.status == "time limit"
    assert not recwarn.list  # coroutines that nobody awaits now


def test_cases_before_count_as_passed(capsys: pytest.CaptureFixture[str]) -> None:
    source = ("def bubble_fraction(p, m):\n    while p == 2: pass\n"
              "    return (p - 1) / (m + p - 1)")
    result = check("pipeline/bubble", names(source), time_limit=SECONDS).result
    assert (result.status, result.passed) == ("time limit", 1)
    with pytest.raises(ValueError, match="time_limit must be > 0"):
        check("pipeline/bubble", {}, time_limit=0)


def test_a_flood_of_printing_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    source = "def bubble_fraction(p, m):\n    while True: print('x' * 1000)"
    check("pipeline/bubble", names(source), time_limit=SECONDS)
    out = capsys.readouterr().out
    assert out.count("… more was printed") == 1
    assert len(out) < 110_000


def test_what_ends_in_time_is_left_alone() -> None:
    assert deadline.within(10, lambda: 7) == 7
    with pytest.raises(KeyboardInterrupt):
        deadline.within(10, interrupted)
    rest = signal.setitimer(signal.ITIMER_REAL, 100)
    try:
        deadline.within(10, lambda: 7)
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 50, "somebody else's alarm goes on"
    finally:
        signal.setitimer(signal.ITIMER_REAL, *rest)


def interrupted() -> None:
    raise KeyboardInterrupt


def test_in_another_thread_there_is_no_limit() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(deadline.within(10, lambda: 7)))
    thread.start()
    thread.join()
    assert found == [7]


@pytest.fixture
def without_alarm(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as it is on Windows, where there is SIGINT only."""
    monkeypatch.delattr(signal, "setitimer")
    spec = importlib.util.spec_from_file_location("deadline_without_alarm", deadline.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("source", [LOOP, CATCHES_ALL, CATCHES_ALL_TWICE, RETURNS_ALL_THE_SAME])
def test_without_an_alarm_clock_a_thread_rings(without_alarm: ModuleType, source: str) -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(without_alarm.OutOfTime):
        without_alarm.within(SECONDS, lambda: names(source)["bubble_fraction"](2, 2))
    assert without_alarm.within(10, lambda: 7) == 7
    assert signal.getsignal(signal.SIGINT) is before
    assert threading.active_count() == 1 or "deadline" not in str(threading.enumerate())


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C as Python has it; a process in the background of a shell starts without."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_without_an_alarm_clock_ctrl_c_still_works(without_alarm: ModuleType) -> None:
    with pytest.raises(KeyboardInterrupt):
        without_alarm.within(10, lambda: signal.raise_signal(signal.SIGINT))
