import json
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from sqlalchemy import Engine, inspect, select

from app.catalog.column_types import table_of
from app.catalog.fields import SubjectKind
from app.catalog.models import Fact, Offer, Price, Revision, Size
from app.catalog.queries.params import SizeParams
from app.catalog.queries.sizes import find_size
from app.catalog.queries.snapshot import load_catalog
from app.catalog.readings import AliasRow, CorrectionRow, Reading, SourceKind
from app.catalog.store.revisions import compute_digest
from app.db.engines import read_session as reads
from app.errors import BadData
from app.ingest.run import IngestOutcome, ingest
from tests.factories import NOW, price, price_list, reading, region, size, source, statement

THIRD = source("notes", kind="third_party", on=None)


def ingest_reading(engine: Engine, what: Reading, **more: Any) -> IngestOutcome:
    return ingest(engine, what, now=NOW, **more)


def shown(engine: Engine, name: str) -> dict[str, Any]:
    with reads(engine) as session:
        told: dict[str, Any] = json.loads(find_size(load_catalog(session, NOW.date()), name, SizeParams()))
        return told


def count(engine: Engine, model: Any) -> int:
    with reads(engine) as session:
        return len(session.execute(select(table_of(model))).all())


@pytest.mark.first_database
def test_ingesting_the_same_reading_changes_nothing_and_makes_no_revision(engine: Engine) -> None:
    what = reading(size("Standard_X1", vcpus=8), regions=["eastus"], prices=(price("Standard_X1", "1.5"),))
    first, second = ingest_reading(engine, what), ingest_reading(engine, what)
    assert first.new_revision
    assert not second.new_revision
    assert second.revision["digest"] == first.revision["digest"]
    assert all(not change.has_changes for change in second.summary.changes.values())
    assert count(engine, Revision) == 1


def test_an_ingest_of_many_offers_leaves_the_indexes_as_they_were(engine: Engine) -> None:
    def indexes() -> set[tuple[str, ...]]:
        each = [(one, one.get("dialect_options", {})) for one in inspect(engine).get_indexes("offer")]
        conditions = ("sqlite_where", "postgresql_where")
        return {
            (str(one["name"]), str(one["column_names"]), *(str(options.get(name)) for name in conditions))
            for one, options in each
        }

    before = indexes()
    ingest_reading(
        engine, reading(size("Standard_X1", vcpus=8), regions=["eastus"], prices=[price("Standard_X1", "1")])
    )
    assert len(before) > 1
    assert indexes() == before


def test_an_error_rolls_the_whole_ingest_back(engine: Engine) -> None:
    ingest_reading(engine, reading(size("Standard_X1", vcpus=8), regions=["eastus"]))
    bad = reading(size("Standard_X2", vcpus=8), prices=(price("Standard_X2", "1", region="useast", line=7),))
    with pytest.raises(
        BadData,
        match=r"prices.csv:7: column 'region': unknown region 'useast'; did you mean eastus\? Else ingest it first",
    ):
        ingest_reading(engine, bad)
    assert count(engine, Size) == 1
    assert count(engine, Revision) == 1


@pytest.mark.first_database
def test_with_strict_a_report_is_a_failure_and_nothing_is_written(engine: Engine) -> None:
    twice = reading([statement("vcpus", 8), statement("vcpus", 9, line=4)])
    with pytest.raises(BadData, match=r"page.md:4: column 'vcpus': says 9 here and 8 at line 1"):
        ingest_reading(engine, twice, strict=True)
    assert count(engine, Size) == 0
    assert len(ingest_reading(engine, twice).summary.reports) == 1
    assert shown(engine, "x1")["vcpus"] == 8


@pytest.mark.first_database
def test_sources_that_spell_a_size_differently_mean_one_size(engine: Engine) -> None:
    ingest_reading(engine, reading(size("nd40RS_v2", by="notes", vcpus=40), sources=[THIRD]))
    assert shown(engine, "Standard_ND40rs_v2")["name"] == "nd40RS_v2"
    assert not shown(engine, "nd40rs_v2")["verified"]
    ingest_reading(engine, reading(size("Standard_ND40rs_v2", memory_gib=Decimal(672))))
    row = shown(engine, "nd40rs_v2")
    assert (row["name"], row["verified"], row["vcpus"], row["memory_gib"]) == ("Standard_ND40rs_v2", True, 40, 672)


@pytest.mark.first_database
def test_the_order_of_ingests_does_not_matter(engine: Engine) -> None:
    page = reading(size("Standard_X1", gpu_memory_gib=Decimal(256), series="S1"))
    notes = reading(size("X1", by="notes", gpu_memory_gib=Decimal(128), series="S2"), sources=[THIRD])
    ingest_reading(engine, page)
    ingest_reading(engine, notes)
    forwards = shown(engine, "x1")
    assert forwards["gpu_memory_gib"] == 256
    assert forwards["disputed_fields"] == ["gpu_memory_gib", "series"]
    ingest_reading(engine, page)
    assert shown(engine, "x1") == forwards


@pytest.mark.first_database
def test_a_page_that_is_read_again_retracts_what_it_no_longer_states(engine: Engine) -> None:
    ingest_reading(engine, reading(size("Standard_X1", vcpus=8, max_nics=4)))
    ingest_reading(engine, reading(size("Standard_X1", vcpus=8)))
    assert shown(engine, "x1")["max_nics"] is None
    assert count(engine, Fact) == 1


def test_a_correction_replaces_the_value_and_keeps_the_claim(engine: Engine) -> None:
    slip = CorrectionRow(
        kind="size", subject="Standard_X1", field="max_data_disks", source="page", value="16", reason="316 is a slip",
        file="corrections.csv", line=2,
    )  # fmt: skip
    ingest_reading(engine, reading(size("Standard_X1", max_data_disks=316), corrections=(slip,)))
    assert shown(engine, "x1")["max_data_disks"] == 16
    with reads(engine) as session:
        (fact,) = session.execute(select(table_of(Fact))).mappings()
    assert (fact["value"], fact["reason"]) == ("316", "corrected: 316 is a slip; the only source")


@pytest.mark.first_database
@pytest.mark.parametrize(
    ("kind", "subject", "source_id", "expected"),
    [
        ("size", "x1", "page", None),
        (
            "size",
            "Standard_X11",
            "page",
            "'subject': there is no such size (did you mean Standard_X1?); the correction",
        ),
        (
            "gpu",
            "q",
            "page",
            "'subject': there is no such gpu; the correction is kept, and changes nothing yet (cell 'q')",
        ),
        ("size", "Standard_X1", "prices", "'field': prices does not state it of Standard_X1; the correction is kept"),
    ],
)
def test_a_correction_of_what_no_source_states_is_reported(
    engine: Engine, kind: SubjectKind, subject: str, source_id: str, expected: str | None
) -> None:
    ingest_reading(engine, reading(size("Standard_X1", vcpus=8)))
    field = "vcpus" if kind == "size" else "memory_gib"
    row = CorrectionRow(
        kind=kind, subject=subject, field=field, source=source_id, value="9", reason="a slip",
        file="corrections.csv", line=2,
    )  # fmt: skip
    reports = ingest_reading(engine, reading(corrections=(row,))).summary.reports
    assert len(reports) == (expected is not None)
    assert all(f"corrections.csv:2: column {expected}" in str(report) for report in reports)


@pytest.mark.first_database
def test_memory_of_the_vm_follows_from_count_and_memory_of_one_gpu(engine: Engine) -> None:
    ingest_reading(engine, reading(size("Standard_X1", gpu_count=Fraction(8), gpu_memory_gib_per_gpu=Decimal(40))))
    assert shown(engine, "x1")["gpu_memory_gib"] == 320
    ingest_reading(engine, reading(size("Standard_X6", gpu_count=Fraction(1, 6), gpu_memory_gib=Decimal(4))))
    sixth = shown(engine, "x6")
    assert (sixth["gpu_memory_gib_per_gpu"], sixth["gpu_fraction"], sixth["gpu_count"]) == (24, "1/6", 0.1667)


@pytest.mark.first_database
@pytest.mark.parametrize(
    ("retires", "preview", "status"),
    [
        (NOW.date(), False, "retired"),
        (NOW.date() + timedelta(days=1), False, "retiring"),
        (None, True, "preview"),
        (None, False, "current"),
    ],
)
def test_status_follows_from_dates(engine: Engine, retires: date | None, preview: bool, status: str) -> None:
    dated: dict[str, Any] = {"retirement_date": retires} if retires else {}
    ingest_reading(engine, reading(size("Standard_X1", preview=preview, **dated)))
    assert shown(engine, "x1")["status"] == status
    ingest_reading(engine, reading(size("Standard_X1", preview=preview, withdrawn=True, **dated)))
    withdrawn = shown(engine, "x1")
    assert withdrawn["status"] == ("retired" if status == "retired" else "withdrawn")
    assert not withdrawn["verified"]


@pytest.mark.first_database
def test_a_preview_is_over_when_a_newer_page_no_longer_says_so(engine: Engine) -> None:
    ingest_reading(engine, reading(size("Standard_X1", preview=True)))
    assert shown(engine, "x1")["status"] == "preview"
    pages: list[tuple[str, SourceKind, str]] = [
        ("notes", "third_party", "preview"),
        ("later", "vendor_page", "current"),
    ]
    for by, kind, status in pages:
        newer = source(by, kind=kind, on=date(2026, 1, 1))
        ingest_reading(engine, reading(size("Standard_X1", by=by, vcpus=8), sources=[newer]))
        assert shown(engine, "x1")["status"] == status


def test_prices_are_kept_and_the_newest_in_force_is_offered(engine: Engine) -> None:
    prices = (
        price("Standard_X1", "1.5"),
        price("Standard_X1", "2.062699", valid_from=date(2026, 8, 22)),
        price("Standard_X1", "9", valid_from=date(2026, 9, 2)),
        price("Standard_X1", "0.5", purchase="spot"),
    )
    ingest_reading(engine, reading(regions=["eastus"], prices=prices))
    with reads(engine) as session:
        offers = table_of(Offer)
        (offer,) = session.execute(select(offers).where(offers.c.region == "eastus")).mappings()
    assert (offer["on_demand_rank_usd"], offer["on_demand_as_of"]) == (2.062699, date(2026, 8, 22))
    assert (offer["spot_rank_usd"], offer["savings_1y_rank_usd"]) == (0.5, None)
    assert count(engine, Price) == 4


def test_of_two_prices_for_one_day_the_first_is_kept_and_the_other_reported(engine: Engine) -> None:
    outcome = ingest_reading(
        engine, reading(regions=["eastus"], prices=(price("X1", "1"), price("Standard_X1", "2", line=9)))
    )
    assert [str(report) for report in outcome.summary.reports] == [
        "prices.csv:9: column 'usd_per_hour': is another price for the same size, region and day; 1 is kept (cell '2')"
    ]


def of_two_clouds(engine: Engine) -> None:
    """Ingest a size and a region of Azure, and a size and a region of AWS."""
    of_vendors = [replace(source(by), publisher=by) for by in ("Microsoft", "AWS")]
    sizes = (*size("Standard_X1", by="Microsoft", vcpus=4), *size("m9.large", by="AWS", vcpus=4))
    regions = (region("eastus"), replace(region("us-east-1"), provider="aws"))
    ingest_reading(engine, replace(reading(sizes, sources=of_vendors), regions=regions))


@pytest.mark.parametrize(
    ("name", "place", "refusal"),
    [
        ("x1", "us-east-1", "'us-east-1': is a region of AWS, and x1 a size of Azure"),
        ("m9.large", "eastus", "'eastus': is a region of Azure, and m9.large a size of AWS"),
    ],
)
def test_a_price_of_a_size_in_a_region_of_another_provider_is_refused(
    engine: Engine, name: str, place: str, refusal: str
) -> None:
    of_two_clouds(engine)
    right = [price("X1", "1"), price("m9.large", "1", region="us-east-1", line=3)]
    with pytest.raises(BadData) as caught:
        ingest_reading(engine, reading(prices=(*right, price(name, "0.01", region=place, line=4))))
    assert str(caught.value) == f"prices.csv:4: column 'region': {refusal}"
    assert count(engine, Price) == 0


@pytest.mark.first_database
def test_a_price_of_another_provider_is_refused_together_with_its_size(engine: Engine) -> None:
    by, regions = replace(source("AWS"), publisher="AWS"), (region(), replace(region("us-east-1"), provider="aws"))
    both = reading(size("m9.large", by="AWS", vcpus=4), sources=[by], prices=(price("m9.large", "1"),))
    with pytest.raises(BadData, match=r"m9\.large a size of AWS"):
        ingest_reading(engine, replace(both, regions=regions))


@pytest.mark.first_database
def test_a_size_that_no_provider_describes_is_that_of_its_prices(engine: Engine) -> None:
    of_two_clouds(engine)
    ingest_reading(engine, reading(prices=(price("m10.large", "1", region="us-east-1"),)))
    ingest_reading(engine, reading(prices=(price("m10.large", "2", region="us-east-1"), price("Y1", "1"))))
    with pytest.raises(BadData, match="'us-east-1': is a region of AWS, and Y1 a size of Azure"):
        ingest_reading(engine, reading(prices=(price("Y1", "1", region="us-east-1"),)))


@pytest.mark.first_database
def test_a_price_list_may_name_sizes_by_their_aliases(engine: Engine) -> None:
    alias = AliasRow(alias="Standard_Xone", size="Standard_X1", source="prices", reason="billing", file="a.csv", line=2)
    what = reading(regions=["eastus"], prices=(price("Standard_Xone", "3"),), aliases=(alias,))
    ingest_reading(engine, what)
    assert shown(engine, "xone")["name"] == "Standard_X1"
    assert shown(engine, "x1")["usd_per_hour"] == 3
    assert count(engine, Size) == 1


@pytest.mark.first_database
def test_a_later_alias_moves_prices_and_facts_to_its_size(engine: Engine) -> None:
    first = reading(
        size("Xone", by="notes", vcpus=4), sources=[THIRD], regions=["eastus"], prices=(price("Xone", "3"),)
    )
    ingest_reading(engine, first)
    ingest_reading(engine, reading(size("Standard_X1", memory_gib=Decimal(8))))
    alias = AliasRow(alias="Xone", size="Standard_X1", source="prices", reason="billing", file="a.csv", line=2)
    ingest_reading(engine, reading(aliases=(alias,)))
    row = shown(engine, "xone")
    assert (row["name"], row["vcpus"], row["memory_gib"], row["usd_per_hour"]) == ("Standard_X1", 4, 8, 3)
    assert (count(engine, Size), count(engine, Price)) == (1, 1)


@pytest.mark.first_database
def test_a_later_alias_that_alone_is_described_leaves_its_size_the_name(engine: Engine) -> None:
    prices = (price("Standard_X1", "3"),)
    ingest_reading(
        engine, reading(size("Xone", by="notes", vcpus=4), sources=[THIRD], regions=["eastus"], prices=prices)
    )
    alias = AliasRow(alias="Xone", size="Standard_X1", source="prices", reason="billing", file="a.csv", line=2)
    ingest_reading(engine, reading(aliases=(replace(alias, new_size=False),)))
    row = shown(engine, "xone")
    assert (row["name"], row["vcpus"], row["usd_per_hour"]) == ("Standard_X1", 4, 3)
    assert count(engine, Size) == 1


@pytest.mark.first_database
@pytest.mark.parametrize(
    ("alias", "name", "expected"),
    [
        ("Xone", "Standard_X11", r"a\.csv:2: column 'size': 'Standard_X11': .*; did you mean Standard_X1\? An alias"),
        ("Xone", "Standard_Q", r"a\.csv:2: column 'size': 'Standard_Q': there is no such size; An alias needs a known"),
        ("X2", "Standard_X1", r"a\.csv:2: column 'alias': 'X2': is a size of its own, which page describes, not"),
        ("Standard_Y2", "X1", r"'Standard_Y2': is a size of its own, which page describes, not another name of X1"),
        ("Y1", "Standard_Y3", "'Y1': is a size of its own, which notes describes"),
    ],
)
def test_a_listed_alias_of_no_size_or_of_a_described_name_is_refused(
    engine: Engine, alias: str, name: str, expected: str
) -> None:
    of_vendor = (*size("Standard_X1", vcpus=4), *size("Standard_X2", vcpus=8), *size("Standard_Y2", vcpus=8))
    of_notes = (*size("Y1", by="notes", vcpus=4), *size("Y3", by="notes", vcpus=4))
    before = ingest_reading(engine, reading((*of_vendor, *of_notes), sources=[THIRD])).revision["digest"]
    row = AliasRow(alias=alias, size=name, source="prices", reason="billing", file="a.csv", line=2, new_size=False)
    with pytest.raises(BadData, match=expected):
        ingest_reading(engine, reading(aliases=(row,)))
    with reads(engine) as session:
        assert compute_digest(session)[0] == before


@pytest.mark.first_database
def test_a_later_page_does_not_take_over_a_size_of_another_series(engine: Engine) -> None:
    later = source("bogus", on=date(2026, 3, 16))
    ingest_reading(engine, reading(size("Standard_X1", by="bogus", series="Xbogus"), sources=[later]))
    ingest_reading(engine, reading(size("Standard_X1", series="X")))
    assert shown(engine, "x1")["series"] == "x"


@pytest.mark.first_database
def test_the_digest_tells_contents_apart_and_nothing_else(engine: Engine) -> None:
    what = reading(size("Standard_X1", vcpus=8), regions=["eastus"], prices=(price("Standard_X1", "1.50"),))
    digest = ingest_reading(engine, what).revision["digest"]
    assert (
        ingest_reading(engine, replace(what, prices=price_list(price("Standard_X1", "1.5")))).revision["digest"]
        == digest
    )
    assert (
        ingest_reading(engine, replace(what, prices=price_list(price("Standard_X1", "1.6")))).revision["digest"]
        != digest
    )
    with reads(engine) as session:
        assert compute_digest(session)[1]["price"] == 1
