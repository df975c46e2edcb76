"""Commands, their output for people and scripts, and their exit codes."""

import csv
import inspect
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import httpx
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # has no type information
import pytest
from sqlalchemy import Engine

from app.catalog.queries.exports import EXPORTABLE_TABLES
from app.catalog.queries.params import FitSort, SizeSearch, other_spellings
from app.cli import estimate
from app.cli.estimate import MODEL_SORTS
from app.cli.options import option_name
from app.cli.output import EXIT_NOT_FOUND, EXIT_USAGE
from app.db.engines import make_engine
from app.ingest.run import ingest
from app.schemas.fit_request import Sort
from tests.catalog.test_price_runs import X1, X2, one_list
from tests.cli.conftest import Run
from tests.databases import one_in
from tests.factories import NOW, reading, size

PROGRAM = str(Path(sys.executable).with_name("vmsizes"))


@pytest.mark.first_database
def test_a_search_gives_the_rows_of_the_api(run: Run, seeded_url: str, client: httpx.Client) -> None:
    done = run(seeded_url, "search", "--min-gpu-mem", "600", "--sort", "-gpu_memory_gib", "--json")
    assert done.returncode == 0, done.stderr
    params = {"min_gpu_mem": "600", "sort": "-gpu_memory_gib"}
    assert json.loads(done.stdout) == client.get("/sizes", params=params).json()["items"]


@pytest.mark.one_database
@pytest.mark.parametrize("amount", ["1024GB", "1024 GiB", "1TB", "1 TiB", "1024g"])
def test_amounts_of_memory_take_the_units_that_people_write(run: Run, seeded_url: str, amount: str) -> None:
    plain, written = (run(seeded_url, "search", f"--min-gpu-mem={value}", "--json") for value in ("1024", amount))
    assert json.loads(written.stdout) == json.loads(plain.stdout) != []
    refused = run(seeded_url, "search", "--min-gpu-mem", "80MB")
    assert (refused.returncode, "'80MB': units are GB and TB, or GiB and TiB" in refused.stderr) == (2, True)


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_a_bound_may_be_named_after_its_field(run: Run, seeded_url: str) -> None:
    for by_field, name in other_spellings(SizeSearch).items():
        amounts = (by_field, "4000" if by_field.endswith("_mbps") else "4"), (name, "4")
        one, other = (run(seeded_url, "search", option_name(bound), amount, "--json") for bound, amount in amounts)
        assert (one.returncode, one.stdout, one.stderr) == (other.returncode, other.stdout, other.stderr), name
        assert one.returncode != EXIT_USAGE, one.stderr
    for command in ("search", "fit"):
        both = run(seeded_url, command, "--min-gpu-memory-gib=80GB", "--min-gpu-mem=80GB")
        expected = "--min-gpu-memory-gib=80: min_gpu_memory_gib and min_gpu_mem are one parameter; give one of them"
        assert (both.returncode, expected in both.stderr) == (EXIT_USAGE, True), both.stderr
    wrong = run(seeded_url, "search", "--min-network-mbps=-5")
    assert "--min-network-mbps=-5: must be at least 0" in wrong.stderr


@pytest.mark.one_database
def test_a_table_is_for_people_and_csv_for_scripts(run: Run, seeded_url: str) -> None:
    table = run(seeded_url, "search", "--gpu", "H200")
    assert "Standard_ND96isr_H200_v5" in table.stdout
    assert "GPU GiB" in table.stdout
    (row,) = csv.DictReader(io.StringIO(run(seeded_url, "search", "--gpu", "H200", "--csv").stdout))
    assert (row["gpu_memory_gib"], row["infiniband"]) == ("1128.0", "true")


@pytest.mark.one_database
def test_the_price_of_a_reservation_comes_before_the_others(run: Run, seeded_url: str) -> None:
    shown = run(seeded_url, "search", "--gpu", "H200", "--purchase", "reserved_3y").stdout
    assert shown.split()[:6] == ["size", "reserved", "3y", "USD/h", "status", "vCPUs"]


@pytest.mark.takes_seconds
@pytest.mark.first_database
@pytest.mark.parametrize("day", [{"as_of": "2024-01-10"}, {"as_of": "2024-01-10", "known_at": "2026-09-01"}])
def test_commands_take_the_prices_of_a_day(
    run: Run, seeded_url: str, client: httpx.Client, day: Mapping[str, str]
) -> None:
    options = (*(word for name, value in day.items() for word in (f"--{name.replace('_', '-')}", value)), "--json")
    size, path = "Standard_D16ads_v6", "/sizes/Standard_D16ads_v6"
    found = json.loads(run(seeded_url, "search", "--name", size, *options).stdout)
    assert found == client.get("/sizes", params={"name": size, **day}).json()["items"]
    shown = json.loads(run(seeded_url, "show", size, *options).stdout)
    assert shown["size"] == client.get(path, params=day).json()
    assert shown["prices"] == client.get(f"{path}/prices", params={"limit": 500, **day}).json()["items"]
    fitting = json.loads(run(seeded_url, "fit", "--name", size, *options).stdout)
    assert fitting == client.get("/fit", params={"name": size, **day}).json()
    compared = json.loads(run(seeded_url, "compare", size, "d2ads_v6", *options).stdout)
    assert compared == client.get("/compare", params={"size": f"{size},d2ads_v6", **day}).json()
    placed = run(seeded_url, "fit", "llama-3.1-8b", "--name", "nc24ads_a100_v4", "--known-at", "2020-01-01", "--json")
    (item,) = json.loads(placed.stdout)["items"]
    assert item["cost"]["on_demand"]["usd_per_hour"] is None


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("search", "--limit", "1.5"), "Invalid value for '--limit': '1.5': expected a whole number"),
        (("mcp", "install", "--host", "nope"), "Invalid value for '--host': 'nope' is not one of 'claude'"),
        (("search", "--min-memory", "100MB"), "'100MB': units are GB and TB, or GiB and TiB"),
        (("fit", "--min-gpu-mem", "1 XB"), "'1 XB': units are GB and TB"),
        (("publish", "tests"), "FOLDER=tests: has something else in it"),
        (("search", "--columns", "name,price"), "--columns=price: there is no such field; did you mean usd_per_hour?"),
    ],
)
def test_a_refused_option_is_shown_with_its_value_and_what_is_allowed(
    run: Run, seeded_url: str, arguments: tuple[str, ...], message: str
) -> None:
    done = run(seeded_url, *arguments)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


@pytest.mark.one_database
def test_csv_of_nothing_has_a_header(run: Run, seeded_url: str) -> None:
    nothing = ("search", "--name", "nothing", "--csv")
    assert run(seeded_url, *nothing).stdout.startswith("name,status,")
    assert run(seeded_url, *nothing, "--columns", "name,usd_per_hour").stdout == "name,usd_per_hour\r\n"


@pytest.mark.one_database
@pytest.mark.parametrize("command", ["sources", "revisions"])
def test_all_lists_have_a_limit(run: Run, seeded_url: str, command: str) -> None:
    rows = json.loads(run(seeded_url, command, "--json").stdout)
    assert json.loads(run(seeded_url, command, "--json", "--limit", "1").stdout) == rows[:1]
    assert run(seeded_url, command, "--limit", "0").returncode == 2


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("search", "--name", "nothing"), 1, "Nothing matches."),
        (("search", "H1000"), 1, "No GPU is called H1000; did you mean H100?"),
        (("search", "H100:0"), 2, "GPU=H100:0: asks for no GPU; the number after the colon is above 0"),
        (("search", "H100:0/4"), 2, "GPU=H100:0/4: asks for no GPU"),
        (("search", "--gpu", "nothing"), 2, "no GPU of the catalog is called nothing"),
        (("search", "--region", "westeurop"), 2, "did you mean westeurope?"),
        (("search", "--min-gpu-mem", "lots"), 2, "--min-gpu-mem=lots"),
        (("search", "--sort", "colour"), 2, "allowed are name"),
        (("search", "--json", "--csv"), 2, "cannot be given together"),
        (("search", "--nonsense"), 2, "No such option"),
        (("search", "--cursor", "xxx"), 2, "use next_cursor as it was returned"),
        (("serve", "--port", "99999"), 2, "'99999': must be at most 65,535"),
        (("serve", "--workers", "65"), 2, "'65': must be at most 64"),
        (("show", "nd40rs"), 1, "Did you mean Standard_ND40rs_v2?"),
        (("show", "ND GB300 v6-series"), 1, "nd_gb300_v6 is a series of sizes; search with series=nd_gb300_v6."),
        (("fit", "--min-gpu-mem", "5000"), 1, ""),
        (("ingest", "prices", "no-such-file.csv"), 3, "no-such-file.csv"),
        (("ingest", "documents", "no-such-page.md"), 3, "no-such-page.md"),
    ],
)
def test_exit_codes_and_messages(
    run: Run, seeded_url: str, arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = run(seeded_url, *arguments)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.one_database
def test_a_number_of_gpus_that_no_size_has_leaves_the_name_unquestioned(run: Run, seeded_url: str) -> None:
    done = run(seeded_url, "search", "H100:9")
    assert done.returncode == 1
    assert "No GPU is called" not in done.stderr


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_the_installed_program_says_what_to_do_where_there_is_no_catalog(empty_url: str) -> None:
    environment = {**os.environ, "VMSIZES_DATABASE_URL": empty_url}
    done = subprocess.run([PROGRAM, "search"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "run `vmsizes migrate`, then `vmsizes ingest seeds`" in done.stderr


@pytest.mark.one_database
def test_fit_explains_the_best_option_and_counts_the_rest(run: Run, seeded_url: str) -> None:
    done = run(seeded_url, "fit", "--min-gpu-mem", "320", "--region", "eastus")
    assert done.returncode == 0
    assert "Standard_NC96ads_A100_v4: Fits on 1 VM: needs 320 of 320 GiB GPU memory (0% to spare)" in done.stdout
    assert "GPU_MEMORY_TOTAL" in done.stdout


@pytest.mark.one_database
def test_show_lists_what_each_source_says(run: Run, seeded_url: str) -> None:
    data = json.loads(run(seeded_url, "show", "nd40rs_v2", "--json").stdout)
    assert data["size"]["gpu_memory_gib"] == 256
    assert {"128", "256"} <= {fact["value"] for fact in data["facts"]}
    assert "verbatim" in run(seeded_url, "show", "nd40rs_v2", "--facts").stdout


@pytest.mark.one_database
def test_conflicts_are_listed(run: Run, seeded_url: str) -> None:
    rows = json.loads(run(seeded_url, "conflicts", "--field", "gpu_memory_gib", "--json").stdout)
    assert {(row["name"], row["accepted_value"], row["value"]) for row in rows} == {
        ("Standard_ND40rs_v2", "256", "128")
    }


@pytest.mark.first_database
def test_models_are_those_of_the_api(run: Run, seeded_url: str, client: httpx.Client) -> None:
    done = run(seeded_url, "models", "--q", "mixtral", "--json")
    assert json.loads(done.stdout) == client.get("/models", params={"q": "mixtral"}).json()["items"]
    (row,) = csv.DictReader(io.StringIO(run(seeded_url, "models", "--q", "mixtral 8x7b", "--csv").stdout))
    assert (row["id"], row["params"], row["experts"], row["sliding_window"]) == ("mixtral-8x7b", "46702792704", "8", "")
    assert run(seeded_url, "models", "--q", "no such model").returncode == 1


@pytest.mark.first_database
def test_a_cost_is_that_of_the_api(run: Run, seeded_url: str, client: httpx.Client) -> None:
    disks = ["premium_ssd:1024", "premium_ssd_v2:1024:5000:200"]
    options = [word for disk in disks for word in ("--disk", disk)]
    done = run(seeded_url, "cost", "nc24ads_a100_v4", "--region", "westeurope", *options, "--count", "2", "--json")
    answer = client.get(
        "/sizes/nc24ads_a100_v4/cost", params={"region": "westeurope", "disk": disks, "count": 2}
    ).json()
    assert json.loads(done.stdout) == answer
    table = run(seeded_url, "cost", "nc24ads_a100_v4", "--region", "westeurope", *options, "--csv").stdout
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [row["part"] for row in rows] == ["vm", "disks[0]", "disks[1]", "total"]
    assert float(rows[-1]["usd_per_month"]) == answer["total"]["usd_per_month"] / 2
    refused = run(seeded_url, "cost", "nc24ads_a100_v4", "--disk", "premium:1")
    assert (refused.returncode, "--disk=premium:1: expected TYPE:GiB" in refused.stderr) == (2, True)


ASKED = {
    "sizes": (
        "--status any --as-of 2026-07-01 --fields name,usd_per_hour",
        "status=any&as_of=2026-07-01&fields=name,usd_per_hour",
    ),
    "prices": ("--history --as-of 2026-09-01 --gpu A10", "history=true&as_of=2026-09-01&gpu=A10"),
}


@pytest.mark.first_database
@pytest.mark.parametrize("name", [f"{what}.{form}" for what in ASKED for form in ("csv", "ndjson", "parquet")])
def test_an_export_is_that_of_the_api(
    run: Run, seeded_url: str, client: httpx.Client, tmp_path: Path, name: str
) -> None:
    what, _, form = name.partition(".")
    options, query = ASKED[what]
    file = tmp_path / name
    done = run(seeded_url, "export", what, "--format", form, "-o", str(file), *options.split())
    assert done.returncode == 0, done.stderr
    answer = client.get(f"/{name}?{query}").content
    assert file.read_bytes() == answer
    rows = pq.read_metadata(file).num_rows if form == "parquet" else answer.count(b"\n") - (form == "csv")
    assert f"{rows} {what} written" in done.stderr


@pytest.mark.first_database
@pytest.mark.parametrize("table", EXPORTABLE_TABLES)
def test_a_small_table_is_exported_whole(run: Run, seeded_url: str, table: str) -> None:
    command = table.replace("_", "-")
    (head, *rows) = csv.reader(io.StringIO(run(seeded_url, "export", command).stdout))
    lines = run(seeded_url, "export", command, "--format", "ndjson").stdout.splitlines()
    assert len(rows) == len(lines) > 0
    assert all(list(json.loads(line)) == head for line in lines)


@pytest.mark.first_database
@pytest.mark.parametrize("arguments", [("export", "prices"), ("search", "--limit", "500", "--json")], ids=" ".join)
def test_a_reader_that_stops_is_no_failure(seeded_url: str, arguments: tuple[str, ...]) -> None:
    here, other = os.pipe()
    os.close(here)
    with open(other, "w", encoding="utf-8") as closed:  # noqa: PTH123  # a descriptor
        program = [PROGRAM, *arguments]
        environment = {**os.environ, "VMSIZES_DATABASE_URL": seeded_url}
        done = subprocess.run(program, stdout=closed, stderr=subprocess.PIPE, env=environment, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.first_database
def test_an_export_to_standard_output_is_the_file_alone(run: Run, seeded_url: str) -> None:
    done = run(seeded_url, "export", "regions", "--fields", "code", "--format", "ndjson")
    assert json.loads(done.stdout.splitlines()[0]) == {"code": "australiacentral"}
    assert done.stderr == ""
    refused = run(seeded_url, "export", "regions", "--fields", "coed")
    assert refused.returncode == 2
    assert "did you mean code?" in refused.stderr


PAGE = """---
title: XA100 size series
ms.date: 01/02/2026
---

| Size Name | vCPUs (Qty.) | Memory (GiB) | Accelerators (Qty.) | Accelerator-Memory (GB) |
|---|---|---|---|---|
| Standard_X8_A100 | 8 | 100 | 1 | 80 |
| Standard_X16_A100 | 16 | 200 | 2 | 160 |
| Standard_X99_A100 | 16 - 32 | 200 | 2 | 160 |
"""


@pytest.mark.one_database
def test_a_dry_run_prints_every_fact_on_a_line_and_writes_nothing(run: Run, empty_url: str, tmp_path: Path) -> None:
    page = tmp_path / "x.md"
    page.write_text(PAGE)
    done = run(empty_url, "ingest", "documents", str(page), "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {frozenset(line) for line in lines} == {
        frozenset({"subject", "field", "value", "unit", "raw", "file", "line"})
    }
    vcpus = {line["subject"]: line["value"] for line in lines if line["field"] == "vcpus"}
    assert vcpus == {"Standard_X8_A100": 8, "Standard_X16_A100": 16}
    assert f"{page}:10: column 'vCPUs (Qty.)'" in done.stderr
    strict = run(empty_url, "ingest", "documents", str(page), "--dry-run", "--json", "--strict")
    assert strict.returncode == 3
    page = page.rename(tmp_path / "x:key:.md")  # no emoji
    assert f"({page}:" in run(empty_url, "ingest", "documents", str(page), "--dry-run").stdout


@pytest.mark.first_database
def test_an_ingested_page_is_in_the_catalog(run: Run, database_url: str, tmp_path: Path) -> None:
    page = tmp_path / "x.md"
    page.write_text(PAGE)
    refused = run(database_url, "ingest", "documents", str(page), "--strict")
    assert refused.returncode == 3
    empty = run(database_url, "search")
    assert (empty.returncode, "run `vmsizes ingest seeds`" in empty.stderr) == (4, True)
    done = run(database_url, "ingest", "documents", str(page), "--json")
    assert json.loads(done.stdout)["tables"]["size"]["added"] == 3
    (row,) = json.loads(run(database_url, "search", "--min-gpu-mem", "160", "--min-vcpus", "16", "--json").stdout)
    assert (row["name"], row["gpu_memory_gib_per_gpu"], row["verified"]) == ("Standard_X16_A100", 80, True)


@pytest.mark.one_database
def test_every_command_has_a_help_text(run: Run, seeded_url: str) -> None:
    for command in ("serve", "migrate", "ingest", "search", "show", "fit", "conflicts", "export", "history"):
        assert command in run(seeded_url, "--help").stdout
        help_text = run(seeded_url, command, "--help")
        assert help_text.returncode == 0
        assert "Pydantic" not in help_text.stdout


SERVICE = ("--input-tokens", "100", "--output-tokens", "10")
LLAMA = ("--model", "llama-3.1-70b", "--context", "8192", "--concurrency", "32")


@pytest.mark.one_database
def test_fit_of_a_model_explains_the_best_option_and_what_would_help_the_rest(run: Run, seeded_url: str) -> None:
    done = run(seeded_url, "fit", *LLAMA, "--region", "westeurope")
    assert done.returncode == 0
    assert (
        "Standard_NC96ads_A100_v4: Fits on 1 VM with TP=4 over PCIe: needs 57.4 of 72.9 GiB on each GPU" in done.stdout
    )
    assert "fits with concurrency <= 13, or dtype=fp8, or +1 node" in done.stdout


@pytest.mark.first_database
def test_fit_of_a_model_prints_what_the_service_answers(run: Run, seeded_url: str, client: httpx.Client) -> None:
    done = run(seeded_url, "fit", *LLAMA, "--region", "westeurope", "--json")
    body = {"model": "llama-3.1-70b", "inference": {"context_tokens": 8192, "concurrency": 32}}
    response = client.post("/fit", json=body | {"constraints": {"regions": ["westeurope"]}})
    here, there = (
        [(item["size"], item["parallelism"], item["per_gpu"], item["speed"]) for item in answer["items"]]
        for answer in (json.loads(done.stdout), response.json())
    )
    assert here == there
    assert here


@pytest.mark.first_database
def test_fit_of_a_model_takes_clouds_countries_and_continents(run: Run, seeded_url: str, client: httpx.Client) -> None:
    places = ("--provider", "azure", "--country", "NL", "--continent", "europe")
    printed = run(seeded_url, "fit", *LLAMA, *places, "--json")
    body = {"model": "llama-3.1-70b", "inference": {"context_tokens": 8192, "concurrency": 32}, "limit": 100}
    constraints = {"provider": ["azure"], "country": ["NL"], "continent": ["europe"]}
    answer = client.post("/fit", json=body | {"constraints": constraints}).json()
    assert json.loads(printed.stdout) == answer
    assert {item["region"] for item in answer["items"]} == {"westeurope"}


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--context", "8k"), "--context: cannot be answered without MODEL or --config"),
        ((), "error: cannot be answered without MODEL or --config"),
        (("gemma-3-27b", "--context", "1M"), "131072; --allow-longer-context takes it as extended"),
        (
            ("llama-3.1-8b", *SERVICE, "--users", "4"),
            "error: cannot be answered without --usable-gib, --bandwidth-gb-per-s, --peak-tflops",
        ),
    ],
)
def test_errors_of_an_estimate_name_options(
    run: Run, seeded_url: str, arguments: tuple[str, ...], message: str
) -> None:
    done = run(seeded_url, "estimate", *arguments)
    assert done.returncode == EXIT_USAGE
    assert done.stderr.replace("\n", " ").rstrip().endswith(message)


def test_help_lists_every_order_that_fit_takes() -> None:
    assert {*get_args(FitSort), *MODEL_SORTS} == {*get_args(Sort)}
    field = inspect.signature(estimate.fit).parameters["sort"].annotation.__metadata__[0]
    assert all(name in field.help for name in get_args(Sort))


@pytest.mark.first_database
def test_fit_of_a_service_prints_what_the_service_answers(run: Run, seeded_url: str, client: httpx.Client) -> None:
    options = (
        "--input-tokens",
        "2000",
        "--output-tokens",
        "300",
        "--users",
        "64",
        "--ttft-ms",
        "500",
        "--tpot-ms",
        "40",
    )
    serving = {"input_tokens": 2000, "output_tokens": 300, "users": 64, "ttft_ms": 500, "tpot_ms": 40}
    body = {"model": "llama-3.3-70b", "serving": serving, "limit": 100}
    printed = run(seeded_url, "fit", "llama-3.3-70b", *options, "--limit", "100", "--json")
    assert json.loads(printed.stdout) == client.post("/fit", json=body).json()
    table = run(seeded_url, "fit", "llama-3.3-70b", *options).stdout
    assert "TTFT ms" in table
    assert "requests at a time on each copy at the peak" in table
    refused = run(seeded_url, "fit", "llama-3.3-70b", *options, "--concurrency", "8")
    assert refused.returncode != 0
    assert "--concurrency" in refused.stderr
    assert "serving" in refused.stderr


@pytest.mark.first_database
@pytest.mark.parametrize("model", ["whisper-large-v3", "flux.1-dev"])
def test_a_model_whose_speed_is_not_known_has_a_table(run: Run, seeded_url: str, model: str) -> None:
    printed = run(seeded_url, "fit", model, "--region", "eastus", "--concurrency", "1", "--limit", "1")
    assert printed.returncode == 0, printed.stderr
    assert "tokens/s" in printed.stdout


@pytest.mark.one_database
def test_fit_of_a_training_has_hours_and_the_cost_of_the_job(run: Run, seeded_url: str) -> None:
    arguments = ("--model", "llama-3.1-8b", "--train", "--sequence", "4096", "--tokens", "1e9", "--gpu", "H100")
    done = run(seeded_url, "fit", *arguments, "--json")
    (best, *_) = json.loads(done.stdout)["items"]
    assert best["speed"]["hours"]["low"] > 0
    assert best["cost"]["on_demand"]["usd_per_job"]["mid"] > 0


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "llama-3.1-70b", "--min-gpus", "3"), "--min-gpus=3: is about raw amounts"),
        (("--model", "llama-3.1-70b", "--tokens", "3"), "--tokens=3: does not apply to inference"),
        (("--model", "llama-3.1-70b", "--context", "0"), "--context=0: "),
        (("--model", "llama-9"), "There is no model named 'llama-9'"),
        (("--model", "llama-3.1-70b", "--region", "us-east-1"), "--region=us-east-1: no such region"),
        (("llama-3.1-8b", "--sort", "waste"), "--sort=waste: is for resources only"),
        (("llama-3.1-8b", "--config", "a.json"), "--config=a.json: is a second model beside llama-3.1-8b: give one"),
        (
            ("llama-3.1-8b", *SERVICE, "--users", "5", "--requests-per-day", "100"),
            "--users: give exactly one of --requests-per-second, --requests-per-day and --users; --requests-per-day",
        ),
        (("llama-3.1-8b", *SERVICE), "--requests-per-day and --users; none is given"),
        (
            ("llama-3.1-8b", *SERVICE, "--requests-per-second", "5", "--think-time-s", "9"),
            "--think-time-s: is of --users, and a rate of requests is given",
        ),
        (("llama-3.1-8b", "--train", "--users", "5"), "--users=5: does not apply to training; remove --train"),
        (
            ("llama-3.1-70b", "--input-tokens", "130000", "--output-tokens", "10000", "--users", "5"),
            "--input-tokens: and --output-tokens together are 140000, more than the model's maximum, 131072; --allow-",
        ),
    ],
)
def test_fit_of_a_model_refuses_what_it_cannot_answer(
    run: Run, seeded_url: str, arguments: tuple[str, ...], message: str
) -> None:
    done = run(seeded_url, "fit", *arguments)
    assert done.returncode == 2
    assert message in done.stderr.replace("\n", " ")


@pytest.mark.one_database
def test_a_budget_of_a_model_is_met_by_known_prices_only_and_fixes_read_one_way(run: Run, seeded_url: str) -> None:
    command = ("fit", "--model", "llama-3.3-70b", "--context", "8192", "--concurrency", "32", "--limit", "500")
    done = run(seeded_url, *command, "--budget-usd-per-month", "8000")
    table, _, reasons = done.stdout.partition(" do not (")
    assert "NO_PRICE" not in table
    assert "NO_PRICE" in reasons.partition(")")[0]
    fixes = (
        r"fits with concurrency <= \d+ and budget_usd_per_month >= [\d.]+, or dtype=fp8 and budget_usd_per_month >= "
    )
    assert re.search(fixes, done.stdout)


@pytest.mark.one_database
def test_a_model_that_fits_nowhere_ends_with_the_code_of_nothing(run: Run, seeded_url: str) -> None:
    done = run(seeded_url, "fit", "--model", "llama-3.1-405b", "--context", "131072", "--concurrency", "64")
    assert done.returncode == 1
    assert "0 sizes fit" in done.stdout


@pytest.mark.first_database
def test_estimate_shows_every_figure_and_what_is_assumed(run: Run, seeded_url: str, client: httpx.Client) -> None:
    arguments = ("estimate", *LLAMA, "--count", "4", "--usable-gib", "79.2")
    output = run(seeded_url, *arguments).stdout
    assert "inference.weights" in output
    assert "assumed inference.dtype = bf16" in output
    body = {"model": "llama-3.1-70b", "inference": {"context_tokens": 8192, "concurrency": 32}}
    response = client.post("/estimate", json=body | {"gpus": {"count": 4, "usable_gib": 79.2}})
    assert json.loads(run(seeded_url, *arguments, "--json").stdout) == response.json()


@pytest.mark.first_database
def test_history_gives_the_answer_of_the_api(run: Run, seeded_url: str, client: httpx.Client) -> None:
    asked = ("history", "nc24ads_a100_v4", "--region", "westeurope")
    answer = client.get("/sizes/nc24ads_a100_v4/price-history", params={"region": "westeurope"}).json()
    assert json.loads(run(seeded_url, *asked, "--json").stdout) == answer["items"]
    printed = run(seeded_url, *asked, "--wide").stdout
    said = "1 price in westeurope, the oldest first.\nIn force on 2026-09-01: 4.775 USD/h, last seen 2026-08-22."
    assert said in printed
    assert all(one["source_id"] in printed for one in answer["items"])
    assert run(seeded_url, *asked, "--purchase", "savings_3y").returncode == 1
    later = run(seeded_url, *asked, "--since", "2026-08-30").stdout
    assert (
        "0 prices in westeurope, the oldest first.\nIn force on 2026-09-01: 4.775 USD/h, last seen 2026-08-22." in later
    )
    refused = run(seeded_url, *asked, "--since", "2026-07-02", "--until", "2026-07-01")
    assert refused.returncode == 2
    assert "since=2026-07-02: must not be later than until=2026-07-01" in refused.stderr


@pytest.mark.first_database
def test_similar_and_compare_give_the_answers_of_the_api(run: Run, seeded_url: str, client: httpx.Client) -> None:
    near = run(seeded_url, "similar", "nc24ads_a100_v4", "--region", "East US", "--limit", "3", "--json")
    params = {"region": "eastus", "limit": "3"}
    assert json.loads(near.stdout) == client.get("/sizes/nc24ads_a100_v4/similar", params=params).json()["items"]
    sizes = ("nc24ads_a100_v4", "nd40rs_v2")
    beside = run(seeded_url, "compare", *sizes, "--baseline", "ND40rs_v2", "--purchase", "spot", "--json")
    response = client.get("/compare", params={"size": sizes, "baseline": "nd40rs_v2", "purchase": "spot"})
    assert json.loads(beside.stdout) == response.json()


@pytest.mark.one_database
def test_a_price_is_as_of_the_day_on_which_it_was_last_seen(run: Run, engine: Engine, database_url: str) -> None:
    for day in (1, 2):
        ingest(engine, one_list(day, {X1: 2}, file=f"{day}.csv"), now=NOW)
    assert "2026-01-03" in run(database_url, "show", "x1").stdout
    (_, line, *_) = run(database_url, "show", "x1", "--prices").stdout.splitlines()
    assert line.split() == ["eastus", "linux", "on_demand", "2", "2026-01-03", "prices"]


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_history_says_which_price_is_in_force_on_its_last_day(run: Run, engine: Engine, database_url: str) -> None:
    for day, prices in ((1, {X1: 2, X2: 2}), (2, {X1: 3, X2: 2}), *((day, {X2: 2}) for day in (3, 4, 5))):
        ingest(engine, one_list(day, prices, file=f"{day}.csv"), now=NOW)
    asked = ("history", "x1", "--region", "eastus")
    lines = run(database_url, *asked).stdout.splitlines()
    assert [line.split() for line in lines[1:3]] == [
        ["2026-01-02", "2026-01-02", "2", "prices"],
        ["2026-01-03", "2026-01-03", "3", "prices"],
    ]
    assert lines[4:] == [
        "2 prices in eastus, the oldest first.",
        "None is in force on 2026-09-01: newer lists lack it.",
    ]
    then = run(database_url, *asked, "--until", "2026-01-02").stdout
    assert "1 price in eastus, the oldest first.\nIn force on 2026-01-02: 2 USD/h, last seen 2026-01-02." in then
    part = run(database_url, *asked, "--limit", "1")
    assert "1 price in eastus, the oldest first.\nMerged from 1 of 2 prices of lists.\n" in part.stdout
    assert "--cursor" in part.stderr
    ingest(engine, one_list(6, {X1: 3}, file="6.csv"), now=NOW)
    assert "in force" not in run(database_url, *asked, "--limit", "1").stdout
    assert "In force on 2026-09-01: 3 USD/h, last seen 2026-01-07." in run(database_url, *asked).stdout


@pytest.mark.one_database
def test_history_says_that_the_vendor_stopped_selling_it(run: Run, seeded_url: str) -> None:
    asked = ("history", "d2_v3", "--region", "polandcentral", "--purchase", "reserved_1y")
    shown = run(seeded_url, *asked).stdout
    assert shown.endswith("None is in force on 2026-09-01: the vendor sold it until 2026-06-30.\n")
    shown = run(seeded_url, *asked, "--until", "2026-06-30").stdout
    assert "In force on 2026-06-30: " in shown


@pytest.mark.one_database
def test_similar_and_compare_have_rows_for_scripts(run: Run, seeded_url: str) -> None:
    near = list(csv.DictReader(io.StringIO(run(seeded_url, "similar", "nc24ads_a100_v4", "--csv").stdout)))
    assert (len(near), near[0]["size"], near[0]["bigger"]) == (10, "Standard_NC48ads_A100_v4", "true")
    beside = run(seeded_url, "compare", "nc24ads_a100_v4", "nc40ads_h100_v5", "--csv")
    (memory,) = (row for row in csv.DictReader(io.StringIO(beside.stdout)) if row["field"] == "gpu_memory_gib")
    assert list(memory.values()) == ["gpu_memory_gib", "GiB", "80.0", "94.0", "17.5"]


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("similar", "nd40rs_v3"), EXIT_NOT_FOUND, "Did you mean Standard_ND40rs_v2"),
        (("compare", "nd40rs_v2"), EXIT_USAGE, "SIZES=nd40rs_v2: at least 2"),
        (("compare", "nd40rs_v2", "nd40rs_v3"), EXIT_USAGE, "did you mean Standard_ND40rs_v2"),
        (("compare", "nd40rs_v2", "ND40rs_v2"), EXIT_USAGE, "is the same size as"),
        (("similar", "nd40rs_v2", "--region", "mars"), EXIT_USAGE, "no such region"),
    ],
)
def test_what_cannot_be_compared_has_its_exit_code(
    run: Run, seeded_url: str, arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = run(seeded_url, *arguments)
    assert done.returncode == code
    assert message in done.stderr


@pytest.fixture
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of the given bytes that is called a page."""
    path = tmp_path / "page.md"
    path.write_bytes(request.param)
    return path


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("page", "message", "more"),
    [
        (b"\x7fELF\x02\x01\x00\x00buckets: %lu\n", "is not text", ()),
        (b" \n\n", "is empty", ()),
        (b"# Size series\n\nMachines for all that you do, at any scale.\n", "no figure of a size or series", ()),
        (b"<html><body><table><tr><td>Standard_X8</td><td>8</td></tr></table></body></html>", "a table in HTML", ()),
        (b"key,value\nvcpus,8\n", "no figure of a size or series", ("--dry-run",)),
    ],
    ids=["program", "empty", "words", "html", "csv"],
    indirect=["page"],
)
def test_a_file_without_any_figure_is_refused_and_makes_no_revision(
    run: Run, database_url: str, page: Path, message: str, more: tuple[str, ...]
) -> None:
    done = run(database_url, "ingest", "documents", str(page), *more)
    assert (done.returncode, done.stdout) == (3, "")
    assert str(page) in done.stderr
    assert message in done.stderr
    assert "run `vmsizes ingest seeds`" in run(database_url, "search").stderr


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_a_page_without_figures_in_a_folder_is_reported_and_no_source(
    run: Run, database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "x.md").write_text(PAGE)
    (tmp_path / "words.md").write_text("# Words\n\nNothing but words.\n")
    (tmp_path / "empty.md").touch()
    (tmp_path / "program.md").write_bytes(b"\x7fELF\0\0\0")
    done = run(database_url, "ingest", "documents", str(tmp_path), "--json")
    assert f"{tmp_path / 'empty.md'}: is empty; the page is left out" in done.stderr
    assert f"{tmp_path / 'program.md'}: is not text; the page is left out" in done.stderr
    assert "is a folder; give a CSV file" in run(database_url, "ingest", "prices", str(tmp_path)).stderr
    assert json.loads(done.stdout)["tables"]["source"]["added"] == 1
    assert f"{tmp_path / 'words.md'}: no figure of a size or series can be read in it; the page is left out" in (
        done.stderr
    )
    assert run(database_url, "ingest", "documents", str(tmp_path), "--strict").returncode == 3


PRICES = "size,region,os,purchase,usd_per_hour,valid_from,approximate_date,source\n{}"
LISTED = "id,title,publisher,kind,url,published_on\nmy-list,My list,Me,third_party,https://example.org,2026-08-15\n"


@pytest.mark.one_database
def test_an_ingest_says_how_many_spot_prices_have_no_day(
    run: Run, database_url: str, engine: Engine, tmp_path: Path
) -> None:
    ingest(engine, reading(size("Standard_X1", vcpus=8), regions=["eastus"]), now=NOW)
    path = tmp_path / "acme.csv"
    path.write_text(
        "size,region,purchase,usd_per_hour\nX1,eastus,spot,0.1\nX1,eastus,on_demand,0.5\n", encoding="utf-8"
    )
    for arguments in (("--dry-run",), (), ("--json",)):
        done = run(database_url, "ingest", "prices", str(path), *arguments)
        expected = "note: 1 spot price without a day: kept, but no offers; add a column valid_from (YYYY-MM-DD)."
        assert (done.returncode, expected in done.stderr.replace("\n", " ")) == (0, True), done.stderr
    assert json.loads(done.stdout)["undated_spot_prices"] == 1
    path.write_text("size,region,purchase,usd_per_hour,valid_from\nX1,eastus,spot,0.1,2026-08-30\n", encoding="utf-8")
    dated = run(database_url, "ingest", "prices", str(path), "--json")
    assert (json.loads(dated.stdout)["undated_spot_prices"], "valid_from" in dated.stderr) == (0, False)


@pytest.mark.takes_seconds
def test_a_slip_in_a_price_list_is_refused_tried_and_taken_back(run: Run, database_url: str, tmp_path: Path) -> None:
    engine = make_engine(database_url)
    ingest(engine, reading(size("Standard_ND40rs_v2", vcpus=40), regions=["mexicocentral"]), now=NOW)
    engine.dispose()
    (tmp_path / "sources.csv").write_text(LISTED)
    path, row = tmp_path / "prices.csv", "{},mexicocentral,linux,on_demand,0.5,2026-08-15,false,my-list\n"
    path.write_text(PRICES.format(row.format("Standard_ND40rs_v22")))
    refused = run(database_url, "ingest", "prices", str(path))
    assert refused.returncode == 3
    message = "'Standard_ND40rs_v22': there is no such size; did you mean Standard_ND40rs_v2? With --new-sizes"
    assert f"{path}:2: column 'size': {message}" in refused.stderr
    path.write_text(PRICES.format(row.format("Standard_ND40rs_v2") + row.format("Standard_NEW1_v1")))
    tried = run(database_url, "ingest", "prices", str(path), "--new-sizes", "--dry-run", "--json")
    assert "Nothing was written." in tried.stderr
    done = run(database_url, "ingest", "prices", str(path), "--new-sizes", "--json")
    assert json.loads(tried.stdout) | {"written": True} == json.loads(done.stdout)
    mine = {row["id"]: row for row in json.loads(run(database_url, "sources", "--json").stdout)}["my-list"]
    assert (mine["kind"], mine["facts"], mine["prices"], mine["published_on"]) == ("third_party", 0, 2, "2026-08-15")
    unknown = run(database_url, "forget", "my-lost")
    assert (unknown.returncode, "Did you mean my-list" in unknown.stderr) == (1, True)
    assert "2 removed" in run(database_url, "forget", "my-list", "--dry-run").stdout
    nothing = run(database_url, "forget")
    assert (nothing.returncode, "give either the id of a source or --revision" in nothing.stderr) == (2, True)
    tried = json.loads(run(database_url, "forget", "--revision", "2", "--dry-run", "--json").stdout)
    gone = json.loads(run(database_url, "forget", "my-list", "--json").stdout)
    assert tried["tables"] == gone["tables"]
    left = run(database_url, "forget", "--revision", "2")
    assert (left.returncode, "none of the sources that it was the first to read is left." in left.stderr) == (2, True)
    assert (gone["tables"]["price"]["removed"], gone["tables"]["size"]["removed"]) == (2, 1)
    revisions = json.loads(run(database_url, "revisions", "--json").stdout)
    assert [row["number"] for row in revisions] == [3, 2, 1]
    assert revisions[0]["source_ids"] == ["my-list"]
    assert revisions[0]["digest"] == revisions[2]["digest"]
    assert [row.split()[5:] for row in run(database_url, "revisions").stdout.splitlines()[1:3]] == [
        ["my-list", "removed"],
        ["my-list"],
    ]
    assert "my-list" not in run(database_url, "sources").stdout


@pytest.mark.takes_seconds
@pytest.mark.one_database
@pytest.mark.parametrize("kind", one_in(2, ["gpus", "seeds", "regions"]))
def test_every_kind_of_file_can_be_tried_without_writing(
    run: Run, few_sizes_url: str, few_size_seeds: Path, kind: str
) -> None:
    place = str(few_size_seeds if kind == "seeds" else few_size_seeds / f"{kind}.csv")
    before = run(few_sizes_url, "revisions", "--json").stdout
    done = run(few_sizes_url, "ingest", kind, place, "--dry-run")
    assert (done.returncode, "not written), digest" in done.stdout) == (0, True)
    assert run(few_sizes_url, "revisions", "--json").stdout == before


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_a_dry_run_of_pages_says_what_an_ingest_would_do(run: Run, database_url: str, tmp_path: Path) -> None:
    page = tmp_path / "x.md"
    page.write_text(PAGE)
    tried = run(database_url, "ingest", "documents", str(page), "--dry-run")
    done = run(database_url, "ingest", "documents", str(page))
    expected = done.stdout.replace("(new)", "(new, not written)")
    assert tried.stdout.endswith(expected)
    assert tried.stderr.count("not read:") == done.stderr.count("not read:") == 1


@pytest.mark.one_database
def test_fit_and_estimate_name_the_type_of_the_weights_and_who_says_so(run: Run, seeded_url: str) -> None:
    fitting = run(seeded_url, "fit", "--model", "gpt-oss-120b", "--region", "eastus").stdout
    assert "mxfp4 weights as released" in fitting
    assert "no KV cache is counted" in fitting
    estimated = run(seeded_url, "estimate", "--model", "gpt-oss-120b").stdout
    assert "weights: mxfp4 (preset: the type it is released in" in estimated


def test_a_fit_of_a_model_lists_as_many_sizes_as_every_list(run: Run, seeded_url: str) -> None:
    asked = ("fit", "llama-3.1-8b", "--columns", "size", "--csv")
    total = json.loads(run(seeded_url, "fit", "llama-3.1-8b", "--json").stdout)["total"]
    assert 10 < total < 50
    assert len(run(seeded_url, *asked).stdout.splitlines()) == 1 + total
    assert len(run(seeded_url, *asked, "--limit", "3").stdout.splitlines()) == 1 + 3
