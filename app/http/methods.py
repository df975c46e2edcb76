"""Which methods a path takes: what Allow says for 405 and for OPTIONS."""

from collections.abc import Iterable

from starlette.routing import BaseRoute, Match
from starlette.types import Scope


def allowed_methods(routes: Iterable[BaseRoute], scope: Scope) -> str:
    """The methods of every route of a path, GET where none of them is its own; HEAD goes with GET."""
    taken = {"GET"}
    matching = [route for route in routes if route.matches(scope)[0] is not Match.NONE]
    if matching:
        taken = {method for route in matching for method in getattr(route, "methods", None) or ("GET",)}
    with_head = taken | ({"HEAD"} if "GET" in taken else set())
    return ", ".join(method for method in ("GET", "HEAD", "POST", "OPTIONS") if method in {*with_head, "OPTIONS"})
