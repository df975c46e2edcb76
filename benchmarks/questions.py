"""Questions of a filter panel: every one valid, nearly every one of a set of parameters that was not asked before."""

import random
from collections.abc import Callable, Iterator
from urllib.parse import urlencode

from benchmarks.catalogs import GPU_MEMORIES, REGIONS, VCPUS, Scale, sizes

Choice = Callable[[random.Random], object]

REGION = 0.85
"""The share of questions that name a region."""

FILTERS: dict[str, tuple[float, Choice]] = {
    "os": (0.1, lambda _rng: "windows"),
    "purchase": (0.15, lambda rng: rng.choice(("spot", "savings_1y", "reserved_3y"))),
    "q": (0.1, lambda rng: rng.choice(("standard", f"series{rng.randrange(50):05}", f"_v{rng.choice(VCPUS)}"))),
    "name": (0.05, lambda rng: f"s{rng.randrange(10):03}*"),
    "series": (0.08, lambda rng: ",".join(f"series{rng.randrange(50):05}" for _ in range(rng.randint(1, 3)))),
    "gpu": (0.12, lambda rng: ",".join(f"Made-up {m}GB" for m in rng.sample(GPU_MEMORIES, rng.randint(1, 3)))),
    "gpu_vendor": (0.05, lambda _rng: "NVIDIA"),
    "status": (0.15, lambda rng: ",".join(rng.sample(("preview", "current", "retiring"), rng.randint(1, 2)))),
    "available_in": (0.08, lambda rng: ",".join(rng.sample(REGIONS, rng.randint(1, 2)))),
    "min_gpu_mem": (0.3, lambda rng: rng.choice(GPU_MEMORIES)),
    "max_gpu_mem": (0.1, lambda rng: 10 * rng.choice(GPU_MEMORIES)),
    "min_gpu_mem_per_gpu": (0.12, lambda rng: rng.choice(GPU_MEMORIES)),
    "min_gpus": (0.12, lambda rng: rng.choice((1, 2, 4, "1/4"))),
    "min_vcpus": (0.3, lambda rng: rng.choice(VCPUS)),
    "max_vcpus": (0.1, lambda rng: 4 * rng.choice(VCPUS)),
    "min_memory": (0.25, lambda rng: 8 * rng.choice(VCPUS)),
    "min_local_disk": (0.1, lambda rng: 32 * rng.choice(VCPUS)),
    "min_network_gbps": (0.1, lambda rng: rng.choice((4, 16, 50))),
    "arch": (0.1, lambda rng: rng.choice(("x64", "arm64"))),
    "disputed": (0.08, lambda rng: rng.choice(("true", "false"))),
    "infiniband": (0.08, lambda _rng: "true"),
    "nvlink": (0.08, lambda _rng: "true"),
    "premium_storage": (0.1, lambda _rng: "true"),
    "max_usd_per_hour": (0.3, lambda rng: round(rng.uniform(1, 100), 2)),
    "min_usd_per_hour": (0.08, lambda rng: round(rng.uniform(0, 2), 2)),
    "limit": (0.5, lambda rng: rng.choice((20, 25, 100))),
}
"""The controls of a panel: how often each is used, and for what."""

SORTS = (
    *("usd_per_hour", "usd_per_hour", "usd_per_hour", "name", "-gpu_memory_gib,usd_per_hour", "-vcpus"),
    *("usd_per_gpu_hour", "memory_gib", "-network_mbps"),
)


def panel_query(rng: random.Random) -> str:
    """Return the query string of one question."""
    asked: dict[str, object] = {}
    if rng.random() < REGION:
        regions = 2 if rng.random() < 0.1 else 1
        asked["region"] = ",".join(rng.sample(REGIONS, regions))
    asked |= {name: choose(rng) for name, (share, choose) in FILTERS.items() if rng.random() < share / 2}
    if rng.random() < 0.8:
        asked["sort"] = rng.choice(SORTS)
    return urlencode(asked, safe="/,*")


def panel_questions(count: int, seed: int = 1) -> list[str]:
    """Return `count` different targets of `/sizes`."""
    return [f"/sizes?{query}" for query in _different(panel_query, count, seed)]


def random_questions(count: int, scale: Scale, seed: int = 2) -> list[str]:
    """Return `count` different targets over the endpoints that read the catalog, most of them of `/sizes`."""
    names = [str(row["name"]) for row in sizes(scale)]

    def one(rng: random.Random) -> str:
        size = rng.choice(names)
        kinds: tuple[tuple[int, Callable[[], str]], ...] = (
            (50, lambda: f"/sizes?{panel_query(rng)}"),
            (8, lambda: f"/facets?{facets_query(rng)}"),
            (8, lambda: f"/sizes/{size}"),
            (5, lambda: f"/sizes/{size}/similar?limit={rng.randint(1, 50)}"),
            (8, lambda: f"/sizes/{size}/prices?region={rng.choice(REGIONS)}"),
            (5, lambda: f"/sizes/{size}/facts?limit={rng.randint(1, 500)}"),
            (5, lambda: f"/sizes/{size}/cost?region={rng.choice(REGIONS)}&count={rng.randint(1, 99)}"),
            (6, lambda: f"/prices?region={rng.choice(REGIONS)}&limit={rng.randint(1, 500)}"),
            (2, lambda: f"/fit?region={rng.choice(REGIONS)}&min_gpu_mem={rng.randint(1, 900)}"),
            (2, lambda: f"/conflicts?limit={rng.randint(1, 500)}"),
            (1, lambda: f"/series?limit={rng.randint(1, 500)}"),
        )
        ((_, make),) = rng.choices(kinds, [weight for weight, _ in kinds])
        return make()

    return list(_different(one, count, seed))


def facets_query(rng: random.Random) -> str:
    """Return the query string of a question for the facets of a selection: one of a list, without order and page."""
    return "&".join(pair for pair in panel_query(rng).split("&") if not pair.startswith(("sort=", "limit=")))


def _different(make: Callable[[random.Random], str], count: int, seed: int) -> Iterator[str]:
    rng, made = random.Random(seed), dict[str, None]()
    while len(made) < count:
        made[make(rng)] = None
    yield from made
