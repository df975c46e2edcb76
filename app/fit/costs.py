"""Computes what a VM and its disks cost a month: exact, and each figure rounded once.

A figure is None where a price that it needs is unknown.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

USD_DECIMALS = 9
"""Decimal places of a figure, rounded half away from zero."""

MONTHS_PER_YEAR = 12
HOURS_PER_MONTH = 730
"""Hours of the month for which a disk or a commitment is paid: they cost whether a VM runs or not."""
TERMS: Mapping[str, int] = {"reserved_1y": 12, "reserved_3y": 36, "savings_1y": 12, "savings_3y": 36}
"""Term in months of each commitment: reservations and savings plans."""

Number = int | float | Decimal | Fraction
_EXACT = Context(prec=100, rounding=ROUND_HALF_UP)
_QUANTUM = Decimal(1).scaleb(-USD_DECIMALS)


def to_exact(number: Number) -> Fraction:
    """Convert a number as it is written, not its nearest double: 0.1 is a tenth."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def round_usd(usd: Fraction | None) -> Decimal | None:
    """Round an amount of money to 9 decimal places, half away from zero."""
    if usd is None:
        return None
    return _EXACT.divide(Decimal(usd.numerator), Decimal(usd.denominator)).quantize(_QUANTUM, context=_EXACT)


SHOWN_DIGITS = 5
"""Amounts for people have at least this many significant digits, and at least two decimal places."""


def format_amount(amount: Decimal, *, digits: int = SHOWN_DIGITS) -> str:
    """Return an amount of money without its currency: two decimal places, more for less than ten units.

    Rounded half away from zero: 3.6730 → `3.673`, 0.0052 → `0.0052`, 172.0488 → `172.05`.
    """
    places = max(2, digits - 1 - amount.adjusted()) if amount else 2
    text = f"{amount.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):,f}"
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction[:2]}{fraction[2:].rstrip('0')}"


def paid_hours(purchase: str, hours_per_month: Decimal) -> Decimal:
    """Return the billed hours a month: the hours of use, or 730 for a commitment, used or not."""
    return Decimal(HOURS_PER_MONTH) if purchase in TERMS else hours_per_month


def round_product(usd: Decimal, factor: Decimal) -> Decimal:
    """Multiply an amount of money exactly, then round it once, like `round_usd`."""
    return _EXACT.multiply(usd, factor).quantize(_QUANTUM, context=_EXACT)


def total(parts: Iterable[Fraction | None]) -> Fraction | None:
    """Add up parts; None where one is unknown."""
    terms = list(parts)
    return None if None in terms else sum((part for part in terms if part is not None), Fraction())


def per_unit(usd_per_hour: Fraction | None, amount: Number | None) -> Fraction | None:
    """Return the price per unit of a resource; None where one is unknown, or there is none of it."""
    if usd_per_hour is None or not amount:
        return None
    return usd_per_hour / to_exact(amount)


# Disks


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskModel:
    """A managed disk: of one `size`, or of any size, with IOPS and throughput billed above what is included."""

    id: str
    type: str
    redundancy: str
    size: str | None
    sku: str
    min_gib: int | None
    max_gib: int
    max_iops: int | None
    max_mbps: int | None
    burst_iops: int | None
    burst_mbps: int | None
    included_iops: int | None
    included_mbps: int | None
    iops_per_gib: int | None
    mbps_per_iops: float | None
    max_shares: int | None

    def holds(self, wanted: "DiskRequest") -> bool:
        """Return whether the disk has the capacity and performance; an unknown limit meets no bound."""
        limits = ((self.max_gib, wanted.gib), (self.max_iops, wanted.iops), (self.max_mbps, wanted.mbps))
        return all(
            amount is None or (most is not None and amount <= most) for most, amount in limits
        ) and wanted.gib >= (self.min_gib or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRequest:
    """A disk as it is asked for: capacity in GiB and, where they matter, IOPS and throughput in MBps."""

    gib: int
    iops: int | None = None
    mbps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionedDisk:
    """What is paid for: the whole disk of a size, or the amounts that are provisioned of a disk of any size."""

    disk: DiskModel
    gib: int
    iops: int | None
    mbps: int | None


def smallest_disk(disks: Sequence[DiskModel], wanted: DiskRequest) -> ProvisionedDisk | None:
    """Choose the smallest disk that has what is wanted; None where none has it.

    Of a disk of any size the capacity is as wanted, and IOPS and throughput are those included unless more is wanted.
    """
    fitting = sorted((disk for disk in disks if disk.holds(wanted)), key=lambda disk: (disk.max_gib, disk.id))
    if not fitting:
        return None
    disk = fitting[0]
    if disk.size is not None:
        return ProvisionedDisk(disk=disk, gib=disk.max_gib, iops=disk.max_iops, mbps=disk.max_mbps)
    iops = disk.included_iops if wanted.iops is None else wanted.iops
    mbps = disk.included_mbps if wanted.mbps is None else wanted.mbps
    return ProvisionedDisk(disk=disk, gib=wanted.gib, iops=iops, mbps=mbps)


def most_performance(chosen: ProvisionedDisk) -> tuple[int | None, int | None]:
    """Return the IOPS and the MBps that a disk of any size can have at its capacity and IOPS; None where unknown."""
    disk = chosen.disk
    iops = _most(disk.included_iops, disk.max_iops, disk.iops_per_gib, chosen.gib)
    return iops, _most(disk.included_mbps, disk.max_mbps, disk.mbps_per_iops, chosen.iops)


def _most(included: int | None, most: int | None, rate: float | None, amount: int | None) -> int | None:
    if most is None or rate is None or amount is None:
        return most
    return min(most, max(included or 0, int(to_exact(rate) * amount)))


def disk_usd_per_month(chosen: ProvisionedDisk, rates: Mapping[str, Decimal]) -> Fraction | None:
    """Return what a disk costs a month; `rates` are in USD by what they are per. None where a rate is unknown.

    A disk of a size costs its rate per month; one of any size 730 hours of its GiB, and of the IOPS and MBps above
    those that are included.
    """
    disk = chosen.disk
    if disk.size is not None:
        return to_exact(rates["month"]) if "month" in rates else None
    amounts = {
        "gib_hour": chosen.gib,
        "iops_hour": _above(chosen.iops, disk.included_iops),
        "mbps_hour": _above(chosen.mbps, disk.included_mbps),
    }
    return total(_a_month(rates.get(per), amount) if amount != 0 else Fraction() for per, amount in amounts.items())


def usd_per_gib_month(disk: DiskModel, rates: Mapping[str, Decimal]) -> Fraction | None:
    """Return what a GiB of a full disk costs a month, without IOPS and throughput above those that are included."""
    if disk.size is None:
        return _a_month(rates.get("gib_hour"), 1)
    return to_exact(rates["month"]) / disk.max_gib if "month" in rates else None


def _above(amount: int | None, included: int | None) -> int | None:
    return None if amount is None or included is None else max(0, amount - included)


def _a_month(rate: Decimal | None, amount: int | None) -> Fraction | None:
    return None if rate is None or amount is None else to_exact(rate) * amount * HOURS_PER_MONTH


# Ways to buy


@dataclass(frozen=True, slots=True, kw_only=True)
class WayToBuy:
    """What a VM costs by a purchase model, USD an hour: of use, and of a term in months, which is paid whole."""

    used: Fraction
    committed: Fraction
    term: int

    def cost(self, months: int, hours_per_month: Fraction) -> Fraction:
        """Return what it costs to run some hours a month for some months, and to stop: terms that began are paid."""
        committed_months = -(-months // self.term) * self.term if self.term else 0
        return self.committed * HOURS_PER_MONTH * committed_months + self.used * hours_per_month * months

    def break_even_month(self, other: "WayToBuy", hours_per_month: Fraction) -> int | None:
        """Return the month by whose end another way without a term has cost as much as the first term of this one.

        None where it has not before that term ends.
        """
        saved = (other.used - self.used) * hours_per_month
        if not self.term:
            return 1 if saved > 0 else None
        if saved <= 0:
            return None
        month = -(-self.committed * HOURS_PER_MONTH * self.term // saved)
        return month if month <= self.term else None

    def break_even_hours(self, other: "WayToBuy") -> Fraction | None:
        """Return the hours a month from which this way costs less than another without a term, in whole terms."""
        saved = other.used - self.used
        if saved <= 0:
            return None
        hours = self.committed * HOURS_PER_MONTH / saved
        return hours if hours < HOURS_PER_MONTH else None

    def cheapest_from(self, others: Iterable["WayToBuy"], months: int) -> Fraction | None:
        """Return the hours a month from which this way is the cheapest of all over some months; None for never."""
        fixed = self.cost(months, Fraction())
        least, most = Fraction(), Fraction(HOURS_PER_MONTH)
        for other in others:
            more, slope = fixed - other.cost(months, Fraction()), (other.used - self.used) * months
            if slope > 0:
                least = max(least, more / slope)
            elif slope < 0:
                most = min(most, more / slope)
            elif more > 0:
                return None
        return least if least < most else None
