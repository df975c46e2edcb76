"""Maps entries of Azure's Resource SKUs API, or of `az vm list-skus`, to facts about sizes and where they are offered.

An entry is one size in one region, with capabilities whose values all are texts. Not taken are `restrictions`, which
are those of the subscription that asked, the number of GPUs, since a part of a GPU is counted as one, and capabilities
that differ between regions, which are reported.

An answer for all regions has 100 MB and more: it is kept in a file, and never whole in memory.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, TypeVar, Unpack

import httpx
from sqlalchemy import Engine, select

from app.catalog.column_types import table_of
from app.catalog.fields import SIZE_FIELDS, FactValue, too_large
from app.catalog.models import Availability, Fact
from app.catalog.names import region_key, size_key
from app.catalog.providers import provider_of
from app.catalog.readings import (
    AvailabilityRow,
    FileRead,
    Progress,
    Reading,
    Report,
    SourceRow,
    StatedFact,
    no_progress,
)
from app.catalog.store.facts import load_size_providers, load_subject_keys
from app.db.engines import read_session
from app.errors import BadData, FetchError
from app.ingest.feeds.fetching import TIMEOUT, USER_AGENT, RetryPolicy, download, tls_context
from app.ingest.feeds.gate import find_loss, load_region_codes
from app.ingest.files import (
    NUMBER,
    SIZE_NAME_RULE,
    describe_json,
    is_size_name,
    json_items,
    open_json,
    refuse_special_file,
    sha256_of,
)
from app.ingest.run import IngestOptions, IngestOutcome, ingest

SOURCE_ID = "azure-resource-skus"

Entry = Mapping[str, Any]
Item = TypeVar("Item")
Capabilities = Mapping[str, str]
Figure = tuple[str, FactValue]
"""The capability that a value is read from, and the value in the unit of its field."""

MIB_PER_GIB = 1024
_CONSTRAINED = re.compile(r"\d+-\d+")
"""In a name: sizes with fewer vCPUs than their parent, whose number `vCPUs` may be."""


# Capabilities


Reader = Callable[[Capabilities], Figure | None]


class NotAValue(Exception):
    """A `cell`, under a name in an answer, that a field cannot have; the message says what is allowed."""

    def __init__(self, name: str, cell: object, allowed: str) -> None:
        super().__init__(allowed)
        self.name, self.cell = name, cell


def _read(name: str, convert: Callable[[str], FactValue], allowed: str = "") -> Reader:
    """Return a reader of a capability, which raises NotAValue where that cannot be converted."""

    def read(capabilities: Capabilities) -> Figure | None:
        try:
            return (name, convert(capabilities[name])) if name in capabilities else None
        except (KeyError, ValueError) as error:
            raise NotAValue(name, capabilities[name], allowed) from error

    return read


def to_number(name: str, cell: object) -> Decimal:
    """Return a cell as a number that is not negative, without an exponent, which may be endless; raises NotAValue."""
    if not NUMBER.fullmatch(str(cell)):
        raise NotAValue(name, cell, "must be a number from 0, written like 3.5")
    return Decimal(str(cell))


def to_field(column: str, name: str, value: FactValue, cell: object) -> FactValue:
    """Return a value as a field of a size has it; raises NotAValue for the cell where it cannot."""
    spec, is_flag, problem = SIZE_FIELDS[column], isinstance(value, bool), None
    if is_flag is not (spec.kind == "boolean"):
        problem = "must be a number" if is_flag else "must be true or false"
    elif isinstance(value, int | Decimal | Fraction):
        is_whole = spec.kind != "integer" or value == int(value)
        problem = too_large(spec.kind, Fraction(value), spec.unit) if is_whole else "must be a whole number"
    if problem:
        raise NotAValue(name, cell, problem)
    return int(value) if spec.kind == "integer" and isinstance(value, Decimal) else value


def _number(name: str, divisor: int = 1) -> Callable[[Capabilities], tuple[str, Decimal] | None]:
    """Return a reader of a number that is not negative, divided by what makes it the field's unit."""
    return lambda stated: (name, to_number(name, stated[name]) / divisor) if name in stated else None


_FLAGS = {"True": True, "False": False}


def _flag(name: str, *, negated: bool = False) -> Reader:
    return _read(name, lambda text: _FLAGS[text] is not negated, "must be True or False")


def _listed(name: str, item: str) -> Reader:
    """Return a predicate of whether a list has an item."""
    return _read(name, lambda text: item in (listed.strip() for listed in text.split(",")))


def _temp_disk(capabilities: Capabilities) -> Figure | None:
    """Return the temporary disk; 0 is none, but not where the local disks are NVMe, which other fields have."""
    figure = _number("MaxResourceVolumeMB", MIB_PER_GIB)(capabilities)
    return None if figure and not figure[1] and "NvmeDiskSizeInMiB" in capabilities else figure


def _nvme_disks(capabilities: Capabilities) -> Figure | None:
    names = ("NvmeDiskSizeInMiB", "NvmeSizePerDiskInMiB")
    if not all(name in capabilities for name in names):
        return None
    total, per_disk = (Fraction(to_number(name, capabilities[name])) for name in names)
    return (names[1], int(total / per_disk)) if per_disk and total % per_disk == 0 else None


READERS: Mapping[str, Reader] = {
    "memory_gib": _number("MemoryGB"),
    "arch": _read("CpuArchitectureType", {"x64": "x64", "Arm64": "arm64"}.__getitem__, "must be x64 or Arm64"),
    "parent_size": _read("ParentSize", str),
    "temp_disk_gib": _temp_disk,
    "nvme_disk_gib": _number("NvmeDiskSizeInMiB", MIB_PER_GIB),
    "nvme_disk_count": _nvme_disks,
    "max_data_disks": _number("MaxDataDiskCount"),
    "uncached_disk_iops": _number("UncachedDiskIOPS"),
    "uncached_disk_mbps": _number("UncachedDiskBytesPerSecond", 10**6),
    "max_nics": _number("MaxNetworkInterfaces"),
    "infiniband": _flag("RdmaEnabled"),
    "premium_storage": _flag("PremiumIO"),
    "ultra_disk": _flag("UltraSSDAvailable"),
    "accelerated_networking": _flag("AcceleratedNetworkingEnabled"),
    "ephemeral_os_disk": _flag("EphemeralOSDiskSupported"),
    "memory_preserving_updates": _flag("MemoryPreservingMaintenanceSupported"),
    "hibernation": _flag("HibernationSupported"),
    "encryption_at_host": _flag("EncryptionAtHostSupported"),
    "trusted_launch": _flag("TrustedLaunchDisabled", negated=True),
    "generation_1": _listed("HyperVGenerations", "V1"),
    "generation_2": _listed("HyperVGenerations", "V2"),
    "scsi_interface": _listed("DiskControllerTypes", "SCSI"),
    "nvme_interface": _listed("DiskControllerTypes", "NVMe"),
    "confidential_computing": _read("ConfidentialComputingType", str),
    # A day in UTC, as its name says.
    "retirement_date": _read(
        "RetirementDateUtc",
        lambda text: datetime.strptime(text, "%m/%d/%Y").date(),  # noqa: DTZ007
        "must be a date written as MM/DD/YYYY",
    ),
}
"""What reads each field from the capabilities; those named MB or GB count MiB and GiB, rates are bytes a second."""


def _vcpus(name: str, capabilities: Capabilities) -> Figure | None:
    """Return the vCPUs that one gets; `vCPUs` alone may be the parent's where a size is constrained."""
    if "vCPUsAvailable" in capabilities:
        return _number("vCPUsAvailable")(capabilities)
    constrained = "ParentSize" in capabilities or _CONSTRAINED.search(name) is not None
    return None if constrained else _number("vCPUs")(capabilities)


# Entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A figure of a size: its value, the text, and the number of the entry."""

    value: FactValue
    raw: str
    line: int


@dataclass(slots=True, kw_only=True)
class SkuMapper:
    """Collects the entries of sizes over all regions; a field on which regions differ is not stated but reported.

    `regions` are those of the catalog; others are reported, and so are sizes whose keys are in `other_providers`.
    `identify` returns the key of a size by any of its names. Facts name the id of `source` as their file, so that those
    of a day replace those before.
    """

    source: ClassVar = SourceRow(
        id=SOURCE_ID,
        title="Azure Resource SKUs API",
        publisher="Microsoft",
        kind="vendor_api",
        url="https://learn.microsoft.com/rest/api/compute/resource-skus/list",
        published_on=None,
        sha256="",
    )
    file_kind: ClassVar = "availability"

    regions: Collection[str] = ()
    identify: Callable[[str], str] = size_key
    other_providers: Collection[str] = ()
    _sizes: dict[str, dict[str, Stated]] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _differing: dict[tuple[str, str], Stated] = field(default_factory=dict)
    _zones: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    _lines: dict[tuple[str, str], int] = field(default_factory=dict)
    _reports: dict[tuple[str, str, str], Report] = field(default_factory=dict)
    entries: int = 0

    def add(self, entry: Entry) -> None:
        """Take the figures of one entry; other resources than virtual machines are ignored."""
        self.entries += 1
        if str(entry.get("resourceType") or "").lower() != "virtualmachines":
            return
        if (named := self._named(entry, "name")) is None:
            return
        key, name = named
        self._add_places(key, entry)
        self._names.setdefault(key, name)
        stated = self._sizes.setdefault(key, {})
        for column, capability, value, raw in self._figures(name, entry):
            first = stated.setdefault(column, Stated(value=value, raw=raw, line=self.entries))
            if first.value != value and (key, column) not in self._differing:
                self._differing[key, column] = first
                self._report(name, capability, raw, f"{first.raw} in another region (entry {first.line}); not taken")

    def _named(self, entry: Entry, column: str) -> tuple[str, str] | None:
        """Return the key and the name of an entry's size; None, with a report, for no name or another provider's."""
        written = entry.get(column)
        name = written.strip() if isinstance(written, str) else ""
        key = self.identify(name) if is_size_name(name) else ""
        if key and key not in self.other_providers:
            return key, name
        detail = "is a size of another provider" if key else SIZE_NAME_RULE if written else "names no size"
        self._report("", column, written, detail, key=str(written))
        return None

    def _add_places(self, key: str, entry: Entry) -> None:
        """Note the regions of an entry with their zones; zones are numbers, and none where they cannot be chosen."""
        places = {region_key(name): set[str]() for name in self._items(entry, "locations", str)}
        for info in self._items(entry, "locationInfo", dict):
            in_region = places.setdefault(region_key(str(info.get("location"))), set())
            in_region.update(self._items(info, "zones", str))
        for region, zones in places.items():
            if region in self.regions:
                self._zones.setdefault((key, region), set()).update(zones)
                self._lines.setdefault((key, region), self.entries)
            else:
                self._report("", f"region {region}", region, "the catalog has no such region; not taken")

    def _figures(self, name: str, entry: Entry) -> Iterator[tuple[str, str, FactValue, str]]:
        """Yield field, capability, value and text of what an entry states."""
        capabilities = {
            str(item.get("name")): str(item.get("value")).strip()
            for item in self._items(entry, "capabilities", dict)
            if item.get("value") not in (None, "")
        }
        if family := str(entry.get("family") or "").strip():
            yield "quota_family", "family", family, family
        for column, read in {"vcpus": lambda stated: _vcpus(name, stated), **READERS}.items():
            try:
                if (figure := read(capabilities)) is not None:
                    capability, value = figure
                    raw = capabilities[capability]
                    yield column, capability, to_field(column, capability, value, raw), raw
            except NotAValue as error:
                self._report(name, error.name, error.cell, f"is not a value of {column}: {error}", key=column)

    def _items(self, entry: Entry, name: str, kind: type[Item]) -> list[Item]:
        """Return the items of a list in an entry; those of another kind than the API sends are reported."""
        items = entry.get(name)
        if items is None:
            return []
        kept = [item for item in items if isinstance(item, kind)] if isinstance(items, list) else []
        if not isinstance(items, list) or len(kept) < len(items):
            self._report("", name, items, "is not the list that the API sends; what is not in its form is not taken")
        return kept

    def _report(self, size: str, column: str, cell: object, detail: str, key: str = "") -> None:
        """Keep one report of a size and column, or of a key there."""
        text = None if cell is None else str(cell)[:200]
        of_size = f"{size}: {detail}" if size else detail
        report = Report(file=self.source.id, line=self.entries, column=column, cell=text, detail=of_size)
        self._reports.setdefault((size, column, key), report)

    def read(self, path: Path, progress: Progress) -> None:
        """Take the entries of the files at a path; raises BadData where none is a size."""
        entry: Entry = {}
        for entry in read_entries(path, progress=progress):
            self.add(entry)
        if not self._sizes:
            detail = describe_json(entry) or "no entry is a size; give the JSON of `az vm list-skus`"
            raise BadData(detail, file=str(path))

    @property
    def sizes(self) -> frozenset[str]:
        """The keys of the sizes found so far."""
        return frozenset(self._sizes)

    @property
    def places(self) -> frozenset[tuple[str, str]]:
        """The keys of the sizes found so far, each with a region that offers it."""
        return frozenset(self._zones)

    def finish(self, *, day: date, sha256: str) -> Reading:
        """Return the facts of all sizes, as one source of the day; `sha256` is of the files that were read."""
        id_ = self.source.id
        stated = ((key, column, figure) for key, of_size in self._sizes.items() for column, figure in of_size.items())
        facts = (
            StatedFact(
                kind="size",
                subject=self._names[key],
                field=column,
                value=figure.value,
                raw=figure.raw,
                file=id_,
                line=figure.line,
                source=id_,
            )
            for key, column, figure in stated
            if (key, column) not in self._differing
        )
        availability = (
            AvailabilityRow(
                size=self._names[key],
                region=region,
                zones=" ".join(sorted(zones)),
                source=id_,
                file=id_,
                line=self._lines[key, region],
            )
            for (key, region), zones in self._zones.items()
            if self._sizes[key]  # the catalog has no size of which nothing is stated
        )
        return Reading(
            sources=(replace(self.source, published_on=day, sha256=sha256),),
            facts=tuple(facts),
            availability=tuple(availability),
            reports=tuple(self._reports.values()),
            files=(FileRead(kind=self.file_kind, file=id_, sources=frozenset({id_}), states_facts=True),),
        )


# Over HTTP

API_URL = "https://management.azure.com/subscriptions/{subscription}/providers/Microsoft.Compute/skus"
API_VERSION = "2021-07-01"
PAGE_LIMIT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SkuApi:
    """The API of a subscription, whose answer is kept in `folder`; `token` is one of Azure Resource Manager."""

    subscription: str
    token: str = field(repr=False)
    folder: Path
    url: str = API_URL


async def _fetch(api: SkuApi) -> None:
    """Write the pages of an answer into files; raises FetchError."""
    api.folder.mkdir(parents=True, exist_ok=True)
    for page in api.folder.glob("skus-*.json"):  # an answer before may have had more pages
        page.unlink()
    url = httpx.URL(api.url.format(subscription=api.subscription))
    query: bytes | None = url.copy_merge_params({"api-version": API_VERSION}).query
    headers, seen = {"authorization": f"Bearer {api.token}"}, set[bytes]()
    async with httpx.AsyncClient(verify=tls_context(), timeout=TIMEOUT, headers={"user-agent": USER_AGENT}) as client:
        while query is not None:
            if query in seen or len(seen) >= PAGE_LIMIT:
                raise FetchError(f"the answer does not end: page {len(seen)} links to page 1, or there are too many")
            seen.add(query)
            file = api.folder / f"skus-{len(seen)}.json"
            # Only the query of a link is used: the token is sent to no other host.
            await download(client, url.copy_with(query=query), RetryPolicy(), file, headers)
            with open_json(file) as opened:
                link = next(json_items(opened, file, "nextLink"), None)
            query = httpx.URL(link).query or None if isinstance(link, str) and link else None


# Files


def read_entries(
    path: Path,
    *,
    items: str = "value",
    missing: str = "has no entries; give an answer of the Resource SKUs API or of az",
    progress: Progress = no_progress,
) -> Iterator[Entry]:
    """Yield the entries in a file, or in the JSON files of a folder; raises BadData for what is no such answer.

    A file is an answer of the API (`{"value": [...]}`), or the output of `az vm list-skus` or of PowerShell's
    Get-AzComputeResourceSku (`[...]`), whose keys begin with capitals. `items` names the list in an answer.
    """
    entries = 0
    for file in sku_files(path):
        with open_json(file) as opened:
            while (byte := opened.read(1)).isspace():
                pass
            opened.seek(0)
            prefix, has_entries = "item" if byte == b"[" else f"{items}.item", False
            for entry in json_items(opened, file, prefix):
                if not isinstance(entry, dict):
                    raise BadData("has something else than objects in its list", file=str(file))
                has_entries, entries = True, entries + 1
                if entries % 1_000 == 0:
                    progress("reading entries", None, entries)
                yield _camel_case(entry) if "ResourceType" in entry else entry
            if not has_entries:
                raise BadData(missing, file=str(file))


def _camel_case(value: Any) -> Any:
    if isinstance(value, dict):
        return {f"{key[:1].lower()}{key[1:]}": _camel_case(item) for key, item in value.items()}
    return [*map(_camel_case, value)] if isinstance(value, list) else value


def sku_files(path: Path) -> list[Path]:
    """Return the files of answers: a file as it is, or the JSON files of a folder by name."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise BadData("has no JSON file in it", file=str(path))
    return files


def digest_of(path: Path) -> str:
    """Return the sha256 of the sha256 of each file, in the order in which they are read."""
    files = sku_files(path)
    for file in files:
        refuse_special_file(file)
    return sha256("".join(map(sha256_of, files)).encode()).hexdigest()


# The run


@dataclass(frozen=True, slots=True, kw_only=True)
class SkuRefresh:
    """What a refresh of sizes found; `refused` says why nothing of it was taken, if it was not."""

    entries: int
    sizes: int
    facts: int
    refused: str | None


def run_sku_refresh(
    engine: Engine,
    origin: Path | SkuApi,
    mapper_type: type[SkuMapper],
    *,
    day: date,
    accept: bool = False,
    **options: Unpack[IngestOptions],
) -> tuple[SkuRefresh, IngestOutcome | None]:
    """Write what an API says of sizes on a day, from saved answers or fetched ones.

    Returns the outcome of the ingest, None where too many of the sizes or of their regions are gone. Raises BadData for
    files that cannot be read, FetchError for what cannot be fetched.
    """
    progress = options.get("progress", no_progress)
    if isinstance(origin, SkuApi):
        progress("fetching sizes", None)
        asyncio.run(_fetch(origin))
    path = origin.folder if isinstance(origin, SkuApi) else origin
    with read_session(engine) as session:
        regions, identify = load_region_codes(session), load_subject_keys(session, Reading()).size_key
        providers, stated_by = load_size_providers(session)
    provider = provider_of(mapper_type.source.publisher).id
    others = {key for key in stated_by if providers[key] != provider}
    mapper = mapper_type(regions=frozenset(regions), identify=identify, other_providers=others)
    mapper.read(path, progress)
    fact, availability = table_of(Fact).c, table_of(Availability).c
    stated = select(fact.subject).where(fact.source_id == mapper.source.id, fact.kind == "size").distinct()
    offered = select(availability.size_key, availability.region).where(availability.source_id == mapper.source.id)
    with read_session(engine) as session:
        sizes, places = {*session.execute(stated).scalars()}, {*map(tuple, session.execute(offered))}
    reading, refused = mapper.finish(day=day, sha256=digest_of(path)), None
    if not accept:
        refused = find_loss("sizes", sizes, mapper.sizes)
        refused = refused or find_loss("regions of sizes", places, mapper.places)
    refresh = SkuRefresh(entries=mapper.entries, sizes=len(mapper.sizes), facts=len(reading.facts), refused=refused)
    return refresh, None if refused else ingest(engine, reading, **options)
