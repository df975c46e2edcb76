"""What a search means by words without an option: GPUs by any of their names, how many of them, or any text."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from sqlalchemy.orm import Session

from app.catalog.ask.gpus import find_gpu
from app.catalog.models import Gpu
from app.catalog.tables import table_of
from app.cli.amounts import gpu_and_count
from app.db.statements import answer
from app.errors import BadQuestion, NotFound


def understood(session: Session, words: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Add to the options what the words say; raises BadQuestion for `X:8` where X is no GPU, or two numbers differ."""
    asked = dict(given)
    parts = [gpu_and_count(word) for word in words]
    phrase = [gpu_and_count(" ".join(words))] if len(words) > 1 else []
    if phrase and _gpu(session, phrase[0][0]) is not None:
        parts = phrase
    for word, count in parts:
        gpu = _gpu(session, word, must=count is not None)
        if gpu is not None:
            asked["gpu"] = [*(asked["gpu"] or []), gpu]
        else:
            asked["q"] = " ".join(filter(None, (asked["q"], word)))
        _count(asked, word, count)
    return asked


def _count(asked: dict[str, Any], word: str, count: str | None) -> None:
    if count is None:
        return
    for bound in ("min_gpus", "max_gpus"):
        if asked[bound] not in (None, count):
            raise BadQuestion("GPU", f"{word}:{count}", f"says {count} GPUs, and {asked[bound]} are asked for besides")
        asked[bound] = count


def _gpu(session: Session, word: str, *, must: bool = False) -> str | None:
    """What the filter of GPUs takes for a name: a family, a model or a glob as it is, another name as the GPU's id."""
    columns = table_of(Gpu).c
    rows = session.execute(table_of(Gpu).select().with_only_columns(columns.id, columns.model, columns.family))
    if any(fnmatchcase(called.lower(), word.lower()) for row in rows for called in row):
        return word
    try:
        return str(answer(session, find_gpu(word))["id"])
    except NotFound as unknown:
        if not must:
            return None
        raise BadQuestion("GPU", word, f"{unknown} `vmsizes export gpus` lists them.") from None
