"""The rules by which the reader's own prices differ from list prices, as values."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustmentRule:
    """A rule by which the reader's own prices differ from list prices: which prices it is for (None is any), and how.

    It has either a discount in basis points, negative for a markup, or a fixed price in nano-dollars.
    """

    name: str
    size: str | None = None
    region: str | None = None
    os: str | None = None
    purchase: str | None = None
    discount_basis_points: int | None = None
    nano_usd_per_hour: int | None = None
    valid_from: date | None = None
    valid_until: date | None = None
