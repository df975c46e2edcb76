"""The cells of a list of sizes, as text with a class.

They are made here and not by macros of the templates: a page has five hundred, and a macro takes fifty times as long.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from markupsafe import Markup

from app.catalog.price_notes import price_note
from app.web.rendering import UNKNOWN, format_age, format_amount, format_number
from app.web.sizes_view import Column

UNKNOWN_CELL = Markup(f'<span aria-hidden="true">{UNKNOWN}</span><span class="hidden">unknown</span>')  # noqa: S704  # a constant
_OLD_DAYS = 180
"""From this age on a price has the colour of warnings."""

Price = Callable[..., Decimal | None]


class Cell(NamedTuple):
    """The text of a cell, the class of its element, and a title for the pointer."""

    text: str
    kind: str
    title: str = ""


def cells(item: Mapping[str, Any], columns: Sequence[Column], price: Price) -> list[Cell]:
    """Return the cells of a size; `price` computes the price of an item by a field, in the units of the view."""
    return [_cell(item, column, price) for column in columns]


def _cell(item: Mapping[str, Any], column: Column, price: Price) -> Cell:
    kind = "number" if column.is_number else "nowrap"
    value = _value(item, column, price)
    if column.field == "gpu_memory_gib_per_gpu" and item["gpu_count"] == 0:
        return Cell("", kind)  # there is no GPU that it could be the memory of
    if column.field == "gpu_model" and value is None and item["gpu_count"] == 0:
        return Cell("none", "nowrap muted")
    if value is None:
        return Cell(UNKNOWN_CELL, f"{kind} unknown")
    cell = _CELLS.get(column.kind, _text)(value, item)
    if column.kind != "price":
        return cell

    def shown(usd: Any) -> str:
        return format_amount(price({**item, "usd_per_hour": usd}))

    if note := price_note(item, "price_", shown):
        cell = cell._replace(text=Markup('{} <span class="badge warn">{}</span>').format(cell.text, note))
    if adjustment := item.get("adjustment"):
        text = paid_text(cell.text, shown(adjustment["list_usd_per_hour"]))
        cell = Cell(text, cell.kind, f"by {', '.join(adjustment['rules'])}")
    return cell


def paid_text(paid: str, listed: str) -> Markup:
    """Return what is paid with the list price below it, which is struck out and called so."""
    return Markup('{}<span class="list-price">list <s>{}</s></span>').format(paid, listed)


def _value(item: Mapping[str, Any], column: Column, price: Price) -> Any:
    if column.kind == "price":
        return price(item)
    return price(item, field=column.field) if column.kind == "money" else item[column.field]


def _text(value: Any, _item: Mapping[str, Any]) -> Cell:
    return Cell(str(value), "nowrap")


def _number(value: Any, _item: Mapping[str, Any]) -> Cell:
    return Cell(format_number(value), "number" if value else "number muted")


def _gpu_count(value: Any, item: Mapping[str, Any]) -> Cell:
    return Cell(item["gpu_fraction"], "number") if item["gpu_fraction"] else _number(value, item)


def _amount(value: Decimal, _item: Mapping[str, Any]) -> Cell:
    return Cell(format_amount(value), "number price")


def _age(value: int, item: Mapping[str, Any]) -> Cell:
    return Cell(format_age(value), "age old" if value >= _OLD_DAYS else "age", f"last seen on {item['price_as_of']}")


_CELLS: Mapping[str, Callable[[Any, Mapping[str, Any]], Cell]] = {
    "number": _number,
    "gpu_count": _gpu_count,
    "gbps": lambda value, item: _number(value / 1000, item),
    "price": _amount,
    "money": _amount,
    "age": _age,
    "flag": lambda value, _item: Cell("yes" if value else "no", "nowrap"),
    "words": lambda value, _item: Cell(value.replace("_", " "), "nowrap"),
}
