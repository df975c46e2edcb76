"""Cells to field values: one reader for each column field, listed in `CELL_READERS`, and what needs several cells.

A reader raises UnreadableCell for a cell that it does not understand completely. NVMe drives, temporary disks, scale-up
and scale-out networks need the rest of the row, as GPUs do, which `gpu_rows` reads. Tables seldom say whether a drive's
size is of one drive or of all, or a bandwidth of one NIC or of all: the column, the host specifications and notes
decide it, and what they leave open is reported, not read.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Literal

from app.catalog.fields import SIZE_FIELDS, FactValue, too_large
from app.catalog.names import size_key
from app.ingest.documents.columns import ColumnField
from app.ingest.documents.features import FeatureFlag, read_flag
from app.ingest.documents.hardware import (
    MissingUnit,
    UnreadableCell,
    read_infiniband,
    read_network,
    to_cpu,
    to_interconnect,
)
from app.ingest.documents.page import Finding
from app.ingest.documents.size_tables import FieldCell, SizeRow, is_size_name
from app.ingest.documents.values import (
    NUMBER,
    Amount,
    Dimension,
    FieldValue,
    is_blank,
    normalize_rates,
    rounded,
    to_amount,
    to_base_unit,
    to_decimal,
    to_integer,
)

_FILLER_WORDS = re.compile(
    r"\b(?:disks?|drives?|nics?|v?cpus?|v?cores?|ethernet|gpus?|memory|ram|ssds?|nvme|scsi|temp|total|in|interfaces?|workstations?|"
    r"applications?|users?)\b",
    re.IGNORECASE,
)
_UNIT = re.compile(r"[KMGT]i?B(?:ps)?|[KMGT]i?bps|IOPS|[GM]Hz", re.IGNORECASE)
_NETWORK_CLASS = re.compile(r"(?:(?:extremely|very) )?(?:low|moderate|high)", re.IGNORECASE)
"""What old pages write instead of a bandwidth."""


CellReader = Callable[[ColumnField, str], list[FieldValue]]


def read_cell(column: ColumnField, text: str) -> list[FieldValue]:
    """Return the values of a cell that is not blank; raise UnreadableCell with the reason if it is not understood."""
    reader = CELL_READERS.get(column.field)
    if reader is None:
        raise UnreadableCell("is known, but has no field to be stored in")
    return reader(column, normalize_rates(text.replace("\v", " ").strip()))


def _quantity(dimension: Dimension) -> CellReader:
    def read(column: ColumnField, text: str) -> list[FieldValue]:
        amount = _amount(text)
        unit = amount.unit(column.unit)
        if unit is None:
            raise MissingUnit
        kept = to_base_unit(amount.total, unit, dimension)
        if kept is None:
            raise UnreadableCell(f"is in {unit}, which is not a unit of {column.field}")
        return [FieldValue(column.field, _to_field_type(column.field, kept), amount.product_note(amount.number, unit))]

    return read


def _count(column: ColumnField, text: str) -> list[FieldValue]:
    amount = _amount(text)
    if amount.times is not None or amount.unit():
        raise UnreadableCell("is not a count")
    return [FieldValue(column.field, _to_field_type(column.field, amount.number))]


def _amount(text: str) -> Amount:
    amount = to_amount(text)
    if amount is None:
        raise UnreadableCell("is below 0" if re.match(r"-\d", text) else "is not one number")
    left = re.sub(r"[\s()*]+", "", _FILLER_WORDS.sub(" ", _UNIT.sub(" ", amount.suffix)))
    if left:
        raise UnreadableCell("is not one number" if re.search(r"\d", left) else f"has unknown words: {left}")
    return amount


def _to_field_type(field: str, number: Decimal) -> FactValue:
    spec = SIZE_FIELDS[field]
    if problem := too_large(spec.kind, number, spec.unit):
        raise UnreadableCell(problem)
    if spec.kind == "number":
        return rounded(number)
    whole = to_integer(number)
    if whole is None:
        raise UnreadableCell("is not a whole number")
    return whole


def _network_mbps(column: ColumnField, text: str) -> list[FieldValue]:
    # Old pages write MBps over columns of Mbps, as the same figures on their newer versions show.
    unit = "Mbps" if column.unit == "MBps" else column.unit
    if _NETWORK_CLASS.fullmatch(text):
        return []
    text = text.removesuffix("+")  # `16,000+`: at least that
    if re.search(r"infini|rdma|ethernet|[/+;]", text, re.IGNORECASE):
        return read_network(text, unit)
    return _quantity("network")(ColumnField(field="network_mbps", unit=unit), text)


def _cpu(_column: ColumnField, text: str) -> list[FieldValue]:
    # A column `CPU` may hold the number of vCPUs instead of a model.
    if re.match(r"\d+\s*(?:v?cpus?|v?cores?)?$", text, re.IGNORECASE):
        return _count(ColumnField(field="vcpus"), text)
    return [FieldValue(field, value) for field, value in to_cpu(text).items()]


def _interconnect(_column: ColumnField, text: str) -> list[FieldValue]:
    link = to_interconnect(text)
    if link is None:
        raise UnreadableCell("names no known interconnect")
    values = [FieldValue("gpu_interconnect", link)]
    return [*values, FieldValue("nvlink", True)] if link.startswith("NVLink") else values


def _cached_throughput(column: ColumnField, text: str) -> list[FieldValue]:
    # Old tables put the cache's size behind the throughput: `32 (50)`.
    rate, _, cache = text.partition("(")
    if is_blank(rate):
        return []
    (value,) = _quantity("throughput")(column, rate.strip())
    return [value._replace(note=f"with a cache of {cache.strip(' )')} GiB")] if cache else [value]


def _iops(column: ColumnField, text: str) -> list[FieldValue]:
    # `1.5M` is 1.5 million.
    millions = re.fullmatch(rf"({NUMBER})\s*M", text)
    number = f"{to_decimal(millions[1]) * 10**6:f}" if millions else text
    return _quantity("iops")(column, number)


def _percent(column: ColumnField, text: str) -> list[FieldValue]:
    return [FieldValue(column.field, rounded(_amount(text.removesuffix("%")).number))]


_READERS_BY_UNIT: dict[str | None, CellReader] = {
    "count": _count,
    "IOPS": _iops,
    "MBps": _quantity("throughput"),
    "MiB": _quantity("cache"),
    "GB/s": _quantity("bandwidth"),
    "GHz": _quantity("frequency"),
    "%": _percent,
}

CELL_READERS: dict[str, CellReader] = {
    **{
        name: _READERS_BY_UNIT[field.unit]
        for name, field in SIZE_FIELDS.items()
        if field.unit in _READERS_BY_UNIT and field.kind != "fraction"
    },
    "cpu": _cpu,
    "arch": _cpu,
    "memory_gib": _quantity("memory"),
    "temp_disk_gib": _quantity("disk"),
    "disk_cache_gib": _quantity("disk"),
    "network_mbps": _network_mbps,
    "network": lambda column, text: read_network(text, column.unit),
    "infiniband": lambda column, text: read_infiniband(text, column.unit),
    "gpu_interconnect": _interconnect,
    "cached_disk_mbps": _cached_throughput,
    "flag": lambda column, text: read_flag(FeatureFlag(name=column.qualifier, status=text, raw=text, line=0)),
    "ignored": lambda _part, _text: [],
    "price": lambda _part, _text: [],
}
"""Reader of every column field whose cells can be read by themselves; counts and rates are read by their unit."""


_NEAR_SHARE = Decimal("0.05")
"""Relative difference within which sizes are equal: 28 TiB in a table are 28,000 GiB in its host specifications."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveColumns:
    """The columns that hold the number of a kind of drives and their size, and the fields of count and total GiB."""

    count: str
    size: str
    count_field: str
    total_field: str


NVME = DriveColumns(count="nvme", size="nvme_size", count_field="nvme_disk_count", total_field="nvme_disk_gib")
LOCAL_SSD = DriveColumns(
    count="local_ssd", size="local_ssd_size", count_field="local_ssd_count", total_field="local_ssd_gib"
)
"""Drives that a page calls solid state disks, beside the temporary disk and without saying that they are NVMe."""


def read_drives(rows: Sequence[SizeRow], columns: DriveColumns, host_total: Decimal | None) -> Iterator[Finding]:
    """Yield count and total GiB of the drives of every row; `host_total` is that of the host specifications."""
    counts: dict[tuple[int, str], Decimal] = {}
    for row in rows:
        if cell := row.find(columns.count):
            amount = to_amount(normalize_rates(cell.text))
            # A bare number without a unit in the header is a count of drives.
            if amount and not amount.suffix and amount.times is None and cell.column.unit is None:
                counts[row.table, row.name] = amount.number
            yield from _drive_facts(row, cell, amount, columns)
    for row in rows:
        yield from _drive_size_facts(row, counts, rows, columns, host_total)


def _drive_facts(row: SizeRow, cell: FieldCell, amount: Amount | None, columns: DriveColumns) -> Iterator[Finding]:
    if amount is None:
        yield row.report(cell, "is neither a count nor a size")
        return
    size = _gib(amount, cell)
    if size is not None:
        yield from _total_facts(row, cell, amount, size, columns)
        return
    count = to_integer(amount.number)
    if count is None or amount.times is not None or amount.unit():
        yield row.report(cell, "is neither a count nor a size")
    else:
        yield row.fact(cell, columns.count_field, count)


def _total_facts(
    row: SizeRow, cell: FieldCell, amount: Amount, size: Decimal, columns: DriveColumns
) -> Iterator[Finding]:
    # A size in a column that counts drives is that of a single drive.
    count = amount.times or (1 if amount.unit() and cell.column.field == columns.count else None)
    if count is not None:
        yield row.fact(cell, columns.count_field, count)
    note = f"{amount.times} x {rounded(size)} GiB" if amount.times else None
    yield row.fact(cell, columns.total_field, rounded(size * (amount.times or 1)), note)


def _drive_size_facts(
    row: SizeRow,
    counts: dict[tuple[int, str], Decimal],
    rows: Sequence[SizeRow],
    columns: DriveColumns,
    host_total: Decimal | None,
) -> Iterator[Finding]:
    cell = row.find(columns.size)
    if cell is None:
        return
    amount = to_amount(normalize_rates(cell.text))
    size = None if amount is None else _gib(amount, cell)
    if amount is None or size is None:
        yield row.report(cell, "is not a size of a drive")
        return
    if amount.times is not None:
        yield from _total_facts(row, cell, amount, size, columns)
        return
    count = counts.get((row.table, row.name))
    holder = None if count is None else _holder(count, size, _find_column(row, counts, rows, columns), host_total)
    if count is None or holder is None:
        yield row.report(cell, "may be the size of one drive or of all; nothing on the page decides it")
        return
    total = size if holder == "all" else size * count
    note = f"{count} x {rounded(size)} GiB" if holder == "one" and count != 1 else None
    yield row.fact(cell, columns.total_field, rounded(total), note)


def _holder(
    count: Decimal, size: Decimal, column: list[tuple[Decimal, Decimal]], host_total: Decimal | None
) -> Literal["one", "all"] | None:
    if count == 1:
        return "all"
    if len({drives for drives, _ in column}) > 1:
        if len({gib for _, gib in column}) == 1:
            return "one"
        ordered = sorted(column)
        # A size that grows with the count is the total.
        if all(smaller[1] < larger[1] for smaller, larger in pairwise(ordered) if smaller[0] < larger[0]):
            return "all"
    if host_total is None:
        return None
    # Both can be near the host's total, in which case it decides nothing.
    fits = {"all": _is_near(size, host_total), "one": _is_near(size * count, host_total)}
    return next((holder for holder in ("all", "one") if fits[holder] and sum(fits.values()) == 1), None)


def _find_column(
    row: SizeRow, counts: dict[tuple[int, str], Decimal], rows: Sequence[SizeRow], columns: DriveColumns
) -> list[tuple[Decimal, Decimal]]:
    pairs = []
    for other in rows:
        cell = other.find(columns.size)
        amount = to_amount(normalize_rates(cell.text)) if cell else None
        count = counts.get((other.table, other.name))
        if other.table == row.table and count is not None and cell and amount and (size := _gib(amount, cell)):
            pairs.append((count, size))
    return pairs


def _gib(amount: Amount, cell: FieldCell) -> Decimal | None:
    unit = amount.unit(cell.column.unit)
    return None if unit is None else to_base_unit(amount.number, unit, "disk")


def _is_near(size: Decimal, other: Decimal) -> bool:
    return abs(size - other) <= _NEAR_SHARE * other


def read_parent_sizes(rows: Sequence[SizeRow]) -> Iterator[Finding]:
    """Yield the size that each constrained size is made of, with the provider's prefix if the row's own name has it.

    Lists of constrained sizes also have rows of unconstrained ones, which name themselves.
    """
    for row in rows:
        cell = row.find("parent_size")
        if cell is None:
            continue
        if not is_size_name(cell.text):
            yield row.report(cell, "is not the name of a size")
        elif size_key(cell.text) != size_key(row.name):
            prefix = next((start for start in ("Standard_", "Basic_") if row.name.startswith(start)), "")
            yield row.fact(cell, "parent_size", prefix + cell.text.removeprefix(prefix))


PER_NIC = re.compile(r"\bbandwidth is per NIC\b|\bper NIC\b", re.IGNORECASE)
"""A note that the bandwidth of scale-out networks is per NIC."""


def read_scale_networks(rows: Sequence[SizeRow], *, per_nic: bool) -> Iterator[Finding]:
    """Yield InfiniBand and NVLink facts from scale-up and scale-out columns.

    Pages swap the two words, so the unit decides: bits per second are InfiniBand, bytes per second are NVLink.
    """
    for row in rows:
        for cell in row.cells:
            if cell.column.field == "scale_bandwidth" and not is_blank(cell.text):
                yield from _scale_network_facts(row, cell, per_nic=per_nic)


def _scale_network_facts(row: SizeRow, cell: FieldCell, *, per_nic: bool) -> Iterator[Finding]:
    amount = to_amount(normalize_rates(cell.text))
    unit = amount.unit(cell.column.unit) if amount else None
    if amount is None or unit is None:
        yield row.report(cell, "is not a bandwidth with a unit")
        return
    mbps = to_base_unit(amount.number, unit, "network")
    if mbps is None and unit.endswith("Bps"):
        yield row.fact(cell, "nvlink", True, f"{amount.total} {unit}: bytes are NVLink")
        return
    links = _count_links(row, cell, amount, per_nic=per_nic)
    if mbps is None or links is None:
        yield row.report(cell, "may be the bandwidth of one NIC or of all; nothing on the page decides it")
        return
    gbps = rounded(mbps / 1000)
    note = f"{links[0]} x {gbps} Gbps{links[1]}"
    yield row.fact(cell, "infiniband", True, "bits are InfiniBand")
    yield row.fact(cell, "infiniband_gbps", rounded(gbps * links[0]), note)


def _count_links(row: SizeRow, cell: FieldCell, amount: Amount, *, per_nic: bool) -> tuple[Decimal, str] | None:
    if amount.times is not None:
        return Decimal(amount.times), ""
    for other in row.cells:
        if other.column.field == "scale_nics" and other.column.qualifier == cell.column.qualifier:
            nics = to_amount(other.text)
            if nics and nics.number == 1:
                return Decimal(1), ""
            if per_nic and nics and not nics.suffix:
                return nics.number, ", per NIC as a note of the page says"
    return None


PER_DISK = re.compile(
    r"\btotal local (?:temporary )?storage is calculated by multiplying the (?:max )?number of (?:storage )?disks\b",
    re.IGNORECASE,
)
"""A note that the sizes of temporary disks are those of a single disk."""


def read_temp_disks(rows: Sequence[SizeRow], *, per_disk: bool) -> Iterator[Finding]:
    """Yield the total size of each row's temporary disks.

    A figure is per disk where a note says so, where its table has it for one disk and for several, or where figures
    stay the same at several numbers of disks; otherwise it is the total.
    """
    of_one = _find_per_disk_tables(rows)
    for row in rows:
        cell = row.find("temp_disk_gib")
        if cell is None:
            continue
        try:
            (value,) = read_cell(cell.column, cell.text)
        except UnreadableCell as problem:
            yield row.report(cell, str(problem))
            continue
        count = _disk_count(row)
        if count is not None and count > 1 and (per_disk or (row.page.file, row.table) in of_one):
            total, note = rounded(Decimal(str(value.value)) * count), f"{count} x {value.value} GiB"
            yield row.fact(cell, value.field, total, note)
        else:
            yield row.fact(cell, value.field, value.value, value.note)


_MIN_REPEATED = 2
"""Rows with other numbers of disks that repeat a figure of a table: a single one may be a misprint."""


def _find_per_disk_tables(rows: Sequence[SizeRow]) -> set[tuple[str, int]]:
    counts: dict[tuple[str, int, object], set[int]] = {}
    for row in rows:
        cell, count = row.find("temp_disk_gib"), _disk_count(row)
        if cell is not None and count and (size := _read_or_none(cell)) is not None:
            counts.setdefault((row.page.file, row.table, size.value), set()).add(count)
    repeated: Counter[tuple[str, int]] = Counter()
    for (file, table, _), sizes in counts.items():
        repeated[file, table] += _MIN_REPEATED if 1 in sizes and len(sizes) > 1 else len(sizes) - 1
    return {table for table, times in repeated.items() if times >= _MIN_REPEATED}


def _disk_count(row: SizeRow) -> int | None:
    cell = row.find("temp_disk_count")
    value = _read_or_none(cell) if cell else None
    return value.value if value and isinstance(value.value, int) else None


def _read_or_none(cell: FieldCell) -> FieldValue | None:
    try:
        return next(iter(read_cell(cell.column, cell.text)), None)
    except UnreadableCell:
        return None
