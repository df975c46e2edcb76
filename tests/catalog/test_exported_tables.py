"""The columns of exported tables, which are known before a statement runs, are those of the models and statements."""

from datetime import date
from decimal import Decimal

import pytest
from sqlalchemy import Column
from sqlmodel import SQLModel

from app.catalog.column_types import table_of
from app.catalog.fields import FieldKind
from app.catalog.models import Disk, DiskPrice, Fact, Gpu, LanguageModel, Region, Revision, Series, Source
from app.catalog.queries.exports import EXPORTABLE_TABLES, ColumnParams, export_offers, export_table
from app.catalog.queries.pagination import LIST_COLUMNS
from app.catalog.tables import TABLE_COLUMNS
from app.db.databases import Database
from app.db.executors import Stream

WHOLE: dict[str, type[SQLModel]] = {
    "facts": Fact,
    "gpus": Gpu,
    "series": Series,
    "models": LanguageModel,
    "regions": Region,
    "disks": Disk,
    "disk_prices": DiskPrice,
    "sources": Source,
    "revisions": Revision,
}
KINDS: dict[type, FieldKind] = {bool: "boolean", int: "integer", float: "number", Decimal: "number", date: "date"}


def kind_of(column: Column[object]) -> FieldKind:
    is_list = column.name in (*LIST_COLUMNS, "source_ids")
    return "list" if is_list else KINDS.get(column.type.python_type, "text")


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_table_has_all_columns_of_its_model_in_their_order_and_prices_in_dollars(name: str) -> None:
    columns = {column.name: kind_of(column) for column in table_of(WHOLE[name]).columns}
    expected = [("usd", "number") if name == "nano_usd" else (name, kind) for name, kind in columns.items()]
    assert list(EXPORTABLE_TABLES[name].columns.items()) == expected


def test_tables_that_are_read_whole_have_the_columns_of_their_models() -> None:
    models = SQLModel.metadata.tables
    assert {name: [column.name for column in models[name].columns] for name in TABLE_COLUMNS} == {
        name: list(columns) for name, columns in TABLE_COLUMNS.items()
    }


EXPORTS = {
    **{name: export_table(name, ColumnParams()) for name in EXPORTABLE_TABLES},
    "offers": export_offers("azure", date(2026, 9, 1)),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_a_statement_has_the_columns_that_are_stated_in_their_order(database: Database, name: str) -> None:
    list(Stream(database, EXPORTS[name].query).blocks())
    assert EXPORTS[name].query.statement.names == tuple(EXPORTS[name].columns)
