"""The box of the search page: what people type becomes ordinary parameters in the URL."""

import re
from html import unescape
from urllib.parse import unquote

import httpx
import pytest

HTML = {"accept": "text/html"}


def read(client: httpx.Client, text: str) -> str:
    """Return the query of the page that a text leads to."""
    answer = client.get("/", params={"q": text}, headers=HTML, follow_redirects=True)
    assert answer.status_code == 200, answer.text
    return unquote(answer.url.query.decode())


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("h100 westeurope spot <10", "purchase=spot&region=westeurope&gpu=h100&max_usd_per_hour=10"),
        ("64 vcpu arm", "min_vcpus=64&arch=arm64"),
        ("80GB westeurope", "region=westeurope&min_gpu_mem_per_gpu=80"),
        ("16 vcpus 64 GB", "min_vcpus=16&min_memory=64"),
        ("8x h100", "min_gpus=8&gpu=h100"),
        ("8 H100 West Europe", "region=westeurope&min_gpus=8&gpu=h100"),
        ("a100 reserved 3 years", "purchase=reserved_3y&gpu=a100"),
        ("512 gb ram under 2.5 eur", "currency=EUR&min_memory=512&max_usd_per_hour=2.8975"),
        ("h100 > 5 usd < $10 gbp", "currency=GBP&gpu=h100&min_usd_per_hour=5&max_usd_per_hour=10"),
        ("no gpu 8 vcpu", "min_vcpus=8&max_gpus=0"),
        ("without gpus 64 gb ram", "min_memory=64&max_gpus=0"),
        ("h100 no nvlink", "gpu=h100&nvlink=false"),
        ("D8 s v5", "name=standard_d8s_v5"),
        ("standard-d8s-v5", "name=standard_d8s_v5"),
        ("e8s", "q=e8s"),
        ("azure h100", "provider=azure&gpu=h100"),
        ("nc24ads spot", "purchase=spot&q=nc24ads"),
        ("cheap a100 in Germany", "gpu=a100&country=DE"),
        ("t4 europe", "gpu=t4&continent=europe"),
        ("intel 32 cores", "min_vcpus=32&cpu_vendor=intel"),
        ("amd 64 vcpu", "min_vcpus=64&cpu_vendor=amd"),
        ("amd gpu", "gpu_vendor=amd&category=gpu_accelerated"),
        ("genoa epyc 8 cores", "min_vcpus=8&cpu=epyc*genoa"),
        ("cobalt", "cpu=cobalt"),
        ("nvme 2tb", "local_nvme=true&min_local_disk=1862"),
        ("16 vcpu 500 GB ssd", "min_vcpus=16&min_local_disk=465"),
        ("memory > 1tb", "min_memory=1024"),
        ("vcpus >= 8 memory >= 64gb", "min_vcpus=8&min_memory=64"),
        (">4 gpus <10", "min_gpus=5&max_usd_per_hour=10"),
        ("<8 vcpus up to 64 gb ram", "max_vcpus=7&max_memory=64"),
        ("fewer than 4 vcpus", "max_vcpus=3"),
        ("more than 8 gpus", "min_gpus=9"),
        (">=8 gpus", "min_gpus=8"),
        ("> 0 gpus", "min_gpus=0.01"),
        ("no more than 8 vcpus", "max_vcpus=8"),
        ("not less than 8 vcpus", "min_vcpus=8"),
        ("8 vcpus or less", "max_vcpus=8"),
        ("16+ vcpus 64 gb or more", "min_vcpus=16&min_memory=64"),
        ("8-16 vcpus", "min_vcpus=8&max_vcpus=16"),
        ("a100 between 8 and 16 vcpus", "gpu=a100&min_vcpus=8&max_vcpus=16"),
        ("64 to 128 gb ram 4..8 gpus", "min_memory=64&max_memory=128&min_gpus=4&max_gpus=8"),
        ("40-80 gb", "min_gpu_mem_per_gpu=40&max_gpu_mem_per_gpu=80"),
        ("between 1 and 2", "min_usd_per_hour=1&max_usd_per_hour=2"),
        ("h100 $5-$10", "gpu=h100&min_usd_per_hour=5&max_usd_per_hour=10"),
        ("1-2 eur", "currency=EUR&min_usd_per_hour=1.1590&max_usd_per_hour=2.3180"),
        ("at most 8 vcpus and 32 GiB", "max_vcpus=8&max_memory=32"),
        ("at least 8 vcpus and 32 GiB", "min_vcpus=8&min_memory=32"),
        ("A100 not preview", "gpu=a100&status=current"),
        ("a100 not nvlink", "gpu=a100&nvlink=false"),
        ("h100 not spot", "gpu=h100&q=not spot"),
        ("h100 not in west europe", "gpu=h100&q=not in west europe"),
        ("h100 not 8 vcpus", "gpu=h100&q=not 8 vcpus"),
        ("h100 exclude spot", "gpu=h100&q=exclude spot"),
        ("memory between 64 and 128 gb", "min_memory=64&max_memory=128"),
        ("vcpus 8-16 memory 32-64gb", "min_vcpus=8&max_vcpus=16&min_memory=32&max_memory=64"),
        ("8 vcpus 32-64 gb", "min_vcpus=8&min_memory=32&max_memory=64"),
        ("4 or more gpus", "min_gpus=4"),
        ("price between 1 and 2", "min_usd_per_hour=1&max_usd_per_hour=2"),
        ("h100 retires", "gpu=h100&status=retiring"),
        ("retires 2027", "q=retires+2027"),
        ("8-16 h100", "gpu=h100&q=8 16"),
        ("between 8 and 16 disks", "q=between 8 16 disks"),
        ("t4 or a100 at least 2 gpus", "gpu=a100,t4&min_gpus=2"),
        ("over 100 gb", "min_gpu_mem_per_gpu=100"),
        ("1/6 gpu", "min_gpus=0.16666666666666666"),
        ("a100 <730 usd a month", "gpu=a100&max_usd_per_hour=1.000000&unit=month"),
        ("<8760 eur yearly", "currency=EUR&max_usd_per_hour=1.159000&unit=year"),
        ("<$10/hour", "max_usd_per_hour=10"),
        ("a100 <2 usd per gpu", "q=a100+<2+usd+per+gpu"),
        ("<2 tb nvme", "q=<2+tb+nvme"),
        ("gpu under 1 dollar", "category=gpu_accelerated&max_usd_per_hour=1"),
        ("gpu below 1 usd", "category=gpu_accelerated&max_usd_per_hour=1"),
        ("gpus over 2 euros", "category=gpu_accelerated&currency=EUR&min_usd_per_hour=2.3180"),
        ("h100 under € 2", "gpu=h100&currency=EUR&max_usd_per_hour=2.3180"),
        ("h100 <2€", "gpu=h100&currency=EUR&max_usd_per_hour=2.3180"),
        ("h100 €1-€2", "gpu=h100&currency=EUR&min_usd_per_hour=1.1590&max_usd_per_hour=2.3180"),
        ("<0,5 eur an hour", "currency=EUR&max_usd_per_hour=0.5795"),
        ("gpus under 2", "max_gpus=1"),
        ("h100 $2", "gpu=h100&q=2 usd"),
        ("h100 in euros", "gpu=h100&currency=EUR"),
        ("1,5 tb ram", "min_memory=1536"),
        ("1,024 gb ram", "min_memory=1024"),
        ("<$1,000 a month", "max_usd_per_hour=1.369863&unit=month"),
        ("H100:8", "gpu=h100&min_gpus=8&max_gpus=8"),
        ("a100 80gb:4", "gpu=a100-80gb&min_gpus=4&max_gpus=4"),
        ("a100*4", "gpu=a100&min_gpus=4"),
        ("h100x8", "gpu=h100&min_gpus=8"),
        ("8xh100", "gpu=h100&min_gpus=8"),
        ("8×h100", "gpu=h100&min_gpus=8"),
        ("h100 x2 spot", "gpu=h100&min_gpus=2&purchase=spot"),
        ("h100 x 2", "gpu=h100&min_gpus=2"),
        ("1/6 a10", "gpu=a10&min_gpus=0.16666666666666666"),
        ("8 rtx pro 6000", "gpu=rtx pro 6000&min_gpus=8"),
        ("h200 8", "gpu=h200&min_gpus=8"),
        ("h200 8 eastus", "gpu=h200&min_gpus=8&region=eastus"),
        ("a100 8 zones", "gpu=a100&q=8 zones"),
        ("a100 80", "gpu=a100&q=80"),
        ("vcpus:8", "min_vcpus=8"),
        ("a100 80gb", "gpu=a100-80gb"),
        ("savings plan d8s_v5", "purchase=savings_1y&name=standard_d8s_v5"),
        ("savings plan 3 years", "purchase=savings_3y"),
        ("3 year reserved d4s v5", "purchase=reserved_3y&name=standard_d4s_v5"),
        ("3y reserved", "purchase=reserved_3y"),
        ("3-year savings plan", "purchase=savings_3y"),
        ("h100 1-year-reserved", "gpu=h100&purchase=reserved_1y"),
        ("reserved_3y", "purchase=reserved_3y"),
        ("reservation", "purchase=reserved_1y"),
        ("5 year reserved", "q=5+year+reserved"),
        ("retired", "status=retired"),
        ("network 100 gbps", "min_network_gbps=100"),
        ("100 gbps networking", "min_network_gbps=100"),
        ("3200 gbps infiniband", "min_infiniband_gbps=3200"),
        ("infiniband 400 gbps", "min_infiniband_gbps=400"),
        ("gpu memory 80", "min_gpu_mem_per_gpu=80"),
        ("64 gb ram 8 h100", "min_memory=64&min_gpus=8&gpu=h100"),
        ("80 gb gpu memory 8 h100", "min_gpu_mem_per_gpu=80&min_gpus=8&gpu=h100"),
        ("memory 64 8 vcpus", "min_memory=64&min_vcpus=8"),
        ("gpu memory 8 vcpus", "min_vcpus=8&category=gpu_accelerated&q=memory"),
        ("snp", "confidential_computing=snp"),
        ("tdx eastus", "confidential_computing=tdx&region=eastus"),
        ("burstable", "burstable=true"),
        ("not burstable", "burstable=false"),
        ("exactly 8 vcpus", "min_vcpus=8&max_vcpus=8"),
        ("h100 exactly 8 gpus", "gpu=h100&min_gpus=8&max_gpus=8"),
        ("exactly 64 gb ram", "min_memory=64&max_memory=64"),
        ("exactly 100 gbps", "q=exactly+100+gbps"),
        ("64-core arm", "min_vcpus=64&arch=arm64"),
        ("8 vCPU/32 GiB", "min_vcpus=8&min_memory=32"),
        ("8 vcpus, 32 gb ram, h100", "min_vcpus=8&min_memory=32&gpu=h100"),
        ("1/6 gpus", "min_gpus=0.16666666666666666"),
    ],
)
def test_words_become_parameters(client: httpx.Client, text: str, query: str) -> None:
    assert sorted(read(client, text).split("&")) == sorted(query.split("&"))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("us-east-1", "region=us-east-1"),
        ("us-east1", "region=us-east1"),
        ("us east 1", "region=us-east-1,us-east1"),
        ("us-west-2 h100", "region=us-west-2&gpu=h100"),
        ("useast1 aws", "region=us-east-1&provider=aws"),
        ("gcp uswest2", "region=us-west2&provider=gcp"),
        ("us-east aws", "region=us-east-1,us-east-2&provider=aws"),
        ("us-east-9", "q=us-east-9"),
        ("london aws", "region=eu-west-2&provider=aws"),
        ("m5.large", "name=m5.large"),
        ("g5 aws", "q=g5&provider=aws"),
        ("aws g5 a10g", "q=g5&provider=aws&gpu=a10g"),
        ("d3 us-east-1", "q=d3&region=us-east-1"),
        ("d3", "q=d3"),
        ("d3 azure", "name=standard_d3&provider=azure"),
        ("nc24", "name=standard_nc24"),
        ("n3-h100x8", "name=n3-h100x8"),
        ("efa aws", "fabric=efa&provider=aws"),
        ("n9-h100x8", "q=n9-h100x8"),
        ("g5 2xlarge", "name=g5.2xlarge"),
        ("nc24 a100", "q=nc24&gpu=a100"),
        ("nc24ads_a100_v4 a100 80gb", "name=standard_nc24ads_a100_v4&gpu=a100-80gb"),
        ("h300", "q=h300"),
        ("ND", "q=ND"),
        ("ND H100 v5", "gpu=h100&q=nd v5"),
    ],
)
def test_a_name_is_what_it_spells_and_what_the_words_beside_it_leave(
    clouds: httpx.Client, text: str, query: str
) -> None:
    assert sorted(read(clouds, text).split("&")) == sorted(query.split("&"))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("stnadard_d8s_v5", "name=standard_d8s_v5"),
        ("ds8_v5", "name=standard_d8s_v5"),
        ("Standard_NC24ads_A100v4", "name=standard_nc24ads_a100_v4"),
        ("h-100", "gpu=h100"),
        ("nvida h100", "gpu=h100&gpu_vendor=nvidia"),
        ("nd96_h100", "q=nd96&gpu=h100"),
        ("westeurpe", "region=westeurope"),
    ],
)
def test_misspelled_words_are_read_as_the_nearest(client: httpx.Client, text: str, query: str) -> None:
    assert sorted(read(client, text).split("&")) == sorted(query.split("&"))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("llama 3.3 70b 64 users", "model=llama-3.3-70b&concurrency=64"),
        (
            "Llama-3.3-70B fp8 for 64 users in West Europe",
            "model=llama-3.3-70b&dtype=fp8&concurrency=64&region=westeurope",
        ),
        ("deepseek-r1", "model=deepseek-r1"),
        ("llama 3.3 70b europe", "model=llama-3.3-70b&continent=europe"),
        (
            "llama 3.3 70b fp8 64 users germany",
            "model=llama-3.3-70b&dtype=fp8&concurrency=64&country=DE",
        ),
        ("llama 3.3 70b azure spot", "model=llama-3.3-70b&provider=azure&purchase=spot"),
        ("llama 3.3 70b on h100 in windows", "model=llama-3.3-70b&gpu=h100&os=windows"),
    ],
)
def test_a_model_leads_to_the_sizes_that_hold_it(client: httpx.Client, text: str, query: str) -> None:
    answer = client.get("/", params={"q": text}, headers=HTML, follow_redirects=True)
    assert (answer.status_code, answer.url.path) == (200, "/ui/fit")
    assert sorted(unquote(answer.url.query.decode()).split("&")) == sorted(query.split("&"))


def test_a_gpu_with_its_memory_finds_all_its_kinds(client: httpx.Client) -> None:
    page = client.get("/", params={"q": "a100 80gb"}, headers=HTML, follow_redirects=True).text
    assert "NC24ads_A100_v4" in page
    assert "ND96amsr_A100_v4" in page


def test_words_add_to_the_filters_of_the_url(client: httpx.Client) -> None:
    answer = client.get("/?gpu=a100&unit=month&page=3&q=westeurope+h100", headers=HTML)
    assert answer.status_code == 303
    assert sorted(answer.headers["location"][1:].split("&")) == ["gpu=a100,h100", "region=westeurope", "unit=month"]


@pytest.mark.parametrize(
    ("url", "query"),
    [
        ("/?region=westeurope&q=h100 eastus", "gpu=h100&region=eastus"),
        ("/?region=westeurope&q=h100 germany", "gpu=h100&country=DE"),
        ("/?country=DE&continent=asia&q=h100 eastus", "gpu=h100&region=eastus"),
        ("/?region=westeurope&q=a100 spot aws", "gpu=a100&purchase=spot&provider=aws"),
        ("/?region=us-east-1,westeurope&q=a100 aws", "gpu=a100&provider=aws&region=us-east-1"),
        ("/?provider=azure&q=a100 aws", "gpu=a100&provider=aws"),
        ("/?provider=aws&q=h100 westeurope", "gpu=h100&region=westeurope"),
        ("/?provider=azure&q=h100 westeurope", "gpu=h100&provider=azure&region=westeurope"),
        ("/?region=westeurope&q=h100 spot", "gpu=h100&purchase=spot&region=westeurope"),
    ],
)
def test_places_and_clouds_replace_those_of_the_url(clouds: httpx.Client, url: str, query: str) -> None:
    answer = clouds.get(url, headers=HTML, follow_redirects=True)
    assert answer.status_code == 200, answer.text
    assert sorted(unquote(answer.url.query.decode()).split("&")) == sorted(query.split("&"))


def test_a_place_of_the_words_replaces_that_of_the_page_for_a_model_too(client: httpx.Client) -> None:
    answer = client.get("/?region=westeurope&q=llama+3.3+70b+eastus", headers=HTML)
    assert answer.headers["location"] == "ui/fit?model=llama-3.3-70b&region=eastus"


def test_a_text_that_no_size_has_names_the_nearest_sizes(client: httpx.Client) -> None:
    page = unescape(client.get("/?q=nd96xyz", headers=HTML).text)
    nearest = page.partition("The nearest names: ")[2].partition("</p>")[0]
    assert "Standard_ND96asr_v4" in re.findall(r">([^<]+)</a>", nearest)
    assert "The nearest names" not in client.get("/?q=qwertyuiop", headers=HTML).text


@pytest.mark.parametrize(
    "text", ["99999999999999999999 vcpus", "<" + "9" * 60, "8 8 8 8", "' OR 1=1", "%", "*", "gpu " * 25]
)
def test_hostile_words_are_a_page(client: httpx.Client, text: str) -> None:
    answer = client.get("/", params={"q": text}, headers=HTML, follow_redirects=True)
    assert answer.status_code == 200
