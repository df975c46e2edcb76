"""Today's prices side by side: the one offer of each size that a question is answered with."""

from collections.abc import Sequence

from sqlalchemy import FromClause, Subquery, func, select

from app.catalog.models import BestOffer, Offer
from app.catalog.tables import table_of

PURCHASES = ("on_demand", "spot")
OFFERED = ("region", "on_demand_usd_per_hour", "on_demand_as_of", "spot_usd_per_hour", "spot_as_of")

_offer, _best = table_of(Offer), table_of(BestOffer)


def cheapest(offers: FromClause, purchase: str, each: Sequence[str]) -> Subquery:
    """Of the offers of each size the cheapest by a purchase model; an unknown price counts last."""
    price = offers.c[f"{purchase}_usd_per_hour"]
    place = func.row_number().over(
        partition_by=[offers.c[name] for name in each], order_by=(price.is_(None), price, offers.c.region)
    )
    ranked = select(*offers.c, place.label("place")).subquery()
    return select(*(ranked.c[column.name] for column in offers.c)).where(ranked.c.place == 1).subquery()


def offers_for(os: str, purchase: str, regions: Sequence[str]) -> FromClause:
    """One offer a size: in the asked region, in the cheapest of several, or, asked for none, in the cheapest of all.

    Each form reads only what it gives: an index on region and system, or the table of best offers.
    """
    if not regions:
        best = select(_best).where(_best.c.os == os, _best.c.purchase == purchase)
        return best.subquery("offer")
    here = select(_offer).where(_offer.c.os == os, _offer.c.region.in_(regions))
    if len(regions) == 1:
        return here.subquery("offer")
    return select(cheapest(here.subquery(), purchase, ("size_key",))).subquery("offer")
