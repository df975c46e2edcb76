"""Shows amounts in the currency of `--currency` in the place of those in US dollars."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.catalog.price_notes import price_note
from app.cli.output import Column, print_text

USD = "USD"
_DECIMALS = 4


def in_currency(columns: Mapping[str, Column], currency: str | None, prefix: str = "price") -> dict[str, Column]:
    """Return columns with amounts in a currency: `price_per_hour`, headed EUR/h, for `usd_per_hour`, headed USD/h.

    `prefix` is what converted amounts are called: a price, or a cost.
    """
    if currency in (None, USD):
        return dict(columns)
    return {
        name.replace("usd_per", f"{prefix}_per"): replace(
            column, heading=column.heading.replace(USD, currency), format=column.format or format_amount
        )
        if USD in column.heading
        else column
        for name, column in columns.items()
    }


def format_amount(amount: float) -> str:
    """Format a converted amount for people."""
    return f"{amount:.{_DECIMALS}f}"


def flatten_converted(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its amounts in the currency as fields of its own; one without any stays as it is."""
    return {**{name: value for name, value in row.items() if name != "converted"}, **row.get("converted", {})}


LIST_PRICE_COLUMNS = {
    "list_usd_per_hour": Column(heading="list USD/h", rank=1),
    "adjustments": Column(heading="adjustments", rank=5, wraps=True),
}


def with_list_prices(
    rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Column], prefix: str = ""
) -> tuple[list[dict[str, Any]], dict[str, Column]]:
    """Return rows with list prices as fields of their own, and their columns, if rules changed the price of any row."""
    name = f"{prefix}adjustment"
    if not any(name in row for row in rows):
        return [dict(row) for row in rows], dict(columns)
    from app.converters.adjustments import flatten_adjustments  # loaded where there are rules: a search starts faster

    headings = {
        f"{prefix}{field}": replace(column, heading=f"{prefix.replace('_', ' ')}{column.heading}")
        for field, column in LIST_PRICE_COLUMNS.items()
    }
    return flatten_adjustments(rows, prefix), {**columns, **headings}


def with_price_notes(
    rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Column], prefix: str = ""
) -> tuple[list[dict[str, Any]], dict[str, Column]]:
    """Return rows with a word on prices that are unusual or disputed, and its column, if any row has such a price."""
    name = f"{prefix}note"
    noted = [dict(row) | {name: price_note(row, prefix)} for row in rows]
    if not any(row[name] for row in noted):
        return [dict(row) for row in rows], dict(columns)
    return noted, {**columns, name: Column(heading="note", rank=1, wraps=True)}


def print_exchange_rate(rate: Mapping[str, Any] | None) -> None:
    """Print the rate that the amounts of an answer are converted by, if they are."""
    if rate is not None and rate["currency"] != USD:
        print_text(
            f"1 USD = {rate['units_per_usd']:.6g} {rate['currency']} by the rates of {rate['day']} "
            f"({rate['source_id']})."
        )
