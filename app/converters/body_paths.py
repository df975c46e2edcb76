"""Translates the fields that app.fit and app.services name to paths of the bodies of POST /fit and POST /estimate.

Both name fields of their own: `part.field` of a dataclass, or a parameter of a catalog search. A body has them at the
path of PATHS, and those that are not in PATHS at the path of the same name. Texts that mention a field are not
translated.
"""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from operator import attrgetter
from typing import Any

from app.catalog.names import as_written
from app.catalog.queries.params import SizeSelection
from app.errors import BadQuery, BadWorkload
from app.fit.formulas.assumptions import Assumption, OmittedFigure
from app.fit.placement.fixes import Change
from app.schemas.fit_request import FitIn

PATHS = {
    "series": "constraints.series",
    "name": "constraints.name",
    "gpu": "constraints.gpu",
    "gpu_vendor": "constraints.gpu_vendor",
    "region": "constraints.regions",
    "available_in": "constraints.available_in",
    "provider": "constraints.provider",
    "country": "constraints.country",
    "continent": "constraints.continent",
    "os": "pricing.os",
    "currency": "pricing.currency",
    "as_of": "pricing.as_of",
    "known_at": "pricing.known_at",
}
"""Where a body has the parameters of a query: those of a search are read from there, and errors name that place."""


def to_path(field: str) -> str:
    """Return the path in the body of a field."""
    return PATHS.get(field, field)


def search_params(body: FitIn) -> dict[str, Any]:
    """Return the parameters of a catalog search that a body has, by name; regions as they are written there."""
    params = {name: attrgetter(path)(body) for name, path in PATHS.items() if name in SizeSelection.model_fields}
    return params | {name: tuple(map(as_written, params[name])) for name in ("region", "available_in")}


def to_body_error(error: BadQuery | BadWorkload) -> BadWorkload:
    """Return the error about a field, and about its value if known, as one about the path in the body."""
    detail = error.allowed if isinstance(error, BadQuery) else error.detail
    return BadWorkload(to_path(error.field), detail, error.value)


def with_paths(assumptions: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """Return assumptions that name the paths at which a body would set the fields."""
    return tuple(replace(one, field=to_path(one.field)) for one in assumptions)


def with_missing_paths(left_out: Iterable[OmittedFigure]) -> tuple[OmittedFigure, ...]:
    """Return omitted figures that name the paths at which a body would have the missing fields."""
    return tuple(replace(one, missing=tuple(map(to_path, one.missing))) for one in left_out)


def to_patch(changes: Iterable[Change]) -> dict[str, dict[str, Any]]:
    """Return what changes do to a body, as a JSON Merge Patch (RFC 7396); amounts of money become plain numbers."""
    patch: dict[str, dict[str, Any]] = {}
    for change in changes:
        part, _, name = to_path(f"{change.part}.{change.field}").partition(".")
        value = change.value
        patch.setdefault(part, {})[name] = float(value) if isinstance(value, Decimal) else value
    return patch
