"""Every field that app.fit, app.services and a catalog search name is at a path of a published body."""

import json
from collections.abc import Iterator
from dataclasses import fields
from decimal import Decimal
from typing import Any

import pytest

from app.catalog.queries.params import SizeSelection
from app.errors import BadQuery, BadWorkload
from app.fit.formulas.quantities import DEFAULTS
from app.fit.formulas.training_speed import PRECISION_DTYPES
from app.fit.placement.fixes import FieldChange, lower_field, set_field
from app.schemas.fit_request import FitIn
from app.services.fit import PATHS, search_params, to_body_error, to_patch
from app.settings import PROJECT
from tests.fit.named_fields import FIT_PARTS, WORKLOADS, Names, is_figure, names_in_package
from tests.services.test_field_names import SERVICE_PARTS

SCHEMAS: dict[str, Any] = json.loads((PROJECT / "docs/openapi.json").read_text())["components"]["schemas"]

TRANSLATED_BY_SERVICES = {"memory_unknown"}

TOLD_ONLY = {"architecture.kind"}
"""Fields that an answer tells as assumptions and no body sets: a configuration or a preset decides them."""

READ_FROM_FILES = {
    *("max_positions", "shared_expert_gate", "router_bias", "attention_sinks", "released", "fp8_block"),
    *("groups", "outside", "outside_active", "kind", "unknown_type", "final_norm", "makes_video"),
    "may_be_tied",
    *("mtp_layers", "mtp_embeddings"),
}
"""Fields of an architecture that only presets and configuration files have."""


def has_path(schema: str, path: str) -> bool:
    """Return whether a published schema has a path; an object without properties has any."""
    found = [SCHEMAS[schema]]
    for step in path.split("."):
        objects = [part for one in found for part in parts(one)]
        if any("properties" not in one and one.get("type") == "object" for one in objects):
            return True
        found = [one["properties"][step] for one in objects if step in one.get("properties", {})]
    return bool(found)


def parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a schema with those it refers to and its alternatives."""
    yield schema
    inner = [SCHEMAS[schema["$ref"].rpartition("/")[2]]] if "$ref" in schema else []
    for one in (*inner, *schema.get("anyOf", []), *schema.get("allOf", [])):
        yield from parts(one)


def in_a_body(path: str) -> bool:
    return has_path("FitIn", path) or has_path("EstimateIn", path)


def expanded(name: str) -> list[str]:
    """Return the names that one with a placeholder can stand for."""
    if name == "architecture.*":
        return [
            f"architecture.{field.name}"
            for field in fields(FIT_PARTS["architecture"])
            if field.name not in READ_FROM_FILES
        ]
    return [name.replace("*", part) for part in WORKLOADS] if name.startswith("*.") else [name]


@pytest.fixture(scope="module")
def sources() -> list[Names]:
    return [names_in_package("fit", FIT_PARTS), names_in_package("services", SERVICE_PARTS)]


def test_every_field_that_is_named_is_at_a_path_of_a_published_body(sources: list[Names]) -> None:
    named = {one for names in sources for name in names.all_fields for one in expanded(name)} | set(DEFAULTS)
    assert len(named) > 80
    assert not [name for name in named - TRANSLATED_BY_SERVICES - TOLD_ONLY if not in_a_body(PATHS.get(name, name))]


def test_a_text_names_only_fields_that_a_body_has_under_the_same_name(sources: list[Names]) -> None:
    named = {one for names in sources for name in names.in_texts for one in expanded(name)}
    assert "inference.kv_dtype" in named
    assert not named & PATHS.keys()


def test_what_only_files_have_is_named_by_nothing_but_their_readers() -> None:
    assert not [name for name in READ_FROM_FILES if in_a_body(f"architecture.{name}")]
    modules = [*(PROJECT / "app/fit").rglob("*.py")]
    others = [path.read_text() for path in modules if not path.name.startswith("hf_")]
    fields_alone = READ_FROM_FILES - PRECISION_DTYPES.keys()  # `fp8_block` is a precision of training, too
    assert not [name for name in fields_alone if any(f'"{name}"' in source for source in others)]


def test_every_figure_that_is_left_out_is_a_figure_of_the_response(sources: list[Names]) -> None:
    figures = {name for names in sources for name in names.figures | names.whole if is_figure(name)}
    assert [name for name in figures if not has_path("EstimateOut", name)] == ["training.compute.attention_flops"]


@pytest.mark.parametrize("part", ["constraints", *WORKLOADS])
def test_every_field_that_a_fix_can_change_is_at_a_path_of_the_body(part: str) -> None:
    names = {f"{part}.{field.name}" for field in fields(FIT_PARTS[part])}
    names -= {"inference.prefix_cache_hit", "inference.prefill_busy"}  # of serving
    assert not [name for name in names if not has_path("FitIn", name)]


def test_every_parameter_of_a_search_has_a_path_that_the_body_has() -> None:
    by_themselves = {"currency", "as_of", "known_at"}  # which a search gets by itself
    assert PATHS.keys() - SizeSelection.model_fields.keys() == by_themselves
    assert not [path for path in PATHS.values() if not has_path("FitIn", path)]
    assert len(set(PATHS.values())) == len(PATHS)


def test_a_path_that_no_body_has_is_found() -> None:
    assert not in_a_body("memory_unknown")
    assert not in_a_body("constraints.region")
    assert not in_a_body("architecture.max_positions")
    assert not has_path("FitIn", "gpus.count")
    assert has_path("FitIn", "config.quantization_config.bits")


def test_a_search_is_read_from_the_paths_that_its_errors_name() -> None:
    body = FitIn.model_validate({"resources": {}, "constraints": {"regions": ["eastus"], "gpu": ["a100"]}})
    params = search_params(body)
    assert (params["region"], params["gpu"], params["os"]) == (("eastus",), ("a100",), "linux")
    assert to_body_error(BadQuery("region", "x", "no such region")).field == "constraints.regions"
    assert to_body_error(BadWorkload("hardware.gpu", "is unknown")).field == "hardware.gpu"


def test_assumptions_and_fixes_name_paths_of_the_body_already(sources: list[Names]) -> None:
    in_fit, _ = sources
    assert not (in_fit.all_fields | set(DEFAULTS)) & PATHS.keys()
    changes = (*lower_field("inference", "concurrency", 3), *set_field("constraints", "max_nodes", 2))
    assert to_patch(changes) == {"inference": {"concurrency": 3}, "constraints": {"max_nodes": 2}}


def test_amounts_of_money_in_a_patch_are_numbers() -> None:
    change = FieldChange(part="constraints", field="budget_usd_per_job", value=Decimal("1.5"), text="")
    assert to_patch([change]) == {"constraints": {"budget_usd_per_job": 1.5}}
