"""Writes rows as a Parquet file of typed columns, with at most one row group in memory."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no type information
from pyarrow.parquet import ParquetWriter  # type: ignore[import-untyped]

from app.catalog.fields import FieldKind
from app.formats.text import Columns

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


def write_parquet(path: Path, columns: Mapping[str, FieldKind], blocks: Iterable[Columns]) -> int:
    """Write a file and return its number of rows; dates come as ISO texts. A file that fails halfway is removed."""
    schema = pa.schema([(name, _ARROW_TYPES[kind]) for name, kind in columns.items()])
    partial = path.with_name(f"{path.name}.part")
    written = 0
    try:
        with ParquetWriter(partial, schema) as writer:
            group: list[pa.RecordBatch] = []
            for block in blocks:
                group.append(_batch(schema, block))
                if sum(batch.num_rows for batch in group) >= ROWS_PER_GROUP:
                    written += _flush(writer, group)
            written += _flush(writer, group)
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)
    return written


def _batch(schema: pa.Schema, columns: Columns) -> pa.RecordBatch:
    return pa.record_batch(
        [_array(field.type, values) for field, values in zip(schema, columns, strict=True)], schema=schema
    )


def _array(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    if pa.types.is_date(kind):
        return pa.array(values, pa.string()).cast(kind)
    return pa.array(values, kind)


def _flush(writer: ParquetWriter, group: list[pa.RecordBatch]) -> int:
    """Write the batches as one row group, and drop them; returns the number of rows."""
    table = pa.Table.from_batches(group, schema=writer.schema)
    if table.num_rows:
        writer.write_table(table, row_group_size=table.num_rows)
    group.clear()
    return int(table.num_rows)
