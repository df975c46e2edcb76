"""Local NVMe drives: how many and how much in all; whether a size is of one drive or of all is decided by evidence."""

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Literal

from app.ingest.documents.blocks import Passage
from app.ingest.documents.cells import Value, read_cell
from app.ingest.documents.network import UnreadableCell
from app.ingest.documents.page import Finding
from app.ingest.documents.size_tables import FieldCell, SizeRow
from app.ingest.documents.values import (
    Amount,
    find_units,
    is_blank,
    normalize_rates,
    rounded,
    to_amount,
    to_base_unit,
    to_integer,
)

_NEAR_SHARE = Decimal("0.05")
"""28 TiB on a page are 28,000 GiB in its host specifications: such figures are rounded differently."""


def read_nvme(rows: Sequence[SizeRow], host_total: Decimal | None) -> Iterator[Finding]:
    """State the drives of every row; `host_total` is the GiB of all drives as the host specifications have it."""
    counts: dict[tuple[int, str], Decimal] = {}
    for row in rows:
        if piece := row.find("nvme"):
            amount = to_amount(normalize_rates(piece.text))
            if amount and not amount.suffix and amount.times is None and piece.column.unit is None:
                counts[row.table, row.name] = amount.number
            yield from _drive_facts(row, piece, amount)
    for row in rows:
        if piece := row.find("nvme_size"):
            yield from _drive_size_facts(row, piece, counts, (rows, host_total))


def _drive_facts(row: SizeRow, piece: FieldCell, amount: Amount | None) -> Iterator[Finding]:
    if amount is None:
        yield row.page.report("is neither a count nor a size", row.line, piece.header, piece.raw)
        return
    size = _gib(amount, piece)
    if size is not None:
        yield from _total_facts(row, piece, amount, size)
        return
    count = to_integer(amount.number)
    if count is None or amount.times is not None or find_units(amount.suffix):
        yield row.page.report("is neither a count nor a size", row.line, piece.header, piece.raw)
    else:
        yield row.page.size_fact(row.name, "nvme_disk_count", count, piece.raw, row.line)


def _total_facts(row: SizeRow, piece: FieldCell, amount: Amount, size: Decimal) -> Iterator[Finding]:
    count = amount.times or (1 if find_units(amount.suffix) and piece.column.field == "nvme" else None)
    if count is not None:
        yield row.page.size_fact(row.name, "nvme_disk_count", count, piece.raw, row.line)
    note = f"{amount.times} x {rounded(size)} GiB" if amount.times else None
    yield row.page.size_fact(row.name, "nvme_disk_gib", rounded(size * (amount.times or 1)), piece.raw, row.line, note)


def _drive_size_facts(
    row: SizeRow,
    piece: FieldCell,
    counts: dict[tuple[int, str], Decimal],
    known: tuple[Sequence[SizeRow], Decimal | None],
) -> Iterator[Finding]:
    amount = to_amount(normalize_rates(piece.text))
    size = None if amount is None else _gib(amount, piece)
    if amount is None or size is None:
        yield row.page.report("is not a size of a drive", row.line, piece.header, piece.raw)
        return
    if amount.times is not None:
        yield from _total_facts(row, piece, amount, size)
        return
    count = counts.get((row.table, row.name))
    holder = None if count is None else _holder(count, size, _column(row, counts, known[0]), known[1])
    if count is None or holder is None:
        detail = "may be the size of one drive or of all, nothing on the page decides it"
        yield row.page.report(detail, row.line, piece.header, piece.raw)
        return
    total = size if holder == "all" else size * count
    note = f"{count} x {rounded(size)} GiB" if holder == "one" and count != 1 else None
    yield row.page.size_fact(row.name, "nvme_disk_gib", rounded(total), piece.raw, row.line, note)


def _holder(
    count: Decimal, size: Decimal, column: list[tuple[Decimal, Decimal]], host_total: Decimal | None
) -> Literal["one", "all"] | None:
    if count == 1:
        return "all"
    if len({drives for drives, _ in column}) > 1:
        if len({gib for _, gib in column}) == 1:
            return "one"
        ordered = sorted(column)
        if all(smaller[1] < larger[1] for smaller, larger in pairwise(ordered) if smaller[0] < larger[0]):
            return "all"
    if host_total is None:
        return None
    fits = {"all": _is_near(size, host_total), "one": _is_near(size * count, host_total)}
    return next((holder for holder in ("all", "one") if fits[holder] and sum(fits.values()) == 1), None)


def _column(
    row: SizeRow, counts: dict[tuple[int, str], Decimal], rows: Sequence[SizeRow]
) -> list[tuple[Decimal, Decimal]]:
    found = []
    for other in rows:
        piece = other.find("nvme_size")
        amount = to_amount(normalize_rates(piece.text)) if piece else None
        count = counts.get((other.table, other.name))
        if other.table == row.table and count is not None and piece and amount and (size := _gib(amount, piece)):
            found.append((count, size))
    return found


def _gib(amount: Amount, piece: FieldCell) -> Decimal | None:
    units = find_units(amount.suffix)
    unit = units[0] if units else piece.column.unit
    return None if unit is None else to_base_unit(amount.number, unit, "disk")


def _is_near(one: Decimal, other: Decimal) -> bool:
    return abs(one - other) <= _NEAR_SHARE * other


_PER_NIC = re.compile(r"\bbandwidth is per NIC\b|\bper NIC\b", re.IGNORECASE)


def is_per_nic(passages: Iterable[Passage]) -> bool:
    """Say whether a note of the page says that the bandwidth is that of one NIC."""
    return any(_PER_NIC.search(passage.text) for passage in passages)


def read_scale_networks(rows: Sequence[SizeRow], *, per_nic: bool) -> Iterator[Finding]:
    """State InfiniBand from a bandwidth in bits and NVLink from one in bytes."""
    for row in rows:
        for piece in row.cells:
            if piece.column.field == "scale_bandwidth" and not is_blank(piece.text):
                yield from _scale_network_facts(row, piece, per_nic=per_nic)


def _scale_network_facts(row: SizeRow, piece: FieldCell, *, per_nic: bool) -> Iterator[Finding]:
    amount = to_amount(normalize_rates(piece.text))
    units = find_units(amount.suffix) if amount else []
    unit = units[0] if units else piece.column.unit
    if amount is None or unit is None:
        yield row.page.report("is not a bandwidth with a unit", row.line, piece.header, piece.raw)
        return
    mbps = to_base_unit(amount.number, unit, "network")
    if mbps is None and unit.endswith("Bps"):
        yield row.page.size_fact(
            row.name, "nvlink", True, piece.raw, row.line, f"{amount.total} {unit}: bytes are NVLink"
        )
        return
    links = _count_links(row, piece, amount, per_nic=per_nic)
    if mbps is None or links is None:
        detail = "may be the bandwidth of one NIC or of all, nothing on the page decides it"
        yield row.page.report(detail, row.line, piece.header, piece.raw)
        return
    gbps = rounded(mbps / 1000)
    note = f"{links[0]} x {gbps} Gbps{links[1]}"
    yield row.page.size_fact(row.name, "infiniband", True, piece.raw, row.line, "bits are InfiniBand")
    yield row.page.size_fact(row.name, "infiniband_gbps", rounded(gbps * links[0]), piece.raw, row.line, note)


def _count_links(row: SizeRow, piece: FieldCell, amount: Amount, *, per_nic: bool) -> tuple[Decimal, str] | None:
    if amount.times is not None:
        return Decimal(amount.times), ""
    for other in row.cells:
        if other.column.field == "scale_nics" and other.column.qualifier == piece.column.qualifier:
            nics = to_amount(other.text)
            if nics and nics.number == 1:
                return Decimal(1), ""
            if per_nic and nics and not nics.suffix:
                return nics.number, ", per NIC as a note of the page says"
    return None


def read_temp_disks(rows: Sequence[SizeRow]) -> Iterator[Finding]:
    """State what a size's temporary disks hold together; what nothing shows to be of one disk is taken as it stands."""
    of_one = _find_per_disk_tables(rows)
    for row in rows:
        piece = row.find("temp_disk_gib")
        if piece is None:
            continue
        try:
            (value,) = read_cell(piece.column, piece.text)
        except UnreadableCell as problem:
            yield row.page.report(f"{problem}", row.line, piece.header, piece.raw)
            continue
        count = _disk_count(row)
        if count is not None and count > 1 and (row.page.file, row.table) in of_one:
            total, note = rounded(_value_gib(value) * count), f"{count} x {value.value} GiB"
            yield row.page.size_fact(row.name, value.field, total, piece.raw, row.line, note)
        else:
            yield row.page.size_fact(row.name, value.field, value.value, piece.raw, row.line, value.note)


def _find_per_disk_tables(rows: Sequence[SizeRow]) -> set[tuple[str, int]]:
    counts: dict[tuple[str, int, object], set[int]] = {}
    for row in rows:
        piece, count = row.find("temp_disk_gib"), _disk_count(row)
        if piece is not None and count and (size := _read_or_none(piece)) is not None:
            counts.setdefault((row.page.file, row.table, size.value), set()).add(count)
    return {(file, table) for (file, table, _), found in counts.items() if 1 in found and len(found) > 1}


def _disk_count(row: SizeRow) -> int | None:
    piece = row.find("temp_disk_count")
    value = _read_or_none(piece) if piece else None
    return value.value if value and isinstance(value.value, int) else None


def _read_or_none(piece: FieldCell) -> Value | None:
    try:
        return next(iter(read_cell(piece.column, piece.text)), None)
    except UnreadableCell:
        return None


def _value_gib(value: Value) -> Decimal:
    return value.value if isinstance(value.value, Decimal) else Decimal(str(value.value))
