"""The servers that are measured: the service, and the references that it is compared with."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

from sqlalchemy import make_url

from benchmarks.page_query import PRICED_TARGET, page_sql, parameters
from benchmarks.responses import load_responses
from benchmarks.servers import Command, LoadRequest, Server, uvicorn

DATASETTE = Path(sys.prefix) / "bench" / "bin" / "datasette"
COLD = {"VMSIZES_CACHE_MIB": "0"}
"""Settings that turn the response cache off."""


class NotMeasurable(Exception):
    """A case that cannot be measured here, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideContext:
    """What a side is started with: a catalog, and the file of the service's recorded responses."""

    database: str
    responses: Path


RequestFactory = Callable[[Server, SideContext], LoadRequest]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One half of a pair; `request` builds its request where it is not that of the case."""

    name: str
    command: Callable[[SideContext], Command]
    request: RequestFactory | None = None


HOT = Side(name="the service", command=lambda place: uvicorn("app.asgi:service", VMSIZES_DATABASE_URL=place.database))
COLD_SIDE = Side(
    name="the service, cold",
    command=lambda place: uvicorn("app.asgi:service", VMSIZES_DATABASE_URL=place.database, **COLD),
)
COMMAND = Side(
    name="vmsizes serve",
    command=lambda place: Command(
        words=(str(Path(sys.executable).with_name("vmsizes")), "serve", "--port", "{port}"),
        environment={"VMSIZES_DATABASE_URL": place.database},
    ),
)
SEARCH_COMMAND = Side(
    name="vmsizes search H100",
    command=lambda place: Command(
        words=(str(Path(sys.executable).with_name("vmsizes")), "search", "H100"),
        environment={"VMSIZES_DATABASE_URL": place.database},
    ),
)
PYTHON = Side(name="python -c pass", command=lambda _place: Command(words=(sys.executable, "-c", "pass")))
RAW = Side(name="raw ASGI", command=lambda place: uvicorn("benchmarks.raw:raw", BENCH_ANSWERS=str(place.responses)))

RAW_BODIES = Side(
    name="raw ASGI, bodies only",
    command=lambda place: uvicorn("benchmarks.raw:bodies", BENCH_ANSWERS=str(place.responses)),
)


def _bare(kind: str) -> Callable[[SideContext], Command]:
    return lambda place: uvicorn(
        f"benchmarks.bare:{kind}", BENCH_ANSWERS=str(place.responses), BENCH_DATABASE=place.database
    )


RAW_2_KB = Side(
    name="raw ASGI, 2 KB",
    command=lambda _place: uvicorn("benchmarks.raw:two_kilobytes"),
    request=lambda _server, _place: LoadRequest(targets=(PRICED_TARGET,)),
)
BARE_SQLITE = Side(name="bare sqlite3 + orjson", command=_bare("sqlite"))
BARE_PRICES = Side(name="bare sqlite3 + orjson", command=_bare("sqlite_prices"))
BARE_CSV = Side(name="csv.writer over bare sqlite3", command=_bare("csv_history"))
BARE_DOCUMENTS = Side(
    name="stored documents in bare ASGI", command=_bare("documents"),
    request=lambda _server, _place: LoadRequest(targets=(PRICED_TARGET,)),
)  # fmt: skip
BARE_PLACEMENT = Side(name="bare query and arithmetic", command=_bare("placement"))
BARE_POSTGRES = Side(name="bare psycopg + orjson", command=_bare("postgresql"))
BARE_POSTGRES_PRICES = Side(name="bare psycopg + orjson", command=_bare("postgresql_prices"))
TUTORIAL = Side(
    name="the tutorial way",
    command=lambda place: uvicorn("benchmarks.tutorial:app", BENCH_DATABASE=place.database),
)


def _datasette(place: SideContext) -> Command:
    if not DATASETTE.exists():
        raise NotMeasurable("Datasette is not installed: `make bench` does it")
    file = make_url(place.database).database or ""
    off = [word for name in ("allow_facet", "suggest_facets") for word in ("--setting", name, "off")]
    return Command(words=(str(DATASETTE), "serve", "-i", file, "-h", "127.0.0.1", "-p", "{port}", *off))


def _datasette_request(_server: Server, place: SideContext) -> LoadRequest:
    (answer,) = load_responses(place.responses).values()
    names = list(json.loads(answer.body)["items"][0])
    asked = {"sql": page_sql(names), "_shape": "array", **parameters(PRICED_TARGET)}
    database = Path(make_url(place.database).database or "").stem
    return LoadRequest(targets=(f"/{database}.json?{urlencode(asked, quote_via=quote)}",))


PEER = Side(name="Datasette", command=_datasette, request=_datasette_request)
