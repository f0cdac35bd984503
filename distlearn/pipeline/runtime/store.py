"""What a rank holds between its actions: saved states, counted in bytes."""

from __future__ import annotations

from collections.abc import Hashable

from distlearn.nn import Saved


class ActivationStore:
    """Saved states by key; the bytes of their arrays are counted anew whenever one has changed.

    Nothing is estimated: a byte counts as long as a saved state here holds the array it is in.
    What a pass needs only while it runs does not count.

    Attributes
    ----------
    live, peak : int
        Bytes held now, and at the fullest moment.
    whole, most : int
        Activations held now, and at the fullest moment; one that waits to be recomputed is not
        counted.
    curve : list of (str, int)
        Bytes held after each step of the rank.
    """

    def __init__(self) -> None:
        self.live = self.peak = self.whole = self.most = 0
        self.curve: list[tuple[str, int]] = []
        self._held: dict[Hashable, Saved] = {}
        self._bytes: dict[Hashable, int] = {}
        self._whole: set[Hashable] = set()

    def __getitem__(self, key: Hashable) -> Saved:
        return self._held[key]

    def put(self, key: Hashable, saved: Saved, whole: bool = True) -> None:
        """Hold a state, or another one in its place."""
        self._held[key] = saved
        (self._whole.add if whole else self._whole.discard)(key)
        self.count(key)

    def reserve(self, key: Hashable, nbytes: int) -> None:
        """Make room for a state that is on its way."""
        self._whole.add(key)
        self._account(key, nbytes)

    def count(self, key: Hashable) -> None:
        """Count a state again, after a pass has freed or added parts of it."""
        self._account(key, self._held[key].nbytes)

    def take(self, key: Hashable) -> Saved:
        """Give a state away: it does not count any more."""
        saved = self._held.pop(key)
        self._whole.discard(key)
        self._account(key, 0)
        del self._bytes[key]
        return saved

    def note(self, step: str) -> None:
        """Add a point to the curve."""
        self.curve.append((step, self.live))

    def _account(self, key: Hashable, nbytes: int) -> None:
        self.live += nbytes - self._bytes.get(key, 0)
        self._bytes[key] = nbytes
        self.peak = max(self.peak, self.live)
        self.whole = len(self._whole)
        self.most = max(self.most, self.whole)
