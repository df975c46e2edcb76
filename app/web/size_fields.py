"""The fields of a size on its page and in comparisons: their groups and shown units, and which of two is better."""

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

from app.catalog.fields import OTHERS, SIZE_FIELDS, SIZE_GROUPS
from app.web.rendering import format_number

_UNITS = {"count": "", "Mbps": "Gbps"}


def shown_unit(unit: str | None) -> str:
    """Return the unit that figures are shown in: none for counts, Gbps for Mbps."""
    return _UNITS.get(unit or "", unit or "")


def shown_amount(value: float | Decimal | None, unit: str | None) -> float | Decimal | None:
    """Return an amount in the unit that it is shown in."""
    return value / 1000 if value is not None and unit == "Mbps" else value


def shown_value(value: str, unit: str | None) -> str:
    """Return the text of a fact as people read it: `yes`, `1,536`, `1/6`; what is no number stays as it is."""
    if value in ("true", "false"):
        return "yes" if value == "true" else "no"
    if unit is None:
        return value
    try:
        return format_number(shown_amount(Decimal(value), unit), shown_unit(unit))
    except InvalidOperation:
        return value


def better_by(name: str) -> int:
    """Return 1 where more of a field is better, -1 where less is, 0 where neither is or it is unknown."""
    if "usd_per" in name or "price_per" in name:
        return -1
    spec = SIZE_FIELDS.get(name)
    return 1 if name.startswith("gpus_") or (spec is not None and (spec.unit or spec.more_is_better)) else 0


def in_groups(names: Iterable[str]) -> dict[str, list[str]]:
    """Return names of fields by group, in the order of SIZE_GROUPS; those of no group last, as they come."""
    left = dict.fromkeys(names)
    grouped = {group: [name for name in specs if name in left] for group, specs in SIZE_GROUPS.items()}
    grouped[OTHERS] = [name for name in left if not any(name in grouped[group] for group in grouped.keys() - {OTHERS})]
    return {group: listed for group, listed in grouped.items() if listed}
