"""Statements on the catalog: SQL as text, whose days, flags, times and JSON become Python's by the names of columns."""

from collections.abc import Callable, Mapping
from typing import Concatenate, ParamSpec

from app.catalog.fields import GPU_FIELDS, SERIES_FIELDS, SIZE_FIELDS
from app.catalog.purchases import PURCHASE_MODELS
from app.db import statements
from app.db.dialects import Dialect
from app.db.statements import ColumnKind

P = ParamSpec("P")

_DAYS = (
    *(
        "as_of",
        "day",
        "ends_on",
        "known_from",
        "listed_until",
        "published_on",
        "reserved_1y_until",
        "reserved_3y_until",
    ),
    *("seen_until", "since", "source_published_on", "until", "valid_from", "valid_until"),
)
_FLAGS = (
    *("approximate_date", "attention_sinks", "disputed", "embedding_norm", "lm_head_bias", "local_nvme", "mlp_bias"),
    *("norm_bias", "output_bias", "pinned", "qkv_bias", "retail", "router_bias", "tied_embeddings", "verified"),
)
_TIMES = (
    *("claimed_until", "created_at", "delivered_at", "disabled_at", "ended_at", "expires_at", "failing_since"),
    *("last_attempt_at", "next_attempt_at", "observed_at", "succeeded_at"),
)
_FIELD_KINDS: Mapping[str, ColumnKind] = {"date": "day", "boolean": "flag"}

COLUMN_KINDS: Mapping[str, ColumnKind] = {
    **{
        name: _FIELD_KINDS[field.kind]
        for fields in (SIZE_FIELDS, SERIES_FIELDS, GPU_FIELDS)
        for name, field in fields.items()
        if field.kind in _FIELD_KINDS
    },
    **dict.fromkeys((*_DAYS, *(f"{model}_as_of" for model in PURCHASE_MODELS)), "day"),
    **dict.fromkeys((*_FLAGS, *(f"{model}_approximate_date" for model in PURCHASE_MODELS)), "flag"),
    **dict.fromkeys((f"{model}_{mark}" for model in PURCHASE_MODELS for mark in ("disputed", "unusual")), "flag"),
    **dict.fromkeys(_TIMES, "time"),
    **dict.fromkeys(("counts", "filters", "keys", "source_ids"), "json"),
    "units_per_euro": "usd",
}
"""The kinds of columns of all tables, and of what statements call the same."""


def exact(*names: str) -> Mapping[str, ColumnKind]:
    """Return the kinds of columns where some are exact amounts, which become Decimal."""
    return {**COLUMN_KINDS, **dict.fromkeys(names, "usd")}


DAYS: Mapping[str, ColumnKind] = {name: kind for name, kind in COLUMN_KINDS.items() if kind == "day"}
"""Of a statement whose flags stay as the driver returns them: 0 and 1 on SQLite."""

RAW: Mapping[str, ColumnKind] = {}
"""Of a statement whose values stay as the driver returns them: on SQLite flags are 0 and 1, and days ISO texts."""


class Statement(statements.Statement):
    """A statement on the catalog."""

    def __init__(
        self,
        sql: str | Callable[[Dialect], str],
        *,
        kinds: Mapping[str, ColumnKind] = COLUMN_KINDS,
        short: bool = False,
    ) -> None:
        super().__init__(sql, kinds=kinds, short=short)


def cached_statement(
    max_size: int, *, kinds: Mapping[str, ColumnKind] = COLUMN_KINDS, short: bool = False
) -> Callable[[Callable[Concatenate[Dialect, P], str]], Callable[P, statements.Statement]]:
    """Have a function that writes a query return its statement, see `app.db.statements.cached_statement`."""
    return statements.cached_statement(max_size, kinds=kinds, short=short)
