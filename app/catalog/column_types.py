"""Columns that mean the same on SQLite and on PostgreSQL: money is exact, text sorts by code points, names are ours."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import DateTime, Double, Numeric, String, Table
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine
from sqlmodel import SQLModel

SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

BYTEWISE = String().with_variant(String(collation="C"), "postgresql")
"""Text whose order does not depend on the language that a PostgreSQL database was created with."""

NOT_IN_DIGEST = {"content": False}
"""The `info` of a column that says how a row came in: the digest leaves it out, rows that differ in it are alike."""

SIGNIFICANT_DIGITS = 15
"""A double keeps this many decimal digits, so SQLite's REAL loses nothing of a price."""
USD_DECIMALS = 9
"""PostgreSQL keeps this many decimals of a price, and as many digits before them."""


def is_exact(usd: Decimal) -> bool:
    """Whether both databases keep a price to its last digit."""
    plain = usd.normalize()
    _, digits, exponent = plain.as_tuple()
    return len(digits) <= SIGNIFICANT_DIGITS and plain.adjusted() < USD_DECIMALS and -int(exponent) <= USD_DECIMALS


class UsdColumn(TypeDecorator[Decimal]):
    """NUMERIC(18, 9) on PostgreSQL, REAL on SQLite (which has no decimal type); always Decimal in Python."""

    impl = Numeric(18, USD_DECIMALS)
    cache_ok = True

    @property
    def python_type(self) -> type[Decimal]:
        """Say what Python sees."""
        return Decimal

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose the column type of the database at hand."""
        return dialect.type_descriptor(Double() if dialect.name == "sqlite" else Numeric(18, USD_DECIMALS))

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> Any:
        """Refuse what a double could not give back."""
        if value is None:
            return None
        if len(Decimal(value).normalize().as_tuple().digits) > SIGNIFICANT_DIGITS:
            raise ValueError(f"{value} has more than {SIGNIFICANT_DIGITS} significant digits")
        return float(value) if dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:
        """Give back exactly what was written."""
        if value is None:
            return None
        return Decimal(repr(value)) if dialect.name == "sqlite" else Decimal(value).normalize()


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC; SQLite forgets the time zone, so it is put back."""

    impl = DateTime(timezone=True)
    cache_ok = True

    @property
    def python_type(self) -> type[datetime]:
        """Say what Python sees."""
        return datetime

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give back a moment that knows its time zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


def table_of(model: type[SQLModel]) -> Table:
    """The table behind a model, for statements that build no objects."""
    table = model.__table__  # type: ignore[attr-defined]  # SQLModel declares it only at run time
    assert isinstance(table, Table)  # noqa: S101  # tells the type checker
    return table
