"""Saves in which regions and zones sizes are offered; a file that is read again replaces what it said before."""

from sqlalchemy import delete, exists, or_, select, update
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Availability, Region, Size
from app.catalog.readings import Reading
from app.catalog.regions import explain_unknown_region
from app.catalog.resolution.subjects import SubjectKeys
from app.catalog.store.upsert import TableChange, save_rows
from app.errors import BadData

AVAILABILITY = table_of(Availability)


def save_availability(session: Session, reading: Reading, subjects: SubjectKeys) -> TableChange:
    """Write the availability of a reading; raises BadData for a size or region that the catalog lacks."""
    files = [file for file in reading.files if file.kind == "availability"]
    if not files:
        return TableChange()
    sizes = set(session.execute(select(table_of(Size).c.key)).scalars())
    regions = set(session.execute(select(table_of(Region).c.code)).scalars())
    rows = []
    for entry in reading.availability:
        key = subjects.size_key(entry.size)
        if key not in sizes:
            detail = f"unknown size {entry.size!r}; ingest it first"
            raise BadData(detail, file=entry.file, line=entry.line, column="size")
        if entry.region not in regions:
            detail = explain_unknown_region(entry.region, regions)
            raise BadData(detail, file=entry.file, line=entry.line, column="region")
        row = {"size_key": key, "region": entry.region, "zones": entry.zones, "source_id": entry.source}
        rows.append(row | {"file": entry.file})
    table = AVAILABILITY.c
    replaced = or_(*((table.file == file.file) & table.source_id.in_(file.sources) for file in files))
    others = session.execute(select(AVAILABILITY).where(~replaced)).mappings()
    return save_rows(session, Availability, [*others, *rows], replace_all=True)


def move_availability(session: Session, alias: str, key: str) -> None:
    """Give a size the availability of a size that turned out to be an alias of it; its own is kept."""
    own = AVAILABILITY.alias("own").c
    table = AVAILABILITY.c
    both = exists().where(own.size_key == key, own.region == table.region, own.source_id == table.source_id)
    session.execute(delete(AVAILABILITY).where(table.size_key == alias, both))
    session.execute(update(AVAILABILITY).where(table.size_key == alias).values(size_key=key))
