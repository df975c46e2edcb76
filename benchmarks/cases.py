"""The pairs that are measured: a table. What is asked of each figure stands beside it."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlencode

from sqlalchemy import make_url

from benchmarks.catalogs import LARGE, SMALL, Scale
from benchmarks.question import PAGE, PRICED, page_sql, parameters
from benchmarks.ratios import Goal
from benchmarks.servers import Command, Question, Server, uvicorn
from benchmarks.sides import load_answers

DATASETTE = Path(sys.prefix) / "bench" / "bin" / "datasette"
COLD: dict[str, str] = {}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line of the results; the ratio is subject to reference, and more is better for the subject."""

    name: str
    says: str
    subject: Side
    reference: Side
    goal: Goal
    kind: Literal["load", "open loop", "start", "memory"] = "load"
    ask: Ask = lambda _server, _place: Question(targets=(PRICED,))
    database: Literal["sqlite", "postgresql"] = "sqlite"
    subject_scale: Scale = SMALL
    reference_scale: Scale = SMALL
    same: Literal["bytes", "items", "names", "nothing"] = "bytes"
    connections: int = 16


HOT = Side(name="the service", command=lambda place: uvicorn("app.main:create_app", VMSIZES_DATABASE_URL=place.database))
COLD_SIDE = Side(
    name="the service, cold",
    command=lambda place: uvicorn("app.main:create_app", VMSIZES_DATABASE_URL=place.database, **COLD),
)
RAW = Side(name="raw ASGI", command=lambda place: uvicorn("benchmarks.sides:raw", BENCH_ANSWERS=str(place.answers)))


def _bare(kind: str) -> Callable[[Place], Command]:
    return lambda place: uvicorn(
        f"benchmarks.sides:bare_{kind}", BENCH_ANSWERS=str(place.answers), BENCH_DATABASE=place.database
    )


BARE_SQLITE = Side(name="bare sqlite3 + orjson", command=_bare("sqlite"))
BARE_POSTGRES = Side(name="bare psycopg + orjson", command=_bare("postgres"))
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


def _encoded(encoding: str) -> Ask:
    """The page, compressed; a second question is due because a body may be compressed only when asked for again."""
    question = Question(targets=(PRICED,), headers=(("Accept-Encoding", encoding),))

    def ask(server: Server, _place: Place) -> Question:
        server.ask(question, PRICED)
        if ("content-encoding", encoding) not in server.ask(question, PRICED).headers:
            raise NotYet(f"the service does not answer in {encoding}")
        return question

    return ask


def _many(count: int) -> Ask:
    """Different questions, all with a full page."""
    targets = tuple(f"{PRICED}&max_usd_per_hour={1000 + number}" for number in range(count))
    return lambda _server, _place: Question(targets=targets)


def _deep(server: Server, _place: Place) -> Question:
    """The last full page of the list: found by walking there in steps of the largest page."""
    walk = Question(targets=(PRICED,))
    cursor = ""
    while True:
        target = PRICED.replace(f"limit={PAGE}", "limit=500") + cursor
        following = json.loads(server.ask(walk, target).body)["next_cursor"]
        if following is None:
            break
        cursor = f"&cursor={following}"
    if not cursor:
        target = PRICED
        cursor = f"&cursor={json.loads(server.ask(walk, target).body)['next_cursor']}"
    return Question(targets=(PRICED + cursor,))


def _ratio(least: float | None = None) -> Goal:
    return Goal(figure="ratio", how="at least" if least else None, bound=least)


GROWTH = 1 / 1.5

CASES = (
    Case(
        name="identical", says="the service against itself: how far the noise goes",
        subject=HOT, reference=HOT, goal=_ratio(),
    ),
    Case(
        name="hot", says="a page, asked again and again, against the same bytes made beforehand",
        subject=HOT, reference=RAW, goal=_ratio(0.80),
    ),
    Case(
        name="hot-gzip", says="the same, gzip",
        subject=HOT, reference=RAW, ask=_encoded("gzip"), goal=_ratio(0.85),
    ),
    Case(
        name="hot-br", says="the same, br",
        subject=HOT, reference=RAW, ask=_encoded("br"), goal=_ratio(0.85),
    ),
    Case(
        name="hot-240", says="240 different pages in turn",
        subject=HOT, reference=RAW, ask=_many(240), goal=_ratio(0.75),
    ),
    Case(
        name="cold", says="a page answered anew, against the bare database driver giving the same bytes",
        subject=COLD_SIDE, reference=BARE_SQLITE, goal=_ratio(1.0),
    ),
    Case(
        name="cold-postgresql", says="the same on PostgreSQL",
        subject=COLD_SIDE, reference=BARE_POSTGRES, database="postgresql", goal=_ratio(0.8),
    ),
    Case(
        name="tutorial", says="a page answered anew, against FastAPI and SQLModel the way that tutorials teach it",
        subject=COLD_SIDE, reference=TUTORIAL, same="items", goal=_ratio(20),
    ),
    Case(
        name="datasette", says="a page answered anew, against Datasette on the same file, with the same rows",
        subject=COLD_SIDE, reference=PEER, same="names", goal=_ratio(8),
    ),
    Case(
        name="growth", says="a page from 100 times the sizes and 50 times the prices, one question at a time",
        subject=COLD_SIDE, reference=COLD_SIDE, subject_scale=LARGE, same="nothing", connections=1, goal=_ratio(GROWTH),
    ),
    Case(
        name="growth-deep", says="the same for the last full page of the list",
        subject=COLD_SIDE, reference=COLD_SIDE, subject_scale=LARGE, same="nothing", connections=1, ask=_deep,
        goal=_ratio(GROWTH),
    ),
    Case(
        name="latency", says="questions due at half of the rate that saturates: the slowest in 100 against the middle",
        subject=COLD_SIDE, reference=RAW, kind="open loop", goal=Goal(figure="p99 / p50", how="below", bound=5),
    ),
    Case(
        name="start", says="process start to first page, against a raw ASGI application: seconds more",
        subject=HOT, reference=RAW, kind="start", goal=Goal(figure="seconds more", how="below", bound=0.6),
    ),
    Case(
        name="memory", says="a worker's own memory after as many different questions as it can answer in the time",
        subject=HOT, reference=RAW, kind="memory", ask=_many(100_000), goal=Goal(figure="MB", how="below", bound=150),
    ),
)  # fmt: skip
