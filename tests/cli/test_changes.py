"""The command `vmsizes changes`."""

import json

import pytest
from sqlalchemy import Engine

from app.ingest.run import ingest
from tests.cli.conftest import Run
from tests.factories import NOW, reading, size
from tests.price_changes import ingest_a_price_that_rises

pytestmark = pytest.mark.one_database  # what a command prints does not depend on the kind of database


@pytest.mark.takes_seconds
def test_changes_are_printed_as_a_table_and_as_json(run: Run, engine: Engine, database_url: str) -> None:
    ingest_a_price_that_rises(engine)
    done = run(database_url, "changes", "--since", "2026-08-31", "--region", "westeurope")
    assert done.returncode == 0, done.stderr
    heading, line, *_, last = done.stdout.splitlines()
    assert heading.split()[:4] == ["on", "kind", "size", "region"]
    assert line.split()[:4] == ["2026-09-01", "price_up", "Standard_NC24ads_A100_v4", "westeurope"]
    assert last == "1 of 1. Changes are known since 2026-08-30."
    (event,) = json.loads(run(database_url, "changes", "--json").stdout)
    assert (event["kind"], event["at"], event["percent"]) == ("price_up", "2026-09-01T12:00:00Z", 4.942857143)
    assert run(database_url, "changes", "--since", "soon").returncode == 2


def test_without_changes_it_says_since_when_they_are_known(run: Run, engine: Engine, database_url: str) -> None:
    ingest(engine, reading(size("Standard_X1", vcpus=8)), now=NOW)
    nothing = run(database_url, "changes")
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert "Nothing matches. Changes are known since 2026-09-01." in nothing.stderr
