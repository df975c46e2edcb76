"""Endpoints for the OpenAPI document, the documentation page and `/`; none of these is in the document."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.staticfiles import StaticFiles

from app.http.cache import ENCODERS, preferred_encoding
from app.http.common_headers import PAGE_HEADERS
from app.http.headers import PUBLIC_URL, client_has, parse_headers

router = APIRouter(include_in_schema=False)
OPENAPI_PATH, OPENAPI30_PATH = "/openapi.json", "/openapi-3.0.json"
DOCS_PATH, ASSETS_PATH = "/docs", "/docs/assets"
_LINKS = {
    "documentation": DOCS_PATH,
    "openapi": OPENAPI_PATH,
    "openapi_3_0": OPENAPI30_PATH,
    "sizes": "/sizes",
    "prices": "/prices",
    "fit": "/fit",
    "models": "/models",
    "problems": "/problems",
    "ready": "/readyz",
}
"""The links that `/` gives to programs."""
_CACHE_CONTROL = "public, max-age=300"
_CACHED = {"cache-control": _CACHE_CONTROL, "vary": "origin"}
_PAGE_FILES = files("app.api.openapi") / "page"


def _encode_document(document: dict[str, Any]) -> tuple[Mapping[str | None, bytes], str]:
    """Return the bytes of a document in each encoding, and the ETag that they share, which is weak for that reason."""
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    bodies: dict[str | None, bytes] = {encoding: encode(body) for encoding, encode in ENCODERS.items()}
    return bodies | {None: body}, f'W/"{hashlib.blake2s(body, digest_size=12).hexdigest()}"'


@router.get(OPENAPI_PATH)
@router.get(OPENAPI30_PATH)
def get_openapi(request: Request) -> Response:
    """Return the OpenAPI 3.1 document, or the same as OpenAPI 3.0.3."""
    bodies, etag = request.app.state.openapi_documents[request.scope["route"].path]()
    headers = {"etag": etag, "cache-control": _CACHE_CONTROL, "vary": "accept-encoding, origin"}
    conditions = parse_headers(request.scope["headers"])
    if client_has(etag.encode(), conditions):
        return Response(status_code=304, headers=headers)
    encoding = preferred_encoding(conditions.get(b"accept-encoding", b""))
    if encoding is not None:
        headers["content-encoding"] = encoding
    return Response(bodies[encoding], media_type="application/json", headers=headers)


@router.get("/")
def landing(request: Request) -> Response:
    """Return JSON with links; a client that accepts HTML gets the search page of `app.web` instead."""
    app, base = request.app, request.scope.get(PUBLIC_URL, "")
    links = {name: f"{base}{path}" for name, path in _LINKS.items()}
    described = {"name": app.title, "version": app.version, "description": app.description, "links": links}
    return JSONResponse(described, headers={"cache-control": "no-cache", "vary": "accept"})


@router.get(DOCS_PATH)
def docs_page() -> Response:
    """Return the documentation page, where requests can be tried out; all assets come from this server."""
    return HTMLResponse(
        (_PAGE_FILES / "page.html").read_bytes(),
        headers={**PAGE_HEADERS, **_CACHED},
    )


@router.get(f"{DOCS_PATH}/page.js")
def docs_script() -> Response:
    """Return the script of the documentation page."""
    return Response((_PAGE_FILES / "page.js").read_bytes(), media_type="text/javascript", headers=_CACHED)


def install_docs(app: FastAPI, *, needs_key: bool = False, is_limited: bool = False) -> None:
    """Give an app its documents, each built when it is first requested, with keys and limits that are set.

    Swagger UI's files, which a wheel carries, are served with them.
    """

    def openapi() -> dict[str, Any]:
        from app.api.openapi.build import openapi_document

        return openapi_document(app, needs_key=needs_key, is_limited=is_limited)

    def openapi30() -> dict[str, Any]:
        from app.api.openapi.build import to_openapi30

        return to_openapi30(openapi())

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend the document
    app.state.openapi_documents = {
        OPENAPI_PATH: cache(lambda: _encode_document(openapi())),
        OPENAPI30_PATH: cache(lambda: _encode_document(openapi30())),
    }
    app.mount(ASSETS_PATH, StaticFiles(directory=str(files("fastapi_offline") / "static")), name="docs-assets")
