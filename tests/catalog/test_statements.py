"""Columns that a driver returns as another type than their own are known by their names."""

from sqlalchemy import JSON, Boolean, Date
from sqlmodel import SQLModel

import app.catalog.models.observations
import app.catalog.models.webhooks  # noqa: F401  # the tables of all models
from app.catalog.column_types import RateColumn, UtcDateTime, table_of
from app.catalog.models import Size
from app.catalog.projections import SIZE_JSON_FIELDS
from app.catalog.statements import COLUMN_KINDS

KINDS = {Date: "day", UtcDateTime: "time", Boolean: "flag", JSON: "json", RateColumn: "usd"}


def test_the_kind_of_every_column_follows_from_its_name() -> None:
    columns = [column for table in SQLModel.metadata.tables.values() for column in table.columns]
    stated = {column.name: KINDS.get(type(column.type)) for column in columns}
    assert {name: COLUMN_KINDS.get(name) for name in stated} == stated


SHOWN_OTHERWISE = {"key", "search_text", "series_id", "gpu_count_numerator", "gpu_count_denominator", "source_id"}


def test_the_json_of_a_size_has_every_column_that_is_not_shown_otherwise() -> None:
    columns = {column.name for column in table_of(Size).columns} - SHOWN_OTHERWISE
    assert columns == {*SIZE_JSON_FIELDS} - {"series", "gpu_fraction", "flags", "source_url"}
