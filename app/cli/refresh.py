"""Commands that fetch what is new from the vendor: `vmsizes refresh`, one command for each feed."""

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from app.catalog.money import USD_DECIMALS
from app.catalog.store.revisions import save_feed_run
from app.cli import context
from app.cli.jobs import RunOptions, outcome_json, parse_interval, print_reports, print_tables, repeat, with_run_options
from app.cli.options import Command, Group
from app.cli.output import EXIT_BAD_DATA, get_console, print_json, print_note
from app.cli.webhooks import deliver_after_refresh
from app.db.errors import WriterBusy
from app.db.writing import check_schema, write_session
from app.errors import BadData, FetchError
from app.ingest.registry import read_pages, relative_to
from app.ingest.run import IngestOutcome, ingest
from app.validation import plural

if TYPE_CHECKING:
    from app.ingest.feeds.fetching import PriceFeed
    from app.ingest.feeds.price_refresh import PriceRefresh
    from app.ingest.feeds.resource_skus import SkuApi, SkuMapper


@dataclass(slots=True, kw_only=True)
class FeedResult:
    """What the refresh of one feed did: lines to print, details for JSON, and what was refused with what to do."""

    feed: str
    headline: str
    lines: list[str] = field(default_factory=list)
    details: dict[str, object] = field(default_factory=dict)
    outcome: IngestOutcome | None = None
    refused: dict[str, Sequence[str]] = field(default_factory=dict)
    hints: list[str] = field(default_factory=list)


def summarize(results: Sequence[FeedResult]) -> str:
    """Return what a refresh did as one line: the headline of each feed, what it refused, and the newest revision."""
    parts = []
    for result in results:
        refused = [f"{', '.join(names)}: {'; '.join(reasons)}" for reasons, names in _by_reasons(result)]
        parts.append(" | refused: ".join([result.headline, *refused]))
    outcomes = [result.outcome for result in results if result.outcome]
    state = f"revision {outcomes[-1].revision['number']}" if outcomes else "nothing was written"
    failed = any(result.refused for result in results)
    return f"{'failed' if failed else 'refreshed'}: {'; '.join(parts)}; {state}"


def _by_reasons(result: FeedResult) -> list[tuple[tuple[str, ...], list[str]]]:
    """Return each list of reasons with the names of what was refused for them."""
    names: dict[tuple[str, ...], list[str]] = {}
    for name, reasons in result.refused.items():
        names.setdefault(tuple(reasons), []).append(name)
    return list(names.items())


def finish(results: Sequence[FeedResult], *, as_json: bool) -> None:
    """Print what each feed did and deliver it to webhooks; exit with the code for bad data if anything was refused."""
    for result in results:
        print_reports(result.outcome.summary.reports if result.outcome else ())
        level = logging.ERROR if result.refused else logging.INFO
        context.log_result("refreshed", _result_json(result), level=level)
    if as_json:
        print_json({"feeds": [_result_json(result) for result in results]})
    else:
        for result in results:
            _print_result(result)
    for result in results:
        for reasons, names in _by_reasons(result):
            print_note(f"refused: {', '.join(names)}: {'; '.join(reasons)}")
        for hint in result.hints:
            print_note(hint)
        if result.outcome is None or not result.outcome.written:
            print_note(f"{result.feed}: nothing was written.")
    if any(result.outcome and result.outcome.written for result in results):
        for text in deliver_after_refresh():  # one that fails does not make the refresh fail
            print_note(text)
    if any(result.refused for result in results):
        sys.exit(EXIT_BAD_DATA)


def _print_result(result: FeedResult) -> None:
    console = get_console("out")
    for line in (result.headline, *result.lines):
        console.print(line, markup=False, soft_wrap=True)
    if result.outcome:
        print_tables(result.outcome, console)


def _result_json(result: FeedResult) -> dict[str, object]:
    return {
        "feed": result.feed,
        **result.details,
        "refused": [{"name": name, "reasons": [*reasons]} for name, reasons in result.refused.items()],
        "ingest": outcome_json(result.outcome) if result.outcome else None,
    }


app = typer.Typer()
refresh_app = typer.Typer(
    cls=Group,
    help="Fetch the newest prices, sizes, pages and exchange rates; without a command, from every feed that is set up.",
    invoke_without_command=True,
)
app.add_typer(refresh_app, name="refresh")

Every = Annotated[
    int | None,
    typer.Option(
        parser=parse_interval,
        metavar="INTERVAL",
        help="Go on refreshing at this interval (90s, 30m, 24h, 7d), with one line a run, until SIGTERM.",
    ),
]
NewSizes = Annotated[
    bool, typer.Option("--new-sizes", help="Add sizes that only prices name instead of leaving them out.")
]
Accept = Annotated[bool, typer.Option("--accept", help="Take lists although they differ too much from the last.")]


def _run_feed(feed: str, run: RunOptions, refresh: Callable[[], FeedResult], given: Path | None = None) -> FeedResult:
    """Refresh a feed, and note in the database how that ended: one that failed leaves nothing else there.

    A `given` path that does not exist is a usage error and does not count as a failure of the feed.
    """
    check_schema(context.engine())  # before anything is fetched
    if given is not None and not given.exists():
        raise BadData("does not exist", file=str(given))
    try:
        result = refresh()
    except (BadData, FetchError):
        _note_run(feed, run, succeeded=False)
        raise
    _note_run(feed, run, succeeded=not result.refused)
    return result


def _note_run(feed: str, run: RunOptions, *, succeeded: bool) -> None:
    if run.dry_run:
        return
    with suppress(WriterBusy), write_session(context.engine()) as session:
        save_feed_run(session, feed, context.now(), succeeded=succeeded)


# Prices


Regions = Annotated[
    list[str] | None,
    typer.Option("--region", metavar="NAME", help="Only this region; can be repeated. (default: all of the catalog)"),
]
Url = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="A copy of the API. (default: that of the settings or the vendor)",
        show_default=False,
    ),
]
File = Annotated[Path | None, typer.Option(help="Read saved pages, a file or a folder of them, and fetch nothing.")]
Day = Annotated[
    datetime | None,
    typer.Option(
        formats=["%Y-%m-%d"],
        metavar="YYYY-MM-DD",
        help="The day on which the saved pages were fetched. (default: today)",
    ),
]
Cache = Annotated[
    Path | None, typer.Option(help="Folder for fetched pages. (default: VMSIZES_FEEDS, else beside the database)")
]
Concurrency = Annotated[int, typer.Option(min=1, max=16, metavar="1-16", help="Regions that are fetched side by side.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceCommand:
    """A command that refreshes prices: its help, its reader as `module:name`, and the settings that it takes."""

    help: str
    api: str
    url_setting: str = ""
    key_setting: str = ""
    key_header: str = ""


PRICE_COMMANDS: Mapping[str, PriceCommand] = {
    "azure-prices": PriceCommand(
        help="Fetch the prices of all sizes from the Azure Retail Prices API: six ways to buy, for Linux and Windows.",
        api="azure_prices:AZURE_PRICES",
        url_setting="azure_prices_url",
    ),
    "aws-prices": PriceCommand(
        help="Fetch the price list of Amazon EC2, region by region: on demand and reserved, for Linux and Windows.",
        api="aws_prices:AWS_PRICES",
    ),
    "gcp-prices": PriceCommand(
        help="Fetch the prices of cores, memory and GPUs from Google's Billing Catalog, and add up those of each type.",
        api="part_prices:GCP_PRICES",
        key_setting="gcp_key",
        key_header="x-goog-api-key",
    ),
    "oci-prices": PriceCommand(
        help="Fetch Oracle's price list, and add up the parts of each shape.", api="part_prices:OCI_PRICES"
    ),
}
"""The feeds of prices: a cloud is a row here, and a reader."""


def _add_price_command(name: str, command: PriceCommand) -> None:
    @refresh_app.command(name, cls=Command, help=command.help)
    @with_run_options
    def refresh_prices(
        *,
        region: Regions = None,
        url: Url = "",
        file: File = None,
        day: Day = None,
        cache: Cache = None,
        concurrency: Concurrency = 4,
        accept: Accept = False,
        new_sizes: NewSizes = False,
        run: RunOptions,
    ) -> None:
        context.use_wait(run.wait)
        if day and not file:
            raise typer.BadParameter("--day is of saved pages: it needs --file")
        read_on = context.past_day(day) or context.today()
        if file and (url or cache):
            raise typer.BadParameter("--file fetches nothing: it cannot be given with --url or --cache")
        if command.key_setting and not file and not _key(command):
            raise typer.BadParameter(f"give --file, or set VMSIZES_{command.key_setting.upper()}")
        context.require_catalog()
        as_set_up = _price_feed(name, accept=accept)
        feed = replace(
            as_set_up,
            url=url or as_set_up.url,
            cache=cache or as_set_up.cache,
            file=file,
            regions=tuple(region or ()),
            concurrency=concurrency,
            new_sizes=new_sizes,
        )
        finish([_run_feed(name, run, lambda: _refresh_prices(feed, read_on, run), file)], as_json=run.as_json)


for _name, _command in PRICE_COMMANDS.items():
    _add_price_command(_name, _command)


def _key(command: PriceCommand) -> str:
    secret = getattr(context.settings(), command.key_setting) if command.key_setting else None
    return secret.get_secret_value() if secret else ""


def _price_feed(name: str, *, accept: bool) -> "PriceFeed":
    """Return a feed of prices as it is set up."""
    from app.ingest.feeds.fetching import PriceFeed

    command, settings = PRICE_COMMANDS[name], context.settings()
    module, _, variable = command.api.partition(":")
    return PriceFeed(
        api=getattr(import_module(f"app.ingest.feeds.{module}"), variable),
        url=getattr(settings, command.url_setting) if command.url_setting else "",
        headers={command.key_header: key} if (key := _key(command)) else {},
        cache=context.feeds_folder(),
        seeds=settings.seeds,
        accept=accept,
    )


def _refresh_prices(feed: "PriceFeed", day: date, run: RunOptions) -> FeedResult:
    from app.ingest.feeds.price_refresh import run_price_refresh

    with run.writing() as options:
        refresh, outcome = run_price_refresh(context.engine(), feed, day=day, **options)
    return _to_result(refresh, outcome, feed.file)


def _to_result(refresh: "PriceRefresh", outcome: IngestOutcome | None, file: Path | None) -> FeedResult:
    """Return what a refresh of prices did, with what to do about the regions that were refused."""
    name, regions = refresh.api.command, len(refresh.lists) + len(refresh.refused)
    result = FeedResult(
        feed=name,
        headline=f"{name} of {refresh.day}: {len(refresh.lists)} of {plural(regions, 'region')}, "
        f"{plural(refresh.prices, 'price')} from {plural(refresh.items, 'item')}"
        + (f", {len(refresh.held):,} held back" if refresh.held else ""),
        lines=[*_to_lines(refresh)],
        details={
            "day": refresh.day,
            "regions": len(refresh.lists),
            "items": refresh.items,
            "prices": refresh.prices,
            "left_out": {str(reason): number for reason, number in sorted(refresh.left_out.items())},
            "not_read": refresh.reported,
            "held_back": [
                {
                    "region": price.region,
                    "size": price.size,
                    "os": price.os,
                    "purchase": price.purchase,
                    "old_usd_per_hour": Decimal(price.old_nano).scaleb(-USD_DECIMALS),
                    "new_usd_per_hour": Decimal(price.new_nano).scaleb(-USD_DECIMALS),
                }
                for price in refresh.held
            ],
            "unmatched": {"prices": refresh.unmatched.total(), "sizes": sorted(refresh.unmatched)},
        },
        outcome=outcome,
        refused={refused.region: refused.reasons for refused in refresh.refused},
    )
    saved = ["--file", quote(str(file)), f"--day {refresh.day}"] if file else []
    for remedy, hint in (
        ("accept", f"To take the refused lists as they are: vmsizes refresh {name} --accept"),
        ("fetch", f"To fetch again what failed: vmsizes refresh {name}"),
    ):
        names = [refused.region for refused in refresh.refused if refused.remedy == remedy]
        if names and (remedy == "accept" or not file):
            chosen = names if len(names) < regions or regions == 1 else []
            result.hints.append(" ".join([hint, *(f"--region {region}" for region in chosen), *saved]))
    return result


_NAMES = 20
"""How many names of unmatched sizes are printed; --json has all."""


def _to_lines(refresh: "PriceRefresh") -> Iterator[str]:
    """Yield what was left out, and the names that are no sizes of the catalog."""
    if refresh.left_out:
        parts = (f"{number:,} {reason}" for reason, number in sorted(refresh.left_out.items()))
        yield f"left out: {', '.join(parts)}"
    if names := sorted(refresh.unmatched):
        more = [f"{len(names) - _NAMES:,} more"] if len(names) > _NAMES else []
        yield (
            f"unmatched: {plural(refresh.unmatched.total(), 'price')} of {plural(len(names), 'size')} that the catalog "
            f"does not have, to be taken with --new-sizes: {', '.join([*names[:_NAMES], *more])}"
        )


# Sizes

SkuFile = Annotated[
    Path | None, typer.Option("--file", help="An answer of the API or of `az vm list-skus --all`, or a folder of them.")
]


@refresh_app.command("azure-skus", cls=Command)
@with_run_options
def azure_skus(
    *,
    file: SkuFile = None,
    url: Annotated[str, typer.Option(help="A copy of the API. (default: the API)", show_default=False)] = "",
    accept: Accept = False,
    run: RunOptions,
) -> None:
    """Read what the Resource SKUs API says of sizes: a saved answer, or that of a subscription with a token."""
    context.use_wait(run.wait)
    settings = context.settings()
    if file and url:
        raise typer.BadParameter("--file fetches nothing: it cannot be given with --url")
    if not file and not (settings.azure_subscription and settings.azure_token.get_secret_value()):
        raise typer.BadParameter("give --file, or set VMSIZES_AZURE_SUBSCRIPTION and VMSIZES_AZURE_TOKEN")
    context.require_catalog()
    result = _run_feed("azure-skus", run, lambda: _refresh_skus(file, url, run, accept=accept), file)
    finish([result], as_json=run.as_json)


def _refresh_skus(file: Path | None, url: str, run: RunOptions, *, accept: bool) -> FeedResult:
    from app.ingest.feeds.resource_skus import API_URL, SOURCE_ID, SkuApi, SkuMapper

    settings = context.settings()
    api = SkuApi(
        subscription=settings.azure_subscription,
        token=settings.azure_token.get_secret_value(),
        folder=context.feeds_folder() / SOURCE_ID,
        url=url or API_URL,
    )
    return _refresh_sizes("azure-skus", file or api, SkuMapper, run, accept=accept)


def _refresh_sizes(
    feed: str, origin: "Path | SkuApi", mapper: "type[SkuMapper]", run: RunOptions, *, accept: bool
) -> FeedResult:
    from app.ingest.feeds.resource_skus import run_sku_refresh

    with run.writing() as options:
        refresh, outcome = run_sku_refresh(
            context.engine(), origin, mapper, day=context.today(), accept=accept, **options
        )
    saved = f" --file {quote(str(origin))}" if isinstance(origin, Path) else ""
    return FeedResult(
        feed=feed,
        headline=f"{feed} of {context.today()}: {plural(refresh.sizes, 'size')}, "
        f"{plural(refresh.facts, 'fact')} from {plural(refresh.entries, 'entry').replace('entrys', 'entries')}",
        details={"day": context.today(), "entries": refresh.entries, "sizes": refresh.sizes, "facts": refresh.facts},
        outcome=outcome,
        refused={feed: (refresh.refused,)} if refresh.refused else {},
        hints=[f"To take it as it is: vmsizes refresh {feed} --accept{saved}"] if refresh.refused else [],
    )


@refresh_app.command("aws-types", cls=Command)
@with_run_options
def aws_types(
    *,
    file: Annotated[Path, typer.Option("--file", help="What `aws ec2 describe-instance-types` printed, or a folder.")],
    accept: Accept = False,
    run: RunOptions,
) -> None:
    """Read what Amazon's DescribeInstanceTypes says of sizes, from a saved answer."""
    from app.ingest.feeds.aws_types import TypeMapper

    context.use_wait(run.wait)
    context.require_catalog()
    result = _run_feed(
        "aws-types", run, lambda: _refresh_sizes("aws-types", file, TypeMapper, run, accept=accept), file
    )
    finish([result], as_json=run.as_json)


# Exchange rates


@refresh_app.command("exchange-rates", cls=Command)
@with_run_options
def exchange_rates(
    *,
    url: Annotated[
        str,
        typer.Option(
            help="A copy of the Bank's file. (default: VMSIZES_EXCHANGE_RATES_URL, else the Bank's)", show_default=False
        ),
    ] = "",
    file: Annotated[
        Path | None, typer.Option(help="Read a saved eurofxref-hist.zip, eurofxref.zip or CSV, and fetch nothing.")
    ] = None,
    run: RunOptions,
) -> None:
    """Fetch the euro reference rates of the European Central Bank, of the days that the catalog lacks."""
    context.use_wait(run.wait)
    if file and url:
        raise typer.BadParameter("--file fetches nothing: it cannot be given with --url")
    context.require_catalog()
    finish([_run_feed("exchange-rates", run, lambda: _refresh_rates(run, url, file), file)], as_json=run.as_json)


def _refresh_rates(run: RunOptions, url: str = "", file: Path | None = None) -> FeedResult:
    from app.ingest.feeds.exchange_rates import HISTORY_URL, run_rate_refresh

    url = url or context.settings().exchange_rates_url or HISTORY_URL
    with run.writing() as options:
        refresh = run_rate_refresh(context.engine(), url=url, file=file, **options)
    days = refresh.days
    until = f" until {days[-1]}" if days else ""
    return FeedResult(
        feed="exchange-rates",
        headline=f"exchange-rates: {plural(refresh.rates, 'rate')} of {plural(len(days), 'new day')}{until}",
        details={"days": len(days), "rates": refresh.rates, "newest_day": days[-1] if days else None},
        outcome=refresh.outcome,
    )


# Pages


@refresh_app.command("azure-docs", cls=Command)
@with_run_options
def azure_docs(
    folder: Annotated[
        Path | None, typer.Argument(help="A checkout of Azure's documentation. (default: VMSIZES_AZURE_DOCS)")
    ] = None,
    *,
    run: RunOptions,
) -> None:
    """Read the pages about sizes in a checkout of Azure's documentation, with the files that they include."""
    context.use_wait(run.wait)
    folder = folder or context.settings().azure_docs
    if folder is None:
        raise typer.BadParameter("give the folder of a checkout, or set VMSIZES_AZURE_DOCS")
    finish([_run_feed("azure-docs", run, lambda: _refresh_docs(folder, run), folder)], as_json=run.as_json)


_PAGES_OF_SIZES = "articles/virtual-machines/sizes"
"""Where a checkout of azure-compute-docs has its pages about sizes."""


def _refresh_docs(folder: Path, run: RunOptions) -> FeedResult:
    pages = folder / _PAGES_OF_SIZES
    with run.writing() as options:
        paths = [pages if pages.is_dir() else folder]
        read = read_pages(paths, context.settings().seeds, progress=options["progress"])
        reading = relative_to(folder, read)
        outcome = ingest(context.engine(), reading, **options)
    return FeedResult(
        feed="azure-docs",
        headline=f"azure-docs: {plural(len(reading.facts), 'fact')} from {plural(len(reading.sources), 'page')}",
        details={"facts": len(reading.facts), "pages": len(reading.sources)},
        outcome=outcome,
    )


# All feeds


@refresh_app.callback()
@with_run_options
def refresh_all(ctx: typer.Context, *, accept: Accept = False, every: Every = None, run: RunOptions) -> None:
    """Refresh every feed that is set up; one that fails does not stop the others."""
    if ctx.invoked_subcommand:
        if every:
            raise typer.BadParameter("--every refreshes every feed that is set up: it cannot be given with one feed")
        if accept or run != RunOptions():
            raise typer.BadParameter(f"give options behind the feed: vmsizes refresh {ctx.invoked_subcommand} …")
        return
    context.use_wait(run.wait)
    if every:
        if accept or run.as_json:
            raise typer.BadParameter("--every prints lines and accepts no list: give neither --json nor --accept")
        context.engine()  # a wrong setting ends the command instead of failing each run
        quiet = replace(run, quiet=True)
        repeat(lambda: "; ".join([summarize(_refresh_feeds(quiet, accept=False)), *deliver_after_refresh()]), every)
    finish(_refresh_feeds(run, accept=accept), as_json=run.as_json)


def _refresh_feeds(run: RunOptions, *, accept: bool) -> list[FeedResult]:
    """Refresh every feed that is set up; one that fails has a result that says so."""
    results = []
    for feed, refresh in _feeds(run, accept=accept):
        try:
            results.append(_run_feed(feed, run, refresh))
        except (BadData, FetchError, WriterBusy) as error:
            results.append(FeedResult(feed=feed, headline=f"{feed}: failed", refused={feed: (str(error),)}))
    return results


def _feeds(run: RunOptions, *, accept: bool) -> Iterator[tuple[str, Callable[[], FeedResult]]]:
    """Yield the feeds that are set up: sizes need a token, documentation a checkout, the others nothing.

    Prices of other clouds than Azure are left out: of AWS they are 10 GB.
    """
    feed = _price_feed("azure-prices", accept=accept)
    yield "azure-prices", lambda: _refresh_prices(feed, context.today(), run)
    yield "exchange-rates", lambda: _refresh_rates(run)
    settings = context.settings()
    if settings.azure_subscription and settings.azure_token.get_secret_value():
        yield "azure-skus", lambda: _refresh_skus(None, "", run, accept=accept)
    if folder := settings.azure_docs:
        yield "azure-docs", lambda: _refresh_docs(folder, run)
