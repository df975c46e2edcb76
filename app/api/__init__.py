"""The JSON API: routes, their dependencies, exports, and the OpenAPI document."""
