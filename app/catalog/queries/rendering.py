"""From a row of a page to the JSON text that is shown: the size's document, its standing, its offer's document."""

from collections.abc import Sequence
from datetime import date
from functools import lru_cache

import orjson

from app.catalog.offer_docs import NO_OFFER_DOC, OFFER_JSON_FIELDS
from app.db.statements import Row

TAIL = ("status", *OFFER_JSON_FIELDS, "price_age_days")
"""What is shown of a size after its document, in this order: its standing, its offer, how old the price is."""

RENDERED = 3
"""So many values of a row are written; behind them a page has the keys of its order."""


def render_size(row: Row, today: date) -> str:
    """Write a size: `row` begins with its document, its standing and the document of its offer, None for no offer.

    The document of an offer ends with the day from which its price is known.
    """
    doc, status, offer = row[:RENDERED]
    offer = offer or NO_OFFER_DOC
    age = age_days(offer[-12:-2], today) if offer[-2] == '"' else "null"
    return f'{doc[:-1]},"status":"{status}",{offer[1:-1]},"price_age_days":{age}}}'


@lru_cache(maxsize=4096)
def age_days(day: str, today: date) -> int:
    """How many days have passed since a day; there are as many days as price lists."""
    return (today - date.fromisoformat(day)).days


def render_page(items: Sequence[str], next_cursor: str | None, total: int) -> str:
    """Write a page of items that are JSON texts already."""
    return f'{{"items":[{",".join(items)}],"next_cursor":{orjson.dumps(next_cursor).decode()},"total":{total}}}'
