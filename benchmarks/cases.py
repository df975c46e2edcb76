"""The pairs that are measured: a table. What is asked of each figure stands beside it."""

from dataclasses import dataclass
from typing import Literal

from benchmarks.asks import ask, deepest, encoded, fresh, many, post, unchanged
from benchmarks.catalogs import LARGE, MIDDLE, SMALL, Scale
from benchmarks.fits import ESTIMATE, FIT
from benchmarks.question import PRICED
from benchmarks.ratios import Goal
from benchmarks.sides import (
    BARE_DOCUMENTS,
    BARE_PLACEMENT,
    BARE_POSTGRES,
    BARE_SQLITE,
    COLD_SIDE,
    COMMAND,
    HOT,
    PEER,
    PYTHON,
    RAW,
    RAW_2_KB,
    RAW_BODIES,
    SEARCH_COMMAND,
    TUTORIAL,
    Ask,
    Side,
)

PAGE_ASKED = ask(PRICED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line of the results; the ratio is subject to reference, more is better; None: the subject is judged alone."""

    name: str
    says: str
    subject: Side
    reference: Side | None
    goal: Goal
    kind: Literal["load", "open loop", "start", "command", "memory"] = "load"
    ask: Ask = PAGE_ASKED
    database: Literal["sqlite", "postgresql", "seeds"] = "sqlite"
    subject_scale: Scale = SMALL
    reference_scale: Scale = SMALL
    same: Literal["bytes", "items", "names", "nothing"] = "bytes"
    connections: int = 16


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
        subject=HOT, reference=RAW, ask=encoded("gzip"), goal=_ratio(0.85),
    ),
    Case(
        name="hot-br", says="the same, br",
        subject=HOT, reference=RAW, ask=encoded("br"), goal=_ratio(0.85),
    ),
    Case(
        name="hot-br-body", says="the same against the body alone: what the headers of the contract weigh",
        subject=HOT, reference=RAW_BODIES, ask=encoded("br"), goal=_ratio(),
    ),
    Case(
        name="hot-240", says="240 different pages in turn",
        subject=HOT, reference=RAW, ask=many(240), goal=_ratio(0.75),
    ),
    Case(
        name="hot-304", says="the same for a client that has it: 304, against 2 KB made beforehand",
        subject=HOT, reference=RAW_2_KB, ask=unchanged, same="nothing", goal=_ratio(1.1),
    ),
    Case(
        name="hot-fit", says="a fit, asked again and again, against the same bytes made beforehand",
        subject=HOT, reference=RAW, ask=ask("/fit?region=eastus&min_gpu_mem=320&max_nodes=4"), goal=_ratio(0.60),
    ),
    Case(
        name="hot-estimate", says="a body to POST /estimate, again and again, against the same bytes",
        subject=HOT, reference=RAW, ask=post("/estimate", ESTIMATE), database="seeds", goal=_ratio(0.60),
    ),
    Case(
        name="hot-post-fit", says="a body to POST /fit, again and again, against the same bytes",
        subject=HOT, reference=RAW, ask=post("/fit", FIT), database="seeds", goal=_ratio(0.60),
    ),
    Case(
        name="cold", says="a page answered anew, against the bare database driver giving the same bytes",
        subject=COLD_SIDE, reference=BARE_SQLITE, goal=_ratio(1.0),
    ),
    Case(
        name="misses", says="ever new questions, each kept, against stored documents joined in a bare ASGI application",
        subject=HOT, reference=BARE_DOCUMENTS, ask=fresh, same="items", goal=_ratio(0.45),
    ),
    Case(
        name="cold-postgresql", says="the same on PostgreSQL",
        subject=COLD_SIDE, reference=BARE_POSTGRES, database="postgresql", goal=_ratio(0.8),
    ),
    Case(
        name="cold-post-fit",
        says="a model and a region to POST /fit over the whole catalog of the seeds, against its query and arithmetic",
        subject=COLD_SIDE, reference=BARE_PLACEMENT, ask=post("/fit", FIT), database="seeds", goal=_ratio(0.5),
    ),
    Case(
        name="cold-estimate", says="a body to POST /estimate, answered anew, against the same bytes made beforehand",
        subject=COLD_SIDE, reference=RAW, ask=post("/estimate", ESTIMATE), database="seeds", goal=_ratio(),
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
        subject=COLD_SIDE, reference=COLD_SIDE, subject_scale=LARGE, same="nothing", connections=1, ask=deepest,
        goal=_ratio(GROWTH),
    ),
    Case(
        name="growth-fit", says="GET /fit over all of 10 times the sizes: it looks at each of them",
        subject=COLD_SIDE, reference=COLD_SIDE, subject_scale=MIDDLE, same="nothing", connections=1,
        ask=ask("/fit?region=eastus&min_gpu_mem=320&max_nodes=4"), goal=_ratio(),
    ),
    Case(
        name="growth-facets", says="GET /facets over 100 times the sizes and 50 times the prices: it counts all",
        subject=COLD_SIDE, reference=COLD_SIDE, subject_scale=LARGE, same="nothing", connections=1,
        ask=ask("/facets?region=eastus&min_gpu_mem=80"), goal=_ratio(),
    ),
    Case(
        name="latency", says="questions due at half of the rate that saturates: the slowest in 100 against the middle",
        subject=COLD_SIDE, reference=None, kind="open loop", goal=Goal(figure="p99 / p50", how="below", bound=5),
    ),
    Case(
        name="start", says="process start to first page, against a raw ASGI application: seconds more",
        subject=HOT, reference=RAW, kind="start", goal=Goal(figure="seconds more", how="below", bound=0.6),
    ),
    Case(
        name="start-command", says="the same by the command line: `vmsizes serve`",
        subject=COMMAND, reference=RAW, kind="start", goal=Goal(figure="seconds more"),
    ),
    Case(
        name="command", says="`vmsizes search H100` over the seeds beside an empty program: seconds of CPU",
        subject=SEARCH_COMMAND, reference=PYTHON, kind="command", database="seeds",
        goal=Goal(figure="CPU seconds", how="below", bound=0.5),
    ),
    Case(
        name="memory", says="a worker's own memory after as many different questions as it can answer in the time",
        subject=HOT, reference=None, kind="memory", ask=fresh, goal=Goal(figure="MB", how="below", bound=150),
    ),
)  # fmt: skip
