"""The pages, in the order of their routes."""

from app.web import changes, compare, explore, fit, search, size_page
from app.web.serving import Page

PAGES: tuple[Page, ...] = (
    search.PAGE,
    size_page.PAGE,
    size_page.MODELS_PAGE,
    compare.PAGE,
    fit.PAGE,
    changes.PAGE,
    explore.PAGE,
)
