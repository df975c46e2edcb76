"""Which clouds are seeded, and what is read of one alone, on every database."""

from pathlib import Path

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from app.catalog.providers import PROVIDERS
from app.catalog.readings import Reading, Report
from app.errors import BadData, BadQuery
from app.ingest.feeds.gate import load_region_codes
from app.ingest.registry import parse_clouds, read_seeds, relative_to
from app.ingest.run import ingest
from app.main import create_asgi_app
from app.settings import PROJECT, Settings
from tests.conftest import TODAY
from tests.factories import NOW
from tests.servers import open_client, server

SEEDS = PROJECT / "seeds"


def test_all_clouds_are_seeded_unless_some_are_named(tmp_path: Path) -> None:
    assert set(parse_clouds("", SEEDS)) == set(PROVIDERS)
    assert parse_clouds(" GCP,azure,gcp", SEEDS) == ["gcp", "azure"]
    assert parse_clouds("", tmp_path) == ["azure"]  # a folder of one's own needs no other clouds
    with pytest.raises(BadQuery, match=r"VMSIZES_CLOUDS=digitalocean: has no seeds in .*; these are azure, aws"):
        parse_clouds("azure,digitalocean", SEEDS)


@pytest.mark.one_database
def test_a_folder_without_seeds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="has no seeds; VMSIZES_SEEDS says where they are"):
        read_seeds(tmp_path)


@pytest.mark.takes_seconds
def test_clouds_are_read_without_azure(engine: Engine, database_url: str) -> None:
    outcome = ingest(engine, relative_to(SEEDS, read_seeds(SEEDS, clouds=("oci", "verda", "lambda"))), now=NOW)
    assert outcome.summary.reports == []
    with engine.connect() as connection:
        counted = connection.execute(text("select provider, count(*) from size group by provider order by provider"))
        assert [tuple(row) for row in counted] == [("lambda", 24), ("oci", 219), ("verda", 24)]
        assert connection.execute(text("select count(*) from region where provider = 'azure'")).scalar_one() == 0
    with Session(engine) as session:
        assert load_region_codes(session) == ()  # those that `vmsizes refresh` asks Azure for
    service = create_asgi_app(Settings(_env_file=None, database_url=database_url), today=lambda: TODAY)
    with server(service) as url, open_client(url) as client:
        found = client.get("/sizes", params={"country": "FI", "min_gpus": 1, "sort": "usd_per_gpu_hour"}).json()
        assert {item["provider"] for item in found["items"]} == {"verda"}
        (shape,) = client.get("/sizes", params={"name": "oci:vm.standard2.1,vm.standard2.1"}).json()["items"]
        assert shape["estimate"]["formula"].startswith("OCPUs")
        assert shape["usd_per_hour"] == 0.0638
        past = {"as_of": "2026-05-01", "name": "vm.standard2.1"}
        (shape,) = client.get("/sizes", params=past).json()["items"]
        assert shape["estimate"]["estimated"] is True
        assert client.get("/sizes/lambda:gpu_1x_a10").json()["provider"] == "lambda"
        nearest = client.get("/sizes/gpu_1x_h100_sxm5/similar", params={"provider": "verda"}).json()["items"][0]
        assert (nearest["size"], nearest["provider"]) == ("1H100.80S.32V", "verda")
        assert client.get("/prices", params={"provider": "verda", "country": "FI"}).json()["total"] == 28
    service.app.state.database.dispose()


@pytest.mark.parametrize(
    ("column", "value", "refusal"),
    [
        ("country", "Germany", "must be two capital letters"),
        ("continent", "Europe", "must be one of africa, asia"),
        ("latitude", "91", "must be degrees from -90 to 90"),
        ("longitude", "8,68", "must be degrees from -180 to 180"),
        ("code", "us_east!1", "must be letters and digits"),
    ],
)
@pytest.mark.one_database
def test_a_region_is_placed_or_refused(tmp_path: Path, column: str, value: str, refusal: str) -> None:
    cells = {
        "code": "eu-central-1", "name": "Frankfurt", "geography": "", "place": "Frankfurt", "country": "DE",
        "continent": "europe", "latitude": "50.11", "longitude": "8.68", "source": "x",
    } | {column: f'"{value}"'}  # fmt: skip
    (tmp_path / "regions.csv").write_text(f"{','.join(cells)}\n{','.join(cells.values())}\n")
    (tmp_path / "sources.csv").write_text("id,title,publisher,kind,url,published_on\nx,X,AWS,vendor_page,,\n")
    with pytest.raises(BadData, match=refusal):
        read_seeds(tmp_path)


@pytest.mark.parametrize(
    ("folder", "detail", "shown"),
    [
        ("s", "which s/documents/nx.md already assigned, 5 GiB/s/disk of vcpus/GPUs", None),
        ("/data/seeds", "which '/data/seeds/documents/nx.md' said, as /old/data/seeds/nx.md", None),
        (".", "which documents/nx.md includes by ../nx.md", "which documents/nx.md includes by ../nx.md"),
    ],
)
def test_only_paths_in_the_folder_are_shortened_in_reports(folder: str, detail: str, shown: str | None) -> None:
    report = Report(file=f"{folder}/documents/nd.md", line=1, column=None, cell=None, detail=detail)
    (short,) = relative_to(Path(folder), Reading(reports=(report,))).reports
    assert (short.file, short.detail) == (
        "documents/nd.md",
        shown or detail.replace(f"{folder}/documents", "documents"),
    )
