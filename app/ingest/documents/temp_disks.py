"""Temporary disks beside their number: the size is that of each where one disk has the size that several have."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from app.ingest.documents.cells import Value, read_cell
from app.ingest.documents.network import Unreadable
from app.ingest.documents.page import Finding
from app.ingest.documents.size_tables import Piece, SizeRow
from app.ingest.documents.units import rounded


def read_temp_disks(rows: Sequence[SizeRow]) -> Iterator[Finding]:
    """State what a size's temporary disks hold together; what nothing shows to be of one disk is taken as it stands."""
    of_one = _tables_of_one(rows)
    for row in rows:
        piece = row.find("temp_disk_gib")
        if piece is None:
            continue
        try:
            (value,) = read_cell(piece.part, piece.text)
        except Unreadable as problem:
            yield row.page.report(f"{problem}", row.line, piece.header, piece.raw)
            continue
        count = _count(row)
        if count is not None and count > 1 and (row.page.file, row.table) in of_one:
            total, note = rounded(_value_gib(value) * count), f"{count} x {value.value} GiB"
            yield row.page.states(row.name, value.field, total, piece.raw, row.line, note)
        else:
            yield row.page.states(row.name, value.field, value.value, piece.raw, row.line, value.note)


def _tables_of_one(rows: Sequence[SizeRow]) -> set[tuple[str, int]]:
    counts: dict[tuple[str, int, object], set[int]] = {}
    for row in rows:
        piece, count = row.find("temp_disk_gib"), _count(row)
        if piece is not None and count and (size := _value(piece)) is not None:
            counts.setdefault((row.page.file, row.table, size.value), set()).add(count)
    return {(file, table) for (file, table, _), found in counts.items() if 1 in found and len(found) > 1}


def _count(row: SizeRow) -> int | None:
    piece = row.find("temp_disk_count")
    value = _value(piece) if piece else None
    return value.value if value and isinstance(value.value, int) else None


def _value(piece: Piece) -> Value | None:
    try:
        return next(iter(read_cell(piece.part, piece.text)), None)
    except Unreadable:
        return None


def _value_gib(value: Value) -> Decimal:
    return value.value if isinstance(value.value, Decimal) else Decimal(str(value.value))
