"""The fields of a size on its page and in comparisons: groups, units, what each source says, and differences.

A difference is shown by a sign, an arrow and a word, so that no colour is needed to distinguish better from worse.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from app.catalog.fields import OTHERS, SIZE_FIELDS, SIZE_GROUPS, field_title, is_inapplicable
from app.catalog.projections import SIZE_JSON_FIELDS
from app.web.rendering import format_amount, format_number

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


def is_price(name: str) -> bool:
    """Return whether a field is an amount of money, of which less is better."""
    return "usd_per" in name or "price_per" in name


def better_by(name: str) -> int:
    """Return 1 where more of a field is better, -1 where less is, 0 where neither is or it is unknown."""
    if is_price(name):
        return -1
    spec = SIZE_FIELDS.get(name)
    return 1 if name.startswith("gpus_") or (spec is not None and (spec.unit or spec.more_is_better)) else 0


def in_groups(names: Iterable[str]) -> dict[str, list[str]]:
    """Return names of fields by group, in the order of SIZE_GROUPS; those of no group last, as they come."""
    left = dict.fromkeys(names)
    grouped = {group: [name for name in specs if name in left] for group, specs in SIZE_GROUPS.items()}
    grouped[OTHERS] = [name for name in left if not any(name in grouped[group] for group in grouped.keys() - {OTHERS})]
    return {group: listed for group, listed in grouped.items() if listed}


MINUS = "\u2212"
Amount = Decimal | float


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference from the baseline: its text, its percent (empty where unknown), and whether it is better.

    `verdict` is better, worse, or empty where neither is; `arrow` points up for more.
    """

    text: str
    percent: str
    arrow: str
    verdict: str


def signed(text: str, value: Amount) -> str:
    """Return the text of an absolute amount with the sign of the value."""
    return f"{'+' if value > 0 else MINUS if value < 0 else '±'}{text}"


def describe(value: Amount, percent: float | None, *, better: int, money: bool) -> Difference:
    """Describe a difference that is not zero: `+1.20`, `−7.5 %`.

    `better` is 1 where more is better, -1 where less is, else 0.
    """
    size = -value if value < 0 else value
    text = signed(format_amount(size) if money else format_number(size), value)
    shown_percent = "" if percent is None else signed(f"{format_number(abs(percent), digits=1)}\u00a0%", percent)
    verdict = "" if not better else "better" if (value > 0) == (better > 0) else "worse"
    return Difference(text, shown_percent, "\u2191" if value > 0 else "\u2193", verdict)


def percent_from(value: Any, base: Any, name: str) -> Difference | None:
    """Describe how an amount of a field differs from that of another size; None where it does not or is unknown."""
    if not isinstance(value, Decimal | int | float) or isinstance(value, bool) or not base or value == base:
        return None
    exact, exact_base = (item if isinstance(item, Decimal) else Decimal(str(item)) for item in (value, base))
    change = exact - exact_base
    return describe(change, float(100 * change / exact_base), better=better_by(name), money=False)


_SKIPPED = frozenset({"preview", "withdrawn", "gpu_fraction", "parent_size", "retirement_date"})
"""Fields that most sizes do not have, and for which no source states their absence."""


Fact = Mapping[str, Any]
"""A fact as the API shows it, and `shown`: its value as people read it."""


@dataclass(slots=True)
class FieldFacts:
    """A field with what sources state; `accepted` is None where no value is.

    `overruled` is the value that the size has where a rule overrules the accepted one, as the fact's reason says.
    """

    name: str
    title: str
    accepted: Fact | None = None
    overruled: str = ""
    disputing: list[Fact] = field(default_factory=list)
    stated: list[Fact] = field(default_factory=list)

    @property
    def agreeing(self) -> int:
        """Return how many sources state the accepted value."""
        shown = self.accepted["shown"] if self.accepted else None
        return len({fact["source_id"] for fact in self.stated if fact["shown"] == shown})


@dataclass(frozen=True, slots=True)
class FactGroups:
    """Facts by group; `unknown` are titles of fields that no source states.

    `sources` is how many sources state any of it.
    """

    groups: Mapping[str, Sequence[FieldFacts]]
    unknown: Sequence[str]
    disputed: Sequence[FieldFacts]
    sources: int


def group_facts(facts: Iterable[Mapping[str, Any]], item: Mapping[str, Any]) -> FactGroups:
    """Arrange the facts of a size; `item` is the size as the API shows it, which shows what is unknown."""
    by_field: dict[str, FieldFacts] = {}
    sources: set[str] = set()
    for fact in facts:
        name = fact["field"]
        field_facts = by_field.setdefault(name, FieldFacts(name, field_title(name)))
        stated = {**fact, "shown": shown_value(fact["corrected_value"] or fact["value"], fact["unit"])}
        sources.add(fact["source_id"])
        field_facts.stated.append(stated)
        if fact["verdict"] == "accepted":
            field_facts.accepted = stated
            own = item.get(name)
            if isinstance(own, bool) and (shown := shown_value(str(own).lower(), None)) != stated["shown"]:
                field_facts.overruled = shown
        elif fact["verdict"] == "disputed":
            field_facts.disputing.append(stated)
    stored = [name for name in SIZE_JSON_FIELDS if name in SIZE_FIELDS and name not in _SKIPPED]
    missing = [name for name in stored if name not in by_field and item.get(name) is None]
    unknown = [field_title(name) for name in missing if not is_inapplicable(name, item)]
    groups = {title: [by_field[name] for name in names] for title, names in in_groups(by_field).items()}
    return FactGroups(
        groups=groups,
        unknown=unknown,
        disputed=[field for listed in groups.values() for field in listed if field.disputing],
        sources=len(sources),
    )
