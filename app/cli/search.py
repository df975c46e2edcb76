"""The command that finds sizes: `vmsizes search`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.catalog.queries.lookups import GpuNames, closest_gpus, resolve_gpus
from app.catalog.queries.params import SizeSearch
from app.cli import context, options
from app.cli.options import Command, Receipt, parse_gpu_and_count, parse_params, query_options
from app.cli.output import (
    Column,
    OutputOptions,
    Record,
    flatten_converted,
    in_currency,
    make_columns,
    print_page,
    with_list_prices,
    with_output_options,
    with_price_notes,
)
from app.errors import BadQuery
from app.nearest import did_you_mean

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
    nothing = "Nothing matches." if undecided is None else f"Nothing is known to match; {undecided}."
    notes = [page["no_price"]["detail"]] if "no_price" in page else []
    notes += [undecided] if undecided is not None and page["total"] else []
    print_page(
        page, columns, output, rows=rows, notes=[f"{note}." for note in notes], nothing=" ".join([nothing, *meant])
    )


def _size_columns(purchase: str) -> Mapping[str, Column]:
    """Return the columns of a search: the price of a reservation or savings plan comes before the others."""
    if f"{purchase}_as_of" in SIZE_COLUMNS:
        return SIZE_COLUMNS
    heading = f"{purchase.replace('_', ' ')} USD/h"
    return {"name": SIZE_COLUMNS["name"], f"{purchase}_usd_per_hour": Column(heading=heading)} | SIZE_COLUMNS


def _add_search_words(names: GpuNames, words: Sequence[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """Add the words of a search to its options: names of GPUs to `gpu`, other words to `q`.

    Several words that name one GPU together (`RTX PRO 6000`) are that GPU. Raises BadQuery for `X:8` where X is no GPU,
    and for two different numbers of GPUs.
    """
    added = dict(values)
    parts = [parse_gpu_and_count(one) for word in words for one in word.split(",") if one.strip()]
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
        for bound in ("min_gpus", "max_gpus"):
            if added[bound] not in (None, count):
                conflict = f"says {count} GPUs, but {added[bound]} are asked for elsewhere"
                raise BadQuery("GPU", f"{word}:{count}", conflict)
            added[bound] = count
    return added


def _gpus_meant(names: GpuNames, words: Sequence[str]) -> list[str]:
    """Return a sentence for each word of a search that is no GPU, but near one."""
    unknown = [word for word in words if not _is_gpu(names, word)]
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
