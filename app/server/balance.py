"""How many connections each worker has open, in memory that they share, so that each accepts its part.

All workers wait for the same listening socket, and the first one that wakes up could take all of a few connections.
"""

import multiprocessing
from collections.abc import MutableSequence
from dataclasses import dataclass

_processes = multiprocessing.get_context("spawn")

_ACCEPTS_NONE = -1


@dataclass(slots=True)
class ConnectionCounts:
    """The connections of all workers, of which one is at `place`; can be pickled for its process."""

    open: MutableSequence[int]
    place: int
    has_ended: bool = False

    @classmethod
    def of_workers(cls, workers: int) -> "list[ConnectionCounts]":
        """Return the counts for each of the workers, none of which accepts connections yet."""
        shared = _processes.RawArray("i", [_ACCEPTS_NONE] * workers)
        return [cls(shared, place) for place in range(workers)]

    def note(self, count: int) -> None:
        """Tell the others how many connections this worker has."""
        if not self.has_ended:
            self.open[self.place] = count

    def end(self) -> None:
        """Tell the others that this worker accepts no more."""
        self.has_ended = True
        self.forget()

    def forget(self) -> None:
        """Tell the others that there is no worker here, for one that has died without a word."""
        self.open[self.place] = _ACCEPTS_NONE

    def is_above_another(self, count: int) -> bool:
        """Check whether another worker accepts connections and has fewer than this one with `count`."""
        return any(_ACCEPTS_NONE < each < count for place, each in enumerate(self.open) if place != self.place)
