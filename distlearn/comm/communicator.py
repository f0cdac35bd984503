"""The communicator: a rank's view of its group, and all it can do there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from distlearn.comm.algorithms import ALGORITHMS, NATIVE
from distlearn.comm.call import Call
from distlearn.comm.layout import Array
from distlearn.comm.ledger import Group, Ledger
from distlearn.comm.numbers import is_whole
from distlearn.comm.operation import Collective, Home, Request, caller
from distlearn.comm.plans import even_split
from distlearn.comm.reductions import check_reduction

MAX_TAG = 32_767
"""Largest tag: what the MPI standard promises everywhere."""

_EMPTY = np.empty(0, np.uint8)


class Communicator:
    """A group of ranks, seen from one of them.

    The same on every engine. Whatever may wait has to be awaited; `isend` and `irecv` start at once
    and return a `Request` to await later. Arrays may have any shape, memory order and dtype except
    object (float16 and ml_dtypes' bfloat16 included); arguments are never modified, and results are
    new arrays that share memory with nothing.

    All ranks of the group have to call the same collectives in the same order with arguments that
    fit together. ``algorithm`` is ``"auto"``, one of ``distlearn.comm.ALGORITHMS[operation]``, or
    ``"native"``: MPI's or torch's own collective, whose order of summation is its own.

    Attributes
    ----------
    rank : int
        This rank within the group, 0 .. size - 1.
    size : int
    group : tuple of int
        World ranks of the group; ``group[rank]`` is this one.
    nodes : tuple of int
        Node of each rank, numbered from 0.
    ledger : Ledger
        What this rank has sent and received, over all its groups.

    Examples
    --------
    >>> from distlearn.comm import run
    >>> async def program(comm):
    ...     mine = np.full(3, comm.rank)
    ...     total = await comm.all_reduce(mine)
    ...     right = comm.isend(mine, (comm.rank + 1) % comm.size)
    ...     left = await comm.recv((comm.rank - 1) % comm.size)
    ...     await right
    ...     return total.tolist(), left.tolist()
    >>> run(program, ranks=3)
    [([3, 3, 3], [2, 2, 2]), ([3, 3, 3], [0, 0, 0]), ([3, 3, 3], [1, 1, 1])]
    """

    __slots__ = ("context", "group", "home", "nodes", "rank", "size", "suffix")

    def __init__(self, home: Home, rank: int, group: Group, nodes: tuple[int, ...],
                 context: Any, suffix: str = "") -> None:
        self.home, self.rank, self.group, self.nodes = home, rank, group, nodes
        self.size = len(group)
        self.context = context
        self.suffix = suffix  # names the group in messages

    @property
    def ledger(self) -> Ledger:
        """What this rank has sent and received, over all its groups."""
        return self.home.ledger

    def __repr__(self) -> str:
        return f"<Communicator rank {self.rank} of {self.size}{self.suffix}>"

    # -- one message -----------------------------------------------------------------------------

    def send(self, array: ArrayLike, dest: int, tag: int = 0) -> Request:
        """Send an array to rank ``dest``; ends when the receiver has it.

        A send may wait for its receive on every engine (MPI's large messages do), so a ring in
        which all ranks first send and then receive is a deadlock: use `isend`.

        Parameters
        ----------
        array : array_like
        dest : int
            Rank within the group, not this one.
        tag : int
            0 .. 32767; a receive takes the oldest message with its source and tag.
        """
        return self._message(True, dest, tag, array)

    def recv(self, source: int, tag: int = 0) -> Request:
        """Receive an array from rank ``source``; its shape and dtype come with it."""
        return self._message(False, source, tag)

    def isend(self, array: ArrayLike, dest: int, tag: int = 0) -> Request:
        """Start a send and go on. The array is copied: it may be changed at once."""
        return self._message(True, dest, tag, array, owned=True).start()

    def irecv(self, source: int, tag: int = 0) -> Request:
        """Start a receive and go on; ``await`` the request for the array."""
        return self._message(False, source, tag).start()

    def _message(self, sends: bool, peer: int, tag: int, array: ArrayLike | None = None,
                 owned: bool = False) -> Request:
        _check_rank("dest" if sends else "source", peer, self.size)
        if not is_whole(tag) or not 0 <= tag <= MAX_TAG:
            raise ValueError(f"tag = {tag!r} is not a whole number in 0 .. {MAX_TAG}")
        data = None
        if sends:
            data = _array(array)
            data = data.copy("C") if owned else np.asarray(data, order="C")
        return Request(self, caller(2), sends=sends, peer=peer, tag=tag, array=data, owned=owned)

    # -- one array on every rank -----------------------------------------------------------------

    def all_reduce(self, array: ArrayLike, op: str = "sum", *,
                   algorithm: str = "auto") -> Collective:
        """Combine the arrays of all ranks; every rank gets the same bits.

        Parameters
        ----------
        array : array_like
            Same shape and dtype on all ranks.
        op : str
            ``"sum"``, ``"mean"``, ``"max"``, ``"min"`` or ``"prod"``, computed in the array's dtype
            (bool: sum is "or"). A mean is the sum divided by the number of ranks; not for integers.
        algorithm : str
            ``"ring"``, ``"recursive_doubling"``, ``"halving_doubling"``, ``"tree"``,
            ``"hierarchical"``.
        """
        data = _array(array)
        check_reduction(op, data.dtype)
        call = Call("all_reduce", algorithm, data.dtype, (data.shape,), op)
        return self._collective(call, data)

    def reduce(self, array: ArrayLike, op: str = "sum", root: int = 0, *,
               algorithm: str = "auto") -> Collective:
        """Combine the arrays of all ranks; ``root`` gets the result, the others None."""
        data = _array(array)
        check_reduction(op, data.dtype)
        _check_rank("root", root, self.size)
        call = Call("reduce", algorithm, data.dtype, (data.shape,), op, root)
        return self._collective(call, data)

    def broadcast(self, array: ArrayLike | None = None, root: int = 0, *,
                  algorithm: str = "auto") -> Collective:
        """Give every rank the array of ``root``.

        Other ranks pass None, or an array of the same shape and dtype (which is checked, not used).
        """
        _check_rank("root", root, self.size)
        if array is None:
            if self.rank == root:
                raise ValueError(f"rank {root} is the root of this broadcast and brings no array")
            return self._collective(Call("broadcast", algorithm, root=root), _EMPTY)
        data = _array(array)
        call = Call("broadcast", algorithm, data.dtype, (data.shape,), root=root)
        return self._collective(call, data)

    # -- parts of an array -----------------------------------------------------------------------

    def reduce_scatter(self, array: ArrayLike, op: str = "sum", *, axis: int = 0,
                       counts: Sequence[int] | None = None,
                       algorithm: str = "auto") -> Collective:
        """Combine the arrays of all ranks; rank r gets the r-th part along ``axis``.

        Parameters
        ----------
        array : array_like
            Same shape and dtype on all ranks, at least one axis.
        op, algorithm : str
            As in `all_reduce` (no ``"recursive_doubling"``).
        axis : int
        counts : sequence of int, optional
            Length of each rank's part. Default: as ``numpy.array_split`` cuts, the first ones
            longer by one where the length is not a multiple of the number of ranks.
        """
        data = _array(array)
        check_reduction(op, data.dtype)
        data, axis = _axis_first(data, axis)
        parts = self._counts(counts, data.shape[0])
        call = Call("reduce_scatter", algorithm, data.dtype, (data.shape,), op, None, axis, parts)
        return self._collective(call, data)

    def all_gather(self, array: ArrayLike, *, axis: int | None = 0,
                   algorithm: str = "auto") -> Collective:
        """Give every rank the arrays of all ranks, in rank order.

        Parameters
        ----------
        array : array_like
            Same dtype on all ranks; same shape except along ``axis``. A number counts as an array
            of length 1.
        axis : int or None
            Axis along which the arrays are joined. None: return a list, shapes may all differ.
        algorithm : str
            ``"ring"``, ``"halving_doubling"``, ``"tree"``, ``"hierarchical"``.
        """
        data, axis = _joined(_array(array), axis)
        call = Call("all_gather", algorithm, data.dtype, (data.shape,), axis=axis)
        return self._collective(call, data)

    def gather(self, array: ArrayLike, root: int = 0, *, axis: int | None = 0,
               algorithm: str = "auto") -> Collective:
        """Give ``root`` the arrays of all ranks, as in `all_gather`; the others get None."""
        _check_rank("root", root, self.size)
        data, axis = _joined(_array(array), axis)
        call = Call("gather", algorithm, data.dtype, (data.shape,), None, root, axis)
        return self._collective(call, data)

    def scatter(self, arrays: ArrayLike | Sequence[ArrayLike] | None = None, root: int = 0, *,
                counts: Sequence[int] | None = None, algorithm: str = "auto") -> Collective:
        """Give rank r the r-th of the root's arrays.

        Parameters
        ----------
        arrays : numpy.ndarray, or list of arrays
            On the root: one array, cut along its first axis by ``counts``; or a list with one array
            per rank, of any shapes and one dtype. Other ranks: None.
        root : int
        counts : sequence of int, optional
            As in `reduce_scatter`; on the root.
        algorithm : str
            ``"tree"`` or ``"direct"``.
        """
        _check_rank("root", root, self.size)
        if self.rank != root:
            if arrays is not None:
                raise ValueError(f"rank {self.rank} is not the root (root = {root}) of this "
                                 "scatter and brings arrays; pass None")
            return self._collective(Call("scatter", algorithm, root=root), _EMPTY)
        data, shapes, _ = self._blocks("scatter", arrays, counts)
        call = Call("scatter", algorithm, data.dtype, shapes, root=root)
        return self._collective(call, data)

    def all_to_all(self, arrays: ArrayLike | Sequence[ArrayLike], *,
                   counts: Sequence[int] | None = None, algorithm: str = "auto") -> Collective:
        """Send the r-th array to rank r; get one from every rank, in rank order.

        Parameters
        ----------
        arrays : numpy.ndarray, or list of arrays
            One array, cut along its first axis by ``counts``: what arrives is joined along the
            first axis. Or a list with one array per rank, of any shapes: a list is returned.
        counts : sequence of int, optional
            As in `reduce_scatter`; may differ from rank to rank.
        algorithm : str
            ``"pairwise"``.
        """
        data, shapes, axis = self._blocks("all_to_all", arrays, counts)
        call = Call("all_to_all", algorithm, data.dtype, shapes, axis=axis)
        return self._collective(call, data)

    # -- the group -------------------------------------------------------------------------------

    def barrier(self, *, algorithm: str = "auto") -> Collective:
        """Wait until all ranks of the group are here."""
        return self._collective(Call("barrier", algorithm), _EMPTY)

    def split(self, color: int | None, key: int = 0) -> Collective:
        """Divide the group: ranks with the same color form a new one.

        Parameters
        ----------
        color : int or None
            None: this rank joins no group and gets None.
        key : int
            Ranks are ordered by key, then by their rank here.

        Returns
        -------
        Communicator or None
        """
        for name, value in (("color", color), ("key", key)):
            if not is_whole(value) and (value is not None or name == "key"):
                raise ValueError(f"{name} = {value!r} of a split is not a whole number")
        return self._collective(Call("split", color=color, key=key), _EMPTY)

    # -- shared ----------------------------------------------------------------------------------

    def _collective(self, call: Call, data: Array) -> Collective:
        algorithm = call.algorithm
        if algorithm != "auto" and algorithm != NATIVE and algorithm not in ALGORITHMS[
                call.operation]:
            raise ValueError(f"algorithm {algorithm!r} is not one of those of {call.operation}: "
                             f"auto, native, {', '.join(ALGORITHMS[call.operation])}")
        return Collective(self, caller(2), call, data.ravel())

    def _counts(self, counts: Sequence[int] | None, length: int) -> tuple[int, ...]:
        if counts is None:
            return even_split(length, self.size)
        parts = tuple(counts)
        if (len(parts) != self.size or not all(map(is_whole, parts)) or sum(parts) != length
                or min(parts) < 0):
            raise ValueError(f"counts = {list(parts)} must be {self.size} lengths, one per rank, "
                             f"not negative, that add up to {length}, the length of the axis")
        return parts

    def _blocks(self, name: str, arrays: Any, counts: Sequence[int] | None
                ) -> tuple[Array, tuple[tuple[int, ...], ...], int | None]:
        """One block per rank: all of them in one flat array, their shapes, and how to join them."""
        if isinstance(arrays, np.ndarray):
            data = _array(arrays)
            if data.ndim == 0:
                raise ValueError(f"{name} cuts its array along the first axis; got a 0-d array")
            inner = data.shape[1:]
            shapes = tuple((n, *inner) for n in self._counts(counts, data.shape[0]))
            return data, shapes, 0
        if not isinstance(arrays, (list, tuple)) or len(arrays) != self.size:
            got = f"{len(arrays)} of them" if isinstance(arrays, (list, tuple)) else repr(arrays)
            raise ValueError(f"{name} takes a numpy array, or a list of {self.size} arrays, one "
                             f"per rank; got {got}")
        if counts is not None:
            raise ValueError(f"counts = {list(counts)} cut one array; {name} got a list of arrays")
        blocks = [_array(block) for block in arrays]
        dtypes = {block.dtype for block in blocks}
        if len(dtypes) > 1:
            raise TypeError(f"the arrays of one {name} must have one dtype; got "
                            f"{', '.join(sorted(map(str, dtypes)))}")
        flat = np.concatenate([block.reshape(-1) for block in blocks])
        return flat, tuple(block.shape for block in blocks), None


def _array(array: ArrayLike | None) -> Array:
    data = np.asarray(array)
    if data.dtype.hasobject:
        raise TypeError(f"only arrays of plain numbers can be sent, got dtype {data.dtype}: "
                        f"{array!r:.80}")
    return data


def _check_rank(name: str, rank: int, size: int) -> None:
    if not is_whole(rank) or not 0 <= rank < size:
        raise ValueError(f"{name} = {rank!r} is not a rank of a group of {size} (0 .. {size - 1})")


def _axis_first(data: Array, axis: int) -> tuple[Array, int]:
    """Move the axis to the front; the axis counted from the start."""
    if not is_whole(axis) or not -data.ndim <= axis < data.ndim:
        raise ValueError(f"axis = {axis!r} is not an axis of an array of shape {data.shape}")
    axis %= data.ndim
    return (np.moveaxis(data, axis, 0), axis) if axis else (data, 0)


def _joined(data: Array, axis: int | None) -> tuple[Array, int | None]:
    if axis is None:
        return data, None
    return _axis_first(data.reshape(1) if data.ndim == 0 else data, axis)


def axis_back(result: Any, axis: int | None) -> Any:
    """Undo `_axis_first` on a result."""
    if not axis or result is None:
        return result
    return np.ascontiguousarray(np.moveaxis(cast(Array, result), 0, axis))
