"""Pages of other origins: they may read every answer, errors too; nothing is known of who asks (CORS)."""

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

EXPOSED = ("ETag", "Link", "X-Request-ID", "Cache-Status", "Retry-After", "Allow", "Deprecation", "Sunset")
"""Headers that a script may see beside those that it always may."""

_A_DAY_SECONDS = 86_400


def for_any_origin(app: ASGIApp) -> CORSMiddleware:
    """Let an application be asked by pages of any origin, without credentials."""
    return CORSMiddleware(
        app,
        allow_origins=["*"],
        allow_methods=["GET", "HEAD", "POST", "OPTIONS"],
        allow_headers=["*"],
        expose_headers=EXPOSED,
        max_age=_A_DAY_SECONDS,
    )
