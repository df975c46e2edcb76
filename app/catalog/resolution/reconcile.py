"""Resolves all facts field by field, and derives the rows of sizes, series and GPUs from accepted claims; no I/O."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from app.catalog.fields import FIELDS, GPU_FIELDS, SERIES_FIELDS, SIZE_FIELDS, SubjectKind, parse_text, to_text
from app.catalog.names import size_key
from app.catalog.providers import DEFAULT_PROVIDER, Provider
from app.catalog.readings import AUTHORITY, SourceKind
from app.catalog.resolution.claims import Claim, Resolution, resolve
from app.catalog.resolution.subjects import GpuName, SubjectKeys, find_gpu, gpu_text_key

Resolutions = Mapping[str, Resolution]
"""The resolved fields of one subject, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """How one source spells the name of a size, and what decides whose spelling is used.

    `provider` is the one whose sizes the source describes where it does not say so.
    """

    name: str
    authority: int
    source: str | None
    published_on: date | None = None
    provider: Provider = DEFAULT_PROVIDER

    @property
    def sort_key(self) -> tuple[int, int, str]:
        """Return the key that sorts the preferred spelling first: by authority, then the newer, then by source."""
        age = -self.published_on.toordinal() if self.published_on else 1
        return (self.authority, age, self.source or "")


def derive_series(key: str, fields: Resolutions, naming: Sequence[Claim]) -> dict[str, Any]:
    """Derive the row of a series; `naming` are the claims of sizes to belong to it.

    Where no source states its name, it is the one that its sizes give; where none states its provider, it is that of
    the source with most authority among all that describe it. Of different names the preferred claim's is taken.
    """
    name = min(naming, key=lambda claim: (claim.sort_key(), claim.title)).title if naming else key
    first = min((*naming, *(field.accepted for field in fields.values())), key=Claim.sort_key)
    return _with_defaults(_columns(fields, SERIES_FIELDS), id=key, name=name, provider=first.provider.id)


def _with_defaults(row: dict[str, Any], **defaults: str) -> dict[str, Any]:
    return {name: default if row.get(name) is None else row[name] for name, default in defaults.items()} | {
        name: value for name, value in row.items() if name not in defaults
    }


def to_gpu_name(row: Mapping[str, Any]) -> GpuName:
    """Take from a GPU's row the names and the memory that it is recognised by."""
    names = [row["id"], row["model"], *(row["aliases"] or "").split("; ")]
    aliases = frozenset(gpu_text_key(name) for name in names if name)
    return GpuName(
        id=row["id"], vendor=row["vendor"], model=row["model"], memory_gib=row["memory_gib"], aliases=aliases
    )


def derive_size(
    key: str,
    fields: Resolutions,
    spellings: Iterable[Spelling],
    series: Mapping[str, Mapping[str, Any]],
    gpus: Sequence[GpuName],
) -> dict[str, Any]:
    """Derive the row of a size; it may have no fields at all, where only a price list names it."""
    spelled = sorted(spellings, key=lambda spelling: spelling.sort_key)
    first = spelled[0]
    name = next((spelling.name for spelling in spelled if size_key(spelling.name) == key), first.name)
    row: dict[str, Any] = {"key": key, "name": name} | _columns(fields, SIZE_FIELDS)
    row["series_id"] = row.pop("series")
    its_series = series.get(row["series_id"] or "")
    row["provider"] = its_series["provider"] if its_series else first.provider.id
    row["verified"] = first.authority < AUTHORITY.index("third_party") and not row["withdrawn"]
    disputed = sorted(name for name, resolution in fields.items() if resolution.is_disputed)
    row |= {"disputed": bool(disputed), "disputed_fields": "; ".join(disputed)}
    row["source_id"] = first.source
    row |= _gpu_columns(row, fields, gpus)
    has_gpu = row["gpu_model"] or row["gpu_count_numerator"]
    row["category"] = "gpu_accelerated" if has_gpu else its_series["category"] if its_series else None
    row |= _implied_columns(row, its_series) | {"preview": _is_in_preview(fields)}
    if row["cpu_model"] and not row["cpu_vendor"]:
        row["cpu_vendor"] = cpu_vendor(row["cpu_model"])
    if row["burstable"] is None and row["cpu_credits_per_hour"] is not None:
        row["burstable"] = True
    row["local_nvme"] = _has_local_nvme(row)
    row["disk_controller"] = _disk_controllers(fields)
    names = (row["name"], row["series_id"], its_series["name"] if its_series else None)
    row["search_text"] = " ".join(str(name) for name in (*names, row["gpu_vendor"], row["gpu_model"]) if name).lower()
    return row


def _columns(fields: Resolutions, registry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the accepted value of each field that has a column, None where there is no claim."""
    row: dict[str, Any] = {name: None for name, field in registry.items() if field.column}
    for name in row.keys() & fields.keys():
        value = fields[name].accepted.value
        row[name] = float(value) if isinstance(value, Decimal | Fraction) else value
    return row


def _gpu_columns(row: Mapping[str, Any], fields: Resolutions, gpus: Sequence[GpuName]) -> dict[str, Any]:
    """Return the exact fraction of a GPU, the GPU model, and both memories where two of the three figures are known.

    A VM without a GPU has 0 GiB of GPU memory; what one GPU has stays unknown.
    """
    count = Fraction(str(fields["gpu_count"].accepted.value)) if "gpu_count" in fields else None
    total, per_gpu = row["gpu_memory_gib"], row["gpu_memory_gib_per_gpu"]
    if count == 0 and total is None:
        total = 0.0
    if count and total is None and per_gpu is not None:
        total = float(Fraction(per_gpu) * count)
    if count and per_gpu is None and total is not None:
        per_gpu = float(Fraction(total) / count)
    gpu = find_gpu(row["gpu_model"], per_gpu, gpus) if row["gpu_model"] else None
    return {
        "gpu_count_numerator": count.numerator if count is not None else None,
        "gpu_count_denominator": count.denominator if count is not None else None,
        "gpu_memory_gib": total,
        "gpu_memory_gib_per_gpu": per_gpu,
        "gpu_id": gpu.id if gpu else None,
        "gpu_model": gpu.model if gpu else row["gpu_model"],
        "gpu_vendor": row["gpu_vendor"] or (gpu.vendor if gpu else None),
    }


def _implied_columns(row: Mapping[str, Any], series: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what other columns imply: NVLink from the interconnect's name, InfiniBand from its speed or the fabric.

    Pages state NVLink of a whole series; it is false for VMs with one GPU or less, which have nothing to link.
    """
    nvlink, infiniband, retired = row["nvlink"], row["infiniband"], row["retirement_date"]
    if nvlink is None and "nvlink" in (row["gpu_interconnect"] or "").lower():
        nvlink = True
    if nvlink and row["gpu_count"] is not None and row["gpu_count"] <= 1:
        nvlink = False
    if infiniband is None and row["infiniband_gbps"]:
        infiniband = True
    if infiniband is None and row["fabric"]:  # a VM has one
        infiniband = row["fabric"] == "InfiniBand"
    if retired is None and series is not None:
        retired = series["retirement_date"]
    fabric = row["fabric"] or ("InfiniBand" if infiniband else None)
    return {"nvlink": nvlink, "infiniband": infiniband, "fabric": fabric, "retirement_date": retired}


_CPU_LINES = {
    "Intel": "intel xeon haswell broadwell skylake cascade ice sapphire emerald granite sandy ivy",
    "AMD": "amd epyc naples rome milan genoa turin",
    "Ampere": "ampere",
    "Microsoft": "cobalt",
    "NVIDIA": "nvidia",
    "AWS": "graviton graviton2 graviton3 graviton4 graviton5",
    "Google": "axion",
}
"""Words of the names of processors that only one maker has: its own name, lines and generations."""
_CPU_VENDORS = {word: vendor for vendor, words in _CPU_LINES.items() for word in words.split()}


def cpu_vendor(cpu_model: str) -> str | None:
    """Return who makes a processor; None for those that a VM may get, `A or B`, of two makers."""
    makers = {
        next((_CPU_VENDORS[word] for word in name.lower().split() if word in _CPU_VENDORS), None)
        for name in cpu_model.split(" or ")
    }
    return makers.pop() if len(makers) == 1 else None


def _has_local_nvme(row: Mapping[str, Any]) -> bool | None:
    """Return whether a size has local NVMe disks; it has none where it has no local disk at all."""
    stated = [row[name] for name in ("nvme_disk_gib", "nvme_disk_count") if row[name] is not None]
    return any(stated) if stated else (False if row["temp_disk_gib"] == 0 else None)


def _disk_controllers(fields: Resolutions) -> str | None:
    """Return what remote disks can be attached by, where sources say of both whether they are supported."""
    names = {"NVMe": "nvme_interface", "SCSI": "scsi_interface"}
    if not fields.keys() >= {*names.values()}:
        return None
    return ", ".join(name for name, field in names.items() if fields[field].accepted.value) or None


def _is_in_preview(fields: Resolutions) -> bool | None:
    """Return whether a size is in preview: a newer page of the same kind that names it without saying so ends it."""
    if "preview" not in fields:
        return None
    preview = fields["preview"].accepted
    claims = [judged.claim for resolution in fields.values() for judged in resolution.claims]
    pages = [claim.published_on for claim in claims if claim.kind == preview.kind and claim.published_on is not None]
    outdated = preview.published_on is not None and max(pages, default=preview.published_on) > preview.published_on
    return bool(preview.value) and not outdated


COUNT, EACH, NVLINK, PREVIEW = "gpu_count", "gpu_memory_gib_per_gpu", "nvlink", "preview"
_HALF = "half of"
_NOTHING_TO_LINK = "the size has false: one GPU, or a part of one, has nothing to link"
_NO_LONGER_IN_PREVIEW = "the size has false: a newer page names it without saying so"


def half_card_memories(gpus: Iterable[Mapping[str, Any]]) -> dict[str, Fraction]:
    """Return the memory of half a card in GiB by the card's family in lower case, of GPUs with an alias `half of …`."""
    return {
        str(gpu["family"]).lower(): Fraction(gpu["memory_gib"])
        for gpu in gpus
        if gpu["memory_gib"] and any(alias.startswith(_HALF) for alias in (gpu["aliases"] or "").split("; "))
    }


def reconcile_gpu_units(fields: Mapping[str, Resolution], halves: Mapping[str, Fraction]) -> Mapping[str, Resolution]:
    """Settle disputes between sources that count cards and those that count half cards: both describe the same GPUs."""
    if not {COUNT, EACH, "gpu_model"} <= fields.keys():
        return fields
    words = str(fields["gpu_model"].accepted.value).lower().split()
    half = next((memory for family, memory in halves.items() if family in words), None)
    count, per_gpu = _number(fields[COUNT].accepted.value), _number(fields[EACH].accepted.value)
    if half is None or not count or per_gpu not in (half, 2 * half):
        return fields
    memories = {judged.claim.source: _number(judged.claim.value) for judged in fields[EACH].claims}

    def is_other_unit(claim: Claim) -> bool:
        """Whether a claim counts twice or half as many GPUs, with the same memory in all where it states that, too."""
        other_count = _number(claim.value)
        if other_count not in (count / 2, count * 2):
            return False
        other_each = count * per_gpu / other_count
        return memories.get(claim.source, other_each) == other_each

    sources = {
        judged.claim.source
        for judged in fields[COUNT].claims
        if judged.verdict == "disputed" and is_other_unit(judged.claim)
    }
    reason = f"counts {'cards' if per_gpu == half else 'half cards'}: the same GPUs and memory in another unit"
    return {**fields} | {name: _with_agreement(fields[name], sources, reason) for name in (COUNT, EACH)}


def explain_overruled(fields: Mapping[str, Resolution]) -> Mapping[str, Resolution]:
    """Say of an accepted yes why the size has a no: of NVLink with one GPU or less, and of a preview that has ended."""
    reasons = {}
    has_no_links = COUNT in fields and _number(fields[COUNT].accepted.value) <= 1
    if NVLINK in fields and fields[NVLINK].accepted.value and has_no_links:
        reasons[NVLINK] = _NOTHING_TO_LINK
    if PREVIEW in fields and fields[PREVIEW].accepted.value and not _is_in_preview(fields):
        reasons[PREVIEW] = _NO_LONGER_IN_PREVIEW
    return {**fields} | {name: _with_rule(fields[name], reason) for name, reason in reasons.items()}


def _with_rule(resolution: Resolution, rule: str) -> Resolution:
    """Add a rule to the reason of the accepted claim."""
    claims = tuple(
        replace(judged, reason=f"{judged.reason}; {rule}") if judged.verdict == "accepted" else judged
        for judged in resolution.claims
    )
    return replace(resolution, claims=claims)


def _with_agreement(resolution: Resolution, sources: set[str], reason: str) -> Resolution:
    """Change the disputed claims of some sources to agreeing ones."""
    claims = tuple(
        replace(judged, verdict="agrees", reason=reason)
        if judged.verdict == "disputed" and judged.claim.source in sources
        else judged
        for judged in resolution.claims
    )
    return replace(resolution, claims=claims)


def _number(value: Any) -> Fraction:
    return Fraction(str(value))


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
    gpus = [
        _with_defaults(_columns(fields, GPU_FIELDS), id=key, vendor="unknown", model=key, family=key)
        for key, fields in resolved["gpu"].items()
    ]
    halves = half_card_memories(gpus)
    resolved["size"] = {
        key: explain_overruled(reconcile_gpu_units(fields, halves)) for key, fields in resolved["size"].items()
    }
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
    """Return the spellings of each size; those of `named` count after those of facts, which may be of an alias only."""
    spellings = {key: [spelling] for key, spelling in named.items()}
    for (kind, key), fields in facts_by_subject.items():
        if kind == "size":
            spellings[key] = spellings.get(key, []) + [
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
