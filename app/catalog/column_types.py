"""Column types that behave the same on SQLite and PostgreSQL: exact money, text in code-point order, days, UTC times.

Constraints and indexes have names of one scheme, so that migrations can refer to them.
"""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import DATE, Date, DateTime, Double, Numeric, String, Table
from sqlalchemy.dialects.sqlite.base import SQLiteTypeCompiler
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import TypeDecorator, TypeEngine
from sqlmodel import SQLModel

from app.catalog.money import SIGNIFICANT_DIGITS, USD_DECIMALS

SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

SQLModel.model_config["defer_build"] = True
"""Rows are never validated, so what pydantic would validate them by is not built: a tenth of a second of an ingest."""

BYTEWISE = String().with_variant(String(collation="C"), "postgresql")
"""Text whose order does not depend on the language that a PostgreSQL database was created with."""

WITHOUT_ROWID = {"sqlite_with_rowid": False}
"""The `__table_args__` of a table that SQLite keeps in the order of its primary key, without a second key."""

NOT_IN_DIGEST = {"content": False}
"""The `info` of a column that the catalog's digest ignores, such as the file that a row was read from."""


class UsdColumn(TypeDecorator[Decimal]):
    """NUMERIC(18, 9) on PostgreSQL, REAL on SQLite (which has no decimal type); always Decimal in Python."""

    impl = Numeric(18, USD_DECIMALS)
    cache_ok = True

    @property
    def python_type(self) -> type[Decimal]:
        """Return the Python type of a value."""
        return Decimal

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the column type of a database."""
        return dialect.type_descriptor(Double() if dialect.name == "sqlite" else Numeric(18, USD_DECIMALS))

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> Any:
        """Convert to the driver's type; raises ValueError for more digits than a double keeps."""
        if value is None:
            return None
        if len(Decimal(value).normalize().as_tuple().digits) > SIGNIFICANT_DIGITS:
            raise ValueError(f"{value} has more than {SIGNIFICANT_DIGITS} significant digits")
        return float(value) if dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:
        """Convert to the Decimal that was written."""
        if value is None:
            return None
        return Decimal(repr(value)) if dialect.name == "sqlite" else Decimal(value).normalize()


class RateColumn(UsdColumn):
    """An exchange rate, exact; always Decimal in Python."""

    cache_ok = True


@compiles(Date, "sqlite")
@compiles(DATE, "sqlite")  # as a column is reflected
def _compile_date_for_sqlite(_type: Date, _compiler: SQLiteTypeCompiler, **_how: Any) -> str:
    """Declare days as the texts that they are on SQLite.

    A column that is declared DATE has numeric affinity there: SQLite tries to convert each day that is compared or
    stored to a number. DATE_CHAR is SQLAlchemy's own name for dates that are texts, and is reflected as a date.
    """
    return "DATE_CHAR"


class UtcDateTime(TypeDecorator[datetime]):
    """A time in UTC; SQLite does not store the time zone, so it is added to results."""

    impl = DateTime(timezone=True)
    cache_ok = True

    @property
    def python_type(self) -> type[datetime]:
        """Return the Python type of a value."""
        return datetime

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return a datetime in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


def table_of(model: type[SQLModel]) -> Table:
    """Return the table of a model, for statements that build no objects."""
    table = model.__table__  # type: ignore[attr-defined]  # SQLModel declares it only at run time
    assert isinstance(table, Table)  # noqa: S101  # for the type checker
    return table
