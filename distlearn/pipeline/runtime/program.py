"""What one rank does: walk through its list of actions."""

from __future__ import annotations

from dataclasses import dataclass, field

from distlearn.comm import Communicator, Request
from distlearn.nn import Array, Grads, Model, Optimizer, Params, Saved, add_gradients
from distlearn.pipeline.action import Action
from distlearn.pipeline.runtime.batch import Key, Pieces
from distlearn.pipeline.runtime.mail import Mail
from distlearn.pipeline.runtime.packing import Packed, pack, unpack
from distlearn.pipeline.runtime.stages import Stage, cut_model
from distlearn.pipeline.runtime.steps import Step, programs
from distlearn.pipeline.runtime.store import ActivationStore
from distlearn.pipeline.runtime.sums import (
    add_shared,
    home,
    places,
    shared_weights,
    zeros_where_missing,
)
from distlearn.pipeline.runtime.weights import Place, Weights, WeightVersions
from distlearn.pipeline.schedule import Schedule


@dataclass(frozen=True)
class Job:
    """What every rank is given: plain values, which travel to other processes."""

    schedule: Schedule
    model: Model
    params: Params
    pieces: Pieces
    optimizer: Optimizer | None


@dataclass(frozen=True)
class RankReport:
    """What a rank has to say at the end. Bytes; see `Run`."""

    losses: dict[Key, float]
    gradients: dict[Place, Grads]
    weights: Weights
    peak_bytes: int
    peak_activations: int
    curve: tuple[tuple[str, int], ...]
    versions_kept: int
    sent: dict[int, int]
    summed_bytes: int
    ledger_bytes: int


async def rank_program(comm: Communicator, job: Job) -> RankReport:
    """The program of one rank, on any engine."""
    return await _Rank(comm, job).run()


@dataclass
class _Guests:
    """Saved states that are away (as `Packed`, and bytes if they lie in host memory)."""

    away: dict[Key, Packed] = field(default_factory=dict)
    on_host: dict[Key, Array] = field(default_factory=dict)
    coming: dict[Key, Request] = field(default_factory=dict)


class _Rank:
    """The state of one rank: weights, saved states, gradients, and messages of neighbours."""

    def __init__(self, comm: Communicator, job: Job) -> None:
        self.comm, self.job, self.schedule, self.pieces = comm, job, job.schedule, job.pieces
        schedule, rank = job.schedule, comm.rank
        self.rank = rank
        self.stages = cut_model(job.model, schedule.stages)
        self.shared = shared_weights(schedule, self.stages)
        self.held = [place for place in places(schedule) if home(schedule, place) == rank]
        first: Weights = {
            (copy, s): {name: job.params[name] for name in self.stages[s].module.shapes()}
            for copy, s in self.held}
        row = schedule.ranks[rank]
        reads = schedule.versions[rank] if schedule.versions else ()
        self.weights = WeightVersions(first, reads, row, job.optimizer, _predicts(schedule, rank))
        self.mail = Mail(comm, schedule.m, schedule.slices)
        self.store = ActivationStore()
        self.redone = {tuple(a[1:]) for a in row if a.kind == "R"}
        self.local: dict[tuple[str, Key], Array] = {}  # between two stages of this rank
        self.sliced: dict[tuple[int, int], Stage] = {}
        self.guests = _Guests()
        self.losses: dict[Key, float] = {}
        self.sums: dict[int, dict[Place, Grads]] = {}  # by optimizer step
        self.k = 0

    async def run(self) -> RankReport:
        """All steps, the optimizer's included."""
        steps = self.schedule.steps[self.rank] if self.schedule.steps else ()
        for step in programs(self.schedule)[self.rank]:
            if step.what == "act":
                self.k = step.place
                for part in step.action.parts:
                    await self._act(part)
                self.weights.done(self.k)
                for update, after in enumerate(steps):
                    if after == self.k + 1:
                        self.weights.step(await self._finished(update))
            else:
                await self._host(step)
            self.store.note(str(step.action))
        gradients: dict[Place, Grads] = {}
        if not self.schedule.steps:
            gradients = await self._finished(0)
            if self.job.optimizer is not None:
                self.weights.step(gradients)
        await self.mail.close()
        store = self.store
        return RankReport(
            self.losses, gradients, self.weights.final(), store.peak, store.most,
            tuple(store.curve), self.weights.most, self.mail.sent, self.mail.summed,
            self.comm.ledger.total("send").bytes_sent)

    async def _act(self, action: Action) -> None:
        kind, key = action.kind, tuple(action[1:])
        if kind == "F":
            await self._forward(key)
        elif kind == "R":
            self._recompute(key)
        elif kind in "BI":
            await self._backward(kind, key)
        elif kind == "W":
            self._add(key, self._stage(key).backward_weight(self.store[key]))
            self.store.take(key)
        else:
            self._move(kind, key)

    # -- passes ----------------------------------------------------------------------------------

    async def _forward(self, key: Key) -> None:
        stage, piece = self._stage(key), self.pieces.piece(key)
        x = piece.ids if key[0] == 0 else await self._receive("output", key, -1)
        y, loss, saved = stage.forward(self._params("F", key), x, piece)
        self.losses[key] = loss
        if key in self.redone:  # keep the input alone until R
            self.store.put(key, Saved(for_input={"x": x}), whole=False)
        else:
            self.store.put(key, saved)
        if key[0] < self.schedule.stages - 1:
            self._send("output", key, y, +1)

    def _recompute(self, key: Key) -> None:
        """R: the forward pass once more; its output is not needed."""
        x = self.store[key].take("x")
        _, _, saved = self._stage(key).forward(self._params("R", key), x, self.pieces.piece(key))
        self.store.put(key, saved)

    async def _backward(self, kind: str, key: Key) -> None:
        if key in self.guests.coming:
            data = await self.guests.coming.pop(key)
            self.store.put(key, unpack(self.guests.away.pop(key), data))
        last = key[0] == self.schedule.stages - 1
        dy = None if last else await self._receive("gradient", key, +1)
        stage, params, saved = self._stage(key), self._params(kind, key), self.store[key]
        piece = self.pieces.piece(key)
        if kind == "B":
            dx, gradients = stage.backward(params, saved, dy, piece)
            self._add(key, gradients)
            self.store.take(key)
        else:
            dx = stage.backward_input(params, saved, dy, piece)
            self.store.count(key)  # what only I needed is gone; what W needs of dy has come
        if key[0] > 0:
            self._send("gradient", key, dx, -1)

    def _add(self, key: Key, gradients: Grads) -> None:
        update = self.sums.setdefault(self.pieces.update_of(key[1]), {})
        add_gradients(update.setdefault(self._place(key), {}), gradients)

    async def _finished(self, update: int) -> dict[Place, Grads]:
        """The gradients of an optimizer step, of all copies together."""
        sums = self.sums.pop(update, {})
        gradients = {
            place: zeros_where_missing(sums.get(place, {}), params)
            for place, params in self.weights.final().items()}
        await add_shared(self.schedule, self.rank, self.mail, self.shared, gradients)
        return gradients

    # -- where things are ------------------------------------------------------------------------

    def _place(self, key: Key) -> Place:
        direction = self.schedule.direction
        return (direction[key[1]] if direction else 0), key[0]

    def _params(self, kind: str, key: Key) -> Params:
        return self.weights.at(self.k, kind, self._place(key))

    def _stage(self, key: Key) -> Stage:
        """The stage; of a sequence in slices, one that remembers the slices before."""
        if self.schedule.slices == 1 or self.pieces.cut == "batch":
            return self.stages[key[0]]
        sequence = key[0], key[1]
        if sequence not in self.sliced:
            self.sliced[sequence] = self.stages[key[0]].sliced()
        return self.sliced[sequence]

    def _send(self, what: str, key: Key, array: Array, step: int) -> None:
        target = self.schedule.home(key[0] + step, key[1])
        there = (key[0] + step, *key[1:])
        if target == self.rank:
            self.local[what, there] = array
        else:
            self.mail.send(what, there, array, target)

    async def _receive(self, what: str, key: Key, step: int) -> Array:
        source = self.schedule.home(key[0] + step, key[1])
        if source == self.rank:
            return self.local.pop((what, key))
        return await self.mail.receive(what, key, source)

    # -- activations that travel -----------------------------------------------------------------

    def _move(self, kind: str, key: Key) -> None:
        """E and O: away, to the partner or to host memory. L and P: back."""
        guests = self.guests
        if kind in "EO":
            guests.away[key], data = pack(self.store.take(key))
            if kind == "E":
                self.mail.send("evicted", key, data, self.schedule.partner[self.rank])
            else:
                guests.on_host[key] = data
        elif kind == "P":
            self.store.put(key, unpack(guests.away.pop(key), guests.on_host.pop(key)))
        else:  # room is taken now; the backward pass waits for the bytes
            self.store.reserve(key, sum(guests.away[key].sizes))
            guests.coming[key] = self.mail.ask("returned", key, self.schedule.partner[self.rank])

    async def _host(self, step: Step) -> None:
        """Take in an activation of the partner rank, or give it back."""
        parked = ("guest", step.home, *step.key)
        if step.what == "take_in":
            data = await self.mail.receive("evicted", step.key, step.home)
            self.store.put(parked, Saved(for_input={"bytes": data}))
        else:
            data = self.store.take(parked).take("bytes")
            self.mail.send("returned", step.key, data, step.home)


def _predicts(schedule: Schedule, rank: int) -> bool:
    """Whether some action reads a version before the step that makes it."""
    if not schedule.versions:
        return False
    steps = schedule.steps[rank]
    return any(version > sum(after <= k for after in steps)
               for k, version in enumerate(schedule.versions[rank]))
