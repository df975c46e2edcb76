"""What a reading refers to must be there, and a name must mean one thing: else a row is refused with file and line."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.catalog.models import Model, Series, Source
from app.catalog.names import model_keys
from app.catalog.presets import split_names
from app.catalog.readings import ModelRow, Reading
from app.catalog.resolution.subjects import Subjects
from app.catalog.tables import table_of
from app.errors import BadData


def check_references(session: Session, reading: Reading, subjects: Subjects) -> None:
    """Refuse a correction of an unknown source, a benchmark of an unknown series, a name that two models have.

    Sources of the reading itself are written before; prices are checked as they pass. Raises BadData for the first.
    """
    sources = _all(session, Source, "id")
    for correction in reading.corrections:
        if correction.source not in sources:
            raise _unknown("source", correction.source, correction.file, correction.line)
    series = _all(session, Series, "id") | set(subjects.series.values())
    for benchmark in reading.benchmarks:
        if subjects.series_id(benchmark.series) not in series:
            raise _unknown("series", benchmark.series, benchmark.file, benchmark.line)
    _check_model_names(session, reading.models)


def _check_model_names(session: Session, models: Iterable[ModelRow]) -> None:
    """Refuse a language model that is called what another is called, be that one new or kept."""
    new = {model.preset.id: model for model in models}
    table = table_of(Model).c
    named = select(table.id, table.name, table.hf_repo, table.aliases).where(table.id.not_in(new))
    owners: dict[str, ModelRow | str] = {
        key: row.id
        for row in session.execute(named)
        for key in model_keys((row.id, row.name, row.hf_repo or "", *split_names(row.aliases)))
    }
    for model in models:
        for column, names in model.preset.names.items():
            for name in names:
                _claim(owners, name, column, model)


def _claim(owners: dict[str, ModelRow | str], name: str, column: str, model: ModelRow) -> None:
    for key in model_keys([name]):
        owner = owners.setdefault(key, model)
        if owner is not model:
            other = owner if isinstance(owner, str) else owner.preset.id
            said = f"{name!r}: already means {other!r}; every name and alias must be one model's"
            raise BadData(said, file=model.file, line=model.line, column=column)


def _all(session: Session, model: type[Any], column: str) -> set[str]:
    return set(session.execute(select(table_of(model).c[column])).scalars())


def _unknown(kind: str, name: str, file: str, line: int) -> BadData:
    return BadData(f"there is no {kind} {name!r}; bring it in first", file=file, line=line, column=kind)
