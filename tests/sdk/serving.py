"""Runs the service with the seeded catalog on a free port, for programs outside pytest."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

from app.db import migrations
from app.db.engines import make_engine
from app.http.middleware import CacheMiddleware
from app.ingest.registry import read_seeds
from app.ingest.run import ingest
from app.main import create_asgi_app
from app.settings import PROJECT, Settings
from tests.databases import START
from tests.servers import server

TODAY = date(2026, 9, 1)


@contextmanager
def seeded_service(kind: str) -> Iterator[CacheMiddleware]:
    """Yield the service on a new `sqlite` or `postgresql` database with everything in seeds/."""
    with tempfile.TemporaryDirectory() as folder, START[kind](Path(folder)) as databases:
        url = databases.create()
        engine = make_engine(url)
        migrations.upgrade(engine)
        ingest(engine, read_seeds(PROJECT / "seeds"), now=datetime.now(UTC))
        engine.dispose()
        service = create_asgi_app(Settings(_env_file=None, database_url=url), today=lambda: TODAY)
        yield service
        service.app.state.engine.dispose()


@contextmanager
def served(kind: str) -> Iterator[str]:
    """Serve the seeded catalog and yield the base URL."""
    with seeded_service(kind) as service, server(service) as url:
        yield url
