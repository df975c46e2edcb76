"""Writes offers in the shapes that other programs read: SkyPilot's catalog, gpuhunt's, and `instances.json`.

Their readers take an empty cell for zero or for their own default. So a size whose vCPUs, memory or number of GPUs is
unknown is left out of the two CSV files; in `instances.json` what is unknown is null.
"""

import csv
import io
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from app.catalog.fields import FieldKind
from app.catalog.purchases import PURCHASE_MODELS
from app.formats.text import Columns, TextFormat

Offer = Mapping[str, Any]
"""The columns of `app.catalog.queries.exports` for a size in a region, with an operating system."""

MIB_PER_GIB = 1024


class _OfferCsv(TextFormat):
    """A CSV file of the Linux prices of sizes by region."""

    names: Sequence[str]
    media_type = "text/csv"

    def __init__(self, columns: Mapping[str, FieldKind]) -> None:
        self._columns = tuple(columns)
        self.head = _to_csv([self.names])

    def write(self, columns: Columns) -> bytes:
        """Write a block of rows."""
        offers = (dict(zip(self._columns, row, strict=True)) for row in zip(*columns, strict=True))
        return _to_csv(cells for offer in offers if _is_listed(offer) for cells in self._rows(offer))

    @abstractmethod
    def _rows(self, offer: Offer) -> Iterator[Sequence[Any]]:
        """Yield the rows of an offer."""


class SkyPilotCsv(_OfferCsv):
    """`vms.csv` of a SkyPilot catalog, as `sky.catalog.common` reads it: a row for each size and region.

    Memory and local disks are in GiB, prices in USD an hour.
    """

    names = (
        *("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "GpuInfo"),
        *("Price", "SpotPrice", "Region", "Arch", "LocalDiskType", "LocalDiskSize", "LocalDiskCount", "NVMeSupported"),
    )

    def _rows(self, offer: Offer) -> Iterator[Sequence[Any]]:
        name, count = _accelerator(offer), _gpu_count(offer) or None
        # Whether a temporary disk is an SSD is not known of many sizes.
        disks, gib = _local_disks(offer) if offer["nvme_disk_count"] else (None, None)
        disk: Sequence[Any] = ("ssd", gib, disks, True) if gib else (None, None, None, None)
        yield (
            *(offer["name"], name, count, offer["vcpus"], offer["memory_gib"], _gpu_info(offer, name)),
            *(offer["on_demand"], offer["spot"], offer["region"], _ARCHITECTURES.get(offer["arch"]), *disk),
        )


class GpuhuntCsv(_OfferCsv):
    """A catalog of gpuhunt's version 2: a row for each size, region and whether it is spot; memory in GiB.

    Its number of GPUs is whole, so sizes with a fraction of one are left out.
    """

    names = (
        *("instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory", "spot"),
        *("disk_size", "gpu_vendor", "flags", "cpu_arch", "provider_data"),
    )

    def _rows(self, offer: Offer) -> Iterator[Sequence[Any]]:
        count = _gpu_count(offer)
        if not isinstance(count, int):
            return
        gpu = (count, _bare(offer["gpu_family"]), offer["gpu_memory_gib_per_gpu"]) if count else (0, None, None)
        arch = {"arm64": "arm", "x64": "x86"}.get(offer["arch"])
        vendor = offer["gpu_vendor"].lower() if count else None
        for purchase in ("on_demand", "spot"):
            if offer[purchase] is not None:
                yield (
                    *(offer["name"], offer["region"], offer[purchase], offer["vcpus"], offer["memory_gib"], *gpu),
                    *(purchase == "spot", offer["temp_disk_gib"] or None, vendor, "", arch, "{}"),
                )


class _SizesInOne(TextFormat):
    """A JSON file with an object for each size, which has its prices by region."""

    tail: bytes
    media_type = "application/json"
    needs = ""
    """A field without which a size is left out."""

    def __init__(self, columns: Mapping[str, FieldKind]) -> None:
        self._columns = tuple(columns)
        self._name = ""
        self._size: dict[str, Any] = {}
        self._has_written = False

    def write(self, columns: Columns) -> bytes:
        """Write the sizes that end in a block of rows."""
        written = bytearray()
        for row in zip(*columns, strict=True):
            offer = dict(zip(self._columns, row, strict=True))
            if offer["name"] != self._name:
                written += self._take()
                self._name, self._size = offer["name"], self._begin(offer)
            if offer["region"] is not None:
                self._add_prices(self._size, offer)
        return bytes(written)

    def end(self) -> bytes:
        """Write the last size, and the end of the file."""
        return self._take() + self.tail

    def _take(self) -> bytes:
        if not self._size or not self._size.get(self.needs, True):
            return b""
        separator, self._has_written = b",\n" if self._has_written else b"\n", True
        return separator + orjson.dumps(self._size)

    @abstractmethod
    def _begin(self, offer: Offer) -> dict[str, Any]:
        """Return a size without its prices."""

    @abstractmethod
    def _add_prices(self, size: dict[str, Any], offer: Offer) -> None:
        """Add the prices of a region and operating system."""


class InstancesJson(_SizesInOne):
    """A JSON array with an object for each size, in the shape of the `instances.json` that many programs read.

    Regions are by the provider's own codes. Prices are in USD an hour. A size without any price is left out.
    """

    head, tail, needs = b"[", b"]\n", "pricing"

    def _begin(self, offer: Offer) -> dict[str, Any]:
        disks, gib = _local_disks(offer)
        storage = {"nvme_ssd": bool(offer["nvme_disk_count"]), "devices": disks, "size": gib}
        return {
            "instance_type": offer["name"],
            "pretty_name": offer["name"].removeprefix("Standard_").replace("_", " "),
            "family": offer["series"],
            "category": offer["category"],
            **dict.fromkeys(("vcpu", "vCPU"), offer["vcpus"]),
            "memory": offer["memory_gib"],
            "physical_processor": offer["cpu_model"],
            "arch": [_ARCHITECTURES[offer["arch"]]] if offer["arch"] else [],
            **dict.fromkeys(("gpu", "GPU"), _gpu_count(offer)),
            "GPU_model": offer["gpu_model"],
            "GPU_memory": offer["gpu_memory_gib"],
            "storage": storage if gib else None,
            "network_mbps": offer["network_mbps"],
            "uncached_disk_io": offer["uncached_disk_iops"],
            "premium_io": offer["premium_storage"],
            "accelerated_networking": offer["accelerated_networking"],
            "rdma": offer["infiniband"],
            "trusted_launch": offer["trusted_launch"],
            "hibernation": offer["hibernation"],
            "confidential": offer["confidential_computing"] is not None or None,
            "regions": {},
            "pricing": {},
        }

    def _add_prices(self, size: dict[str, Any], offer: Offer) -> None:
        size["regions"][offer["region"]] = offer["region_name"]
        reserved = {term: offer[purchase] for purchase, term in _TERMS.items() if offer[purchase] is not None}
        prices = {"ondemand": offer["on_demand"], "spot_min": offer["spot"]}
        days = {"ondemand_as_of": offer["on_demand_as_of"], "spot_as_of": offer["spot_as_of"]}
        stated = {name: value for name, value in {**prices, **days}.items() if value is not None}
        size["pricing"].setdefault(offer["region"], {})[offer["os"]] = (
            {**stated, "reserved": reserved} if reserved else stated
        )


class SizesJson(_SizesInOne):
    """`sizes.json`: the figures of each size under the names of the API, and its prices in USD an hour with their days.

    Its version changes when a field goes or changes its meaning; fields are added within a version.
    """

    head, tail = b'{"schema_version":1,"sizes":[', b"]}\n"

    def _begin(self, offer: Offer) -> dict[str, Any]:
        fraction = f"{offer['gpu_count_numerator']}/{offer['gpu_count_denominator']}"
        has_part = (offer["gpu_count_denominator"] or 1) > 1
        flags = {name: None if offer[name] is None else bool(offer[name]) for name in _SIZES_FLAGS}
        return {
            **{name: offer[name] for name in _SIZES_FIELDS},
            "gpu_count": _gpu_count(offer),
            "gpu_fraction": fraction if has_part else None,
            **flags,
            "prices": {},
        }

    def _add_prices(self, size: dict[str, Any], offer: Offer) -> None:
        of_system = {
            purchase: {"usd_per_hour": offer[purchase], "as_of": offer[f"{purchase}_as_of"]}
            | ({"computed": True} if offer[f"{purchase}_formula"] is not None else {})
            for purchase in PURCHASE_MODELS
            if offer[purchase] is not None
        }
        if of_system:
            size["prices"].setdefault(offer["region"], {})[offer["os"]] = of_system


_SIZES_FIELDS = (
    *("name", "provider", "series", "category", "retirement_date", "vcpus", "cpu_model", "arch", "memory_gib"),
    *("gpu_vendor", "gpu_model", "gpu_memory_gib", "gpu_memory_gib_per_gpu"),
    *("temp_disk_gib", "temp_disk_count", "nvme_disk_gib", "nvme_disk_count", "uncached_disk_iops", "network_mbps"),
    "confidential_computing",
)
_SIZES_FLAGS = ("infiniband", "premium_storage", "accelerated_networking", "trusted_launch", "hibernation")
_ARCHITECTURES = {"x64": "x86_64", "arm64": "arm64"}
_TERMS = {
    "reserved_1y": "yrTerm1Standard.allUpfront",
    "reserved_3y": "yrTerm3Standard.allUpfront",
    "savings_1y": "yrTerm1Savings.allUpfront",
    "savings_3y": "yrTerm3Savings.allUpfront",
}


def _is_listed(offer: Offer) -> bool:
    """Check whether an offer has all that the readers of the CSV files need; they have Linux prices only."""
    needed = ("vcpus", "memory_gib", "gpu_count", *(("gpu_family", "gpu_vendor") if offer["gpu_count"] else ()))
    return offer["os"] == "linux" and all(offer[name] is not None for name in needed)


def _accelerator(offer: Offer) -> str | None:
    """Return SkyPilot's name of a GPU: its family, with the memory unless that is the least of the family."""
    memory = offer["gpu_memory_gib_per_gpu"]
    if not offer["gpu_count"]:
        return None
    has_more = memory is not None and memory > offer["smallest_gpu_memory_gib"]
    return f"{_bare(offer['gpu_family'])}-{memory:g}GB" if has_more else _bare(offer["gpu_family"])


def _local_disks(offer: Offer) -> tuple[int | None, float | None]:
    """Return the number of local disks and the GiB of each: NVMe disks if there are any, else temporary ones."""
    kind = "nvme" if offer["nvme_disk_count"] else "temp"
    count, gib = offer[f"{kind}_disk_count"], offer[f"{kind}_disk_gib"]
    return count, gib / count if count and gib is not None else gib


def _gpu_count(offer: Offer) -> float | int | None:
    """Return the number of GPUs: an integer, unless it is a fraction, which has four digits as in a list of sizes."""
    count = offer["gpu_count"]
    return int(count) if count is not None and count % 1 == 0 else count and round(count, 4)


def _bare(family: str) -> str:
    return family.replace(" ", "")


def _gpu_info(offer: Offer, name: str | None) -> str | None:
    """Return what SkyPilot reads as a literal of Python, the GPUs and their memory in MiB; None without the memory."""
    per_gpu, total = offer["gpu_memory_gib_per_gpu"], offer["gpu_memory_gib"]
    if name is None or per_gpu is None or total is None:
        return None
    memory = {"SizeInMiB": round(per_gpu * MIB_PER_GIB)}
    gpu = {"Name": name, "Manufacturer": offer["gpu_vendor"], "Count": _gpu_count(offer), "MemoryInfo": memory}
    return repr({"Gpus": [gpu], "TotalGpuMemoryInMiB": round(total * MIB_PER_GIB)})


def _to_csv(rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
