"""ASGI middleware and error handling of the API: response cache, request limits, CORS, problems (RFC 9457)."""
