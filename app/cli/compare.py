"""Commands about sizes and their cost: `vmsizes similar`, `compare`, `cost`, `history`, `buy`, `preflight`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.catalog.providers import AZURE, provider_of_region
from app.catalog.queries.costs import BuySearch, CostSearch
from app.catalog.queries.params import CompareSearch, SimilarSearch
from app.catalog.queries.prices import PriceHistorySearch, PriceSearch, merge_runs, why_none_in_force
from app.catalog.queries.provenance import RefusedPriceSearch
from app.cli import context, options
from app.cli.options import Command, Receipt, parse_params, query_options
from app.cli.output import (
    EXIT_NOT_FOUND,
    EXIT_OK,
    EXIT_USAGE,
    GAP,
    UNVERIFIED_NOTE,
    USD,
    Column,
    Format,
    OutputOptions,
    Record,
    check_column,
    flatten_converted,
    format_cents,
    format_table,
    format_value,
    in_currency,
    make_columns,
    mark_unverified,
    min_table_width,
    print_commitment,
    print_exchange_rate,
    print_line,
    print_next_cursor,
    print_no_price,
    print_note,
    print_page,
    print_rows,
    print_text,
    read_text_file,
    terminal_width,
    with_list_prices,
    with_notes,
    with_output_options,
)
from app.errors import BadQuery, BadWorkload
from app.validation import plural

if TYPE_CHECKING:
    from app.questions import Inquiry

app = typer.Typer()

SIMILAR_COLUMNS = {
    **make_columns(size=0, distance=0, cheaper=4, bigger=5, gpu_count=2, gpu_model=1, gpu_memory_gib=6),
    **make_columns(vcpus=7, memory_gib=8, region=3, usd_per_hour=0),
}


COST_COLUMNS = {
    **make_columns(part=0, what=1, usd_per_hour=2),
    "usd_per_month": Column(heading="USD/month", format=format_cents),
    "usd_per_year": Column(heading="USD/year", rank=3, format=format_cents),
    **make_columns(price_as_of=4, price_age_days=5, source_ids=6),
}
HISTORY_COLUMNS = make_columns({"sources": "lists"}, since=0, last_seen=0, usd_per_hour=0, sources=1)
MIN_WORD_WIDTH = 13
"""A value with a word longer than its column is left out of `compare`, but never for a word up to this length."""


@app.command(cls=Command)
@query_options(SimilarSearch)
@with_output_options
def similar(name: Annotated[str, options.SIZE_ARGUMENT], *, output: OutputOptions, **values: Any) -> None:
    """List the sizes most similar to one, with the distance of each broken down by term."""
    page = context.ask("GET /sizes/{name}/similar", parse_params(SimilarSearch, values), name)
    rows, columns = with_list_prices(page["items"], SIMILAR_COLUMNS)
    detail = ""
    for row in rows[:1]:  # of what the distance of the nearest size is made up
        differing = [_describe_term(term) for term in row["terms"] if term["contribution"]]
        others = f"the other {len(row['terms']) - len(differing)} add nothing"
        detail = f"{row['size']}: {'; '.join([*differing, others])}."
    if output.format is not Format.json:
        rows = [row | {"terms": [_describe_term(term) for term in row["terms"]]} for row in rows]
    print_page(page, columns, output, rows=rows, detail=detail, remark=f", the most like {page['size']} first.")


def _describe_term(term: Record) -> str:
    return f"{term['term']} {term['contribution']:g} ({term['detail']})"


@app.command(cls=Command)
@query_options(CompareSearch, leave_out=frozenset({"size", "fields"}))
@with_output_options
def compare(
    sizes: Annotated[
        list[str],
        typer.Argument(
            help="The sizes, 2 to 10, in any case, with or without `Standard_`.",
            autocompletion=options.completer(options.size_names),
        ),
    ],
    *,
    receipt: Receipt = None,
    output: OutputOptions,
    **values: Any,
) -> None:
    """Compare sizes side by side: every field, with its difference from one of them."""
    comparison = context.ask("GET /compare", parse_params(CompareSearch, {**values, "size": sizes}), receipt=receipt)
    fields = {field["field"]: field for field in comparison["fields"]}
    if output.columns:
        for name in output.columns:
            check_column(name, fields)
        comparison["fields"] = [fields[name] for name in output.columns]
    if output.format is Format.table:
        unverified = {cell["size"] for cell in fields["verified"]["values"] if cell["value"] is False}
        _print_comparison(comparison, output, unverified)
    else:
        rows = []
        for field in comparison["fields"]:  # the value of each size, and its difference from the baseline in percent
            row: dict[str, Any] = {"field": field["field"], "unit": field["unit"]}
            for cell in field["values"]:
                row[cell["size"]] = cell["value"]
                if cell["size"] != comparison["baseline"]:
                    row[f"{cell['size']} %"] = cell["difference_percent"]
            rows.append(row)
        print_rows(rows, {}, OutputOptions(format=output.format), json_value=comparison)


def _print_comparison(comparison: Mapping[str, Any], output: OutputOptions, unverified: Collection[str]) -> None:
    """Print a table with a row per field and a column per size.

    Where the sizes do not fit beside each other their names become numbers, and then several tables follow each other,
    each with the baseline.
    """
    sizes, baseline = comparison["sizes"], comparison["baseline"]
    max_width = None if output.wide else terminal_width()
    currency = (comparison.get("exchange_rate") or {}).get("currency")

    def label(field: Mapping[str, Any]) -> str:
        is_converted = currency is not None and str(field["unit"]).startswith(currency)
        return f"{field['field']} ({currency})" if is_converted else str(field["field"])

    rows = [
        {"field": label(field)} | {cell["size"]: _cell(cell, baseline) for cell in field["values"]}
        for field in comparison["fields"]
        if output.columns or any(cell["value"] not in (None, []) for cell in field["values"])
    ]
    left_out: list[str] = []
    if max_width is not None:
        name_width = max(len(row["field"]) for row in rows)
        max_word = max(MIN_WORD_WIDTH, (max_width - name_width) // len(sizes) - len(GAP))
        for row in rows:
            cells = (cell for name, cell in row.items() if name != "field")
            if any(len(word) > max_word for cell in cells for word in cell.split()):
                left_out.append(row["field"])
        rows = [row for row in rows if row["field"] not in left_out]
    names = {size: mark_unverified(size) if size in unverified else size for size in sizes}
    headings = dict(names)
    print_line(f"Compared with {names[baseline]}")
    if max_width is not None and min_table_width(rows, _columns(headings)) > max_width:
        headings = {size: str(number) for number, size in enumerate(sizes, 1)}
        for size, heading in headings.items():
            print_line(f"  {heading:>2}  {names[size]}")
    for part in _split_sizes(headings, baseline, rows, max_width):
        print_line()
        for line in format_table(rows, _columns(part), max_width)[0]:
            print_line(line)
    if unverified:
        print_text(UNVERIFIED_NOTE)
    if comparison.get("exchange_rate") is not None:
        print_line()
        print_exchange_rate(comparison["exchange_rate"])
    left_out = [field for field in left_out if field != "name"]  # names stand above the table
    if left_out:
        print_note(f"Left out at {max_width} columns: {', '.join(left_out)}. --wide shows all.")


def _columns(headings: Mapping[str, str]) -> dict[str, Column]:
    sizes = {size: Column(heading=heading, wraps=True) for size, heading in headings.items()}
    return {"field": Column(heading="field"), **sizes}


def _cell(cell: Mapping[str, Any], baseline: str) -> str:
    percent = cell["difference_percent"]
    text = format_value(cell["value"] if cell["value"] != [] else None)
    return f"{text} ({percent:+.4g}%)" if percent and cell["size"] != baseline else text


def _split_sizes(
    headings: Mapping[str, str], baseline: str, rows: Sequence[Mapping[str, Any]], max_width: int | None
) -> Iterator[dict[str, str]]:
    """Yield the sizes of each table: all of them, else the baseline with as many others as fit."""
    if max_width is None or min_table_width(rows, _columns(headings)) <= max_width:
        yield dict(headings)
        return
    part = {baseline: headings[baseline]}
    for size, heading in headings.items():
        if len(part) > 1 and min_table_width(rows, _columns({**part, size: heading})) > max_width:
            yield part
            part = {baseline: headings[baseline]}
        part[size] = heading
    yield part


@app.command(cls=Command)
@query_options(CostSearch)
@with_output_options
def cost(name: Annotated[str, options.SIZE_ARGUMENT], *, output: OutputOptions, **values: Any) -> None:
    """Show what VMs of a size cost with their disks: an hour, a month, a year."""
    params = parse_params(CostSearch, values)
    answer = context.ask("GET /sizes/{name}/cost", params, name)
    rows = list(_cost_rows(answer))
    if output.format is Format.table and not output.columns:
        rows = [_dated_for_people(row) for row in rows]
    rows, columns = with_notes(rows, in_currency(COST_COLUMNS, params.currency))
    if output.format is Format.table:
        model = f"{answer['os'].capitalize()}, {answer['purchase'].replace('_', ' ')}"
        hours = format_value(answer["hours_per_month"])
        print_text(f"{_subject(answer, params)}: {model}, {hours} hours a month")
        print_line()
    print_rows(rows, columns, output, json_value=answer)
    print_no_price(answer)
    if output.format is Format.table:
        print_line()
        print_exchange_rate(answer.get("exchange_rate"))
        for label, texts in (("Unknown", answer["unknown_parts"]), ("Warnings", answer["warnings"])):
            if texts:
                print_text(f"{label}: {', '.join(texts)}.")
        if "estimate" in answer["vm"]:
            print_text(f"The price is computed: {answer['vm']['estimate']['formula']}.")
        print_commitment(answer["vm"]["committed_hours_per_month"])
        if "LICENCE_INCLUDED" in answer["warnings"] and provider_of_region(answer["region"]) is AZURE:
            print_text("With Azure Hybrid Benefit Windows Server costs what Linux does: --os linux.")
        print_text(f"Not included: {'; '.join(answer['not_included'])}.")


def _subject(answer: Mapping[str, Any], params: CostSearch | BuySearch) -> str:
    """Return the size and region of an answer, with `as_of` and `known_at` where they were given."""
    where = f"in {answer['region']}" if answer["region"] else "(no price)"
    in_force = f", in force on {params.as_of}" if params.as_of is not None else ""
    known = f", as known on {params.known_at}" if params.known_at is not None else ""
    return f"{answer['size']} {where}{in_force}{known}"


def _cost_rows(answer: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for one VM, one for each of its disks, and one for the total; all have the same fields."""
    vm = answer["vm"]
    about = {name: answer[name] for name in ("size", "region", "os", "purchase")}  # for CSV, equal in every row
    figures = {"usd_per_hour": None, **vm, "source_ids": [vm["source_id"]] if vm["source_id"] else []}
    parts = [("vm", "1 VM", figures)]
    for index, disk in enumerate(answer["disks"]):
        amounts = ((disk["gib"], "GiB"), (disk["iops"], "IOPS"), (disk["mbps"], "MBps"))
        stated = [f"{amount} {unit}" for amount, unit in amounts if amount is not None]
        parts.append((f"disks[{index}]", f"{disk['disk']}: {', '.join(stated)}", disk))
    vms = f"{answer['count']} VM{'s' if answer['count'] > 1 else ''}"
    with_disks = f", each with {plural(len(answer['disks']), 'disk')}" if answer["disks"] else ""
    parts.append(("total", f"{vms}{with_disks}", answer["total"]))
    fields = [name for name in flatten_converted(figures) if name not in ("source_id", "adjustment", "estimate")]
    for part, what, stated_figures in parts:
        flat = flatten_converted(stated_figures)
        row = about | {"part": part, "what": what} | {name: flat.get(name) for name in fields}
        row |= {name: flat[name] for name in ("adjustment", "estimate") if name in flat}
        yield row | {"warnings": answer["warnings"]}


def _dated_for_people(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row for display: the day of an undated price is marked, and its age left out."""
    if not row.get("approximate_date"):
        return dict(row)
    return {**row, "price_as_of": f"≈{row['price_as_of']}", "price_age_days": None}


@app.command(cls=Command)
@query_options(PriceHistorySearch)
@with_output_options
def history(
    name: Annotated[str, options.SIZE_ARGUMENT], *, receipt: Receipt = None, output: OutputOptions, **values: Any
) -> None:
    """List what a size cost in a region over time, each price with the days on which lists had it."""
    params, today = parse_params(PriceHistorySearch, values), context.today()
    day = params.until or today
    offer = params.model_dump(include={"os", "purchase", "known_at"})
    of_day = PriceSearch(region=(params.region,), as_of=day, **offer)

    def find(inquiry: "Inquiry") -> tuple[Record, list[Record], int, str]:
        page = inquiry.ask("GET /sizes/{name}/price-history", params, name)
        in_force = inquiry.ask("GET /sizes/{name}/prices", of_day, name)["items"]
        search = RefusedPriceSearch(size=name, region=params.region, limit=1)
        refused = inquiry.ask("GET /refused-prices", search)["total"]
        everywhere = of_day.model_copy(update={"region": (), "limit": 500})
        nothing = "" if page["items"] or in_force else _no_price(inquiry, name, params, everywhere)
        return page, in_force, refused, nothing

    page, in_force, refused, nothing = context.inquire(find, receipt)
    items, total = page["items"], page["total"]
    if output.format is Format.table and not output.columns:
        lines = merge_runs(items, next(iter(in_force), None))
        noted = make_columns(note=0) if any(line.note() for line in lines) else {}
        rows = [
            {name: getattr(line, name) for name in HISTORY_COLUMNS}
            | {"since": f"{'≈' if line.approximate_date else ''}{line.since}", "note": line.note()}
            for line in lines
        ]
        print_rows(rows, {**HISTORY_COLUMNS, **noted}, output)
        if rows:
            print_line()
        print_text(nothing or f"{plural(len(lines), 'price')} in {params.region}, the oldest first.")
        if len(items) < total:
            print_text(f"Merged from {len(items)} of {plural(total, 'price')} of lists.")
        if lines and not in_force:
            print_text(f"None is in force on {day}: {why_none_in_force(page)}.")
        elif lines and lines[-1].in_force:
            last = lines[-1]
            print_text(f"In force on {day}: {format_value(last.usd_per_hour)} USD/h, last seen {last.last_seen}.")
        elif in_force and not lines:
            price, seen = format_value(in_force[0]["usd_per_hour"]), in_force[0]["seen_until"]
            print_text(f"In force on {day}: {price} USD/h, last seen {seen}.")
        if refused:
            listed = f"vmsizes refused-prices --size {name} --region {params.region}"
            print_text(f"{plural(refused, 'price')} of lists there {'is' if refused == 1 else 'are'} refused: {listed}")
    else:
        print_rows(items, {}, output)
    if page["next_cursor"]:
        print_next_cursor(page["next_cursor"])
    if not total:
        raise typer.Exit(EXIT_NOT_FOUND)


def _no_price(inquiry: "Inquiry", name: str, params: PriceHistorySearch, everywhere: PriceSearch) -> str:
    """Return a sentence for a region without a price, with the first regions that have one."""
    prices = inquiry.ask("GET /sizes/{name}/prices", everywhere, name)["items"]
    others = sorted({price["region"] for price in prices} - {params.region})
    since = f" since {params.since}" if params.since is not None else ""
    more = f" and {plural(len(others) - _NAMED_REGIONS, 'other region')}" if len(others) > _NAMED_REGIONS else ""
    elsewhere = f", but in {', '.join(others[:_NAMED_REGIONS])}{more}" if others else ""
    return f"{params.os} {params.purchase}: no price is known in {params.region}{since}{elsewhere}."


_NAMED_REGIONS = 3

# What is to be bought

EXIT_MISSING, EXIT_UNKNOWN = 5, 6
_QUOTA_COLUMNS = make_columns(verdict=0, region=0, title=0, needed=0, used=1, limit=0, missing=0, provider=3)
_VERDICTS = {
    "fits": (EXIT_OK, "The plan fits."),
    "missing": (EXIT_MISSING, "The plan does not fit."),
    "unknown": (EXIT_UNKNOWN, "Whether the plan fits is unknown."),
    "error": (EXIT_USAGE, "The plan names what the catalog does not have."),
}


@app.command(cls=Command, epilog="Exit codes: 0 fits, 5 does not fit, 6 unknown, 2 bad input.")
@with_output_options
def preflight(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN",
            help="CSV or JSON with size and region, and optionally count, purchase (spot) and id; or what "
            "`terraform show -json` prints of a plan.",
        ),
    ],
    *,
    usage: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[REGION=]FILE",
            help="What `az vm list-usage`, `aws service-quotas list-service-quotas --service-code ec2` or `gcloud "
            "compute regions describe` (and `project-info describe`) prints as JSON; once for each region, which that "
            "of Azure does not name.",
        ),
    ] = None,
    skus: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What `az vm list-skus --all` prints as JSON: restrictions.")
    ] = None,
    region: Annotated[
        str | None, typer.Option(help="The region of VMs of Terraform, and of quotas, that name none.")
    ] = None,
    output: OutputOptions,
) -> None:
    """Check whether the VMs of a plan fit into quotas, before anything is deployed."""
    from app.schemas.preflight_request import PreflightIn, QuotaUsageIn

    files = {"plan": str(plan), "skus": str(skus)}
    quotas = []
    for index, given in enumerate(usage or ()):
        place, _, path = given.partition("=") if not Path(given).exists() else ("", "", given)
        files[f"usage[{index}].text"] = path or place
        text = read_text_file(Path(path or place))
        quotas.append(QuotaUsageIn(text=text, region=place if path and place else None))
    restrictions = read_text_file(skus) if skus is not None else None
    body = PreflightIn(plan=read_text_file(plan), usage=tuple(quotas), skus=restrictions, region=region)
    try:
        data = context.ask("POST /preflight", body)
    except BadWorkload as error:
        detail = error.detail.replace("state it as `region`", "state it as --usage REGION=FILE")
        raise BadQuery(files.get(error.field, error.field), None, detail) from None
    rows = [{name: value for name, value in quota.items() if name != "sizes"} for quota in data["quotas"]]
    print_rows(rows, _QUOTA_COLUMNS, output, json_value=data, objects=data["quotas"])
    code, text = _VERDICTS[data["verdict"]]
    if output.format is Format.table:
        _print_remarks(data)
        print_text(text)
        if not usage:
            print_text("No --usage was given; --help names the commands that print it.")
    raise typer.Exit(code)


def _print_remarks(data: Record) -> None:
    print_line()
    for item in data["items"]:
        if item["verdict"] == "fits":
            continue
        name = " ".join(str(item[field]) for field in ("count", "size", "region") if item[field] is not None)
        line = item["id"] or f"item {item['index'] + 1}"
        print_text(f"{line}: {name}: {'; '.join(item['details'])}", indent="    ")
        if item["fits_in"]:
            print_text(f"    fits in {', '.join(item['fits_in'])}", indent="    ")
    for quota in data["quotas"]:
        for text in (quota["request"], quota["command"]):
            if text:
                print_text(text, indent="    ")


_WAY_COLUMNS = {
    **make_columns(purchase=0, usd_per_hour=1),
    "licence_usd_per_hour": Column(heading="licence USD/h", rank=1),
    "usd_total": Column(heading="USD in all", format=format_cents),
    "usd_per_month": Column(heading="USD/month", format=format_cents, rank=1),
    "saved_usd": Column(heading="saved", format=format_cents),
    "break_even_month": Column(heading="paid off in month"),
    "break_even_percent": Column(heading="beats on demand from", rank=2, format="{:g} %".format),
    "cheapest_from_percent": Column(heading="cheapest from", format="{:g} %".format),
    **make_columns(price_as_of=2, warnings=1, source_id=3),
}
_OF_PRICE = (
    *("usd_per_hour", "price_per_hour", "price_as_of", "price_age_days", "approximate_date", "source_id"),
    *("unusual", "disputed"),
)
_CONVERTED = {
    "usd_per_hour": "price_per_hour",
    "licence_usd_per_hour": "licence_price_per_hour",
    "usd_total": "cost_total",
    "usd_per_month": "cost_per_month",
    "saved_usd": "saved",
}
"""The fields of a way that stand in the place of those in US dollars."""


@app.command(cls=Command)
@query_options(BuySearch)
@with_output_options
def buy(name: Annotated[str, options.SIZE_ARGUMENT], *, output: OutputOptions, **values: Any) -> None:
    """Compare the ways to buy VMs of a size over months: on demand, spot, reserved, savings plans."""
    params = parse_params(BuySearch, values)
    answer = context.ask("GET /sizes/{name}/buy", params, name)
    currency = None if params.currency in (None, USD) else str(params.currency)
    rows = list(_way_rows(answer, "price_per_hour" if currency else "usd_per_hour"))
    columns = _WAY_COLUMNS
    if currency is not None:
        columns = {
            _CONVERTED.get(name, name): replace(column, heading=column.heading.replace(USD, currency))
            for name, column in _WAY_COLUMNS.items()
        }
    if answer["os"] == "linux":
        columns = {name: column for name, column in columns.items() if not name.startswith("licence")}
    if output.format is Format.table and not output.columns:
        rows = [_dated_for_people(row) for row in rows]
    if output.format is Format.table:
        windows = f"Windows{' with Azure Hybrid Benefit' if answer['hybrid_benefit'] else ''}"
        system = "Linux" if answer["os"] == "linux" else windows
        hours = "hour" if answer["hours_per_month"] == 1 else "hours"
        of_months = f"{plural(answer['months'], 'month')} of {format_value(answer['hours_per_month'])} {hours}"
        print_text(f"{_subject(answer, params)}: {plural(answer['count'], 'VM')}, {system}, {of_months}")
        print_line()
    noted, columns = with_notes(rows, columns)
    print_rows(noted, columns, output, json_value=answer, objects=answer["ways"])
    print_no_price(answer)
    if output.format is Format.table:
        print_line()
        _print_verdict(answer)
        if days := _days_of_prices(rows):
            print_text(f"Prices are of different days: {days}.")
        print_exchange_rate(answer.get("exchange_rate"))
        print_text(f"Assumed: {'; '.join(answer['assumptions'])}.")
    if not answer["cheapest"]:
        raise typer.Exit(EXIT_NOT_FOUND)


def _way_rows(answer: Mapping[str, Any], per_hour: str) -> Iterator[dict[str, Any]]:
    """Yield each way to buy with its price; the second price of Windows, that of Linux, only shows the licence."""
    about = {name: answer[name] for name in ("size", "region", "os", "months", "hours_per_month", "count")}
    for way in answer["ways"]:
        price, *parts = [flatten_converted(price) for price in way["prices"]] or [{}]
        amounts = [Decimal(str(part[per_hour])) for part in parts]
        plain = {name: value for name, value in flatten_converted(way).items() if name not in ("prices", "cumulative")}
        row = about | plain | {field: price.get(field) for field in _OF_PRICE}
        row |= {name: price[name] for name in ("adjustment", "estimate") if name in price}
        yield row | {f"licence_{per_hour}": amounts[0] - amounts[1] if amounts else None}


def _print_verdict(answer: Mapping[str, Any]) -> None:
    """Print the cheapest way to buy, those without a price or no longer sold, and when the size retires."""
    retires, left, months = answer["retirement_date"], answer["retires_after_months"], answer["months"]
    ending = f"the size retires on {retires}{f', after {left} of the {months} months' if left is not None else ''}"
    if retires and retires <= answer["as_of"]:
        ending = f"the size retired on {retires}"
    unknown = [f"Unknown: {', '.join(answer['unknown'])}."] if answer["unknown"] else []
    if answer["cheapest"]:
        best = answer["cheapest_without_spot"]
        others = f", of those without evictions {best}" if best and best != answer["cheapest"] else ""
        others += f"; but {ending}" if left is not None else ""
        unknown = [f"Cheapest of the known ways: {answer['cheapest']}{others}.", *unknown]
    if unknown:
        print_text(" ".join(unknown))
    if answer["not_sold"]:
        ways = (f"{way['purchase']} (until {way['sold_until']})" for way in answer["not_sold"])
        print_text(f"No longer sold: {', '.join(ways)}.")
    if retires and (left is None or not answer["cheapest"]):
        print_text(f"{ending[0].upper()}{ending[1:]}.")


def _days_of_prices(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the range of days of the prices, for a warning; empty if all are of one day."""
    by_day: dict[str, list[str]] = {}
    for row in rows:
        if row["price_as_of"] is not None:
            by_day.setdefault(row["price_as_of"], []).append(row["purchase"])
    return "; ".join(f"{', '.join(names)} {day}" for day, names in by_day.items()) if len(by_day) > 1 else ""
