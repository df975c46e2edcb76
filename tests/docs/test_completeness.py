"""The documentation lists all endpoints, parameters, columns, codes and commands, and no others."""

import ast
import csv
import io
import json
import re
from collections.abc import Collection
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from sqlmodel import SQLModel
from typer.main import get_command

import app.catalog.models.observations  # its table is no content of the catalog
import app.catalog.models.webhooks  # noqa: F401  # their tables are no content of the catalog
from app.catalog.fields import GPU_FIELDS, SERIES_FIELDS, SIZE_FIELDS
from app.catalog.presets import Preset
from app.catalog.queries.exports import EXPORTABLE_TABLES
from app.catalog.readings import AUTHORITY
from app.cli.commands import COMMAND_MODULES
from app.cli.commands import app as command_line
from app.fit.features import FEATURE_NAMES
from app.fit.formulas.hf_families import FAMILIES
from app.fit.formulas.optimizer import RECIPES
from app.fit.formulas.quantities import DEFAULTS, Figure
from app.fit.formulas.quantization import FILE_BITS, FULL_BITS, QUANTIZED_BITS
from app.fit.results import CostFigures, InferenceFigures, ParameterFigures, ServiceReport, TrainingFigures
from app.fit.similarity import DISTANCE_TERMS
from app.http.problems import CONTRADICTION, DOMAIN_PROBLEMS, STATUS_PROBLEMS
from app.ingest.registry import CSV_SOURCES
from app.ingest.sources import claims, prices, reference
from app.schemas.fit_request import (
    ArchitectureIn,
    ConstraintsIn,
    EstimateIn,
    FitIn,
    GpusIn,
    HardwareIn,
    InferenceIn,
    PricingIn,
    ServingIn,
    Sort,
    TrainingIn,
)
from app.schemas.retirement_request import InventoryItemIn, RetirementPlanIn
from app.settings import PROJECT, Settings
from tests.command_line import run_command
from tests.docs.pages import PAGES, anchor, first_column, links, read, sections

DOCS = PROJECT / "docs"
COLUMNS: dict[str, Collection[str]] = {
    "Sources": (*claims.COLUMNS, *claims.OPTIONAL),
    "Prices": prices.COLUMNS,
    "Corrections": reference.CORRECTION_COLUMNS,
    "Aliases": reference.ALIAS_COLUMNS,
    "Regions": (*reference.REGION_COLUMNS, *reference.PLACE_COLUMNS),
    "Benchmarks": reference.BENCHMARK_COLUMNS,
    "Adjustments": (*reference.ADJUSTMENT_COLUMNS, *reference.ADJUSTMENT_OPTIONAL),
    "Disks": reference.DISK_COLUMNS,
    "Prices of disks": reference.DISK_PRICE_COLUMNS,
    "Models": (*reference.MODEL_COLUMNS, *reference.MODEL_OPTIONAL),
    "GPUs": ("id", "source", *GPU_FIELDS),
    "Series": ("id", "source", *SERIES_FIELDS),
}


def leaves(shape: type[Any]) -> list[str]:
    """Return the paths of the leaf fields of a result."""
    found: list[str] = []
    for field in fields(shape):
        kinds = [kind for kind in (field.type, *get_args(field.type)) if isinstance(kind, type)]
        parts = [kind for kind in kinds if is_dataclass(kind) and kind is not Figure]
        found += [f"{field.name}.{leaf}" for part in parts for leaf in leaves(part)] or [field.name]
    return found


FIELDS: dict[str, Collection[str]] = {
    "A workload": EstimateIn.model_fields,
    "GPUs": GpusIn.model_fields,
    "Serving": InferenceIn.model_fields,
    "Training": TrainingIn.model_fields,
    "Model architecture": ArchitectureIn.model_fields,
    "Recipes": RECIPES,
    "Types of weights": [*FULL_BITS, *QUANTIZED_BITS, *FILE_BITS],
    "Families": FAMILIES,
    "Defaults": DEFAULTS,
    "The response": [
        f"{part}.{leaf}"
        for part, shape in (
            ("parameters", ParameterFigures),
            ("inference", InferenceFigures),
            ("training", TrainingFigures),
            ("serving", ServiceReport),
            ("cost", CostFigures),
        )
        for leaf in leaves(shape)
    ],
}


def documented(page: str, section: str) -> list[str]:
    return first_column(sections(read(DOCS / page))[section])


def test_the_api_page_has_every_endpoint_with_its_parameters_and_no_other(client: httpx.Client) -> None:
    page = sections(read(DOCS / "api.md"))
    groups = {f"#{anchor(title)}": first_column(text) for title, text in page.items()}
    documented_params = {
        title: sorted([*first_column(text), *(name for to in links(text) if to in groups for name in groups[to])])
        for title, text in page.items()
        if title.startswith(("GET ", "POST "))
    }
    served_params = {
        f"{method.upper()} {path}": sorted(
            known["name"] for known in operation.get("parameters", []) if known["in"] == "query"
        )
        for path, operations in client.get("/openapi.json").json()["paths"].items()
        for method, operation in operations.items()
    }
    assert documented_params == served_params


def test_the_api_page_has_every_endpoint_whose_answer_says_where_prices_are_known_and_no_other() -> None:
    document = json.loads(read(DOCS / "openapi.json"))
    with_note = set()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            (content,) = operation["responses"]["200"]["content"].values()
            schema = document["components"]["schemas"].get(content["schema"].get("$ref", "").rpartition("/")[2], {})
            if "no_price" in schema.get("properties", {}):
                with_note.add(f"{method.upper()} {path}")
    prose = sections(read(DOCS / "api.md"))["Where prices are known"].partition("```")[0]
    assert set(re.findall(r"`((?:GET|POST) [^`]+)`", prose)) == with_note


def codes_in(*paths: Path | str) -> set[str]:
    """Return the words in capitals that modules have as strings."""
    return {
        node.value
        for path in paths
        for node in ast.walk(ast.parse(read(PROJECT / path)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"[A-Z_]{3,}", node.value)
    }


FIT_FIELDS: dict[str, Collection[str]] = {
    "The body": FitIn.model_fields,
    "Serving": ServingIn.model_fields,
    "Constraints": ConstraintsIn.model_fields,
    "Pricing": PricingIn.model_fields,
    "Hardware": HardwareIn.model_fields,
    "Order": get_args(Sort),
}


@pytest.mark.parametrize("section", FIT_FIELDS)
def test_the_fit_page_has_every_field_of_a_body(section: str) -> None:
    assert sorted(documented("fit.md", section)) == sorted(FIT_FIELDS[section])


RETIREMENT_WORDS: dict[str, Collection[str]] = {
    "The body": RetirementPlanIn.model_fields,
    "An item": InventoryItemIn.model_fields,
    "Features": FEATURE_NAMES,
    "Reasons": codes_in("app/fit/features.py", "app/fit/successors.py", "app/services/retirements.py")
    - {"IOPS", "UNKNOWN_", "OTHER_PROVIDER", "RDMA"},
}


@pytest.mark.parametrize("section", RETIREMENT_WORDS)
def test_the_retirements_page_has_every_field_feature_and_reason(section: str) -> None:
    assert sorted(documented("retirements.md", section)) == sorted(RETIREMENT_WORDS[section])


@pytest.mark.parametrize("section", FIELDS)
def test_the_estimate_page_has_every_field_of_a_workload_and_of_the_answer(section: str) -> None:
    assert sorted(documented("estimate.md", section)) == sorted(FIELDS[section])


def test_the_api_page_has_every_type_of_problem_with_its_status_and_no_other() -> None:
    listed = re.findall(r"^\| (\d{3}) \| `([a-z-]+)` \|", read(DOCS / "api.md"), re.MULTILINE)
    types = {(status, slug) for status, (slug, _) in STATUS_PROBLEMS.items()}
    types |= {(status, slug) for status, slug, _ in (CONTRADICTION, *DOMAIN_PROBLEMS.values())}
    assert sorted((int(status), slug) for status, slug in listed) == sorted(types)


def test_the_api_page_has_every_term_of_a_distance_with_its_weight() -> None:
    text = sections(read(DOCS / "api.md"))["How alike two sizes are"]
    assert re.findall(r"^\| `(\w+)` \| (\d+) \|", text, re.MULTILINE) == [
        (term.name, str(term.weight)) for term in DISTANCE_TERMS
    ]


def test_the_fit_page_has_every_code_of_fit_and_no_other() -> None:
    of_retirements = {PROJECT / "app/fit/features.py", PROJECT / "app/fit/successors.py"}
    codes = codes_in(*(path for path in (PROJECT / "app/fit").rglob("*.py") if path not in of_retirements))
    assert set(documented("fit.md", "Reasons")) == codes - {"USD", "FLOP", "IOPS", "MIXED_PRECISION"}


@pytest.mark.parametrize("section", COLUMNS)
def test_the_ingest_page_has_every_column_and_no_other(section: str) -> None:
    assert sorted(documented("ingest.md", section)) == sorted(COLUMNS[section])


def test_the_ingest_page_has_every_kind_of_file_and_of_source() -> None:
    page = sections(read(DOCS / "ingest.md"))
    listed = first_column(page["Bringing in your own pages, prices and corrections"])
    assert {command.split()[2] for command in listed} == {*CSV_SOURCES, "documents", "seeds"}
    assert re.findall(r"`([^`]+)`", page["Kinds of sources"]) == list(AUTHORITY)


def test_the_catalog_page_has_every_table_and_every_column_of_a_size() -> None:
    assert set(documented("catalog.md", "Tables")) == set(SQLModel.metadata.tables)
    shown = {name for name, field in SIZE_FIELDS.items() if field.column}
    assert set(documented("catalog.md", "Units")) == shown


def test_the_catalog_page_has_every_figure_of_a_language_model() -> None:
    named = {"id", "name", "aliases", "source_id"}
    assert set(documented("catalog.md", "Language models")) == set(Preset.model_fields) - named


def test_the_command_line_page_has_every_command_and_every_table_of_an_export() -> None:
    assert {command.split()[1] for command in documented("cli.md", "Commands")} == set(COMMAND_MODULES)
    line = next(line for line in read(DOCS / "cli.md").splitlines() if "vmsizes export`" in line)
    commands = (name.replace("_", "-") for name in EXPORTABLE_TABLES)
    assert all(re.search(rf"\b{name}\b", line) for name in ("sizes", "prices", *commands))


def test_the_table_of_output_options_has_every_command_that_has_them() -> None:
    table = sections(read(DOCS / "cli.md"))["Output"]
    rows = dict(re.findall(r"^\| `(--[a-z]+)(?: [^`]+)?` \| ([^|]+?) \|", table, re.MULTILINE))
    having: dict[str, set[str]] = {}
    program: Any = get_command(command_line)
    for name in COMMAND_MODULES:
        command = program.get_command(None, name)
        parts = {f"{name} {word}": part for word, part in getattr(command, "commands", {}).items()} or {name: command}
        for words, part in parts.items():
            for spelling in {spelling for param in part.params for spelling in param.opts}:
                # All parts of these two have the same options.
                having.setdefault(spelling, set()).add(name if name in ("ingest", "refresh") else words)
    for option in ("--wide", "--columns", "--json", "--csv", "--currency"):
        named = rows[option].replace("those of `--wide`", rows["--wide"]).split(", ")
        assert (len(named), set(named)) == (len(having[option]), having[option]), option


def test_the_readme_says_how_many_figures_of_azures_sizes_without_a_gpu_are_missing(seeded_url: str) -> None:
    fields = "cpu_model,network_mbps,uncached_disk_iops,uncached_disk_mbps"
    sizes = run_command(seeded_url, "export", "sizes", "--max-gpus", "0", "--fields", fields).stdout
    rows = [[*row.values()] for row in csv.DictReader(io.StringIO(sizes))]
    assert "one in six of Azure's" in read(PROJECT / "README.md")
    assert round(len(rows) / sum("" in row for row in rows)) == 6
    for known in zip(*rows, strict=True):
        assert round(10 * sum(value != "" for value in known) / len(rows)) == 9  # as the changelog says


def _as_written(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)


def test_the_page_on_running_it_has_every_setting_with_its_default() -> None:
    table = sections(read(DOCS / "operations.md"))["Settings"]
    rows = re.findall(r"^\| `(VMSIZES_\w+)` \| (?:`(.*?)`)?", table, re.MULTILINE)
    defaults = {
        f"VMSIZES_{name.upper()}": "" if field.default is None else _as_written(field.default)
        for name, field in Settings.model_fields.items()
    }
    assert dict(rows) == defaults | {"VMSIZES_SEEDS": "seeds"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in links(read(page)):
        if not target.startswith("https://"):
            file, _, place = target.partition("#")
            there = (page.parent / file).resolve() if file else page
            assert there.exists(), target
            assert not place or place in map(anchor, sections(read(there))), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_every_verb_and_file_that_is_named_is_there(page: Path) -> None:
    text = read(page)
    verbs = set(re.findall(r"^([a-z-]+):", read(PROJECT / "Makefile"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^|\n)(?:PORT=\d+ )?make ([a-z]+)", text)) <= verbs
    for name in re.findall(r"`((?:app|docs|seeds|tests|migrations)/[\w./-]*)`", text):
        assert (PROJECT / name).exists(), name
