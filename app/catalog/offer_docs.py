"""The document of an offer: what is shown of it, as JSON text that the database itself writes at ingest."""

import json
from collections.abc import Mapping
from functools import reduce
from operator import add
from typing import Any

from sqlalchemy import ColumnElement, Double, String, cast, func, literal, literal_column

from app.catalog.offers import PRICES
from app.db.json_text import json_text

SHOWN = ("region", "usd_per_hour", "usd_per_gpu_hour", "usd_per_gpu_gib_hour", *PRICES)
"""What a document holds, in this order."""

NO_OFFER_DOC = json.dumps(dict.fromkeys(SHOWN), separators=(",", ":"))
"""The document where there is no offer: nothing is known."""


def offer_doc(offer: Mapping[str, ColumnElement[Any]], purchase: str) -> ColumnElement[str]:
    """Write an offer by one purchase model: its region, its prices in USD an hour with the days they are of."""
    usd = cast(offer[f"{purchase}_usd_per_hour"], Double)
    made = {
        "region": offer["priced_in"],
        "usd_per_hour": usd,
        "usd_per_gpu_hour": usd_per(usd, offer["gpu_count"]),
        "usd_per_gpu_gib_hour": usd_per(usd, offer["gpu_memory_gib"]),
        **{name: cast(offer[name], Double) if name.endswith("_per_hour") else offer[name] for name in PRICES},
    }
    opened = (f'{"," if place else "{"}"{name}":' for place, name in enumerate(SHOWN))
    members = (literal(name, String) + json_text(made[key]) for name, key in zip(opened, SHOWN, strict=True))
    return reduce(add, members) + literal("}", String)


def usd_per(usd: ColumnElement[float], count: ColumnElement[float]) -> ColumnElement[float]:
    """The price for one of what a column counts, USD an hour, as a double; for zero of it unknown."""
    return usd / func.nullif(count, literal_column("0.0", Double), type_=Double)
