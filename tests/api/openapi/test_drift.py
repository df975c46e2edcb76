from pathlib import Path

import pytest

from app.settings import PROJECT
from tests.api.openapi.generated_files import GENERATED

pytestmark = pytest.mark.first_database


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_generated_files_are_up_to_date(path: Path) -> None:
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    if kept != GENERATED[path]():
        pytest.fail(f"{path.relative_to(PROJECT)} is out of date: run `make openapi`.", pytrace=False)
