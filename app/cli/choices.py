"""What an option can be given: listed in the help, completed by the shell."""

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer

MOST_IN_A_NAME = 6
"""So many words stand in the place of the value (`--os linux|windows`); more of them are listed in the text."""


def words_of(annotation: Any) -> tuple[str, ...]:
    """The words that a type takes, where it takes but a few."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return tuple(map(str, arguments))
    if origin in (Annotated, tuple):
        return words_of(arguments[0])
    if origin in (Union, types.UnionType):
        return next((words for words in map(words_of, arguments) if words), ())
    return ()


def sort_keys() -> tuple[str, ...]:
    """What sizes are sorted by."""
    from app.catalog.queries.params import SORT_KEYS

    return SORT_KEYS


def dtypes() -> tuple[str, ...]:
    """Types of weights."""
    from app.fit.formulas.memory import BITS

    return tuple(BITS)


def recipes() -> tuple[str, ...]:
    """Recipes of training."""
    from app.fit.formulas.optimizer import RECIPES

    return tuple(RECIPES)


def _column_of_the_catalog(table: str, column: str) -> Callable[[], Sequence[str]]:
    def read() -> Sequence[str]:
        from sqlalchemy import select
        from sqlalchemy.exc import SQLAlchemyError

        from app.catalog import models
        from app.catalog.column_types import table_of
        from app.db.engines import make_engine, reading
        from app.settings import Settings

        of = table_of(getattr(models, table)).c[column]
        try:
            with reading(make_engine(Settings().database_url, pooled=False)) as session:
                return tuple(session.execute(select(of).order_by(of)).scalars())
        except (SQLAlchemyError, ImportError, ValueError):  # nobody waits for a message while completing a word
            return ()

    return read


sizes = _column_of_the_catalog("Size", "name")
models = _column_of_the_catalog("Model", "id")
gpus = _column_of_the_catalog("Gpu", "id")
regions = _column_of_the_catalog("Region", "code")
series = _column_of_the_catalog("Series", "id")

LISTED: Mapping[str, Callable[[], Sequence[str]]] = {
    "dtype": dtypes,
    "kv_dtype": dtypes,
    "recipe": recipes,
}
"""Words of options whose type does not say them, by the name of the option."""

COMPLETED: Mapping[str, Callable[[], Sequence[str]]] = {
    "region": regions,
    "available_in": regions,
    "gpu": gpus,
    "series": series,
    "model": models,
    "name": sizes,
    "baseline": sizes,
    "subject": sizes,
    "size": sizes,
}
"""What the catalog has, by the name of the option."""


def _forms(word: str) -> Iterator[str]:
    """How a word may be written: a shell only takes what goes on as it was begun."""
    short = word.removeprefix("Standard_")
    yield from (word, word.lower(), short, short.lower(), f"-{word}")


def completing(words: Callable[[], Iterable[str]], *, several: bool = False) -> Callable[[str], list[str]]:
    """Complete a word as it was begun; of several values, with commas between them, the last one."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        forms = (next((form for form in _forms(word) if form.startswith(last)), None) for word in words())
        return [f"{before}{comma}{form}" for form in forms if form is not None]

    return complete


SIZE = typer.Argument(help="The size, in any case, with or without `Standard_`.", autocompletion=completing(sizes))
"""The argument that is a size."""
