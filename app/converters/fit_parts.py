"""Converts what all answers of a fit have, for raw needs or for a model; without the arithmetic of models."""

from collections import Counter
from collections.abc import Sequence
from math import isfinite

from app.catalog.queries.exchange_rates import CurrencyRate
from app.fit.formulas.interruptions import Interruptions
from app.fit.formulas.quantities import GIB, Figure
from app.fit.verdict import CostFigures, Headroom, Rejection
from app.schemas.fit_response import ConvertedCostOut, HeadroomOut, InterruptionsOut, OptionCostOut


def nearest_of_each(rejections: Sequence[Rejection], most: int | None) -> Sequence[Rejection]:
    """Return the first rejections of each code, up to a number of them, in order; all of them for None."""
    if most is None:
        return rejections
    counts: Counter[str] = Counter()
    kept = []
    for one in rejections:
        counts[one.failures[0].code] += 1
        if counts[one.failures[0].code] <= most:
            kept.append(one)
    return kept


def to_headroom_out(one: Headroom) -> HeadroomOut:
    """Convert the headroom of a resource."""
    return HeadroomOut(
        resource=one.resource,
        unit=one.unit,
        required=one.required,
        available=one.available,
        headroom_percent=round(one.percent, 2),
    )


def to_cost_out(known: CostFigures, rate: CurrencyRate | None) -> OptionCostOut:
    """Convert the cost of an option, with the same in another currency where there is a rate."""
    return OptionCostOut(
        usd_per_hour=known.cost.usd_per_hour,
        as_of=known.cost.as_of,
        price_age_days=known.cost.price_age_days,
        approximate_date=known.cost.approximate_date,
        usd_per_month=known.cost.usd_per_month,
        usd_per_job=known.per_job,
        usd_per_million_tokens=known.per_million_tokens,
        adjustment=known.cost.adjustment,
        interruptions=_interruptions(known.interruptions) if known.interruptions is not None else None,
        usd_per_request=known.per_request,
        converted=_converted_cost(known, rate) if rate is not None else None,
    )


def _interruptions(known: Interruptions) -> InterruptionsOut:
    return InterruptionsOut(
        overhead=known.overhead if isfinite(known.overhead) else None,
        evictions_per_hour=known.evictions_per_hour,
        checkpoint_gib=known.checkpoint_bytes / GIB,
        checkpoint_minutes=known.checkpoint_hours * 60,
        checkpoint_interval_minutes=known.interval_hours * 60 if isfinite(known.interval_hours) else None,
        storage_usd_per_hour=known.storage_usd_per_hour,
    )


def _converted_cost(known: CostFigures, rate: CurrencyRate) -> ConvertedCostOut:
    return ConvertedCostOut(
        currency=rate.currency,
        cost_per_hour=rate.convert_number(known.cost.usd_per_hour),
        cost_per_month=rate.convert_number(known.cost.usd_per_month),
        cost_per_job=_converted_figure(known.per_job, rate),
        cost_per_million_tokens=_converted_figure(known.per_million_tokens, rate),
        cost_per_request=_converted_figure(known.per_request, rate),
    )


def _converted_figure(usd: Figure | None, rate: CurrencyRate) -> Figure | None:
    """Return a figure in the currency of the rate, with the same certainty."""
    if usd is None:
        return None
    value, low, mid, high = map(rate.convert_number, (usd.value, usd.low, usd.mid, usd.high))
    return Figure(unit=rate.currency, certainty=usd.certainty, value=value, low=low, mid=mid, high=high)
