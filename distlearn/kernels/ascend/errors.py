"""What a cube program can do wrong; every error names the buffers, pipes and calls it is about."""

from __future__ import annotations


class AscendError(Exception):
    """A program that the core cannot run, or would run wrongly.

    Attributes
    ----------
    kind : str
        ``"overflow"``: a buffer is too small. ``"race"``: two pipes touch the same bytes, at least
        one of them writing, and no flag orders them; or a flag is set again before it was surely
        waited for. ``"deadlock"``: pipes wait for each other, or for a flag that nobody sets.
        ``"unpaired_flag"``: a flag that is set and never waited for.
        ``"uninitialised"``: bytes read that nobody wrote.
        ``"layout"``: a tensor in a buffer or format that the instruction does not take.
        ``"queue"``: a queue that is empty, or has no free buffer. ``"event_ids"``: more flags
        between two pipes than there are.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class BufferOverflowError(AscendError):
    """A buffer that is too small for what is asked of it.

    Attributes
    ----------
    buffer : str
    asked, capacity, over : int
        Bytes in all with this request, bytes there are, and by how much it is too much.
    """

    def __init__(self, buffer: str, asked: int, capacity: int, what: str) -> None:
        self.buffer, self.asked, self.capacity = buffer, asked, capacity
        self.over = asked - capacity
        super().__init__("overflow", f"{buffer} overflows by {self.over:,} bytes: {what} makes "
                                     f"{asked:,} of {capacity:,} bytes")
