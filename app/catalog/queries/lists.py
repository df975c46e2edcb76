"""The small tables as lists, and a series with all that belongs to it."""

from sqlalchemy import select
from sqlalchemy.orm import Session
from sqlmodel import SQLModel

from app.catalog.fields import SIZE_FLAGS
from app.catalog.models import Benchmark, Series, Size
from app.catalog.queries.lookups import series_ids, series_titles
from app.catalog.queries.pagination import Item, Listing, Term, take_page
from app.catalog.queries.params import Page
from app.catalog.tables import table_of

LISTS = ("use_cases", "integrations", "gpu_dtypes", "supported_images", "aliases")
"""Columns of series and others that hold several values, joined by `; `."""


def find_all(session: Session, model: type[SQLModel], page: Page, *, newest_first: bool = False) -> Listing:
    """Find the rows of a small table in the order of its key, or in the opposite one."""
    table = table_of(model)
    terms = [
        Term(name=column.name, expression=column, descending=newest_first, nullable=False)
        for column in table.primary_key
    ]
    found = take_page(session, select(table), terms, question=table.name, limit=page.limit, cursor=page.cursor)
    items = [with_lists(row) for row in found.items]
    return Listing(items=items, next_cursor=found.next_cursor, total=found.total)


def with_lists(row: Item) -> Item:
    """Texts that are lists become lists; an unknown one is empty."""
    return {name: (value.split("; ") if value else []) if name in LISTS else value for name, value in row.items()}


def get_series(session: Session, name: str) -> Item:
    """Get a series by its id or any of its titles: its rack, its benchmarks, its sizes, the flags they all have."""
    (key,) = series_ids(series_titles(session), [name])
    series, benchmark, size = table_of(Series), table_of(Benchmark), table_of(Size)
    row = dict(session.execute(select(series).where(series.c.id == key)).mappings().one())
    sizes = session.execute(select(size).where(size.c.series_id == key).order_by(size.c.name)).mappings().all()
    results = session.execute(select(benchmark).where(benchmark.c.series_id == key).order_by(benchmark.c.id))
    return with_lists(row) | {
        "sizes": [size_row["name"] for size_row in sizes],
        "flags": [flag for flag in SIZE_FLAGS if sizes and all(size_row[flag] for size_row in sizes)],
        "benchmarks": [dict(result) for result in results.mappings()],
    }
