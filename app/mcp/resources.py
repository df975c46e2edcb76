"""Resources: sizes, their facts, language models and the revision, each as the JSON of the API."""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote

from pydantic import BaseModel

from app.catalog.queries.params import SizeParams
from app.catalog.queries.provenance import FactSearch
from app.catalog.queries.snapshot import Catalog
from app.catalog.store.revisions import latest_revision
from app.errors import NotFound
from app.mcp.catalog import RevisionInfo
from app.nearest import closest_spellings
from app.questions import NoParams, answer

_MOST = 500


class Resource(NamedTuple):
    """A resource, or with `{name}` in its URI a template of many."""

    uri: str
    name: str
    description: str


RESOURCES = (
    Resource("vmsizes://revision", "revision", "What the catalog is from: revision, digest, day of the newest prices."),
    Resource("vmsizes://models", "models", "Language models that fit_workload knows, with parameters and context."),
)
TEMPLATES = (
    Resource("vmsizes://sizes/{name}", "size", "All fields of a size, with its cheapest price."),
    Resource("vmsizes://sizes/{name}/facts", "facts", "What each source says of a size, file and line, and verdicts."),
    Resource("vmsizes://models/{name}", "model", "The configuration of a language model."),
)


def read_resource(uri: str, catalog: Catalog, revision: RevisionInfo) -> str:
    """Return a resource as JSON text; raises NotFound for one that there is not."""
    if uri == "vmsizes://revision":
        latest = latest_revision(catalog.session)
        return _to_text(revision.to_json() | {"rows": {} if latest is None else latest["counts"]})
    if uri == "vmsizes://models":
        rows = {row["id"]: row for row in catalog.snapshot.models.values()}
        shown = ("id", "name", "params", "active_params", "max_context_tokens")
        return _to_text({"models": [{name: rows[key][name] for name in shown} for key in sorted(rows)]})
    for pattern, (endpoint, params) in _QUESTIONS.items():
        if match := re.fullmatch(pattern, uri):
            return _to_text(answer(catalog, endpoint, params, unquote(match[1])))
    known = [one.uri for one in (*RESOURCES, *TEMPLATES)]
    raise NotFound("resource", uri, suggestions=closest_spellings(uri, known, 2))


def _to_text(data: object) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


_QUESTIONS: Mapping[str, tuple[str, BaseModel]] = {
    r"vmsizes://models/(.+)": ("GET /models/{name}", NoParams()),
    r"vmsizes://sizes/([^/]+)": ("GET /sizes/{name}", SizeParams()),
    r"vmsizes://sizes/([^/]+)/facts": ("GET /sizes/{name}/facts", FactSearch(limit=_MOST)),
}
"""The question that the resource of a name answers, by the pattern of its URI."""
