"""Iterates over a list, item by item, through all of its pages."""

from collections.abc import Callable, Iterator, Sequence
from typing import ParamSpec, Protocol, TypeVar

from .models import Problem

Item_co = TypeVar("Item_co", covariant=True)
Params = ParamSpec("Params")


class Page(Protocol[Item_co]):
    """A page of a list."""

    @property
    def items(self) -> Sequence[Item_co]:
        """The items of this page."""

    @property
    def next_cursor(self) -> str | None:
        """The cursor of the next page; None on the last page."""


class Refused(Exception):
    """The service did not return a page; `problem` is the reason it gave, if any."""

    def __init__(self, problem: Problem | None) -> None:
        super().__init__(problem.detail if problem else "the response cannot be understood")
        self.problem = problem


def walk(
    list_page: Callable[Params, Page[Item_co] | Problem | None], *args: Params.args, **params: Params.kwargs
) -> Iterator[Item_co]:
    """Yield every item of a list: `walk(list_sizes.sync, client=client, gpu=["A100"])`; raises Refused.

    `limit` is the size of a page, and `cursor` the page to start from.
    """
    while True:
        page = list_page(*args, **params)
        if page is None or isinstance(page, Problem):
            raise Refused(page)
        yield from page.items
        if page.next_cursor is None:
            return
        params["cursor"] = page.next_cursor
