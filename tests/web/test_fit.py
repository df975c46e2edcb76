"""The fit page over HTTP: it shows what POST /fit answers, and its links apply the fixes."""

import json
import re
from html import unescape
from typing import Any
from urllib.parse import urlencode, urljoin

import httpx
import pytest

from app.fit.formulas.quantities import Certainty, Figure
from app.fit.results import DEPARTURES, PerGpuMemory
from app.schemas.fit_response import ParallelismOut
from app.settings import PROJECT
from app.web import fit_answer
from app.web.fit import EXAMPLES
from app.web.fit_view import FitView
from tests.docs.pages import first_column, read, sections

HTML = {"accept": "text/html"}
PURCHASES = ["on_demand", "spot", "reserved_1y", "reserved_3y", "savings_1y", "savings_3y"]
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
}


def get(client: httpx.Client, url: str, status: int = 200) -> str:
    answer = client.get(url, headers=HTML)
    assert answer.status_code == status, answer.text
    return unescape(answer.text)


def options(page: str) -> list[str]:
    """Return the names of the options, in their order."""
    table = page.partition('id="options"')[2].partition("</table>")[0]
    return re.findall(r'href="[^"]*/ui/sizes/([^"]+)"', table)


def figure(
    *, value: float | None = None, low: float | None = None, mid: float | None = None, high: float | None = None
) -> Figure:
    certainty: Certainty = "exact" if mid is None else "estimate"
    return Figure(certainty=certainty, unit="GiB", value=value, low=low, mid=mid, high=high)


@pytest.mark.parametrize(
    ("url", "body"),
    [
        (
            "model=llama-3.3-70b&dtype=fp8&concurrency=64&region=eastus",
            {
                "model": "llama-3.3-70b",
                "inference": {"context_tokens": 8192, "dtype": "fp8", "concurrency": 64},
                "constraints": {"regions": ["eastus"]},
            },
        ),
        (
            "by=resources&min_gpu_mem=640&max_nodes=2&sort=waste&verified_only=true",
            {
                "resources": {"min_gpu_mem": 640},
                "constraints": {"max_nodes": 2, "verified_only": True},
                "sort": "waste",
            },
        ),
    ],
)
def test_the_options_are_those_of_the_api_in_its_order(client: httpx.Client, url: str, body: dict[str, Any]) -> None:
    answer = client.post("/fit", json={**body, "limit": 20, "pricing": {"purchases": PURCHASES}}).json()
    page = get(client, f"/ui/fit?{url}")
    assert options(page) == [item["size"].lower() for item in answer["items"]]
    assert f"<h1>{answer['total']} sizes" in page
    assert f"{answer['rejected_total']:,} sizes do not fit" in page
    for code, count in answer["rejection_summary"].items():
        group = page.partition(f'id="reason-{code.lower()}"')[2].partition("</summary>")[0]
        assert f">{count:,}<" in group


def test_an_unknown_amount_is_not_called_too_little(client: httpx.Client) -> None:
    page = get(client, "/ui/fit?model=llama-3.3-70b&concurrency=64")
    assert re.search(r'<h2 id="rejected">[\d,]+ sizes do not fit, or too little is known of them</h2>', page)
    assert re.search(r'id="reason-ram">\s*<summary>Too little memory of the VM, or an unknown amount ', page)
    known = get(client, "/ui/fit?model=llama-3.3-70b&concurrency=64&gpu=h100&name=*nc40ads*")
    assert re.search(r'<h2 id="rejected">\d+ sizes? do(es)? not fit</h2>', known)


def test_a_question_about_some_sizes_is_answered_about_these(client: httpx.Client) -> None:
    question = "/ui/fit?model=llama-3.3-70b&concurrency=64&name="
    page = get(client, f"{question}Standard_NC24ads_A100_v4")
    assert "<h1>Standard_NC24ads_A100_v4 does not hold Llama 3.3 70B" in page
    page = get(client, f"{question}*NC*ads_A100_v4&dtype=fp16")
    assert re.search(r"<h1>None of the \d sizes asked about holds Llama 3.3 70B", page)


def test_all_sizes_of_a_reason_are_a_click_away(client: httpx.Client) -> None:
    page = get(client, "/ui/fit?model=llama-3.3-70b&concurrency=64")
    (url, *_) = re.findall(r'href="([^"#]+)#reason-[^>]*>Show all of each reason', page)
    whole = get(client, f"/ui/fit{unescape(url)}")
    group = page_group(whole, "GPU_MEMORY_PER_GPU")
    shown = re.search(r">([\d,]+)</span></summary>", group)
    assert shown is not None
    assert group.count("<li>") == int(shown[1].replace(",", "")) > 3
    assert "Show all of each reason" not in whole


def test_the_nearest_misses_have_the_fixes_that_the_api_has(client: httpx.Client) -> None:
    body = {"model": "llama-3.3-70b", "inference": {"concurrency": 64}, "constraints": {"regions": ["westeurope"]}}
    misses = client.post("/fit", json=body).json()["nearest_misses"]
    page = get(client, "/ui/fit?model=llama-3.3-70b&concurrency=64&region=westeurope")
    fixed = set(re.findall(r'<span class="hidden"> on ([^<]+)</span>', page))
    assert {miss["size"] for miss in misses if miss["fixes"]} <= fixed
    assert len(misses) == 3


def page_group(page: str, code: str) -> str:
    """Return the sizes of a reason."""
    return page.partition(f'id="reason-{code.lower()}"')[2].partition("</details>")[0]


def test_the_body_for_programs_gets_the_same_answer(client: httpx.Client) -> None:
    page = get(client, "/ui/fit?model=llama-3.1-8b&budget_usd_per_month=9000&currency=EUR")
    body = re.search(r"curl --json '(\{.*\})' '", page)
    assert body is not None
    answer = client.post("/fit", content=body[1], headers={"content-type": "application/json"}).json()
    assert options(page) == [item["size"].lower() for item in answer["items"]]


@pytest.mark.parametrize(
    "url",
    [
        "model=llama-3.1-70b&concurrency=32&gpu=h100",
        "model=llama-3.1-405b&concurrency=400",
        "model=llama-3.1-8b&budget_usd_per_month=900&gpu=h100,a100",
        "by=resources&min_gpu_mem=640&budget_usd_per_month=30000",
        "by=resources&min_vcpus=300&min_memory=9000&region=westeurope",
    ],
)
def test_every_link_that_fixes_a_size_makes_it_fit(client: httpx.Client, url: str) -> None:
    page = get(client, f"/ui/fit?{url}")
    fixes = re.findall(r'<a class="button fix" href="([^"]+)"[^>]*>[^<]*<span class="hidden"> on ([^<]+)</span>', page)
    assert len(fixes) >= 3
    for link, size in fixes[:8]:
        fixed = get(client, urljoin("/ui/fit", link) + "&limit=500")
        assert size.lower() in options(fixed), link


def test_a_pasted_configuration_is_answered_with_a_link_to_the_answer(client: httpx.Client) -> None:
    form = {"by": "config", "config": json.dumps(LLAMA, indent=2), "concurrency": "8", "model": ""}
    answer = client.post("/ui/fit", data=form, headers=HTML)
    assert answer.status_code == 200
    page = unescape(answer.text)
    link = re.search(r'<a href="([^"]+)">The address of this answer', page)
    assert link is not None
    assert options(get(client, urljoin("/ui/fit", link[1]))) == options(page) != []


def test_a_long_configuration_has_no_link_and_says_so(client: httpx.Client) -> None:
    form = {"by": "config", "config": json.dumps(LLAMA | {"note": "x" * 9000})}
    page = client.post("/ui/fit", data=form, headers=HTML)
    assert page.status_code == 200
    assert "too long for an address" in page.text


@pytest.mark.parametrize(
    ("query", "name", "said"),
    [
        ("model=llama-3.3-7b", "model", "There is no model named 'llama-3.3-7b'. Did you mean"),
        ("model=foo", "model", "Its config.json may be pasted instead."),
        ("model=llama-3.1-8b&concurrency=many", "concurrency", "expected a whole number"),
        ("model=llama-3.1-8b&region=westeurop", "region", "did you mean westeurope?"),
        ("model=llama-3.1-8b&context_tokens=900000000", "context_tokens", "tokens"),
        ("model=llama-3.1-8b&min_vcpus=8", "min_vcpus", "it is for by=resources"),
        ("model=llama-3.1-8b&sort=waste", "sort", "allowed are cost_per_hour"),
        ("by=config&config={", "config", "is not JSON"),
        ("by=config&config=[]", "config", "must be a JSON object"),
        ('by=config&config={"model_type":"lama"}', "config", "(did you mean llama?) is not known"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(client: httpx.Client, query: str, name: str, said: str) -> None:
    page = get(client, f"/ui/fit?{query}", 422)
    summary = page.partition('id="errors"')[2].partition("</div>")[0]
    assert f'href="#{name}"' in summary
    assert said in summary


def test_a_model_made_for_less_than_8192_tokens_is_asked_about_with_what_it_is_made_for(client: httpx.Client) -> None:
    assert "1,024 tokens of context" in get(client, "/ui/fit?model=gpt-2-1.5b")


def test_the_context_that_is_asked_for_is_shown(client: httpx.Client) -> None:
    page = get(client, "/ui/fit?model=llama-3.1-70b&context_tokens=16384&concurrency=8&region=westeurope")
    assert "16,384 tokens of context, 8 users at a time" in page


def test_sizes_can_be_of_a_cloud_and_priced_in_a_country_or_continent(client: httpx.Client) -> None:
    query = "model=llama-3.1-70b&provider=azure&country=NL&continent=europe"
    page = get(client, f"/ui/fit?{query}")
    body = {
        "model": "llama-3.1-70b",
        "inference": {"concurrency": 1},
        "constraints": {"provider": ["azure"], "country": ["NL"], "continent": ["europe"]},
        "limit": 20,
    }
    answer = client.post("/fit", json=body).json()
    assert options(page) == [item["size"].lower() for item in answer["items"]]
    assert {item["region"] for item in answer["items"]} == {"westeurope"}
    for name, value in (("provider", "azure"), ("country", "NL"), ("continent", "europe")):
        assert re.search(f'name="{name}"[^>]*value="{value}"', page)
    assert f'href="?{query.replace("model=", "use=service&model=")}"' in page
    needs = get(client, "/ui/fit?by=resources&min_gpus=8&name=*ND96isr_H100*&country=BR")
    assert re.search(r'href="[?]min_gpus=8&by=resources&name=[^"&]*"[^>]*>without country<', needs)
    assert 'href="#country"' in get(client, "/ui/fit?model=llama-3.1-70b&country=Holland", 422)


def test_what_is_wrong_names_parameters_of_the_page(client: httpx.Client) -> None:
    page = get(client, "/ui/fit?model=gemma-3-27b&context_tokens=200000", 422)
    assert "131072; allow_longer_context takes it as extended" in page
    service = "use=service&input_tokens=130000&output_tokens=10000&users=5"
    page = get(client, f"/ui/fit?model=llama-3.1-70b&{service}", 422)
    assert 'href="#input_tokens"' in page
    assert "and output_tokens together are 140000, more than the model's maximum, 131072" in page


def test_one_measured_run_is_said_in_the_singular() -> None:
    said = [fit_answer.Span(1, 2, 3, 4, ("gpu",), runs).backing for runs in (None, 0, 1, 2000)]
    assert said == ["not measured", "not measured", "1 such run", "2,000 such runs"]


def test_every_example_finds_a_size_or_a_fix(client: httpx.Client) -> None:
    page = get(client, "/ui/fit")
    links = re.findall(r'<li><a href="(\?[^"]+)"', page.partition('class="examples"')[2].partition("</ul>")[0])
    assert len(links) == len(EXAMPLES)
    for link in links:
        assert options(get(client, f"/ui/fit{link}")), link


def test_the_parts_of_a_gpu_fill_its_bar() -> None:
    need = figure(low=54.0, mid=55.0, high=56.0)
    memory = PerGpuMemory(
        weights=figure(value=33.0),
        kv_cache=figure(value=20.0),
        states=None,
        activations=figure(low=0.0, mid=0.0, high=1.0),
        buffers=None,
        overhead=figure(low=1.5, mid=2.0, high=2.5),
        need=need,
        budget=figure(value=110.0),
    )
    parts = fit_answer.memory_parts(memory)
    assert [(part.kind, part.gib, part.start, part.width) for part in parts] == [
        ("weights", 33.0, 0.0, 30.0),
        ("kv_cache", 20.0, 30.0, 18.18),
        ("activations", 0.0, 48.18, 0.0),
        ("overhead", 2.0, 48.18, 1.82),
        ("free", 55.0, 50.0, 50.0),
    ]


def test_a_layout_is_said_in_words() -> None:
    split = ParallelismOut(
        tensor=8, pipeline=2, expert=16, data_attention=2, data=3, zero_stage=None, gpus=96, idle_gpus=1
    )
    assert fit_answer.layout_words(6, split) == [
        "6 VMs",
        "each layer split over 8 GPUs (TP 8)",
        "2 stages (PP 2)",
        "2 groups with their own sequences (DP attention 2)",
        "experts spread over 16 GPUs (EP 16)",
        "3 replicas",
        "1 GPU idle",
    ]


def test_reasons_warnings_and_departures_have_words() -> None:
    codes = {table: set(first_column(text)) for table, text in sections(read(PROJECT / "docs/fit.md")).items()}
    documented = set().union(*codes.values())
    assert set(fit_answer.REASONS) - {"UNVERIFIED"} <= documented
    assert set(fit_answer.WARNINGS) <= documented
    methods = sections(read(PROJECT / "docs/methods.md"))
    of_serving = set(first_column(methods["Speed of serving"])) - {"outside"}
    assert set(DEPARTURES) == of_serving | {"gpus", "sequence", "batch"}


def plain(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


SERVICE = {"input_tokens": 2000, "output_tokens": 300, "requests_per_second": 5, "ttft_ms": 500, "tpot_ms": 40}
TRAINING = {"method": "qlora", "tokens": 100_000_000, "sequence_tokens": 2048}


def test_a_service_level_has_replicas_vms_limits_and_costs_of_the_api(client: httpx.Client) -> None:
    body = {"model": "llama-3.1-70b", "serving": {**SERVICE, "peak_to_mean": 3}}
    first = client.post("/fit", json=body).json()["items"][0]
    text = get(
        client, f"/ui/fit?{urlencode({'model': 'llama-3.1-70b', 'use': 'service', **SERVICE, 'peak_to_mean': 3})}"
    )
    assert re.search(r"<h1>\d+ sizes serve Llama 3.1 70B</h1>", text)
    row = plain(text.partition("<tbody")[2].partition("</tr>")[0])
    service, cost = first["serving"], first["cost"]["on_demand"]
    assert first["size"].removeprefix("Standard_") in row
    assert f"{service['replicas']} replicas on {service['nodes_at_peak']} VMs at the peak" in row
    assert f"{service['nodes_at_mean']} VM" in row
    assert f"{service['concurrency_per_replica']} of {service['max_concurrency_per_replica']} requests at a time" in row
    assert f"limited by {fit_answer.LIMITS[service['limited_by']]}" in row
    assert f"${cost['usd_per_hour']:.2f} an hour" in row
    assert "per 1M tokens" in row
    assert "a request" in row
    assert "at most 0.5" in row
    assert "at most 40" in row


def test_a_training_has_its_duration_gpu_hours_and_cost_as_ranges(client: httpx.Client) -> None:
    body = {"model": "llama-3.1-8b", "training": TRAINING, "sort": "cost_per_job"}
    first = client.post("/fit", json=body).json()["items"][0]
    text = get(client, f"/ui/fit?{urlencode({'model': 'llama-3.1-8b', 'use': 'training', **TRAINING})}")
    assert re.search(r"<h1>\d+ sizes train Llama 3.1 8B</h1>", text)
    row = plain(text.partition("<tbody")[2].partition("</tr>")[0])
    assert first["size"].removeprefix("Standard_") in row
    hours, gpus = first["speed"]["hours"], first["parallelism"]["gpus"]
    assert f"{hours['mid'] * gpus:.0f} GPU-hours" in row
    assert f"${first['cost']['on_demand']['usd_per_job']['mid']:.2f}" in row
    assert "the job" in row


def test_a_service_without_its_load_is_asked_for_it(client: httpx.Client) -> None:
    assert "How much is it used?" in get(client, "/ui/fit?model=llama-3.1-70b&use=service&input_tokens=2000")


@pytest.mark.parametrize(
    ("query", "name", "said"),
    [
        ("model=llama-3.1-8b&use=training&concurrency=4", "concurrency", "it is for use=context"),
        ("model=llama-3.1-8b&ttft_ms=500", "ttft_ms", "it is for use=service"),
        ("by=resources&min_gpus=8&tokens=1000", "tokens", "it is for use=training"),
        ("model=llama-3.1-8b&use=service&users=4&requests_per_second=2", "users", "give only one of"),
        ("model=llama-3.1-8b&use=service&prefix_cache_hit=2", "prefix_cache_hit", "must be at most 1"),
        ("model=llama-3.1-8b&use=training&sort=cost_per_1m_token", "sort", "allowed are"),
    ],
)
def test_parameters_of_another_use_are_refused_at_their_field(
    client: httpx.Client, query: str, name: str, said: str
) -> None:
    text = get(client, f"/ui/fit?{query}", 422)
    assert said in text
    assert f'href="#{name}"' in text


def test_a_link_to_another_use_keeps_the_model(client: httpx.Client) -> None:
    text = get(client, "/ui/fit?model=llama-3.1-70b&dtype=fp8&concurrency=64&region=eastus")
    assert 'href="?use=training&model=llama-3.1-70b&region=eastus"' in text
    assert 'href="?use=service&model=llama-3.1-70b&dtype=fp8&region=eastus"' in text


def test_the_page_documents_its_parameters() -> None:
    assert all(field.description for field in FitView.model_fields.values())


def test_options_without_a_price_come_with_where_prices_are_known(client: httpx.Client) -> None:
    note = "Linux, reserved, 3 years: no price is known in westeurope, only in polandcentral"
    assert note in get(client, "/ui/fit?model=llama-3.3-70b&region=westeurope&purchase=reserved_3y")
    assert "no price is known" not in get(client, "/ui/fit?model=llama-3.3-70b&region=westeurope")


def test_regions_name_their_cloud_where_the_catalog_has_several(clouds: httpx.Client, client: httpx.Client) -> None:
    page = unescape(get(clouds, "/ui/fit?model=llama-3.3-70b&region=westeurope"))
    titles = re.findall(r'name="region" value="[^"]*"[^>]*>\s*<span>([^<]+)</span>', page)
    assert titles[0] == "West Europe, Azure"
    assert titles[1:] == sorted(titles[1:], key=lambda title: title.rpartition(", ")[::-1])
    assert {"Africa (Cape Town), AWS", "All regions, RunPod", "All regions, Lambda"} <= {*titles}
    assert "<span>West Europe</span>" in get(client, "/ui/fit?model=llama-3.3-70b&region=westeurope")
