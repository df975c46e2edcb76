"""The files around the code: Makefile, .env.example, wheel, container image, docker-compose stack."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

from app.db.engines import make_engine
from app.settings import PROJECT, Settings

FRONTEND = PROJECT / "app/web/frontend"
"""What the bundle of scripts and fonts is made from; the wheel has the bundle."""
DOCKERFILE = re.sub(r"\\\n", "", re.sub(r"(?m)^#.*\n", "", (PROJECT / "Dockerfile").read_text()))
COMPOSE = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())


def instructions(name: str) -> list[str]:
    return re.findall(rf"(?m)^{name}\s+(.*)$", DOCKERFILE)


def test_make_help_lists_every_verb() -> None:
    verbs = re.findall(r"(?m)^\.PHONY: (.*)$", (PROJECT / "Makefile").read_text())[0].split()
    output = subprocess.run(["make", "-C", PROJECT, "help"], check=True, capture_output=True, text=True).stdout
    assert {line.split()[0] for line in output.splitlines() if not line.startswith("make")} == {
        verb for verb in verbs if not verb.startswith(".")
    }


def test_the_example_names_every_setting_with_its_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = re.sub(r"(?m)^#(?=VMSIZES_)", "", (PROJECT / ".env.example").read_text())
    named = re.findall(r"(?m)^(VMSIZES_\w+)=", example)
    assert sorted(named) == sorted(f"VMSIZES_{field.upper()}" for field in Settings.model_fields)
    for name in named:
        monkeypatch.delenv(name, raising=False)
    uncommented = tmp_path / "env"
    uncommented.write_text(example)
    read = Settings(_env_file=uncommented)
    assert read.model_copy(update={"seeds": PROJECT / read.seeds}) == Settings(_env_file=None)


@pytest.mark.takes_seconds
def test_the_wheel_brings_the_migrations_and_the_seeds(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", str(PROJECT), "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*build, "--wheel-dir", tmp_path], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    inside = set(ZipFile(wheel).namelist())
    for folder in ("app", "migrations", "seeds"):
        needed = {path for path in (PROJECT / folder).rglob("*.*") if path.is_file()}
        needed = {path for path in needed if FRONTEND not in path.parents and not path.match("seeds/make*.py")}
        needed = {path for path in needed if path.parent.name != "__pycache__"}
        names = {path.relative_to(PROJECT).as_posix() for path in needed}
        assert {name if folder == "app" else f"app/{name}" for name in names} <= inside
    assert not [name for name in inside if "__pycache__" in name]


def test_the_image_is_built_from_files_that_exist_and_reach_the_builder() -> None:
    ignore = (PROJECT / ".dockerignore").read_text().split()
    own = [copy for copy in instructions("COPY") if not copy.startswith("--from")]
    for path in [path for copy in own for path in copy.split()[:-1]]:
        assert (PROJECT / path).exists(), path
        assert f"!{path}" in ignore


def test_the_image_installs_by_hash_and_runs_as_an_unprivileged_user() -> None:
    assert "--require-hashes -r requirements.lock" in DOCKERFILE
    (removed,) = re.findall(r"pip uninstall ([^&]*)", DOCKERFILE)
    assert {"hatchling", "setuptools", "pip"} <= set(removed.split())
    assert int(instructions("USER")[-1]) > 0
    assert json.loads(instructions("CMD")[-1]) == ["vmsizes", "serve"]


def test_the_image_is_configured_by_settings_that_exist() -> None:
    set_here = dict(pair.split("=", 1) for line in instructions("ENV") for pair in shlex.split(line))
    names = {name.removeprefix("VMSIZES_").lower() for name in set_here if name.startswith("VMSIZES_")}
    assert names <= set(Settings.model_fields)
    # The default database lies where the service runs: its first start fills it.
    assert "VMSIZES_DATABASE_URL" not in set_here
    assert instructions("WORKDIR")[-1] == instructions("VOLUME")[-1] == "/data"


def test_the_health_check_of_the_image_is_a_program_that_compiles() -> None:
    (check,) = instructions("HEALTHCHECK")
    python, option, program = json.loads(check[check.index("[") :])
    assert (python, option) == ("python3", "-c")
    compile(program, "HEALTHCHECK", "exec")
    assert "/healthz" in program


def waits_for(service: str) -> dict[str, str]:
    needs: dict[str, Any] = COMPOSE["services"][service]["depends_on"]
    return {name: need["condition"] for name, need in needs.items()}


def test_the_stack_starts_in_order() -> None:
    assert waits_for("seed") == {"postgres": "service_healthy"}
    assert waits_for("api")["seed"] == "service_completed_successfully"
    assert "pg_isready" in COMPOSE["services"]["postgres"]["healthcheck"]["test"]
    assert COMPOSE["services"]["seed"]["restart"] == "no"


def test_the_stack_serves_from_a_read_only_root_and_keeps_only_the_database() -> None:
    for service in ("seed", "api", "refresh", "webhooks"):
        assert COMPOSE["services"][service]["read_only"] is True
    for service in ("seed", "api", "webhooks"):
        assert "volumes" not in COMPOSE["services"][service]
    (volume,) = COMPOSE["services"]["postgres"]["volumes"]
    assert volume.split(":")[0] in COMPOSE["volumes"]


def test_the_stack_refreshes_the_seeded_database_every_day_or_as_often_as_is_set() -> None:
    refresh = COMPOSE["services"]["refresh"]
    assert refresh["command"] == ["vmsizes", "refresh", "--every", "${VMSIZES_REFRESH_EVERY:-24h}"]
    assert waits_for("refresh") == waits_for("api")
    assert refresh["environment"] == COMPOSE["x-vmsizes"]["environment"]
    (volume,) = refresh["volumes"]
    assert volume == "feeds:/data", "the working folder of the image, where fetched pages are kept"
    assert "WORKDIR /data" in DOCKERFILE
    assert "feeds" in COMPOSE["volumes"]


def test_the_stack_delivers_to_webhooks_by_the_settings_of_the_refresh() -> None:
    webhooks, refresh = COMPOSE["services"]["webhooks"], COMPOSE["services"]["refresh"]
    assert webhooks["command"] == ["vmsizes", "webhooks", "deliver", "--every", "5m"]
    assert waits_for("webhooks") == waits_for("refresh")
    assert webhooks["environment"] == refresh["environment"]


OF_THE_IMAGE = {"VMSIZES_HOST", "VMSIZES_PORT", "VMSIZES_SEEDS", "VMSIZES_FEEDS", "VMSIZES_COUNTERS_FOLDER"}
"""Settings that the image fixes: outside a container they mean another address or folder."""


def test_the_stack_passes_every_setting() -> None:
    common, seed = COMPOSE["x-vmsizes"]["environment"], COMPOSE["services"]["seed"]["environment"]
    passed = {name for name in {**common, **seed} if name.startswith("VMSIZES_")}
    # A file and a folder in the container, an extra in the image.
    needs_more = {"VMSIZES_API_KEYS_FILE", "VMSIZES_AZURE_DOCS", "VMSIZES_OTLP_ENDPOINT"}
    assert passed | OF_THE_IMAGE | needs_more == {f"VMSIZES_{field.upper()}" for field in Settings.model_fields}
    for name in common.keys() - {"VMSIZES_DATABASE_URL", "PGPASSWORD"}:
        assert common[name] == f"${{{name}:-}}"


def test_the_service_of_the_stack_reads_by_the_role_that_the_migration_makes() -> None:
    api, seed = (COMPOSE["services"][name]["environment"] for name in ("api", "seed"))
    url = make_engine(api["VMSIZES_DATABASE_URL"]).url
    assert url.username == seed["VMSIZES_READER_ROLE"] != make_engine(seed["VMSIZES_DATABASE_URL"]).url.username
    assert api["PGPASSWORD"] == seed["VMSIZES_READER_PASSWORD"] != seed["PGPASSWORD"]
    assert api["VMSIZES_AZURE_TOKEN"] == "", "what others reach has no secret that it does not need"


def test_every_service_of_the_program_has_no_capabilities_and_gains_no_privileges() -> None:
    for name, service in COMPOSE["services"].items():
        if name != "postgres":
            assert service["cap_drop"] == ["ALL"]
            assert service["security_opt"] == ["no-new-privileges:true"]
            assert "privileged" not in service
    assert "no-new-privileges:true" in COMPOSE["services"]["postgres"]["security_opt"]


def test_the_stack_talks_to_its_own_database() -> None:
    environment = COMPOSE["services"]["seed"]["environment"]
    postgres = COMPOSE["services"]["postgres"]["environment"]
    url = make_engine(environment["VMSIZES_DATABASE_URL"]).url
    assert (url.host, url.username, url.database) == ("postgres", postgres["POSTGRES_USER"], postgres["POSTGRES_DB"])
    assert environment["PGPASSWORD"] == postgres["POSTGRES_PASSWORD"]
    assert url.drivername == "postgresql+psycopg"
