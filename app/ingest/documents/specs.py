"""Host specifications tables (Part, Quantity, Specs): single figures hold for every size, ranges for none."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import chain

from app.catalog.fields import SIZE_FIELDS, FactValue
from app.ingest.documents.columns import header_key
from app.ingest.documents.hardware import GpuText, to_cpus, to_gpu_text
from app.ingest.documents.markdown import MarkdownTable, TableRow
from app.ingest.documents.page import SourcePage
from app.ingest.documents.values import (
    NUMBER,
    Dimension,
    normalize_rates,
    rounded,
    to_amount,
    to_base_unit,
    to_fraction,
    to_integer,
)

_RANGE = re.compile(rf"{NUMBER}\s*(?:[-–—]|to)\s*\d|\bup\s?to\b|\bfrom\b", re.IGNORECASE)
OTHER_ACCELERATOR = re.compile(r"\b(?:FPGAs?|VPUs?|NPUs?|TPUs?|ASICs?|Xilinx|Alveo|U250)\b", re.IGNORECASE)
_NONE = re.compile(r"none|0|no (?:accelerators?|gpus?|disks?)", re.IGNORECASE)
_ABSENT_FIELDS: dict[str, tuple[str, FactValue]] = {
    "accelerators": ("gpu_count", Fraction(0)),
    "local": ("temp_disk_gib", Decimal(0)),
}
"""What a part that a host does not have states of all sizes; `N/A` and an empty cell state nothing."""
_PARTS: tuple[tuple[str, str], ...] = (
    (r"processors?|cpus?", "processor"),
    (r"memory|ram", "memory"),
    (r"local (?:storage|disks?)|temp(?:orary)? (?:storage|disks?)", "local"),
    (r"remote (?:storage|disks?)|data disks?|disks?|storage", "remote"),
    (r"network(?:ing)?", "network"),
    (r"accelerators?|gpus?", "accelerators"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFact:
    """A field value that holds for every size of the page."""

    page: SourcePage
    field: str
    value: FactValue
    raw: str
    line: int


@dataclass(slots=True, kw_only=True)
class HostSpecs:
    """All host specifications of a document; `nvme_gib` is the total size of its drives.

    `absent` states 0 GPUs or 0 GiB of local disks; `other_accelerators` states 0 GPUs because the accelerators are of
    another kind, so that no count of them is one of GPUs.
    """

    facts: list[HostFact] = field(default_factory=list)
    absent: list[HostFact] = field(default_factory=list)
    other_accelerators: HostFact | None = None
    gpu: GpuText = field(default_factory=GpuText)
    nvme_gib: Decimal | None = None
    nvme_line: int | None = None
    """The line that says that local disks are NVMe, and names no others."""


def is_specs_table(table: MarkdownTable) -> bool:
    """Return whether a table has the headers of host specifications."""
    keys = [cell.text.lower().strip() for cell in table.header]
    return len(keys) >= 3 and header_key(keys[0]) in ("part", "component") and keys[2].startswith("spec")  # noqa: PLR2004  # three columns


def read_specs(page: SourcePage, table: MarkdownTable, specs: HostSpecs) -> None:
    """Add the rows of a table to the specifications."""
    for row in table.rows:
        part = row.cells[0].text.strip().lower()
        name = next((name for pattern, name in _PARTS if re.fullmatch(pattern, part)), None)
        if name in _ABSENT_FIELDS and _NONE.fullmatch(row.cells[1].text.strip()):
            specs.absent.append(_host_fact(page, row, *_ABSENT_FIELDS[name], row.cells[1].raw))
        elif name == "accelerators":
            _read_accelerators(page, row, specs)
        elif name is not None:
            quantity, texts = (_single_values(cell.text) for cell in row.cells[1:3])
            specs.facts.extend(_host_fact(page, row, *fact) for fact in _READERS[name](quantity, texts))
        if name == "processor":
            text = row.cells[2].text.strip()
            specs.facts.extend(
                _host_fact(page, row, key, value, text.replace("\v", " ")) for key, value in to_cpus(text).items()
            )
        if name == "local":
            sizes = _drive_sizes(row.cells[2].text)
            specs.nvme_gib = next((gib for gib, text in sizes if "nvme" in text.lower()), None)
            words = " ".join(cell.text for cell in row.cells[1:]).lower()
            if "nvme" in words and not re.search(r"\btemp|scsi", words):
                specs.nvme_line = row.line


FieldsWithRaw = Iterable[tuple[str, FactValue, str]]
"""Field, value and the text that states it."""


def _single_values(text: str) -> list[str]:
    pieces = (piece.strip() for piece in normalize_rates(text).split("\v"))
    return [piece for piece in pieces if piece and not _RANGE.search(piece)]


def _local(quantity: list[str], texts: list[str]) -> FieldsWithRaw:
    for text in quantity:
        yield from _counts("nvme_disk_count" if "nvme" in text.lower() else "temp_disk_count", [text])
    for text in texts:
        is_nvme = re.search(r"nvme disks?", text, re.IGNORECASE) is not None
        # A size of NVMe disks without their number may be of one disk or of all.
        if not is_nvme or any("nvme" in piece.lower() for piece in quantity):
            yield from _amounts("nvme_disk_gib" if is_nvme else "temp_disk_gib", [text], "disk")


def _remote(quantity: list[str], texts: list[str]) -> FieldsWithRaw:
    yield from _counts("max_data_disks", quantity)
    for text in (piece for joint in texts for piece in joint.split("/")):
        yield from _amounts("uncached_disk_iops", [text], "iops")
        yield from _amounts("uncached_disk_mbps", [text], "throughput")


_READERS: dict[str, Callable[[list[str], list[str]], FieldsWithRaw]] = {
    "processor": lambda quantity, _: _counts("vcpus", quantity),
    "memory": lambda quantity, _: _amounts("memory_gib", quantity, "memory"),
    "local": _local,
    "remote": _remote,
    "network": lambda quantity, texts: chain(_counts("max_nics", quantity), _amounts("network_mbps", texts, "network")),
}


def _counts(name: str, texts: list[str]) -> FieldsWithRaw:
    for text in texts:
        amount = to_amount(text)
        count = to_integer(amount.number) if amount and amount.times is None and not amount.unit() else None
        if count is not None:
            yield name, count, text


def _amounts(name: str, texts: list[str], dimension: Dimension) -> FieldsWithRaw:
    for text in texts:
        amount = to_amount(text)
        unit = amount.unit() if amount else None
        kept = to_base_unit(amount.total, unit, dimension) if amount and unit else None
        if kept is not None:
            whole = to_integer(kept)
            yield name, rounded(kept) if SIZE_FIELDS[name].kind == "number" or whole is None else whole, text


def _drive_sizes(text: str) -> Iterator[tuple[Decimal, str]]:
    for piece in _single_values(text):
        for _, value, raw in _amounts("nvme_disk_gib", [piece], "disk"):
            if isinstance(value, Decimal):
                yield value, raw


def _read_accelerators(page: SourcePage, row: TableRow, specs: HostSpecs) -> None:
    quantity, text = normalize_rates(row.cells[1].text), row.cells[2].text.split("\v")[0].strip()
    if OTHER_ACCELERATOR.search(f"{quantity} {text}"):
        cell = next(cell for cell in row.cells[1:] if OTHER_ACCELERATOR.search(cell.text))
        specs.other_accelerators = _host_fact(page, row, "gpu_count", Fraction(0), cell.raw)
        return
    single = _single_values(quantity)
    count = to_fraction(re.sub(r"[^\d./⁄½⅓¼⅙⅛]+", " ", single[0]).strip()) if single else None
    gpu = (to_gpu_text(text, counted=False) if text else None) or GpuText()
    specs.gpu = GpuText(count=count, vendor=gpu.vendor, model=gpu.model, memory_gib=gpu.memory_gib)
    values: dict[str, FactValue | None] = {"gpu_vendor": gpu.vendor, "gpu_model": gpu.model}
    for name, value in values.items():
        if value is not None:
            specs.facts.append(_host_fact(page, row, name, value, row.cells[2].raw))
    if gpu.memory_gib is not None:
        specs.facts.append(_host_fact(page, row, "gpu_memory_gib_per_gpu", gpu.memory_gib, row.cells[2].raw))
    if isinstance(count, Fraction):
        specs.facts.append(_host_fact(page, row, "gpu_count", count, row.cells[1].raw))


def _host_fact(page: SourcePage, row: TableRow, name: str, value: FactValue, raw: str) -> HostFact:
    return HostFact(page=page, field=name, value=value, raw=raw, line=row.line)
