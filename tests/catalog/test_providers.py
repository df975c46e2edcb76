import csv
import re
from datetime import date

import pytest

from app.catalog.names import region_key, size_key
from app.catalog.providers import (
    DEFAULT_PROVIDER,
    PROVIDER_IDS,
    PROVIDERS,
    Provider,
    provider_of,
    provider_of_region,
    split_provider,
)
from app.catalog.resolution.reconcile import (
    FactRow,
    ResolutionContext,
    SourceAuthority,
    Spelling,
    authority_order,
    reconcile,
)
from app.catalog.resolution.subjects import SubjectKeys
from app.settings import PROJECT

OTHER = Provider(
    id="other",
    name="Another cloud",
    region_separators=re.compile(r"\s"),
    region_code=re.compile(r"[a-z]+(-[a-z]+)+-?[0-9]"),
    region_code_hint="words and a number, written like us-east-1",
    api_fields=frozenset({"vcpus"}),
)


def test_regions_that_differ_by_a_hyphen_stay_two_where_the_hyphen_counts() -> None:
    assert region_key(" US-East-1", OTHER) == "us-east-1"
    assert region_key("us-east1", OTHER) == "us-east1"
    assert (region_key("US-East-1"), region_key("us-east1"), region_key("us-east")) == (
        "us-east-1",
        "us-east1",
        "useast",
    )


@pytest.mark.parametrize(
    ("written", "provider"),
    [
        ("West Europe", "azure"),
        ("west-us-2", "azure"),
        ("east-us2", "azure"),
        ("uk-south", "azure"),
        ("US-East-1", "aws"),
        ("us-gov-west-1", "aws"),
        ("us-west-2-lax-1", "aws"),
        ("northamerica-northeast1", "gcp"),
        ("europe-west12", "gcp"),
        ("oci", "oci"),
        ("nebius-us-central1", "nebius"),
    ],
)
def test_the_form_of_a_region_says_whose_it_is(written: str, provider: str) -> None:
    assert provider_of_region(written).id == provider
    assert provider_of_region(written).region_code.fullmatch(region_key(written))


def test_no_region_of_the_seeds_has_the_form_of_another_provider() -> None:
    for path in (PROJECT / "seeds" / "clouds").glob("*/regions.csv"):
        codes = [row["code"] for row in csv.DictReader(path.read_text().splitlines())]
        assert {provider_of_region(code).id for code in codes} == {path.parent.name}
        assert [region_key(code) for code in codes] == codes


def test_a_name_may_begin_with_the_id_of_its_provider() -> None:
    assert split_provider("AWS: m5.large") == (PROVIDERS["aws"], "m5.large")
    assert split_provider("m5.large") == (None, "m5.large")
    assert split_provider("nobody:m5.large") == (None, "nobody:m5.large")
    assert tuple(PROVIDERS) == PROVIDER_IDS


def test_only_the_prefix_of_the_provider_itself_is_dropped() -> None:
    assert size_key("Standard_ND40rs_v2") == "nd40rs_v2"
    assert size_key("Standard_ND40rs_v2", OTHER) == "standard_nd40rs_v2"
    assert size_key(" P5.48xlarge", OTHER) == "p5.48xlarge"


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)
def test_a_key_does_not_change_when_it_is_made_again(provider: Provider) -> None:
    for name in (f"{provider.size_prefix}ND40rs_v2", "ND40rs_v2"):
        assert size_key(size_key(name, provider), provider) == size_key(name, provider) == "nd40rs_v2"
    code = region_key(" US-East-1 ", provider)
    assert region_key(code, provider) == code


def test_the_fields_that_an_api_defines_are_those_of_its_provider() -> None:
    assert authority_order("size", "vcpus", "nx8", OTHER)[0] == "vendor_api"
    assert authority_order("size", "memory_gib", "nx8", OTHER)[0] == "vendor_page"
    assert authority_order("size", "memory_gib", "nx8")[0] == "vendor_api"


def test_a_source_describes_the_sizes_of_its_publisher_else_of_the_default_provider() -> None:
    assert provider_of("Microsoft") is PROVIDERS["azure"]
    assert provider_of("somebody") is DEFAULT_PROVIDER


def _fact(kind: str, subject: str, field: str, value: str, source: str) -> FactRow:
    return {"kind": kind, "subject": subject, "field": field, "value": value, "source_id": source} | {
        "written_as": subject
    }


def test_a_size_is_of_the_provider_of_its_series_else_of_the_source_that_names_it() -> None:
    authorities = {
        "page": SourceAuthority(kind="vendor_page", published_on=date(2026, 1, 1), provider=OTHER),
        "notes": SourceAuthority(kind="third_party", published_on=None),
    }
    facts = [
        _fact("size", "stated", "series", "p5", "notes"),
        _fact("series", "p5", "provider", "other", "notes"),
        _fact("size", "unstated", "series", "p4", "page"),
        _fact("series", "p4", "aliases", "p4d", "notes"),
        _fact("size", "alone", "vcpus", "8", "page"),
        _fact("size", "noted", "vcpus", "8", "notes"),
    ]
    context = ResolutionContext(
        authorities=authorities, corrections={}, subjects=SubjectKeys(aliases={}, series_ids={"p5": "p5", "p4": "p4"})
    )
    priced = {"priced": Spelling(name="priced", authority=4, source="list", provider=OTHER)}
    for ordered in (facts, facts[::-1]):
        rows = reconcile(ordered, context, priced)
        assert {row["id"]: row["provider"] for row in rows.series} == {"p5": "other", "p4": "other"}
        assert {row["key"]: row["provider"] for row in rows.sizes} == {
            "stated": "other",
            "unstated": "other",
            "alone": "other",
            "noted": "azure",
            "priced": "other",
        }
