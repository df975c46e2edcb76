"""The statement of sizes that are chosen already, each with its offer in a region: a page that was found on columns."""

from collections.abc import Sequence
from functools import partial

import orjson

from app.catalog.queries.price_scope import OFFER, PriceScope, PriceScopeKey, matches_offer, status_of
from app.db.fragments import Fragment, JoinedStatement, StatementText, select_text
from app.db.statements import CompiledStatement, Statement, cached_statement

_CHOSEN = {
    "sqlite": "SELECT json_extract(value, '$[0]') AS size_key, json_extract(value, '$[1]') AS region, key AS place"
    " FROM json_each(:chosen)",
    "postgresql": "SELECT value ->> 0 AS size_key, value ->> 1 AS region, place"
    " FROM json_array_elements(CAST(%(chosen)s AS json)) WITH ORDINALITY AS chosen (value, place)",
}
"""The pairs of the parameter `chosen` as rows."""
_NEWEST = "SELECT number, digest FROM revision ORDER BY number DESC LIMIT 1"


@cached_statement(16)
def chosen_statement(os: str, purchase: str) -> Statement:
    """Build the statement of the sizes and offers of `chosen_parameter`, in its order.

    Its rows are those of a page, each with the number and the digest of the revision that they are of: to ask for it by
    another statement takes PostgreSQL another round trip.
    """
    return JoinedStatement(("doc", "status", "offer", "number", "digest"), partial(_join, os, purchase), short=True)


def chosen_parameter(chosen: Sequence[tuple[str, str]]) -> str:
    """Return pairs of a size's key and a region for the parameter `chosen`."""
    return orjson.dumps(chosen).decode()


def _join(os: str, purchase: str, kind: str) -> CompiledStatement:
    scope = PriceScope.of_key(PriceScopeKey(os=os, purchase=purchase, regions=1))
    text = StatementText(kind)
    parts = (status_of(scope.offer), scope.json_of(scope.offer), matches_offer(scope.offer, scope))
    status, offer, of_os = (text.sql(Fragment(part, OFFER)) for part in parts)
    sql = select_text(
        ["size_doc.doc", f"{status} AS status", f"{offer} AS offer", "newest.number", "newest.digest"],
        "newest CROSS JOIN chosen CROSS JOIN offer JOIN size_doc ON size_doc.size_key = chosen.size_key",
        where=["offer.region = chosen.region", of_os, "offer.size_key = chosen.size_key"],
        order=["chosen.place"],
    )
    return text.compiled(sql, first=f"newest AS ({_NEWEST}), chosen AS ({_CHOSEN[kind]})")
