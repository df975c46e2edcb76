"""Security headers: what browsers may do with a response."""

from app.http.cache import Header, Headers

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of pages: nothing comes from other origins, and no inline script or style applies."""

PAGE_HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""Pages have forms and scripts of their own, and links among each other, so their policies differ from DATA_HEADERS."""

DATA_HEADERS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"cross-origin"),
]
"""The headers of a response that sets none of them: a browser that opens it runs, loads and frames nothing.

The API is public and has CORS headers, so that pages of other origins may embed its responses, too.
"""


def common_headers(hsts_seconds: int = 0) -> Headers:
    """Return the security headers of every response; HSTS only where the service is behind TLS."""
    if not hsts_seconds:
        return DATA_HEADERS
    return [*DATA_HEADERS, (b"strict-transport-security", b"max-age=%d" % hsts_seconds)]


def missing_from(headers: Headers, common: Headers) -> list[Header]:
    """Return those of `common` that a response does not set itself."""
    names = {name for name, _ in headers}
    return [header for header in common if header[0] not in names]
