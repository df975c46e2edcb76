"""The pages, in the order of their routes."""

from app.web import (
    changes,
    compare,
    conflicts,
    explore,
    fit,
    retirement_plan,
    retirements,
    search,
    size_markdown,
    size_page,
)
from app.web.serving import Page

PAGES: tuple[Page, ...] = (
    search.PAGE,
    size_markdown.PAGE,  # before the page of a size, whose path has any name
    size_page.PAGE,
    size_page.MODELS_PAGE,
    compare.PAGE,
    fit.PAGE,
    changes.PAGE,
    conflicts.PAGE,
    retirements.PAGE,
    retirement_plan.PAGE,
    retirement_plan.CSV,
    explore.PAGE,
)
