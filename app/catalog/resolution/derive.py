"""From decided fields to the rows that search runs on: GPU models, series and sizes; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from app.catalog.fields import GPU_FIELDS, SERIES_FIELDS, SIZE_FIELDS, FactValue
from app.catalog.names import size_key
from app.catalog.readings import AUTHORITY
from app.catalog.resolution.claims import Resolution, ResolvedClaim
from app.catalog.resolution.subjects import GpuName, find_gpu, gpu_text_key

PROVIDER = "azure"

Resolutions = Mapping[str, Resolution]
"""The decided fields of one subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """How one source spells a size's name, with what says whose spelling counts."""

    name: str
    authority: int
    source: str | None
    published_on: date | None = None

    @property
    def sort_key(self) -> tuple[int, int, str]:
        """Sorts the spelling that counts first to the front: by authority, then the newer."""
        age = -self.published_on.toordinal() if self.published_on else 1
        return (self.authority, age, self.source or "")


def derive_gpu(key: str, fields: Resolutions) -> dict[str, Any]:
    """Make the row of a GPU model."""
    return _with_defaults(_columns(fields, GPU_FIELDS), id=key, vendor="unknown", model=key, family=key)


def derive_series(key: str, fields: Resolutions, name: str) -> dict[str, Any]:
    """Make the row of a series; `name` and our only provider hold until a source says otherwise."""
    return _with_defaults(_columns(fields, SERIES_FIELDS), id=key, name=name, provider=PROVIDER)


def _with_defaults(row: dict[str, Any], **defaults: str) -> dict[str, Any]:
    return {name: default if row.get(name) is None else row[name] for name, default in defaults.items()} | {
        name: value for name, value in row.items() if name not in defaults
    }


def to_gpu_name(row: Mapping[str, Any]) -> GpuName:
    """Take from a GPU's row what it can be recognised by."""
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
    """Make the row of a size; with no fields at all it is known only by the name that a price list gives it."""
    spelled = sorted(spellings, key=lambda spelling: spelling.sort_key)
    first = spelled[0]
    name = next((spelling.name for spelling in spelled if size_key(spelling.name) == key), first.name)
    row: dict[str, Any] = {"key": key, "name": name} | _columns(fields, SIZE_FIELDS)
    row["series_id"] = row.pop("series")
    mine = series.get(row["series_id"] or "")
    row["provider"] = mine["provider"] if mine else PROVIDER
    row["verified"] = first.authority < AUTHORITY.index("third_party") and not row["withdrawn"]
    disputed = sorted(name for name, decision in fields.items() if decision.is_disputed)
    row |= {"disputed": bool(disputed), "disputed_fields": "; ".join(disputed)}
    row["source_id"] = first.source
    row |= _gpu_columns(row, fields, gpus)
    row |= _implied_columns(row, mine) | {"preview": _in_preview(fields)}
    words = (row["name"], row["series_id"], mine["name"] if mine else None)
    row["search_text"] = " ".join(str(word) for word in (*words, row["gpu_vendor"], row["gpu_model"]) if word).lower()
    return row


def _columns(fields: Resolutions, registry: Mapping[str, Any]) -> dict[str, Any]:
    """The accepted value of each field that has a column; where nobody says a word, null."""
    accepted = {name: decision.accepted.value for name, decision in fields.items()}
    return {name: _stored(accepted.get(name)) for name, field in registry.items() if field.column}


def _stored(value: FactValue | None) -> Any:
    return float(value) if isinstance(value, (Decimal, Fraction)) else value


def _gpu_columns(row: Mapping[str, Any], fields: Resolutions, gpus: Sequence[GpuName]) -> dict[str, Any]:
    """The exact fraction of a GPU, both memories where two of the three figures are known, and the GPU model."""
    count = Fraction(str(fields["gpu_count"].accepted.value)) if "gpu_count" in fields else None
    total, each = row["gpu_memory_gib"], row["gpu_memory_gib_per_gpu"]
    if count and total is None and each is not None:
        total = float(Fraction(each) * count)
    if count and each is None and total is not None:
        each = float(Fraction(total) / count)
    gpu = find_gpu(row["gpu_model"], each, gpus) if row["gpu_model"] else None
    return {
        "gpu_count_numerator": count.numerator if count is not None else None,
        "gpu_count_denominator": count.denominator if count is not None else None,
        "gpu_memory_gib": total,
        "gpu_memory_gib_per_gpu": each,
        "gpu_id": gpu.id if gpu else None,
        "gpu_model": gpu.model if gpu else row["gpu_model"],
        "gpu_vendor": row["gpu_vendor"] or (gpu.vendor if gpu else None),
    }


def _implied_columns(row: Mapping[str, Any], series: Mapping[str, Any] | None) -> dict[str, Any]:
    """What follows from other columns: NVLink from the interconnect's name, InfiniBand from its speed.

    A page says of a whole series that it has NVLink; a VM with one GPU or a part of one has nothing to link.
    """
    nvlink, infiniband, retired = row["nvlink"], row["infiniband"], row["retirement_date"]
    if nvlink is None and "nvlink" in (row["gpu_interconnect"] or "").lower():
        nvlink = True
    if nvlink and row["gpu_count"] is not None and row["gpu_count"] <= 1:
        nvlink = False
    if infiniband is None and row["infiniband_gbps"]:
        infiniband = True
    if retired is None and series is not None:
        retired = series["retirement_date"]
    return {"nvlink": nvlink, "infiniband": infiniband, "retirement_date": retired}


def _in_preview(fields: Resolutions) -> bool | None:
    """Whether a size is in preview: as long as no page that is newer than the one saying so names it without a word."""
    if "preview" not in fields:
        return None
    said = fields["preview"].accepted
    words = [ruling.claim for decision in fields.values() for ruling in decision.claims]
    pages = [word.published_on for word in words if word.kind == said.kind and word.published_on is not None]
    outdated = said.published_on is not None and max(pages, default=said.published_on) > said.published_on
    return bool(said.value) and not outdated


COUNT, EACH = "gpu_count", "gpu_memory_gib_per_gpu"
_HALF = "half of"


def half_card_memories(gpus: Iterable[Mapping[str, Any]]) -> dict[str, Fraction]:
    """Find the memory of half a card by the card's family, in lower case: of the GPUs with an alias `half of …`."""
    return {
        str(gpu["family"]).lower(): Fraction(gpu["memory_gib"])
        for gpu in gpus
        if gpu["memory_gib"] and any(alias.startswith(_HALF) for alias in (gpu["aliases"] or "").split("; "))
    }


def reconcile_gpu_units(fields: Mapping[str, Resolution], halves: Mapping[str, Fraction]) -> Mapping[str, Resolution]:
    """Let the sources agree that count the GPUs of a size in the other unit than the accepted ones."""
    if not {COUNT, EACH, "gpu_model"} <= fields.keys():
        return fields
    words = str(fields["gpu_model"].accepted.value).lower().split()
    half = next((memory for family, memory in halves.items() if family in words), None)
    count, each = _number(fields[COUNT].accepted.value), _number(fields[EACH].accepted.value)
    if half is None or not count or each not in (half, 2 * half):
        return fields
    stated = {ruling.claim.source: _number(ruling.claim.value) for ruling in fields[EACH].claims}

    def same(ruling: ResolvedClaim) -> bool:
        theirs = _number(ruling.claim.value)
        return theirs in (count / 2, count * 2) and stated.get(ruling.claim.source, count * each / theirs) == (
            count * each / theirs
        )

    sources = {ruling.claim.source for ruling in fields[COUNT].claims if ruling.verdict == "disputed" and same(ruling)}
    said = f"counts {'cards' if each == half else 'half cards'}: the same GPUs and memory in another unit"
    return {**fields} | {name: _with_agreement(fields[name], sources, said) for name in (COUNT, EACH)}


def _with_agreement(decision: Resolution, sources: set[str], said: str) -> Resolution:
    rulings = tuple(
        replace(ruling, verdict="agrees", reason=said)
        if ruling.verdict == "disputed" and ruling.claim.source in sources
        else ruling
        for ruling in decision.claims
    )
    return replace(decision, claims=rulings)


def _number(value: Any) -> Fraction:
    return Fraction(str(value))
