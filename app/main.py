"""Builds the application: routers, exception handlers, database, response cache."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from functools import partial
from importlib.metadata import version

from fastapi import Depends, FastAPI
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.datastructures import State
from starlette.types import ASGIApp

from app.api import system
from app.api.deps import validate_request
from app.api.executor import QueryExecutor
from app.api.exports import ExportFileCache, ExportStreams
from app.api.openapi import docs
from app.api.routes import api_routers, render_estimate
from app.db.databases import open_database
from app.http.access import AccessMiddleware, RateLimiter
from app.http.canonical import cacheable_endpoints
from app.http.common_headers import common_headers, problem_maker
from app.http.middleware import CacheMiddleware
from app.http.observer import RequestObserver
from app.http.problems import HANDLERS
from app.http.revision import RevisionWatcher
from app.lifespan import COUNT_REFUSAL, FIND_STORED, MAKE_PROBLEM, CountRefusal, FindStored, MakeProblem
from app.mcp.http import McpEndpoint
from app.questions import ENDPOINTS
from app.settings import Settings
from app.telemetry import tracing
from app.telemetry.logs import BackgroundLogs
from app.web.llms import ROUTES as MACHINE_ROUTES
from app.web.serving import PAGES, error_page, page_endpoints, page_routes

_DESCRIPTION = """Look up, compare and cost cloud VM sizes. Every figure has a source, and where sources
disagree it says so. Memory is in GiB, prices in USD an hour; null is unknown, zero is zero."""


def _today() -> date:
    return datetime.now(UTC).date()


def create_asgi_app(settings: Settings | None = None, *, today: Callable[[], date] = _today) -> CacheMiddleware:
    """Return the ASGI application that a server runs: `create_app` behind its response cache."""
    cache: CacheMiddleware = create_app(settings, today=today).state.cache
    return cache


def create_service(
    settings: Settings | None = None, *, today: Callable[[], date] = _today, logs: BackgroundLogs | None = None
) -> ASGIApp:
    """Return what a server runs: `create_asgi_app`, behind API keys and a rate limit where they are set.

    `logs` are closed with the application.
    """
    settings = settings or Settings()
    application, keys = create_asgi_app(settings, today=today), settings.load_api_keys()
    application.app.state.logs = logs
    if not keys and not settings.rate_limit_requests:
        application.app.state.is_outermost = True
        return application
    limiter = None
    if settings.rate_limit_requests:
        limiter = RateLimiter(settings.rate_limit_requests, settings.rate_limit_window_seconds)
    return AccessMiddleware(
        application,
        application.observer,
        keys=keys,
        limiter=limiter,
        public_url=settings.public_url.rstrip("/"),
        security_headers=common_headers(settings.hsts_seconds),
        problem_page=error_page,
    )


def create_app(settings: Settings | None = None, *, today: Callable[[], date] = _today) -> FastAPI:
    """Return the FastAPI app without the response cache; tests pass their own settings and calendar."""
    settings = settings or Settings()
    public_url = settings.public_url.rstrip("/")
    # FastAPI adds an alias to models, and suppresses pydantic's warning only for those that it builds at once.
    warnings.filterwarnings("ignore", "The 'alias' attribute", UnsupportedFieldAttributeWarning)
    app = FastAPI(
        lifespan=_lifespan,
        title="vmsizes",
        version=version("vmsizes"),
        summary="Cloud VM sizes: look them up, compare them, cost them.",
        description=_DESCRIPTION,
        openapi_url=None,
        redirect_slashes=False,
        servers=[{"url": public_url or "/"}],
        exception_handlers=HANDLERS,
    )
    _init_state(app.state, settings, today, app.version)
    pages = page_routes(PAGES)
    pages.extend(MACHINE_ROUTES)
    app.router.routes.extend(pages)  # before `/` for programs
    of_api = list(api_routers())
    routers = (*of_api, system.router, docs.router)
    for router in routers:
        app.include_router(router, dependencies=[Depends(validate_request)])
    agents = [app.state.mcp.route()] if app.state.mcp is not None else []
    app.router.routes.extend(agents)
    app.state.routes = [*(route for router in routers for route in router.routes), *pages, *agents]
    app.state.observer = RequestObserver(
        [(method, route.path) for route in app.state.routes for method in route.methods if method != "HEAD"],
        system.problem_types(),
        counters=system.worker_counters(app.state),
        gauges=system.worker_gauges(app.state),
        revision=lambda: (app.state.watcher.state.revision or {}).get("number"),
        access_log=settings.access_log,
        folder=settings.counters_folder,
    )
    ask = app.state.executor.ask
    fast_paths: dict[str, Callable[..., Awaitable[str]]] = {
        endpoint.find.__name__: partial(ask, endpoint) for endpoint in ENDPOINTS.values() if "{" not in endpoint.path
    }
    fast_paths["estimate_workload"] = partial(render_estimate, app.state.executor)
    app.state.cache = CacheMiddleware(
        app,
        [*cacheable_endpoints(of_api, fast_paths), *page_endpoints(PAGES)],
        app.state.watcher,
        app.state.observer,
        max_bytes=app.state.cache_bytes,
        public_url=public_url,
        max_age_seconds=settings.max_age_seconds,
        max_requests=settings.max_requests,
        request_seconds=settings.request_seconds,
        security_headers=common_headers(settings.hsts_seconds),
        problem_page=error_page,
    )
    app.state.make_problem = problem_maker(public_url, common_headers(settings.hsts_seconds))
    docs.install_docs(app, needs_key=bool(settings.load_api_keys()), is_limited=bool(settings.rate_limit_requests))
    return app


def _init_state(state: State, settings: Settings, today: Callable[[], date], app_version: str) -> None:
    """Create what endpoints share: the database, query executors, export streams and files."""
    state.database, state.today = open_database(settings.database_url, serving=True), today
    state.stale_after_days = settings.stale_after_days
    state.cache_bytes = settings.cache_mib * 2**20
    state.otlp_endpoint = settings.otlp_endpoint
    state.is_outermost = False  # whether no application around the cache has to see each request
    state.logs = None  # a BackgroundLogs where lines are written in a thread
    exporting = open_database(settings.database_url, serving=True, pool_size=0)
    state.streams = ExportStreams(exporting, max_seconds=settings.export_seconds)
    state.files = ExportFileCache(state.streams, max_bytes=settings.exports_mib * 2**20)
    watching = open_database(settings.database_url, serving=True, pool_size=1)  # not in the pool of the queries
    state.watcher = RevisionWatcher(watching, today, app_version)
    state.executor = QueryExecutor(state.database, state.watcher, today)
    state.mcp = None
    if settings.mcp:
        state.mcp = McpEndpoint(
            state.database,
            today,
            served=lambda: state.watcher.state.snapshot,
            public_url=settings.public_url,
            guard=state.watcher.while_reachable,
        )


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[dict[str, CountRefusal | FindStored | MakeProblem]]:
    """Release at shutdown what `_init_state` created.

    The server learns where to count what it refuses itself, and where to find responses that it may send itself.
    """
    tracing.start(app.state.otlp_endpoint, app.version)  # its thread must be of the process that serves
    sampling = asyncio.create_task(app.state.observer.keep_sampling())
    state: dict[str, CountRefusal | FindStored | MakeProblem] = {
        COUNT_REFUSAL: app.state.observer.count_refusal,
        MAKE_PROBLEM: app.state.make_problem,
    }
    if app.state.is_outermost:
        state[FIND_STORED] = app.state.cache.find_stored
    yield state
    sampling.cancel()
    app.state.observer.close()
    if app.state.mcp is not None:
        await app.state.mcp.close()
    app.state.streams.close()
    app.state.files.close()
    app.state.executor.close()
    app.state.watcher.close()
    app.state.database.dispose()
    await asyncio.to_thread(tracing.stop)
    if app.state.logs is not None:
        app.state.logs.close()
