"""What a search leaves out because a figure is unknown is counted, and told wherever a list is empty for it."""

import csv
import html
import random
from collections import Counter
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import httpx
import pytest

from app.catalog.fields import SHOWN_FIELDS, field_title
from app.catalog.queries.facets import unknown_note
from app.catalog.queries.params import FILTERED_FIELDS, SizeSelection
from tests.command_line import run_command
from tests.conftest import TODAY
from tests.seeded import PROJECT
from tests.walks import walk

pytestmark = pytest.mark.one_database  # counted in memory, as facets are

QUESTIONS = 100
"""For each place."""
EVERY = 10
"""How many of them are asked of the API alone, and one more of facets, page and command line, too."""
BROWSER = {"accept": "text/html"}
ORDERABLE = "preview,current,retiring"
"""What the API lists by default, and a page only where it is asked."""
FIELD_OF = {
    "cpu": "cpu_model",
    **{name: field for name, field in FILTERED_FIELDS.items() if name not in SizeSelection.model_fields},
}
OF_ONE_GPU = {"min_gpu_mem_per_gpu", "max_gpu_mem_per_gpu"}
"""Filters that have rules of their own for a part of a GPU."""
LACKING_WITHOUT_GPUS = {"nvlink", "gpudirect_rdma", "gpu_memory_gib"}


def is_unknown(item: dict[str, Any], field: str) -> bool:
    lacking = field in LACKING_WITHOUT_GPUS and item["gpu_count"] == 0
    lacking |= field == "infiniband_gbps" and item["infiniband"] is False
    return item[field] is None and not lacking


def meets(name: str, known: Any, value: Any) -> bool:
    if known is None or isinstance(value, bool):
        return known is value
    if name == "cpu":
        return fnmatchcase(f" {known} ".lower().translate({ord("("): None, ord(")"): None}), f"* {value.lower()} *")
    if name == "disk_controller":
        return value.lower() in known.lower().split(", ")
    if name.startswith("min_"):
        return bool(float(known) >= value * (1000 if name == "min_network_gbps" else 1))
    return bool(float(known) <= value if name.startswith("max_") else known.lower() == value.lower())


def brute_force(items: list[dict[str, Any]], search: dict[str, Any]) -> tuple[int, Counter[str]]:
    """Return how many sizes meet a search, and how many more may, by the figures that are unknown of them."""
    total, unknown = 0, Counter[str]()
    for item in items:
        open_fields = {FIELD_OF[name] for name in search if is_unknown(item, FIELD_OF[name])}
        if search.get("fabric") == "InfiniBand" and item["infiniband"] is False:
            open_fields.discard("fabric")
        asked = {name: value for name, value in search.items() if FIELD_OF[name] not in open_fields}
        if all(meets(name, item[FIELD_OF[name]], value) for name, value in asked.items()):
            total += not open_fields
            unknown.update(open_fields)
    return total, unknown


def zones_in(region: str) -> dict[str, int]:
    """Return in how many zones of a region the sizes are that the list has there."""
    with (PROJECT / "seeds/availability/azure-availability-2026-08-01.csv").open() as file:
        cells = {row["size"]: row[region] for row in csv.DictReader(file)}
    return {name: len(zones.replace("-", "").split()) for name, zones in cells.items() if zones}


def random_searches(items: list[dict[str, Any]], seed: int) -> Iterator[dict[str, Any]]:
    """Yield searches by one to four filters, with values that some sizes have."""
    chance = random.Random(seed)
    values = {name: [item[field] for item in items if item[field] is not None] for name, field in FIELD_OF.items()}
    to_value: dict[str, Callable[[Any], Any]] = {
        "cpu": lambda model: f"{' '.join(model.split()[:2])}*",
        "min_network_gbps": lambda mbps: mbps / 1000,
        "disk_controller": lambda names: names.split(", ")[0],
    }
    for _ in range(QUESTIONS):
        names = chance.sample(
            sorted(name for name in FIELD_OF.keys() - OF_ONE_GPU if values[name]), chance.randint(1, 4)
        )
        search = {name: to_value.get(name, lambda value: value)(chance.choice(values[name])) for name in names}
        search = {
            name: float(value) if SHOWN_FIELDS[FIELD_OF[name]].kind in ("number", "fraction") else value
            for name, value in search.items()
        }
        # A greatest value below the least is an error.
        yield {
            name: value
            for name, value in search.items()
            if not name.startswith("max_") or search.get(name.replace("max_", "min_"), value) <= value
        }


@pytest.mark.takes_seconds
@pytest.mark.parametrize("place", [{}, {"region": "westeurope"}], ids=["anywhere", "a region"])
def test_lists_facets_pages_and_commands_count_what_is_unknown_as_brute_force_does(
    client: httpx.Client, seeded_url: str, place: dict[str, str]
) -> None:
    items = walk(client, "/sizes", **place)
    zones = zones_in(place["region"]) if place else {}
    for item in items:
        item["zones"] = zones.get(item["name"])
        disks = {item[name] for name in ("temp_disk_gib", "nvme_disk_gib") if item[name] is not None}
        item["local_disk_gib"] = sum(disks) if disks else None  # of equal size they are one disk
    for number, search in enumerate(random_searches(items, seed=34 + len(place))):
        page = client.get("/sizes", params={**search, **place, "limit": 1}).raise_for_status().json()
        assert (page["total"], page["unknown"]) == brute_force(items, search), search
        if number % EVERY == 0:
            facets = client.get("/facets", params={**search, **place}).raise_for_status().json()
            undecided = {one["value"]: one["count"] for one in facets["undecided"]["fields"]}
            assert (facets["total"], undecided) == (page["total"], page["unknown"]), search
            assert facets["undecided"]["detail"] == unknown_note(undecided, facets["undecided"]["total"])
            titles = {field_title(field): count for field, count in undecided.items()}
            shown = (
                client.get("/", headers=BROWSER, params={**search, **place, "status": ORDERABLE})
                .raise_for_status()
                .text
            )
            assert f"{unknown_note(titles, facets['undecided']['total']) or ''}" in html.unescape(shown), search
            assert ("may match:" in shown) == bool(undecided), search
            options = []
            for name, value in (search | place).items():
                option = name.replace("_", "-")
                options.append(
                    f"--{option}={value}" if not isinstance(value, bool) else f"--{'no-' * (not value)}{option}"
                )
            told = run_command(seeded_url, "search", *options, today=lambda: TODAY).stderr
            assert (unknown_note(undecided) or "") in told, options
            assert ("may match" in told) == bool(undecided), options


def test_a_search_without_bounds_is_decided(client: httpx.Client) -> None:
    answer = client.get("/facets", params={"gpu": "A100"}).raise_for_status().json()
    assert answer["undecided"] == {"total": 0, "fields": [], "detail": None}
    assert client.get("/sizes", params={"gpu": "A100"}).raise_for_status().json()["unknown"] == {}


def test_a_text_that_is_unknown_is_counted_as_a_figure_is(client: httpx.Client) -> None:
    page = client.get("/sizes", params={"disk_controller": "NVMe", "cpu": "EPYC*", "limit": 500}).json()
    assert {"disk_controller", "cpu_model"} <= page["unknown"].keys()


def test_the_note_names_the_figure(client: httpx.Client) -> None:
    answer = client.get("/facets", params={"min_uncached_disk_iops": 1, "name": "*HB*"}).raise_for_status().json()
    total = answer["undecided"]["total"]
    assert total > 10
    assert answer["undecided"]["detail"] == f"{total} more sizes may match: uncached_disk_iops is unknown for {total}"


def test_a_size_that_is_known_to_have_no_infiniband_does_not_count_for_it(client: httpx.Client) -> None:
    asked = {"name": "standard_nc24ads_a100_v4"}
    (size,) = client.get("/sizes", params=asked).json()["items"]
    assert (size["infiniband"], size["fabric"]) == (False, None)
    page = client.get("/sizes", params={**asked, "fabric": "InfiniBand"}).json()
    assert (page["total"], page["unknown"]) == (0, {})
    infiniband = client.get("/sizes", params={"infiniband": True, "limit": 1}).json()
    every = client.get("/sizes", params={"fabric": "InfiniBand", "limit": 1}).json()
    assert (every["total"], every["unknown"]["fabric"]) == (infiniband["total"], infiniband["unknown"]["infiniband"])
