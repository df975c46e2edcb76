"""The page of coverage: for how many sizes each figure is known, and of which series it is not."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from app.catalog.fields import SIZE_GROUPS
from app.catalog.providers import PROVIDERS, ProviderId
from app.catalog.queries.params import PlainText, QueryParams, SizeFilter
from app.questions import answer
from app.web.filter_panel import value_of
from app.web.rendering import render_page
from app.web.serving import PageContent, PageRequest, with_query

_REASONS: Mapping[str, str] = {
    "no_page": "no documentation page was read",
    "not_stated": "its pages do not say",
    "stated_of_others": "its pages say so of other sizes only",
}
"""Why the figure of a series is unknown, by the code of the API."""


class CoverageView(QueryParams):
    """Which sizes are counted."""

    provider: ProviderId | None = Field(default=None, description="The cloud; default: all.")
    category: PlainText | None = Field(default=None, description="The type of size; default: all.")
    gpus: Literal["any", "none"] = Field(default="any", description="`none`: sizes without a GPU only.")


async def render(request: PageRequest) -> str:
    """Render the page; without figures where a parameter is invalid."""
    view: CoverageView = request.params
    given: dict[str, Any] = {"provider": view.provider, "category": view.category}
    chosen = {name: [value] for name, value in given.items() if value is not None}
    search = SizeFilter.model_validate(chosen | ({"max_gpus": 0} if view.gpus == "none" else {}))
    coverage = None
    if not request.errors:
        coverage = await request.executor.ask(answer, "GET /coverage", search)
    by_field = {item["field"]: item for item in coverage["items"]} if coverage else {}
    groups = [(group, [by_field[name] for name in names if name in by_field]) for group, names in SIZE_GROUPS.items()]
    categories = sorted({of["category"] for item in by_field.values() for of in item["categories"]} - {None})
    return render_page(
        request,
        "coverage.html",
        total=coverage["total"] if coverage else None,
        json_url=with_query("coverage", search),
        groups=[(group, rows) for group, rows in groups if any(row["total"] for row in rows)],
        reasons=_REASONS,
        providers=[("", "all"), *((provider.id, provider.name) for provider in PROVIDERS.values())],
        categories=[("", "all"), *((name, value_of("category", name)) for name in categories)],
    )


PAGE = PageContent(params=CoverageView, render=render)
