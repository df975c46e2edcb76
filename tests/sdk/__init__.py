"""Clients that generators write from the OpenAPI document: compiled, and let loose on the running service."""
