"""Synthetic catalogs of any scale, deterministic: realistic in structure, not in figures.

What matters for speed is kept from the real catalog: a few dozen distinct GPU memories, prices that grow with them,
sizes that are priced in about half of the regions, Linux and Windows, on demand and spot, and a history of each price.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from app.catalog.column_types import table_of
from app.catalog.fields import SIZE_FLAGS
from app.catalog.models import Size

SOURCE, TODAY = "made-up", date(2026, 9, 1)
REGIONS = ("eastus", *(f"region{number:02}" for number in range(1, 40)))
GPU_MEMORIES = (4, 8, 12, 16, 24, 32, 40, 48, 80, 94, 141, 192, 288)
GPU_COUNTS = ((1, 8), (1, 4), (1, 2), (1, 1), (2, 1), (4, 1), (8, 1), (16, 1))
VCPUS = (2, 4, 8, 12, 16, 24, 32, 40, 48, 64, 96, 128, 192)
SHARE_WITH_GPU = 0.3
SIZES_A_SERIES = 20
SYSTEMS = (("linux", ("on_demand", "spot")), ("windows", ("on_demand",)))
NEWEST, STEP = date(2026, 6, 1), timedelta(days=61)

TableRow = dict[str, Any]
PriceRow = tuple[str, str, str, str, str, str, str, str, int, bool]
PRICE_COLUMNS = (
    *("size_key", "region", "os", "purchase", "valid_from", "source_id", "known_from", "seen_until"),
    *("nano_usd_per_hour", "approximate_date"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The number of sizes and prices of a catalog; `prices` are spread evenly, so it is a multiple of `sizes`."""

    sizes: int
    prices: int

    @property
    def name(self) -> str:
        """Return the scale as text: `1,000 sizes, 200,000 prices`."""
        return f"{self.sizes:,} sizes, {self.prices:,} prices"


SMALL = Scale(sizes=1_000, prices=200_000)
MIDDLE = Scale(sizes=10_000, prices=2_000_000)
FEW, PROMISED, MANY = (Scale(sizes=sizes, prices=10 * sizes) for sizes in (1_000, 10_000, 100_000))
"""Ten prices a size: the scales of what grows with the number of sizes, of which the second is promised."""
GROWN = Scale(sizes=10_000, prices=0)
"""The number of sizes up to which the growth of answers is bounded; the prices of a catalog of seeds are theirs."""


def small_tables(scale: Scale) -> dict[str, list[TableRow]]:
    """Build the rows of every table that sizes and prices refer to, and one revision."""
    count = -(-scale.sizes // SIZES_A_SERIES)
    told = {"title": "Made up", "publisher": "benchmarks", "kind": "third_party", "url": "https://example.org/made-up"}
    return {
        "source": [{"id": SOURCE, **told, "published_on": "2026-01-01", "sha256": "0" * 64}],
        "region": [{"code": code, "name": code.title(), "geography": None, "source_id": SOURCE} for code in REGIONS],
        "series": [{"id": f"series{n:05}", "name": f"Made-up {n}", "provider": "azure"} for n in range(count)],
        "gpu": [_gpu(memory) for memory in GPU_MEMORIES],
        "revision": [
            {
                "number": 1,
                "created_at": "2026-09-01 00:00:00.000000",
                "digest": "0" * 64,
                "source_ids": f'["{SOURCE}"]',
                "counts": f'{{"size": {scale.sizes}, "price": {scale.prices}}}',
            }
        ],
    }


def _gpu(memory: int) -> TableRow:
    model = f"Made-up {memory}GB"
    told = {"id": f"made-up-{memory}gb", "vendor": "NVIDIA", "model": model, "family": "Made-up", "memory_gib": memory}
    figures = {"memory_bandwidth_gb_per_s": 25.0 * memory, "fp16_tflops": 8.0 * memory, "bf16_tflops": 8.0 * memory}
    return told | {"compute_capability": "9.0"} | figures


def sizes(scale: Scale) -> Iterator[TableRow]:
    """Yield the sizes in the order of their keys; every row has every column."""
    every = {column.name: None for column in table_of(Size).columns}
    for index in range(scale.sizes):
        yield every | _size(index, random.Random(f"size {index}"))


def name_of(index: int) -> str:
    """Return the name of a size by its place among all of a scale."""
    return str(_size(index, random.Random(f"size {index}"))["name"])


def _size(index: int, rng: random.Random) -> TableRow:
    gpu = _gpu_part(rng) if rng.random() < SHARE_WITH_GPU else {}
    vcpus = rng.choice(VCPUS)
    disputed = rng.random() < 0.05
    key, series = f"s{index:06}_v{vcpus}", f"series{index // SIZES_A_SERIES:05}"
    return {
        "key": key,
        "name": f"Standard_{key.upper()}",
        "provider": "azure",
        "series_id": series,
        "verified": True,
        "disputed": disputed,
        "disputed_fields": "vcpus" if disputed else "",
        "search_text": f"standard_{key} {series} {gpu.get('gpu_model', '')}".lower(),
        "vcpus": vcpus,
        "cpu_model": "Made-up CPU",
        "arch": "arm64" if rng.random() < 0.1 else "x64",
        "memory_gib": float(vcpus * rng.choice((2, 4, 8, 16))),
        **gpu,
        "temp_disk_gib": float(vcpus * 32) if rng.random() < 0.7 else None,
        "max_data_disks": min(64, 2 * vcpus),
        "uncached_disk_iops": 800 * vcpus,
        "uncached_disk_mbps": 12.5 * vcpus,
        "max_nics": min(8, 1 + vcpus // 8),
        "network_mbps": 1000 * vcpus,
        "retirement_date": rng.choices((None, "2020-03-31", "2099-03-31"), (90, 5, 5))[0],
        "preview": rng.random() < 0.05,
        **{flag: rng.random() < 0.7 for flag in SIZE_FLAGS},
        "source_id": SOURCE,
    }


def _gpu_part(rng: random.Random) -> TableRow:
    memory, (numerator, denominator) = rng.choice(GPU_MEMORIES), rng.choice(GPU_COUNTS)
    linked = memory >= 80 and numerator > 1
    return {
        "gpu_id": f"made-up-{memory}gb",
        "gpu_vendor": "NVIDIA",
        "gpu_model": f"Made-up {memory}GB",
        "gpu_count": numerator / denominator,
        "gpu_count_numerator": numerator,
        "gpu_count_denominator": denominator,
        "gpu_memory_gib": round(memory * numerator / denominator, 2),
        "gpu_memory_gib_per_gpu": float(memory),
        "gpu_interconnect": "NVLink" if linked else "PCIe",
        "nvlink": linked,
        "infiniband": linked,
        "infiniband_gbps": 400.0 * numerator if linked else None,
    }


def prices_of(size: TableRow, count: int) -> Iterator[PriceRow]:
    """Yield exactly `count` prices of a size in the order of the table's key; the newest of each kind is in force."""
    rng = random.Random(f"prices {size['key']}")
    kinds = _kinds(rng)
    each, more = divmod(count, len(kinds))
    base = 0.045 * size["vcpus"] + 0.035 * (size["gpu_memory_gib"] or 0)
    base *= rng.uniform(0.7, 1.4)
    for index, (region, os, purchase, factor) in enumerate(kinds):
        points = each + (index < more)
        newest = NEWEST - STEP * rng.randrange(3)
        for age in range(points - 1, -1, -1):
            nano = round((base * factor * (1 + 0.02 * age) + 0.0001) * 1e6) * 1_000
            day = (newest - STEP * age).isoformat()
            yield size["key"], region, os, purchase, day, SOURCE, TODAY.isoformat(), day, nano, False


def _kinds(rng: random.Random) -> list[tuple[str, str, str, float]]:
    """Return what a size is sold as: region, system, purchase model, and the factor of its price."""
    here = sorted({"eastus", *rng.sample(REGIONS, 19)})
    has_spot = rng.random() < 0.9
    kinds = []
    for region in here:
        factor = 1.0 + 0.01 * REGIONS.index(region)
        for os, purchases in SYSTEMS:
            for purchase in purchases:
                if purchase == "on_demand" or has_spot:
                    share = rng.uniform(0.2, 0.6) if purchase == "spot" else 1.0
                    kinds.append((region, os, purchase, factor * share * (1.4 if os == "windows" else 1.0)))
    return kinds
