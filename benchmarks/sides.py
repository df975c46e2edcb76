"""The servers that are measured: the service, the limits that it is held against, and its peers."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

from sqlalchemy import make_url

from benchmarks.answers import load_answers
from benchmarks.question import PRICED, page_sql, parameters
from benchmarks.servers import Command, Question, Server, uvicorn

DATASETTE = Path(sys.prefix) / "bench" / "bin" / "datasette"
COLD = {"VMSIZES_CACHE_MIB": "0"}
"""Settings under which the service answers every question anew."""


class NotYet(Exception):
    """A case that cannot be measured, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a side is started with: a catalog, and the file with the service's own answers."""

    database: str
    answers: Path


Ask = Callable[[Server, Place], Question]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One half of a pair; `ask` makes its question where it is not the case's own."""

    name: str
    command: Callable[[Place], Command]
    ask: Ask | None = None


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
RAW = Side(name="raw ASGI", command=lambda place: uvicorn("benchmarks.raw:raw", BENCH_ANSWERS=str(place.answers)))

RAW_BODIES = Side(
    name="raw ASGI, bodies only",
    command=lambda place: uvicorn("benchmarks.raw:bodies", BENCH_ANSWERS=str(place.answers)),
)


def _bare(kind: str) -> Callable[[Place], Command]:
    return lambda place: uvicorn(
        f"benchmarks.bare:{kind}", BENCH_ANSWERS=str(place.answers), BENCH_DATABASE=place.database
    )


RAW_2_KB = Side(
    name="raw ASGI, 2 KB",
    command=lambda _place: uvicorn("benchmarks.raw:two_kilobytes"),
    ask=lambda _server, _place: Question(targets=(PRICED,)),
)
BARE_SQLITE = Side(name="bare sqlite3 + orjson", command=_bare("sqlite"))
BARE_DOCUMENTS = Side(
    name="stored documents in bare ASGI", command=_bare("documents"),
    ask=lambda _server, _place: Question(targets=(PRICED,)),
)  # fmt: skip
BARE_PLACEMENT = Side(name="bare query and arithmetic", command=_bare("placement"))
BARE_POSTGRES = Side(name="bare psycopg + orjson", command=_bare("postgresql"))
TUTORIAL = Side(
    name="the tutorial way",
    command=lambda place: uvicorn("benchmarks.tutorial:app", BENCH_DATABASE=place.database),
)


def _datasette(place: Place) -> Command:
    if not DATASETTE.exists():
        raise NotYet("Datasette is not installed: `make bench` does it")
    file = make_url(place.database).database or ""
    off = [word for name in ("allow_facet", "suggest_facets") for word in ("--setting", name, "off")]
    return Command(words=(str(DATASETTE), "serve", "-i", file, "-h", "127.0.0.1", "-p", "{port}", *off))


def _ask_datasette(_server: Server, place: Place) -> Question:
    (answer,) = load_answers(place.answers).values()
    names = list(json.loads(answer.body)["items"][0])
    asked = {"sql": page_sql(names), "_shape": "array", **parameters(PRICED)}
    database = Path(make_url(place.database).database or "").stem
    return Question(targets=(f"/{database}.json?{urlencode(asked, quote_via=quote)}",))


PEER = Side(name="Datasette", command=_datasette, ask=_ask_datasette)
