"""The search page: filters with counts, a table of sizes, and the same list for programs."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any, get_args

from pydantic import Field, ValidationError

from app.catalog.fields import field_title
from app.catalog.names import Category
from app.catalog.providers import PROVIDERS
from app.catalog.queries.exchange_rates import find_exchange_rate
from app.catalog.queries.facets import Facets, find_facets, find_relaxations, unknown_note
from app.catalog.queries.lookups import find_gpus
from app.catalog.queries.params import JsonBool, PlaceParams, PlainText, QueryParams, SizeFilter, Status
from app.catalog.queries.provenance import find_disputing_sources
from app.catalog.queries.sizes import NoPrice, find_sizes
from app.catalog.queries.snapshot import Catalog, short
from app.http.canonical import to_query_text
from app.web import filter_panel
from app.web.filter_panel import Choice
from app.web.rendering import render_page
from app.web.search_words import (
    CountedWord,
    Vocabulary,
    bounds_in_usd,
    complete_size,
    gpu_filter,
    join_params,
    load_vocabulary,
    nearest_sizes,
    read_words,
    read_workload,
    suggest,
)
from app.web.serving import PRICE_NAMES, PageContent, PageRequest, Rewritten, page_url, with_query
from app.web.sizes_view import (
    COLUMNS,
    GPU_CATEGORY,
    ON_WINDOWS,
    PER_TITLES,
    SOLD,
    UNIT_TITLES,
    Column,
    Kind,
    PriceBar,
    SizesView,
    find_columns,
    find_items,
    find_price_bar,
    heading_of,
    sort_key_of,
    table,
)

_SORT_TITLES = {
    "name": "name",
    "usd_per_hour": "price, lowest first",
    "-usd_per_hour": "price, highest first",
    "usd_per_vcpu_hour": "price of a vCPU",
    "usd_per_1000_coremark_hour": "price of 1,000 CoreMark",
    "usd_per_memory_gib_hour": "price of a GiB of memory",
    "usd_per_gpu_hour": "price of a GPU",
    "usd_per_gpu_gib_hour": "price of a GiB of GPU memory",
    "-gpu_memory_gib": "GPU memory, most first",
    "-gpu_memory_gib_per_gpu": "memory on one GPU, most first",
    "-spot_saving_percent": "spot saving, most first",
    "-vcpus": "vCPUs, most first",
    "-memory_gib": "memory, most first",
}
_KIND_TITLES: Mapping[Kind, str] = {"any": "All sizes", "gpu": "With GPU", "cpu": "Without GPU"}
_STATUS_TITLES = {"withdrawn": "withdrawn from sale"}
_MAX_RELAXATIONS = 6


async def render(request: PageRequest) -> str:
    """Render the search page; without results where a parameter is invalid."""
    view: SizesView = request.params
    if view.q and not request.errors:
        await _read_words(request, view, view.q)
    (page, items), facets = await asyncio.gather(
        request.executor.ask(find_items, view, offset=(view.page - 1) * view.limit),
        find_view_facets(request, view.as_list()),
    )
    disputed = [item["name"] for item in items if item["disputed"]]
    names = await request.executor.ask(_find_names, view, disputed)
    columns = [COLUMNS[name] for name in names.columns]
    price = partial(view.shown_price, rate=page.exchange_rate)
    headings = [heading_of(column, view.price_title()) for column in columns]
    nothing = not page.total
    return render_page(
        request,
        "search.html",
        panel=filter_panel,
        facets=facets,
        choices=partial(filter_panel.choices, facets),
        ranges=filter_panel.ranges(facets),
        flags={bucket.value or "": bucket.count for bucket in facets.counts["flags"]},
        chips=(chips := filter_panel.chips(request, names.bar.regions)),
        summary=filter_panel.summary(chips),
        head_filters=[filter_panel.head_filter(request, column) for column in columns],
        opened=filter_panel.opened_groups(request),
        active=filter_panel.active_counts(view),
        headers=[_header(request, column) for column in columns],
        name_header=_header(request, Column("name", "Size", kind="text", sort="name")),
        items=[
            (item, [*zip(cells, headings, strict=True)])
            for item, cells in zip(items, table(items, columns, price), strict=True)
        ],
        total=page.total,
        first=(view.page - 1) * view.limit + 1,
        pages=ceil(page.total / view.limit),
        rate=page.exchange_rate,
        no_price=page.no_price,
        relaxations=await _relaxations(request, view, page.no_price, names.bar.regions) if nothing else [],
        nearest=nearest_sizes(view.q, await _ask_vocabulary(request)) if nothing and view.q else [],
        kinds=_kinds(request, view),
        retiring=_retiring(request, view, facets),
        defaults=request.defaults() | {"columns": to_query_text(names.default_columns)},
        exports=_exports(view, page.cursor),
        disputes={
            name: [(field_title(field), says) for field, says in disputes] for name, disputes in names.disputes.items()
        },
        gpus=filter_panel.gpu_choices(facets, view.gpu, names.gpu_families),
        undecided=unknown_note(
            {field_title(bucket.value or ""): bucket.count for bucket in facets.undecided.fields},
            facets.undecided.total,
        ),
        price_header=f"per {PER_TITLES[view.per]}" if view.per != "vm" else "Price",
        price_unit=f"{view.currency} {UNIT_TITLES[view.unit]}",
        bar=names.bar,
        **_options(view, facets, names),
    )


async def _ask_vocabulary(request: PageRequest) -> Vocabulary:
    return await request.executor.ask_once("words", load_vocabulary)


async def _read_words(request: PageRequest, view: SizesView, text: str) -> None:
    """Raise Rewritten where the text has words that are other parameters: these are joined to those of the view."""
    vocabulary = await _ask_vocabulary(request)
    if view.model_fields_set <= {"q", *PRICE_NAMES} and (workload := read_workload(text, vocabulary)):
        from app.web.fit_view import FitView

        kept = {name: getattr(view, name) for name in view.model_fields_set & {"region", "purchase", "currency", "os"}}
        raise Rewritten(FitView(**join_params(kept, workload)), "ui/fit")
    given = {name: getattr(view, name) for name in view.model_fields_set - {"q", "page"}}
    if meant := read_words(text, vocabulary, given):
        day = view.as_of or request.executor.today()
        meant = bounds_in_usd(meant, await request.executor.ask(find_exchange_rate, meant.get("currency"), day))
        with suppress(ValidationError):  # a number beyond all bounds stays a text
            raise Rewritten(SizesView(**join_params(given, meant)))


@dataclass(frozen=True, slots=True)
class _Names:
    """What the page shows besides sizes: the bar of prices, columns, families of GPUs, the sources behind disputes."""

    bar: PriceBar
    columns: Sequence[str]
    default_columns: Sequence[str]
    disputes: Mapping[str, list[tuple[str, str]]]
    gpu_families: Mapping[str, str]


@short
def _find_names(catalog: Catalog, view: SizesView, disputed: Sequence[str]) -> _Names:
    return _Names(
        bar=find_price_bar(catalog),
        columns=find_columns(catalog, view),
        default_columns=find_columns(catalog, view.model_copy(update={"columns": ()})),
        disputes=find_disputing_sources(catalog, disputed),
        gpu_families=catalog.keep(
            "families of GPUs", lambda: {gpu["model"]: gpu["family"] for gpu in find_gpus(catalog) if gpu["family"]}
        ),
    )


def _options(view: SizesView, facets: Facets, names: _Names) -> dict[str, Any]:
    """Return the options of the panel's selects and lists."""
    vendors = [bucket.value for bucket in facets.counts["gpu_vendor"] if bucket.value]
    regions = filter_panel.choices(facets, "region", view.available_in, names.bar.regions)
    return {
        "vendors": (("", "any"), *((vendor.lower(), vendor) for vendor in vendors)),
        "divisors": tuple(PER_TITLES.items()),
        "regions": sorted(regions, key=lambda choice: (not choice.checked, choice.title)),
        "clouds": {provider.id: provider.name for provider in PROVIDERS.values()},
        "categories": {name: name.replace("_", " ").replace("gpu", "GPU") for name in get_args(Category)},
        "statuses": _statuses(view, facets),
        "columns": [
            Choice(column.field, column.title_with_unit, None, column.field in names.columns)
            for column in COLUMNS.values()
        ],
        "sorts": _sorts(view),
        "row_counts": [(str(count), str(count)) for count in sorted({25, 50, 100, 200, view.limit})],
    }


def _kinds(request: PageRequest, view: SizesView) -> list[tuple[str, str, bool]]:
    """Return the kinds of sizes: what they are called, the URL, and whether the list is of it."""
    of_gpus = dict.fromkeys(filter_panel.GROUPS["gpu"])
    category = tuple(value for value in view.category if value not in GPU_CATEGORY)
    changes: Mapping[Kind, Mapping[str, object]] = {
        "any": of_gpus | {"category": category},
        "gpu": {"max_gpus": None, "category": GPU_CATEGORY},
        "cpu": of_gpus | {"category": category, "max_gpus": 0},
    }
    return [
        (_KIND_TITLES[kind], request.url(page=None, columns=None, **change), kind == view.kind)
        for kind, change in changes.items()
    ]


def _retiring(request: PageRequest, view: SizesView, facets: Facets) -> tuple[int, str]:
    """Return how many sizes are left out because they retire, and the URL of the list with them."""
    counts = {bucket.value: bucket.count for bucket in facets.counts["status"]}
    left_out = counts.get("retiring", 0) if view.leaves_out_retiring else 0
    return left_out, request.url(page=None, status=(*SOLD, "retiring"))


def _sorts(view: SizesView) -> list[tuple[str, str]]:
    """Return the common orders, and that of the view if it is another."""
    chosen = to_query_text(list(view.sort))
    return [*_SORT_TITLES.items(), *([(chosen, chosen.replace(",", ", "))] if chosen not in _SORT_TITLES else [])]


def _statuses(view: SizesView, facets: Facets) -> list[Choice]:
    counts = {bucket.value: bucket.count for bucket in facets.counts["status"]}
    return [
        Choice(name, _STATUS_TITLES.get(name, name), counts.get(name, 0), name in view.status)
        for name in get_args(Status)
        if name != "any"
    ]


async def _relaxations(
    request: PageRequest, view: SizesView, no_price: NoPrice | None, titles: Mapping[str, str]
) -> list[tuple[str, str, int]]:
    """Return what finds something instead: in words, the URL, and how many sizes it finds.

    Other regions are not it where none has a price.
    """
    places = PlaceParams.model_fields.keys() | {"region"} if no_price and not no_price.known_in else frozenset()
    found = await request.executor.ask(find_relaxations, view.as_list())
    relaxations = [relaxation for relaxation in found if places.isdisjoint(relaxation.names)]
    return [
        (
            filter_panel.relaxation_text(view, relaxation, titles),
            _url_with(request, relaxation.instead),
            relaxation.nearest_count or relaxation.count,
        )
        for relaxation in relaxations[:_MAX_RELAXATIONS]
    ]


def _url_with(request: PageRequest, instead: Mapping[str, Any]) -> str:
    """Return the URL of the first page with other filters, whose values are validated as if they had been sent."""
    view: SizesView = request.params
    kept = {name: getattr(view, name) for name in view.model_fields_set - instead.keys() - {"page"}}
    given = {name: str(value) if isinstance(value, Fraction) else value for name, value in instead.items()}
    return page_url(
        request.path, SizesView(**kept, **{name: value for name, value in given.items() if value is not None})
    )


async def find_view_facets(request: PageRequest, view: SizeFilter) -> Facets:
    """Find the facets of a view's filters; views that differ in order, columns, units or page share them."""
    filters = view.as_params(SizeFilter)
    return await request.executor.ask_once(filters, lambda catalog: find_facets(catalog, filters))


def _header(request: PageRequest, column: Column) -> tuple[Column, str, str]:
    """Return a column, the URL that sorts by it, and the order it is in."""
    view: SizesView = request.params
    key = sort_key_of(column, view)
    if not key:
        return column, "", ""
    system = "windows" if column.field.startswith(ON_WINDOWS) else view.os
    order = {key: "ascending", f"-{key}": "descending"}.get(view.order[0], "") if system == view.os else ""
    # Figures are first wanted from the greatest down, prices and names from the least up; again turns it around.
    descends = column.is_number and column.kind not in {"price", "money"}
    first, second = (f"-{key}", key) if descends else (key, f"-{key}")
    turned = order and view.order[0] == first
    return column, request.url(sort=(second if turned else first,), os=system, page=None), order


def _exports(view: SizesView, cursor: str | None) -> dict[str, str]:
    """Return the URLs of the same list for programs, relative to the root; JSON is the page, the others the whole."""
    shown, whole = view.model_copy(update={"page": 1}), view.as_list()
    return {
        "json": with_query("sizes", view.search().model_copy(update={"cursor": cursor})),
        **{f"shown_{kind}": with_query(f"ui/sizes.{kind}", shown) for kind in ("csv", "tsv", "json")},
        **{kind: with_query(f"sizes.{kind}", whole) for kind in ("csv", "parquet")},
    }


class SuggestionsView(QueryParams):
    """What was typed into a box."""

    q: PlainText = Field(description="The text so far.")
    sizes: JsonBool = Field(default=False, description="Only names of sizes.")


async def render_suggestions(request: PageRequest) -> str:
    """Return how the text of a box can go on, as JSON: `value`, and `label`, which says what it is."""
    view: SuggestionsView = request.params
    vocabulary = await _ask_vocabulary(request)
    if view.sizes:
        return json.dumps([{"value": name, "label": ""} for name in complete_size(view.q, vocabulary)])
    return json.dumps(suggest(view.q, vocabulary, await request.executor.ask_once("counted words", _count_words)))


def _count_words(catalog: Catalog) -> list[CountedWord]:
    """Count the sizes that GPUs, series and regions find; a GPU finds its kinds, too, unlike in facets."""
    counts = find_facets(catalog, SizesView().as_list().as_params(SizeFilter)).counts
    gpus = [
        str(bucket.value).lower() for bucket in counts["gpu_model"] if bucket.value and "," not in str(bucket.value)
    ]
    return [
        *(
            CountedWord(gpu, "GPU", find_sizes(catalog, SizesView(gpu=(gpu_filter(gpu),), limit=1).search()).total)
            for gpu in gpus
        ),
        *(CountedWord(str(bucket.value), "series", bucket.count) for bucket in counts["series"] if bucket.value),
        *(CountedWord(str(bucket.value), "region", bucket.count) for bucket in counts["region"] if bucket.value),
    ]


PAGE = PageContent(params=SizesView, render=render)
SUGGESTIONS = PageContent(params=SuggestionsView, render=render_suggestions, media_type="application/json")
