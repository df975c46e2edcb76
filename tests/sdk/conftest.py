"""Clients that are generated once, and the service as a later version would answer."""

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
    """One kind: a client does not know what is behind the service."""
    return single_database


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Give the folder of a client, which is generated and compiled when it is first asked for."""
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
    """Where a later version answers: with one more field in every object, and new words wherever they may come."""
    service = create_asgi_app(Settings(_env_file=None, database_url=seeded_url), today=lambda: TODAY)
    make_read_only(service.app.state.engine)
    with server(later_version(service, DOCUMENT)) as url:
        yield url
    service.app.state.engine.dispose()
