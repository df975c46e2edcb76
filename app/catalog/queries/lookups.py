"""Names that a client gives, brought to the keys of the catalog; what is not there is refused with the nearest."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Integer, bindparam, literal_column, select, union_all
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Gpu, Region, Series, Size, SizeAlias
from app.catalog.names import series_key, size_key
from app.catalog.presets import split_names
from app.catalog.queries.price_scope import SIZE, size
from app.db.statements import BoundStatement, QueryPlan, Statement
from app.errors import BadQuery, NotFound
from app.nearest import closest_spellings, did_you_mean, nearest, starting_with

GpuRow = Mapping[str, Any]


def get_gpu(name: str) -> QueryPlan[GpuRow]:
    """Find a GPU model by its id, its name, an alias, or words that only it has; raises NotFound naming the nearest."""
    rows = yield BoundStatement(_statement(), {})
    names = _statement().names
    return match_gpu([dict(zip(names, row, strict=True)) for row in rows], name)


@lru_cache(maxsize=1)
def _statement() -> Statement:
    table = table_of(Gpu)
    return Statement(select(*table.c).order_by(table.c.id), short=True)


def match_gpu(rows: Sequence[GpuRow], name: str) -> GpuRow:
    """Choose the one that a name means: called exactly so, else the only one that has all its words."""
    asked = _words(name)
    exactly = [row for row in rows if any(_words(called) == asked for called in _called(row))]
    found = exactly if len(exactly) == 1 else [row for row in rows if set(asked) <= gpu_words(row)]
    found = [] if all(word.isdigit() for word in asked) else found
    if len(found) == 1:
        return found[0]
    nearest = [row["id"] for row in found] or closest_spellings("-".join(asked), [row["id"] for row in rows], 2)
    raise NotFound("GPU", name, suggestions=tuple(nearest))


def _called(row: GpuRow) -> tuple[str, ...]:
    return (row["id"], row["model"], *split_names(row["aliases"]))


def gpu_words(row: GpuRow) -> set[str]:
    """The words of all that a GPU is called, and of its memory."""
    memory = f"{row['memory_gib']:g}" if row["memory_gib"] is not None else ""
    return {memory, *(word for called in _called(row) for word in _words(called))}


def _words(name: str) -> tuple[str, ...]:
    """The words of a name, without the unit of its memory: `A100-80GB` is a100 and 80."""
    return tuple(re.sub(r"(?<=\d)gb$", "", word) for word in re.findall(r"[a-z0-9]+", name.lower()))


_size, _alias = table_of(Size).c, table_of(SizeAlias).c
_series, _region = table_of(Series).c, table_of(Region).c


def get_size_key(session: Session, name: str) -> str:
    """The key of the size that a name or an alias means, in any case, with or without `Standard_`."""
    key = size_key(name)
    if session.execute(select(_size.key).where(_size.key == key)).first():
        return key
    alias = session.execute(select(_alias.size_key).where(_alias.alias_key == key)).scalar_one_or_none()
    if alias is not None:
        return str(alias)
    names = {row.key: row.name for row in session.execute(select(_size.key, _size.name))}
    raise NotFound("size", name, suggestions=tuple(names[near] for near in starting_with(key, names, 2)))


def load_series_ids(session: Session) -> dict[str, str]:
    """The id of each series by its key, and by those of its name and other titles."""
    return {
        series_key(name): row.id
        for row in session.execute(select(_series.id, _series.name, _series.aliases))
        for name in (*(row.aliases or "").split("; "), row.name, row.id)
        if name
    }


def get_series_ids(titles: Mapping[str, str], names: Iterable[str]) -> tuple[str, ...]:
    """The ids of series by id, name or another title of theirs; raises NotFound for a name that none has."""
    found = []
    for name in names:
        if series_key(name) not in titles:
            near = starting_with(series_key(name), titles, 2)
            raise NotFound("series", name, suggestions=tuple(titles[key] for key in near))
        found.append(titles[series_key(name)])
    return tuple(found)


def load_region_codes(session: Session) -> frozenset[str]:
    """The codes of all regions."""
    return frozenset(session.execute(select(_region.code)).scalars())


def check_regions(known: Collection[str], field: str, codes: Iterable[str]) -> None:
    """Refuse a region that the catalog does not know; raises BadQuestion naming the nearest."""
    for code in codes:
        if code not in known:
            hint = did_you_mean(closest_spellings(code, known), " ")
            raise BadQuery(field, code, f"no such region; {hint}GET /regions lists them")


def get_subject_key(session: Session, name: str) -> str:
    """The key of whatever a fact can be about: a size by any of its names, a series, a GPU; raises BadQuestion."""
    gpu = table_of(Gpu).c.id
    if session.execute(select(gpu).where(gpu == name.lower())).first():
        return name.lower()
    try:
        return get_size_key(session, name)
    except NotFound as no_size:
        try:
            return get_series_ids(load_series_ids(session), [name])[0]
        except NotFound:
            raise BadQuery("subject", name, f"no size, series or GPU has this name. {no_size}") from None


def check_field(name: str, known: Collection[str]) -> None:
    """Refuse a field that nothing has; raises BadQuestion naming the nearest."""
    if name not in known:
        hint = did_you_mean(nearest(name, known))
        raise BadQuery("field", name, f"no such field{hint and f'; {hint}'}")


ALIAS = table_of(SizeAlias)
NEAREST_WINDOW = 500
"""The nearest of an unknown name is looked for among so many before it in the alphabet, and as many after it."""


def get_size_keys(names: Sequence[str]) -> QueryPlan[tuple[str, ...]]:
    """The key of each size by a name or an alias, in any case, with or without `Standard_`; raises NotFound."""
    keys = [size_key(name) for name in names]
    rows = yield BoundStatement(_known(len(keys)), {f"name_{index}": key for index, key in enumerate(keys)})
    known = {named: key for named, key in rows if named != key} | {key: key for named, key in rows if named == key}
    for name, key in zip(names, keys, strict=True):
        if key not in known:
            around: dict[str, str] = dict((yield BoundStatement(_around(), {"key": key})))
            raise NotFound("size", name, suggestions=tuple(around[near] for near in starting_with(key, around, 2)))
    return tuple(known[key] for key in keys)


@lru_cache(maxsize=16)
def _known(count: int) -> Statement:
    """Each name that is known, and the key of its size."""
    asked = [bindparam(f"name_{index}", type_=size.key.type) for index in range(count)]
    own = select(size.key.label("named"), size.key.label("key")).where(size.key.in_(asked))
    other = select(ALIAS.c.alias_key, ALIAS.c.size_key).where(ALIAS.c.alias_key.in_(asked))
    return Statement(select(union_all(own, other).subquery()), short=True)


@lru_cache(maxsize=1)
def _around() -> Statement:
    asked, most = bindparam("key", type_=size.key.type), literal_column(str(NEAREST_WINDOW), Integer)
    names = select(size.key, size.name).select_from(SIZE)
    after = names.where(size.key >= asked).order_by(size.key).limit(most).subquery()
    before = names.where(size.key < asked).order_by(size.key.desc()).limit(most).subquery()
    return Statement(select(union_all(select(after), select(before)).subquery()), short=True)
