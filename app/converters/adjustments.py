"""Converts what rules did to a price, which stands beside the price in many responses."""

from app.fit.vm import Adjustment
from app.schemas.sizes import AdjustmentOut


def to_adjustment_out(known: Adjustment | None) -> AdjustmentOut | None:
    """Convert the list price and the rules; None, which is left out, where no rule applies."""
    return AdjustmentOut.model_validate(known) if known is not None else None
