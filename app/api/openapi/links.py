"""Where an answer leads: what of it is the name in another question, for people, clients and fuzzers that walk on."""

from collections.abc import Mapping
from typing import Any

_TAKES = {
    **dict.fromkeys(("showSize", "listSizeFacts", "listSizePrices", "listSimilarSizes"), "name"),
    "showSeries": "series_id",
    "showModel": "model_id",
}
"""What an operation calls the name in its path."""
_OF_SIZE = ("showSize", "listSizeFacts", "listSizePrices", "listSimilarSizes")

LINKS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "listSizes": ("/items/0/name", _OF_SIZE),
    "listSimilarSizes": ("/items/0/size", _OF_SIZE),
    "fitResources": ("/items/0/size", _OF_SIZE),
    "fitWorkload": ("/items/0/size", _OF_SIZE),
    "listSeries": ("/items/0/id", ("showSeries",)),
    "showSeries": ("/sizes/0", _OF_SIZE),
    "listModels": ("/items/0/id", ("showModel",)),
}
"""The place of a name in an operation's answer, and the operations that take it in their path."""


def to_links(operation: str) -> dict[str, Any]:
    """The links of an operation's answer."""
    place, targets = LINKS.get(operation, ("", ()))
    return {
        target: {
            "operationId": target,
            "parameters": {_TAKES[target]: f"$response.body#{place}"},
            "description": f"{target} takes the first name of the answer.",
        }
        for target in targets
    }
