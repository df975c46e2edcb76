"""The whole list of the search page as files, with its columns, currency and unit.

CSV, JSON, and text with tabs, which spreadsheets take from the clipboard.
"""

import re
from decimal import Decimal
from functools import partial
from typing import Any

import orjson

from app.catalog.fields import FieldKind, is_inapplicable
from app.catalog.price_notes import price_note
from app.catalog.providers import PROVIDERS
from app.catalog.queries.snapshot import Catalog
from app.formats.text import Csv, escape_cell
from app.http.canonical import clean_query
from app.web.rendering import format_amount
from app.web.serving import PageContent, PageRequest
from app.web.sizes_view import COLUMNS, Column, Price, SizesView, amount_of, find_columns, find_items

_BLOCK = 500
_MAX_NAME = 80
_NAME = "Size"
_NUMBERS = {Decimal, int, float, type(None)}


def _find_rows(catalog: Catalog, view: SizesView) -> tuple[list[str], list[list[Any]]]:
    """Return the headings and the rows of a list; figures are numbers in the units of the page.

    The last column has notes on prices, if there are any.
    """
    columns = [COLUMNS[name] for name in find_columns(catalog, view)]
    rows: list[list[Any]] = []
    notes: list[str | None] = []
    offset = 0
    while True:
        page, items = find_items(catalog, view, offset=offset, limit=_BLOCK)
        price = partial(view.shown_price, rate=page.exchange_rate)
        rows += [[item["name"], *(_cell(item, column, price) for column in columns)] for item in items]
        notes += [_note(item, price) for item in items]
        offset += _BLOCK
        if offset >= page.total:
            break
    headings = [_NAME, *(_heading(column, view) for column in columns)]
    if any(notes) and any(column.kind == "price" for column in columns):
        return [*headings, "Price note"], [[*row, note] for row, note in zip(rows, notes, strict=True)]
    return headings, rows


def _note(item: dict[str, Any], price: Price) -> str | None:
    """Return the note beside a price: computed, unusual or disputed."""
    return price_note(item, "price_", lambda usd: format_amount(price({**item, "usd_per_hour": usd})))


def _heading(column: Column, view: SizesView) -> str:
    if column.kind in {"price", "money"}:
        return f"{column.title} ({view.price_title()})"
    unit = "days" if column.kind == "age" else column.unit
    return f"{column.title} ({unit})" if unit else column.title


def _cell(item: dict[str, Any], column: Column, price: Price) -> Any:
    if column.kind == "gpu_count" and item["gpu_fraction"]:
        return item["gpu_fraction"]
    value = amount_of(item, column, price)
    if value is None and column.field == "gpu_model" and is_inapplicable(column.field, item):
        return "none"
    if column.kind == "cloud":
        return PROVIDERS[value].name
    if column.kind == "gbps" and value is not None:
        value /= 1000
    if isinstance(value, Decimal):
        return Decimal(f"{value:.9f}").normalize()  # prices of the API have nine decimal places, too
    return value


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:f}" if isinstance(value, Decimal) else None if value is None else str(value)


async def render_csv(request: PageRequest) -> str:
    """Render the list as CSV."""
    headings, rows = await request.executor.ask(_find_rows, request.params)
    columns = [[row[place] for row in rows] for place in range(len(headings))]
    kinds: dict[str, FieldKind] = {
        heading: "number" if all(type(value) in _NUMBERS for value in column) else "text"
        for heading, column in zip(headings, columns, strict=True)
    }
    csv = Csv(kinds)
    return (csv.head + csv.write([[_text(value) for value in column] for column in columns])).decode()


async def render_tsv(request: PageRequest) -> str:
    """Render the list as lines with tabs."""
    headings, rows = await request.executor.ask(_find_rows, request.params)
    cells = [headings, *([escape_cell(_text(value) or "") for value in row] for row in rows)]
    return "\n".join("\t".join(re.sub(r"\s", " ", text) for text in line) for line in cells)


async def render_json(request: PageRequest) -> str:
    """Render the list as JSON: an object for each size."""
    headings, rows = await request.executor.ask(_find_rows, request.params)
    return orjson.dumps([dict(zip(headings, row, strict=True)) for row in rows], default=float).decode()


def _file_name(suffix: str, request: PageRequest) -> str:
    """Return the name of a file, with the filters and the day: `sizes-gpu-h100-2026-09-01.csv`."""
    filters = re.sub(r"[^a-z0-9]+", "-", clean_query(request.params).lower()).strip("-")[:_MAX_NAME]
    return "-".join(filter(None, ("sizes", filters, f"{request.executor.today()}.{suffix}")))


CSV = PageContent(params=SizesView, render=render_csv, file_name=partial(_file_name, "csv"), media_type="text/csv")
TSV = PageContent(params=SizesView, render=render_tsv, media_type="text/tab-separated-values")
JSON = PageContent(
    params=SizesView, render=render_json, file_name=partial(_file_name, "json"), media_type="application/json"
)
