"""The commands that find and show sizes: `vmsizes search`, `vmsizes show`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.catalog.fields import SIZE_FIELDS, SIZE_FLAGS, field_title
from app.catalog.price_notes import price_note
from app.catalog.queries.lookups import GpuNames, closest_gpus, resolve_gpus
from app.catalog.queries.params import SizeParams, SizeSearch
from app.cli import context, options
from app.cli.options import Command, Receipt, parse_gpu_and_count, parse_params, query_options
from app.cli.output import (
    Column,
    Format,
    OutputOptions,
    Record,
    flatten_converted,
    format_amount,
    format_table,
    format_value,
    in_currency,
    label_lines,
    make_columns,
    print_exchange_rate,
    print_json,
    print_line,
    print_page,
    print_rows,
    print_text,
    terminal_width,
    with_list_prices,
    with_output_options,
    with_price_notes,
)
from app.errors import BadQuery
from app.nearest import did_you_mean
from app.validation import plural

if TYPE_CHECKING:
    from app.questions import Inquiry


app = typer.Typer()

SIZE_COLUMNS = {
    **make_columns({"name": "size"}, name=0, status=9, vcpus=5, memory_gib=6, gpu_count=1, gpu_model=2),
    **make_columns(gpu_memory_gib_per_gpu=3, gpu_memory_gib=8, on_demand_usd_per_hour=0, region=4),
    **make_columns(on_demand_as_of=7, price_age_days=7, spot_usd_per_hour=7, spot_as_of=8),
}


@app.command(cls=Command)
@query_options(SizeSearch, choices={"sort": options.sort_keys})
@with_output_options
def search(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GPU",
            help="A GPU by any of its names: `A100`, `A100-80GB`, `H100:8` for exactly 8 of it; several: any of them. "
            "A word that names no GPU is looked for in the names of sizes and series.",
            autocompletion=options.completer(options.gpu_ids),
        ),
    ] = None,
    *,
    gpus: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Exactly this many GPUs; a sixth is 1/6.",
            show_default=False,
            rich_help_panel="What a VM must have",
        ),
    ] = None,
    receipt: Receipt = None,
    output: OutputOptions,
    **values: Any,
) -> None:
    """Find sizes, each with its price in the given region, else in the cheapest."""
    from app.catalog.queries.facets import unknown_note

    if gpus is not None:
        if values["min_gpus"] is not None or values["max_gpus"] is not None:
            raise BadQuery("--gpus", gpus, "is an exact number; give either it or --min-gpus and --max-gpus")
        values |= {"min_gpus": gpus, "max_gpus": gpus}

    def find(inquiry: "Inquiry") -> tuple[SizeSearch, Record, list[str]]:
        gpu_names = inquiry.catalog.snapshot.gpus
        params = parse_params(SizeSearch, _add_search_words(gpu_names, words or [], values))
        page = inquiry.ask("GET /sizes", params)
        return params, page, [] if page["total"] else _gpus_meant(gpu_names, words or [])

    params, page, meant = context.inquire(find, receipt)
    undecided = unknown_note(page["unknown"])
    rows, columns = with_list_prices(
        [flatten_converted(item) for item in page["items"]],
        in_currency(_size_columns(params.purchase), params.currency),
    )
    rows, columns = with_price_notes(rows, columns, "price_")
    nothing = "Nothing matches." if undecided is None else f"Nothing is known to match. {undecided}."
    notes = [page["no_price"]["detail"]] if "no_price" in page else []
    notes += [undecided] if undecided is not None and page["total"] else []
    print_page(
        page, columns, output, rows=rows, notes=[f"{note}." for note in notes], nothing=" ".join([nothing, *meant])
    )


def _size_columns(purchase: str) -> Mapping[str, Column]:
    """Return the columns of a search, with the price by the purchase model asked for first."""
    if purchase == "on_demand":
        return SIZE_COLUMNS
    chosen = {f"{purchase}_usd_per_hour": Column(heading=f"{purchase.replace('_', ' ')} USD/h")}
    others = {name: column for name, column in SIZE_COLUMNS.items() if name not in chosen}
    return {"name": others.pop("name")} | chosen | others


def _add_search_words(names: GpuNames, words: Sequence[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """Add the words of a search to its options: names of GPUs to `gpu`, other words to `q`.

    Several words that name one GPU together (`RTX PRO 6000`) are that GPU. Raises BadQuery for `X:8` where X is no GPU,
    for no GPU, and for two different numbers of GPUs.
    """
    added = dict(values)
    parts = [parse_gpu_and_count(part) for word in words for part in word.split(",") if part.strip()]
    phrase = parse_gpu_and_count(" ".join(words))
    if len(words) > 1 and _is_gpu(names, phrase[0]):
        parts = [phrase]
    for word, count in parts:
        if _is_gpu(names, word, required=count is not None):
            added["gpu"] = [*(added["gpu"] or []), word]
        else:
            added["q"] = " ".join(filter(None, (added["q"], word)))
        if count is None:
            continue
        if not count.partition("/")[0].strip("0."):
            raise BadQuery("GPU", f"{word}:{count}", "asks for no GPU; the number after the colon is above 0")
        for bound in ("min_gpus", "max_gpus"):
            if added[bound] not in (None, count):
                conflict = f"says {count} GPUs, but {added[bound]} are asked for elsewhere"
                raise BadQuery("GPU", f"{word}:{count}", conflict)
            added[bound] = count
    return added


def _gpus_meant(names: GpuNames, words: Sequence[str]) -> list[str]:
    """Return a sentence for each word of a search that is no GPU, but near one."""
    parts = [parse_gpu_and_count(word)[0] for word in words]
    unknown = [word for word in parts if not _is_gpu(names, word)]
    near = {word: closest_gpus(names, word.lower()) for word in unknown}
    return [f"No GPU is called {word}; {did_you_mean(gpus)}" for word, gpus in near.items() if gpus]


def _is_gpu(names: GpuNames, word: str, *, required: bool = False) -> bool:
    """Check whether the GPU filter accepts a word; raises its BadQuery where a GPU is required."""
    try:
        resolve_gpus(names, [word], "GPU")
    except BadQuery:
        if required:
            raise
        return False
    return True


FACT_COLUMNS = {
    **make_columns(field=0, value=0, unit=3, verdict=1, source_id=2),
    **make_columns(
        {"corrected_value": "corrected to", "raw": "verbatim", "reason": "why"}, corrected_value=4, raw=6, reason=5
    ),
}
PRICE_COLUMNS = make_columns(
    {"seen_until": "as of"}, region=0, os=2, purchase=1, usd_per_hour=0, seen_until=3, source_id=4
)
_REGION_COLUMNS = {
    **make_columns({"on_demand": "USD/h", "on_demand_from": "as of"}, region=0, on_demand=0, on_demand_from=1),
    **make_columns({"spot": "spot USD/h", "spot_from": "spot as of"}, spot=2, spot_from=3),
    "note": Column(heading="note", rank=4),
}
_PURCHASE_LABELS = {
    "on_demand": "on demand",
    "spot": "on spot",
    "reserved_1y": "reserved for a year",
    "reserved_3y": "reserved for 3 years",
    "savings_1y": "on a savings plan of a year",
    "savings_3y": "on a savings plan of 3 years",
}
MAX_REGIONS = 10
"""The cheapest regions that `show` prints: with the fields above them they fit two screens."""


@app.command(name="show", cls=Command)
@query_options(SizeParams)
@with_output_options
def show_size(
    name: Annotated[str, options.SIZE_ARGUMENT],
    *,
    with_facts: Annotated[bool, typer.Option("--facts", help="What each source says of it.")] = False,
    with_prices: Annotated[bool, typer.Option("--prices", help="All its prices in force.")] = False,
    receipt: Receipt = None,
    output: OutputOptions,
    **values: Any,
) -> None:
    """Show a size: its GPUs and price first, then all else, and its cheapest regions."""
    if with_facts and with_prices:
        raise typer.BadParameter("--facts and --prices are two lists: give one at a time")
    params = parse_params(SizeParams, values)

    whole = output.format is Format.json and not output.columns and not with_prices
    one_row = (output.columns or output.format is Format.csv) and not with_prices

    def find(inquiry: "Inquiry") -> tuple[dict[str, Any], Record, Record]:
        from app.catalog.queries.prices import PriceSearch
        from app.catalog.queries.provenance import FactSearch

        size, facts, prices = inquiry.ask("GET /sizes/{name}", params, name), {}, {}
        if with_facts or whole:
            facts = inquiry.ask("GET /sizes/{name}/facts", FactSearch(limit=500), name)
        if not with_facts and not one_row:
            in_force = PriceSearch(limit=500, **params.model_dump())
            prices = inquiry.ask("GET /sizes/{name}/prices", in_force, name)
        return size, facts, prices

    size, facts, prices = context.inquire(find, receipt)
    if with_facts:
        print_page({**facts, "next_cursor": None}, FACT_COLUMNS, output)
    elif with_prices:
        rows = [flatten_converted(price) for price in prices["items"]]
        rows, columns = with_price_notes(*with_list_prices(rows, in_currency(PRICE_COLUMNS, params.currency)))
        print_page({**prices, "next_cursor": None}, columns, output, rows=rows)
    elif whole:
        rate = size.pop("exchange_rate", None)
        shown = {"size": size, "facts": facts["items"], "prices": prices["items"]}
        print_json(shown if rate is None else {**shown, "exchange_rate": rate})
    elif one_row:
        size.pop("exchange_rate", None)
        rows, _ = with_list_prices([flatten_converted(size)], {})
        print_rows(rows, {}, output, objects=[size])
    else:
        _print_size(size, prices["items"], params.currency)
        if "exchange_rate" in size:
            print_line()
            print_exchange_rate(size["exchange_rate"])


# A size as text


def _print_size(size: Record, prices: Sequence[Record], currency: str | None) -> None:
    """Print a size as labelled lines, then the Linux prices of its cheapest regions, in the currency."""
    print_line(f"{size['name']}: {_status(size)}")
    fields = [(label, text) for label, text in _labelled_texts(size) if text]
    label_width = max(len(label) for label, _ in fields)
    for label, text in fields:
        for line in label_lines(label, text, label_width, terminal_width()):
            print_line(line)
    if size["source_url"]:
        print_line(size["source_url"])
    regions = prices_by_region(prices)
    if regions:
        count = f"the cheapest {MAX_REGIONS} of {len(regions)} regions"
        count = count if len(regions) > MAX_REGIONS else plural(len(regions), "region")
        print_line()
        print_text(f"Linux prices, {count} (--prices shows all {plural(len(prices), 'price')}):")
        shown = regions[:MAX_REGIONS]
        columns = in_currency(_REGION_COLUMNS, currency)
        if not any(row["note"] for row in shown):
            del columns["note"]
        for line in format_table(shown, columns, terminal_width())[0]:
            print_line(line)


def _status(size: Record) -> str:
    parts = [size["status"]]
    if size["status"] != "withdrawn":  # one that is has been named by somebody, and is never verified
        parts.append("named by the vendor" if size["verified"] else "not verified: no vendor page names it")
    if size["retirement_date"]:
        parts.append(f"retires {size['retirement_date']}")
    return ", ".join(parts)


def _labelled_texts(size: Record) -> Iterator[tuple[str, str]]:
    """Yield the labels of a size's page with their texts; a label without a text is not printed."""
    yield "GPU", _gpu(size)
    yield "Price", _price(size)
    yield "Computed", size["estimate"]["formula"] if "estimate" in size else ""
    yield "vCPUs", _join(_amount(size, "vcpus") or "unknown", size["cpu_model"], size["arch"])
    yield "Memory", _amount(size, "memory_gib", " GiB") or "unknown"
    yield "Local disks", _join(_disks(size, "temp_disk", "temporary"), _disks(size, "nvme_disk", "NVMe"))
    yield (
        "Data disks",
        _join(
            _amount(size, "max_data_disks", " at most"),
            _amount(size, "uncached_disk_iops", " IOPS"),
            _amount(size, "uncached_disk_mbps", " MB/s"),
        ),
    )
    yield "Network", _network(size)
    for name, spec in SIZE_FIELDS.items():
        if spec.column and name not in SIZE_FLAGS and name not in _SAID_OTHERWISE and size[name] is not None:
            unit = "" if spec.unit in (None, "count") else f" {spec.unit}"
            yield field_title(name), _amount(size, name, unit) if spec.unit else format_value(size[name])
    for label, value in (("Supports", True), ("Lacks", False), ("Unknown", None)):
        yield label, ", ".join(name.replace("_", " ") for name in SIZE_FLAGS if size[name] is value)
    yield "Series", str(size["series"] or "")
    yield "Disputed", f"{', '.join(size['disputed_fields'])} (--facts shows by whom)" if size["disputed"] else ""


_SAID_OTHERWISE = frozenset(
    {
        *("gpu_vendor", "gpu_model", "gpu_count", "gpu_memory_gib", "gpu_memory_gib_per_gpu", "gpu_interconnect"),
        *("nvlink", "vcpus", "cpu_model", "arch", "memory_gib", "temp_disk_gib", "temp_disk_count", "nvme_disk_gib"),
        *("nvme_disk_count", "max_data_disks", "uncached_disk_iops", "uncached_disk_mbps", "network_mbps", "max_nics"),
        *("infiniband", "infiniband_gbps", "fabric", "series", "preview", "withdrawn", "retirement_date"),
        *("parent_size", "quota_family", "confidential_computing"),
    }
)
"""Fields in the other lines of a size, or, the last three, only in its JSON; any other is a line of its own."""


def _gpu(size: Record) -> str:
    if size["gpu_count"] == 0:
        return "none"
    model = " ".join(filter(None, (size["gpu_vendor"], size["gpu_model"])))
    count = size["gpu_fraction"] or _amount(size, "gpu_count")
    if not model and not count:
        return "unknown"
    memory = _join(_amount(size, "gpu_memory_gib_per_gpu", " GiB each"), _amount(size, "gpu_memory_gib", " GiB in all"))
    link = size["gpu_interconnect"] or ("NVLink" if size["nvlink"] else "")
    return _join(
        f"{count} x {model or 'unknown'}" if count else f"{model}, number unknown",
        memory or "memory unknown",
        link if size["gpu_count"] is None or size["gpu_count"] > 1 else "",
    )


def _price(size: Record) -> str:
    prices = []
    for purchase, label in _PURCHASE_LABELS.items():
        if size[f"{purchase}_usd_per_hour"] is None:
            continue
        price = f"{format_value(size[f'{purchase}_usd_per_hour'])} USD"
        if "converted" in size:
            converted = size["converted"]
            price = f"{format_amount(converted[f'{purchase}_price_per_hour'])} {converted['currency']}"
        day = size.get(f"{purchase}_as_of")
        prices.append(f"{price}/h {label}" + (f" (as of {day})" if day else ""))
    adjusted = ""
    if adjustment := size.get("adjustment"):
        listed = format_value(adjustment["list_usd_per_hour"])
        adjusted = f"list price {listed} USD/h, adjusted by {', '.join(adjustment['rules'])}"
    return _join(*prices, f"Linux, {size['region']}", adjusted, price_note(size, "price_")) if prices else "unknown"


def _disks(size: Record, kind: str, label: str) -> str:
    amount, count = size[f"{kind}_gib"], size[f"{kind}_count"]
    if amount is None and count is None:
        return ""
    if amount == 0 or count == 0:
        return f"no {label} disk"
    spread = f" on {count} disks" if count and count > 1 else ""
    return f"{_number(amount)} GiB {label}{spread}" if amount is not None else f"{count} {label}, size unknown"


def _network(size: Record) -> str:
    infiniband = {
        True: _join("InfiniBand", _amount(size, "infiniband_gbps", " Gbps")).replace(", ", " "),
        False: "no InfiniBand",
        None: {None: "", "none": "no fabric between VMs"}.get(size["fabric"], f"{size['fabric']} between VMs"),
    }[size["infiniband"]]
    speed = size["network_mbps"]
    return _join(
        f"{_number(speed / 1000)} Gbps" if speed is not None else "", _amount(size, "max_nics", " NICs"), infiniband
    )


def _amount(size: Record, name: str, unit: str = "") -> str:
    return "" if size[name] is None else f"{_number(size[name])}{unit}"


def _number(value: float) -> str:
    return f"{value:,.10g}"


def _join(*parts: str | None) -> str:
    return ", ".join(part for part in parts if part)


def prices_by_region(prices: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the Linux prices as one row per region: the cheapest on demand first, unusual ones behind the others.

    Regions without a price are last.
    """
    rows: dict[str, dict[str, Any]] = {}
    for price in prices:
        if price["os"] == "linux":
            row = rows.setdefault(price["region"], dict.fromkeys(_REGION_COLUMNS) | {"region": price["region"]})
            amount = price["converted"]["price_per_hour"] if "converted" in price else price["usd_per_hour"]
            row |= {price["purchase"]: amount, f"{price['purchase']}_from": price["seen_until"]}
            if price["purchase"] == "on_demand":
                row |= {"unusual": price["unusual"], "note": price_note(price)}

    def place(row: Mapping[str, Any]) -> tuple[Any, ...]:
        on_demand, spot = row["on_demand"], row["spot"]
        return (on_demand is None, row.get("unusual", False), on_demand or 0, spot is None, spot or 0, row["region"])

    return sorted(rows.values(), key=place)
