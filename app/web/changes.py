"""The page of changes: what each ingest changed, the newest first, as the feeds report it."""

from typing import Any, get_args

from app.catalog.fields import CHANGE_KINDS, SIZE_FIELDS
from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.changes import (
    MAX_LINES,
    ChangeFilter,
    ChangeSearch,
    find_changes,
    find_past_changes,
    find_revision_changes,
)
from app.catalog.queries.params import Os
from app.web.filter_panel import Choice
from app.web.rendering import PURCHASE_TITLES, render_page
from app.web.serving import PageContent, PageRequest, with_query

_TONES = {"price_up": "bad", "price_down": "good", "size_gone": "warn", "retirement_announced": "warn"}
"""The colour of a kind, which also has a word; of other kinds there is none."""


async def render(request: PageRequest) -> str:
    """Render the page; without events where a parameter is invalid."""
    from app.formats.feeds import KINDS

    filters: ChangeFilter = request.params
    listing, revisions = None, []
    if not request.errors:  # the listing has the number of events, and the day from which they are known
        listing = await request.executor.ask(find_changes, filters.as_params(ChangeSearch, limit=1))
        revisions = await request.executor.ask(find_revision_changes, filters)
    nothing = listing is not None and not revisions and not filters.model_fields_set
    past = await request.executor.ask_once("past changes", find_past_changes) if nothing else {}
    return render_page(
        request,
        "changes.html",
        listing=listing,
        revisions=revisions,
        past=past,
        shown=sum(len(revision.events) for revision in revisions),
        max_lines=MAX_LINES,
        kinds=KINDS,
        tones=_TONES,
        all_kinds=[Choice(kind, KINDS[kind][1].capitalize(), None, kind in filters.kind) for kind in CHANGE_KINDS],
        purchases=[("", "any"), *((name, PURCHASE_TITLES[name]) for name in PURCHASE_MODELS)],
        systems=[("", "any"), *((name, name.capitalize()) for name in get_args(Os))],
        feeds={kind: with_query(f"changes{kind}", filters) for kind in (".atom", ".json", "")},
        value=_value,
    )


def _value(event: dict[str, Any], name: str) -> str | None:
    """Return what was or is, with its unit."""
    value: str | None = event[name]
    if value is None:
        return "unknown" if event["kind"] == "field_changed" else None
    unit = (
        "USD an hour" if event["region"] else SIZE_FIELDS[event["field"]].unit if event["field"] in SIZE_FIELDS else ""
    )
    said_once = name == "old" and event["new"] is not None
    return f"{value}\u00a0{unit}" if unit and unit != "count" and not said_once else value


PAGE = PageContent(params=ChangeFilter, render=render)
