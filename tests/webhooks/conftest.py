"""A receiver whose certificate the program trusts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.webhooks.receiver import Receiver, receiver_running, write_authority


@pytest.fixture(scope="session")
def authority_and_file(tmp_path_factory: pytest.TempPathFactory) -> tuple[trustme.CA, Path]:
    return write_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def authority(authority_and_file: tuple[trustme.CA, Path], monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """An authority that the program trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority_and_file[1]))
    return authority_and_file[0]


@pytest.fixture
def receiver(authority: trustme.CA) -> Iterator[Receiver]:
    with receiver_running(authority, "localhost") as running:
        yield running
