"""The weights of a rank's stages, in as many versions as the schedule still reads."""

from __future__ import annotations

from collections.abc import Mapping

from distlearn.nn import Array, Grads, Optimizer, Params
from distlearn.pipeline.action import Action

Place = tuple[int, int]
"""Copy of the model, and stage."""

Weights = dict[Place, dict[str, Array]]


class WeightVersions:
    """Version n has seen n updates; what nobody on this rank will read again is dropped.

    A forward may name a version that is not there yet. It is predicted, by the last update done
    once more for each update that is missing (XPipe, section 3.2: with Adam, that is the direction
    of its running means). Later forwards that name this version use the same prediction. A backward
    reads the version itself as soon as it exists.

    Parameters
    ----------
    first : dict
        Weights by place and name: version 0. Never written to.
    reads : sequence of int
        ``reads[k]``: version that action k reads. Empty: always the newest.
    row : sequence of Action
        The rank's actions.
    optimizer : Optimizer, optional
    predicts : bool
        Whether some version is read before it exists, so that the last update must be kept.

    Attributes
    ----------
    newest : int
    most : int
        Most versions held at once, a prediction included.
    """

    def __init__(self, first: Weights, reads: tuple[int, ...], row: tuple[Action, ...],
                 optimizer: Optimizer | None, predicts: bool) -> None:
        self.newest, self.most = 0, 1
        self._real: dict[int, Weights] = {0: first}
        self._reads, self._row, self._optimizer = reads, row, optimizer
        self._oldest = _still_read(reads)
        self._predicts = predicts
        self._prediction: tuple[int, Weights] | None = None
        self._last_update: Weights = {}
        self._states = {place: optimizer.init(params) for place, params in first.items()
                        } if optimizer is not None else {}

    def at(self, k: int, kind: str, place: Place) -> Params:
        """The weights that action k reads."""
        if not self._reads:
            return self._real[self.newest][place]
        version = self._reads[k]
        for old in [n for n in self._real if n < min(self._oldest[k], self.newest)]:
            del self._real[old]
        predicted = self._prediction
        if version > self.newest and (predicted is None or predicted[0] != version):
            predicted = self._prediction = (version, self._predict(version - self.newest))
        self.most = max(self.most, len(self._real) + (predicted is not None))
        if predicted is not None and predicted[0] == version and (
                kind == "F" or version > self.newest):
            return predicted[1][place]
        return self._real[version][place]

    def done(self, k: int) -> None:
        """Action k has read what it reads: drop a prediction that no later forward will use."""
        if self._prediction is not None and not any(
                version == self._prediction[0] and "F" in action.kind
                for version, action in zip(self._reads[k + 1:], self._row[k + 1:], strict=True)):
            self._prediction = None

    def step(self, gradients: Mapping[Place, Grads]) -> None:
        """One update of all stages of the rank: a new version."""
        assert self._optimizer is not None
        before = self._real[self.newest]
        after = {place: {name: w.copy() for name, w in params.items()}
                 for place, params in before.items()}
        for place, params in after.items():
            self._optimizer.update(params, gradients[place], self._states[place])
        if self._predicts:
            self._last_update = {
                place: {name: w - before[place][name] for name, w in params.items()}
                for place, params in after.items()}
        self.newest += 1
        self._real[self.newest] = after
        if not self._reads:
            del self._real[self.newest - 1]

    def final(self) -> Weights:
        """The newest version."""
        return self._real[self.newest]

    def _predict(self, steps: int) -> Weights:
        newest = self._real[self.newest]
        if not self._last_update:  # nothing known before the first update: it predicts no change
            return newest
        return {place: {name: w + steps * self._last_update[place][name]
                        for name, w in params.items()} for place, params in newest.items()}


def _still_read(reads: tuple[int, ...]) -> list[int]:
    """``[k]``: the oldest version that action k or a later one reads."""
    oldest, still = [0] * len(reads), max(reads, default=0)
    for k in range(len(reads) - 1, -1, -1):
        still = min(still, reads[k])
        oldest[k] = still
    return oldest
