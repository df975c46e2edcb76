"""Names that a client gives, brought to the keys of the catalog; what is not there is refused with the nearest."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.catalog.models import Gpu, Region, Series, Size, SizeAlias
from app.catalog.names import series_key, size_key
from app.catalog.tables import table_of
from app.errors import BadQuestion, NotFound

_size, _alias = table_of(Size).c, table_of(SizeAlias).c
_series, _region = table_of(Series).c, table_of(Region).c


def size_key_of(session: Session, name: str) -> str:
    """The key of the size that a name or an alias means, in any case, with or without `Standard_`."""
    key = size_key(name)
    if session.execute(select(_size.key).where(_size.key == key)).first():
        return key
    alias = session.execute(select(_alias.size_key).where(_alias.alias_key == key)).scalar_one_or_none()
    if alias is not None:
        return str(alias)
    names = {row.key: row.name for row in session.execute(select(_size.key, _size.name))}
    nearest = tuple(names[near] for near in get_close_matches(key, names, 2))
    raise NotFound("size", name, nearest=nearest)


def series_ids(session: Session, names: Iterable[str]) -> tuple[str, ...]:
    """The ids of series by id, name or another title of theirs; raises NotFound for a name that none has."""
    known = {
        series_key(name): row.id
        for row in session.execute(select(_series.id, _series.name, _series.aliases))
        for name in (*(row.aliases or "").split("; "), row.name, row.id)
        if name
    }
    found = []
    for name in names:
        if series_key(name) not in known:
            near = get_close_matches(series_key(name), known, 2)
            raise NotFound("series", name, nearest=tuple(known[key] for key in near))
        found.append(known[series_key(name)])
    return tuple(found)


def check_regions(session: Session, field: str, codes: Iterable[str]) -> None:
    """Refuse a region that the catalog does not know; raises BadQuestion naming the nearest."""
    asked = set(codes)
    known = set(session.execute(select(_region.code)).scalars()) if asked else asked
    for code in sorted(asked):
        if code not in known:
            near = get_close_matches(code, known, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise BadQuestion(field, code, f"no such region; {hint}GET /regions lists them")


def subject_key(session: Session, name: str) -> str:
    """The key of whatever a fact can be about: a size by any of its names, a series, a GPU; raises BadQuestion."""
    gpu = table_of(Gpu).c.id
    if session.execute(select(gpu).where(gpu == name.lower())).first():
        return name.lower()
    try:
        return size_key_of(session, name)
    except NotFound as no_size:
        try:
            return series_ids(session, [name])[0]
        except NotFound:
            raise BadQuestion("subject", name, f"no size, series or GPU has this name. {no_size}") from None


def check_field(name: str, known: Collection[str]) -> None:
    """Refuse a field that nothing has; raises BadQuestion naming the nearest."""
    if name not in known:
        near = get_close_matches(name, known, 1)
        raise BadQuestion("field", name, f"no such field{f'; did you mean {near[0]}?' if near else ''}")
