"""Names that a client gives, brought to the keys of the catalog; what is not there is refused with the nearest."""

from collections.abc import Collection, Iterable, Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.catalog.models import Gpu, Region, Series, Size, SizeAlias
from app.catalog.names import series_key, size_key
from app.catalog.tables import table_of
from app.errors import BadQuestion, NotFound
from app.nearest import beginning, did_you_mean, nearest, slips

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
    raise NotFound("size", name, nearest=tuple(names[near] for near in beginning(key, names, 2)))


def series_titles(session: Session) -> dict[str, str]:
    """The id of each series by its key, and by those of its name and other titles."""
    return {
        series_key(name): row.id
        for row in session.execute(select(_series.id, _series.name, _series.aliases))
        for name in (*(row.aliases or "").split("; "), row.name, row.id)
        if name
    }


def series_ids(titles: Mapping[str, str], names: Iterable[str]) -> tuple[str, ...]:
    """The ids of series by id, name or another title of theirs; raises NotFound for a name that none has."""
    found = []
    for name in names:
        if series_key(name) not in titles:
            near = beginning(series_key(name), titles, 2)
            raise NotFound("series", name, nearest=tuple(titles[key] for key in near))
        found.append(titles[series_key(name)])
    return tuple(found)


def region_codes(session: Session) -> frozenset[str]:
    """The codes of all regions."""
    return frozenset(session.execute(select(_region.code)).scalars())


def check_regions(known: Collection[str], field: str, codes: Iterable[str]) -> None:
    """Refuse a region that the catalog does not know; raises BadQuestion naming the nearest."""
    for code in codes:
        if code not in known:
            hint = did_you_mean(slips(code, known), " ")
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
            return series_ids(series_titles(session), [name])[0]
        except NotFound:
            raise BadQuestion("subject", name, f"no size, series or GPU has this name. {no_size}") from None


def check_field(name: str, known: Collection[str]) -> None:
    """Refuse a field that nothing has; raises BadQuestion naming the nearest."""
    if name not in known:
        hint = did_you_mean(nearest(name, known))
        raise BadQuestion("field", name, f"no such field{hint and f'; {hint}'}")
