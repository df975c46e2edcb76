"""Reads CSV files of language models, and checks that the figures of each configuration fit together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import ValidationError

from app.catalog.presets import Attention, Preset
from app.catalog.readings import ModelRow
from app.ingest.csv_files import CsvRow
from app.ingest.sources.claims import reader_of
from app.validation import explain


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition that every configuration must meet, and the field and detail to report where it does not."""

    field: str
    detail: str
    holds: Callable[[Preset], bool]


_KV_HEADS_RULES: dict[Attention, Callable[[int, int], bool]] = {
    "mha": lambda heads, shared: shared == heads,
    "gqa": lambda heads, shared: 1 < shared < heads,
    "mqa": lambda heads, shared: shared == 1 < heads,
    "mla": lambda heads, shared: shared == heads,
}


def _latent_widths_given(preset: Preset) -> list[bool]:
    widths = (preset.kv_lora_rank, preset.qk_nope_head_dim, preset.qk_rope_head_dim, preset.v_head_dim)
    return [width is not None for width in widths]


RULES: tuple[Rule, ...] = (
    Rule("kv_heads", "must divide heads", lambda p: p.heads % p.kv_heads == 0),
    Rule(
        "attention",
        "must be mha where kv_heads is heads, mqa where it is 1, else gqa; mla has as many as heads",
        lambda p: _KV_HEADS_RULES[p.attention](p.heads, p.kv_heads),
    ),
    Rule(
        "attention",
        "is mla exactly where kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim and v_head_dim are given",
        lambda p: all(_latent_widths_given(p)) if p.attention == "mla" else not any(_latent_widths_given(p)),
    ),
    Rule("q_lora_rank", "is of mla only", lambda p: p.attention == "mla" or p.q_lora_rank is None),
    Rule(
        "head_dim",
        "must be qk_nope_head_dim and qk_rope_head_dim together",
        lambda p: p.attention != "mla" or p.head_dim == (p.qk_nope_head_dim or 0) + (p.qk_rope_head_dim or 0),
    ),
    Rule("sliding_layers", "must be 0 to layers", lambda p: p.sliding_layers <= p.layers),
    Rule(
        "sliding_window",
        "is given exactly where sliding_layers is above 0",
        lambda p: (p.sliding_window is not None) == (p.sliding_layers > 0),
    ),
    Rule("moe_layers", "must be 0 to layers", lambda p: p.moe_layers <= p.layers),
    Rule("experts", "is above 0 exactly where moe_layers is", lambda p: (p.experts > 0) == (p.moe_layers > 0)),
    Rule(
        "experts_per_token",
        "must be 1 to experts, and 0 where there are none",
        lambda p: min(1, p.experts) <= p.experts_per_token <= p.experts,
    ),
    Rule("shared_experts", "are of layers with experts", lambda p: p.shared_experts == 0 or p.experts > 0),
    Rule("router_bias", "is of layers with experts", lambda p: not p.router_bias or p.experts > 0),
    Rule(
        "moe_intermediate",
        "is given exactly where moe_layers is above 0",
        lambda p: (p.moe_intermediate is not None) == (p.moe_layers > 0),
    ),
    Rule(
        "intermediate",
        "is given exactly where a layer has no experts",
        lambda p: (p.intermediate is not None) == (p.moe_layers < p.layers),
    ),
    Rule(
        "active_params",
        "must be params, or less where there are experts or a config",
        lambda p: p.active_params <= p.params if p.experts or p.config else p.active_params == p.params,
    ),
    Rule(
        "params_note",
        "must say why published_params is not params, and be blank where it is",
        lambda p: (p.params_note is not None) == (p.published_params not in (None, p.params)),
    ),
)
"""The conditions of a configuration; the first that is broken is reported."""


_OF_ANY_LAYERS = frozenset({"experts_per_token", "active_params", "params_note", "sliding_layers", "moe_layers"})


_FIELDS = {name: field for name, field in Preset.model_fields.items() if name != "source_id"}
COLUMNS = (*(name for name, field in _FIELDS.items() if field.is_required()), "source")
OPTIONAL = tuple(name for name in _FIELDS if name not in COLUMNS)


def to_model(row: CsvRow) -> ModelRow:
    """Map one row; a blank cell is the default of its field. Raises BadData for figures that do not fit together."""
    values = {
        name: _READERS[_cell_type(field.annotation)](row, name)
        for name, field in _FIELDS.items()
        if row.cells.get(name)
    }
    try:
        preset = Preset(**values, source_id=row.text("source"))
    except ValidationError as error:
        wrong = error.errors()[0]
        detail = "must not be blank" if wrong["type"] == "missing" else explain(wrong)
        raise row.error(str(wrong["loc"][0]), detail) from error
    # Where a model has a `config`, its layers differ, and rules of equal layers do not hold.
    rules = [rule for rule in RULES if not preset.config or rule.field in _OF_ANY_LAYERS]
    if broken := next((rule for rule in rules if not rule.holds(preset)), None):
        raise row.error(broken.field, broken.detail)
    return ModelRow(preset=preset, file=row.file, line=row.line)


_READERS: dict[type, Callable[[CsvRow, str], Any]] = {bool: CsvRow.flag, int: CsvRow.integer, str: CsvRow.text}


def _cell_type(annotation: Any) -> type:
    """Return the type that a field's cells are parsed as: bool, int or str, also inside an optional or a union."""
    if annotation in (bool, int):
        return bool if annotation is bool else int
    return next((kind for part in get_args(annotation) if (kind := _cell_type(part)) is not str), str)


read_models = reader_of("models", COLUMNS, to_model, optional=OPTIONAL)
