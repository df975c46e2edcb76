"""Table headers to columns: the field that a column holds, its unit, and the fields of a joint one (`vCPU / Memory`).

To teach a new spelling of a known header, add a pattern to `_SYNONYMS`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.ingest.documents.features import FLAGS, flag_key
from app.ingest.documents.page import TableCell
from app.ingest.documents.values import find_units, normalize_rates

_DISK = r"(?:premium (?:ssd|storage) )?(?:storage )?(?:disks? )?"
_SPEED = r"(?:iops|throughput|speed|bandwidth|performance|i o)?(?: iops)?"
_RATE = r"(?:iops|throughput|speed|bandwidth)(?: iops)?"
_TEMP_DISK = r"(?:temp(?:orary)? (?:disks?|storage)|local disks?)"
_ULTRA_DISK = r"(?:special |ultra disk and premium ssd v2 |ultra disk )(?:disks? )?"
_SIZE = r"(?: (?:size|capacity))?"
_GPU = r"(?:gpus?|accelerators?|graphics(?: cards?)?|video)"

_SYNONYMS: Mapping[str, str] = {
    "name": (
        r"(?:azure |vm |instance )?(?:sizes?|skus?)(?: names?)?"
        r"|(?:vm|instance|machine|virtual machine)(?: (?:type|size|name|sku))?s?"
        r"|(?:azure )?(?:vm|instance|virtual machine) (?:size|type|sku) names?|names?|instances?|types?"
        r"|flavou?rs?|shapes?"
    ),
    "vcpus": (
        r"v ?cpus?|v ?cores?|virtual (?:cpus?|cores?)|(?:v ?cpu |cpu |physical |processor )?cores?"
        r"|(?:v ?cpu|cpu)s? cores?|v ?cpu s|active v ?cpus?"
    ),
    "parent_size": r"(?:base|original|parent) sizes?",
    "cpu": r"cpus?|processors?|cpu (?:model|type|family)|processor (?:model|type|family)",
    "arch": r"(?:cpu |processor )?architecture|arch",
    "memory_gib": r"(?:system |host |vm |main |instance )?(?:memory|ram)(?: size| capacity)?",
    "gpu_memory": (
        rf"(?:total )?{_GPU} ?(?:mem(?:ory)?|v?ram|frame ?buffer|hbm){_SIZE}(?: (?:per|each|total).*)?"
        r"|vram|frame ?buffer"
        rf"|(?:memory|vram|ram) (?:per|of each) {_GPU}"
        r"|(?:total )?v ?ram"
    ),
    "gpu": rf"{_GPU}(?: (?:partitions?|fractions?|counts?|quantity|cards?|s))?(?: per vm)?",
    "gpu_model": rf"{_GPU} (?:models?|types?|names?|families|family)",
    "gpu_interconnect": (
        rf"{_GPU} (?:interconnects?|links?)"
        r"|nv ?link(?: interconnect)?"
    ),
    "temp_disk_sequential_read": rf"{_TEMP_DISK} sequential read(?: sr)? ?{_SPEED}",
    "temp_disk_sequential_write": rf"{_TEMP_DISK} sequential write(?: sw)? ?{_SPEED}",
    "temp_disk_read": rf"{_TEMP_DISK} (?:random )?read(?: rr)? ?{_SPEED}",
    "temp_disk_write": rf"{_TEMP_DISK} (?:random )?write(?: rw)? ?{_SPEED}",
    "temp_disk_burst": rf"{_TEMP_DISK} burst ?{_SPEED}",
    "temp_disk_rate": rf"{_TEMP_DISK} {_RATE}|temp(?:orary)? read ?write (?:disks?|storage) {_RATE}",
    "cached_disk": rf"cached(?: and {_TEMP_DISK})? (?:disks? )?(?:random read (?:rr )?)?{_SPEED}",
    "temp_disk": (
        r"(?:local )?temp(?:orary)?(?: (?:storage|disks?|ssds?|hdds?|nvme|local|size|capacity))+"
        r"|local (?:temp(?:orary)? )?(?:storage|disks?|ssd|hdd)(?: (?:size|capacity|ssd))?"
        r"|(?:scratch|resource) disks?(?: size)?"
    ),
    "nvme_disk_rate": rf"nvme (?:disks? )?{_RATE}(?: read(?: iops)?)?",
    "nvme": (
        r"(?:local |direct disks? )?nvme(?: (?:disks?|drives?|ssds?|storage))?|direct disks? nvme"
        r"|local nvme (?:disks?|ssds?|storage)"
    ),
    "nvme_size": (
        r"(?:total )?(?:local )?nvme (?:disks? |drives? |ssds? |storage )?(?:size|capacity)(?: per (?:disk|drive))?"
    ),
    "max_data_disks": r"(?:remote(?: storage)?|data|remote data|managed|premium)(?: storage)? disks?|remote storage",
    "ultra_disk_burst": (
        rf"(?:uncached burst|burst uncached) {_ULTRA_DISK}{_SPEED}"
        rf"|uncached {_ULTRA_DISK}burst ?{_SPEED}"
    ),
    "ultra_disk": rf"uncached {_ULTRA_DISK}{_SPEED}",
    "uncached_disk_burst": rf"(?:uncached burst {_DISK}|burst uncached {_DISK}|uncached {_DISK}burst ?){_SPEED}",
    "uncached_disk": (
        rf"(?:uncached |remote(?: storage)? ){_DISK}{_SPEED}|(?:data )?disks? {_RATE}"
        r"|iops|storage throughput"
    ),
    "local_ssd": r"local solid state disks?",
    "local_ssd_size": r"local solid state disks? (?:size|capacity)",
    "disk_cache_gib": r"(?:temp )?disk cache(?: size)?",
    "l3_cache_mib": r"l3 cache(?: size)?",
    "epc_memory_mib": r"epc memory",
    "memory_bandwidth_gb_per_s": r"(?:peak )?memory bandwidth",
    "cpu_base_ghz": r"base (?:cpu )?frequency",
    "cpu_peak_ghz": r"single core (?:peak frequency|frequency peak)",
    "cpu_all_core_peak_ghz": r"all cores? (?:peak frequency|frequency peak)",
    "cpu_baseline_percent": r"base cpu perf(?:ormance)?(?: of vm)?",
    "cpu_credits_initial": r"initial (?:cpu )?credits",
    "cpu_credits_per_hour": r"(?:cpu )?credits banked (?:per )?hour",
    "cpu_credits_max": r"banked (?:cpu )?credits",
    "backend_nics": r"back ?end nics?",
    "max_nics": (
        r"front ?end nics?"
        r"|(?:front ?end )?(?:(?:ethernet )?(?:v ?)?nics?|network (?:interfaces?|adapters?)(?: cards?)?)(?: nics?)?"
    ),
    "scale_nics": r"scale ?(up|out) nics?",
    "scale_bandwidth": r"scale ?(up|out) (?:network )?bandwidth",
    "network_mbps": (
        r"front ?end (?:network )?bandwidth"
        r"|(?:expected |total |vm )?(?:network |networking |nics? |ethernet )+(?:bandwidth|speed)"
        r"|(?:expected |total |vm )?(?:network |networking |nics? |ethernet )+(?:throughput|performance)"
        r"|(?:expected |total |vm )?bandwidth|(?:front ?end|ethernet)(?: network)?"
        r"|(?:expected )?(?:bandwidth|network) (?:network|mbps)"
    ),
    "network": r"network(?:ing)?(?: (?:connectivity|type|interconnect))?|interconnect|connectivity",
    "infiniband": (
        r"infini ?band(?: (?:bandwidth|network|support|speed))?"
        r"|(?:back ?end|rdma)(?: network)?(?: bandwidth)?"
        r"|rdma(?: capable| support| performance| speed)?"
    ),
    "virtual_workstations": r"virtual workstations?",
    "virtual_applications": r"virtual applications?",
    "ignored": (
        r"series|size series|vm series|family|acu|size types?|disabled v ?cpus?|os disk(?: size)?"
        r"|cpu perf(?:ormance)?(?: of vm)?|status|notes?|comments?|descriptions?|use cases?"
        r"|(?:best|recommended) (?:for|uses?)|typical uses?|roles?|purposes?|sources?|remarks?"
        r"|availability|workloads?"
    ),
}

_COMPILED = tuple((re.compile(f"^(?:{pattern})$"), name) for name, pattern in _SYNONYMS.items())


def find_field(key: str) -> tuple[str, str] | None:
    """Return the column's name and its qualifier (`up` of scale-up, else empty); None for an unknown header."""
    for pattern, name in _COMPILED:
        if match := pattern.match(key):
            return name, next((part for part in match.groups() if part), "")
    return None


_UNIT_WORDS = re.compile(
    r"(?<![A-Za-z])(?:[KMGT]i?B(?:ps)?|[kmgt]i?b(?:ps)?|[KMGT]i?b(?:ps)?|[KMGT]BPS|[GM]Hz)(?![A-Za-z])"
)
_COUNT_WORDS = re.compile(
    r"\bqty\b|\bquantity\b|\bcount\b|\bnumber of\b|\bno\. of\b|#|\bmax(?:imum)?\b|\bup to\b", re.IGNORECASE
)
_PRICE = re.compile(
    r"[$€£¥]|\b(?:costs?|prices?|pricing|usd|eur|per[ -]hour|hourly|monthly|pay[- ]as[- ]you[- ]go|"
    r"on[- ]demand|spot|reserved|savings?)\b",
    re.IGNORECASE,
)
_PER_GPU = re.compile(r"\b(v?ram|memory)/gpu\b", re.IGNORECASE)
_GROWN_MARK = re.compile(r"(?<=\))[1-9]\b")
"""The mark of a footnote that is written as a digit behind a parenthesis: `Read (RR)1 IOPS`."""
_WORDS_TWICE = re.compile(r"\b(\w+(?: \w+)+) (?=\1\b)")
MAX_HEADER_CHARS = 200
"""The longest of Azure's on sizes has 73. To look for repetitions takes time with the square of it."""

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z]{2})(?=[A-Z][a-z]{2})")
_QUANTITY = re.compile(r"\bqty\b|\bquantity\b|\bcount\b|\bnumber of\b|#", re.IGNORECASE)
_SHARED_PREFIX = re.compile(
    r"^(.*?)[:(]?\s*IOPS\)?\s*(?:/|and|&|,)\s*(?:speed|throughput)?\s*\(?([KMG]i?Bps)", re.IGNORECASE
)

_READ_WRITE = re.compile(
    r"^(?P<disk>.*?)(?: throughput)?[:(]?\s*IOPS\s*/\s*Read (?P<read>[KMG]i?Bps)\s*/\s*Write (?P<write>[KMG]i?Bps)",
    re.IGNORECASE,
)
_DISKS_AND_RATE = re.compile(r"(?<=data disks)\s*/\s*throughput\b", re.IGNORECASE)

_RATES = (
    *("uncached_disk", "uncached_disk_burst", "ultra_disk", "ultra_disk_burst", "cached_disk", "temp_disk_burst"),
    *("temp_disk_read", "temp_disk_write", "temp_disk_sequential_read", "temp_disk_sequential_write"),
)
DISK_RATES = {**{name: name for name in _RATES}, "temp_disk_rate": "temp_disk", "nvme_disk_rate": "nvme_disk"}
"""Columns that hold IOPS or bytes per second, and their fields, to which `_iops` or `_mbps` is appended by the unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnField:
    """A field of a column; `unit` is that of the header.

    `qualifier` is a part of the header that the field name lacks: `up` of scale-up, the name of a feature.
    """

    field: str
    unit: str | None = None
    qualifier: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column of a table; without fields it is not read, for `unread_reason`."""

    index: int
    header: str
    fields: tuple[ColumnField, ...]
    unread_reason: str = "is an unknown column"

    def is_for(self, field: str) -> bool:
        """Return whether the column holds this field and no other."""
        return len(self.fields) == 1 and self.fields[0].field == field


def to_columns(header: tuple[TableCell, ...]) -> tuple[TableColumn, ...]:
    """Recognise every column of a table; a column whose neighbours make its header ambiguous gets no fields."""
    columns = tuple(
        TableColumn(index=index, header=cell.text.replace("\v", " "), fields=to_column_fields(cell.text))
        for index, cell in enumerate(header)
    )
    fields = {part.field for column in columns for part in column.fields}
    return tuple(_clear_if_ambiguous(column, fields) for column in columns)


def _clear_if_ambiguous(column: TableColumn, fields: set[str]) -> TableColumn:
    key = header_key(column.header)
    if key == "bandwidth" and "infiniband" in fields:
        reason = "may be the bandwidth of the InfiniBand beside it or of the other network"
    elif key == "memory" and fields & {"gpu", "gpu_model"} and not fields & {"vcpus", "gpu_memory"}:
        reason = "may be the memory of the machine or of the GPU beside it"
    else:
        return column
    return replace(column, fields=(), unread_reason=reason)


def to_column_fields(header: str) -> tuple[ColumnField, ...]:
    """Return the fields of a header, several for a joint one: `Max NICs / network bandwidth (MBps)`."""
    text = _PER_GPU.sub(r"\1 per GPU", normalize_rates(header.replace("\v", " ")))
    # `Max data disks / throughput: IOPS`: the throughput is that of the disks.
    text = _DISKS_AND_RATE.sub(" / data disk throughput", text)
    # `Temp storage throughput: IOPS / Read MBps / Write MBps`: all share the words before IOPS.
    if match := _READ_WRITE.match(text):
        disk = match["disk"]
        names = (f"{disk} throughput IOPS", f"{disk} read {match['read']}", f"{disk} write {match['write']}")
        fields = tuple(field for name in names if (field := _column_field(name)))
        if len(fields) == len(names):
            return fields
    # `Uncached disk IOPS / MBps`: both fields share the words before IOPS.
    if match := _SHARED_PREFIX.match(text):
        first, second = _column_field(f"{match[1]} IOPS"), _column_field(f"{match[1]} {match[2]}")
        if first and second:
            return (first, second)
    whole = _column_field(text)
    if whole and "/" not in text:
        return (whole,)
    pieces = re.split(r"\s*/\s*|\s+and\s+|\s*&\s*|\s*,\s*", text)
    parts = [part for piece in pieces if (part := _column_field(piece))]
    if len(parts) == len(pieces) == len({part.field for part in parts}) and len(pieces) > 1:
        if parts[0].field not in ("gpu", "gpu_model"):
            return tuple(parts)
        # The memory of `GPU / Memory` is that of the GPU, not of the VM.
        return tuple(replace(part, field="gpu_memory") if part.field == "memory_gib" else part for part in parts)
    return (whole,) if whole else ()


def header_key(header: str) -> str:
    """Return a header in lower case without units, words of counting, footnote marks, punctuation and repetitions.

    That of a header of more than MAX_HEADER_CHARS is empty.
    """
    if len(header) > MAX_HEADER_CHARS:
        return ""
    text = _GROWN_MARK.sub("", re.sub(r"[¹²³⁴⁵⁶⁷⁸⁹]", "", normalize_rates(header)))
    text = _COUNT_WORDS.sub(" ", _UNIT_WORDS.sub(" ", text)).lower()
    return _WORDS_TWICE.sub("", re.sub(r"[^a-z0-9]+", " ", text).strip())


def _column_field(text: str) -> ColumnField | None:
    if _PRICE.search(text):
        return ColumnField(field="price")
    synonym = find_field(header_key(text)) or find_field(header_key(_CAMEL.sub(" ", text)))
    if not synonym:
        flag = FLAGS.get(flag_key(text))
        return ColumnField(field="flag", qualifier=text) if flag else None
    field, qualifier = synonym
    units = find_units(text)
    if field in DISK_RATES:
        field = f"{DISK_RATES[field]}_{'iops' if 'IOPS' in units or 'iops' in text.lower() else 'mbps'}"
    elif field == "temp_disk":
        counts = _QUANTITY.search(text) or re.search(r"disks\b", text, re.IGNORECASE)
        field = "temp_disk_count" if counts and not units else "temp_disk_gib"
    return ColumnField(field=field, unit=units[0] if units else None, qualifier=qualifier)
