"""For how many sizes each figure is known, and of which series it is not, with the reason."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.catalog.fields import SIZE_GROUPS
from app.catalog.queries.params import SizeFilter
from app.catalog.queries.size_sets import SizeQuestion
from app.catalog.queries.sizes import normalize
from app.catalog.queries.snapshot import Catalog
from app.catalog.statements import Statement
from app.db.statements import BoundStatement

_NOT_OF_ALL = {"gpu_id", "gpu_fraction", "parent_size", "cpu_baseline_percent", "cpu_credits_per_hour"}
"""Fields that apply to some sizes only, so that null does not mean unknown."""
FIELDS = tuple(
    name
    for group in ("Processor and memory", "Disks", "Network", "GPU", "Features")
    for name, spec in SIZE_GROUPS[group].items()
    if (spec.column or name == "local_disk_gib") and name not in _NOT_OF_ALL
)
"""The figures that are counted."""


def find_coverage(catalog: Catalog, search: SizeFilter) -> dict[str, Any]:
    """Count the known figures of the sizes that a search finds, as CoverageOut; raises what the search raises."""
    question = SizeQuestion(catalog, normalize(search, catalog.snapshot))
    matching = question.found()
    on_pages = question.sets.set_of_keys(catalog.fetch(BoundStatement(_ON_PAGES)))
    items = []
    for field in FIELDS:
        applicable = matching & ~question.inapplicable(field)
        with_value = applicable & ~question.sets_by_value(field).get(None, 0)
        categories = [
            {"category": name, "total": (applicable & of).bit_count(), "known": (with_value & of).bit_count()}
            for name, of in question.sets_by_value("category").items()
            if applicable & of
        ]
        unknown = [*_unknown(question.sets_by_value("series_id"), applicable, with_value, on_pages)]
        total, known = applicable.bit_count(), with_value.bit_count()
        percent = round(100 * known / total, 1) if total else None
        counts = {"total": total, "known": known, "percent": percent}
        items.append({"field": field, **counts, "categories": categories, "unknown": unknown})
    return {"total": matching.bit_count(), "items": items}


def _unknown(
    series: Mapping[str | None, int], applicable: int, with_value: int, on_pages: int
) -> Iterator[dict[str, Any]]:
    """Yield the series with sizes whose figure is unknown, and what sources say instead."""
    for name, of_series in series.items():
        sizes = applicable & of_series
        missing = sizes & ~with_value
        if not missing:
            continue
        stated = "stated_of_others" if sizes & with_value else "not_stated"
        reason = stated if missing & on_pages else "no_page"
        yield {"series": name, "sizes": missing.bit_count(), "total": sizes.bit_count(), "reason": reason}


_ON_PAGES = Statement("""
        select key from size
        where exists (select 1 from fact where kind = 'size' and subject = size.key and file like '%.md')""")
"""The keys of sizes of which a documentation page states something."""
