"""Converts disks and costs to their schemas."""

from dataclasses import asdict

from app.schemas.costs import CostOut, DiskOut, DiskPage
from app.services import disks
from app.services.costs import CostOfSize


def to_disk_page(page: disks.DiskPage) -> DiskPage:
    """Convert a page of disks."""
    return DiskPage(items=[_disk(offer) for offer in page.items], next_cursor=page.next_cursor, total=page.total)


def to_cost_out(cost: CostOfSize) -> CostOut:
    """Convert the cost of a size."""
    parts = asdict(cost)
    for disk in parts["disks"]:
        del disk["exact_usd_per_month"]
    return CostOut.model_validate(parts)


def _disk(offer: disks.DiskOffer) -> DiskOut:
    rates = {f"usd_per_{per}": offer.usd(per) for per in ("month", "gib_hour", "iops_hour", "mbps_hour")}
    derived = ("source_id", "region", "usd_per_gib_month", "price_as_of", "price_age_days")
    return DiskOut(
        **asdict(offer.disk),
        **{name: getattr(offer, name) for name in derived},
        **rates,
        price_source_ids=list(offer.price_source_ids),
    )
