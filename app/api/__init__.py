"""The JSON API: routes, the schemas of requests and responses, and the OpenAPI document."""
