"""Names of sizes brought to their keys without waiting: several by one statement, the nearest for one that is none."""

from collections.abc import Sequence
from functools import lru_cache

from sqlalchemy import Integer, bindparam, literal_column, select, union_all

from app.catalog.models import SizeAlias
from app.catalog.names import size_key
from app.catalog.queries.price_scope import SIZE, size
from app.catalog.tables import table_of
from app.db.statements import Ask, Question, Statement
from app.errors import NotFound
from app.nearest import beginning

ALIAS = table_of(SizeAlias)
AROUND = 500
"""The nearest of an unknown name is looked for among so many before it in the alphabet, and as many after it."""


def find_keys(names: Sequence[str]) -> Question[tuple[str, ...]]:
    """The key of each size by a name or an alias, in any case, with or without `Standard_`; raises NotFound."""
    keys = [size_key(name) for name in names]
    rows = yield Ask(_known(len(keys)), {f"name_{index}": key for index, key in enumerate(keys)})
    known = {named: key for named, key in rows if named != key} | {key: key for named, key in rows if named == key}
    for name, key in zip(names, keys, strict=True):
        if key not in known:
            around: dict[str, str] = dict((yield Ask(_around(), {"key": key})))
            raise NotFound("size", name, nearest=tuple(around[near] for near in beginning(key, around, 2)))
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
    asked, most = bindparam("key", type_=size.key.type), literal_column(str(AROUND), Integer)
    names = select(size.key, size.name).select_from(SIZE)
    after = names.where(size.key >= asked).order_by(size.key).limit(most).subquery()
    before = names.where(size.key < asked).order_by(size.key.desc()).limit(most).subquery()
    return Statement(select(union_all(select(after), select(before)).subquery()), short=True)
