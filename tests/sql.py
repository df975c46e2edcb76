"""Evaluates SQL that is written for both databases."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.db.dialects import DIALECTS, Dialect
from app.db.statements import BoundStatement, Statement, fetch


def dialect_of(session: Session) -> Dialect:
    return DIALECTS[session.connection().dialect.name]


def select_rows(session: Session, write: Callable[[Dialect], str], **parameters: Any) -> Sequence[tuple[Any, ...]]:
    """Return the rows of a query; those of SQLite as its driver returns them."""
    return fetch(session, BoundStatement(Statement(write), parameters))


def evaluate(session: Session, write: Callable[[Dialect], str], **parameters: Any) -> Any:
    """Return the value of an expression."""
    ((value,),) = select_rows(session, lambda sql: f"select {write(sql)} as value", **parameters)
    return value
