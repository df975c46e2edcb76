"""Compare the ways to buy VMs of a size: what each costs over months, and from when and which use on it wins."""

from collections.abc import Mapping
from datetime import date
from fractions import Fraction

from app.catalog.providers import AZURE
from app.catalog.purchases import PURCHASE_MODELS, Purchase
from app.catalog.queries.costs import BuySearch, CostSearch, SizePrice, find_cheapest_price
from app.catalog.queries.exchange_rates import CurrencyRate, convert_amounts, find_exchange_rate
from app.catalog.queries.lookups import check_regions, get_size_keys
from app.catalog.queries.params import Os, check_days
from app.catalog.queries.sizes import explain_no_price, find_size_details
from app.catalog.queries.snapshot import Catalog
from app.fit.costs import HOURS_PER_MONTH, WayToBuy, round_usd, to_exact
from app.schemas.catalog import BuyMonthOut, BuyOut, BuyPriceOut, BuyWayOut, ConvertedWayOut
from app.services.ranked import to_adjustment

TERMS: Mapping[Purchase, int] = {"reserved_1y": 12, "reserved_3y": 36, "savings_1y": 12, "savings_3y": 36}
"""Months of the term of a commitment."""
_SHOWN_MONTHS = (1, 3, 6, 12, 18, 24, 36, 48, 60)
ASSUMPTIONS = (
    f"a commitment is paid for {HOURS_PER_MONTH} hours of each month of its term, used or not",
    "nothing else uses it, and it is neither exchanged nor cancelled",
    "a term that ends before the months do is bought again, and prices stay as they are",
    "to pay at once, by the month or by the hour costs the same",
)

Paid = tuple[Os, Purchase]
_Way = tuple[WayToBuy | None, list[tuple[Paid, SizePrice]]]
"""What a way costs, None where it is unknown, and the prices that it is made of."""


def compare_ways(catalog: Catalog, name: str, search: BuySearch) -> BuyOut:
    """Compare the ways to buy; raises NotFound for the size, BadQuery for a region, a currency or a day to come."""
    check_days(search, catalog.today)
    rate = find_exchange_rate(catalog, search.currency, search.as_of or catalog.today)
    check_regions(catalog.snapshot.regions, "region", search.region)
    (key,) = get_size_keys(catalog, (name,), catalog.snapshot.series)
    given = search.model_dump(include={"os", "region", "as_of", "known_at"})
    asked = CostSearch(**given)
    (size,) = find_size_details(catalog, (key,), asked)
    of_azure = size.row["provider"] == AZURE.id
    has_benefit = search.hybrid_benefit and search.os == "windows" and of_azure
    os: Os = "linux" if has_benefit else search.os
    cheapest = find_cheapest_price(catalog, key, asked.model_copy(update={"os": os}))
    region = cheapest.region if cheapest is not None else search.region[0] if len(search.region) == 1 else None

    def price_of(paid: Paid) -> SizePrice | None:
        of_region = {"os": paid[0], "purchase": paid[1], "region": (region,) if region is not None else search.region}
        return find_cheapest_price(catalog, key, asked.model_copy(update=of_region)) if region is not None else None

    prices = {(os, purchase): price_of((os, purchase)) for purchase in PURCHASE_MODELS}
    if os == "windows" and of_azure:
        prices |= {("linux", purchase): price_of(("linux", purchase)) for purchase in ("on_demand", *TERMS)}
    spot_hours = 100 / (100 - to_exact(search.spot_loss_percent))
    priced = {purchase: _to_way((os, purchase), prices, spot_hours) for purchase in PURCHASE_MODELS}
    ways = {purchase: way for purchase, (way, _) in priced.items() if way is not None}
    totals = {purchase: way.cost(search.months, to_exact(search.hours_per_month)) for purchase, way in ways.items()}
    ranked = sorted(totals, key=lambda purchase: totals[purchase])
    retires = size.row["retirement_date"]
    return BuyOut(
        size=size.row["name"],
        region=region,
        os=search.os,
        hybrid_benefit=has_benefit,
        count=search.count,
        months=search.months,
        hours_per_month=search.hours_per_month,
        spot_loss_percent=search.spot_loss_percent,
        as_of=search.as_of or catalog.today,
        retirement_date=retires,
        cheapest=next(iter(ranked), None),
        cheapest_without_spot=next((purchase for purchase in ranked if purchase != "spot"), None),
        unknown=[purchase for purchase in PURCHASE_MODELS if purchase not in ways],
        ways=[
            _to_out(purchase, ways, used, search, catalog.today, rate=rate) for purchase, (_, used) in priced.items()
        ],
        assumptions=ASSUMPTIONS,
        exchange_rate=rate,
        no_price=None if cheapest is not None else explain_no_price(catalog, asked.model_copy(update={"os": os})),
    )


def _to_way(paid: Paid, prices: Mapping[Paid, SizePrice | None], spot_hours: Fraction) -> _Way:
    """Return a way to buy: of hours of use, or of a commitment.

    A commitment of Azure for Windows has no price of its own in most lists: it is that for Linux, and the licence is
    paid by the hour of use, which is the difference of the prices on demand.
    """
    os, purchase = paid
    own, term = prices[paid], TERMS.get(purchase, 0)
    if own is not None:
        usd = to_exact(own.usd_per_hour)
        if term:
            return WayToBuy(used=Fraction(), committed=usd, term=term), [(paid, own)]
        used = usd * spot_hours if purchase == "spot" else usd
        return WayToBuy(used=used, committed=Fraction(), term=0), [(paid, own)]
    needed: tuple[Paid, ...] = (("linux", purchase), (os, "on_demand"), ("linux", "on_demand"))
    parts = [(part, price) for part in needed if (price := prices.get(part)) is not None]
    if not term or os != "windows" or len(parts) < len(needed):
        return None, []
    committed, windows, linux = (to_exact(price.usd_per_hour) for _, price in parts)
    if windows < linux:
        return None, []
    return WayToBuy(used=windows - linux, committed=committed, term=term), parts


def _to_out(
    purchase: Purchase,
    ways: Mapping[Purchase, WayToBuy],
    prices: list[tuple[Paid, SizePrice]],
    search: BuySearch,
    today: date,
    *,
    rate: CurrencyRate | None,
) -> BuyWayOut:
    way, on_demand = ways.get(purchase), ways.get("on_demand")
    hours, count = to_exact(search.hours_per_month), search.count
    month = even = from_hours = total = saved = None
    if way is not None:
        total = way.cost(search.months, hours) * count
        others = (other for name, other in ways.items() if name not in (purchase, "spot"))
        from_hours = way.cheapest_from(others, search.months)
        if on_demand is not None and purchase != "on_demand":
            month, even = way.break_even_month(on_demand, hours), way.break_even_hours(on_demand)
            saved = on_demand.cost(search.months, hours) * count - total
    months = sorted({*(shown for shown in _SHOWN_MONTHS if shown < search.months), search.months})
    cumulative = [way.cost(at, hours) * count for at in months] if way else []
    return BuyWayOut(
        purchase=purchase,
        term_months=TERMS.get(purchase, 0),
        usd_total=round_usd(total),
        usd_per_month=round_usd(total / search.months) if total is not None else None,
        saved_usd=round_usd(saved),
        break_even_month=month,
        break_even_percent=_percent(even),
        cheapest_from_percent=_percent(from_hours),
        cumulative=[
            BuyMonthOut(month=at, usd=round_usd(usd)) for at, usd in zip(months, cumulative, strict=bool(cumulative))
        ],
        prices=[
            BuyPriceOut(
                os=os,
                purchase=paid,
                usd_per_hour=price.usd_per_hour,
                price_as_of=price.as_of,
                price_age_days=(today - price.as_of).days,
                approximate_date=price.approximate_date,
                source_id=price.source_id,
                unusual=price.unusual,
                disputed=price.disputed,
                adjustment=to_adjustment(price.adjustment),
                converted=convert_amounts({"usd_per_hour": price.usd_per_hour}, rate) if rate is not None else None,
            )
            for (os, paid), price in prices
        ],
        converted=ConvertedWayOut(
            currency=rate.currency,
            cost_total=rate.convert(total) if total is not None else None,
            cost_per_month=rate.convert(total / search.months) if total is not None else None,
            saved=rate.convert(saved) if saved is not None else None,
            cumulative_cost=[rate.convert(usd) for usd in cumulative],
        )
        if rate is not None
        else None,
    )


def _percent(hours: Fraction | None) -> float | None:
    return round(float(100 * hours / HOURS_PER_MONTH), 2) if hours is not None else None
