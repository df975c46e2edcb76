"""The columns of the small tables that are read whole; named, so that columns of a newer schema change no answer."""

from collections.abc import Mapping, Sequence

from app.catalog.fields import GPU_FIELDS, SERIES_FIELDS
from app.catalog.presets import Preset

TABLE_COLUMNS: Mapping[str, Sequence[str]] = {
    "benchmark": ("id", "series_id", "scope", "workload", "metric", "value", "unit", "comparison", "source_id"),
    "disk": (
        *("id", "type", "redundancy", "size", "sku", "min_gib", "max_gib", "max_iops", "max_mbps", "burst_iops"),
        *("burst_mbps", "included_iops", "included_mbps", "iops_per_gib", "mbps_per_iops", "max_shares", "source_id"),
    ),
    "gpu": ("id", *GPU_FIELDS),
    "model": tuple(Preset.model_fields),
    "region": (
        *("code", "name", "geography", "source_id", "provider", "place", "country", "continent", "latitude"),
        "longitude",
    ),
    "revision": ("number", "created_at", "digest", "source_ids", "counts", "changes"),
    "series": ("id", *SERIES_FIELDS),
    "source": (*("id", "title", "publisher", "kind", "url", "published_on", "sha256", "pinned", "retail", "formula"),),
}
"""The columns of each table, in the order of its model, which a test compares them with."""


def select_all(table: str) -> str:
    """Write the query of all rows of a table, to which a condition or an order may be added."""
    return f"select {', '.join(TABLE_COLUMNS[table])} from {table}"
