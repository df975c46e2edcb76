"""The document of an offer: what is shown of it, as JSON text that the database itself writes at ingest."""

import json
from collections.abc import Mapping
from functools import reduce
from operator import add
from typing import Any

from sqlalchemy import Boolean, ColumnElement, Double, String, case, cast, literal

from app.catalog.projections import PRICES, RATIOS
from app.db.functions import json_text

OFFER_JSON_FIELDS = ("region", "usd_per_hour", *RATIOS, *PRICES, "price_as_of")
"""What a document holds, in this order; its last member is the day from which `usd_per_hour` is known."""

NO_OFFER_DOC = json.dumps(dict.fromkeys(OFFER_JSON_FIELDS), separators=(",", ":"))
"""The document where there is no offer: nothing is known."""


def offer_doc(offer: Mapping[str, ColumnElement[Any]], purchase: str) -> ColumnElement[str]:
    """Write an offer by one purchase model: its region, its prices in USD an hour with the days they are of."""
    told = {
        **offer,
        "region": offer["priced_in"],
        "usd_per_hour": offer[f"{purchase}_usd_per_hour"],
        "price_as_of": offer[f"{purchase}_as_of"],
    }
    opened = (f'{"," if place else "{"}"{name}":' for place, name in enumerate(OFFER_JSON_FIELDS))
    named = zip(opened, OFFER_JSON_FIELDS, strict=True)
    members = (literal(name, String) + _member(key, told[key]) for name, key in named)
    return reduce(add, members) + literal("}", String)


def _member(name: str, value: ColumnElement[Any]) -> ColumnElement[str]:
    """Write a value; SQLite has no truths, but numbers for them."""
    if isinstance(value.type, Boolean):
        return case((value.is_(True), "true"), (value.is_(False), "false"), else_="null")
    return json_text(cast(value, Double) if name.endswith("_per_hour") else value)
