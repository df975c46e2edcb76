"""GPU models by whatever they are called: `A100-80GB`, `H100 SXM`, `mi300x`."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import select

from app.catalog.models import Gpu
from app.catalog.presets import split_names
from app.catalog.tables import table_of
from app.db.statements import Ask, Question, Statement
from app.errors import NotFound
from app.nearest import slips

Row = Mapping[str, Any]


def find_gpu(name: str) -> Question[Row]:
    """Find a GPU model by its id, its name, an alias, or words that only it has; raises NotFound naming the nearest."""
    rows = yield Ask(_statement(), {})
    names = _statement().names
    return gpu_named([dict(zip(names, row, strict=True)) for row in rows], name)


@lru_cache(maxsize=1)
def _statement() -> Statement:
    table = table_of(Gpu)
    return Statement(select(*table.c).order_by(table.c.id), short=True)


def gpu_named(rows: Sequence[Row], name: str) -> Row:
    """Choose the one that a name means: called exactly so, else the only one that has all its words."""
    asked = _words(name)
    exactly = [row for row in rows if any(_words(called) == asked for called in _called(row))]
    found = exactly if len(exactly) == 1 else [row for row in rows if set(asked) <= all_words(row)]
    found = [] if all(word.isdigit() for word in asked) else found
    if len(found) == 1:
        return found[0]
    nearest = [row["id"] for row in found] or slips("-".join(asked), [row["id"] for row in rows], 2)
    raise NotFound("GPU", name, nearest=tuple(nearest))


def _called(row: Row) -> tuple[str, ...]:
    return (row["id"], row["model"], *split_names(row["aliases"]))


def all_words(row: Row) -> set[str]:
    """The words of all that a GPU is called, and of its memory."""
    memory = f"{row['memory_gib']:g}" if row["memory_gib"] is not None else ""
    return {memory, *(word for called in _called(row) for word in _words(called))}


def _words(name: str) -> tuple[str, ...]:
    """The words of a name, without the unit of its memory: `A100-80GB` is a100 and 80."""
    return tuple(re.sub(r"(?<=\d)gb$", "", word) for word in re.findall(r"[a-z0-9]+", name.lower()))
