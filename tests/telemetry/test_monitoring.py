"""The dashboard and the alert rules: checked by promtool, and each expression by a real Prometheus that scrapes us."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from app.catalog.store.revisions import save_feed_run
from app.db.engines import make_engine
from app.db.writing import write_session
from app.settings import PROJECT
from tests.databases import Databases
from tests.factories import NOW
from tests.processes import free_port, run_service
from tests.servers import open_client
from tests.waiting import LONGEST_SECONDS, wait_until

FOLDER = PROJECT / "docs/monitoring"
OF_REPLICAS = ("vmsizes_database_is_receiving", "vmsizes_database_replay_age_seconds")
"""Metrics that only a replica has; the unit tests of the alerts and the test of replicas have them."""

needs_prometheus = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")),
    reason="prometheus is not installed: apt-get install prometheus",
)


def alerts() -> dict[str, str]:
    groups = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def panels() -> dict[str, list[str]]:
    dashboard = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
    return {panel["title"]: [target["expr"] for target in panel["targets"]] for panel in dashboard["panels"]}


def documented_metrics() -> set[str]:
    text = (PROJECT / "docs/operations.md").read_text(encoding="utf-8")
    return set(re.findall(r"`(vmsizes_\w+)`", text))


def test_the_dashboard_and_the_alerts_name_only_metrics_of_the_guide_and_the_dashboard_all_of_them() -> None:
    expressions = {"alerts": alerts().values(), "dashboard": [one for panel in panels().values() for one in panel]}
    used = {
        name: {re.sub(r"_(bucket|sum|count)$", "", one) for text in texts for one in re.findall(r"vmsizes_\w+", text)}
        for name, texts in expressions.items()
    }
    assert used["alerts"] <= documented_metrics()
    of_the_cache = {"vmsizes_response_cache_hits_total", "vmsizes_response_cache_misses_total"}
    assert used["dashboard"] == documented_metrics() - of_the_cache, "those two are in the histogram, too"


def test_every_alert_has_a_unit_test_in_which_it_fires() -> None:
    tests = yaml.safe_load((FOLDER / "alerts_test.yml").read_text(encoding="utf-8"))["tests"]
    fired = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case.get("exp_alerts")}
    assert fired == alerts().keys()


@needs_prometheus
@pytest.mark.parametrize(
    "command", ["check config prometheus.yml", "check rules --lint-fatal alerts.yml", "test rules alerts_test.yml"]
)
def test_promtool_accepts_the_files_and_the_unit_tests_of_the_alerts_pass(command: str) -> None:
    done = subprocess.run(["promtool", *command.split()], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.takes_seconds
@needs_prometheus
@pytest.mark.one_database
def test_every_expression_gives_a_result_in_a_prometheus_that_scrapes_two_workers(
    databases: Databases, seeded_template_url: str, tmp_path: Path
) -> None:
    refreshed_url = databases.copy(seeded_template_url)
    engine = make_engine(refreshed_url, pooled=False)
    with write_session(engine) as session:
        save_feed_run(session, "azure-prices", NOW, succeeded=True)
    engine.dispose()
    with (
        run_service(refreshed_url, tmp_path / "service.log", VMSIZES_WORKERS="2") as service,
        prometheus_scraping(service.port, tmp_path) as prometheus,
        open_client(service.url) as client,
    ):
        missing = [*(with_values(one) for one in alerts().values())]
        missing += [filled_in(one) for expressions in panels().values() for one in expressions]
        missing = [one for one in missing if not any(name in one for name in OF_REPLICAS)]
        assert len(missing) > 30
        numbers = count()

        def all_have_results() -> bool:
            for path in ("/sizes?limit=2", f"/sizes?limit=1&min_memory={next(numbers)}.5", "/sizes/none_such"):
                client.get(path)
            missing[:] = [one for one in missing if not results_of(prometheus, one)]
            return not missing

        wait_until(all_have_results, "\n".join(missing))
        rules = prometheus.get("/api/v1/rules").json()["data"]["groups"][0]["rules"]
        assert {rule["name"]: rule["health"] for rule in rules} == dict.fromkeys(alerts(), "ok")
    databases.drop(refreshed_url)


def with_values(expression: str) -> str:
    """Return an alert's expression with 0 or 1 as its result instead of none where it does not fire."""
    compared = re.sub(r" (>|==) (?=[\d.]+$)", r" \1 bool ", expression)
    assert compared != expression
    return compared.replace("[5m]", "[10s]").replace("[10m]", "[10s]")


def filled_in(expression: str) -> str:
    """Return an expression of the dashboard with values for its variables."""
    return expression.replace("$__rate_interval", "10s").replace("$instance", ".*")


def results_of(prometheus: httpx.Client, expression: str) -> list[Any]:
    answer = prometheus.get("/api/v1/query", params={"query": expression}).json()
    assert answer["status"] == "success", answer
    found: list[Any] = answer["data"]["result"]
    return [one for one in found if one["value"][1] != "NaN"]


@contextmanager
def prometheus_scraping(port: int, folder: Path) -> Iterator[httpx.Client]:
    """Run Prometheus with the configuration of the guide, but for the address and how often it scrapes."""
    configuration = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))
    (job,) = configuration["scrape_configs"]
    job |= {"scrape_interval": "1s", "scrape_timeout": "1s", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
    configuration |= {"rule_files": [str(FOLDER / "alerts.yml")], "global": {"evaluation_interval": "1s"}}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    own_port = free_port()
    command = [
        *("prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"),
        f"--web.listen-address=127.0.0.1:{own_port}",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        with open_client(f"http://127.0.0.1:{own_port}") as client:
            wait_until(lambda: is_ready(client), (folder / "prometheus.log").read_text())
            yield client
    finally:
        process.terminate()
        process.wait(timeout=LONGEST_SECONDS)


def is_ready(client: httpx.Client) -> bool:
    with suppress(httpx.TransportError):
        return client.get("/-/ready").status_code == 200
    return False
