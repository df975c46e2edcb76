"""Factories of readings with defaults, so that a test names only the values it is about."""

from collections.abc import Iterable, Iterator
from dataclasses import fields
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from app.catalog.fields import FactValue, SubjectKind, to_text
from app.catalog.money import USD_DECIMALS
from app.catalog.readings import (
    PriceBlock,
    PriceList,
    PriceRow,
    Reading,
    RegionRow,
    SourceKind,
    SourceRow,
    StatedFact,
)

NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)


def source(
    key: str = "page",
    *,
    kind: SourceKind = "vendor_page",
    on: date | None = date(2025, 1, 1),
    retail: bool = False,
) -> SourceRow:
    return SourceRow(
        id=key,
        title=key,
        publisher="someone",
        kind=kind,
        url=f"https://example.org/{key}",
        published_on=on,
        sha256="0",
        retail=retail,
    )


def statement(field: str, value: FactValue, **more: Any) -> StatedFact:
    ordinary: dict[str, Any] = {
        "kind": "size",
        "subject": "Standard_X1",
        "source": "page",
        "file": "page.md",
        "line": 1,
    }
    return StatedFact(field=field, value=value, raw=to_text(value), **ordinary | more)


def size(name: str, *, by: str = "page", kind: SubjectKind = "size", **fields: FactValue) -> tuple[StatedFact, ...]:
    return tuple(statement(field, value, kind=kind, subject=name, source=by) for field, value in fields.items())


def region(code: str = "eastus") -> RegionRow:
    return RegionRow(code=code, name=code, geography=None, source="prices", file="regions.csv", line=2)


def price(name: str, usd: str | Decimal, **more: Any) -> PriceRow:
    ordinary: dict[str, Any] = {
        "region": "eastus",
        "os": "linux",
        "purchase": "on_demand",
        "valid_from": date(2026, 6, 18),
        "approximate_date": False,
        "source": "prices",
        "file": "prices.csv",
        "line": 2,
    }
    return PriceRow(size=name, usd_per_hour=Decimal(usd), **ordinary | more)


def price_list(*rows: PriceRow, at_once: int = 2) -> tuple[PriceList, ...]:
    """Return a price list in small blocks; its file is that of the first price."""
    blocks = [PriceBlock.of(rows[start : start + at_once]) for start in range(0, len(rows), at_once)]
    return (PriceList(file=rows[0].file, blocks=lambda: iter(blocks)),) if rows else ()


def price_rows(lists: Iterable[PriceList]) -> Iterator[PriceRow]:
    """Read every row of some price lists."""
    shared = [field.name for field in fields(PriceRow) if field.name not in {"file", "usd_per_hour"}]
    for listed in lists:
        for block in listed.blocks():
            columns = (getattr(block, name) for name in shared)
            for nano, *values in zip(block.nano_usd_per_hour, *columns, strict=True):
                usd = Decimal(nano).scaleb(-USD_DECIMALS)
                yield PriceRow(**dict(zip(shared, values, strict=True)), usd_per_hour=usd, file=listed.file)


def reading(
    statements: Iterable[StatedFact] = (),
    *,
    sources: Iterable[SourceRow] = (),
    regions: Iterable[str] = (),
    prices: Iterable[PriceRow] = (),
    **more: Any,
) -> Reading:
    cited = (source(), source("prices", kind="third_party"), *sources)
    return Reading(
        sources=cited,
        facts=tuple(statements),
        regions=tuple(map(region, regions)),
        prices=price_list(*prices),
        **more,
    )
