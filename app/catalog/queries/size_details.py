"""Read whole sizes by their keys, each as a list shows it and with the figures of its GPU."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlalchemy import select

from app.catalog.fields import GPU_FIELDS
from app.catalog.queries.params import OfferParams
from app.catalog.queries.price_scope import (
    GPU,
    KEYS,
    SIZE,
    PriceScope,
    PriceScopeKey,
    gpu,
    key_parameters,
    price_parameters,
    size,
    status_of,
)
from app.catalog.queries.size_statements import SIZE_JSON
from app.catalog.queries.sizes import render_size
from app.catalog.queries.snapshot import Catalog
from app.db.functions import is_listed
from app.db.statements import BoundStatement, Statement, cached_statement

GPU_FIGURES = tuple(
    name
    for name, field in GPU_FIELDS.items()
    if field.unit in ("TFLOPS", "TOPS") or name == "memory_bandwidth_gb_per_s"
)
"""Figures of one whole GPU: dense throughput, and the bandwidth of its memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeDetails:
    """A size: its row as a list shows it (fractional numbers are Decimal), its exact GPUs, the figures of one GPU."""

    row: Mapping[str, Any]
    gpus: Fraction | None
    gpu: Mapping[str, float | None]


def find_size_details(catalog: Catalog, keys: Sequence[str], params: OfferParams) -> tuple[SizeDetails, ...]:
    """Find sizes by keys that exist, in the order of the keys; prices are null where there is no offer."""
    values = key_parameters(keys) | price_parameters(params, catalog.today)
    statement = _statement(PriceScopeKey.of(params, catalog.snapshot.rules))
    rows = catalog.fetch(BoundStatement(statement, values))
    row_of = {key: row for key, *row in rows}
    return tuple(_to_size_details(row_of[key], catalog.today) for key in keys)


def _to_size_details(row: Sequence[Any], today: date) -> SizeDetails:
    size_json, status, offer, numerator, denominator, *figures = row
    return SizeDetails(
        row=json.loads(render_size((size_json, status, offer), today), parse_float=Decimal),
        gpus=Fraction(numerator, denominator) if denominator else None,
        gpu=dict(zip(GPU_FIGURES, figures, strict=True)),
    )


@cached_statement(32)
def _statement(key: PriceScopeKey) -> Statement:
    scope = PriceScope.for_keys(key)
    columns = [
        *(size.key, SIZE_JSON.c.doc, status_of(size).label("status"), scope.json_of(scope.offer).label("offer")),
        *(size.gpu_count_numerator, size.gpu_count_denominator, *(gpu[name] for name in GPU_FIGURES)),
    ]
    sizes = select(*columns).join_from(SIZE, SIZE_JSON, SIZE_JSON.c.size_key == size.key)
    query = scope.join_to_sizes(sizes).join(GPU, gpu.id == size.gpu_id, isouter=True)
    return Statement(query.where(is_listed(size.key, KEYS)), short=True)
