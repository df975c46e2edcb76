"""Commands about what is to be bought: `vmsizes preflight` and `vmsizes buy`."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from app.catalog.queries.costs import BuySearch
from app.cli import context, options
from app.cli.options import Command, parse_params, query_options
from app.cli.output import (
    EXIT_OK,
    EXIT_USAGE,
    USD,
    Column,
    Format,
    OutputOptions,
    Record,
    flatten_converted,
    format_cents,
    format_value,
    make_columns,
    print_exchange_rate,
    print_line,
    print_no_price,
    print_rows,
    print_text,
    read_text_file,
    with_output_options,
)
from app.errors import BadQuery, BadWorkload

app = typer.Typer()

EXIT_MISSING, EXIT_UNKNOWN = 5, 6
_PREFLIGHT_CODES = {"fits": EXIT_OK, "missing": EXIT_MISSING, "unknown": EXIT_UNKNOWN, "error": EXIT_USAGE}
_QUOTA_COLUMNS = make_columns(verdict=0, region=0, title=0, needed=0, used=1, limit=0, missing=0, provider=3)
_VERDICTS = {
    "fits": "The plan fits.",
    "missing": "The plan does not fit.",
    "unknown": "Whether the plan fits is unknown.",
    "error": "The plan names what the catalog does not have.",
}


@app.command(cls=Command, epilog="Exit codes: 0 fits, 5 does not fit, 6 unknown, 2 bad input.")
@with_output_options
def preflight(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN",
            help="CSV or JSON with size and region, and if you like count, purchase (spot) and id; or what "
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
    if output.format is Format.table:
        _print_remarks(data)
    raise typer.Exit(_PREFLIGHT_CODES.get(data["verdict"], EXIT_UNKNOWN))


def _print_remarks(data: Record) -> None:
    print_line()
    for item in data["items"]:
        if item["verdict"] == "fits":
            continue
        name = " ".join(str(item[field]) for field in ("count", "size", "region") if item[field] is not None)
        line = item["id"] or f"line {item['index'] + 1}"
        print_text(f"{line}: {name}: {'; '.join(item['details'])}", indent="    ")
        if item["fits_in"]:
            print_text(f"    fits in {', '.join(item['fits_in'])}", indent="    ")
    for quota in data["quotas"]:
        for text in (quota["request"], quota["command"]):
            if text:
                print_text(text, indent="    ")
    print_text(_VERDICTS[data["verdict"]])


_WAY_COLUMNS = {
    **make_columns(purchase=0, usd_per_hour=1),
    "usd_total": Column(heading="USD in all", format=format_cents),
    "usd_per_month": Column(heading="USD/month", format=format_cents, rank=1),
    "saved_usd": Column(heading="saved", format=format_cents),
    "break_even_month": Column(heading="paid off in month"),
    "break_even_percent": Column(heading="beats on demand from", rank=2, format="{:g} %".format),
    "cheapest_from_percent": Column(heading="cheapest from", format="{:g} %".format),
    **make_columns(price_as_of=2, source_id=3),
}
_CONVERTED = {
    "usd_per_hour": "price_per_hour",
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
    rows = [_way_row(way) for way in answer["ways"]]
    columns = _WAY_COLUMNS
    if params.currency not in (None, USD):
        columns = {
            _CONVERTED.get(name, name): replace(column, heading=column.heading.replace(USD, str(params.currency)))
            for name, column in _WAY_COLUMNS.items()
        }
    if output.format is Format.table:
        windows = f"Windows{' with Azure Hybrid Benefit' if answer['hybrid_benefit'] else ''}"
        system = "Linux" if answer["os"] == "linux" else windows
        where = f"in {answer['region']}" if answer["region"] else "(no region has a price)"
        hours, months, count = format_value(answer["hours_per_month"]), answer["months"], answer["count"]
        vms = f"{count} VM{'s' if count > 1 else ''}"
        print_text(
            f"{answer['size']} {where}: {vms}, {system}, {months} month{'s' if months > 1 else ''} of {hours} hours"
        )
        print_line()
    print_rows(rows, columns, output, json_value=answer, objects=answer["ways"])
    print_no_price(answer)
    if output.format is Format.table:
        print_line()
        if answer["cheapest"]:
            unknown = f" Unknown: {', '.join(answer['unknown'])}." if answer["unknown"] else ""
            best = answer["cheapest_without_spot"]
            others = f", of those without evictions {best}" if best and best != answer["cheapest"] else ""
            print_text(f"Cheapest of the known ways: {answer['cheapest']}{others}.{unknown}")
        print_exchange_rate(answer.get("exchange_rate"))
        if answer["retirement_date"]:
            print_text(f"The size retires on {answer['retirement_date']}.")
        print_text(f"Assumed: {'; '.join(answer['assumptions'])}.")


def _way_row(way: Record) -> dict[str, Any]:
    """Return a way as a flat row, with its first price: the others are those of a licence."""
    price = flatten_converted(next(iter(way["prices"]), {}))
    plain = {name: value for name, value in flatten_converted(way).items() if name not in ("prices", "cumulative")}
    return plain | {name: price.get(name) for name in ("usd_per_hour", "price_per_hour", "price_as_of", "source_id")}
