"""How whoever waits for an intake is told how far it is."""

from typing import Protocol


class Progress(Protocol):
    """Told what is being done, what share of it is done (0 to 1, None where nobody knows), and of how many rows."""

    def __call__(self, doing: str, share: float | None, rows: int = 0) -> None:
        """Tell it."""


def silent(doing: str, share: float | None, rows: int = 0) -> None:
    """Tell nobody."""
