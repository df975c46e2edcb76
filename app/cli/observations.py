"""Commands that take in what vendors say of capacity, for one holder of an API key: `vmsizes observations …`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from app.api_keys import KEY_NAME
from app.cli import context
from app.cli.options import Command, Group
from app.cli.output import (
    OutputOptions,
    exit_with_nothing,
    make_columns,
    print_json,
    print_note,
    print_rows,
    print_text,
    read_text_file,
    with_output_options,
)
from app.errors import BadQuery, NotFound
from app.validation import plural

app = typer.Typer()
observations_app = typer.Typer(
    cls=Group,
    help="Take in what vendors say of capacity; it is shown to one holder of an API key, until it expires.",
    no_args_is_help=True,
)
app.add_typer(observations_app, name="observations")

Scope = Annotated[str, typer.Option("--as", metavar="NAME", help="The name of the API key whose holder sees it.")]
_SOURCES = make_columns(scope=0, source=0, observations=0, observed_at=0, expires_at=0)
_OBSERVED = make_columns(kind=0, value=0, region=0, zone=1, note=1, age_hours=0, expires_at=2, source=3)


@observations_app.command("import", cls=Command)
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="JSON of `az compute-recommender spot-placement-score`, `az graph query` of SpotResources, `aws ec2 "
            "get-spot-placement-scores`, or Google's advice/capacity.",
        ),
    ],
    *,
    scope: Scope,
    size: Annotated[
        list[str] | None,
        typer.Option(metavar="SIZE", help="A size that AWS was asked about, whose answer names none; may be repeated."),
    ] = None,
    source: Annotated[str, typer.Option(help="A name for it. (default: that of the file)")] = "",
    observed_at: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M"],
            metavar="YYYY-MM-DDTHH:MM",
            help="When the vendor said so, UTC. (default: when the file was written)",
        ),
    ] = None,
    hours: Annotated[
        int | None,
        typer.Option(min=1, max=24 * 365, help="For how long it counts. (default: scores 24, eviction rates 168)"),
    ] = None,
) -> None:
    """Take in what a vendor's command printed; what was taken in under the same name before is replaced."""
    from app.catalog.queries.snapshot import Catalog, load_snapshot
    from app.converters.observations import read_observations
    from app.db.writing import write_session
    from app.services.observations import save_observations

    if not KEY_NAME.fullmatch(scope):
        allowed = "must be the name of an API key: letters, digits, `_`, `.` and `-`, at most 64"
        raise BadQuery("--as", scope, allowed)
    new = read_observations(read_text_file(file), str(file), size or ())
    at = (observed_at or datetime.fromtimestamp(file.stat().st_mtime, UTC)).replace(tzinfo=UTC, microsecond=0)
    if at > context.now():
        raise BadQuery("--observed-at", at.isoformat(), "is later than now")
    context.use_wait(None)
    with write_session(context.engine()) as session:
        catalog = Catalog(session, load_snapshot(session), context.today())
        named = source or file.name
        saved = save_observations(session, catalog, new, scope=scope, source=named, observed_at=at, hours=hours)
        if saved.unknown_sizes and (size or not saved.has_known_size):  # raised in here, it leaves what was there
            detail = f"the catalog does not have {_some(saved.unknown_sizes)}; nothing was taken in"
            raise BadQuery("--size" if size else str(file), None, detail)
    print_text(f"{named}: {plural(len(new), 'observation')} of {at:%Y-%m-%d %H:%M} UTC, for {scope}.")
    if ended := [expires_at for expires_at in saved.expires_at if expires_at <= context.now()]:
        verb, count = ("has", "1") if len(ended) == 1 else ("have", f"{len(ended):,}")
        print_note(
            f"Of these {count} {verb} expired, the last at {max(ended):%Y-%m-%d %H:%M} UTC, and so "
            f"{'is' if len(ended) == 1 else 'are'} not shown; --observed-at and --hours can say otherwise."
        )
    if saved.unknown_sizes:
        print_note(f"The catalog does not have {_some(saved.unknown_sizes)}: what was said of that is not shown.")
    if saved.unknown_regions:
        print_note(f"The catalog has no region {_some(saved.unknown_regions)}: check how that is written.")
    if scope not in {key.name for key in context.settings().load_api_keys()}:
        print_note(f"No API key here is named {scope}: the service shows them to its holder only.")


def _some(names: Sequence[str]) -> str:
    return names[0] + (f" and {plural(len(names) - 1, 'other')}" if len(names) > 1 else "")


@observations_app.command("list", cls=Command)
@with_output_options
def list_(
    size: Annotated[str | None, typer.Argument(metavar="[SIZE]", help="What still counts of a size.")] = None,
    *,
    scope: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Whose; needed with a size. (default: all)")
    ] = None,
    output: OutputOptions,
) -> None:
    """List what was taken in, by name; of a size, what vendors said of it and still counts."""
    from app.services.observations import find_observations, list_observation_sources

    if size is None:
        with context.reader() as reader:
            rows = list_observation_sources(reader, scope)
        times = ({name: f"{row[name]:%Y-%m-%dT%H:%M:%SZ}" for name in ("observed_at", "expires_at")} for row in rows)
        print_rows([row | more for row, more in zip(rows, times, strict=True)], _SOURCES, output)
        if not rows:
            exit_with_nothing()
        return
    if scope is None:
        raise BadQuery("--as", None, "is needed with a size: whose observations are meant")
    found = context.inquire(
        lambda inquiry: find_observations(inquiry.catalog, size, scope, context.now()).model_dump(mode="json")
    )
    print_rows(found["items"], _OBSERVED, output, json_value=found)
    if not found["items"]:
        exit_with_nothing()


@observations_app.command(cls=Command)
def forget(
    source: Annotated[str | None, typer.Argument(metavar="[SOURCE]", help="A name, as `list` has it.")] = None,
    *,
    scope: Scope,
    everything: Annotated[bool, typer.Option("--all", help="All that was taken in for the holder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Take back what was taken in under a name, or all of a holder."""
    from app.db.writing import write_session
    from app.services.observations import forget_observations, list_observation_sources

    if (source is None) is not everything:
        raise BadQuery("SOURCE", source, "give a name, or --all")
    context.use_wait(None)
    with write_session(context.engine()) as session:
        if not (count := forget_observations(session, scope, source)) and source is not None:
            there = ", ".join(row["source"] for row in list_observation_sources(session, scope)) or "none"
            raise NotFound("source of observations", source, hint=f"Of {scope} there are: {there}.")
    if as_json:
        print_json({"forgotten": count})
        return
    print_text(f"{plural(count, 'observation')} forgotten.")
