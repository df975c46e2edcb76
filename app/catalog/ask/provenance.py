"""Who says what: every source's word on a size, and every disagreement there is."""

from typing import Any

from pydantic import Field
from sqlalchemy import ColumnElement, FromClause, and_, case, func, select
from sqlalchemy.orm import Session

from app.catalog.ask.lookups import size_key_of
from app.catalog.ask.paging import Listing, Term, take_page
from app.catalog.ask.search import Page, Text
from app.catalog.models import Fact, Size, Source
from app.catalog.names import size_key
from app.catalog.tables import table_of


class ConflictSearch(Page):
    """Which conflicts."""

    field: Text | None = Field(default=None, description="On this field: `gpu_memory_gib`.")
    subject: Text | None = Field(default=None, description="On this size, in any spelling; or series or GPU by id.")


def find_facts(session: Session, name: str, page: Page) -> Listing:
    """Find what every source says of a size, field by field, the accepted word first; raises NotFound."""
    key = size_key_of(session, name)
    fact, source = table_of(Fact), table_of(Source)
    rank = case((fact.c.verdict == "accepted", 0), (fact.c.verdict == "agrees", 1), else_=2)
    shown = ("field", "value", "unit", "verdict", "reason", "raw", "note", "written_as", "file", "line", "source_id")
    query = (
        select(*(fact.c[column] for column in shown), *_about(source), rank.label("rank"))
        .join_from(fact, source, source.c.id == fact.c.source_id)
        .where(fact.c.kind == "size", fact.c.subject == key)
    )
    terms = [_term("field", fact.c.field), _term("rank", rank), _term("source_id", fact.c.source_id)]
    found = take_page(session, query, terms, question=f"facts {key}", limit=page.limit, cursor=page.cursor)
    items = [{name: value for name, value in item.items() if name != "rank"} for item in found.items]
    return Listing(items=items, next_cursor=found.next_cursor, total=found.total)


def find_conflicts(session: Session, search: ConflictSearch) -> Listing:
    """Find every word that was not accepted, beside the one that was."""
    other, source = table_of(Fact), table_of(Source)
    accepted = table_of(Fact).alias("accepted")
    size = table_of(Size)
    same = and_(*(other.c[name] == accepted.c[name] for name in ("kind", "subject", "field")))
    query = (
        select(
            *(other.c[name] for name in ("kind", "subject", "field", "unit")),
            func.coalesce(size.c.name, other.c.subject).label("name"),
            *(accepted.c[name].label(f"accepted_{name}") for name in ("value", "source_id")),
            *(other.c[name] for name in ("value", "raw", "reason", "file", "line", "source_id")),
            *_about(source),
        )
        .join_from(other, accepted, and_(same, accepted.c.verdict == "accepted"))
        .join(source, source.c.id == other.c.source_id)
        .join(size, and_(other.c.kind == "size", size.c.key == other.c.subject), isouter=True)
        .where(other.c.verdict == "disputed")
    )
    if search.field is not None:
        query = query.where(other.c.field == search.field)
    if search.subject is not None:
        query = query.where(other.c.subject.in_({search.subject, size_key(search.subject)}))
    terms = [_term(name, other.c[name]) for name in ("kind", "subject", "field", "source_id")]
    question = search.model_dump_json(exclude={"limit", "cursor"})
    return take_page(session, query, terms, question=question, limit=search.limit, cursor=search.cursor)


def _about(source: FromClause) -> list[ColumnElement[Any]]:
    return [source.c[name].label(f"source_{name}") for name in ("title", "kind", "url", "published_on")]


def _term(name: str, expression: ColumnElement[Any]) -> Term:
    return Term(name=name, expression=expression, nullable=False)
