"""Every fact that is kept and every new one, judged field by field; then the rows that follow from the judgement."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from app.catalog.fields import FIELDS, SubjectKind, parse_text, to_text
from app.catalog.readings import AUTHORITY, SourceKind
from app.catalog.resolution.claims import Decision, Word, decide
from app.catalog.resolution.derive import (
    Decisions,
    Spelling,
    derive_gpu,
    derive_series,
    derive_size,
    gpu_name,
    half_cards,
    in_one_unit,
)
from app.catalog.resolution.subjects import Subjects

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


def authority(kind: SubjectKind, field: str) -> tuple[SourceKind, ...]:
    """Give the kinds of source in the order in which they count on a field."""
    return API_FIRST if kind == "size" and field in API_FIELDS else AUTHORITY


FactRow = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """What of a source counts when words are weighed."""

    kind: SourceKind
    published_on: date | None
    pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The facts with their verdicts, and the rows of series, GPUs and sizes that follow."""

    facts: tuple[FactRow, ...]
    series: tuple[dict[str, Any], ...]
    gpus: tuple[dict[str, Any], ...]
    sizes: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What the judge knows of besides the facts: who the authors are, the corrections, the names of series."""

    authors: Mapping[str, Author]
    corrections: Mapping[tuple[str, str, str, str], tuple[str, str]]
    subjects: Subjects


def judge(facts: Iterable[FactRow], bench: Bench, named: Mapping[str, Spelling]) -> Judgement:
    """Decide every field; `named` are sizes, by key, that exist even where no fact speaks of them."""
    cases: dict[tuple[SubjectKind, str], dict[str, list[FactRow]]] = defaultdict(lambda: defaultdict(list))
    for fact in facts:
        cases[fact["kind"], fact["subject"]][fact["field"]].append(fact)
    decided: dict[SubjectKind, dict[str, Decisions]] = {"size": {}, "series": {}, "gpu": {}}
    for (kind, subject), case in cases.items():
        decided[kind][subject] = {name: _decide(rows, bench) for name, rows in case.items()}
    gpus = [derive_gpu(key, fields) for key, fields in decided["gpu"].items()]
    halves = half_cards(gpus)
    decided["size"] = {key: in_one_unit(fields, halves) for key, fields in decided["size"].items()}
    judged = [
        row
        for (kind, subject), case in cases.items()
        for name, rows in case.items()
        for row in _with_verdicts(rows, decided[kind][subject][name])
    ]
    titles = {str(word.value): word.title for word in _owners(decided["size"].values())}
    series = {
        key: derive_series(key, decided["series"].get(key, {}), titles.get(key, key))
        for key in {*decided["series"], *titles}
    }
    names = [gpu_name(row) for row in gpus]
    spellings = _spellings(cases, bench, named)
    sizes = [derive_size(key, decided["size"].get(key, {}), spellings[key], series, names) for key in spellings]
    return Judgement(facts=tuple(judged), series=tuple(series.values()), gpus=tuple(gpus), sizes=tuple(sizes))


def _owners(sizes: Iterable[Decisions]) -> Iterable[Word]:
    """The words that say which series owns each size."""
    return (fields["series"].accepted for fields in sizes if "series" in fields)


def _decide(rows: Iterable[FactRow], bench: Bench) -> Decision:
    """Decide one field; which series owns a size is said by the older page: a later page does not take it over."""
    first, *_ = facts = list(rows)
    words = [_word(fact, bench) for fact in facts]
    return decide(words, authority(first["kind"], first["field"]), older_first=first["field"] == "series")


def _word(fact: FactRow, bench: Bench) -> Word:
    author = bench.authors[fact["source_id"]]
    text, why = bench.corrections.get(
        (fact["kind"], fact["subject"], fact["field"], fact["source_id"]), (fact["value"], None)
    )
    kind: SubjectKind = fact["kind"]
    value = parse_text(FIELDS[kind][fact["field"]].kind, text)
    if kind == "size" and fact["field"] == "series":
        value = bench.subjects.series_id(text)
    return Word(
        source=fact["source_id"],
        kind=author.kind,
        published_on=author.published_on,
        value=value,
        title=text,
        correction=why,
        pinned=author.pinned,
    )


def _with_verdicts(rows: Iterable[FactRow], decision: Decision) -> Iterable[FactRow]:
    rulings = {ruling.word.source: ruling for ruling in decision.rulings}
    for row in rows:
        ruling = rulings[row["source_id"]]
        corrected = to_text(ruling.word.value) if ruling.word.correction else None
        yield row | {"verdict": ruling.verdict, "reason": ruling.reason, "corrected_value": corrected}


def _spellings(
    cases: Mapping[tuple[SubjectKind, str], Mapping[str, list[FactRow]]], bench: Bench, named: Mapping[str, Spelling]
) -> dict[str, list[Spelling]]:
    """How each size is spelled by whom; a price list's spelling counts only where no fact speaks of the size."""
    found = {key: [spelling] for key, spelling in named.items()}
    for (kind, key), fields in cases.items():
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
                for author in (bench.authors[row["source_id"]],)
            ]
    return found
