"""The benchmark cases: a subject, a reference, and the goal that their ratio or other figure must meet."""

from dataclasses import dataclass, replace
from typing import Literal

from benchmarks.catalogs import FEW, GROWN, MANY, PROMISED, SMALL, Scale
from benchmarks.fits import ESTIMATE, FIT
from benchmarks.page_query import PRICED_TARGET
from benchmarks.price_query import HISTORY_CSV, PRICES_TARGET
from benchmarks.ratios import Goal
from benchmarks.requests import (
    distinct_requests,
    encoded,
    first_files,
    never_repeated,
    not_modified,
    post,
    request_to,
)
from benchmarks.sides import (
    BARE_CSV,
    BARE_DOCUMENTS,
    BARE_PLACEMENT,
    BARE_POSTGRES,
    BARE_POSTGRES_PRICES,
    BARE_PRICES,
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
    RequestFactory,
    Side,
)
from benchmarks.uncached import (
    QuestionFactory,
    facets,
    fit_of_amounts,
    fit_of_layers,
    fit_of_model,
    seeded_facets,
    seeded_facets_of_a_day,
    seeded_fit_of_amounts,
    seeded_list,
    seeded_list_of_a_day,
    similar,
    unknown_name,
)
from benchmarks.workers import CASES as WORK
from benchmarks.workers import Work

PRICED_PAGE = request_to(PRICED_TARGET)
Kind = Literal[
    "load", "open loop", "start", "command", "memory", "download", "file", "cpu", "panel", "memory of a panel",
    "memory of all", "stalls", "workers", "ingest", "ingest of a page", "growth",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkCase:
    """One line of the results; the ratio is subject to reference, more is better; None measures the subject alone."""

    name: str
    description: str
    subject: Side
    reference: Side | None
    goal: Goal
    kind: Kind = "load"
    request: RequestFactory = PRICED_PAGE
    database: Literal["sqlite", "postgresql", "seeds"] = "sqlite"
    subject_scale: Scale = SMALL
    reference_scale: Scale = SMALL
    compare: Literal["bytes", "items", "names", "nothing"] = "bytes"
    connections: int = 16
    questions: QuestionFactory | None = None
    work: Work | None = None


def _below(figure: str, bound: float) -> Goal:
    return Goal(figure=figure, how="below", bound=bound)


def _ratio(least: float | None = None) -> Goal:
    return Goal(figure="ratio", how="at least" if least else None, bound=least)


def _at_most_times(bound: float) -> Goal:
    return Goal(figure="times", how="at most", bound=bound)


_CASES = (
    BenchmarkCase(
        name="identical", description="the service against itself: the noise of the measurement",
        subject=HOT, reference=HOT, goal=_ratio(),
    ),
    BenchmarkCase(
        name="hot", description="a repeated request for a page, against raw ASGI sending the same bytes",
        subject=HOT, reference=RAW, goal=_ratio(0.80),
    ),
    BenchmarkCase(
        name="hot-gzip", description="the same, gzip",
        subject=HOT, reference=RAW, request=encoded("gzip"), goal=_ratio(0.85),
    ),
    BenchmarkCase(
        name="hot-br", description="the same, br",
        subject=HOT, reference=RAW, request=encoded("br"), goal=_ratio(0.85),
    ),
    BenchmarkCase(
        name="hot-br-body", description="the same against the body alone: what the other headers cost",
        subject=HOT, reference=RAW_BODIES, request=encoded("br"), goal=_ratio(),
    ),
    BenchmarkCase(
        name="hot-240", description="240 different pages in turn",
        subject=HOT, reference=RAW, request=distinct_requests(240), goal=_ratio(0.75),
    ),
    BenchmarkCase(
        name="hot-304", description="the same with If-None-Match: 304, against raw ASGI sending 2 KB",
        subject=HOT, reference=RAW_2_KB, request=not_modified, compare="nothing", goal=_ratio(1.1),
    ),
    BenchmarkCase(
        name="hot-fit", description="a repeated GET /fit, against raw ASGI sending the same bytes",
        subject=HOT, reference=RAW, request=request_to("/fit?region=eastus&min_gpu_mem=320&max_nodes=4"),
        goal=_ratio(0.60),
    ),
    BenchmarkCase(
        name="hot-estimate", description="a repeated POST /estimate, against raw ASGI sending the same bytes",
        subject=HOT, reference=RAW, request=post("/estimate", ESTIMATE), database="seeds", goal=_ratio(0.60),
    ),
    BenchmarkCase(
        name="hot-post-fit", description="a repeated POST /fit, against raw ASGI sending the same bytes",
        subject=HOT, reference=RAW, request=post("/fit", FIT), database="seeds", goal=_ratio(0.60),
    ),
    BenchmarkCase(
        name="cold", description="a page without the cache, against the bare database driver sending the same bytes",
        subject=COLD_SIDE, reference=BARE_SQLITE, goal=_ratio(1.0),
    ),
    BenchmarkCase(
        name="misses",
        description="requests that never repeat, each cached, against stored documents joined in bare ASGI",
        subject=HOT, reference=BARE_DOCUMENTS, request=never_repeated, compare="items", goal=_ratio(0.45),
    ),
    BenchmarkCase(
        name="cold-postgresql", description="the same on PostgreSQL",
        subject=COLD_SIDE, reference=BARE_POSTGRES, database="postgresql", goal=_ratio(0.8),
    ),
    BenchmarkCase(
        name="prices", description="a page of prices without the cache, against the bare database driver",
        subject=COLD_SIDE, reference=BARE_PRICES, request=request_to(PRICES_TARGET), goal=_ratio(0.6),
    ),
    BenchmarkCase(
        name="prices-postgresql", description="the same on PostgreSQL",
        subject=COLD_SIDE, reference=BARE_POSTGRES_PRICES, request=request_to(PRICES_TARGET), database="postgresql",
        goal=_ratio(0.6),
    ),
    BenchmarkCase(
        name="csv", description="200,000 prices as CSV, against csv.writer over the bare database driver",
        subject=HOT, reference=BARE_CSV, kind="download", request=request_to(HISTORY_CSV), goal=_ratio(0.9),
    ),
    BenchmarkCase(
        name="parquet", description="200,000 prices as a Parquet file that is written for the request: CPU a MB of it",
        subject=HOT, reference=None, kind="file", request=first_files, goal=Goal(figure="CPU ms a MB"),
    ),
    BenchmarkCase(
        name="cold-post-fit",
        description="a model and a region to POST /fit over the whole catalog of the seeds, "
        "against its query and arithmetic",
        subject=COLD_SIDE, reference=BARE_PLACEMENT, request=post("/fit", FIT), database="seeds", goal=_ratio(0.5),
    ),
    BenchmarkCase(
        name="cold-estimate",
        description="POST /estimate without the cache, against raw ASGI sending the same bytes",
        subject=COLD_SIDE, reference=RAW, request=post("/estimate", ESTIMATE), database="seeds", goal=_ratio(),
    ),
    BenchmarkCase(
        name="tutorial",
        description="a page without the cache, against FastAPI and SQLModel as tutorials teach them",
        subject=COLD_SIDE, reference=TUTORIAL, compare="items", goal=_ratio(20),
    ),
    BenchmarkCase(
        name="datasette", description="a page without the cache, against Datasette with the same file and rows",
        subject=COLD_SIDE, reference=PEER, compare="names", goal=_ratio(8),
    ),
    BenchmarkCase(
        name="growth", description="a new list of 10,000 sizes of all clouds, beside the seeds, which are of one: CPU",
        subject=COLD_SIDE, reference=COLD_SIDE, kind="growth", database="seeds", subject_scale=GROWN,
        questions=seeded_list, goal=_at_most_times(4),
    ),
    BenchmarkCase(
        name="growth-facets", description="the same for new facets",
        subject=COLD_SIDE, reference=COLD_SIDE, kind="growth", database="seeds", subject_scale=GROWN,
        questions=seeded_facets, goal=_at_most_times(4),
    ),
    BenchmarkCase(
        name="growth-fit", description="the same for GET /fit by amounts",
        subject=COLD_SIDE, reference=COLD_SIDE, kind="growth", database="seeds", subject_scale=GROWN,
        questions=seeded_fit_of_amounts, goal=_at_most_times(5),
    ),
    BenchmarkCase(
        name="growth-post-fit", description="the same for POST /fit of a model",
        subject=COLD_SIDE, reference=COLD_SIDE, kind="growth", database="seeds", subject_scale=GROWN,
        questions=fit_of_model, goal=_at_most_times(3),
    ),
    BenchmarkCase(
        name="growth-past", description="the same for lists of a past day",
        subject=COLD_SIDE, reference=COLD_SIDE, kind="growth", database="seeds", subject_scale=GROWN,
        questions=seeded_list_of_a_day, goal=_at_most_times(4),
    ),
    BenchmarkCase(
        name="growth-past-facets", description="the same for facets of a past day",
        subject=COLD_SIDE, reference=COLD_SIDE, kind="growth", database="seeds", subject_scale=GROWN,
        questions=seeded_facets_of_a_day, goal=_at_most_times(4),
    ),
    BenchmarkCase(
        name="latency",
        description="requests due at half of the saturating rate: 99th percentile against median",
        subject=COLD_SIDE, reference=None, kind="open loop", goal=Goal(figure="p99 / p50", how="below", bound=5),
    ),
    BenchmarkCase(
        name="start", description="process start to first page, against a raw ASGI application: seconds more",
        subject=HOT, reference=RAW, kind="start", goal=Goal(figure="seconds more", how="below", bound=0.6),
    ),
    BenchmarkCase(
        name="start-command", description="the same by the command line: `vmsizes serve`",
        subject=COMMAND, reference=RAW, kind="start", goal=Goal(figure="seconds more"),
    ),
    BenchmarkCase(
        name="command", description="`vmsizes search H100` over the seeds beside an empty program: seconds of CPU",
        subject=SEARCH_COMMAND, reference=PYTHON, kind="command", database="seeds",
        goal=Goal(figure="CPU seconds", how="below", bound=0.5),
    ),
    BenchmarkCase(
        name="memory",
        description="a worker's own memory after as many different requests as it can serve in the time",
        subject=HOT, reference=None, kind="memory", request=never_repeated, goal=Goal(figure="MB", how="below",
        bound=150),
    ),
    BenchmarkCase(
        name="panel", description="2,000 questions of a filter panel, each new, over 16 connections: CPU time of each",
        subject=HOT, reference=None, kind="panel", subject_scale=FEW, goal=_below("new: CPU ms", 0.7),
    ),
    BenchmarkCase(
        name="panel-p99", description="the same: the 99th percentile of the times to their responses",
        subject=HOT, reference=None, kind="panel", subject_scale=FEW, goal=_below("new: p99 ms", 30),
    ),
    BenchmarkCase(
        name="panel-again", description="the same 2,000 questions again: the share that the cache of 22 MiB answers",
        subject=HOT, reference=None, kind="panel", subject_scale=FEW,
        goal=Goal(figure="again: share of hits", how="at least", bound=0.95),
    ),
    BenchmarkCase(
        name="memory-panel", description="a worker's own memory after 8,000 different questions of a filter panel",
        subject=HOT, reference=None, kind="memory of a panel", subject_scale=FEW, goal=_below("MB", 130),
    ),
    BenchmarkCase(
        name="memory-all", description="the same after 25,000 different questions over all endpoints",
        subject=HOT, reference=None, kind="memory of all", subject_scale=FEW, goal=_below("MB", 160),
    ),
    BenchmarkCase(
        name="cpu-facets", description="GET /facets of a new selection of 1,000 sizes: CPU time",
        subject=COLD_SIDE, reference=None, kind="cpu", subject_scale=FEW, questions=facets, goal=_below("CPU ms", 2),
    ),
    BenchmarkCase(
        name="cpu-facets-100k", description="the same of 100,000 sizes",
        subject=COLD_SIDE, reference=None, kind="cpu", subject_scale=MANY, questions=facets, goal=Goal(figure="CPU ms"),
    ),
    BenchmarkCase(
        name="cpu-fit", description="GET /fit for an amount of GPU memory over 1,000 sizes: CPU time",
        subject=COLD_SIDE, reference=None, kind="cpu", subject_scale=FEW, questions=fit_of_amounts,
        goal=_below("CPU ms", 12),
    ),
    BenchmarkCase(
        name="cpu-fit-100k", description="the same over 100,000 sizes",
        subject=COLD_SIDE, reference=None, kind="cpu", subject_scale=MANY, questions=fit_of_amounts,
        goal=Goal(figure="CPU ms"),
    ),
    BenchmarkCase(
        name="cpu-post-fit",
        description="POST /fit for different models and loads over the catalog of the seeds: CPU time",
        subject=COLD_SIDE, reference=None, kind="cpu", database="seeds", questions=fit_of_model,
        goal=_below("CPU ms", 15),
    ),
    BenchmarkCase(
        name="cpu-post-fit-100k", description="POST /fit for different models and loads over 100,000 sizes: CPU time",
        subject=COLD_SIDE, reference=None, kind="cpu", subject_scale=MANY, questions=fit_of_layers,
        goal=Goal(figure="CPU ms"),
    ),
    BenchmarkCase(
        name="cpu-similar", description="similar sizes of one of 1,000, in up to two regions: CPU time",
        subject=COLD_SIDE, reference=None, kind="cpu", subject_scale=FEW, questions=similar, goal=_below("CPU ms", 2),
    ),
    BenchmarkCase(
        name="cpu-similar-100k", description="the same of one of 100,000",
        subject=COLD_SIDE, reference=None, kind="cpu", subject_scale=MANY, questions=similar,
        goal=Goal(figure="CPU ms"),
    ),
    BenchmarkCase(
        name="cpu-unknown", description="404 with the names that are like an unknown one, of 1,000 sizes: CPU time",
        subject=COLD_SIDE, reference=None, kind="cpu", subject_scale=FEW, questions=unknown_name,
        goal=_below("CPU ms", 1),
    ),
    BenchmarkCase(
        name="cpu-unknown-100k", description="the same of 100,000",
        subject=COLD_SIDE, reference=None, kind="cpu", subject_scale=MANY, questions=unknown_name,
        goal=Goal(figure="CPU ms"),
    ),
    BenchmarkCase(
        name="stalls",
        description="a stored page beside 8 and 64 clients of the slowest questions of 10,000 sizes: the worst p99",
        subject=HOT, reference=None, kind="stalls", subject_scale=PROMISED, goal=_below("worst page p99 ms", 5),
    ),
    BenchmarkCase(
        name="stalls-healthz", description="the same for /healthz",
        subject=HOT, reference=None, kind="stalls", subject_scale=PROMISED, goal=_below("worst /healthz p99 ms", 10),
    ),
    BenchmarkCase(
        name="workers",
        description="a page without the cache from two workers, against one; wrk takes a part of the cores",
        subject=COMMAND, reference=None, kind="workers", database="seeds",
        work=WORK["a page without the cache"], goal=_ratio(1.8),
    ),
    BenchmarkCase(
        name="workers-fit", description="the same for POST /fit",
        subject=COMMAND, reference=None, kind="workers", database="seeds",
        work=WORK["POST /fit without the cache"], goal=_ratio(1.8),
    ),
    BenchmarkCase(
        name="ingest",
        description="`vmsizes ingest prices` of 1,000,000 prices of 10,000 sizes, against csv.reader and executemany",
        subject=COMMAND, reference=None, kind="ingest", goal=_ratio(0.4),
    ),
    BenchmarkCase(
        name="ingest-page",
        description="`vmsizes ingest documents` of a page of a new series beside 905,000 facts: CPU seconds",
        subject=COMMAND, reference=None, kind="ingest of a page", goal=_below("new: CPU s", 2),
    ),
    BenchmarkCase(
        name="ingest-page-memory", description="the same: the memory of the command",
        subject=COMMAND, reference=None, kind="ingest of a page", goal=_below("MB", 150),
    ),
)  # fmt: skip

ON_POSTGRESQL = (
    *("panel", "panel-p99", "panel-again", "memory-panel", "cpu-facets", "cpu-facets-100k", "cpu-fit", "cpu-fit-100k"),
    *("cpu-similar", "cpu-similar-100k", "cpu-unknown", "cpu-unknown-100k", "stalls", "stalls-healthz"),
)
"""What is measured on both databases with the same goals; the CPU time is that of the service, not of the database."""

CASES = (
    *_CASES,
    *(
        replace(one, name=f"{one.name}-postgresql", description=f"*{one.name}* on PostgreSQL", database="postgresql")
        for one in _CASES
        if one.name in ON_POSTGRESQL
    ),
)
