"""The OpenAPI document: FastAPI's, simplified so that client generators produce code that compiles (ADR 11)."""
