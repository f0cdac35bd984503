"""The torch engine: torch.distributed moves the bytes, with gloo.

Arrays live in host memory, so messages and the textbook algorithms always go through gloo, and
their results are the same bits as on the other engines. Where every rank has a GPU, torch's own
collectives (``"native"``, and ``"auto"`` too) run on NCCL.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import numpy as np

from distlearn.comm.call import Call
from distlearn.comm.errors import EngineError
from distlearn.comm.layout import Array, Layout
from distlearn.comm.wire import DATA, ENVELOPE, ENVELOPE_BYTES, as_bytes, pack, unpack, wire_tag
from distlearn.extras import install_command

BACKENDS = ("gloo", "nccl")
_NOTHING = np.empty(0, np.uint8)
_RECEIVES = 10_000  # under way at once; a thread starts only when all others are busy


def launched() -> bool:
    """Whether torchrun, or something that sets the same variables, started this process."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR"))


class TorchTransport:
    """Bytes through ``torch.distributed``.

    Parameters
    ----------
    backend : str, optional
        ``"gloo"`` or ``"nccl"``. Default: NCCL if every rank of this machine has a GPU of its own.
    store : str, optional
        File through which the ranks find each other; default: torchrun's environment.
    timeout : float, optional
        Seconds after which a rank gives up waiting; default: none.

    Raises
    ------
    EngineError
        If torch is missing.
    """

    name = "torch"

    def __init__(self, backend: str | None = None, store: str | None = None,
                 timeout: float | None = None) -> None:
        try:
            import torch
            import torch.distributed as dist
        except ImportError as error:
            raise EngineError(f"the torch engine needs torch ({error}): "
                              f"{install_command('torch')}") from error
        if backend not in (None, *BACKENDS):
            raise ValueError(f"backend = {backend!r} is not one of {', '.join(BACKENDS)}")
        self._torch, self._dist = torch, dist
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        local = int(os.environ.get("LOCAL_WORLD_SIZE", self.size))
        if backend is None:
            backend = "nccl" if torch.cuda.is_available() \
                and torch.cuda.device_count() >= local else "gloo"
        self.prefers_native = backend == "nccl"
        self._device = "cpu"
        if self.prefers_native:
            index = int(os.environ.get("LOCAL_RANK", self.rank))
            torch.cuda.set_device(index)
            self._device = f"cuda:{index}"
        self._owns = not dist.is_initialized()
        if self._owns:
            limit = timedelta(seconds=timeout if timeout is not None else 10_000_000)
            rendezvous = dist.FileStore(store, self.size) if store else None
            dist.init_process_group("cpu:gloo,cuda:nccl" if self.prefers_native else "gloo",
                                    store=rendezvous, rank=self.rank, world_size=self.size,
                                    timeout=limit)
        self.hosts: Sequence[str] = self.share(socket.gethostname())
        self._groups: dict[tuple[int, ...], Any] = {tuple(range(self.size)): None}
        self._outgoing: deque[list[Any]] = deque()
        # torch cannot tell whether an envelope has come without waiting for it, so a thread waits;
        # one for each receive under way, for messages may come in another order than asked for
        self._threads = ThreadPoolExecutor(max_workers=_RECEIVES, thread_name_prefix="receive")
        self._last: dict[tuple[int, int, int], Future[Array]] = {}

    # -- bytes -----------------------------------------------------------------------------------

    def isend(self, data: Array, dest: int, tag: int) -> Any:
        """Start to send bytes."""
        return self._dist.isend(self._tensor(data), dest, tag=tag), data

    def irecv(self, buffer: Array, source: int, tag: int) -> Any:
        """Start to receive bytes."""
        return self._dist.irecv(self._tensor(buffer), source, tag=tag), buffer

    def _tensor(self, data: Array) -> Any:
        if data.size == 0:  # torch does not send empty tensors: both sides use one byte
            data = np.zeros(1, np.uint8)
        elif not data.flags.writeable:  # torch warns about memory it must not write to
            data = data.copy()
        return self._torch.from_numpy(data)

    def wait(self, handles: Sequence[Any]) -> None:
        """Wait until all are done."""
        for work, _ in handles:
            work.wait()

    # -- arrays ----------------------------------------------------------------------------------

    def send_array(self, array: Array, dest: int, context: int, tag: int) -> Any:
        """Start to send an array: its envelope and, if it is large, its data."""
        envelope, data = pack(array)
        handles = [self.isend(envelope, dest, wire_tag(context, ENVELOPE, tag))]
        if data is not None:
            handles.append(self.isend(data, dest, wire_tag(context, DATA, tag)))
        self._outgoing.append(handles)
        return handles

    def wait_sent(self, handle: Any) -> None:
        """Wait until an array has left."""
        self._outgoing.remove(handle)
        self.wait(handle)

    def receive_array(self, source: int, context: int, tag: int) -> Future[Array]:
        """Start to receive an array."""
        key = (source, context, tag)
        before = self._last.get(key)
        made = self._last[key] = self._threads.submit(self._receive, *key, before)
        return made

    def _receive(self, source: int, context: int, tag: int,
                 before: Future[Array] | None) -> Array:
        if before is not None:
            before.result()  # the messages of one tag come one after the other
        envelope = np.empty(ENVELOPE_BYTES, np.uint8)
        self.wait([self.irecv(envelope, source, wire_tag(context, ENVELOPE, tag))])
        array, more = unpack(envelope)
        if more:
            self.wait([self.irecv(as_bytes(array), source, wire_tag(context, DATA, tag))])
        return array

    def wait_received(self, handle: Future[Array]) -> Array:
        """Wait for an array."""
        return handle.result()

    def finish(self) -> None:
        """Wait for what is still being sent."""
        while self._outgoing:
            self.wait(self._outgoing.popleft())

    def share(self, value: Any) -> list[Any]:
        """Give every rank the value of every rank (pickled: results of programs, not arrays)."""
        values: list[Any] = [None] * self.size
        self._dist.all_gather_object(values, value)
        return values

    def close(self) -> None:
        """Leave the world."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._owns:
            self._dist.destroy_process_group()

    def abort(self, code: int) -> None:
        """End this rank at once; who started it ends the others."""
        os._exit(code)

    # -- torch's own collectives -----------------------------------------------------------------

    def native(self, group: tuple[int, ...], call: Call, spread: Layout, data: Array
               ) -> Array | None:
        """Torch's collective, for dtypes that torch has; gathers only of equal parts."""
        dist, name = self._dist, call.operation
        sizes, dtype = spread.sizes, self._torch_dtype(spread.dtype)
        if dtype is None or (name in ("all_gather", "reduce_scatter") and len(set(sizes)) > 1):
            return None
        if group not in self._groups:
            self._groups[group] = dist.new_group(list(group), use_local_synchronization=True)
        pg, rank = self._groups[group], group.index(self.rank)
        if name == "barrier":
            dist.barrier(pg)
            return _NOTHING
        if name == "broadcast" and rank != call.root:
            data = np.empty(sum(sizes), spread.dtype)
        source = self._up(data, dtype)
        if name == "broadcast":
            dist.broadcast(source, group[call.root or 0], pg)
            return self._down(source, spread.dtype)
        if name == "all_gather":
            out = self._torch.empty(sum(sizes), dtype=dtype, device=self._device)
            dist.all_gather_into_tensor(out, source, pg)
            return self._down(out, spread.dtype)
        if name == "all_to_all":
            p = len(group)
            sent, received = sizes[rank * p:(rank + 1) * p], sizes[rank::p]
            out = self._torch.empty(sum(received), dtype=dtype, device=self._device)
            dist.all_to_all_single(out, source, list(received), list(sent), pg)
            return self._down(out, spread.dtype)
        op = self._reduce_op(call.reduction)
        if name == "all_reduce":
            dist.all_reduce(source, op, pg)
        elif name == "reduce":
            dist.reduce(source, group[call.root or 0], op, pg)
        elif name == "reduce_scatter":
            out = self._torch.empty(sizes[rank], dtype=dtype, device=self._device)
            dist.reduce_scatter_tensor(out, source, op, pg)
            source = out
        else:
            return None
        return self._down(source, spread.dtype)

    def _reduce_op(self, reduction: str | None) -> Any:
        ops = self._dist.ReduceOp
        return {"sum": ops.SUM, "mean": ops.SUM, "max": ops.MAX, "min": ops.MIN,
                "prod": ops.PRODUCT}[reduction or "sum"]

    def _torch_dtype(self, dtype: np.dtype[Any]) -> Any:
        """Torch's dtype of the same name, None if there is none it can compute with."""
        found = getattr(self._torch, dtype.name, None) if dtype.isnative else None
        known = isinstance(found, self._torch.dtype) and dtype.kind != "b"
        return found if known else None

    def _up(self, data: Array, dtype: Any) -> Any:
        """A flat tensor on the engine's device that holds a copy of the data."""
        tensor = self._torch.empty(data.size, dtype=dtype)
        if data.size:
            tensor.view(self._torch.uint8).numpy()[:] = data.view(np.uint8)
        return tensor.to(self._device)

    def _down(self, tensor: Any, dtype: np.dtype[Any]) -> Array:
        raw: Array = tensor.cpu().view(self._torch.uint8).numpy() if tensor.numel() else _NOTHING
        return raw.view(dtype)
