"""Writes rows as a Parquet file of typed columns, with at most one row group in memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no type information
import pyarrow.compute as pc  # type: ignore[import-untyped]  # has no type information
from numpy.typing import NDArray
from pyarrow.parquet import ParquetWriter  # type: ignore[import-untyped]  # has no type information

from app.catalog.fields import FieldKind
from app.catalog.queries.exports import Export
from app.db.packed import PackedColumn, count_packed
from app.db.statements import Rows
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

_TEXTS = pa.dictionary(pa.int32(), pa.string())
"""Texts with each different one only once; in the file they are a column of strings, as all texts are."""
Texts = Sequence[tuple[Any, ...]]
"""The columns of packed rows: how many rows each stands for, and joined texts."""
T = TypeVar("T")


def write_parquet(path: Path, export: Export, blocks: Iterable[Rows]) -> int:
    """Write the rows of an export as a file, and return their number. A file that fails halfway is removed.

    Columns of packed rows become arrays without an object for each value.
    """
    schema = pa.schema([(name, _ARROW_TYPES[kind]) for name, kind in export.columns.items()])
    if export.packed is not None:
        return _write_packed(path, schema, export.packed, blocks)
    batches = (_batch(schema, values) for rows in blocks for values in export.blocks(rows))
    groups = _in_groups(batches, lambda batch: int(batch.num_rows))
    return _write(path, schema, (pa.Table.from_batches(group) for group in groups))


def _write_packed(path: Path, plain: pa.Schema, packed: Mapping[str, PackedColumn], blocks: Iterable[Rows]) -> int:
    schema = pa.schema([field.with_type(_TEXTS) if field.type == pa.string() else field for field in plain])

    def to_table(group: Sequence[Rows]) -> pa.Table:
        texts = [*zip(*chain.from_iterable(group), strict=True)]
        encode = cache(partial(_encode, texts))  # columns may have their values from the same texts
        return pa.table([_packed_array(packed[one.name], one.type, texts, encode) for one in schema], schema=schema)

    # Readers skip row groups by the statistics. Rows are in the order of the repeated column, and of the others each
    # group has nearly all texts; to look for the least and the greatest takes a fifth of the writing.
    of_use = [one.name for one in schema if one.type != _TEXTS or packed[one.name].repeated]
    return _write(path, schema, map(to_table, _in_groups(blocks, count_packed)), of_use)


def _write(path: Path, schema: pa.Schema, groups: Iterable[pa.Table], statistics: list[str] | bool = True) -> int:
    """Write tables as row groups, with statistics of all columns or of those of these names.

    The schema is not stored as well, since it has more than the types of the columns.
    """
    unfinished = path.with_name(f"{path.name}.part")
    written = 0
    try:
        with ParquetWriter(
            unfinished,
            schema,
            store_schema=False,
            write_statistics=statistics,
            write_batch_size=ROWS_PER_GROUP,
        ) as writer:
            for table in groups:
                writer.write_table(table, row_group_size=table.num_rows)
                written += table.num_rows
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return written


def _in_groups(blocks: Iterable[T], count: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield blocks together that have ROWS_PER_GROUP rows, or the rest."""
    group: list[T] = []
    rows = 0
    for block in blocks:
        group.append(block)
        rows += count(block)
        if rows >= ROWS_PER_GROUP:
            yield group
            group, rows = [], 0
    if group:
        yield group


def _batch(schema: pa.Schema, columns: Columns) -> pa.RecordBatch:
    return pa.record_batch(
        [_array(field.type, values) for field, values in zip(schema, columns, strict=True)], schema=schema
    )


def _array(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    if pa.types.is_date(kind):
        return pa.array(values, pa.string()).cast(kind)
    return pa.array(values, kind)


def _packed_array(column: PackedColumn, kind: pa.DataType, texts: Texts, encode: Callable[[int, str], Any]) -> pa.Array:
    if column.divisor is not None:
        numbers = pc.split_pattern(pa.array([column.separator.join(texts[column.place])]), column.separator).flatten()
        return _divided(numbers.cast(pa.int64()), column.divisor)
    if column.repeated:
        different: Sequence[str] = texts[column.place]
        indices = pa.array(np.repeat(np.arange(len(different), dtype=np.int32), texts[0]))
    else:
        different, indices = encode(column.place, column.separator)
    values = [column.read(text) for text in different]
    if kind == _TEXTS:
        return pa.DictionaryArray.from_arrays(indices, _array(pa.string(), values))
    return _array(kind, values).take(indices)


def _encode(texts: Texts, place: int, separator: str) -> tuple[list[str], pa.Array]:
    """Return the different texts of packed rows, and for each of their rows the index of its text.

    The joined texts are an array of Arrow as they are, if each has its separator behind it: no text is copied.
    """
    joined = separator.encode().join([*map(str.encode, texts[place]), b""])
    offsets = _ends(joined, ord(separator), sum(texts[0]))
    encoded = pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(joined))
    encoded = encoded.dictionary_encode()
    return [text.removesuffix(separator) for text in encoded.dictionary.to_pylist()], encoded.indices


def _ends(joined: bytes, separator: int, count: int) -> NDArray[np.int32]:
    """Return 0, and behind which byte each of the joined texts ends; they need not be looked for if all are as long."""
    is_separator = np.frombuffer(joined, np.uint8) == separator
    width, rest = divmod(len(joined), count)
    if rest == 0 and is_separator[width - 1 :: width].all():
        return np.arange(0, len(joined) + 1, width, dtype=np.int32)
    return np.concatenate([[0], np.flatnonzero(is_separator) + 1], dtype=np.int32, casting="same_kind")


def _divided(numbers: pa.Array, divisor: int) -> pa.Array:
    try:
        return pc.divide(numbers.cast(pa.float64()), float(divisor))
    except pa.ArrowInvalid:  # one is larger than 2**53: a double may not hold it, but it may hold the quotient
        return pa.array([number / divisor for number in numbers.to_pylist()], pa.float64())
