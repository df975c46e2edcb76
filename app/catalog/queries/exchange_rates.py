"""Convert amounts from US dollars to another currency, by the newest exchange rate at or before a day.

Rates are units per euro, so an amount is converted over the euro with both rates of one day and one source. The
quotient is exact and rounded once, half away from zero.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import orjson

from app.catalog.projections import OFFER_JSON_FIELDS
from app.catalog.statements import Statement, exact
from app.db.statements import BoundStatement, Reader, fetch
from app.errors import BadQuery

USD, EUR = "USD", "EUR"
DECIMALS = 9
"""Decimal places of a converted amount, as many as a price in US dollars has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrencyRate:
    """The exchange rate of one answer: units of the currency and US dollars per euro, both of one day and source.

    `age_days` are the days from `day` to the day whose rate was asked for.
    """

    currency: str
    units_per_euro: Decimal
    usd_per_euro: Decimal
    day: date
    age_days: int
    source_id: str

    @property
    def units_per_usd(self) -> Decimal:
        """Units of the currency for one US dollar."""
        return self.convert(Decimal(1))

    def convert(self, usd: Decimal | Fraction) -> Decimal:
        """Convert an amount: usd x units_per_euro / usd_per_euro, rounded once to DECIMALS places."""
        exact = Fraction(usd) * Fraction(self.units_per_euro) / Fraction(self.usd_per_euro)
        scaled = abs(exact) * 10**DECIMALS
        rounded = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
        return Decimal(rounded if exact >= 0 else -rounded).scaleb(-DECIMALS)

    def convert_number(self, usd: float | Decimal | None) -> Decimal | None:
        """Convert an amount, a double as its shortest decimal text: 0.1 is a tenth; None stays None."""
        return None if usd is None else self.convert(Decimal(repr(usd)) if isinstance(usd, float) else Decimal(usd))


def converted_name(name: str) -> str:
    """Return the name of an amount in another currency: `on_demand_price_per_hour` for `on_demand_usd_per_hour`."""
    return name.replace("usd_per", "price_per")


def convert_amounts(amounts: Mapping[str, Decimal | Fraction | None], rate: CurrencyRate) -> dict[str, Any]:
    """Return the currency, then amounts in it by their converted names; an unknown amount stays None."""
    converted = {converted_name(name): None if usd is None else rate.convert(usd) for name, usd in amounts.items()}
    return {"currency": rate.currency, **converted}


_PRICES = tuple(name for name in OFFER_JSON_FIELDS if "usd_per" in name)


def convert_prices(size: Mapping[str, Any], rate: CurrencyRate) -> dict[str, Any]:
    """Return the prices of a size in the currency; `size` is one as a list shows it, fractional numbers as Decimal.

    Prices per unit are computed from the price of the VM again, since those in US dollars are rounded already.
    """
    usd = size["usd_per_hour"]
    units = {
        "usd_per_vcpu_hour": size["vcpus"],
        "usd_per_1000_coremark_hour": Fraction(size["coremark"] or 0, 1000),
        "usd_per_memory_gib_hour": size["memory_gib"],
        "usd_per_gpu_hour": size["gpu_fraction"] or size["gpu_count"],
        "usd_per_gpu_gib_hour": size["gpu_memory_gib"],
    }
    amounts = {name: _per_unit(usd, units[name]) if name in units else size[name] for name in _PRICES}
    return convert_amounts(amounts, rate)


def _per_unit(usd: Decimal | None, amount: str | int | Decimal | Fraction | None) -> Fraction | None:
    divisor = Fraction(amount) if amount is not None else 0
    return Fraction(usd) / divisor if usd is not None and divisor else None


def exchange_rate_json(rate: CurrencyRate) -> str:
    """Return the rate of a page as JSON text."""
    fields = {name: getattr(rate, name) for name in EXCHANGE_RATE_FIELDS}
    return orjson.dumps(fields, default=float).decode()


EXCHANGE_RATE_FIELDS = ("currency", "units_per_usd", "units_per_euro", "usd_per_euro", "day", "age_days", "source_id")
"""The fields of an exchange rate as answers show it, in this order."""


def find_exchange_rate(reader: Reader, currency: str | None, day: date) -> CurrencyRate | None:
    """Find the newest rate at or before a day; None without a currency, and for US dollars where no rate is known.

    A currency whose source had rates of other currencies on a later day has ended by then. Raises BadQuery for such a
    currency, for an unknown one, and for a day before the first rate.
    """
    if currency is None:
        return None
    # The euro has no rows: it is what the others are counted in.
    listed = USD if currency == EUR else currency
    rows = fetch(reader, BoundStatement(_RATE, {"currency": listed, "day": day.isoformat()}))
    if not rows and currency == USD:
        return None
    if not rows:
        currencies = fetch(reader, BoundStatement(_CURRENCIES))
        raise _no_rate(currency, day, {name: (first, last) for name, first, last in currencies})
    ((published, units, usd, source),) = rows
    return CurrencyRate(
        currency=currency,
        units_per_euro=Decimal(1) if currency == EUR else units,
        usd_per_euro=usd,
        day=published,
        age_days=(day - published).days,
        source_id=source,
    )


_RATE = Statement(
    lambda sql: (
        f"""
        select rate.day, rate.units_per_euro, usd.units_per_euro as usd, rate.source_id
        from (
            select source_id, max(day) as day from exchange_rate
            where currency = '{USD}' and day <= {sql.day("day")} group by source_id
        ) as newest
        join exchange_rate as rate on rate.source_id = newest.source_id and rate.day = newest.day
        join exchange_rate as usd
            on usd.source_id = newest.source_id and usd.day = newest.day and usd.currency = '{USD}'
        where rate.currency = :currency
        order by rate.day desc, rate.source_id
        limit 1"""
    ),
    kinds=exact("usd"),
    short=True,
)
"""The newest rate at or before `day`, with that of US dollars; both are units per euro."""
_CURRENCIES = Statement("""
        select currency, min(day) as first, max(day) as last from exchange_rate group by currency order by currency""")
"""Every currency, with its first and last day."""


def _no_rate(currency: str, day: date, days: Mapping[str, tuple[Any, Any]]) -> BadQuery:
    """Return the error for a currency that has no rate on a day."""
    if not days:
        return BadQuery("currency", currency, "the catalog has no exchange rates; allowed is USD")
    listed = USD if currency == EUR else currency
    if listed in days:
        first, last = days[listed]
        return BadQuery("currency", currency, f"has rates from {first} until {last}, and none for {day}")
    return BadQuery("currency", currency, f"allowed are {', '.join(sorted({*days, EUR, USD}))}")
