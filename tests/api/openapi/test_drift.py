from pathlib import Path

import pytest

from app.settings import PROJECT
from tests.api.openapi.generated_files import GENERATED


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_what_is_made_from_the_code_is_as_the_code_is(path: Path) -> None:
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    if kept != GENERATED[path]():
        pytest.fail(f"{path.relative_to(PROJECT)} is not what the code says: run `make openapi`.", pytrace=False)
