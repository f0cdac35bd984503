"""Play a learner's program of a cube core; say what is in C, and how many clocks it took.

The program runs where the learner's code is, on a core that writes down its instructions; those are
played, as plain data, where it is not.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np

from distlearn.grading.calling import Measured, Trouble
from distlearn.kernels.ascend import AscendError, CubeCore
from distlearn.kernels.ascend.tensors import LocalTensor

Array = np.ndarray[Any, np.dtype[Any]]


def performer(function: str, parameters: Sequence[str], device: str) -> Measured:
    """How to play a program: ``perform(program, [A, B])``.

    Returns
    -------
    callable
        It returns a dict as `kernel_program.performer` does; its counters are ``clocks``, until the
        last pipe is done, and ``L1_bytes`` and the like, what the program has allocated.
    """
    def take(program: Any, args: list[Any]) -> dict[str, Any]:
        memory = _memory(args)
        core = _Recorder(device, memory)
        before = [array.copy() for array in memory]
        try:
            program(core, *memory)
        except AscendError as error:
            raise Trouble("kernel", f"{error.kind}: {error}",
                          _place(program, error)) from None
        for name, array, old in zip("ABC", memory, before, strict=True):
            if not np.array_equal(array, old, equal_nan=True):
                raise Trouble("kernel", f"by_hand: the program itself changes {name}")
        return core.finish()

    def measure(taken: dict[str, Any], args: list[Any]) -> dict[str, Any]:
        memory, core = _memory(args), CubeCore(device)
        calls = {name: getattr(core, name) for name in _CALLS}  # what it may say, and nothing else
        try:
            for name, operands, options in taken["program"]:
                calls[name](*(_operand(core, memory, x) for x in operands), **options)
            timeline = core.run()
        except AscendError as error:
            raise Trouble("kernel", f"{error.kind}: {error}") from None
        fill = {f"{name}_bytes": size for name, size in taken["fill"].items() if size}
        return {"out": memory[2], "counters": {"clocks": timeline.makespan, **fill}, "lines": []}

    return Measured(take, measure)


_CALLS = ("data_copy", "load_data", "mmad", "fixpipe", "set_flag", "wait_flag")


def _memory(args: list[Any]) -> tuple[Array, Array, Array]:
    """A, B, and C, which is not written yet."""
    A, B = (np.array(rows, np.float16) for rows in args)
    return A, B, np.full((A.shape[0], B.shape[1]), np.nan, np.float32)


class _Recorder(CubeCore):
    """A core that writes down what it is told, and plays nothing."""

    def __init__(self, device: str, memory: Sequence[Array]) -> None:
        super().__init__(device)
        self.written: list[list[Any]] = []
        self._memory = memory

    def finish(self) -> dict[str, Any]:
        """Wait for flags that queues have left; all that was written, and buffers' bytes."""
        for queue in self._queues:
            queue.close()
        return {"program": self.written, "fill": dict(self._fill)}

    def _write(self, name: str, operands: Sequence[Any], **options: Any) -> None:
        getattr(super(), name)(*operands, **options)  # says what is wrong, on the learner's line
        self.written.append([name, [self._coded(x) for x in operands], options])

    def _coded(self, operand: Any) -> list[Any]:
        if isinstance(operand, LocalTensor):
            return ["local", operand.position, list(operand.shape), operand.dtype.name,
                    operand.offset]
        if not isinstance(operand, np.ndarray):
            return ["plain", operand]
        at = operand.__array_interface__["data"][0]
        for number, array in enumerate(self._memory):
            first = array.__array_interface__["data"][0]
            if first <= at < first + array.nbytes and operand.dtype == array.dtype:
                return ["global", number, at - first, list(operand.shape), list(operand.strides)]
        raise AscendError("layout", "global memory is A, B and C and their parts; this is another "
                                    f"array, of shape {operand.shape}")

    def data_copy(self, target: LocalTensor, source: Array) -> None:
        """See `CubeCore`, as all the others."""
        self._write("data_copy", (target, source))

    def load_data(self, target: LocalTensor, source: LocalTensor, row: int = 0,
                  column: int = 0) -> None:
        self._write("load_data", (target, source, row, column))

    def mmad(self, target: LocalTensor, a: LocalTensor, b: LocalTensor, *,
             accumulate: bool = False) -> None:
        self._write("mmad", (target, a, b), accumulate=bool(accumulate))

    def fixpipe(self, target: Array, source: LocalTensor, *, scale: float = 1.0,
                relu: bool = False) -> None:
        self._write("fixpipe", (target, source), scale=float(scale), relu=bool(relu))

    def set_flag(self, source: str, target: str, event: int) -> None:
        self._write("set_flag", (source, target, event))

    def wait_flag(self, source: str, target: str, event: int) -> None:
        self._write("wait_flag", (source, target, event))

    def run(self, *, compute: bool = True) -> Any:
        raise AscendError("by_hand", "the program calls core.run(), which the check does after it")


def _operand(core: CubeCore, memory: Sequence[Array], coded: list[Any]) -> Any:
    kind, *rest = coded
    if kind == "local":
        position, (rows, columns), dtype, offset = rest
        return core.tensor(position, (rows, columns), dtype, offset=offset)
    if kind == "global":
        number, start, size, strides = rest
        array = memory[number]
        view: Array = np.ndarray(tuple(size), array.dtype, array, start, tuple(strides))
        return view
    return rest[0]


def _place(program: Any, error: BaseException) -> str:
    """The last line of the program's own, as ``file:line``."""
    code = getattr(program, "__code__", None)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if code is not None and frame.filename == code.co_filename]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
