"""What a list of sizes can be ordered by: an allow-list."""

from app.catalog.fields import SIZE_FIELDS
from app.catalog.projections import PURCHASES, RATIOS

SIZE_COLUMNS = {
    name: "series_id" if name == "series" else name
    for name, field in SIZE_FIELDS.items()
    if (field.column and field.kind != "boolean") or name == "series"
}
"""The column of a size that each key is."""

OFFER_COLUMNS = (*RATIOS, *(f"{purchase}_usd_per_hour" for purchase in PURCHASES))
"""Keys that are columns of an offer."""

SORT_KEYS: tuple[str, ...] = ("name", *SIZE_COLUMNS, "usd_per_hour", *OFFER_COLUMNS)
"""What `sort` takes, each also with `-` before it."""
