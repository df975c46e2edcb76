"""Language models in a file of one's own: what is read, what a blank cell means, what does not fit together."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from app.catalog.presets import Preset
from app.catalog.readings import SourceRow
from app.errors import BadData
from app.ingest.sources.reference import read_models
from tests.factories import source

SOURCES: Mapping[str, SourceRow] = {"card": source("card")}
SMALL = {
    "id": "small-1b", "name": "Small 1B", "params": "1000", "active_params": "1000", "layers": "4", "hidden": "64",
    "vocab": "100", "attention": "gqa", "heads": "8", "kv_heads": "2", "head_dim": "8", "intermediate": "128",
    "source": "card",
}  # fmt: skip
EXPERTS = {
    "active_params": "400", "intermediate": "", "moe_layers": "4", "experts": "8", "experts_per_token": "2",
    "moe_intermediate": "32",
}  # fmt: skip
LATENT = {
    "attention": "mla", "kv_heads": "8", "head_dim": "24", "kv_lora_rank": "32", "qk_nope_head_dim": "16",
    "qk_rope_head_dim": "8", "v_head_dim": "16",
}  # fmt: skip


def write(folder: Path, **cells: str) -> Path:
    row = SMALL | cells
    path = folder / "models.csv"
    path.write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n")
    return path


def read(folder: Path, **cells: str) -> Preset:
    (model,) = read_models(write(folder, **cells), SOURCES).models
    return model.preset


def test_a_model_is_read_with_its_place_and_its_source(tmp_path: Path) -> None:
    reading = read_models(write(tmp_path), SOURCES)
    (model,) = reading.models
    assert (model.file, model.line) == (str(tmp_path / "models.csv"), 2)
    assert (model.preset.id, model.preset.kv_heads, model.preset.source_id) == ("small-1b", 2, "card")
    assert [note.id for note in reading.sources] == ["card"]


def test_a_column_that_is_left_out_means_the_same_as_a_blank_cell(tmp_path: Path) -> None:
    blank = {"experts": "", "tied_embeddings": "", "mlp": "", "norms_per_layer": "", "aliases": "", "license": ""}
    preset = read(tmp_path, **blank)
    assert preset == read(tmp_path)
    assert (preset.experts, preset.tied_embeddings, preset.mlp, preset.norms_per_layer) == (0, False, "gated", 2)
    assert (preset.aliases, preset.license) == ((), None)


def test_aliases_are_joined_by_semicolons(tmp_path: Path) -> None:
    assert read(tmp_path, aliases="acme/Small-1B; small").aliases == ("acme/Small-1B", "small")


@pytest.mark.parametrize("parts", [EXPERTS, LATENT, EXPERTS | LATENT | {"q_lora_rank": "48", "shared_experts": "1"}])
def test_experts_and_latent_attention_are_read(tmp_path: Path, parts: dict[str, str]) -> None:
    preset = read(tmp_path, **parts)
    read_back = {name: "" if (value := getattr(preset, name)) is None else str(value) for name in parts}
    assert read_back == parts


@pytest.mark.parametrize(
    ("cells", "column", "detail"),
    [
        ({"id": "Small 1B"}, "id", "must be lower case letters, digits, dots and hyphens, and begin with"),
        ({"params": ""}, "params", "must not be blank"),
        ({"params": "7e9"}, "params", "must be a whole number from 0, written like 4096"),
        ({"layers": "4.0"}, "layers", "must be a whole number"),
        ({"layers": "0"}, "layers", "must be at least 1"),
        ({"layers": "9999999999"}, "layers", "must be at most"),
        ({"attention": "flash"}, "attention", "allowed are mha, gqa, mqa, mla"),
        ({"dtype": "bfloat16"}, "dtype", "did you mean bf16? allowed are fp32, fp16, bf16, fp8, mxfp4"),
        ({"tied_embeddings": "yes"}, "tied_embeddings", "must be one of true, false"),
        ({"source": "hearsay"}, "source", "is not in the list of sources"),
        ({"kv_heads": "3"}, "kv_heads", "must divide heads"),
        ({"attention": "mha"}, "attention", "must be mha where kv_heads is heads"),
        ({"kv_heads": "1"}, "attention", "mqa where it is 1"),
        (LATENT | {"v_head_dim": ""}, "attention", "is mla exactly where"),
        (LATENT | {"attention": "mha"}, "attention", "is mla exactly where"),
        (LATENT | {"head_dim": "16"}, "head_dim", "must be qk_nope_head_dim and qk_rope_head_dim together"),
        ({"q_lora_rank": "48"}, "q_lora_rank", "is of mla only"),
        ({"sliding_layers": "5", "sliding_window": "16"}, "sliding_layers", "must be 0 to layers"),
        ({"sliding_window": "16"}, "sliding_window", "exactly where sliding_layers is above 0"),
        (EXPERTS | {"moe_layers": "5"}, "moe_layers", "must be 0 to layers"),
        (EXPERTS | {"experts": "0"}, "experts", "is above 0 exactly where moe_layers is"),
        (EXPERTS | {"experts_per_token": "9"}, "experts_per_token", "must be 1 to experts"),
        (EXPERTS | {"experts_per_token": "0"}, "experts_per_token", "must be 1 to experts"),
        ({"shared_experts": "1"}, "shared_experts", "are of layers with experts"),
        ({"router_bias": "true"}, "router_bias", "is of layers with experts"),
        (EXPERTS | {"moe_intermediate": ""}, "moe_intermediate", "exactly where moe_layers is above 0"),
        ({"intermediate": ""}, "intermediate", "exactly where a layer has no experts"),
        (EXPERTS | {"intermediate": "128"}, "intermediate", "exactly where a layer has no experts"),
        ({"active_params": "999"}, "active_params", "must be params, or less where there are experts"),
        (EXPERTS | {"active_params": "1001"}, "active_params", "must be params, or less where there are experts"),
        ({"published_params": "1001"}, "params_note", "must say why published_params is not params"),
        ({"params_note": "nothing"}, "params_note", "must say why published_params is not params"),
    ],
)
def test_a_figure_that_is_wrong_or_does_not_fit_is_refused_with_file_line_and_column(
    tmp_path: Path, cells: dict[str, str], column: str, detail: str
) -> None:
    with pytest.raises(BadData) as caught:
        read(tmp_path, **cells)
    assert (caught.value.line, caught.value.column) == (2, column)
    assert detail in caught.value.detail


@pytest.mark.parametrize(
    ("header", "column", "detail"),
    [
        ([name for name in SMALL if name != "params"], "params", "is missing from the header"),
        ([*SMALL, "colour"], "colour", "is unknown; the columns are id, name, params"),
    ],
)
def test_a_header_without_a_column_or_with_another_is_refused(
    tmp_path: Path, header: list[str], column: str, detail: str
) -> None:
    path = tmp_path / "models.csv"
    path.write_text(",".join(header) + "\n")
    with pytest.raises(BadData, match=detail) as caught:
        read_models(path, SOURCES)
    assert (caught.value.line, caught.value.column) == (1, column)
