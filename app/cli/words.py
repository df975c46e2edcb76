"""What a search means by words without an option: GPUs by any of their names, how many of them, or any text."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.catalog.queries.gpu_filters import GpuNames, read_gpu_names, resolve_gpus
from app.cli.amounts import gpu_and_count
from app.errors import BadQuestion


def understood(session: Session, words: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Add to the options what the words say; raises BadQuestion for `X:8` where X is no GPU, or two numbers differ."""
    asked = dict(given)
    parts = [gpu_and_count(one) for word in words for one in word.split(",") if one.strip()]
    phrase = [gpu_and_count(" ".join(words))] if len(words) > 1 else []
    known = read_gpu_names(session)
    if phrase and _is_gpu(known, phrase[0][0]):
        parts = phrase
    for word, count in parts:
        if _is_gpu(known, word, must=count is not None):
            asked["gpu"] = [*(asked["gpu"] or []), word]
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


def _is_gpu(known: GpuNames, word: str, *, must: bool = False) -> bool:
    """Whether the filter of GPUs takes a word."""
    try:
        resolve_gpus(known, [word.lower()], "GPU")
    except BadQuestion:
        if must:
            raise
        return False
    return True
