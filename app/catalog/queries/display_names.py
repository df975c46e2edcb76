"""Names that people read: of regions, currencies, and of the sources behind a dispute."""

from collections.abc import Mapping, Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import ExchangeRate, Fact, Region, Size, Source
from app.catalog.queries.exchange_rates import EUR, USD


def find_region_names(session: Session) -> dict[str, str]:
    """Return the name of every region by its code, in the order of names."""
    region = table_of(Region).c
    rows = session.execute(select(region.code, region.name).order_by(region.name))
    return {row.code: row.name for row in rows}


def find_currencies(session: Session) -> list[str]:
    """Return the currencies that prices can be shown in: US dollars, the euro, then those with a rate, by code."""
    currency = table_of(ExchangeRate).c.currency
    rated = list(session.execute(select(currency).distinct().order_by(currency)).scalars())
    return [USD, *([EUR] if rated else []), *(code for code in rated if code not in (USD, EUR))]


def find_providers(session: Session) -> list[str]:
    """Return the clouds that have sizes, by id."""
    provider = table_of(Size).c.provider
    return list(session.execute(select(provider).distinct().order_by(provider)).scalars())


_FLAGS = {"true": "yes", "false": "no"}


def find_disputing_sources(session: Session, names: Sequence[str]) -> Mapping[str, list[tuple[str, str]]]:
    """Return, by name of a size, its disputed fields with the value that each source gives, the accepted one first.

    Each is a field and a text: `accepted 256 by ND family; 128 by Notes on ND`.
    """
    fact, source, size = table_of(Fact).c, table_of(Source).c, table_of(Size).c
    disputed = select(fact.subject, fact.field).where(fact.kind == "size", fact.verdict == "disputed").subquery()
    value = func.coalesce(fact.corrected_value, fact.value)
    rows = session.execute(
        select(size.name, fact.field, value, fact.verdict, source.title)
        .join_from(table_of(Size), table_of(Fact), (fact.kind == "size") & (fact.subject == size.key))
        .join(table_of(Source), source.id == fact.source_id)
        .where(
            size.name.in_(names),
            select(disputed).where(disputed.c.subject == fact.subject, disputed.c.field == fact.field).exists(),
        )
        .order_by(size.name, fact.field, fact.verdict, source.title)
    )
    said: dict[str, dict[str, dict[str, list[str]]]] = {name: {} for name in names}
    for name, field, stated, _verdict, title in rows:
        said[name].setdefault(field, {}).setdefault(stated, []).append(title)
    return {
        name: [
            (
                field,
                "; ".join(
                    f"{_FLAGS.get(stated, stated)} by {', '.join(dict.fromkeys(titles))}"
                    for stated, titles in values.items()
                ),
            )
            for field, values in fields.items()
        ]
        for name, fields in said.items()
    }
