"""Suggestions for unknown names: the right one, or none."""

from os.path import commonprefix
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog.names import Category
from app.catalog.providers import PROVIDER_IDS
from app.catalog.queries.params import SORT_KEYS, Arch, FitSearch, SizeSearch, Status
from app.catalog.queries.prices import AllPricesSearch
from app.nearest import SYNONYMS, closest_spellings, join_with_or, nearest, starting_with
from app.schemas.fit_request import ConstraintsIn

FILTERS, PRICES, CONSTRAINTS, FIT = (
    tuple(one.model_fields) for one in (SizeSearch, AllPricesSearch, ConstraintsIn, FitSearch)
)


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("gpu_model", FILTERS, "gpu"), ("gpu_name", FILTERS, "gpu"), ("gpu_count", FILTERS, "min_gpus"),
        ("gpu_memory_gib", FILTERS, "min_gpu_mem"), ("min_vram", FILTERS, "min_gpu_mem"),
        ("min_gpu_memory", FILTERS, "min_gpu_mem"), ("spot", FILTERS, "purchase=spot"), ("page", FILTERS, "cursor"),
        ("offset", FILTERS, "cursor"), ("regions", FILTERS, "region"), ("region", CONSTRAINTS, "regions"),
        ("max_usd_per_hour", CONSTRAINTS, "budget_usd_per_month"), ("price", SORT_KEYS, "usd_per_hour"),
        ("memory", SORT_KEYS, "memory_gib"), ("min_gpu_men", FILTERS, "min_gpu_mem"), ("reigon", FILTERS, "region"),
        ("quantization", ("dtype", "utilization"), "dtype"), ("Limit", FILTERS, "limit"), ("q", ("fp32",), None),
        ("sort", PRICES, None), ("quantization", ("utilization",), None), ("max_usd_per_hour", ("max_hours",), None),
        ("colour", FILTERS, None), ("os", ("q",), None), ("x" * 100_000, FILTERS, None),
        ("max_network_gbps", FILTERS, None), ("max_network", FILTERS, None), ("max_nics", FILTERS, None),
        ("min_budget_usd_per_month", FIT, None), ("cpu_vendor", FIT, None), ("cpu", FIT, None), ("max_cpu", FIT, None),
        ("cpus", FIT, "min_vcpus"), ("cpu_vendr", FILTERS, "cpu_vendor"), ("max_gpu", FILTERS, "max_gpus"),
        ("min_vpus", FILTERS, "min_vcpus"), ("cloud", FILTERS, "provider"), ("UK", ("FR", "GB"), "GB"),
        ("zone", FILTERS, "min_zones"), ("zones", FILTERS, "min_zones"), ("min_zone", FILTERS, "min_zones"),
        ("nam", FILTERS, "name"), ("nam", ("name", "nama"), None), ("eue", ("eur", "usd"), None), ("nm", FILTERS, None),
        ("nc6", ("nc6s",), None), ("Google Cloud", PROVIDER_IDS, "gcp"), ("amazon", PROVIDER_IDS, "aws"),
    ],
)  # fmt: skip
def test_a_suggestion_means_what_was_meant(name: str, known: tuple[str, ...], meant: str | None) -> None:
    assert nearest(name, known) == (() if meant is None else (meant,))


def test_every_synonym_suggests_a_known_name() -> None:
    from app.fit.formulas.quantization import BITS  # noqa: PLC0415  # only here

    there = {*FILTERS, *PRICES, *CONSTRAINTS, *SORT_KEYS, *BITS, "cost_per_hour"}
    there |= {*get_args(Arch), *get_args(Category), *get_args(Status), *PROVIDER_IDS, "GB"}
    there |= {"context_tokens", "sequence_tokens", "dtype", "concurrency", "fields", "train"}
    for word, meant in SYNONYMS.items():
        assert [one for one in meant if one.partition("=")[0] in there], word


def test_a_prefix_is_preferred_to_a_typo() -> None:
    sizes = ("nc24", "nc24ads_a100_v4", "nc24rs_v3")
    assert starting_with("nc24ads", sizes) == ("nc24ads_a100_v4",)
    assert starting_with("nd40rs_v3", ("nd40rs_v2", "nd96asr_v4")) == ("nd40rs_v2",)


def test_region_codes_of_another_cloud_are_no_typos() -> None:
    assert closest_spellings("useast1", ("eastus", "eastus2", "austriaeast")) == ()
    assert closest_spellings("estus", ("eastus", "westus")) == ("eastus",)


def typos_between(one: str, other: str) -> int:
    """Return the optimal string alignment distance as textbooks have it."""
    rows = [list(range(len(other) + 1))]
    for index, letter in enumerate(one, 1):
        row = [index]
        for place, against in enumerate(other, 1):
            row.append(min(rows[-1][place] + 1, row[-1] + 1, rows[-1][place - 1] + (letter != against)))
            if min(index, place) > 1 and (one[index - 2], letter) == (against, other[place - 2]):
                row[-1] = min(row[-1], rows[-2][place - 2] + 1)
        rows.append(row)
    return rows[-1][-1]


@given(st.lists(st.text("ab4v", min_size=6, max_size=10), max_size=8), st.text("ab4v", min_size=4, max_size=10))
def test_names_within_the_allowed_typos_are_found_nearest_first(known: list[str], name: str) -> None:
    allowed = 2 if len(name) >= 8 else 1
    near = sorted((typos_between(name, one), -len(commonprefix((name, one))), one) for one in known)  # noqa: RUF071
    assert closest_spellings(name, known, 8) == tuple(one for far, _, one in near if far <= allowed)


@pytest.mark.parametrize(
    ("words", "text"), [((), ""), (("a",), "a"), (("a", "b"), "a or b"), (("a", "b", "c", "d"), "a, b, c or d")]
)
def test_alternatives_have_commas_before_the_last(words: tuple[str, ...], text: str) -> None:
    assert join_with_or(words) == text
