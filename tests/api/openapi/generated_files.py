"""The generated files: both OpenAPI documents, the tables of the guide, a snapshot of what answers hold."""

import json
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from app.api.openapi.build import Document, to_openapi30
from app.main import create_app
from app.settings import PROJECT, Settings
from tests.api.openapi.tables import fill


def make_document() -> Document:
    """Return the document of a service without a public URL."""
    document: dict[str, Any] = create_app(Settings(_env_file=None, database_url="sqlite://", public_url="")).openapi()
    return document


document = cache(make_document)
"""The same, made once for all who only read it."""


def _as_text(document: Document) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _filled(page: Path) -> str:
    return fill(page.read_text(encoding="utf-8"), document())


GENERATED: Mapping[Path, Callable[[], str]] = {
    PROJECT / "docs/openapi.json": lambda: _as_text(document()),
    PROJECT / "docs/openapi-3.0.json": lambda: _as_text(to_openapi30(document())),
    **{
        page: partial(_filled, page)
        for page in (PROJECT / "docs/api.md", PROJECT / "docs/catalog.md", Path(__file__).with_name("answers.md"))
    },
}
"""The generated files, each with the function that returns its text."""
