"""The OpenAPI document: what FastAPI does not say by itself, said for every operation."""

from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

from app.api.problems import MEDIA_TYPE, Problem

_REFERENCE = "#/components/schemas/{model}"


def problem_response(description: str) -> dict[str, Any]:
    """Say that an operation may answer with a problem."""
    content = {MEDIA_TYPE: {"schema": {"$ref": _REFERENCE.format(model="Problem")}}}
    return {"description": description, "content": content}


def operation_id(route: APIRoute) -> str:
    """Name an operation as its function is named, in lowerCamelCase: `listSizes`."""
    first, *rest = route.name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def describe(app: FastAPI) -> None:
    """Let the document hold the shape of problems, and say which operations look something up by name."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generate()
            _, shapes = models_json_schema([(Problem, "serialization")], ref_template=_REFERENCE)
            document["components"]["schemas"] |= shapes["$defs"]
            for path, operations in document["paths"].items():
                if "{" in path:
                    operations["get"]["responses"]["404"] = problem_response("Nothing has this name.")
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend the document
