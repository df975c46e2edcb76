"""The OpenAPI document: what FastAPI says of the routes, brought to a form that client generators compile (ADR 11)."""
