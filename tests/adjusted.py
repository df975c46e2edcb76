"""A service whose prices follow rules of the reader's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from app.ingest.registry import read_csv_source
from app.ingest.run import ingest
from app.main import create_asgi_app
from app.settings import Settings
from tests.conftest import TODAY
from tests.databases import Databases, make_read_only, writable
from tests.factories import NOW
from tests.servers import open_client, server


@contextmanager
def serve_adjusted(databases: Databases, template_url: str, file: Path) -> Iterator[httpx.Client]:
    """Yield a client of a service on a copy of the database, with the rules of a CSV file."""
    url = databases.copy(template_url)
    service = create_asgi_app(Settings(_env_file=None, database_url=url), today=lambda: TODAY)
    summary = ingest(writable(service), read_csv_source("adjustments", file), now=NOW).summary
    assert summary.changes["adjustment"].added == len(file.read_text().splitlines()) - 1
    assert summary.events == 0  # rules are no changes of the catalog
    make_read_only(service.app.state.database)
    with server(service) as base, open_client(base) as client:
        yield client
    service.app.state.database.dispose()
    databases.drop(url)
