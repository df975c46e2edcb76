"""SHOW, as JSON: one module a resource."""
