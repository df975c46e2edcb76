"""The Kustomize base: what it names exists in the program, and every pod is confined. `make audit` checks its form."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import typer
import yaml
from starlette.routing import Route

from app.cli.commands import app as command_line
from app.main import create_app
from app.settings import PROJECT, Settings
from tests.test_deployment import COMPOSE, instructions

BASE = PROJECT / "docs/deploy/kubernetes"
KUSTOMIZATION = yaml.safe_load((BASE / "kustomization.yaml").read_text())
OBJECTS: list[dict[str, Any]] = [
    each for name in KUSTOMIZATION["resources"] for each in yaml.safe_load_all((BASE / name).read_text())
]


def one(kind: str, name: str) -> dict[str, Any]:
    (found,) = (each for each in OBJECTS if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every template of a pod with the name of its object."""
    for each in OBJECTS:
        spec = each.get("spec", {})
        if each["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if "template" in spec:
            yield each["metadata"]["name"], spec["template"]


def containers() -> Iterator[tuple[str, dict[str, Any]]]:
    return ((name, container) for name, pod in pods() for container in pod["spec"]["containers"])


def test_every_file_of_the_folder_is_a_resource() -> None:
    files = {path.name for path in BASE.iterdir()} - {"kustomization.yaml"}
    assert files == set(KUSTOMIZATION["resources"])
    assert {name for name, _ in pods()} == {"vmsizes-api", "vmsizes-migrate", "vmsizes-refresh", "vmsizes-webhooks"}


def test_the_paths_of_the_probes_are_the_programs_and_need_no_key(database_url: str) -> None:
    app = create_app(Settings(_env_file=None, database_url=database_url))
    paths = {route.path for route in app.state.routes if isinstance(route, Route)}
    (api,) = one("Deployment", "vmsizes-api")["spec"]["template"]["spec"]["containers"]
    probes = {name: api[f"{name}Probe"]["httpGet"] for name in ("liveness", "startup", "readiness")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "liveness": "/healthz",
        "startup": "/healthz",
        "readiness": "/readyz",
    }
    assert {probe["path"] for probe in probes.values()} <= paths
    assert {probe["port"] for probe in probes.values()} == {"http"}


def test_the_ports_agree() -> None:
    settings = dict(pair.split("=", 1) for pair in KUSTOMIZATION["configMapGenerator"][0]["literals"])
    (api,) = one("Deployment", "vmsizes-api")["spec"]["template"]["spec"]["containers"]
    (port,) = api["ports"]
    (of_service,) = one("Service", "vmsizes")["spec"]["ports"]
    (ingress,) = one("NetworkPolicy", "vmsizes-api")["spec"]["ingress"]
    assert port["containerPort"] == int(settings["VMSIZES_PORT"]) == ingress["ports"][0]["port"]
    assert of_service["targetPort"] == port["name"] == "http"
    assert settings["VMSIZES_HOST"] == "0.0.0.0"


def test_every_setting_is_one_of_the_program_and_has_a_valid_value() -> None:
    literals = dict(pair.split("=", 1) for pair in KUSTOMIZATION["configMapGenerator"][0]["literals"])
    names = set(literals) | {each["name"] for _, container in containers() for each in container.get("env", [])}
    assert {name.removeprefix("VMSIZES_").lower() for name in names} <= set(Settings.model_fields)
    Settings(_env_file=None, **{name.removeprefix("VMSIZES_").lower(): value for name, value in literals.items()})


def test_only_the_service_reads_by_the_reader_and_it_has_no_other_secret() -> None:
    for name, container in containers():
        secrets = {
            (each["valueFrom"]["secretKeyRef"]["name"], each["valueFrom"]["secretKeyRef"]["key"])
            for each in container["env"]
        }
        expected = {("vmsizes-reader" if name == "vmsizes-api" else "vmsizes-owner", "url")}
        if name == "vmsizes-migrate":
            expected |= {("vmsizes-reader", "role"), ("vmsizes-reader", "password")}
        assert secrets == expected, name


def test_every_command_is_one_of_the_program() -> None:
    program = typer.main.get_command(command_line)
    known = set(program.list_commands(typer.Context(program)))  # type: ignore[attr-defined]
    for name, container in containers():
        words = container.get("args") or re.split(r"\s+", container["command"][-1])
        called = [words[at + 1] for at, word in enumerate(words) if word == "vmsizes"]
        assert called, name
        assert set(called) <= known, name
    seed = COMPOSE["services"]["seed"]["command"]
    assert one("Job", "vmsizes-migrate")["spec"]["template"]["spec"]["containers"][0]["command"] == seed


def test_every_pod_is_confined() -> None:
    user = int(instructions("USER")[-1])
    for name, pod in pods():
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == user
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
            assert "memory" in container["resources"]["limits"]
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert mounted == {volume["name"] for volume in spec["volumes"]}
            assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}


def test_a_pod_may_take_longer_to_end_than_the_program_does() -> None:
    spec = one("Deployment", "vmsizes-api")["spec"]["template"]["spec"]
    (api,) = spec["containers"]
    sleep = int(api["lifecycle"]["preStop"]["exec"]["command"][1])
    assert spec["terminationGracePeriodSeconds"] > sleep + Settings(_env_file=None).shutdown_seconds


def test_selectors_find_the_pods_of_the_service() -> None:
    labels = one("Deployment", "vmsizes-api")["spec"]["template"]["metadata"]["labels"]
    selectors = [
        one("Deployment", "vmsizes-api")["spec"]["selector"]["matchLabels"],
        one("Service", "vmsizes")["spec"]["selector"],
        one("PodDisruptionBudget", "vmsizes-api")["spec"]["selector"]["matchLabels"],
        one("NetworkPolicy", "vmsizes-api")["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector.items() <= labels.items() for selector in selectors)
    scaler = one("HorizontalPodAutoscaler", "vmsizes-api")["spec"]
    assert scaler["scaleTargetRef"]["name"] == "vmsizes-api"
    assert 2 <= scaler["minReplicas"] < scaler["maxReplicas"]
    assert "replicas" not in one("Deployment", "vmsizes-api")["spec"], "applying it again would undo the autoscaler"


def test_kubectl_builds_the_base_where_it_is_installed(tmp_path: Path) -> None:
    if which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    built = subprocess.run(["kubectl", "kustomize", BASE], capture_output=True, text=True, check=True).stdout
    objects = list(yaml.safe_load_all(built))
    assert len(objects) == len(OBJECTS) + 1, "the config map is made from settings"
    assert {each["metadata"].get("namespace", "vmsizes") for each in objects} == {"vmsizes"}
