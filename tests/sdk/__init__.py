"""Clients that generators produce from the OpenAPI document, compiled and run against the service."""
