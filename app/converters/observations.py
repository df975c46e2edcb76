"""Reads what the vendors' commands and APIs print of capacity: `vmsizes observations import`.

Scores of spot placement of Azure and AWS, eviction rates of Azure's Resource Graph, and Google's advice on capacity.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.catalog.names import region_key
from app.catalog.providers import ProviderId
from app.converters import load_json
from app.errors import BadData, BadQuery
from app.services.observations import (
    ESTIMATED_UPTIME,
    EVICTION_RATE,
    MAX_OBSERVATIONS,
    OBTAINABILITY,
    PLACEMENT_SCORE,
    NewObservation,
)

FORMATS = (
    "`az compute-recommender spot-placement-score`, `az graph query` of SpotResources, "
    "`aws ec2 get-spot-placement-scores` or Google's `advice/capacity`"
)


def read_observations(text: str, name: str, sizes: Sequence[str] = ()) -> list[NewObservation]:
    """Read the JSON of one answer; `sizes` are those that AWS was asked about, which its answer does not name.

    Raises BadData saying where the file, called `name`, is none of FORMATS, and BadQuery where sizes are missing.
    """
    loaded = load_json(text, name)
    whole = loaded if isinstance(loaded, dict) else {"data": loaded}
    if "SpotPlacementScores" in whole and not sizes:
        raise BadQuery("--size", None, "is needed: AWS does not say which sizes it was asked about")
    if sizes and "SpotPlacementScores" not in whole:
        raise BadQuery("--size", ",".join(sizes), f"is for answers of AWS alone; {name} names its sizes")
    field = next((field for field in _READERS if isinstance(whole.get(field), list)), None)
    if field is None:
        raise BadData(f"is none of {FORMATS}", file=name)
    observations: list[NewObservation] = []
    for number, row in enumerate(whole[field], start=1):
        try:
            observations += _READERS[field](row, whole, sizes)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            detail = str(error) if isinstance(error, ValueError) else f"has no {error}"
            raise BadData(detail, file=name, column=f"{field}, entry {number}") from None
    if not 1 <= len(observations) <= MAX_OBSERVATIONS:
        detail = f"has {len(observations):,} observations; 1 to {MAX_OBSERVATIONS:,} are allowed"
        raise BadData(detail, file=name)
    return observations


def _observation(provider: ProviderId, size: object, region: object, kind: str, value: object, **more: Any) -> Any:
    for field, given in (("size", size), ("region", region), ("value", value)):
        if not isinstance(given, str | int | float) or not str(given).strip():
            raise KeyError(field)
    return NewObservation(
        provider=provider, size=str(size), region=region_key(str(region)), kind=kind, value=str(value), **more
    )


_AZURE_SCORE = re.compile(r"High|Medium|Low|(?:[A-Z][a-z]+){2,}")
"""A score, or a reason of several words, of which there may be new ones."""


def _azure_score(row: Mapping[str, Any], whole: Mapping[str, Any], _: Sequence[str]) -> Iterator[NewObservation]:
    """Yield a score of Azure: High, Medium, Low, or why there is none."""
    quota, score = row.get("isQuotaAvailable"), row["score"]
    if not _AZURE_SCORE.fullmatch(str(score)):
        raise ValueError(f"score {score}: must be High, Medium, Low, or a reason such as RestrictedSkuNotAvailable")
    notes = [_vms(whole.get("desiredCount")), None if quota is None else "with quota" if quota else "without quota"]
    zone, note = row.get("availabilityZone") or None, ", ".join(filter(None, notes)) or None
    yield _observation("azure", row["sku"], row["region"], PLACEMENT_SCORE, score, zone=zone, note=note)


def _azure_rate(row: Mapping[str, Any], _whole: Mapping[str, Any], _: Sequence[str]) -> Iterator[NewObservation]:
    """Yield an eviction rate of SpotResources: a whole row, or one with the columns of Microsoft's example."""
    of_sku, properties = row.get("sku") or {}, row.get("properties") or {}
    size = row.get("skuName") or of_sku.get("name") or properties.get("skuName")
    rate = row.get("spotEvictionRate") or row.get("evictionRate") or properties.get("evictionRate")
    yield _observation("azure", size, row["location"], EVICTION_RATE, rate)


def _aws_score(row: Mapping[str, Any], _: Mapping[str, Any], sizes: Sequence[str]) -> Iterator[NewObservation]:
    """Yield a score of AWS for each of the sizes that it was asked about together."""
    if (score := row["Score"]) not in range(1, 11):
        raise ValueError(f"Score {score}: must be a whole number from 1 to 10")
    for size in sizes:
        others = [other for other in sizes if other != size]
        note = f"together with {', '.join(others)}" if others else None
        zone = row.get("AvailabilityZoneId")
        yield _observation("aws", size, row["Region"], PLACEMENT_SCORE, score, zone=zone, note=note)


def _google_advice(row: Mapping[str, Any], _: Mapping[str, Any], __: Sequence[str]) -> Iterator[NewObservation]:
    """Yield the scores of a recommendation of Google for each of its shards: a machine type in a zone."""
    scores, shards = row["scores"], row["shards"]
    for shard in shards:
        zone = str(shard["zone"]).rpartition("/")[2]
        model = str(shard.get("provisioningModel") or "").lower()
        notes = [_vms(shard.get("instanceCount")), model, f"one of {len(shards)} shards" if len(shards) > 1 else ""]
        more = {"zone": zone, "note": ", ".join(filter(None, notes)) or None}
        region = re.sub(r"-[a-z]$", "", zone)
        for kind, field in ((OBTAINABILITY, "obtainability"), (ESTIMATED_UPTIME, "estimatedUptime")):
            if scores.get(field) is not None:
                yield _observation("gcp", shard["machineType"], region, kind, scores[field], **more)


def _vms(count: object) -> str | None:
    return f"for {count:,} VM{'s' if count != 1 else ''}" if isinstance(count, int) else None


_READERS = {
    "placementScores": _azure_score,
    "SpotPlacementScores": _aws_score,
    "recommendations": _google_advice,
    "data": _azure_rate,
}
"""What reads an entry of the list that a format has, by the name of the list."""
