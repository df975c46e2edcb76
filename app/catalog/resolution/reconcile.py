"""Resolves all facts field by field, and derives the rows of sizes, series and GPUs from the accepted claims."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from app.catalog.fields import FIELDS, SubjectKind, parse_text, to_text
from app.catalog.providers import DEFAULT_PROVIDER, Provider
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


def authority_order(
    kind: SubjectKind, field: str, subject: str, provider: Provider = DEFAULT_PROVIDER
) -> tuple[SourceKind, ...]:
    """Return the kinds of source in the order of their authority on a field of a subject, given by its key.

    The API is first where it defines the field, but not on the vCPUs of a constrained size: it gives those of the size
    that this one is made from, and a page those that a VM can use.
    """
    is_parents = field == "vcpus" and provider.constrained_key is not None and provider.constrained_key.match(subject)
    return API_FIRST if kind == "size" and field in provider.api_fields and not is_parents else AUTHORITY


FactRow = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAuthority:
    """What decides whose claim is accepted: the kind of a source, its date, and whether it is pinned.

    `provider` is the one whose sizes the source describes where it does not say so.
    """

    kind: SourceKind
    published_on: date | None
    pinned: bool = False
    provider: Provider = DEFAULT_PROVIDER


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciledRows:
    """The facts with their verdicts, and the rows of series, GPUs and sizes derived from them."""

    facts: tuple[FactRow, ...]
    series: tuple[dict[str, Any], ...]
    gpus: tuple[dict[str, Any], ...]
    sizes: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolutionContext:
    """What facts are resolved with: the authority of each source, corrections, and the keys of subjects.

    Corrections are a value and its reason by kind, subject, field and source.
    """

    authorities: Mapping[str, SourceAuthority]
    corrections: Mapping[tuple[str, ...], tuple[str, str]]
    subjects: SubjectKeys


def reconcile(facts: Iterable[FactRow], context: ResolutionContext, named: Mapping[str, Spelling]) -> ReconciledRows:
    """Resolve every field of every subject, and derive the rows; `named` are sizes that may have no facts, by key."""
    by_subject: dict[tuple[SubjectKind, str], dict[str, list[FactRow]]] = defaultdict(lambda: defaultdict(list))
    for fact in facts:
        by_subject[fact["kind"], fact["subject"]][fact["field"]].append(fact)
    resolved: dict[SubjectKind, dict[str, Resolutions]] = {"size": {}, "series": {}, "gpu": {}}
    for (kind, subject), fields in by_subject.items():
        resolved[kind][subject] = {name: _resolve_field(rows, context) for name, rows in fields.items()}
    gpus = [derive_gpu(key, fields) for key, fields in resolved["gpu"].items()]
    halves = half_card_memories(gpus)
    resolved["size"] = {key: reconcile_gpu_units(fields, halves) for key, fields in resolved["size"].items()}
    with_verdicts: list[FactRow] = []
    for (kind, subject), fields in by_subject.items():
        for name, rows in fields.items():
            by_source = {judged.claim.source: judged for judged in resolved[kind][subject][name].claims}
            for row in rows:
                judged = by_source[row["source_id"]]
                corrected = to_text(judged.claim.value) if judged.claim.correction else None
                verdict = {"verdict": judged.verdict, "reason": judged.reason, "corrected_value": corrected}
                with_verdicts.append(row | verdict)
    naming: dict[str, list[Claim]] = defaultdict(list)  # the accepted claims of sizes to belong to a series, by its id
    for of_size in resolved["size"].values():
        if "series" in of_size:
            naming[str(of_size["series"].accepted.value)].append(of_size["series"].accepted)
    series = {
        key: derive_series(key, resolved["series"].get(key, {}), naming.get(key, ()))
        for key in {*resolved["series"], *naming}
    }
    names = [to_gpu_name(row) for row in gpus]
    spellings = _spellings(by_subject, context, named)
    sizes = [derive_size(key, resolved["size"].get(key, {}), spellings[key], series, names) for key in spellings]
    return ReconciledRows(
        facts=tuple(with_verdicts), series=tuple(series.values()), gpus=tuple(gpus), sizes=tuple(sizes)
    )


def _resolve_field(rows: Iterable[FactRow], context: ResolutionContext) -> Resolution:
    """Resolve one field; a size belongs to the series that claimed it first, a later page does not take it over."""
    first, *_ = facts = list(rows)
    claims = [_to_claim(fact, context) for fact in facts]
    # Only what an API says is ordered by what that API defines.
    provider = next((claim.provider for claim in claims if claim.kind == "vendor_api"), DEFAULT_PROVIDER)
    order = authority_order(first["kind"], first["field"], first["subject"], provider)
    return resolve(claims, order, older_first=first["field"] == "series")


def _to_claim(fact: FactRow, context: ResolutionContext) -> Claim:
    authority = context.authorities[fact["source_id"]]
    text, reason = context.corrections.get(
        (fact["kind"], fact["subject"], fact["field"], fact["source_id"]), (fact["value"], None)
    )
    kind: SubjectKind = fact["kind"]
    value = parse_text(FIELDS[kind][fact["field"]].kind, text)
    if kind == "size" and fact["field"] == "series":
        value = context.subjects.series_id(text)
    return Claim(
        source=fact["source_id"],
        kind=authority.kind,
        published_on=authority.published_on,
        value=value,
        title=text,
        correction=reason,
        pinned=authority.pinned,
        provider=authority.provider,
    )


def _spellings(
    facts_by_subject: Mapping[tuple[SubjectKind, str], Mapping[str, list[FactRow]]],
    context: ResolutionContext,
    named: Mapping[str, Spelling],
) -> dict[str, list[Spelling]]:
    """Return the spellings of each size; those of `named` are used only for sizes without facts."""
    spellings = {key: [spelling] for key, spelling in named.items()}
    for (kind, key), fields in facts_by_subject.items():
        if kind == "size":
            spellings[key] = [
                Spelling(
                    name=row["written_as"],
                    authority=AUTHORITY.index(authority.kind),
                    source=row["source_id"],
                    published_on=authority.published_on,
                    provider=authority.provider,
                )
                for rows in fields.values()
                for row in rows
                for authority in (context.authorities[row["source_id"]],)
            ]
    return spellings
