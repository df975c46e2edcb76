"""ROOF: joins every room to one FastAPI app."""

import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from functools import partial
from importlib.metadata import version

from fastapi import Depends, FastAPI
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.datastructures import State

from app.api.deps import validate_request
from app.api.executor import QueryExecutor
from app.api.exports import ExportFileCache, ExportStreams
from app.api.openapi import docs
from app.api.openapi.build import install_openapi, operation_id
from app.api.routes import catalog, compare, exports, fit, models, sizes, system
from app.db.engines import make_engine
from app.http.canonical import cacheable_endpoints
from app.http.middleware import CacheMiddleware
from app.http.problems import HANDLERS
from app.http.revision import RevisionWatcher
from app.settings import Settings

_DESCRIPTION = """Look up, compare and cost cloud VM sizes. Every figure has a source, and where sources disagree you
are told. Memory is in GiB, prices in USD an hour; null is unknown, zero is zero."""

_API_ROUTERS = (
    sizes.router,
    exports.router,
    compare.router,
    fit.router,
    models.router,
    catalog.router,
)
_FAST_PATHS: dict[str, Callable[..., Awaitable[str]]] = {
    "list_sizes": sizes.render_sizes,
    "fit_workload": fit.render_workload_fit,
}
"""Endpoints that are asked so often that a valid question does not go through the framework."""


def _today() -> date:
    return datetime.now(UTC).date()


def create_asgi_app(settings: Settings | None = None, *, today: Callable[[], date] = _today) -> CacheMiddleware:
    """Make the app with the answers that it keeps in front of it: what a server runs."""
    answers: CacheMiddleware = create_app(settings, today=today).state.cache
    return answers


def create_app(settings: Settings | None = None, *, today: Callable[[], date] = _today) -> FastAPI:
    """Make the service; a test hands in its own settings and its own calendar."""
    settings = settings or Settings()
    public_url = settings.public_url.rstrip("/")
    # FastAPI gives models an alias, and silences what pydantic says of it only where they are built at once.
    warnings.filterwarnings("ignore", "The 'alias' attribute", UnsupportedFieldAttributeWarning)
    app = FastAPI(
        lifespan=_lifespan,
        title="vmsizes",
        version=version("vmsizes"),
        summary="Cloud VM sizes: look them up, compare them, cost them.",
        description=_DESCRIPTION,
        openapi_url=None,
        generate_unique_id_function=operation_id,
        redirect_slashes=False,
        servers=[{"url": public_url or "/"}],
        exception_handlers=HANDLERS,
    )
    _init_state(app.state, settings, today, app.version)
    quick = {name: partial(answer, app.state.executor) for name, answer in _FAST_PATHS.items()}
    known, room = cacheable_endpoints(_API_ROUTERS, quick), settings.cache_mib * 2**20
    app.state.cache = CacheMiddleware(
        app,
        known,
        app.state.watcher,
        max_bytes=room,
        public_url=public_url,
        max_age_seconds=settings.max_age_seconds,
    )
    routers = (*_API_ROUTERS, system.router, docs.router)
    for router in routers:
        app.include_router(router, dependencies=[Depends(validate_request)])
    app.state.routes = [route for router in routers for route in router.routes]
    docs.mount_docs(app)
    install_openapi(app)
    return app


def _init_state(state: State, settings: Settings, today: Callable[[], date], of_program: str) -> None:
    """Put in place what endpoints ask: the engine, its readers, what is kept."""
    state.engine, state.today = make_engine(settings.database_url), today
    state.streams = ExportStreams(make_engine(settings.database_url, pooled=False))
    state.files = ExportFileCache(state.streams, max_bytes=settings.exports_mib * 2**20)
    state.watcher = RevisionWatcher(state.engine, today, of_program)
    state.executor = QueryExecutor(state.engine, state.watcher, today)
    state.plan_executor = state.executor.plan_executor


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Give back at the end what was put in place."""
    yield
    app.state.streams.close()
    app.state.files.close()
    await app.state.executor.close()
    app.state.watcher.close()
    app.state.engine.dispose()
