"""Styles, scripts, fonts and icons under names with a hash of their content, which clients may keep for good.

The stylesheets of `static/css` are served as one file and need no build. `make assets` puts into `static/dist` what
does: scripts, charts and fonts. Where it is missing, pages are complete without scripts, in the fonts of
the system.
"""

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.http.cache import ENCODERS, preferred_encoding
from app.http.headers import parse_headers

_FOLDER = Path(__file__).parent
_STATIC, _DIST = _FOLDER / "static", _FOLDER / "static" / "dist"
_FIRST, _LAST = ("tokens.css", "base.css", "components.css"), "print.css"
"""Stylesheets before and after those of single pages, which come by name."""

_IMMUTABLE = "public, max-age=31536000, immutable"
_ENCODED_TYPES = ("text/", "image/svg+xml", "application/json")
_FONT_URL = re.compile(r"url\((?:\./)?fonts/([\w.-]+)\)")


@dataclass(frozen=True, slots=True)
class Asset:
    """The bytes of a file, and of its encodings that were requested so far."""

    body: bytes
    media_type: str
    encoded: dict[str | None, bytes] = field(default_factory=dict)

    def in_encoding(self, encoding: str | None) -> bytes:
        """Return the bytes in an encoding, encoding them on first use."""
        if encoding not in self.encoded:
            self.encoded[encoding] = ENCODERS[encoding](self.body) if encoding else self.body
        return self.encoded[encoding]


class Assets:
    """All assets by their public names; `version` changes with any of them, and with any template."""

    def __init__(self, files: Mapping[str, bytes], version: str) -> None:
        self.version = version
        self._names = {name: _hashed_name(name, body) for name, body in files.items()}
        self._by_public_name = {
            self._names[name]: Asset(body, _MEDIA_TYPES[name.rpartition(".")[2]]) for name, body in files.items()
        }

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> str:
        """Return the path of an asset below `/`."""
        return f"assets/{self._names[name]}"

    def response(self, public_name: str, headers: Collection[tuple[bytes, bytes]]) -> Response:
        """Return the response to a request for an asset; raises a 404 for a name of another version."""
        asset = self._by_public_name.get(public_name)
        if asset is None:
            raise HTTPException(404)
        encodable = asset.media_type.startswith(_ENCODED_TYPES)
        encoding = preferred_encoding(parse_headers(headers).get(b"accept-encoding", b"")) if encodable else None
        sent = {"cache-control": _IMMUTABLE, "content-type": asset.media_type, "vary": "accept-encoding"}
        if encoding is not None:
            sent["content-encoding"] = encoding
        return Response(asset.in_encoding(encoding), headers=sent)


@cache
def assets() -> Assets:
    """Read the assets; once, so a running service keeps those that it began with."""
    fonts = {path.name: path.read_bytes() for path in sorted((_DIST / "fonts").glob("*.woff2"))}
    scripts = {path.name: path.read_bytes() for path in sorted(_DIST.glob("*.js"))}
    others = {path.name: path.read_bytes() for path in sorted(_STATIC.glob("*.svg"))}
    licences = _DIST / "licences.txt"
    if licences.exists():
        others[licences.name] = licences.read_bytes()
    files = {**fonts, **scripts, **others, "style.css": _stylesheet(fonts)}
    templates = [path.read_bytes() for path in sorted((_FOLDER / "templates").rglob("*.html"))]
    version = hashlib.blake2s(b"\0".join([*files.values(), *templates]), digest_size=8).hexdigest()
    return Assets(files, version)


def _stylesheet(fonts: Mapping[str, bytes]) -> bytes:
    """Return all stylesheets as one, without comments, and with the hashed names of fonts."""
    folder = _STATIC / "css"
    of_pages = sorted(path.name for path in folder.glob("*.css") if path.name not in (*_FIRST, _LAST))
    names = [*_FIRST, *of_pages, _LAST]
    parts = [(folder / name).read_text(encoding="utf-8") for name in names]
    declared = _DIST / "fonts.css"
    if declared.exists():
        parts.insert(0, declared.read_text(encoding="utf-8"))
    text = re.sub(r"/\*.*?\*/\s*", "", "\n".join(parts), flags=re.DOTALL)
    return _FONT_URL.sub(lambda match: f"url({_hashed_name(match[1], fonts[match[1]])})", text).encode()


def _hashed_name(name: str, body: bytes) -> str:
    stem, _, suffix = name.rpartition(".")
    return f"{stem}-{hashlib.blake2s(body, digest_size=6).hexdigest()}.{suffix}"


_MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "woff2": "font/woff2",
}
"""By the ends of the names of assets; `mimetypes` would read the system's files to know them."""
