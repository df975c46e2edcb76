"""Cells to field values: one reader for each column field, listed in `CELL_READERS`.

A reader raises UnreadableCell for a cell that it does not understand completely. Columns whose cells need the rest of
the row are read elsewhere: GPUs in `gpu_rows`, NVMe drives, temporary disks and scale-up networks in `row_facts`.
"""

import re
from collections.abc import Callable
from decimal import Decimal

from app.catalog.fields import SIZE_FIELDS, FactValue, too_large
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
        raise UnreadableCell("is not one number")
    left = re.sub(r"[\s()*]+", "", _FILLER_WORDS.sub(" ", _UNIT.sub(" ", amount.suffix)))
    if left:
        raise UnreadableCell("is not one number" if re.search(r"\d", left) else f"has unknown words: {left}")
    return amount


def _to_field_type(field: str, number: Decimal) -> FactValue:
    if problem := too_large(SIZE_FIELDS[field].kind, number):
        raise UnreadableCell(problem)
    if SIZE_FIELDS[field].kind == "number":
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
