"""From a row of a page to the JSON text that is shown: the size's document, its standing, its offer's document."""

from collections.abc import Sequence

import orjson

from app.catalog.offer_docs import NO_OFFER_DOC, SHOWN
from app.db.statements import Row

TAIL = ("status", *SHOWN)
"""What is shown of a size after its document, in this order: its standing, and its offer."""

RENDERED = 3
"""So many values of a row are written; behind them a page has the keys of its order."""


def render_size(row: Row) -> str:
    """Write a size: `row` begins with its document, its standing and the document of its offer, None for no offer."""
    doc, status, offer = row[:RENDERED]
    return f'{doc[:-1]},"status":"{status}",{(offer or NO_OFFER_DOC)[1:]}'


def render_page(items: Sequence[str], next_cursor: str | None, total: int) -> str:
    """Write a page of items that are JSON texts already."""
    return f'{{"items":[{",".join(items)}],"next_cursor":{orjson.dumps(next_cursor).decode()},"total":{total}}}'
