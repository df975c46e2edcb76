"""The tables as SQL sees them, for statements that build no objects."""

from sqlalchemy import Table
from sqlmodel import SQLModel


def table_of(model: type[SQLModel]) -> Table:
    """The table behind a model, for statements that build no objects."""
    table = model.__table__  # type: ignore[attr-defined]  # SQLModel declares it only at run time
    assert isinstance(table, Table)  # noqa: S101  # tells the type checker
    return table
