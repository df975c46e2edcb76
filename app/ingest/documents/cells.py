"""Cells to values: one reader for each kind of column; what a reader does not wholly understand it refuses."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from app.catalog.fields import SIZE_FIELDS, FactValue
from app.ingest.documents.columns import ColumnField
from app.ingest.documents.cpu import to_cpu
from app.ingest.documents.features import FeatureFlag, read_flag
from app.ingest.documents.gpu_text import to_interconnect
from app.ingest.documents.network import UnreadableCell, read_infiniband, read_network
from app.ingest.documents.values import (
    Amount,
    Dimension,
    find_units,
    normalize_rates,
    rounded,
    to_amount,
    to_base_unit,
    to_integer,
)

_FILLER_WORDS = re.compile(
    r"\b(?:disks?|drives?|nics?|v?cpus?|v?cores?|ethernet|gpus?|memory|ram|ssds?|nvme|scsi|temp|total|in|interfaces?|workstations?|"
    r"applications?|users?)\b",
    re.IGNORECASE,
)
_UNIT = re.compile(r"[KMGT]i?B(?:ps)?|[KMGT]i?bps|IOPS", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A field's value as a cell states it; `note` says how it was computed."""

    field: str
    value: FactValue
    note: str | None = None


CellReader = Callable[[ColumnField, str], list[Value]]


def read_cell(part: ColumnField, text: str) -> list[Value]:
    """Read a cell that is not blank; raises Unreadable with the reason."""
    reader = CELL_READERS.get(part.field)
    if reader is None:
        raise UnreadableCell("is known, but has no field to be kept in")
    return reader(part, normalize_rates(text.replace("\v", " ").strip()))


def _quantity(dimension: Dimension) -> CellReader:
    def read(part: ColumnField, text: str) -> list[Value]:
        amount = _amount(text)
        units = find_units(amount.suffix)
        unit = units[0] if units else part.unit
        if unit is None:
            raise UnreadableCell("has no unit, neither in the header nor in the cell")
        kept = to_base_unit(amount.total, unit, dimension)
        if kept is None:
            raise UnreadableCell(f"is in {unit}, which is no unit of {part.field}")
        return [Value(field=part.field, value=_to_field_type(part.field, kept), note=_product_note(amount, unit))]

    return read


def _count(part: ColumnField, text: str) -> list[Value]:
    amount = _amount(text)
    if amount.times is not None or find_units(amount.suffix):
        raise UnreadableCell("is not a count")
    return [Value(field=part.field, value=_to_field_type(part.field, amount.number))]


def _amount(text: str) -> Amount:
    amount = to_amount(text)
    if amount is None:
        raise UnreadableCell("is not one number")
    left = re.sub(r"[\s()*]+", "", _FILLER_WORDS.sub(" ", _UNIT.sub(" ", amount.suffix)))
    if left:
        raise UnreadableCell(
            "is not one number" if re.search(r"\d", left) else f"has words in it that are not understood: {left}"
        )
    return amount


def _to_field_type(field: str, number: Decimal) -> FactValue:
    if SIZE_FIELDS[field].kind == "number":
        return rounded(number)
    whole = to_integer(number)
    if whole is None:
        raise UnreadableCell("is not a whole number")
    return whole


def _product_note(amount: Amount, unit: str) -> str | None:
    return None if amount.times is None else f"{amount.times} x {amount.number} {unit}"


def _network_mbps(part: ColumnField, text: str) -> list[Value]:
    # Old pages write MBps over columns of Mbps, as the same figures on their newer versions show.
    unit = "Mbps" if part.unit == "MBps" else part.unit
    if re.search(r"infini|rdma|ethernet|[/+;]", text, re.IGNORECASE):
        return _network(ColumnField(field=part.field, unit=unit), text)
    return _quantity("network")(ColumnField(field="network_mbps", unit=unit), text)


def _network(part: ColumnField, text: str) -> list[Value]:
    return [Value(field=field, value=value, note=note) for field, value, note in read_network(text, part.unit)]


def _infiniband(part: ColumnField, text: str) -> list[Value]:
    return [Value(field=field, value=value, note=note) for field, value, note in read_infiniband(text, part.unit)]


def _cpu(_part: ColumnField, text: str) -> list[Value]:
    if re.match(r"\d+\s*(?:v?cpus?|v?cores?)?$", text, re.IGNORECASE):
        return _count(ColumnField(field="vcpus"), text)
    return [Value(field=field, value=value) for field, value in to_cpu(text).items()]


def _interconnect(_part: ColumnField, text: str) -> list[Value]:
    link = to_interconnect(text)
    if link is None:
        raise UnreadableCell("names no interconnect that is known")
    values = [Value(field="gpu_interconnect", value=link)]
    return [*values, Value(field="nvlink", value=True)] if link.startswith("NVLink") else values


def _cached_throughput(part: ColumnField, text: str) -> list[Value]:
    # Old tables put the cache's size behind the throughput: `32 (50)`.
    rate, _, cache = text.partition("(")
    (value,) = _quantity("throughput")(part, rate.strip())
    return [
        Value(field=value.field, value=value.value, note=f"with a cache of {cache.strip(' )')} GiB" if cache else None)
    ]


def _flag(part: ColumnField, text: str) -> list[Value]:
    flag = FeatureFlag(name=part.qualifier, status=text, raw=text, line=0)
    return [Value(field=field, value=value, note=note) for field, value, note in read_flag(flag)]


_DISK_RATES = (
    "uncached_disk",
    "uncached_disk_burst",
    "ultra_disk",
    "ultra_disk_burst",
    "temp_disk_read",
    "temp_disk_write",
)

CELL_READERS: dict[str, CellReader] = {
    "vcpus": _count,
    "cpu": _cpu,
    "arch": _cpu,
    "memory_gib": _quantity("memory"),
    "temp_disk_gib": _quantity("disk"),
    "temp_disk_count": _count,
    "max_data_disks": _count,
    "max_nics": _count,
    "network_mbps": _network_mbps,
    "network": _network,
    "infiniband": _infiniband,
    "gpu_interconnect": _interconnect,
    "virtual_workstations": _count,
    "virtual_applications": _count,
    "flag": _flag,
    "ignored": lambda _part, _text: [],
    "price": lambda _part, _text: [],
    "cached_disk_iops": _quantity("iops"),
    "cached_disk_mbps": _cached_throughput,
    **{f"{rate}_iops": _quantity("iops") for rate in _DISK_RATES},
    **{f"{rate}_mbps": _quantity("throughput") for rate in _DISK_RATES},
}
"""How each column is read whose cells stand for themselves; GPUs and NVMe drives need the whole row."""
