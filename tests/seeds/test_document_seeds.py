"""What must hold of the documents: they are read by the importer, like anyone's pages."""

import re
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from app.catalog.fields import FactValue
from app.catalog.names import series_key, size_key
from app.catalog.readings import PriceRow, Reading, SourceRow
from tests.seeds.conftest import SEEDS, ByFile, Facts

NOT_THE_PRODUCT = {("ndmi300xv5-series-2024-08-01", "nd96isr_mi300x_v5")}
"""The page says 1,535 GB for eight GPUs of 192 GB."""

_ONLY_PRICED = re.compile(
    r"NC(8lds|132l?ds|264l?ds|324l?ds)_xl_RTX|ND40s_v2|ND96ams_|ND96is_|ND96isr?f_|ND128isrf_|NV\d+s_v2"
)
"""Sizes that price lists name, and no page."""

WITHOUT_A_GPU_COUNT = "_xl_rtxpro6000bse_v6"
"""Previews that only drafts mention: the GPUs are named, how many a size has is not.

The other exceptions are sizes with a promotional price, of which only a price catalogue speaks, with a count and a
model, and the VM of the announcement, which does not give the memory of its GPUs.
"""


def number(value: FactValue) -> Fraction:
    assert isinstance(value, (int, Decimal, Fraction))
    return Fraction(value)


CONTRADICTORY_RATES = {
    "dadsv7-series-2026-01-26": {"temp_disk_write_iops"},
    "daldsv7-series-2026-01-21": {"temp_disk_write_iops"},
    "dasv4-series-2026-03-10": {"temp_disk_sequential_write_mbps"},
    "ddsv7-series-2026-02-02": {"ultra_disk_iops"},
    "dlsv7-series-2026-02-02": {"ultra_disk_iops"},
    "dpdsv6-series-2026-01-05": {"temp_disk_write_iops", "temp_disk_write_mbps"},
    "dpldsv6-series-2026-03-10": {"temp_disk_write_mbps"},
    "dsv7-series-2026-02-02": {"ultra_disk_iops"},
    "eadsv7-series-2026-03-10": {"temp_disk_write_iops"},
    "easv4-series-2024-08-01": {"temp_disk_write_mbps"},
    "edsv6-series-2024-08-01": {"uncached_disk_mbps"},
    "edsv7-series-2026-02-02": {"ultra_disk_iops"},
    "endsv6-series-2025-05-08": {"ultra_disk_iops"},
    "epdsv6-series-2026-01-05": {"temp_disk_write_mbps"},
    "esv7-series-2026-02-02": {"ultra_disk_iops"},
    "faldsv7-series-2026-01-21": {"temp_disk_write_iops"},
    "famdsv7-series-2026-01-21": {"temp_disk_write_iops"},
}
"""Rates of disks that pages have above another that must be higher: writing above reading, base above burst."""


@pytest.mark.takes_seconds
def test_every_document_is_read_whole_but_for_a_series_that_claims_anothers_size(documents: Reading) -> None:
    claims = (
        "claims ND40rs_v2 for ND (third-party notes), which ndv2-series-2020-02-03-later.md already assigned to NDv2"
    )
    others = [report for report in documents.reports if not report.detail.endswith("one of them is wrong")]
    assert [re.sub(r"which \S*/", "which ", report.detail) for report in others] == [claims]


def test_rates_that_contradict_each_other_are_those_of_the_pages(documents: Reading) -> None:
    found: dict[str, set[str | None]] = defaultdict(set)
    for report in documents.reports:
        if report.detail.endswith("one of them is wrong"):
            found[Path(report.file).stem].add(report.column)
    assert found == CONTRADICTORY_RATES


def test_a_document_is_a_source_named_like_its_file(documents: Reading) -> None:
    assert sorted(s.id for s in documents.sources) == sorted(path.stem for path in (SEEDS / "documents").glob("*.md"))


def test_no_document_shares_its_id_with_a_listed_source(documents: Reading, sources: dict[str, SourceRow]) -> None:
    assert {s.id for s in documents.sources} & set(sources) == set()


def test_a_vendors_page_can_be_looked_up_and_is_dated(documents: Reading) -> None:
    vendors = [s for s in documents.sources if s.kind != "third_party"]
    assert [s.id for s in vendors if s.url is None or s.published_on is None] == []


def test_every_document_states_something(documents: Reading) -> None:
    assert {s.id for s in documents.sources} - {s.source for s in documents.facts} == set()


def test_count_times_memory_of_one_gpu_is_the_memory_of_the_vm(facts: Facts) -> None:
    wrong = {
        (source, size)
        for (source, size, field), total in facts.items()
        if field == "gpu_memory_gib"
        and number(facts[source, size, "gpu_count"]) * number(facts[source, size, "gpu_memory_gib_per_gpu"])
        != number(total)
    }
    assert wrong == NOT_THE_PRODUCT


def test_a_size_has_all_that_is_said_of_gpus_or_nothing(facts: Facts) -> None:
    without = {size for (_, size, field), count in facts.items() if field == "gpu_count" and not number(count)}
    fields: dict[str, set[str]] = defaultdict(set)
    for _, size, field in facts:
        if size not in without:
            fields[size].add(field)
    needed = {"gpu_vendor", "gpu_model", "gpu_count", "gpu_memory_gib", "gpu_memory_gib_per_gpu"}
    missing = {size: needed - said for size, said in fields.items() if said & needed and needed - said}
    drafts = {size for size in missing if size.endswith(WITHOUT_A_GPU_COUNT)}
    promos = {size for size in missing if size.endswith("_promo")}
    assert all(missing[size] == {"gpu_count", "gpu_memory_gib"} for size in drafts)
    assert set(missing) - drafts - promos == set()


def test_every_size_of_the_real_series_is_there(facts: Facts) -> None:
    by_vendor = {size for source, size, field in facts if field == "series" and "third-party" not in source}
    assert len([size for size in by_vendor if size.startswith(("nc", "nd", "ng", "nv"))]) >= 70


def test_a_size_belongs_to_one_series_and_that_is_listed(facts: Facts, by_file: ByFile) -> None:
    owners: dict[str, set[str]] = defaultdict(set)
    for (source, size, field), value in facts.items():
        if field == "series" and source != "nd-series-third-party":
            owners[size].add(series_key(str(value)))
    assert {size: found for size, found in owners.items() if len(found) > 1} == {}
    listed = {
        series_key(name)
        for s in by_file["series"].facts
        if s.field == "aliases"
        for name in (s.subject, *str(s.value).split("; "))
    }
    assert set().union(*owners.values()) - listed == set()


def test_a_correction_corrects_what_a_document_says(facts: Facts, by_file: ByFile) -> None:
    for c in by_file["corrections"].corrections:
        if c.kind == "size":
            assert str(facts[c.source, size_key(c.subject), c.field]) != c.value


def test_no_page_repeats_the_number_of_data_disks_as_that_of_temporary_ones(facts: Facts, by_file: ByFile) -> None:
    corrected = {
        (c.source, size_key(c.subject), c.field): Decimal(c.value)
        for c in by_file["corrections"].corrections
        if c.field == "temp_disk_count"
    }
    repeats: dict[str, set[bool]] = defaultdict(set)
    for key in facts:
        source, size, field = key
        if field == "temp_disk_count" and (data := facts.get((source, size, "max_data_disks"))):
            count = number(corrected.get(key, facts[key]))
            repeats[source].add(count > 1 and count == number(data))
    assert {source for source, said in repeats.items() if True in said} == set()
    assert len(repeats) > 50


def test_an_alias_points_to_a_size_that_is_known(facts: Facts, by_file: ByFile) -> None:
    known = {size for _, size, _ in facts} | {size_key(s.subject) for s in by_file["sizes"].facts}
    assert {a.size for a in by_file["aliases"].aliases if size_key(a.size) not in known} == set()


def test_what_is_priced_but_not_documented_is_known_by_name(
    facts: Facts, by_file: ByFile, prices: list[PriceRow]
) -> None:
    known = {size for _, size, _ in facts} | {size_key(a.alias) for a in by_file["aliases"].aliases}
    known |= {size_key(s.subject) for s in by_file["sizes"].facts}
    only_priced = {p.size for p in prices if size_key(p.size) not in known}
    assert {name for name in only_priced if not _ONLY_PRICED.search(name)} == set()
