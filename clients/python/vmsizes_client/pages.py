"""Walks a list: every page of it, item by item."""

from collections.abc import Callable, Iterator, Sequence
from typing import ParamSpec, Protocol, TypeVar

from .models import Problem

Item_co = TypeVar("Item_co", covariant=True)
Asked = ParamSpec("Asked")


class Page(Protocol[Item_co]):
    """A page of a list."""

    @property
    def items(self) -> Sequence[Item_co]:
        """What is on the page."""

    @property
    def next_cursor(self) -> str | None:
        """Where the next page begins; None on the last."""


class Refused(Exception):
    """The service did not answer with a page; `problem` says why, where it could."""

    def __init__(self, problem: Problem | None) -> None:
        super().__init__(problem.detail if problem else "the answer cannot be understood")
        self.problem = problem


def walk(
    ask: Callable[Asked, Page[Item_co] | Problem | None], *args: Asked.args, **question: Asked.kwargs
) -> Iterator[Item_co]:
    """Give every item of a list: `walk(list_sizes.sync, client=client, gpu=["A100"])`; raises Refused.

    `limit` is how many are fetched at a time, and a `cursor` is where the walk begins.
    """
    while True:
        page = ask(*args, **question)
        if page is None or isinstance(page, Problem):
            raise Refused(page)
        yield from page.items
        if page.next_cursor is None:
            return
        question["cursor"] = page.next_cursor
