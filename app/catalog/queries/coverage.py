"""For how many sizes each figure is known, and of which series it is not, with the reason."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryCoverage:
    """For how many sizes of a type a figure is known."""

    category: str | None
    total: int
    known: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownOfSeries:
    """The sizes of a series whose figure is unknown; `total` are all of its sizes, `reason` is a code."""

    series: str | None
    sizes: int
    total: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldCoverage:
    """For how many of the sizes that a figure applies to it is known."""

    field: str
    total: int
    known: int
    categories: Sequence[CategoryCoverage]
    unknown: Sequence[UnknownOfSeries]

    @property
    def percent(self) -> float | None:
        """The share of sizes whose figure is known, to one decimal; None where it applies to none."""
        return round(100 * self.known / self.total, 1) if self.total else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The number of sizes that were counted, and each figure."""

    total: int
    items: Sequence[FieldCoverage]


def find_coverage(catalog: Catalog, search: SizeFilter) -> Coverage:
    """Count the known figures of the sizes that a search finds; raises what the search raises."""
    question = SizeQuestion(catalog, normalize(search, catalog.snapshot))
    matching = question.found()
    on_pages = question.sets.set_of_keys(catalog.fetch(BoundStatement(_ON_PAGES)))
    items = []
    for field in FIELDS:
        applicable = matching & ~question.inapplicable(field)
        with_value = applicable & ~question.sets_by_value(field).get(None, 0)
        categories = [
            CategoryCoverage(category=name, total=(applicable & of).bit_count(), known=(with_value & of).bit_count())
            for name, of in question.sets_by_value("category").items()
            if applicable & of
        ]
        unknown = [*_unknown(question.sets_by_value("series_id"), applicable, with_value, on_pages)]
        total, known = applicable.bit_count(), with_value.bit_count()
        items.append(FieldCoverage(field=field, total=total, known=known, categories=categories, unknown=unknown))
    return Coverage(total=matching.bit_count(), items=items)


def _unknown(
    series: Mapping[str | None, int], applicable: int, with_value: int, on_pages: int
) -> Iterator[UnknownOfSeries]:
    """Yield the series with sizes whose figure is unknown, and what sources say instead."""
    for name, of_series in series.items():
        sizes = applicable & of_series
        missing = sizes & ~with_value
        if not missing:
            continue
        stated = "stated_of_others" if sizes & with_value else "not_stated"
        reason = stated if missing & on_pages else "no_page"
        yield UnknownOfSeries(series=name, sizes=missing.bit_count(), total=sizes.bit_count(), reason=reason)


_ON_PAGES = Statement("""
        select key from size
        where exists (select 1 from fact where kind = 'size' and subject = size.key and file like '%.md')""")
"""The keys of sizes of which a documentation page states something."""
