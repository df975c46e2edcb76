"""Every fact that is kept and every new one, judged field by field; then the rows that follow from the judgement."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from app.catalog.fields import FIELDS, SubjectKind, parse_text, to_text
from app.catalog.readings import AUTHORITY, SourceKind
from app.catalog.resolution.claims import Claim, Resolution, resolve
from app.catalog.resolution.derive import (
    Resolutions,
    Spelling,
    derive_gpu,
    derive_series,
    derive_size,
    half_card_memories,
    reconcile_gpu_units,
    to_gpu_name,
)
from app.catalog.resolution.subjects import SubjectKeys

API_FIRST: tuple[SourceKind, ...] = ("vendor_api", "vendor_page", "vendor_announcement", "third_party")

API_FIELDS = frozenset(
    {
        "vcpus",
        "arch",
        "memory_gib",
        "temp_disk_gib",
        "nvme_disk_gib",
        "nvme_disk_count",
        "max_data_disks",
        "uncached_disk_iops",
        "uncached_disk_mbps",
        "max_nics",
        "premium_storage",
        "generation_1",
        "generation_2",
        "accelerated_networking",
        "ephemeral_os_disk",
        "memory_preserving_updates",
        "hibernation",
    }
)
"""The fields of a size that the Resource SKUs API defines: a deployment gets what the API says, not what a page says.

GPUs are not among them, since the API counts a part of a GPU as one, nor is what depends on the region or the zone.
"""


def authority_order(kind: SubjectKind, field: str) -> tuple[SourceKind, ...]:
    """Give the kinds of source in the order in which they count on a field."""
    return API_FIRST if kind == "size" and field in API_FIELDS else AUTHORITY


FactRow = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAuthority:
    """What of a source counts when words are weighed."""

    kind: SourceKind
    published_on: date | None
    pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciledRows:
    """The facts with their verdicts, and the rows of series, GPUs and sizes that follow."""

    facts: tuple[FactRow, ...]
    series: tuple[dict[str, Any], ...]
    gpus: tuple[dict[str, Any], ...]
    sizes: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolutionContext:
    """What the judge knows of besides the facts: who the authors are, the corrections, the names of series."""

    authorities: Mapping[str, SourceAuthority]
    corrections: Mapping[tuple[str, str, str, str], tuple[str, str]]
    subjects: SubjectKeys


def reconcile(facts: Iterable[FactRow], context: ResolutionContext, named: Mapping[str, Spelling]) -> ReconciledRows:
    """Decide every field; `named` are sizes, by key, that exist even where no fact speaks of them."""
    cases: dict[tuple[SubjectKind, str], dict[str, list[FactRow]]] = defaultdict(lambda: defaultdict(list))
    for fact in facts:
        cases[fact["kind"], fact["subject"]][fact["field"]].append(fact)
    decided: dict[SubjectKind, dict[str, Resolutions]] = {"size": {}, "series": {}, "gpu": {}}
    for (kind, subject), case in cases.items():
        decided[kind][subject] = {name: _resolve_field(rows, context) for name, rows in case.items()}
    gpus = [derive_gpu(key, fields) for key, fields in decided["gpu"].items()]
    halves = half_card_memories(gpus)
    decided["size"] = {key: reconcile_gpu_units(fields, halves) for key, fields in decided["size"].items()}
    judged = [
        row
        for (kind, subject), case in cases.items()
        for name, rows in case.items()
        for row in _with_verdicts(rows, decided[kind][subject][name])
    ]
    titles = {str(word.value): word.title for word in _series_claims(decided["size"].values())}
    series = {
        key: derive_series(key, decided["series"].get(key, {}), titles.get(key, key))
        for key in {*decided["series"], *titles}
    }
    names = [to_gpu_name(row) for row in gpus]
    spellings = _spellings(cases, context, named)
    sizes = [derive_size(key, decided["size"].get(key, {}), spellings[key], series, names) for key in spellings]
    return ReconciledRows(facts=tuple(judged), series=tuple(series.values()), gpus=tuple(gpus), sizes=tuple(sizes))


def _series_claims(sizes: Iterable[Resolutions]) -> Iterable[Claim]:
    """The words that say which series owns each size."""
    return (fields["series"].accepted for fields in sizes if "series" in fields)


def _resolve_field(rows: Iterable[FactRow], context: ResolutionContext) -> Resolution:
    """Decide one field; which series owns a size is said by the older page: a later page does not take it over."""
    first, *_ = facts = list(rows)
    words = [_to_claim(fact, context) for fact in facts]
    return resolve(words, authority_order(first["kind"], first["field"]), older_first=first["field"] == "series")


def _to_claim(fact: FactRow, context: ResolutionContext) -> Claim:
    author = context.authorities[fact["source_id"]]
    text, why = context.corrections.get(
        (fact["kind"], fact["subject"], fact["field"], fact["source_id"]), (fact["value"], None)
    )
    kind: SubjectKind = fact["kind"]
    value = parse_text(FIELDS[kind][fact["field"]].kind, text)
    if kind == "size" and fact["field"] == "series":
        value = context.subjects.series_id(text)
    return Claim(
        source=fact["source_id"],
        kind=author.kind,
        published_on=author.published_on,
        value=value,
        title=text,
        correction=why,
        pinned=author.pinned,
    )


def _with_verdicts(rows: Iterable[FactRow], resolution: Resolution) -> Iterable[FactRow]:
    rulings = {ruling.claim.source: ruling for ruling in resolution.claims}
    for row in rows:
        ruling = rulings[row["source_id"]]
        corrected = to_text(ruling.claim.value) if ruling.claim.correction else None
        yield row | {"verdict": ruling.verdict, "reason": ruling.reason, "corrected_value": corrected}


def _spellings(
    facts_by_subject: Mapping[tuple[SubjectKind, str], Mapping[str, list[FactRow]]],
    context: ResolutionContext,
    named: Mapping[str, Spelling],
) -> dict[str, list[Spelling]]:
    """How each size is spelled by whom; a price list's spelling counts only where no fact speaks of the size."""
    found = {key: [spelling] for key, spelling in named.items()}
    for (kind, key), fields in facts_by_subject.items():
        if kind == "size":
            found[key] = [
                Spelling(
                    name=row["written_as"],
                    authority=AUTHORITY.index(author.kind),
                    source=row["source_id"],
                    published_on=author.published_on,
                )
                for rows in fields.values()
                for row in rows
                for author in (context.authorities[row["source_id"]],)
            ]
    return found
