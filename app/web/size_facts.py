"""What each source says of a size, side by side: a row for each field, a column for each source."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.catalog.fields import SIZE_FIELDS, field_title
from app.catalog.projections import SIZE_JSON_FIELDS
from app.web.size_fields import in_groups, shown_value

_SKIPPED = frozenset({"preview", "withdrawn", "gpu_fraction", "parent_size", "retirement_date"})
"""Fields that most sizes do not have, and for which no source states their absence."""


Fact = Mapping[str, Any]
"""A fact as the API shows it, and `shown`: its value as people read it."""


@dataclass(slots=True)
class FieldFacts:
    """A field with what sources state, by the id of the source; `accepted` is None where no value is."""

    name: str
    title: str
    accepted: Fact | None = None
    disputing: list[Fact] = field(default_factory=list)
    by_source: dict[str, list[Fact]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SizeFacts:
    """Facts by group; `unknown` are titles of fields that no source states.

    `sources` are facts that tell of each source, that with the most accepted values first.
    """

    groups: Mapping[str, Sequence[FieldFacts]]
    unknown: Sequence[str]
    disputed: Sequence[FieldFacts]
    sources: Sequence[Fact]


def group_facts(facts: Iterable[Mapping[str, Any]], item: Mapping[str, Any]) -> SizeFacts:
    """Arrange the facts of a size; `item` is the size as the API shows it, which tells what is unknown."""
    by_field: dict[str, FieldFacts] = {}
    sources: dict[str, Fact] = {}
    accepted: Counter[str] = Counter()
    for fact in facts:
        name = fact["field"]
        known = by_field.setdefault(name, FieldFacts(name, field_title(name)))
        stated = {**fact, "shown": shown_value(fact["corrected_value"] or fact["value"], fact["unit"])}
        sources.setdefault(fact["source_id"], fact)
        known.by_source.setdefault(fact["source_id"], []).append(stated)
        if fact["verdict"] == "accepted":
            known.accepted = stated
            accepted[fact["source_id"]] += 1
        elif fact["verdict"] == "disputed":
            known.disputing.append(stated)
    stored = [name for name in SIZE_JSON_FIELDS if name in SIZE_FIELDS and name not in _SKIPPED]
    unknown = [field_title(name) for name in stored if name not in by_field and item.get(name) is None]
    groups = {title: [by_field[name] for name in names] for title, names in in_groups(by_field).items()}
    return SizeFacts(
        groups=groups,
        unknown=unknown,
        disputed=[one for listed in groups.values() for one in listed if one.disputing],
        sources=sorted(sources.values(), key=lambda fact: (-accepted[fact["source_id"]], fact["source_id"])),
    )
