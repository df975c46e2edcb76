"""Converts disks and costs to their schemas."""

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from fractions import Fraction

from app.catalog.queries.exchange_rates import CurrencyRate, convert_amounts
from app.converters.fit_parts import to_exchange_rate_out
from app.schemas.costs import ConvertedDiskPricesOut, CostOut, DiskOut, DiskPage
from app.services import disks
from app.services.costs import CostOfSize


def to_disk_page(page: disks.DiskPage) -> DiskPage:
    """Convert a page of disks."""
    return DiskPage(
        items=[_disk(offer, page.exchange_rate) for offer in page.items],
        next_cursor=page.next_cursor,
        total=page.total,
        exchange_rate=to_exchange_rate_out(page.exchange_rate),
    )


def to_cost_out(cost: CostOfSize) -> CostOut:
    """Convert the cost of a size."""
    parts = asdict(cost)
    for part in (parts["vm"], *parts["disks"]):
        del part["exact"]
    return CostOut.model_validate(parts | {"exchange_rate": to_exchange_rate_out(cost.exchange_rate)})


def _disk(offer: disks.DiskOffer, rate: CurrencyRate | None) -> DiskOut:
    rates = {f"usd_per_{per}": offer.usd(per) for per in ("month", "gib_hour", "iops_hour", "mbps_hour")}
    derived = ("source_id", "region", "usd_per_gib_month", "price_as_of", "price_age_days")
    return DiskOut(
        **asdict(offer.disk),
        **{name: getattr(offer, name) for name in derived},
        **rates,
        price_source_ids=list(offer.price_source_ids),
        converted=_convert({**rates, "usd_per_gib_month": offer.exact_usd_per_gib_month}, rate),
    )


def _convert(
    amounts: Mapping[str, Decimal | Fraction | None], rate: CurrencyRate | None
) -> ConvertedDiskPricesOut | None:
    return ConvertedDiskPricesOut.model_validate(convert_amounts(amounts, rate)) if rate is not None else None
