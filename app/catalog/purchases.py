"""The ways to buy a VM, and the region codes of offers in the cheapest region by each."""

from typing import Literal, get_args

Purchase = Literal["on_demand", "spot", "reserved_1y", "reserved_3y", "savings_1y", "savings_3y"]
"""A purchase model. Reservations and savings plans are priced an hour, for a commitment of one or three years."""

PURCHASE_MODELS: tuple[Purchase, ...] = get_args(Purchase)


def any_region(purchase: str) -> str:
    """Return the region code of the offers in the cheapest region by a purchase model: `*`, `*spot`, `*savings_1y`."""
    return "*" if purchase == "on_demand" else f"*{purchase}"
