"""The page of conflicts: each figure on which sources disagree, who says what, and why one value is accepted."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from pydantic import Field

from app.catalog.fields import field_title
from app.catalog.queries.disputes import DisputedFigure, DisputeFilter, find_disputes
from app.web.rendering import path_segment, render_page
from app.web.serving import PageContent, PageRequest, with_query
from app.web.size_fields import shown_value

_ROWS = 50


class ConflictsView(DisputeFilter):
    """Which figures, and which page of them."""

    page: int = Field(default=1, ge=1, le=10_000, description="Which page, from 1.")


async def render(request: PageRequest) -> str:
    """Render the page; without figures where a parameter is invalid."""
    view: ConflictsView = request.params
    first, conflicts = (view.page - 1) * _ROWS, None
    if not request.errors:
        conflicts = await request.executor.ask(find_disputes, view, offset=first, limit=_ROWS)
    fields = sorted((field_title(name), name, count) for name, count in conflicts.fields.items()) if conflicts else []
    sources = [(key, *about) for key, about in conflicts.sources.items()] if conflicts else []
    return render_page(
        request,
        "conflicts.html",
        found=conflicts,
        figures=[_figure(figure) for figure in conflicts.figures] if conflicts else [],
        first=first + 1,
        pages=ceil(conflicts.total / _ROWS) if conflicts else 0,
        fields=_options(view.field, [(name, f"{title} ({count})") for title, name, count in fields]),
        sources=_options(view.source, [(key, f"{title} ({count})") for key, title, count in sources]),
        json_url=with_query("conflicts", DisputeFilter(field=view.field, subject=view.subject)),
    )


def _options(chosen: str | None, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the options of a select; what is chosen is among them, also where nothing has it."""
    missing = [(chosen, chosen)] if chosen and chosen not in dict(pairs) else []
    return [("", "any"), *pairs, *missing]


def _figure(figure: DisputedFigure) -> dict[str, Any]:
    """Return a disputed figure as the page shows it; `path` is that of its page below the root."""
    paths = {
        "size": f"ui/sizes/{path_segment(figure.subject)}#sources",
        "price": f"ui/sizes/{path_segment(figure.subject)}#prices",
        "series": f"series/{path_segment(figure.subject)}",
    }
    by_value: dict[tuple[str, bool], list[Mapping[str, Any]]] = {}
    for fact in figure.facts:
        value, unit = fact["corrected_value"] or fact["value"], fact["unit"]
        value = f"{value} {unit}" if unit == "USD/h" else shown_value(value, unit)  # money is not rounded
        by_value.setdefault((value, fact["verdict"] != "disputed"), []).append(fact)
    return {
        "name": figure.name.removeprefix("Standard_"),
        "path": paths.get(figure.kind, f"conflicts?subject={path_segment(figure.subject)}"),
        "kind": figure.kind,
        "series": figure.series,
        "title": f"Price in {figure.where}" if figure.where else field_title(figure.field),
        "said": [(value, is_accepted, facts) for (value, is_accepted), facts in by_value.items()],
    }


PAGE = PageContent(params=ConflictsView, render=render)
