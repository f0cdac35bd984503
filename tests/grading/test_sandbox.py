"""What learners' code may do in the child process, and what becomes of it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from distlearn.grading.outcome import Run
from distlearn.grading.plain import Other
from distlearn.grading.sandbox import Limits, run
from distlearn.grading.submission import Cell

LIMITS = Limits(seconds=2.0, memory=2**28)
SHORT = Limits(seconds=0.3, memory=2**28)


def answer(source: str, *calls: tuple[object, ...], **options: object) -> Run:
    limits = SHORT if "while True" in source and "bytearray" not in source else LIMITS
    return run([Cell("code cell 1", source)], "f", calls or [(1,)], limits=limits, **options)  # type: ignore[arg-type]


def body(*lines: str) -> str:
    return "\n    ".join(["import sys, os, time\ndef f(x):", *lines])


def test_values_come_back_as_plain_data() -> None:
    values = [None, True, 3, 2.5, "a", [1, [2]], (1, 2), {"a": 1}, float("inf"), -0.0, "é\n", []]
    result = answer("def f(x): return x", *[(value,) for value in values])
    assert [outcome.value for outcome in result.outcomes] == values
    assert [type(o.value) for o in result.outcomes] == [type(value) for value in values]
    assert result.stopped is None


def test_numpy_and_exact_numbers_become_built_in_ones() -> None:
    source = ("import numpy as np\nfrom fractions import Fraction\nfrom decimal import Decimal\n"
              "def f(x): return [np.float64(.5), np.int32(3), np.array([1, 2]), np.str_('a'), "
              "np.bool_(True), np.array(2.5), Fraction(1, 4), Decimal('0.5')][x]")
    result = answer(source, *[(k,) for k in range(8)])
    assert [o.value for o in result.outcomes] == [.5, 3, [1, 2], "a", True, 2.5, .25, .5]


@pytest.mark.parametrize(("expression", "kind"), [
    ("type('float', (float,), {'__eq__': lambda a, b: True})(1.0)", "a kind of float"),
    ("type('Mine', (), {})()", "Mine"),
    ("(i for i in range(3))", "generator"),
    ("{1, 2}", "set"),
    ("1j", "complex"),
    ("lambda: 1", "function"),
    ("[1] * 1_000_000", "more than 50,000 items"),
    ("'x' * 1_000_000", "more than 200,000 characters"),
    ("10 ** 5000", "more than 1,000 digits"),
])
def test_anything_else_is_named_and_equals_nothing(expression: str, kind: str) -> None:
    value = answer(body(f"return {expression}")).outcomes[0].value
    assert isinstance(value, Other)
    assert kind in value.what
    assert value != 1.0


def test_nested_and_circular_lists_end() -> None:
    value = answer(body("a = []", "a.append(a)", "return a")).outcomes[0].value
    assert isinstance(value, Other)
    assert "levels" in value.what


def test_nan_equals_nothing() -> None:
    value = answer(body("return float('nan')")).outcomes[0].value
    assert value != value


@pytest.mark.parametrize(("lines", "kind", "words"), [
    (["while True: pass"], "time", "0.3 s"),
    (["sys.exit(0)"], "exit", "SystemExit: 0"),
    (["raise SystemExit"], "exit", "SystemExit"),
    (["return input('p? ')"], "input", ""),
    (["return 1 / 0"], "raised", "ZeroDivisionError: division by zero"),
    (["return f(x)"], "recursion", "RecursionError"),
    (["raise KeyboardInterrupt"], "interrupted", ""),
    (["raise NotImplementedError('later')"], "stub", ""),
    (["return [0] * 10**9"], "memory", "MemoryError"),
    (["a = []", "while True: a.append(bytearray(10**6))"], "memory", "MemoryError"),
])
def test_one_call_gone_wrong_is_described(lines: list[str], kind: str, words: str) -> None:
    result = answer(body(*lines))
    outcome = result.stopped or result.outcomes[0]
    assert outcome.kind == kind
    assert words in outcome.message
    if kind not in ("time",):
        assert outcome.where.startswith("code cell 1, line ")


@pytest.mark.parametrize(("lines", "kind"), [
    (["os._exit(0)"], "exit"),
    (["os.kill(os.getpid(), 9)"], "exit"),
    (["os.abort()"], "exit"),
    (["os.close(1)", "os.closerange(3, 256)", "return 1"], "exit"),
    (["import signal", "signal.signal(signal.SIGXCPU, signal.SIG_IGN)", "while True: pass"],
     "time"),
    (["while True:", "    try:", "        while True: pass", "    except BaseException: pass"],
     "time"),
])
def test_a_process_that_ends_itself_is_noticed(lines: list[str], kind: str) -> None:
    result = answer(body(*lines))
    assert result.outcomes == ()
    assert result.stopped is not None
    assert result.stopped.kind in (kind, "exit")
    assert result.called


def test_sleeping_is_ended_too() -> None:
    result = run([Cell("c", body("time.sleep(600)"))], "f", [(1,)], limits=Limits(0.2, 2**28))
    assert result.stopped is not None
    assert result.stopped.kind == "time"


def test_flood_of_output_does_not_hide_the_value() -> None:
    result = answer(body("for _ in range(2000): print('x' * 10_000)", "return 7"))
    assert result.outcomes[0].value == 7
    assert len(result.outcomes[0].printed) <= 400


def test_junk_on_every_descriptor_is_not_taken_for_an_answer() -> None:
    result = answer(body(
        "for fd in range(1, 250):", "    try: os.write(fd, b'{\"kind\": \"value\"}\\n')",
        "    except OSError: pass", "return 7"))
    assert [outcome.value for outcome in result.outcomes] == [7]


def test_replaced_equality_tools_do_not_reach_the_grader() -> None:
    result = answer(body(
        "import math, json, builtins", "math.isclose = lambda *a, **k: True",
        "import distlearn.grading.answer as a", "a.Number.same = lambda *a: True", "return 9"))
    from distlearn.grading.answer import Number

    assert result.outcomes[0].value == 9
    assert not Number().same(9, 1)


def test_broken_json_in_the_child_harms_nobody_else() -> None:
    result = answer(body("import json", "json.dumps = None", "return 1"))
    assert result.outcomes[0].value == 1


def test_wanted_values_are_not_in_the_child() -> None:
    source = body(
        "import gc", "found = [o for o in gc.get_objects() if type(o) is dict and 'calls' in o]",
        "return sorted({key for o in found for key in o if type(key) is str})")
    keys = answer(source).outcomes[0].value
    assert "wanted" not in keys


def test_standard_input_is_closed_and_the_folder_is_new(tmp_path: Path) -> None:
    result = answer(body("return [sys.stdin.read(), os.listdir('.'), os.getcwd()]"))
    text, files, folder = result.outcomes[0].value
    assert (text, files) == ("", [])
    assert not Path(folder).exists(), "it is removed afterwards"


def test_environment_holds_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    assert "SECRET_TOKEN" not in answer(body("return sorted(os.environ)")).outcomes[0].value


def test_files_cannot_grow_without_end() -> None:
    result = answer(body("with open('big', 'wb') as s:", "    for _ in range(100):",
                         "        s.write(bytes(10**6))"))
    assert "OSError" in result.outcomes[0].message


@pytest.mark.parametrize("start", [
    "import threading; threading.Thread(target=time.sleep, args=(600,)).start()",
    "import atexit; atexit.register(time.sleep, 600)",
    "os.fork() or time.sleep(600)",
    "os.fork() or (os.setsid(), os.fork() or time.sleep(600), os._exit(0))",
    "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)",
])
def test_nothing_is_left_running(
        start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = answer(body(start, "return 5"))
    assert [outcome.value for outcome in result.outcomes] == [5]
    assert not processes(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_small_fork_bomb_is_swept_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    source = body("for _ in range(5):", "    if os.fork() == 0: os.setsid()", "time.sleep(600)")
    result = run([Cell("c", source)], "f", [(1,)], limits=Limits(0.2, 2**28))
    assert result.stopped is not None
    assert result.stopped.kind == "time"
    assert not processes(tmp_path)


def test_values_are_not_sent_twice_after_a_fork() -> None:
    result = answer(body("os.fork()", "return x"), (1,), (2,))
    assert [outcome.value for outcome in result.outcomes] == [1, 2]


@pytest.mark.parametrize(("source", "kind", "words"), [
    ("import nothing_of_that_name\ndef f(x): return x", "raised", "ModuleNotFoundError"),
    ("n = int(input())\ndef f(x): return x", "input", ""),
    ("import sys\nsys.exit()\ndef f(x): return x", "exit", ""),
    ("while True: pass\ndef f(x): return x", "time", ""),
    ("import os\nos._exit(3)\ndef f(x): return x", "exit", ""),
    ("def f(x) return x", "syntax", "SyntaxError"),
    ("def g(x): return x", "missing", ""),
    ("f = 3", "not_callable", "int"),
    ("def f(): return 1", "arguments", "takes 0 positional arguments"),
])
def test_trouble_before_the_first_call(source: str, kind: str, words: str) -> None:
    result = answer(source)
    outcome = result.stopped or result.outcomes[0]
    assert outcome.kind == kind
    assert words in outcome.message
    assert not (result.stopped and result.called)


def test_arguments_are_fresh_for_every_call() -> None:
    result = answer("def f(x):\n    x.append(1)\n    return len(x)", ([],), ([],))
    assert [outcome.value for outcome in result.outcomes] == [1, 1]


def test_library_shortcut_is_seen_through_helper_functions() -> None:
    source = ("from distlearn.pipeline import build\n"
              "def helper(x): return str(build('1f1b', 2, 2))\n"
              "def f(x): return helper(x)")
    result = answer(source, without=("build",))
    assert result.stopped is not None
    assert (result.stopped.kind, result.stopped.message) == ("library", "build")
    assert answer("def build(x): return x\ndef f(x): return build(x)",
                  without=("build",)).stopped is None


@pytest.mark.parametrize("source", [
    "from distlearn.grading.sets.pipeline.first import _order\ndef f(x): return _order(2, 2, 0)",
    "from distlearn.grading.sets.pipeline import first as g\ndef f(x): return g._order(2, 2, 0)",
    "def f(x):\n    from distlearn.grading.sets.pipeline.first import _order\n    return _order(2)",
])
def test_what_the_questions_know_mistakes_by_is_no_answer(source: str) -> None:
    result = answer(source)
    assert result.stopped is not None
    assert result.stopped.kind == "library"


def test_limits_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="time_limit"):
        Limits(seconds=-1)
    with pytest.raises(ValueError, match="memory_limit"):
        Limits(memory=1)


def processes(home: Path) -> set[int]:
    """Living processes whose home is in this folder, after a moment to end."""
    found: set[int] = set()
    for _ in range(50):
        found = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    environment = (entry / "environ").read_bytes()
                except OSError:
                    continue
                if f"HOME={home}/".encode() in environment:
                    found.add(int(entry.name))
        if not found:
            break
        time.sleep(0.02)  # until the kernel has buried them
    return found


FORGED = """
import sys
def f(x):
    frame = sys._getframe()
    while not {"send", "request"} <= frame.f_locals.keys(): frame = frame.f_back
    nest = ["l"]
    for _ in range(900): nest = ["l", nest]
    wide = ["l", *[0] * 60_000]
    value = {"deep": nest, "wide": wide, "text": "\\ud800", "junk": {"a": 1}}.get(x, 1)
    message = {"kind": "value", "value": value, "phase": "call", "index": 0}
    message |= {"kinds": {"kind": ["value"]}, "cells": {"phase": "cells"}}.get(x, {})
    if x == "ended": message = {"kind": "ended", "cpu": "x", "signal": 10**30}
    frame.f_locals["send"](message)
    return 5
"""


@pytest.mark.parametrize("what", ["deep", "wide", "text", "junk", "kinds", "cells", "ended"])
def test_a_message_the_answer_sends_itself_is_read_with_the_same_limits(what: str) -> None:
    result = answer(FORGED, (what,))
    got = result.outcomes[0] if result.outcomes else result.stopped
    assert got is not None
    if what in ("wide", "text"):
        assert got.value == "?" or "more than 50,000 items" in got.value.what
    else:
        assert got.kind in ("silent", "exit") or got.value in (1, 5)
    for answered in result.outcomes:
        repr(answered.value).encode()


def test_memory_counts_for_all_processes_together() -> None:
    result = run([Cell("c", body(
        "for _ in range(10):", "    if os.fork() == 0:", "        a = b'x' * (60 * 2**20)",
        "        time.sleep(600)", "time.sleep(600)"))], "f", [(1,)], limits=Limits(5.0, 2**26))
    assert result.stopped is not None
    assert result.stopped.kind == "memory"


def test_other_processes_are_closed_books() -> None:
    seen = answer(body(
        "seen = []", "for pid in os.listdir('/proc'):", "    for name in ('mem', 'environ'):",
        "        try:", "            with open(f'/proc/{pid}/{name}', 'rb') as s: s.read(1)",
        "            seen.append(pid)", "        except (OSError, ValueError): pass",
        "return [x for x in seen if x not in ('self', 'thread-self', str(os.getpid()),"
        " os.readlink('/proc/self'))]")).outcomes[0].value
    assert seen == []
