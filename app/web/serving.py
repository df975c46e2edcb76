"""Serves pages: strict parsing of their query, clean URLs, errors at the fields, security headers, the response cache.

A page is rendered from its validated parameters alone. Invalid ones are dropped, and the page is rendered from the
others with the API's message at each field, with status 422; a page that cannot be rendered, or has more errors than
are listed, becomes an error page.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, quote

from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute, Match, Route, compile_path
from starlette.types import Scope

from app.api.executor import QueryExecutor
from app.catalog.providers import PROVIDERS
from app.catalog.queries.params import QueryParams
from app.errors import NotFound
from app.http.canonical import CacheableEndpoint, clean_query, is_clean, parse_pairs, to_query_text
from app.http.common_headers import PAGE_HEADERS
from app.http.headers import HOLDER, HOME, PUBLIC_URL, accepts_html, parse_headers
from app.http.problems import HANDLERS
from app.validation import MAX_ERRORS, decode_text
from app.web.assets import assets
from app.web.rendering import render_template

_UNPROCESSABLE = 422
MAX_FIELDS = 1_000
"""The most parameters of a page, in a URL or a form; the longest form has some hundred fields."""

_MAX_URL = 7_500
"""A link with a longer query might be refused: servers and proxies take 8 KiB."""

PRICE_NAMES = ("region", "os", "purchase", "currency", "unit")
"""The parameters of the bar of prices; they have the same defaults on all pages."""

_PLACES_AND_DAYS = ("country", "continent", "as_of", "known_at")
"""The other parameters that say which prices are meant."""

_HOW_IT_IS_SHOWN = {"currency", "unit", "per", "columns", "sort", "limit"}

_PARAMETER = re.compile(r"^([\w.]+)=(.*?):(?= )", re.DOTALL)
_BOUNDARY = re.compile(r'multipart/form-data; *boundary="?([^";]{1,70})"?', re.IGNORECASE)
_PART_NAME = re.compile(r'; *name="([^"]*)"')
_LISTED_BY_API = re.compile(r"GET /\w+ (?:lists (?:them|all)|says where each region is).*")
_NOT_OF_CLOUD = re.compile(r"not of provider=(\S+)$")
_MANY_ALLOWED = re.compile(r"(allowed are (?:[^,;]+, ){8})((?:[^,;]+, )+[^,;]+)")
_LONG_WORD = re.compile(r"(\S{60})\S+")
"""A value of a message that is cut: its field has the whole."""

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """What a page is rendered from.

    `params` holds the valid parameters, `errors` the message for each one that was invalid, `given` the values as they
    were sent, which fields of a form show. `names` are the parameters of the path, `root` is the relative URL of `/`;
    `public_url` is empty if it is not known; `origin`, for examples, is the address on this machine then. `holder` is
    that of the API key, which all requests have if the service has keys; only a private page may show who it is.
    """

    executor: QueryExecutor
    path: str
    root: str
    public_url: str
    origin: str
    params: Any
    holder: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    given: Pairs = ()

    def url(self, **changes: object) -> str:
        """Return the URL of this page with other parameters; None and defaults are left out."""
        return page_url(self.path, self.params, **changes)

    def link(self, **changes: object) -> str:
        """Return that URL if it is short enough for a link, else an empty text."""
        url = self.url(**changes)
        return url if len(url) <= _MAX_URL else ""

    def query(self, **changes: object) -> str:
        """Return the part of that URL from the question mark on; empty without parameters."""
        _, mark, query = self.url(**changes).partition("?")
        return mark + query

    def defaults(self) -> dict[str, str]:
        """Return the parameters that have a default, as text: what a form need not send."""
        fields = {
            name: field.default for name, field in type(self.params).model_fields.items() if not field.is_required()
        }
        return {name: to_query_text(default) for name, default in fields.items() if default not in (None, ())}

    def price_names(self) -> list[str]:
        """Return the parameters of the bar of prices, which a browser remembers; none on a page without prices."""
        fields = type(self.params).model_fields
        return [name for name in PRICE_NAMES if name in fields] if "os" in fields and fields["os"].default else []

    def only_prices(self) -> str:
        """Return the URL of this page with its prices as they are, and nothing else."""
        kept = self.price_names()
        return self.url(**{name: None for name in self.params.model_fields_set if name not in kept})

    def carried_names(self) -> list[str]:
        """Return the parameters that say which prices are meant, also on a page that this one leads to."""
        fields = type(self.params).model_fields
        return [*self.price_names(), *(name for name in _PLACES_AND_DAYS if name in fields)]

    def prices(self, *left_out: str) -> str:
        """Return the query that a link to another page carries, from the question mark on; empty without parameters."""
        kept = {*self.carried_names()}.difference(left_out)
        return self.query(**dict.fromkeys(self.params.model_fields_set - kept))

    def canonical(self) -> str:
        """Return the one public URL of what the page shows, however it is sorted, counted or priced."""
        return (
            self.public_url
            + self.path
            + self.query(**dict.fromkeys(_HOW_IT_IS_SHOWN & type(self.params).model_fields.keys()))
        )

    def has_field(self, name: str) -> bool:
        """Return whether the page has a parameter of this name, for which a form may have a field."""
        return name in type(self.params).model_fields

    def text(self, name: str) -> str:
        """Return the text of a field of a form: what was sent if it is invalid, else the parameter, defaults too."""
        if name in self.errors:
            return ",".join(value for given, value in self.given if given == name)
        value = getattr(self.params, name)
        return "" if value is None else to_query_text(list(value) if isinstance(value, tuple) else value)


class Rewritten(Exception):  # no error
    """The parameters of a page are better written otherwise, or those of another page: it redirects to these."""

    def __init__(self, params: BaseModel, page: str = "") -> None:
        self.params, self.page = params, page


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContent:
    """What is at a page: the model of its query, and what renders it to HTML.

    With `media_type` it renders text or bytes of that type instead; with `file_name` a file of this name, or, where a
    parameter is invalid, its `form`, else an error page.
    """

    params: type[QueryParams]
    render: Callable[[PageRequest], Awaitable[str | bytes]]
    file_name: Callable[[PageRequest], str] | None = None
    media_type: str = ""
    form: "PageContent | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page: its path, as of a route, and the module of `app.web` that has its content, by name.

    With `posts` a form may send the parameters as a body, which holds more than a URL; such a response is not cached.
    One that `is_private` shows figures of whoever asks, and is stored nowhere.
    """

    path: str
    module: str
    name: str = "PAGE"
    posts: bool = False
    is_private: bool = False

    def load(self) -> PageContent:
        """Return the content; its module is imported with the first request, not at the start (ADR 14)."""
        content: PageContent = getattr(import_module(f"app.web.{self.module}"), self.name)
        return content

    def load_params(self) -> type[QueryParams]:
        """Return the model of the query."""
        return self.load().params


def page_url(path: str, params: BaseModel, **changes: object) -> str:
    """Return the URL of a page relative to itself, with some parameters changed, without defaults."""
    fields = type(params).model_fields
    changed = {
        name: fields[name].default if value is None or value == () else value
        for name, value in changes.items()
        if name in fields
    }
    return with_query("", params.model_copy(update=changed)) or path.rpartition("/")[2] or "./"


def with_query(path: str, params: BaseModel) -> str:
    """Return the URL of a path with parameters, without defaults."""
    query = clean_query(params)
    return f"{path}?{query}" if query else path


def page_endpoints(pages: Iterable[Page]) -> list[CacheableEndpoint]:
    """Return the pages that may be stored as endpoints of the response cache."""
    return [
        CacheableEndpoint(
            method="GET",
            path=page.path,
            pattern=compile_path(page.path)[0],
            model=page.load_params,
            page_version=assets().version,
        )
        for page in pages
        if not page.is_private
    ]


def page_routes(pages: Iterable[Page]) -> list[BaseRoute]:
    """Return the routes of pages and assets, and one that answers any other path under /ui with a page."""
    routes: list[BaseRoute] = [_PageRoute(page) for page in pages]
    return [*routes, Route("/assets/{name}", _send_asset), Route("/ui/{rest:path}", _send_not_found)]


class _PageRoute(Route):
    """A route of a page; at `/` it matches only clients that accept HTML."""

    def __init__(self, page: Page) -> None:
        async def endpoint(request: Request) -> Response:
            return await _respond(page, request)

        super().__init__(page.path, endpoint, methods=["GET", "POST"] if page.posts else ["GET"])

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by path and, at `/`, by what the client accepts."""
        if scope["path"] == HOME and not accepts_html(parse_headers(scope["headers"]).get(b"accept", b"")):
            return Match.NONE, {}
        return super().matches(scope)


def _local_origin(request: Request) -> str:
    """Return the URL on this machine by the port that the service listens on; Host is the client's word."""
    _, port = request.scope.get("server") or ("", None)
    return f"http://127.0.0.1:{port or 8000}"


async def _respond(page: Page, request: Request) -> Response:
    """Render a page; parameters that turn out to be invalid are dropped, and it is rendered without them."""
    content = page.load()
    query = await request.body() if request.method == "POST" else request.scope["query_string"]
    boundary = _BOUNDARY.fullmatch(request.headers.get("content-type", "")) if request.method == "POST" else None
    mark = b"--" + boundary[1].encode("latin-1") if boundary else b"&"
    count = query.count(mark) + 1
    if count > MAX_FIELDS:
        detail = f"The request has {count:,} parameters; at most {MAX_FIELDS:,} are allowed."
        return error_page(request, await _problem(request, HTTPException(_UNPROCESSABLE, detail)))
    if boundary:
        given = _read_parts(query, mark)
    else:
        given = parse_qsl(query.decode("utf-8", "replace"), keep_blank_values=True)
    errors: dict[str, str] = {}
    while True:
        left = [pair for pair in given if pair[0] not in errors]
        try:
            params = parse_pairs(left, content.params)
            if not errors and request.method == "GET" and not is_clean(query, params):
                return _redirect_to_clean(request, params)
            asked = PageRequest(
                executor=request.app.state.executor,
                path=quote(request.url.path),
                root=relative_root(request),
                public_url=request.scope.get(PUBLIC_URL, ""),
                origin=request.scope.get(PUBLIC_URL) or _local_origin(request),
                params=params,
                holder=request.scope.get(HOLDER),
                names=request.path_params,
                errors=errors,
                given=given,
            )
            html = await content.render(asked)
        except Rewritten as better:
            return _redirect_to_clean(request, better.params, better.page)
        except Exception as error:  # noqa: BLE001  # the API's handlers know each error, and log what they do not know
            response = await _problem(request, error)
            rejected = _errors_of(response, {name for name, _ in left})
            too_many = isinstance(error, RequestValidationError) and len(error.errors()) > MAX_ERRORS
            has_form = content.form or not content.file_name
            if response.status_code != _UNPROCESSABLE or not rejected or too_many or not has_form:
                return error_page(request, response, error)
            errors |= rejected
            content = content.form or content
        else:
            response = _rendered(content, asked, html, _UNPROCESSABLE if errors else 200)
            if page.is_private:
                response.headers["cache-control"] = "no-store"
            return response


def _read_parts(body: bytes, mark: bytes) -> list[tuple[str, str]]:
    """Return the fields of a form with files as pairs; a file stands in the place of the text of the same name."""
    pairs: dict[str, str] = {}
    for part in body.split(mark)[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        name, text = _PART_NAME.search(head.decode("utf-8", "replace")), content.removesuffix(b"\r\n")
        if name and (text or name[1] not in pairs):
            pairs[name[1]] = decode_text(text, "replace")
    return list(pairs.items())


def plain_lines(text: str) -> str:
    """Return a text with the same ends of lines in forms and links, and none at its end."""
    return "\n".join(text.splitlines()).strip("\n ")


def _rendered(content: PageContent, asked: PageRequest, text: str | bytes, status: int) -> Response:
    if content.media_type:
        name = content.file_name(asked) if content.file_name else ""
        headers = {"content-disposition": f'attachment; filename="{name}"'} if name else {}
        return Response(text, status, media_type=content.media_type, headers=headers)
    return HTMLResponse(text, status, headers=PAGE_HEADERS)


def _redirect_to_clean(request: Request, params: BaseModel, page: str = "") -> Response:
    """Redirect a form's URL, with empty values and defaults, to the one that is worth keeping."""
    url = page + page_url(quote(request.url.path), params)
    return RedirectResponse(url, 303, headers={"cache-control": "no-cache"})


async def _problem(request: Request, error: Exception) -> Response:
    """Return the response that the API would give to an error."""
    handler = next(HANDLERS[kind] for kind in type(error).__mro__ if kind in HANDLERS)
    return await handler(request, error)


def _errors_of(response: Response, names: set[str]) -> dict[str, str]:
    """Return the messages of a problem by parameter, for those that were given; a form has them in its body."""
    problem = json.loads(bytes(response.body))
    located = [
        (re.sub("^/(query|body)/", "", error["pointer"]).partition("/")[0], error["detail"])
        for error in problem["errors"]
    ]
    return {name: _in_words(detail.removeprefix(f"{name}: ")) for name, detail in reversed(located) if name in names}


def _in_words(detail: str) -> str:
    """Return a message of the API for people: without the parameter's name, which its field has, and endpoints."""
    words = _PARAMETER.sub(r"“\2”:", detail)
    words = words.replace("region; GET /regions lists them", "region; a code is written like westeurope or us-east-1")
    words = _NOT_OF_CLOUD.sub(lambda found: f"not of {_clouds(found[1])}", words)
    words = _MANY_ALLOWED.sub(lambda found: f"{found[1]}and {found[2].count(', ') + 1} others", words)
    words = _LISTED_BY_API.sub("", words).rstrip("; ")
    return _LONG_WORD.sub(lambda word: f"{word[1]}…", words)


def _clouds(ids: str) -> str:
    """Return the names of clouds, given by their ids with commas."""
    return " or ".join(PROVIDERS[id_].name if id_ in PROVIDERS else id_ for id_ in ids.split(","))


def relative_root(request: Request) -> str:
    """Return the URL of `/` relative to the request, which holds under any prefix of a proxy."""
    depth = request.scope.get("raw_path", request.url.path.encode()).count(b"/") - 1
    return "../" * depth or "./"


def error_page(request: Request, response: Response, error: Exception | None = None) -> Response:
    """Return a page that says what a problem of the API says, with links to the sizes that it suggests."""
    problem = json.loads(bytes(response.body))
    headers = {name: value for name, value in response.headers.items() if name in ("retry-after", "allow")}
    suggested = error.suggestions if isinstance(error, NotFound) and error.kind == "size" else ()
    html = render_template(
        "error.html", root=relative_root(request), path=request.url.path, problem=problem, suggested=suggested
    )
    return HTMLResponse(html, response.status_code, headers={**PAGE_HEADERS, **headers, "cache-control": "no-store"})


async def _send_asset(request: Request) -> Response:
    """Send an asset; its name has a hash of its content, so a client never has to ask again."""
    return assets().response(request.path_params["name"], request.scope["headers"])


async def _send_not_found(request: Request) -> Response:
    return error_page(request, await _problem(request, NotFound("page", request.url.path)))


PAGES: tuple[Page, ...] = (
    Page(path="/", module="search"),
    Page(path="/ui/sizes.csv", module="list_files", name="CSV"),
    Page(path="/ui/sizes.tsv", module="list_files", name="TSV"),
    Page(path="/ui/sizes.json", module="list_files", name="JSON"),
    Page(path="/ui/sizes.png", module="preview", name="SEARCH"),
    Page(path="/ui/suggestions", module="search", name="SUGGESTIONS"),
    Page(path="/ui/sizes/{name}.md", module="size_markdown"),  # before the page of a size, whose path has any name
    Page(path="/ui/sizes/{name}.png", module="preview", name="SIZE"),
    Page(path="/ui/sizes/{name}", module="size_page"),
    Page(path="/ui/sizes/{name}/models", module="size_page", name="MODELS_PAGE"),
    Page(path="/ui/sizes/{name}/buy", module="size_page", name="BUY_PAGE"),
    Page(path="/ui/sizes/{name}/observations", module="size_page", name="OBSERVATIONS_PAGE", is_private=True),
    Page(path="/ui/compare", module="compare"),
    Page(path="/ui/compare.png", module="preview", name="COMPARE"),
    Page(path="/ui/fit", module="fit", posts=True),
    Page(path="/ui/changes", module="changes"),
    Page(path="/ui/conflicts", module="conflicts"),
    Page(path="/ui/coverage", module="coverage"),
    Page(path="/ui/retirements", module="retirements"),
    Page(path="/ui/retirements/plan", module="retirements", name="PLAN_PAGE", posts=True),
    Page(path="/ui/retirements/plan.csv", module="retirements", name="CSV", posts=True),
    Page(path="/ui/preflight", module="preflight", posts=True, is_private=True),
    Page(path="/ui/explore", module="explore"),
)
