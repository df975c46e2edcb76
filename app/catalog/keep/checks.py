"""What a reading refers to must be there: every row that points to nothing is refused with its file and line."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.catalog.decide.subjects import Subjects
from app.catalog.facts import Reading
from app.catalog.models import Region, Series, Source
from app.catalog.tables import table_of
from app.errors import BadData


def check_references(session: Session, reading: Reading, subjects: Subjects) -> None:
    """Refuse a price in an unknown region, a correction of an unknown source, a benchmark of an unknown series.

    Sources and regions of the reading itself are written before. Raises BadData for the first that is wrong.
    """
    regions, sources = _all(session, Region, "code"), _all(session, Source, "id")
    for price in reading.prices:
        if price.region not in regions:
            raise _unknown("region", price.region, price.file, price.line)
    for correction in reading.corrections:
        if correction.source not in sources:
            raise _unknown("source", correction.source, correction.file, correction.line)
    series = _all(session, Series, "id") | set(subjects.series.values())
    for benchmark in reading.benchmarks:
        if subjects.series_id(benchmark.series) not in series:
            raise _unknown("series", benchmark.series, benchmark.file, benchmark.line)


def _all(session: Session, model: type[Any], column: str) -> set[str]:
    return set(session.execute(select(table_of(model).c[column])).scalars())


def _unknown(kind: str, name: str, file: str, line: int) -> BadData:
    return BadData(f"there is no {kind} {name!r}; bring it in first", file=file, line=line, column=kind)
