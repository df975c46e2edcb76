"""How other catalogs of sizes write their files: a row of a table each, and a reader of CSV and JSON for all of them.

No data of a catalog is here, only which column has which figure, in which unit, and what it means where that is not
what this catalog means by the field.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from app.errors import BadData
from app.ingest.csv_files import open_csv, wrong_width
from app.ingest.json_files import json_items, open_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a column says: a field of a size, or the price of a way to buy (`linux on_demand`).

    `unit` is how much of the field's unit one of the column's is. `whole` figures are rounded to whole units;
    `counts_devices` has a part of a GPU as one. A blank cell states `blank`, by default nothing.
    """

    field: str
    unit: Fraction = Fraction(1)
    whole: bool = False
    counts_devices: bool = False
    blank: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerFormat:
    """A file of another catalog: its columns, and the `publishers` of this catalog's sources that are of its making."""

    title: str
    columns: Mapping[str, Meaning]
    size: str
    region: str | None = None
    day: str | None = None
    publishers: frozenset[str] = frozenset()


class Claim(NamedTuple):
    """A figure that a file states, with the cell and its place; `value` is in the unit of the field."""

    size: str
    region: str | None
    day: date | None
    meaning: Meaning
    value: Fraction
    digits: Fraction
    """One unit of the last place that was written, in the unit of the field."""
    cell: str
    line: int
    column: str


_MIB = Fraction(1, 1024)
_VCPUS, _GIB = Meaning(field="vcpus"), Meaning(field="memory_gib", whole=True)
_DEVICES = Meaning(field="gpu_count", counts_devices=True)
_LINUX, _SPOT = Meaning(field="linux on_demand"), Meaning(field="linux spot")

PEER_FORMATS: Mapping[str, PeerFormat] = {
    "skypilot": PeerFormat(
        title="SkyPilot catalog, vms.csv",
        size="InstanceType",
        region="Region",
        columns={
            "vCPUs": _VCPUS,
            "MemoryGiB": _GIB,
            "AcceleratorCount": Meaning(field="gpu_count", blank="0"),
            "Price": _LINUX,
            "SpotPrice": _SPOT,
        },
        publishers=frozenset({"SkyPilot"}),
    ),
    "gpuhunt": PeerFormat(
        title="gpuhunt, a provider's CSV",
        size="instance_name",
        region="location",
        columns={"cpu": _VCPUS, "memory": _GIB, "gpu_count": _DEVICES},
    ),
    "vantage": PeerFormat(
        title="ec2instances.info, instances.json",
        size="instance_type",
        region="region",
        columns={
            "vCPU": _VCPUS,
            "vcpu": _VCPUS,
            "memory": _GIB,
            "GPU": _DEVICES,
            "linux.ondemand": _LINUX,
            "mswin.ondemand": Meaning(field="windows on_demand"),
            "windows.ondemand": Meaning(field="windows on_demand"),
        },
    ),
    "autoscaler": PeerFormat(
        title="Kubernetes cluster-autoscaler, instance types as a table",
        size="size",
        columns={"vcpu": _VCPUS, "memory_mib": Meaning(field="memory_gib", unit=_MIB, whole=True), "gpu": _DEVICES},
        publishers=frozenset({"Kubernetes"}),
    ),
    "karpenter": PeerFormat(
        title="Karpenter providers, prices as a table",
        size="size",
        region="region",
        day="date",
        columns={"usd_per_hour": _LINUX},
        publishers=frozenset({"karpenter-provider-azure", "karpenter-provider-aws"}),
    ),
    "aspire": PeerFormat(
        title="Aspire, AksNodeVmSizes as a table",
        size="size",
        columns={"vcpus": _VCPUS, "memory_gib": _GIB, "gpus": _DEVICES},
    ),
    "sku-locator": PeerFormat(
        title="Azure VM SKU Locator, sizes",
        size="name",
        columns={"vCPUs": _VCPUS, "memoryGB": _GIB},
    ),
    "sku-locator-prices": PeerFormat(
        title="Azure VM SKU Locator, prices",
        size="size_without_Standard",
        region="region",
        day="date",
        columns={"linux": _LINUX, "windows": Meaning(field="windows on_demand"), "spot": _SPOT},
        publishers=frozenset({"djtools"}),
    ),
    "ccf": PeerFormat(
        title="Cloud Carbon Footprint, instances of Azure",
        size="Virtual Machine",
        columns={"Instance vCPUs": _VCPUS, "Instance Memory": _GIB},
    ),
    "sparecores": PeerFormat(
        title="Spare Cores, servers of all vendors",
        size="api_reference",
        columns={
            "vcpus": _VCPUS,
            "memory_amount": Meaning(field="memory_gib", unit=_MIB, whole=True),
            "gpu_count": _DEVICES,
        },
    ),
    "boavizta": PeerFormat(
        title="Boavizta, instances of a cloud",
        size="id",
        columns={"vcpu": _VCPUS, "memory": _GIB},
    ),
    "vmsizes": PeerFormat(
        title="this catalog, the CSV of GET /sizes",
        size="name",
        columns={
            "vcpus": _VCPUS,
            "memory_gib": Meaning(field="memory_gib"),
            "gpu_fraction": Meaning(field="gpu_count"),
            "gpu_memory_gib_per_gpu": Meaning(field="gpu_memory_gib_per_gpu"),
        },
    ),
}
"""The files that can be audited, by the name of their format."""

_OTHER_NAMES = {"instance_type": "size", "price_per_hour": "usd_per_hour", "generated": "date"}
"""Columns that the tables of other clouds in a format call otherwise."""


def read_claims(file: Path, peer: PeerFormat) -> Iterator[Claim]:
    """Yield the figures that a file states; raises BadData for a file of another format, with line and column."""
    is_json = file.name.removesuffix(".gz").endswith(".json")
    seen: set[tuple[str, str | None, str]] = set()
    for line, row in _read_json(file) if is_json else _read_csv(file, peer):
        size, region = row.get(peer.size, "").strip(), row.get(peer.region or "", "").strip() or None
        for column, meaning in peer.columns.items():
            cell = row.get(column, "").strip() or (meaning.blank if column in row else None) or ""
            key = size, region if " " in meaning.field else None, column
            if not size or not cell or (key in seen and " " not in meaning.field):
                continue  # what is said of a size in each region counts once
            seen.add(key)
            try:
                value, digits = _to_number(cell)
            except (InvalidOperation, ValueError, ZeroDivisionError):
                continue  # such as N/A, or Yes for a GPU
            day = _to_day(row.get(peer.day or "", ""), file, line, peer.day)
            yield Claim(
                size.replace(" ", "_"), region, day, meaning, value * meaning.unit, digits * meaning.unit,
                cell, line, column,
            )  # fmt: skip


def _to_number(cell: str) -> tuple[Fraction, Fraction]:
    """Return a number and one unit of its last place; a fraction is exact."""
    if "/" in cell:
        return Fraction(cell.lstrip("'")), Fraction(0)
    number = Decimal(cell)
    if not number.is_finite():
        raise ValueError
    exponent = number.as_tuple().exponent
    return Fraction(number), Fraction(10) ** int(exponent)


def _to_day(cell: str, file: Path, line: int, column: str | None) -> date | None:
    try:
        return date.fromisoformat(cell) if cell else None
    except ValueError as error:
        raise BadData(
            f"{cell!r}: must be a date written as YYYY-MM-DD", file=str(file), line=line, column=column
        ) from error


def _read_csv(file: Path, peer: PeerFormat) -> Iterator[tuple[int, dict[str, str]]]:
    with open_csv(file) as opened:
        lines = csv.reader(opened, strict=True)
        header = [name.strip() for name in next(lines, [])]
        if peer.size not in header:
            header = [_OTHER_NAMES.get(name, name) for name in header]
        needed = (peer.size, *((peer.region,) if peer.region else ()))
        if missing := [name for name in needed if name not in header]:
            detail = f"is missing from the header; the format has {', '.join([*needed, *peer.columns])}"
            raise BadData(detail, file=str(file), line=1, column=missing[0])
        if not peer.columns.keys() & set(header):
            raise BadData(f"has none of the columns {', '.join(peer.columns)}", file=str(file), line=1)
        for cells in lines:
            if cells and len(cells) != len(header):
                raise wrong_width(str(file), lines.line_num, len(cells), len(header))
            yield lines.line_num, dict(zip(header, cells, strict=False))


def _read_json(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the entries of a list: first an entry itself, then each of its regions with the prices there."""
    with open_json(file) as opened:
        number = 0
        for number, entry in enumerate(json_items(opened, file, "item"), 1):
            if not isinstance(entry, dict):
                raise BadData(f"entry {number} is not an object", file=str(file), line=number)
            size = str(entry.get("instance_type", ""))
            yield number, {name: str(value) for name, value in entry.items() if not isinstance(value, dict | list)}
            for region, systems in (entry.get("pricing") or {}).items():
                yield number, {"instance_type": size, "region": region, **_prices(systems)}
        if not number:
            raise BadData("has no list of objects", file=str(file))


def _prices(systems: Any) -> dict[str, str]:
    return {
        f"{system}.ondemand": str(prices["ondemand"])
        for system, prices in (systems.items() if isinstance(systems, dict) else ())
        if isinstance(prices, dict) and "ondemand" in prices
    }
