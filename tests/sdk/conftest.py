"""Fixtures: clients that are generated once, and a later version of the service."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.main import create_asgi_app
from app.settings import Settings
from tests.conftest import TODAY
from tests.databases import Databases, make_read_only
from tests.sdk.building import build
from tests.sdk.gates import DOCUMENT
from tests.sdk.later_version import later_version
from tests.sdk.toolchains import Toolchain
from tests.sdk.tools import missing
from tests.servers import server

Built = Callable[[Toolchain], Path]


@pytest.fixture(scope="session")
def databases(single_database: Databases) -> Databases:
    """Use one kind of database: clients cannot tell them apart."""
    return single_database


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Return a function that returns the folder of a client, which is built on the first call."""
    folders: dict[str, Path] = {}

    def folder_of(toolchain: Toolchain) -> Path:
        absent = missing(toolchain.needs)
        if absent:
            pytest.skip(absent)
        if toolchain.name not in folders:
            folder = tmp_path_factory.mktemp("sdk") / toolchain.name
            build(toolchain, DOCUMENT.parent, folder)
            folders[toolchain.name] = folder
        return folders[toolchain.name]

    return folder_of


@pytest.fixture(scope="session")
def later_url(seeded_url: str) -> Iterator[str]:
    """The URL of a later version, with one more field in every object and new values of extensible fields."""
    service = create_asgi_app(Settings(_env_file=None, database_url=seeded_url), today=lambda: TODAY)
    make_read_only(service.app.state.database)
    with server(later_version(service, DOCUMENT)) as url:
        yield url
    service.app.state.database.dispose()
