"""What the catalog has: names and numbers that questions are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx

from benchmarks.search.bodies import MODELS

NUMBERS: Mapping[str, Sequence[float | str]] = {
    "gpu_mem": (1, 16, 24, 79.2, 80, 141, 192, 320, 640, 1128),
    "gpu_mem_per_gpu": (8, 15.5, 16, 24, 40, 80, 94, 141, 288),
    "gpus": (0, "1/6", "1/3", 0.5, 1, 2, 4, 8, 16),
    "vcpus": (1, 2, 4, 6, 8, 24, 48, 64, 96, 128, 416),
    "memory": (0.5, 3.5, 8, 16, 32, 64, 256, 900, 1900, 4096),
    "local_disk": (1, 64, 150, 360, 1000, 2948, 28_000),
    "network_gbps": (0.5, 8, 12.5, 25, 40, 80, 160, 200),
    "infiniband_gbps": (56, 100, 200, 400, 3200),
    "usd_per_hour": (0, 0.05, 0.1, 0.526, 1, 3.673, 10, 27.2, 98.32, 400),
    "limit": (1, 2, 3, 7, 10, 20, 33, 50, 100, 500),
    "hours_per_month": (1, 160, 200.5, 730, 744),
    "hours": (1, 24, 168.5, 2000),
    "max_nodes": (1, 2, 3, 4, 8, 100),
    "budget_usd_per_month": (20, 300, 5_000, 15_000, 100_000.5, 2_000_000),
    "count": (1, 2, 3, 8, 50),
    "min_percent": (0, 1, 5, 12.5, 50),
    "revision": (0, 1, 2),
    "min_gib": (4, 128, 1000, 4096),
    "min_iops": (120, 500, 5000, 20_000),
    "max_successors": (1, 3, 5, 20),
}
"""Numbers by the name of the parameter, without min_ or max_ where both are known."""
DAYS = ("2023-06-01", "2024-01-01", "2024-07-15", "2025-03-31", "2025-12-31", "2026-02-01", "2026-06-18", "2026-08-22")
LATE_DAYS = ("2026-11-01", "2026-12-31", "2027-05-31", "2028-05-01")
CURRENCIES = ("EUR", "GBP", "JPY", "INR", "usd", "USD", "CHF", "BRL", "XTS")
DISKS = ("premium_ssd:128", "premium_ssd:1024", "standard_ssd:512", "standard_hdd:4096", "premium_ssd_v2:100:3000:125")
WORDS = ("h100", "nd", "v5", "gpu", "amd", "d4s", "arm", "standard_e", "mi300x", "zzz")


@dataclass(slots=True)
class Values:
    """Names of the catalog by what they name, and the prices of its sizes in regions that are often asked for.

    A bound that is the price of a size tells whether the bound itself is included.
    """

    names: dict[str, list[str]] = field(default_factory=dict)
    usd_per_hour: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, client: httpx.Client, rng: Random) -> "Values":
        """Read the names from a service."""
        rows: list[Mapping[str, Any]] = []
        target = "/sizes?status=any&limit=500&fields=name,gpu_count"
        while target:
            page = client.get(target).raise_for_status().json()
            rows += page["items"]
            cursor = page["next_cursor"]
            target = f"/sizes?status=any&limit=500&fields=name,gpu_count&cursor={cursor}" if cursor else ""
        with_gpu = [row["name"] for row in rows if row["gpu_count"] != 0]
        without = [row["name"] for row in rows if row["gpu_count"] == 0]
        sizes = [*with_gpu, *rng.sample(without, 250)]

        def ids(path: str, name: str = "id") -> list[str]:
            return [str(row[name]) for row in client.get(f"{path}?limit=500").raise_for_status().json()["items"]]

        prices: list[str] = []
        for region in ("", "&region=eastus", "&region=westeurope"):
            priced = client.get(f"/sizes?limit=500&sort=usd_per_hour&fields=usd_per_hour{region}").raise_for_status()
            prices += [str(row["usd_per_hour"]) for row in priced.json()["items"] if row["usd_per_hour"] is not None]

        return cls(
            {
                "size": sizes,
                "series": ids("/series"),
                "gpu": ids("/gpus"),
                "region": ids("/regions", "code"),
                "model": [*ids("/models"), *MODELS],
                "source": ids("/sources"),
            },
            prices,
        )

    def size(self, rng: Random) -> str:
        """Return a name of a size, as people write it."""
        name = rng.choice(self.names["size"])
        return rng.choice((name, name, name.removeprefix("Standard_"), name.removeprefix("Standard_").lower()))

    def pattern(self, rng: Random) -> str:
        """Return a glob of names."""
        name = rng.choice(self.names["size"]).removeprefix("Standard_")
        cut = rng.randint(1, len(name))
        return rng.choice(
            (f"*{name[:cut]}*", f"Standard_{name[:cut]}*", f"*{name[cut:]}", f"{name[:cut]}?{name[cut + 1 :]}")
        )

    def number(self, rng: Random, name: str) -> str:
        """Return a number for a parameter."""
        if name.endswith("usd_per_hour") and rng.random() < 0.7:
            return rng.choice(self.usd_per_hour)
        return number(rng, name)


def number(rng: Random, name: str) -> str:
    """Return a number for a parameter whose values are not of the catalog."""
    for key in (name, name.removeprefix("min_").removeprefix("max_")):
        if key in NUMBERS:
            return str(rng.choice(NUMBERS[key]))
    return str(rng.choice((0, 1, 2, 10, 100)))
