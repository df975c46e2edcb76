"""Runs the service with the seeded catalog on a free port, for programs outside pytest."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from app.http.middleware import CacheMiddleware
from app.main import create_asgi_app
from app.settings import Settings
from tests.databases import START
from tests.seeded import seeded_url
from tests.servers import server

TODAY = date(2026, 9, 1)


@contextmanager
def seeded_service(kind: str) -> Iterator[CacheMiddleware]:
    """Yield the service on a `sqlite` or `postgresql` database with everything in seeds/, to be read."""
    with tempfile.TemporaryDirectory() as folder, START[kind](Path(folder)) as databases:
        url = seeded_url(databases)
        service = create_asgi_app(Settings(_env_file=None, database_url=url), today=lambda: TODAY)
        yield service
        service.app.state.database.dispose()


@contextmanager
def served(kind: str) -> Iterator[str]:
    """Serve the seeded catalog and yield the base URL."""
    with seeded_service(kind) as service, server(service) as url:
        yield url
