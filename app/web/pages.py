"""The pages, in the order of their routes."""

from app.web import search
from app.web.serving import Page

PAGES: tuple[Page, ...] = (search.PAGE,)
