"""Cost: an hour, a month, a job, a million tokens; exact given the prices, and paid for every GPU."""

from decimal import Decimal

HOURS_PER_MONTH = Decimal(730)
HOURS_PER_YEAR = Decimal(8760)
MILLION = Decimal(1_000_000)
SECONDS_PER_HOUR = Decimal(3600)


def per_hour(units: int, usd_per_unit_hour: Decimal) -> Decimal:
    """Say what so many VMs or GPUs cost an hour, USD: n x price; exact."""
    return units * usd_per_unit_hour


def per_month(usd_per_hour: Decimal, hours: Decimal = HOURS_PER_MONTH) -> Decimal:
    """Say what an hour's cost comes to in a month, USD: x 730 h, a twelfth of 8760; exact."""
    return usd_per_hour * hours


def per_job(unit_hours: Decimal, usd_per_unit_hour: Decimal, *, interruptions: Decimal = Decimal(0)) -> Decimal:
    """Say what a job costs, USD: hours of all units x price x (1 + overhead of interruptions); exact given both.

    Spot VMs lose work when they are taken away; 0.1 is usual.
    """
    return unit_hours * usd_per_unit_hour * (1 + interruptions)


def per_million_tokens(usd_per_hour: Decimal, tokens_per_s: Decimal) -> Decimal:
    """Say what a million tokens cost, USD: cost an hour / (tokens a second x 3600) x 10^6; as exact as the rate."""
    return usd_per_hour / (tokens_per_s * SECONDS_PER_HOUR) * MILLION


def reserved_per_hour(usd_per_term: Decimal, years: int) -> Decimal:
    """Say what a reservation costs an hour, USD: the price of the whole term / (8760 h x years); exact."""
    return usd_per_term / (HOURS_PER_YEAR * years)


def break_even_hours(reserved_usd_per_hour: Decimal, on_demand_usd_per_hour: Decimal) -> Decimal:
    """Say from how many hours a month on a reservation costs less: 730 x reserved / on demand; exact."""
    return HOURS_PER_MONTH * reserved_usd_per_hour / on_demand_usd_per_hour
