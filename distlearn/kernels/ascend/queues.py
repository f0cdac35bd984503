"""Queues between pipes: they hand buffers over and hide the flags (TQue of Ascend C).

A queue has one or more buffers of equal size. Its producer allocates one, fills it and enqueues it;
its consumer dequeues it, uses it and frees it. Each step is one flag:

=========  ====================================================================
enqueue    the producer's pipe sets a flag for the consumer's
dequeue    the consumer's pipe waits for it
free       the consumer's pipe sets a flag back
allocate   the producer's pipe waits for that one, if the buffer was used before
=========  ====================================================================

With two buffers the producer fills one while the consumer uses the other (ping-pong).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from distlearn.kernels.ascend.errors import AscendError
from distlearn.kernels.ascend.tensors import LocalTensor

if TYPE_CHECKING:
    from distlearn.kernels.ascend.core import CubeCore

PIPES_OF = {"A1": ("MTE2", "MTE1"), "B1": ("MTE2", "MTE1"), "A2": ("MTE1", "M"),
            "B2": ("MTE1", "M"), "CO1": ("M", "FIXP"), "VECIN": ("MTE2", "V"),
            "VECOUT": ("V", "MTE3")}
"""Producer and consumer pipe of the queues of each position."""


class Queue:
    """A queue of ``depth`` buffers of ``nbytes`` bytes; made by `CubeCore.queue`."""

    def __init__(self, core: CubeCore, position: str, depth: int, nbytes: int) -> None:
        if position not in PIPES_OF:
            raise ValueError(f"position must be one of {', '.join(PIPES_OF)}; got {position!r}")
        if depth < 1 or nbytes < 1:
            raise ValueError(f"depth = {depth} and nbytes = {nbytes} must be at least 1")
        self.position = position
        self.nbytes = nbytes
        self.producer, self.consumer = PIPES_OF[position]
        self._core = core
        self._offsets = [core.allocate(position, nbytes) for _ in range(depth)]
        self._forward = [core.event_id(self.producer, self.consumer) for _ in range(depth)]
        self._back = [core.event_id(self.consumer, self.producer) for _ in range(depth)]
        self._free = deque(range(depth))
        self._filled: deque[LocalTensor] = deque()
        self._used = [False] * depth  # a flag back is under way

    def allocate(self, shape: tuple[int, int], dtype: object) -> LocalTensor:
        """A free buffer, as a tensor of this shape.

        Raises
        ------
        AscendError
            Of kind ``"queue"`` if none is free, ``"overflow"`` if the tensor is too large for it.
        """
        if not self._free:
            raise AscendError("queue", f"queue {self.position} has no free buffer: all of its "
                                       f"{len(self._offsets)} are in use; free one first")
        slot = self._free.popleft()
        tensor = self._core.tensor(self.position, shape, dtype, offset=self._offsets[slot],
                                   room=self.nbytes, slot=slot)
        if self._used[slot]:
            self._core.wait_flag(self.consumer, self.producer, self._back[slot])
            self._used[slot] = False
        return tensor

    def enqueue(self, tensor: LocalTensor) -> None:
        """Hand a filled buffer to the consumer."""
        self._own(tensor)
        self._core.set_flag(self.producer, self.consumer, self._forward[tensor.slot])
        self._filled.append(tensor)

    def dequeue(self) -> LocalTensor:
        """The buffer that was enqueued first.

        Raises
        ------
        AscendError
            Of kind ``"queue"`` if there is none: the pipe would wait for ever.
        """
        if not self._filled:
            raise AscendError("queue", f"queue {self.position} is empty: nothing to dequeue")
        tensor = self._filled.popleft()
        self._core.wait_flag(self.producer, self.consumer, self._forward[tensor.slot])
        return tensor

    def free(self, tensor: LocalTensor) -> None:
        """Give a buffer back to the producer."""
        self._own(tensor)
        if tensor.slot in self._free:
            raise AscendError("queue", f"queue {self.position}: buffer {tensor.slot} is free")
        self._core.set_flag(self.consumer, self.producer, self._back[tensor.slot])
        self._used[tensor.slot] = True
        self._free.append(tensor.slot)

    def close(self) -> None:
        """Wait for the flags that are still under way."""
        for slot, used in enumerate(self._used):
            if used:
                self._core.wait_flag(self.consumer, self.producer, self._back[slot])
                self._used[slot] = False

    def _own(self, tensor: LocalTensor) -> None:
        if tensor.position != self.position or tensor.slot >= len(self._offsets) or (
                tensor.offset != self._offsets[tensor.slot]):
            raise AscendError("queue", f"a tensor in {tensor.position} at byte {tensor.offset:,} "
                                       f"is not of this queue in {self.position}")
