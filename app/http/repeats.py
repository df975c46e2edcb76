"""Keys that stand twice in an object of a body: JSON leaves open which value counts, so neither does."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from fastapi.exceptions import RequestValidationError

from app.validation import MOST_ERRORS


class _Object(dict[str, Any]):
    """An object of JSON that remembers which keys it was given more than once."""

    repeated: tuple[str, ...] = ()


def refuse_repeated_keys(body: bytes) -> None:
    """Raise RequestValidationError for keys that an object has twice; what cannot be read is left to others."""
    found: list[_Object] = []

    def made(pairs: list[tuple[str, Any]]) -> _Object:
        made = _Object(pairs)
        if len(made) < len(pairs):
            times = Counter(name for name, _ in pairs)
            made.repeated = tuple(name for name in made if times[name] > 1)
            found.append(made)
        return made

    try:
        whole = json.loads(body, object_pairs_hook=made)
    except (ValueError, RecursionError):
        return
    if found:
        said = "the key is given more than once"
        places = [place for place, _ in zip(_places(whole, ("body",)), range(MOST_ERRORS), strict=False)]
        raise RequestValidationError([{"type": "repeated", "loc": place, "msg": said} for place in places])


def _places(value: Any, here: tuple[int | str, ...]) -> Iterator[tuple[int | str, ...]]:
    if isinstance(value, _Object):
        yield from ((*here, name) for name in value.repeated)
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in inner:
        yield from _places(part, (*here, step))
