"""Pages of other origins: they may read every answer, errors too; nothing is known of who asks (CORS)."""

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

EXPOSED = (
    *("ETag", "Link", "X-Request-ID", "Cache-Status", "Retry-After", "Allow", "Accept-Post", "Deprecation", "Sunset"),
    *("Accept-Ranges", "Content-Range", "Content-Disposition"),
)
"""Headers that a script may see beside those that it always may."""

_A_DAY_SECONDS = 86_400


class AnyOrigin(CORSMiddleware):
    """Lets every answer be read by pages of any origin; a preflight is answered by the app, which knows its paths."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Mark the answer."""
        await self.simple_response(scope, receive, send, request_headers=Headers(scope=scope))


def for_any_origin(app: ASGIApp) -> AnyOrigin:
    """Let an application be asked by pages of any origin, without credentials."""
    return AnyOrigin(app, allow_origins=["*"], expose_headers=EXPOSED)


def is_preflight(method: str, headers: Headers) -> bool:
    """Whether a browser asks if a page of another origin may send a request."""
    return method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def preflight_headers(headers: Headers, allowed: str) -> dict[str, str]:
    """What is allowed to a page of another origin: the methods of the path, and every header that it asks for."""
    told = {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Allow-Methods": allowed,
        "Access-Control-Max-Age": str(_A_DAY_SECONDS),
        "Vary": "Access-Control-Request-Method, Access-Control-Request-Headers",
    }
    asked = headers.get("access-control-request-headers")
    return told if asked is None else {**told, "Access-Control-Allow-Headers": asked}
