"""Language models: the configurations that a workload can be named by."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from app.catalog.presets import Preset
from app.catalog.readings import ModelRow, Reading, SourceNote
from app.ingest.csv_files import Row
from app.ingest.sources.claims import read_cited
from app.ingest.sources.model_rules import broken_rule
from app.validation import explain

_FIELDS = {name: field for name, field in Preset.model_fields.items() if name != "source_id"}
COLUMNS = (*(name for name, field in _FIELDS.items() if field.is_required()), "source")
OPTIONAL = tuple(name for name in _FIELDS if name not in COLUMNS)


def read_models(path: Path, sources: Mapping[str, SourceNote]) -> Reading:
    """Read the models and the sources that publish them."""
    rows, notes = read_cited(path, COLUMNS, sources, to_model, optional=OPTIONAL)
    return Reading(sources=notes, models=rows)


def to_model(row: Row) -> ModelRow:
    """Map one row; a blank cell is what its field is without one, and the figures must fit together."""
    values = {name: _READ[_kind(field.annotation)](row, name) for name, field in _FIELDS.items() if row.cells.get(name)}
    try:
        preset = Preset(**values, source_id=row.text("source"))
    except ValidationError as error:
        wrong = error.errors()[0]
        said = "must not be blank" if wrong["type"] == "missing" else explain(wrong)
        raise row.bad(str(wrong["loc"][0]), said) from error
    if rule := broken_rule(preset):
        raise row.bad(rule.field, rule.detail)
    return ModelRow(preset=preset, file=row.file, line=row.line)


_READ: dict[type, Callable[[Row, str], Any]] = {bool: Row.flag, int: Row.whole, str: Row.text}


def _kind(annotation: Any) -> type:
    """Say how a cell of a field is written: as a yes or no, a whole number, or text."""
    if annotation in (bool, int):
        return bool if annotation is bool else int
    return next((kind for part in get_args(annotation) if (kind := _kind(part)) is not str), str)
