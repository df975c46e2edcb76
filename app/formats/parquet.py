"""Writes rows as a Parquet file of typed columns, with at most one row group in memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no type information
from pyarrow.parquet import ParquetWriter  # type: ignore[import-untyped]  # has no type information

from app.catalog.fields import FieldKind
from app.catalog.queries.exports import Export
from app.db.statements import Rows

ROWS_PER_GROUP = 50_000
"""A row group of sizes, sixty columns wide, takes about 20 MB of memory until it is written."""

_ARROW_TYPES: Mapping[FieldKind, pa.DataType] = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "list": pa.list_(pa.string()),
}
"""Money is a double, too: a price has at most 15 digits, and a double keeps them all (`app.catalog.column_types`)."""


def write_parquet(path: Path, export: Export, blocks: Iterable[Rows]) -> int:
    """Write the rows of an export as a file, and return their number. A file that fails halfway is removed.

    The schema is not stored as well, since it has more than the types of the columns.
    """
    schema = pa.schema([(name, _ARROW_TYPES[kind]) for name, kind in export.columns.items()])
    batches = (_batch(schema, values) for rows in blocks for values in export.blocks(rows))
    unfinished = path.with_name(f"{path.name}.part")
    written = 0
    try:
        with ParquetWriter(unfinished, schema, store_schema=False) as writer:
            for group in _in_groups(batches):
                table = pa.Table.from_batches(group)
                writer.write_table(table, row_group_size=table.num_rows)
                written += table.num_rows
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return written


def _in_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Yield batches together that have ROWS_PER_GROUP rows, or the rest."""
    group: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        group.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_PER_GROUP:
            yield group
            group, rows = [], 0
    if group:
        yield group


def _batch(schema: pa.Schema, columns: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    arrays = (
        pa.array(values, pa.string()).cast(field.type) if pa.types.is_date(field.type) else pa.array(values, field.type)
        for field, values in zip(schema, columns, strict=True)
    )
    return pa.record_batch(list(arrays), schema=schema)
