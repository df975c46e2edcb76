from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog.fields import SIZE_FIELDS, FactValue
from app.catalog.providers import PROVIDERS
from app.catalog.readings import AUTHORITY
from app.catalog.resolution.claims import Claim, resolve, values_agree
from app.catalog.resolution.reconcile import API_FIRST, authority_order


def claim(value: FactValue, *, source: str = "a", kind: str = "vendor_page", on: date | None = None) -> Claim:
    return Claim(source=source, kind=kind, published_on=on, value=value)  # type: ignore[arg-type]  # tests spell kinds


def test_a_vendor_page_counts_before_a_third_party_whatever_their_dates() -> None:
    page = claim(Decimal(256), source="page", on=date(2020, 2, 3))
    notes = claim(Decimal(128), source="notes", kind="third_party", on=date(2026, 1, 1))
    resolution = resolve([notes, page])
    assert resolution.accepted is page
    assert resolution.is_disputed
    (disputed,) = [resolved for resolved in resolution.claims if resolved.verdict == "disputed"]
    assert disputed.claim is notes
    assert disputed.reason == "page says 256, and a vendor page counts before a third party"


def test_the_api_counts_before_a_page_only_on_the_fields_that_it_defines() -> None:
    page, api = claim(1900, source="page", on=date(2026, 8, 12)), claim(1800, source="api", kind="vendor_api")
    resolution = resolve([page, api], authority_order("size", "memory_gib", "nx8"))
    assert resolution.accepted is api
    assert [r.reason for r in resolution.claims if r.claim is page] == [
        "api says 1800, and a vendor API counts before a vendor page"
    ]
    for kind, field in (("size", "gpu_count"), ("size", "ultra_disk"), ("gpu", "memory_gib")):
        assert resolve([page, api], authority_order(kind, field, "nx8")).accepted is page  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize(
    ("size", "accepted"), [("nx44-16rs", "page"), ("e8-2s_v5", "page"), ("nx44rs", "api"), ("nx44_v2-3", "api")]
)
def test_a_page_counts_before_the_api_on_the_vcpus_of_a_constrained_size(size: str, accepted: str) -> None:
    page, api = claim(16, source="page"), claim(44, source="api", kind="vendor_api")
    assert resolve([page, api], authority_order("size", "vcpus", size)).accepted.source == accepted
    assert resolve([page, api], authority_order("size", "memory_gib", size)).accepted is api


def test_every_field_that_the_api_of_a_provider_defines_is_one_of_a_size() -> None:
    assert all(set(SIZE_FIELDS) >= provider.api_fields for provider in PROVIDERS.values())
    assert sorted(API_FIRST) == sorted(AUTHORITY)


def test_a_pinned_source_counts_before_all_others_and_they_are_disputed() -> None:
    pinned = Claim(source="seed", kind="third_party", published_on=None, value=32, pinned=True)
    api = claim(8, source="api", kind="vendor_api", on=date(2026, 8, 1))
    resolution = resolve([api, pinned], authority_order("size", "max_data_disks", "nx8"))
    assert resolution.accepted is pinned
    assert [r.reason for r in resolution.claims if r.claim is api] == [
        "seed says 32, and a pinned source counts before all others"
    ]


def test_of_two_pinned_sources_authority_decides() -> None:
    notes = Claim(source="notes", kind="third_party", published_on=None, value=128, pinned=True)
    page = Claim(source="page", kind="vendor_page", published_on=date(2020, 2, 3), value=256, pinned=True)
    assert resolve([notes, page]).accepted is page


def test_of_two_vendor_pages_the_newer_counts() -> None:
    old, new = claim(180, source="old", on=date(2020, 8, 10)), claim(176, source="new", on=date(2024, 7, 31))
    assert resolve([old, new]).accepted is new


def test_an_undated_page_counts_after_a_dated_one() -> None:
    undated, dated = claim(1, source="a"), claim(2, source="b", on=date(2011, 1, 1))
    assert resolve([undated, dated]).accepted is dated


def test_of_two_pages_of_one_day_the_more_precise_counts() -> None:
    day = date(2025, 1, 1)
    assert resolve([claim(1000, source="a", on=day), claim(1024, source="b", on=day)]).accepted.value == 1024


def test_a_size_belongs_to_the_series_of_the_older_page() -> None:
    first, later = claim("nv_a10", source="z", on=date(2024, 7, 31)), claim("bogus", source="a", on=date(2026, 3, 16))
    assert resolve([later, first], older_first=True).accepted is first


def test_a_text_that_only_says_more_agrees_and_is_preferred_among_equals() -> None:
    short, long = claim("NVLink", source="a", on=date(2024, 1, 1)), claim("NVLink 3.0", source="b", on=date(2021, 1, 1))
    resolution = resolve([short, long])
    assert resolution.accepted is long
    assert not resolution.is_disputed


def test_the_reason_says_what_was_corrected() -> None:
    corrected = Claim(source="page", kind="vendor_page", published_on=None, value=16, correction="316 is a slip")
    assert resolve([corrected]).claims[0].reason == "corrected: 316 is a slip; the only source"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (96, Decimal("96.0"), True),
        (Fraction(1, 6), Decimal("0.1667"), True),
        (Decimal(1535), Decimal(1536), False),
        (True, False, False),
        (1, True, False),
        ("AMD EPYC (Genoa)", "AMD EPYC 9V64 F (Genoa)", True),
        ("Tesla V100", "A100", False),
        (date(2023, 9, 6), date(2022, 8, 31), False),
        ("8", 8, False),
    ],
)
def test_values_agree_when_they_say_the_same(one: FactValue, other: FactValue, *, same: bool) -> None:
    assert values_agree(one, other) is same
    assert values_agree(other, one) is same


claims = st.builds(
    Claim,
    source=st.sampled_from("abcdef"),
    kind=st.sampled_from(AUTHORITY),
    published_on=st.none() | st.dates(),
    value=st.integers(0, 5),
)


@given(st.lists(claims, min_size=1, max_size=6, unique_by=lambda word: word.source))
def test_the_order_in_which_sources_are_read_decides_nothing(read: list[Claim]) -> None:
    assert resolve(read).accepted == resolve(reversed(read)).accepted


@given(st.lists(claims, min_size=1, max_size=6, unique_by=lambda word: word.source))
def test_every_claim_gets_a_verdict_and_exactly_one_is_accepted(read: list[Claim]) -> None:
    verdicts = resolve(read).claims
    assert {resolved.claim.source for resolved in verdicts} == {word.source for word in read}
    assert [resolved.verdict for resolved in verdicts].count("accepted") == 1


def test_a_field_without_claims_is_refused() -> None:
    with pytest.raises(ValueError, match="without claims"):
        resolve([])


@pytest.mark.parametrize("accepted", ["1788.14", "1788.139"])
def test_a_decimal_that_is_only_rounded_is_no_dispute_and_the_more_precise_is_accepted(accepted: str) -> None:
    other = "1788.139" if accepted == "1788.14" else "1788.14"
    newer, older = (
        claim(Decimal(accepted), source="new", on=date(2025, 1, 1)),
        claim(Decimal(other), on=date(2020, 1, 1)),
    )
    resolution = resolve([older, newer])
    assert not resolution.is_disputed
    assert resolution.accepted.value == Decimal("1788.139")


@pytest.mark.parametrize(
    ("one", "other"), [("1788.14", "1788.146"), ("1788.14", "1788.151"), ("80", "80.4"), ("894.07", "960.0")]
)
def test_decimals_that_are_not_each_other_rounded_are_disputed(one: str, other: str) -> None:
    assert not values_agree(Decimal(one), Decimal(other))
    assert not values_agree(Decimal(other), Decimal(one))
