"""The fifteen traps of the price lists of AWS, Google, Oracle and the GPU clouds: what a hasty reader gets wrong."""

from collections.abc import Iterator
from decimal import Decimal
from math import prod
from typing import Any

import pytest
from sqlalchemy import Engine, text

from app.db.engines import make_engine

pytestmark = pytest.mark.one_database


@pytest.fixture(scope="module")
def catalog(all_clouds_url: str) -> Iterator[Engine]:
    """The catalog of all clouds."""
    engine = make_engine(all_clouds_url)
    yield engine
    engine.dispose()


def rows(catalog: Engine, sql: str, **values: Any) -> list[tuple[Any, ...]]:
    with catalog.connect() as connection:
        return [tuple(row) for row in connection.execute(text(sql), values)]


def size(catalog: Engine, name: str, *columns: str) -> tuple[Any, ...]:
    (row,) = rows(catalog, f"select {', '.join(columns)} from size where name = :name", name=name)
    return row


def usd(catalog: Engine, name: str, region: str, purchase: str = "on_demand") -> Decimal | None:
    """Return the newest price of a size on Linux, USD an hour."""
    found = rows(
        catalog,
        "select nano_usd_per_hour from price join size on size.key = size_key where name = :name and region = :region "
        "and os = 'linux' and purchase = :purchase order by valid_from desc limit 1",
        name=name,
        region=region,
        purchase=purchase,
    )
    return Decimal(found[0][0]).scaleb(-9) if found else None


def test_a_price_of_dedicated_tenancy_is_not_taken_for_that_of_bare_metal(catalog: Engine) -> None:
    for metal, virtual in (("c6g.metal", "c6g.16xlarge"), ("c7i.metal-24xl", "c7i.24xlarge")):
        for region in ("us-east-1", "us-gov-west-1"):
            assert usd(catalog, metal, region) == usd(catalog, virtual, region)
    ((source,),) = rows(
        catalog,
        "select source_id from price where size_key = 'c6g.metal' and region = 'us-east-1' and purchase = 'on_demand'",
    )
    assert source == "aws-prices-bare-metal-2026-07-20"
    # The list of March 2025 has this price, of dedicated tenancy.
    assert usd(catalog, "a1.2xlarge", "ap-south-1") != Decimal("0.217")
    # Most of a family may be of dedicated tenancy there: its cheaper sizes have the ratio.
    assert usd(catalog, "c6i.32xlarge", "eu-west-3") == Decimal("6.464")
    assert usd(catalog, "c6i.large", "eu-west-3") == Decimal("0.101")
    assert usd(catalog, "c4.large", "eu-west-1") == Decimal("0.113")
    assert usd(catalog, "m5zn.12xlarge", "us-east-2") is None


def test_zero_is_never_a_price(catalog: Engine) -> None:
    assert rows(catalog, "select count(*) from price where nano_usd_per_hour <= 0") == [(0,)]


def test_a_fraction_of_a_gpu_is_neither_one_nor_none(catalog: Engine) -> None:
    columns = ("gpu_count_numerator", "gpu_count_denominator", "gpu_memory_gib", "gpu_id")
    assert size(catalog, "g6f.large", *columns) == (1, 8, 3.0, "l4")
    assert size(catalog, "g6f.4xlarge", *columns) == (1, 2, 12.0, "l4")
    assert size(catalog, "g4-standard-6", *columns) == (1, 8, 12.0, "rtx-pro-6000-bse")


def test_gpu_memory_is_read_in_the_unit_and_of_the_gpus_that_the_list_means(catalog: Engine) -> None:
    each, total = "gpu_memory_gib_per_gpu", "gpu_memory_gib"
    assert size(catalog, "g6.xlarge", each) == (24.0,)  # 22,888 MiB: decimal gigabytes
    assert size(catalog, "g6e.xlarge", each) == (48.0,)
    assert size(catalog, "p5.48xlarge", each, total) == (80.0, 640.0)  # 81,920 MiB: GiB
    assert size(catalog, "p5en.48xlarge", each) == (141.0,)
    assert size(catalog, "gpu_8x_v100", each, total) == (16.0, 128.0)  # the list's total is that of one GPU
    assert size(catalog, "gpu-h100-sxm_8gpu-128vcpu-1600gb", each, total) == (80.0, 640.0)  # and here of all


def test_a_gpu_has_the_memory_that_it_is_sold_with_in_every_cloud(catalog: Engine) -> None:
    by_gpu = "select gpu_id, gpu.memory_gib, gpu_memory_gib_per_gpu, count(*) from size join gpu on gpu.id = gpu_id"
    gpus = "gpu_id in ('b200-sxm-180', 'b300-sxm', 'gb200', 'gb300')"
    found = rows(catalog, f"{by_gpu} where {gpus} group by 1, 2, 3 order by 1, 3")
    assert [(gpu, sold, of_sizes) for gpu, sold, of_sizes, _ in found] == [
        ("b200-sxm-180", 180, 180),
        ("b300-sxm", 288, 288),
        ("gb200", 192, 192),
        ("gb300", 288, 288),
    ]
    assert min(count for *_, count in found) >= 2
    seen = "select id, usable_memory_gib from gpu where id in ('b200-sxm-180', 'b300-sxm') order by id"
    assert rows(catalog, seen) == [("b200-sxm-180", 179.06), ("b300-sxm", 268.59)]
    corrections = "select subject, value from fact where field = 'gpu_memory_gib_per_gpu' and reason like 'corrected:%'"
    clouds = "source_id in ('google-gpu-machine-types', 'skypilot-verda')"
    corrected = {subject: Decimal(value) for subject, value in rows(catalog, f"{corrections} and {clouds}")}
    assert corrected == {
        "a4x-highgpu-4g": 186,
        "a4x-maxgpu-4g-metal": 279,
        "1b300.30v": 262,
        "2b300.60v": Decimal("262.5"),
        "4b300.120v": Decimal("262.5"),
    }


def test_cards_of_one_name_stay_apart_by_form_and_memory(catalog: Engine) -> None:
    def gpu(name: str) -> str | None:
        (id_,) = size(catalog, name, "gpu_id")
        return str(id_) if id_ else None

    assert (gpu("p4d.24xlarge"), gpu("p4de.24xlarge")) == ("a100-sxm-40", "a100-sxm-80")
    assert (gpu("a2-highgpu-1g"), gpu("a2-ultragpu-1g")) == ("a100-sxm-40", "a100-sxm-80")
    assert (gpu("n3-H100x1"), gpu("n3-H100-SXM5x8")) == ("h100-pcie-80", "h100-sxm-80")
    assert gpu("runpod-h100-nvl-secure") == "h100-nvl-94"
    assert gpu("gpu_1x_gh200") == "gh200-96"
    assert gpu("gpu_1x_rtx6000") == "rtx-6000-turing"
    assert gpu("1RTX6000ADA.10V") == "rtx-6000-ada"


def test_a_gpu_whose_form_is_not_stated_is_of_its_family_and_of_no_card_in_it(catalog: Engine) -> None:
    figures = ("gpu_id", "gpu_model", "gpu_memory_gib_per_gpu")
    name = "A100 40GB (form not stated)"
    assert size(catalog, "gpu_8x_a100", *figures) == ("a100-40-form-not-stated", name, 40.0)
    families = rows(
        catalog,
        "select distinct gpu_model, family, memory_bandwidth_gb_per_s from size left join gpu on gpu.id = gpu_id "
        "where gpu_model like '%form not stated%'",
    )
    assert len(families) == 7
    assert size(catalog, "runpod-rtx-pro-6000-community", "gpu_id") == ("rtx-pro-6000-form-not-stated",)
    for model, family, bandwidth in families:
        assert model.startswith(family)
        assert bandwidth is None


def test_a_size_has_infiniband_if_its_fabric_is_that(catalog: Engine) -> None:
    having = "select distinct fabric, infiniband from size where fabric is not null order by 1"
    assert {fabric: bool(infiniband) for fabric, infiniband in rows(catalog, having)} == {
        "EFA": False,
        "GPUDirect-TCPX": False,
        "GPUDirect-TCPXO": False,
        "InfiniBand": True,
        "RoCE": False,
        "none": False,
    }
    unknown = "select count(*) from size where fabric is not null and infiniband is null"
    assert rows(catalog, unknown) == [(0,)]


def test_no_price_is_from_before_the_cut_of_june_2025(catalog: Engine) -> None:
    for name, dollars in (("p5.48xlarge", "55.04"), ("p4d.24xlarge", "21.957642"), ("p5en.48xlarge", "63.296")):
        assert usd(catalog, name, "us-east-1") == Decimal(dollars)
        older = "select count(*) from price where size_key = :key and valid_from < '2025-06-05'"
        assert rows(catalog, older, key=name) == [(0,)]


def test_the_network_is_not_the_sum_over_the_cards(catalog: Engine) -> None:
    for name, gbps in (
        ("c6in.32xlarge", 200),
        ("g6e.48xlarge", 400),
        ("p4d.24xlarge", 400),
        ("p6-b200.48xlarge", 3200),
    ):
        assert size(catalog, name, "network_mbps") == (gbps * 1000,)
    assert size(catalog, "a3-highgpu-8g", "network_mbps") == (1_000_000,)  # the list has five cards of the GPUs alone


def test_the_network_of_a3_counts_the_cards_of_the_gpus_in_all_types(catalog: Engine) -> None:
    of_series = "select name, network_mbps / 1000 from size where key like 'a3-%' order by 2, 1"
    assert rows(catalog, of_series) == [
        *(("a3-highgpu-1g", 25), ("a3-highgpu-2g", 50), ("a3-highgpu-4g", 100)),
        *(("a3-edgegpu-8g", 800), ("a3-edgegpu-8g-nolssd", 800), ("a3-highgpu-8g", 1000), ("a3-megagpu-8g", 1600)),
        *(("a3-ultragpu-8g", 3600), ("a3-ultragpu-8g-nolssd", 3600)),
    ]
    listed = (
        "select value from fact where subject = 'a3-highgpu-1g' and field = 'network_mbps' and verdict = 'disputed'"
    )
    assert rows(catalog, listed) == [("200000",)]


def test_the_network_of_google_is_without_tier_1_which_is_paid_apart(catalog: Engine) -> None:
    for name, gbps in (("c2-standard-30", 32), ("c2-standard-60", 32), ("c2d-standard-112", 32)):
        assert size(catalog, name, "network_mbps") == (gbps * 1000,)


def test_a3_ultra_has_the_processor_of_its_own_page(catalog: Engine) -> None:
    for name in ("a3-ultragpu-8g", "a3-ultragpu-8g-nolssd"):
        assert size(catalog, name, "cpu_model", "cpu_vendor") == ("Emerald Rapids", "Intel")
    assert size(catalog, "a3-megagpu-8g", "cpu_model") == ("Sapphire Rapids",)


def test_a_price_of_google_has_no_discount_for_sustained_use(catalog: Engine) -> None:
    assert usd(catalog, "n2-standard-8", "europe-west3") == Decimal("0.500496")
    assert usd(catalog, "n2-standard-8", "europe-west3", "reserved_1y") == Decimal("0.315008")
    # No commitment is sold of these: the list repeats the price of a month with the discount for sustained use.
    commitments = "select count(*) from price where size_key in ('f1-micro', 'g1-small') and purchase like 'reserved%'"
    assert rows(catalog, commitments) == [(0,)]


def test_no_price_of_google_is_of_a_region_that_lacks_the_machine(catalog: Engine) -> None:
    assert usd(catalog, "a2-highgpu-1g", "europe-west4", "spot") == Decimal("1.692835")
    for purchase in ("on_demand", "spot", "reserved_1y", "reserved_3y"):  # the list adds up parts that other types have
        assert usd(catalog, "a2-highgpu-1g", "europe-north1", purchase) is None
    offering = "select distinct region from price where size_key = 'a2-highgpu-1g'"
    assert {region for (region,) in rows(catalog, offering)} == {
        *("asia-northeast1", "asia-northeast3", "asia-southeast1", "europe-west4", "me-west1"),
        *("us-central1", "us-east1", "us-west1", "us-west3", "us-west4"),
    }


def test_every_type_of_google_has_its_regions_and_no_price_is_of_another(catalog: Engine) -> None:
    lacking = "select key from size where provider = 'gcp' and key not in (select size_key from availability)"
    assert {name for (name,) in rows(catalog, lacking) if "-nvidia-tesla-" not in name} == set()
    of_it = "there.size_key = price.size_key and there.region = price.region"
    elsewhere = f"not exists (select 1 from availability as there where {of_it})"
    elsewhere = f"select count(*) from price where source_id = 'gcp-prices-2026-07-16' and {elsewhere}"
    assert rows(catalog, elsewhere) == [(0,)]
    days = (
        "select distinct published_on, zones = '?' from availability join source on id = source_id where id like 'gcp%'"
    )
    assert set(rows(catalog, days)) == {("2026-08-20", 1), (None, 0)}  # the list of zones is older, and undated


@pytest.mark.parametrize(
    "name", ["u-9tb1.112xlarge", "cr1.8xlarge", "i2.large", "cc2.8xlarge", "m2-ultramem2x-96", "z3-highmem-88"]
)
def test_a_size_of_a_family_without_gpus_has_none(catalog: Engine, name: str) -> None:
    assert size(catalog, name, "gpu_count") == (0.0,)


@pytest.mark.parametrize("name", ["f1.2xlarge", "dl1.24xlarge", "c4n-standard-2"])
def test_a_size_with_other_accelerators_or_without_a_list_says_nothing_of_gpus(catalog: Engine, name: str) -> None:
    assert size(catalog, name, "gpu_count") == (None,)


@pytest.mark.parametrize("name", ["a3-edgegpu-8g", "a3-edgegpu-8g-nolssd"])
def test_a3_edge_has_eight_gpus(catalog: Engine, name: str) -> None:
    assert size(catalog, name, "gpu_count", "gpu_id", "gpu_memory_gib") == (8.0, "h100-sxm-80", 640.0)


def test_a_price_of_google_is_of_the_machine_with_its_gpus_and_tpus_are_none(catalog: Engine) -> None:
    assert usd(catalog, "a2-highgpu-1g", "us-central1") == Decimal("3.673385")
    assert size(catalog, "n1-standard-4", "gpu_count") == (0.0,)
    assert not rows(catalog, "select key from size where provider = 'gcp' and (key like 'ct%' or key like 'tpu%')")


def test_a_shared_core_has_the_vcpus_that_the_machine_shows(catalog: Engine) -> None:
    assert size(catalog, "e2-micro", "vcpus", "memory_gib") == (2, 1.0)


def test_local_disks_are_by_nvme_where_the_provider_says_so(catalog: Engine) -> None:
    assert size(catalog, "c5d.2xlarge", "local_nvme", "nvme_disk_gib", "temp_disk_gib") == (True, 186.26, None)
    assert size(catalog, "d2.xlarge", "local_nvme", "nvme_disk_gib", "temp_disk_gib") == (None, None, 5722.05)
    assert size(catalog, "c5.2xlarge", "local_nvme", "nvme_disk_gib") == (False, 0)


def test_a_size_of_capacity_blocks_has_no_price_and_not_zero(catalog: Engine) -> None:
    for name in ("p5e.48xlarge", "trn2.48xlarge"):
        assert usd(catalog, name, "us-east-2") is None
        ((rank,),) = rows(
            catalog,
            "select on_demand_rank_usd from offer join size on key = size_key where name = :name and region = '*' "
            "and os = 'linux'",
            name=name,
        )
        assert rank == float("inf")


def test_spot_prices_have_their_day_and_are_below_those_on_demand(catalog: Engine) -> None:
    of_region = "from price join region on code = region where purchase = 'spot' and provider <> 'azure'"
    assert rows(catalog, f"select distinct provider, valid_from, approximate_date {of_region}") == [
        ("gcp", "2026-07-16", 0)
    ]
    same = "a.size_key = b.size_key and a.region = b.region and a.source_id = b.source_id"
    dearer = (
        f"select count(*) from price a join price b on {same} join region on code = a.region where provider = 'gcp'"
    )
    assert rows(
        catalog,
        f"{dearer} and a.purchase = 'spot' and b.purchase = 'on_demand' and a.nano_usd_per_hour >= b.nano_usd_per_hour",
    ) == [(0,)]


def test_regions_of_one_name_are_those_of_two_clouds(catalog: Engine) -> None:
    codes = dict(rows(catalog, "select code, provider from region"))
    assert (codes["us-east-1"], codes["us-east1"], codes["eastus"]) == ("aws", "gcp", "azure")
    assert (codes["lambda"], codes["nebius-us-central1"], codes["us-central1"]) == ("lambda", "nebius", "gcp")
    assert codes["us-west-2-lax-1"] == "aws"
    sellers = "select count(*) from price join size on key = size_key join region on code = region"
    assert rows(catalog, f"{sellers} where size.provider <> region.provider") == [(0,)]


def test_prices_of_another_currency_or_unit_are_not_taken_for_dollars_an_hour(catalog: Engine) -> None:
    assert not rows(catalog, "select key from size where provider = 'seeweb' or key like 'ecs%gpu%'")  # euros
    assert not rows(catalog, "select code from region where code like 'cn-%'")  # yuan
    assert size(catalog, "VM.Standard2.8", "vcpus") == (16,)  # eight OCPUs
    assert usd(catalog, "VM.Standard2.8", "oci") == 8 * Decimal("0.0638")
    assert usd(catalog, "BM.GPU.H100.8", "oci") == 80
    assert usd(catalog, "gpu_8x_h100_sxm5", "lambda") == Decimal("31.92")  # dollars, and not cents


def test_a_list_of_prices_says_nothing_of_availability_nor_the_reverse(catalog: Engine) -> None:
    offered = "select count(*) from availability where size_key = :key and region = 'us-east-1'"
    assert rows(catalog, offered, key="r9g.large") == [(1,)]
    assert usd(catalog, "r9g.large", "us-east-1") is None
    assert rows(catalog, offered, key="p3.16xlarge") == [(0,)]
    assert usd(catalog, "p3.16xlarge", "us-east-1") is not None
    assert not rows(catalog, "select region from availability where region = 'lambda' or region like 'verda%'")
    assert usd(catalog, "2B200.60V", "verda-fin-03") is None  # sold out that day


def test_a_size_that_is_bought_in_parts_has_the_figures_and_the_price_of_all_of_them(catalog: Engine) -> None:
    assert size(catalog, "VM.Standard.E5.Flex.4o.64g", "vcpus", "memory_gib") == (8, 64.0)
    assert usd(catalog, "VM.Standard.E5.Flex.4o.64g", "oci") == 4 * Decimal("0.03") + 64 * Decimal("0.002")
    assert size(catalog, "VM.Standard.A1.Flex.4o.16g", "vcpus", "arch") == (4, "arm64")  # one vCPU an OCPU
    assert not rows(catalog, "select key from size where key like 'vm.standard.a1.flex.64o.512g'")  # 472 GiB at most
    attached = "n1-standard-4-nvidia-tesla-t4-x1"
    assert size(catalog, attached, "vcpus", "gpu_id", "gpu_count") == (4, "t4", 1.0)
    assert usd(catalog, attached, "us-central1") == Decimal("0.189999") + Decimal("0.35")
    assert not rows(catalog, "select key from size where key like 'n1-standard-16-nvidia-tesla-v100-x1'")  # 12 vCPUs


def test_the_maker_of_a_processor_is_known_by_any_name_that_a_cloud_has_for_it(catalog: Engine) -> None:
    makers = {
        "m7g.large": "AWS",
        "m7i.large": "Intel",
        "mac2.metal": "Apple",
        "g4ad.xlarge": "AMD",
        "c4a-standard-4": "Google",
        "n2d-standard-8": "AMD",
        "n2-standard-8": "Intel",
        "e2-standard-4": None,  # runs on either
    }
    assert {name: size(catalog, name, "cpu_vendor")[0] for name in makers} == makers
    assert size(catalog, "n2d-standard-8", "cpu_model") == ("Rome or Milan",)
    assert size(catalog, "gr6.4xlarge", "cpu_model") == size(catalog, "g6.4xlarge", "cpu_model")
    assert size(catalog, "g5.4xlarge", "cpu_model") == ("AMD EPYC 7R32",)


def test_a_gpu_is_the_same_in_each_cloud_whatever_part_of_its_memory_a_list_has(catalog: Engine) -> None:
    for gpu, names in {
        "b300-sxm": ("p6-b300.48xlarge", "1B300.30V", "runpod-hgx-b300-secure"),
        "gb200": ("a4x-highgpu-4g", "BM.GPU.GB200.4"),
        "a100-sxm-80": ("1A100.22V", "a2-ultragpu-1g"),
        "h100-pcie-80": ("n3-H100x8-NVLink",),
        "v100-sxm2-16": ("p3.16xlarge",),
    }.items():
        assert {size(catalog, name, "gpu_id")[0] for name in names} == {gpu}, gpu
    assert size(catalog, "n3-H100x8-NVLink", "nvlink") == (1,)
    assert size(catalog, "gpu-h200-sxm_8gpu-128vcpu-1600gb", "fabric", "nvlink") == ("InfiniBand", None)


def test_types_that_the_api_describes_no_longer_have_what_the_price_list_says(catalog: Engine) -> None:
    figures = ("gpu_count", "gpu_memory_gib_per_gpu", "nvme_disk_gib", "network_mbps", "arch")
    assert size(catalog, "p3.16xlarge", *figures) == (8, 16, 0, 25000, "x64")
    assert size(catalog, "g4ad.8xlarge", *figures) == (2, 8, 1117.59, 15000, "x64")
    assert size(catalog, "f1.16xlarge", *figures) == (None, None, 3501.77, 25000, "x64")  # FPGAs


def test_types_that_ec2_neither_describes_nor_offers_are_withdrawn(catalog: Engine) -> None:
    gone = "select name from size where provider = 'aws' and withdrawn"
    withdrawn = {name for (name,) in rows(catalog, gone)}
    assert withdrawn >= {"g4ad.xlarge", "p3.2xlarge", "dl1.24xlarge", "i3.metal", "u-12tb1.112xlarge"}
    assert len(withdrawn) == 31
    offered = "select distinct name from size join availability on size_key = key where provider = 'aws'"
    assert {name for (name,) in rows(catalog, offered)} & withdrawn == set()
    described = "select subject from fact where source_id = 'aws-instance-types-2026-10-27'"
    assert {name for (name,) in rows(catalog, described)} & withdrawn == set()
    assert size(catalog, "p3dn.24xlarge", "withdrawn") == (None,)  # four regions offer it
    assert size(catalog, "t1.micro", "withdrawn") == (None,)


def test_amazon_says_of_each_type_that_it_describes_whether_it_is_burstable(catalog: Engine) -> None:
    by_family = rows(catalog, "select distinct series_id from size where provider = 'aws' and burstable")
    assert {family for (family,) in by_family} == {"aws_t2", "aws_t3", "aws_t3a", "aws_t4g"}
    assert size(catalog, "m7g.large", "burstable") == (False,)
    assert rows(catalog, "select count(*) from size where burstable and provider = 'aws'") == [(28,)]
    unknown = "select name from size where burstable is null and provider = 'aws' and withdrawn is null"
    assert rows(catalog, unknown) == []


def test_the_factor_of_a_computed_price_of_amazon_is_stated(catalog: Engine) -> None:
    source = "aws-prices-by-factor-2026-07-20"
    parts = dict(rows(catalog, "select subject, value from fact where source_id = :source", source=source))
    stated = "select size_key, region, nano_usd_per_hour from price where source_id = :source"
    prices = {(size, region): Decimal(nano).scaleb(-9) for size, region, nano in rows(catalog, stated, source=source)}
    products = {
        (size, region): [Decimal(word) for word in product.split() if word[0].isdecimal()]
        for size, text_of_parts in parts.items()
        for region, product in (part.split(": ") for part in text_of_parts.split("; "))
    }
    assert products.keys() == prices.keys()
    assert len(prices) > 4000
    for key, numbers in products.items():
        assert prod(numbers) == pytest.approx(prices[key], rel=Decimal("5e-5")), key


def test_the_parts_of_a_price_are_stated_and_their_sum_is_the_price(catalog: Engine) -> None:
    parts = dict(rows(catalog, "select subject, value from fact where field = 'price_parts' and value not like '%: %'"))
    assert parts["vm.standard.e5.flex.4o.64g"] == "4 OCPU x 0.03 + 64 GiB x 0.002"
    assert parts["n1-standard-4-nvidia-tesla-t4-x1"] == "n1-standard-4 0.189999 + 1 nvidia-tesla-t4 x 0.35"
    assert len(parts) > 400
    stated = "select size_key, nano_usd_per_hour from price where source_id in (:oci, :gcp)"
    prices = dict(rows(catalog, stated, oci="oci-shapes-2026-04-21", gcp="gcp-attached-gpus-2026-06-23"))
    for key, text_of_parts in parts.items():
        terms = [[Decimal(word) for word in term.split() if word[0].isdecimal()] for term in text_of_parts.split(" + ")]
        assert sum(prod(numbers) for numbers in terms) == Decimal(prices[key]).scaleb(-9), key
