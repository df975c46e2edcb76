"""Reads CSV files of adjustments: discounts and fixed prices by which the reader's prices differ from list prices."""

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from app.catalog.adjustment_rules import AdjustmentRule
from app.catalog.adjustments import BASIS_POINTS
from app.catalog.column_types import to_nano_usd
from app.catalog.names import region_key, size_key
from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.readings import AdjustmentRow, Reading, SourceRow
from app.catalog.store.prices import OPERATING_SYSTEMS
from app.ingest.csv_files import CsvRow, read_rows
from app.ingest.sources.claims import own_source

COLUMNS = ("name",)
OPTIONAL = ("size", "region", "os", "purchase", "discount_percent", "usd_per_hour", "valid_from", "valid_until")

MAX_NAME_LENGTH = 100
MAX_MARKUP = 10
"""The most that all markups of a file together may multiply a price by."""

_PERCENT = re.compile(r"-?[0-9]{1,3}(\.[0-9]{1,2})?")


def read_adjustments(path: Path, _sources: Mapping[str, SourceRow]) -> Reading:
    """Read the rules of a file, which is their source: `adjustments-contoso` for `contoso.csv`.

    Raises BadData for a rule that is not valid, and for a name that is used twice.
    """
    source = own_source(path, "adjustments", "Adjustments of prices")
    rows: list[AdjustmentRow] = []
    markup = Decimal(1)
    for row in read_rows(path, COLUMNS, optional=OPTIONAL):
        rule = to_rule(row)
        if any(rule.name == other.rule.name for other in rows):
            raise row.error("name", "is the name of an earlier rule")
        markup *= max(Decimal(1), 1 - Decimal(rule.discount_basis_points or 0) / BASIS_POINTS)
        if markup > MAX_MARKUP:
            raise row.error("discount_percent", f"with it all markups make a price more than {MAX_MARKUP} times higher")
        rows.append(AdjustmentRow(rule=rule, position=len(rows) + 1, source=source.id, file=row.file, line=row.line))
    return Reading(sources=(source,), adjustments=tuple(rows))


def to_rule(row: CsvRow) -> AdjustmentRule:
    """Map one row; a blank cell of what the rule is for means any."""
    cells = {name: row.cells.get(name, "") for name in OPTIONAL}
    discount, fixed = cells["discount_percent"], cells["usd_per_hour"]
    if bool(discount) == bool(fixed):
        raise row.error("discount_percent", "a rule needs either a discount_percent or a usd_per_hour")
    name = row.text("name")
    if len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise row.error("name", f"must have at most {MAX_NAME_LENGTH} characters, all of them printable")
    valid_from, valid_until = (row.optional_date(day) if cells[day] else None for day in ("valid_from", "valid_until"))
    if valid_from and valid_until and valid_until < valid_from:
        raise row.error("valid_until", f"must not be before valid_from, {valid_from}")
    return AdjustmentRule(
        name=name,
        size=size_key(cells["size"]) if cells["size"] else None,
        region=region_key(cells["region"]) if cells["region"] else None,
        os=row.choice("os", OPERATING_SYSTEMS) if cells["os"] else None,
        purchase=row.choice("purchase", PURCHASE_MODELS) if cells["purchase"] else None,
        discount_basis_points=_basis_points(row) if discount else None,
        nano_usd_per_hour=to_nano_usd(row.usd("usd_per_hour")) if fixed else None,
        valid_from=valid_from,
        valid_until=valid_until,
    )


def _basis_points(row: CsvRow) -> int:
    """Return a discount in hundredths of a percent; a negative one is a markup."""
    cell = row.cells["discount_percent"]
    if not _PERCENT.fullmatch(cell) or not -100 <= Decimal(cell) < 100 or not Decimal(cell):  # noqa: PLR2004
        detail = (
            "must be a percentage from -100 to below 100, not 0, with at most 2 decimals: 12.5; negative is a markup"
        )
        raise row.error("discount_percent", detail)
    return int(Decimal(cell) * 100)
