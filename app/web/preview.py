"""The answer of a page as an image, which other services show beside a link to it (`og:image`); they show no SVG."""

import asyncio
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image, ImageDraw, ImageFont

from app.catalog.queries.exchange_rates import CurrencyRate, find_exchange_rate
from app.catalog.queries.params import DatedSelection, SizeParams
from app.catalog.queries.sizes import find_size, read_sizes
from app.catalog.queries.snapshot import Catalog
from app.web.compare import CompareView
from app.web.filter_panel import chips, summary
from app.web.rendering import PURCHASE_TITLES, format_amount, format_number
from app.web.serving import PageContent, PageRequest
from app.web.size_page import SizeView
from app.web.sizes_view import SizesView, find_items, find_price_bar

_WIDTH, _HEIGHT, _MARGIN = 1200, 630, 64
"""What services that show previews ask for."""
_ROOM = _WIDTH - 2 * _MARGIN
_PAPER, _INK, _GREY, _LINE = 251, 28, 92, 216
_MOST_ROWS = 5
_ROW_HEIGHT = 90
_SMALL, _LARGE = 26, 34
"""Texts of the large size and more are bold."""
_MOST_LETTERS = 200
_FONTS = Path(__file__).parent / "static" / "dist" / "fonts"


class _Row(NamedTuple):
    """Two lines of an image, a large one and a small one below it, each with a text at the left and at the right."""

    left: str
    right: str = ""
    below: str = ""
    seen: str = ""


async def render_search(request: PageRequest) -> bytes:
    """Draw the first sizes of a list, and how many there are."""
    view: SizesView = request.params
    page, items = await request.executor.ask(find_items, view, offset=(view.page - 1) * view.limit, limit=_MOST_ROWS)
    bar = await request.executor.ask(find_price_bar)
    filters = summary(chips(request, bar.regions))
    title = f"{page.total:,} {'size' if page.total == 1 else 'sizes'}{f': {filters}' if filters else ''}"
    rows = [_size_row(view, item, page.exchange_rate) for item in items]
    return await asyncio.to_thread(_draw, title, _prices_are(view), rows)


async def render_compare(request: PageRequest) -> bytes:
    """Draw the first sizes of a comparison; raises NotFound for a name of none."""
    view, items, rate = await _find_sizes(request, request.params.name)
    title = f"{len(items)} VM sizes compared" if items else "Compare VM sizes"
    return await asyncio.to_thread(_draw, title, _prices_are(view), [_size_row(view, item, rate) for item in items])


async def render_size(request: PageRequest) -> bytes:
    """Draw the main figures of a size; raises NotFound for its name."""
    view, (item,), rate = await _find_sizes(request, [request.names["name"]])
    row = _size_row(view, item, rate)
    amount = f"{row.right} {view.price_title()}" if row.seen else row.right
    bought = ", ".join(filter(None, (PURCHASE_TITLES[view.purchase], view.os.capitalize(), row.seen)))
    figures = [_Row(figure, below=note) for figure, note in _figures(item)]
    return await asyncio.to_thread(_draw, item["name"], "", [_Row(amount, below=bought), *figures])


async def _find_sizes(
    request: PageRequest, names: Sequence[str]
) -> tuple[SizesView, list[Mapping[str, Any]], CurrencyRate | None]:
    """Find sizes by any of their names, in this order, at the prices of a page."""
    given: SizeView | CompareView = request.params
    prices = {name: getattr(given, name) for name in given.model_fields_set & SizesView.model_fields.keys() - {"name"}}
    if isinstance(given, SizeView) and given.region:
        prices["region"] = (given.region,)
    view = SizesView(**prices)
    selection = DatedSelection(**{name: prices[name] for name in prices.keys() & DatedSelection.model_fields.keys()})

    def find(catalog: Catalog) -> tuple[SizesView, list[Mapping[str, Any]], CurrencyRate | None]:
        items = []
        for name in names:
            offered = read_sizes(catalog, selection, [name])
            item = json.loads(offered[0] if offered else find_size(catalog, name, SizeParams()), parse_float=Decimal)
            items.append(item if offered else item | {"usd_per_hour": None})
        return view, items, find_exchange_rate(catalog, view.converted_to, view.as_of or catalog.today)

    return await request.executor.ask(find)


def _prices_are(view: SizesView) -> str:
    where = f"in {', '.join(view.region)}" if view.region else "in the cheapest region"
    return f"{view.price_title()}, {PURCHASE_TITLES[view.purchase]}, {view.os.capitalize()}, {where}"


def _size_row(view: SizesView, item: Mapping[str, Any], rate: CurrencyRate | None) -> _Row:
    price = view.shown_price(item, rate)
    row = _Row(item["name"], "no price known", ", ".join(figure for figure, _ in _figures(item)))
    if price is None:
        return row
    return row._replace(right=format_amount(price), seen=f"{item['region']}, {item['price_as_of']}")


def _figures(item: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Return the main figures of a size that are known, each with what there is to say of it."""
    if item["gpu_model"]:
        count, memory = item["gpu_fraction"] or item["gpu_count"], item["gpu_memory_gib"]
        times = "" if count is None else f"{count if isinstance(count, str) else format_number(count)} x "
        yield f"{times}{item['gpu_model']}", f"{format_number(memory)} GiB of GPU memory" if memory else ""
    if item["vcpus"] is not None:
        yield f"{item['vcpus']:,} vCPUs", item["cpu_model"] or ""
    if item["memory_gib"] is not None:
        yield f"{format_number(item['memory_gib'])} GiB of memory", ""


def _draw(title: str, note: str, rows: Sequence[_Row]) -> bytes:
    """Return a PNG of some 40 kB with at most `_MOST_ROWS` rows; all texts are cut to its width. It takes 13 ms."""
    image = Image.new("L", (_WIDTH, _HEIGHT), _PAPER)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, _WIDTH, 12), _INK)
    _write(draw, 44, title, 52)
    _write(draw, 114, note, _SMALL, room=_write(draw, 114, "vmsizes", _SMALL, anchor="ra"))
    for top, row in zip(range(168, 168 + _MOST_ROWS * _ROW_HEIGHT, _ROW_HEIGHT), rows, strict=False):
        draw.line((_MARGIN, top, _WIDTH - _MARGIN, top), _LINE)
        for left, right, below, size in ((row.left, row.right, 4, _LARGE), (row.below, row.seen, 48, _SMALL)):
            room = _write(draw, top + below, right, size, anchor="ra")
            _write(draw, top + below, left, size, room=room)
    file = io.BytesIO()
    image.save(file, "png", compress_level=4)
    return file.getvalue()


def _write(
    draw: ImageDraw.ImageDraw, top: int, text: str, size: int, *, anchor: str = "la", room: float = _ROOM
) -> float:
    """Write a line from the left, or with the anchor `ra` to the right margin; return the room beside it."""
    font = _font(size)
    text = " ".join(text[:_MOST_LETTERS].split())
    while (width := draw.textlength(text, font)) > room:
        text = f"{text[: int(len(text) * room / width) - 3].rstrip()}..."
    left = _MARGIN if anchor == "la" else _WIDTH - _MARGIN
    draw.text((left, top), text, _INK if size >= _LARGE else _GREY, font, anchor)
    return room - width - _SMALL


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return the font of the pages, or that of Pillow where it is not bundled, which has no sign beyond ASCII."""
    file = _FONTS / f"ibm-plex-sans-latin-{600 if size >= _LARGE else 400}-normal.woff2"
    return ImageFont.truetype(file, size) if file.exists() else ImageFont.load_default(size)


SEARCH = PageContent(params=SizesView, render=render_search, media_type="image/png")
COMPARE = PageContent(params=CompareView, render=render_compare, media_type="image/png")
SIZE = PageContent(params=SizeView, render=render_size, media_type="image/png")
