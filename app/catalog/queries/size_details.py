"""Sheets: whole sizes by their keys, as a list shows them, each with the figures of its GPU."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlalchemy import and_, bindparam, select

from app.catalog.fields import GPU_FIELDS
from app.catalog.queries.params import OfferScope
from app.catalog.queries.price_scope import GPU, SIZE, Ground, Place, gpu, region_values, size, standing
from app.catalog.queries.sizes import DOC, render_size
from app.db.statements import Ask, Question, Statement, by_shape

GPU_FIGURES = tuple(
    name
    for name, field in GPU_FIELDS.items()
    if field.unit in ("TFLOPS", "TOPS") or name == "memory_bandwidth_gb_per_s"
)
"""What one whole GPU does: dense throughput, and the bandwidth of its memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A size: its row as a list shows it (fractional numbers are Decimal), its exact GPUs, the figures of one GPU."""

    row: Mapping[str, Any]
    gpus: Fraction | None
    gpu: Mapping[str, float | None]


def find_sheets(keys: Sequence[str], scope: OfferScope, today: date) -> Question[tuple[Sheet, ...]]:
    """Find the sizes of keys that are known, in the order of the keys; prices are null where there is no offer."""
    values = {f"key_{index}": key for index, key in enumerate(keys)}
    values |= {"today": today.isoformat(), **region_values(scope)}
    rows = yield Ask(_statement(Place.of(scope), len(keys)), values)
    found = {key: row for key, *row in rows}
    return tuple(_sheet(found[key], today) for key in keys)


def _sheet(row: Sequence[Any], today: date) -> Sheet:
    doc, status, offer, numerator, denominator, *figures = row
    return Sheet(
        row=json.loads(render_size((doc, status, offer), today), parse_float=Decimal),
        gpus=Fraction(numerator, denominator) if denominator else None,
        gpu=dict(zip(GPU_FIGURES, figures, strict=True)),
    )


@by_shape(32)
def _statement(place: Place, count: int) -> Statement:
    asked = [bindparam(f"key_{index}", type_=size.key.type) for index in range(count)]
    ground = Ground.among(place, select(size.key).where(size.key.in_(asked)))
    columns = [
        *(size.key, DOC.c.doc, standing(size).label("status"), ground.offer.doc.label("offer")),
        *(size.gpu_count_numerator, size.gpu_count_denominator, *(gpu[name] for name in GPU_FIGURES)),
    ]
    query = (
        select(*columns)
        .join_from(SIZE, DOC, DOC.c.size_key == size.key)
        .join(ground.offers, and_(ground.key == size.key, ground.held), isouter=True)
        .join(GPU, gpu.id == size.gpu_id, isouter=True)
        .where(size.key.in_(asked))
    )
    return Statement(query, short=True)
