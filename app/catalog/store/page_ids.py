"""Keeps pages from taking over a source that was read from another file."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Fact
from app.catalog.readings import FileRead, Reading
from app.catalog.store.facts import load_sources
from app.catalog.store.retract import load_file_keys
from app.catalog.store.revisions import list_sources
from app.catalog.store.upsert import among
from app.errors import BadData

_SUFFIX = re.compile(r"-[0-9a-f]{8}$")
"""Of the id of a page, where another file has the same name: the beginning of its digest."""


def settle_page_ids(session: Session, reading: Reading) -> Reading:
    """Return a reading whose pages keep the ids that their files had before, and take over no other source.

    An id that is made of the name of a file gets a suffix where a source of another file has it. Raises BadData where
    the front matter states such an id.
    """
    digests = {source.id: source.sha256 for source in reading.sources}
    pages = [(id_, file) for file in reading.files if file.kind == "documents" for id_ in file.sources & digests.keys()]
    stored = {id_: row["sha256"] for id_, row in load_sources(session).items()} if pages else {}
    bases = {id_: id_.removesuffix(f"-{digests[id_][:8]}") for id_, _ in pages}
    alike = {id_: base for id_ in stored for base in (id_, _SUFFIX.sub("", id_)) if base in bases.values()}
    fact, read_from = table_of(Fact).c, set[tuple[str, str]]()
    for some in among(fact.source_id, sorted(alike)):
        read_from |= {
            (id_, file) for id_, file in session.execute(select(fact.source_id, fact.file).distinct().where(some))
        }
    if alike:
        read_from |= {(id_, file) for file, keys in load_file_keys(session, "benchmarks").items() for id_, *_ in keys}
    new, taken = dict[tuple[str, str], str](), []
    for id_, page in pages:
        own = [old for old in (id_, *alike) if old == id_ or alike[old] == bases[id_] if (old, page.file) in read_from]
        if stored.get(id_) != digests[id_] and own:
            new[id_, page.file] = own[0]
        elif stored.get(id_, digests[id_]) != digests[id_]:
            taken.append((id_, page))
    # An included page may state nothing itself, so that no file of it is stored.
    used = (
        {row["id"] for row in list_sources(session) if row["facts"] or row["prices"] or row["others"]} if taken else ()
    )
    for id_, page in taken:
        if id_ in used and page.id_line:
            detail = f"{id_!r}: is the id of another source already; choose another, or forget that source first"
            raise BadData(detail, file=page.file, line=page.id_line, column="id")
        if id_ in used:
            new[id_, page.file] = f"{bases[id_]}-{digests[id_][:8]}"
    return _rename_sources(reading, pages, new) if new else reading


def _rename_sources(
    reading: Reading, pages: Sequence[tuple[str, FileRead]], new: Mapping[tuple[str, str], str]
) -> Reading:
    """Return a reading with other ids of the sources of some pages; `new` has them by the id and file of a page."""
    ids = {id_: [new.get((id_, page.file), id_) for other, page in pages if other == id_] for id_, _ in pages}
    return replace(
        reading,
        sources=tuple(
            replace(row, id=id_) for row in reading.sources for id_ in dict.fromkeys(ids.get(row.id, [row.id]))
        ),
        facts=tuple(replace(row, source=new.get((row.source, row.file), row.source)) for row in reading.facts),
        benchmarks=tuple(
            replace(row, source=new.get((row.source, row.file), row.source)) for row in reading.benchmarks
        ),
        files=tuple(
            replace(file, sources=frozenset(new.get((id_, file.file), id_) for id_ in file.sources))
            for file in reading.files
        ),
    )
