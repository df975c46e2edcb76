"""The ways to buy a VM, and the region codes of offers in the cheapest region by each."""

from collections.abc import Mapping
from typing import Literal, get_args

Purchase = Literal["on_demand", "spot", "reserved_1y", "reserved_3y", "savings_1y", "savings_3y"]
"""A purchase model. Reservations and savings plans are priced an hour, for a commitment of one or three years."""

PURCHASE_MODELS: tuple[Purchase, ...] = get_args(Purchase)

ANY_REGION: Mapping[str, str] = {
    purchase: "*" if purchase == "on_demand" else f"*{purchase}" for purchase in PURCHASE_MODELS
}
"""The region code of the offers in the cheapest region by each purchase model: `*`, `*spot`, `*savings_1y`."""
