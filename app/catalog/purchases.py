"""The words of prices, without SQL: the ways to buy a VM, kinds of disks, and the rules of the reader's own prices."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal, get_args

Purchase = Literal["on_demand", "spot", "reserved_1y", "reserved_3y", "savings_1y", "savings_3y"]
"""A purchase model. Reservations and savings plans are priced an hour, for a commitment of one or three years."""

PURCHASE_MODELS: tuple[Purchase, ...] = get_args(Purchase)

ANY_REGION: Mapping[str, str] = {
    purchase: "*" if purchase == "on_demand" else f"*{purchase}" for purchase in PURCHASE_MODELS
}
"""The region code of the offers in the cheapest region by each purchase model: `*`, `*spot`, `*savings_1y`."""


DiskType = Literal["standard_hdd", "standard_ssd", "premium_ssd", "premium_ssd_v2", "ultra_disk"]
Redundancy = Literal["lrs", "zrs"]
PricedPer = Literal["month", "gib_hour", "iops_hour", "mbps_hour"]

DISK_TYPES: tuple[DiskType, ...] = get_args(DiskType)
REDUNDANCIES: tuple[Redundancy, ...] = get_args(Redundancy)
"""Copies in one zone (`lrs`) or in three (`zrs`)."""
PRICED_PER: tuple[PricedPer, ...] = get_args(PricedPer)
"""A disk of one size is priced a month; one of any size by its GiB, IOPS and MBps, each an hour."""


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
