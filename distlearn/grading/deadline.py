"""End a call that does not end by itself, in this very process, also one that catches everything.

When the time is up, a signal raises an exception in the call. Code such as ``while True: try: ...
except BaseException: pass`` swallows it, so two things follow it. Each frame of the call is traced,
and raises the next exception at its next line, that of ``except``; with this, one frame is left.
And each exception, in being made, rings for another signal, which finds the call in the next frame.
Standard library only.
"""

from __future__ import annotations

import _thread
import contextlib
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType, TracebackType
from typing import Any, TypeVar

_AGAIN = 0.02  # seconds; in case that an exception could not be made, on a stack that is full
_HAS_ALARM = hasattr(signal, "setitimer")  # all but Windows
_SIGNAL = signal.SIGALRM if _HAS_ALARM else signal.SIGINT

Result = TypeVar("Result")


class OutOfTime(BaseException):
    """The call did not end in time."""


class _Ringing(OutOfTime):
    """What is raised in the call: making one rings again."""

    # Compiled, and `raise _Ringing` calls nothing else: Python looks for signals only afterwards.
    __init__: Any = staticmethod(partial(_thread.interrupt_main, _SIGNAL))


def within(seconds: float, call: Callable[[], Result]) -> Result:
    """Return ``call()``, or end it when the time is up.

    Parameters
    ----------
    seconds : float
        Time that may pass, also while the call sleeps or waits.
    call : callable

    Raises
    ------
    OutOfTime
        Then, whatever the call makes of it; its traceback shows where the call was. Compiled code
        is not cut short, the exception comes as it returns.

    Notes
    -----
    Python runs signal handlers in the main thread, where notebooks run their cells. In another one
    the call may take as long as it likes. Where there is no SIGALRM (Windows), what waits in the
    system, such as ``time.sleep``, counts as compiled code.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    end = time.monotonic() + seconds
    tracing, before = sys.gettrace(), signal.getsignal(_SIGNAL)
    inside = late = False
    first: TracebackType | None = None

    def ring(number: int, frame: FrameType | None) -> None:
        nonlocal first, late
        if time.monotonic() < end:
            if callable(before):  # somebody else's alarm, or Ctrl-C
                before(number, frame)
        elif inside and frame is not None and frame.f_code is not trace.__code__:
            if not late:
                first, late = _place(frame), True
            while frame and frame.f_code is not within.__code__ and frame.f_trace is not trace:
                frame.f_trace = trace
                frame = frame.f_back
            sys.settrace(trace)
            raise _Ringing

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        if event == "exception" or not inside:  # it is on its way: not another one, at this place
            return trace
        raise _Ringing  # and Python stops tracing

    signal.signal(_SIGNAL, ring)
    try:
        with _alarm(seconds):
            try:
                inside = True
                result = call()
            finally:  # from here on nothing is raised by `ring`
                inside = False
    except BaseException as error:
        if not late:
            raise
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as of coroutines that nobody will await now
            traceback.clear_frames(error.__traceback__)
            traceback.clear_frames(first)
            del error
    finally:
        sys.settrace(tracing)
        signal.signal(_SIGNAL, before)
    if late:
        raise OutOfTime().with_traceback(first)
    return result


def _place(frame: FrameType | None) -> TracebackType | None:
    """The traceback that an exception raised in ``frame`` has when it comes to `within`."""
    place = None
    while frame and frame.f_code is not within.__code__:
        place = TracebackType(place, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return place


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Ring when the time is up, and again and again, until the block is left."""
    if _HAS_ALARM:
        rest = signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, *rest)
        return
    left = threading.Event()

    def wait() -> None:
        pause = seconds
        while not left.wait(pause):
            _thread.interrupt_main(_SIGNAL)
            pause = _AGAIN

    clock = threading.Thread(target=wait, daemon=True)
    clock.start()
    try:
        yield
    finally:
        left.set()
        clock.join()
