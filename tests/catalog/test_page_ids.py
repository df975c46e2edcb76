from pathlib import Path

import pytest
from sqlalchemy import Engine, select

from app.catalog.column_types import table_of
from app.catalog.models import Source
from app.db.engines import read_session as reads
from app.errors import BadData
from app.ingest.run import IngestOutcome, ingest
from app.ingest.sources.documents import read_documents
from tests.factories import NOW, price, reading, size
from tests.ingest.pages import MEMORIES

pytestmark = pytest.mark.first_database
PAGE = "---\ntitle: NX v1-series\n{}---\n\n| Size | vCPUs |\n|---|---|\n| Standard_NX1_v1 | {} |\n"


def read(engine: Engine, path: Path, front: str = "", vcpus: int = 4) -> IngestOutcome:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PAGE.format(front, vcpus))
    return ingest(engine, read_documents([path], gpu_memories=MEMORIES), now=NOW)


def sources(engine: Engine) -> list[str]:
    with reads(engine) as session:
        return sorted(session.execute(select(table_of(Source).c.id)).scalars())


def test_a_page_cannot_state_the_id_of_another_source(engine: Engine, tmp_path: Path) -> None:
    read(engine, tmp_path / "vendor.md", "id: nx-v1\nkind: vendor_page\npinned: true\n")
    with pytest.raises(BadData, match=r"theirs\.md:3: column 'id': 'nx-v1': is the id of another source already"):
        read(engine, tmp_path / "theirs.md", "id: nx-v1\n", 8)


def test_a_page_cannot_state_the_id_of_a_list_of_prices(engine: Engine, tmp_path: Path) -> None:
    of_list = reading(size("Standard_X1", vcpus=8), prices=[price("X1", "3", source="prices")], regions=["eastus"])
    ingest(engine, of_list, now=NOW)
    with pytest.raises(BadData, match=r"theirs\.md:3: column 'id': 'prices': is the id of another"):
        read(engine, tmp_path / "theirs.md", "id: prices\n")


def test_a_page_with_a_stated_id_may_change_where_it_is_or_move_as_it_is(engine: Engine, tmp_path: Path) -> None:
    read(engine, tmp_path / "nx.md", "id: nx-v1\n")
    assert read(engine, tmp_path / "nx.md", "id: nx-v1\n", 8).summary.changes["fact"].changed == 1
    read(engine, tmp_path / "moved.md", "id: nx-v1\n", 8)
    read(engine, tmp_path / "moved.md", "id: nx-v1\n", 16)
    assert sources(engine) == ["nx-v1"]


def test_pages_of_one_name_are_two_sources_also_in_two_runs(engine: Engine, tmp_path: Path) -> None:
    read(engine, tmp_path / "one" / "page.md")
    read(engine, tmp_path / "two" / "page.md", vcpus=8)
    first, second = sources(engine)
    assert (first, second[:5], len(second)) == ("page", "page-", len("page-503033e4"))
    read(engine, tmp_path / "one" / "page.md", vcpus=16)
    read(engine, tmp_path / "two" / "page.md", vcpus=32)
    together = read_documents([tmp_path], gpu_memories=MEMORIES)
    assert not ingest(engine, together, now=NOW).new_revision
    assert sources(engine) == [first, second]


def test_an_included_page_without_figures_keeps_its_id(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "includes").mkdir()
    for text in ("About NX.", "More about NX."):
        (tmp_path / "includes" / "about.md").write_text(text)
        read(engine, tmp_path / "page.md", "---\n[!INCLUDE [a](includes/about.md)]\n\n")
        assert sources(engine) == ["about", "page"]
