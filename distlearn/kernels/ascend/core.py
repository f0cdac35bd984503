"""The cube core as a machine to program: copies, loads, matrix steps and fixpipe on its pipes.

A program is ordinary Python that calls these methods; each call appends an instruction to the queue
of its pipe, as the scalar unit of a core does. `CubeCore.run` then plays the timeline: it checks
the order, does the arithmetic, and says when each pipe worked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from distlearn.hardware.ai_core import EVENT_IDS, PIPES, AICore, ai_core
from distlearn.kernels.ascend.errors import AscendError, BufferOverflowError
from distlearn.kernels.ascend.formats import Array
from distlearn.kernels.ascend.queues import Queue
from distlearn.kernels.ascend.tensors import (
    POSITIONS,
    LocalTensor,
    Storage,
    global_region,
    numpy_dtype,
)
from distlearn.kernels.ascend.timeline import Event, Instruction, Region, Timeline, order

MAX_BUFFERS = 64
"""Buffers that one program can have (TPipe of Ascend C)."""


class CubeCore:
    """One cube core: its buffers, pipes and flags.

    Parameters
    ----------
    core : AICore or str
        A core, or the name of an Ascend of the catalogue.

    Examples
    --------
    One step of 16 x 16 x 16, with the flags set by hand:

    >>> import numpy as np
    >>> A, B = np.eye(16, dtype=np.float16), np.full((16, 16), 2, np.float16)
    >>> C = np.zeros((16, 16), np.float32)
    >>> core = CubeCore("Ascend-910B2")
    >>> a1, b1 = core.tensor("A1", (16, 16), "float16"), core.tensor("B1", (16, 16), "float16")
    >>> a2, b2 = core.tensor("A2", (16, 16), "float16"), core.tensor("B2", (16, 16), "float16")
    >>> c = core.tensor("CO1", (16, 16), "float32")
    >>> core.data_copy(a1, A); core.data_copy(b1, B); core.set_flag("MTE2", "MTE1", 0)
    >>> core.wait_flag("MTE2", "MTE1", 0); core.load_data(a2, a1); core.load_data(b2, b1)
    >>> core.set_flag("MTE1", "M", 0); core.wait_flag("MTE1", "M", 0); core.mmad(c, a2, b2)
    >>> core.set_flag("M", "FIXP", 0); core.wait_flag("M", "FIXP", 0); core.fixpipe(C, c)
    >>> core.run().busy["M"], float(C[3, 3])
    (1, 2.0)
    """

    def __init__(self, core: AICore | str = "Ascend-910B2") -> None:
        self.core = ai_core(core) if isinstance(core, str) else core
        self._program: list[Instruction] = []
        self._storage = {name: Storage.of(name, size) for name, size in self.core.buffers.items()}
        self._fill: defaultdict[str, int] = defaultdict(int)
        self._buffers = 0
        self._events: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._queues: list[Queue] = []

    # -- memory ---------------------------------------------------------------------------------

    def allocate(self, position: str, nbytes: int) -> int:
        """Reserve bytes at a position, in units of 32; returns where they start in the buffer.

        Raises
        ------
        BufferOverflowError
            If the buffer is full, saying by how much it is too small.
        AscendError
            Of kind ``"overflow"`` if the program has more than 64 buffers.
        """
        if position not in POSITIONS:
            raise ValueError(f"position must be one of {', '.join(POSITIONS)}; got {position!r}")
        buffer = POSITIONS[position]
        start, size = self._fill[buffer], -(-nbytes // 32) * 32
        capacity = self.core.buffers[buffer]
        if start + size > capacity:
            raise BufferOverflowError(buffer, start + size, capacity,
                                      f"a buffer of {size:,} bytes in {position}")
        if self._buffers == MAX_BUFFERS:
            raise AscendError("overflow", f"a program has at most {MAX_BUFFERS} buffers")
        self._buffers += 1
        self._fill[buffer] += size
        return start

    def tensor(self, position: str, shape: tuple[int, int], dtype: object, *,
               offset: int | None = None, room: int | None = None, slot: int = 0) -> LocalTensor:
        """A tensor at a position; without ``offset`` in new bytes of its buffer.

        ``room`` is how many bytes it may have at ``offset``.

        Raises
        ------
        BufferOverflowError
            If it is larger than its room or what is left of the buffer.
        """
        if position not in POSITIONS:
            raise ValueError(f"position must be one of {', '.join(POSITIONS)}; got {position!r}")
        if min(shape) < 1:
            raise ValueError(f"shape must be positive; got {shape}")
        storage = self._storage[POSITIONS[position]]
        made = LocalTensor(position, shape, numpy_dtype(dtype), offset or 0, storage, slot)
        if offset is None:
            return LocalTensor(position, shape, made.dtype, self.allocate(position, made.nbytes),
                               storage, slot)
        limit = len(storage.raw) - offset if room is None else room
        if made.nbytes > limit:
            raise BufferOverflowError(
                f"a buffer of {position}", made.nbytes, limit,
                f"a tensor of {shape[0]} x {shape[1]} {made.dtype.name} with its padding")
        return made

    def queue(self, position: str, depth: int, nbytes: int) -> Queue:
        """A queue of buffers between two pipes; errors as `allocate` and `event_id`."""
        made = Queue(self, position, depth, nbytes)
        self._queues.append(made)
        return made

    # -- flags ----------------------------------------------------------------------------------

    def event_id(self, source: str, target: str) -> int:
        """An event id between two pipes that nobody uses yet.

        Raises
        ------
        AscendError
            Of kind ``"event_ids"`` if all 8 are taken.
        """
        if self._events[source, target] == EVENT_IDS:
            raise AscendError("event_ids", f"all {EVENT_IDS} event ids from {source} to {target} "
                                           "are taken: fewer queues, or fewer buffers in them")
        self._events[source, target] += 1
        return self._events[source, target] - 1

    def set_flag(self, source: str, target: str, event: int) -> None:
        """When ``source`` gets here, ``target`` may go on."""
        self._flag("set_flag", source, source, target, event)

    def wait_flag(self, source: str, target: str, event: int) -> None:
        """``target`` stops here until ``source`` has set the flag."""
        self._flag("wait_flag", target, source, target, event)

    def _flag(self, name: str, pipe: str, source: str, target: str, event: int) -> None:
        for which in (source, target):
            if which not in PIPES:
                raise ValueError(f"pipes are {', '.join(PIPES)}; got {which!r}")
        if source == target or not 0 <= event < EVENT_IDS:
            raise ValueError(f"a flag is between two pipes, its id 0 to {EVENT_IDS - 1}; got "
                             f"{source}, {target}, {event}")
        self._program.append(Instruction(pipe, name, flag=(source, target, event)))

    # -- instructions ---------------------------------------------------------------------------

    def data_copy(self, target: LocalTensor, source: Array) -> None:
        """MTE2: a matrix from global memory into L1, from ND to Nz.

        Rows are read in blocks of 32 bytes, at the rate of the level-2 cache.
        """
        self._needs(target, "L1", "data_copy")
        self._same(source.shape, target.shape, "data_copy")
        if source.dtype != target.dtype:
            raise AscendError("layout", f"data_copy does not cast: {source.dtype} to "
                                        f"{target.dtype}")
        row = -(-source.shape[1] * source.itemsize // 32) * 32
        self._work("MTE2", "data_copy", source.shape[0] * row, "global-L1", (
            global_region(source),), (target.region,), lambda: target.write(source))

    def load_data(self, target: LocalTensor, source: LocalTensor, row: int = 0,
                  column: int = 0) -> None:
        """MTE1: the part of a matrix in L1 that starts at (row, column) into L0A (Zz) or L0B (Zn).

        What is turned from Nz to the other format must be whole fractals: row and column are
        multiples of what a fractal covers.
        """
        self._needs(source, "L1", "load_data")
        if target.buffer not in ("L0A", "L0B"):
            raise AscendError("layout", f"load_data loads L0A or L0B; got {target.buffer}")
        if source.dtype != target.dtype:
            raise AscendError("layout", f"load_data does not cast: {source.dtype} to "
                                        f"{target.dtype}")
        r, c = source.fractal
        high = max(r, c) if target.buffer == "L0B" else r
        if row % high or column % c:
            raise AscendError("layout", f"load_data starts at ({row}, {column}); rows must be a "
                                        f"multiple of {high}, columns of {c}: whole fractals")
        end = row + target.shape[0], column + target.shape[1]
        if min(row, column) < 0 or end[0] > source.shape[0] or end[1] > source.shape[1]:
            raise AscendError("layout", f"load_data reads rows {row} to {end[0]}, columns "
                                        f"{column} to {end[1]} of a tensor of {source.shape}")
        self._work("MTE1", "load_data", target.nbytes, f"L1-{target.buffer}", (source.region,),
                   (target.region,),
                   lambda: target.write(source.read()[row:end[0], column:end[1]]))

    def mmad(self, target: LocalTensor, a: LocalTensor, b: LocalTensor, *,
             accumulate: bool = False) -> None:
        """M: ``target = a @ b`` in float32 (int8: int32), or added to what is there."""
        self._needs(a, "L0A", "mmad")
        self._needs(b, "L0B", "mmad")
        self._needs(target, "L0C", "mmad")
        (m, k), (depth, n) = a.shape, b.shape
        wide = np.dtype(np.int32) if a.dtype == np.int8 else np.dtype(np.float32)
        if k != depth or target.shape != (m, n) or a.dtype != b.dtype or target.dtype != wide:
            raise AscendError("layout", f"mmad multiplies (m, k) by (k, n) into (m, n) {wide}; got "
                                        f"{a.shape} {a.dtype}, {b.shape} {b.dtype} into "
                                        f"{target.shape} {target.dtype}")

        def run() -> None:
            product = a.read().astype(wide) @ b.read().astype(wide)
            target.write(target.read() + product if accumulate else product)

        self._program.append(Instruction(
            "M", "mmad", self.core.cube_clocks(m, n, k, a.dtype.name),
            (a.region, b.region, *((target.region,) if accumulate else ())), (target.region,),
            0, run))

    def fixpipe(self, target: Array, source: LocalTensor, *, scale: float = 1.0,
                relu: bool = False) -> None:
        """FIXP: a result from L0C to global memory, from Nz to ND, scaled, cast to its format."""
        self._needs(source, "L0C", "fixpipe")
        self._same(target.shape, source.shape, "fixpipe")
        if not target.flags.writeable:
            raise AscendError("layout", "fixpipe writes to an array that is read-only")

        def run() -> None:
            result = source.read()
            if scale != 1.0:
                result = result * np.float32(scale)
            if relu:
                result = np.maximum(result, 0)
            target[...] = result.astype(target.dtype)

        self._work("FIXP", "fixpipe", target.size * target.itemsize, "L0C-global",
                   (source.region,), (global_region(target),), run)

    def _work(self, pipe: str, name: str, nbytes: int, rate: str, reads: tuple[Region, ...],
              writes: tuple[Region, ...], run: Callable[[], None]) -> None:
        clocks = int(-(-nbytes // self.core.rates[rate]))
        self._program.append(Instruction(pipe, name, clocks, reads, writes, nbytes, run))

    @staticmethod
    def _needs(tensor: LocalTensor, buffer: str, call: str) -> None:
        if tensor.buffer != buffer:
            raise AscendError("layout", f"{call} needs a tensor in {buffer}; got one in "
                                        f"{tensor.buffer} ({tensor.position})")

    @staticmethod
    def _same(one: tuple[int, ...], other: tuple[int, ...], call: str) -> None:
        if one != other:
            raise AscendError("layout", f"{call} between shapes {one} and {other}")

    # -- running --------------------------------------------------------------------------------

    def run(self, *, compute: bool = True) -> Timeline:
        """Play the program.

        Parameters
        ----------
        compute : bool
            False: times and checks only, no arithmetic.

        Raises
        ------
        AscendError
            Of kind ``"race"``, ``"deadlock"``, ``"unpaired_flag"`` or ``"uninitialised"``.
        """
        for queue in self._queues:
            queue.close()
        played = order(self._program)
        busy, moved = dict.fromkeys(PIPES, 0), dict.fromkeys(PIPES, 0)
        events = []
        for instruction, start, end in played:
            if instruction.flag is not None:
                continue
            if compute and instruction.run is not None:
                instruction.run()
            busy[instruction.pipe] += instruction.clocks
            moved[instruction.pipe] += instruction.nbytes
            events.append(Event(instruction.pipe, instruction.name, start, end,
                                instruction.nbytes))
        return Timeline(tuple(events), max((end for *_, end in played), default=0),
                        MappingProxyType(busy), MappingProxyType(moved),
                        MappingProxyType(dict(self._fill)), self.core.buffers,
                        self.core.clock_hz)
