import re
from datetime import date

import pytest

from app.catalog.names import region_key, size_key
from app.catalog.providers import DEFAULT_PROVIDER, PROVIDERS, Provider, provider_of
from app.catalog.resolution.derive import Spelling
from app.catalog.resolution.reconcile import (
    FactRow,
    ResolutionContext,
    SourceAuthority,
    authority_order,
    reconcile,
)
from app.catalog.resolution.subjects import SubjectKeys

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
    assert region_key("us-east-1") == region_key("us-east1") == "useast1"


def test_only_the_prefix_of_the_provider_itself_is_dropped() -> None:
    assert size_key("Standard_ND40rs_v2") == "nd40rs_v2"
    assert size_key("Standard_ND40rs_v2", OTHER) == "standard_nd40rs_v2"
    assert size_key(" P5.48xlarge", OTHER) == "p5.48xlarge"


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)
def test_a_key_does_not_change_when_it_is_made_again(provider: Provider) -> None:
    for name in (f"{provider.size_prefix}ND40rs_v2", "ND40rs_v2"):
        assert size_key(size_key(name, provider), provider) == size_key(name, provider) == "nd40rs_v2"
    code = region_key("West Europe 2", provider)
    assert region_key(code, provider) == code
    assert provider.region_code.fullmatch(code)


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
