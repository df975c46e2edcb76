"""Resources: sizes, their facts, language models and the revision, each as the JSON of the API."""

import json
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import unquote

from app.catalog.queries.params import SizeParams
from app.catalog.queries.provenance import FactSearch
from app.catalog.queries.snapshot import Catalog
from app.catalog.store.revisions import latest_revision
from app.converters.questions import NoParams, Question, answer
from app.errors import NotFound
from app.mcp.catalog import RevisionInfo
from app.nearest import closest_spellings

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
    for pattern, read in _READERS.items():
        if match := re.fullmatch(pattern, uri):
            name = unquote(match["name"]) if "name" in match.groupdict() else ""
            return read(name, catalog, revision)
    known = [one.uri for one in (*RESOURCES, *TEMPLATES)]
    raise NotFound("resource", uri, suggestions=closest_spellings(uri, known, 2))


def _read_revision(_name: str, catalog: Catalog, revision: RevisionInfo) -> str:
    latest = latest_revision(catalog.session)
    rows = {} if latest is None else latest["counts"]
    return _to_text(revision.to_json() | {"rows": rows})


def _read_models(_name: str, catalog: Catalog, _revision: RevisionInfo) -> str:
    rows = {row["id"]: row for row in catalog.snapshot.models.values()}
    shown = ("id", "name", "params", "active_params", "max_context_tokens")
    return _to_text({"models": [{name: rows[key][name] for name in shown} for key in sorted(rows)]})


def _read_model(name: str, catalog: Catalog, _revision: RevisionInfo) -> str:
    return _ask(catalog, Question(endpoint="GET /models/{name}", name=name, params=NoParams()))


def _read_size(name: str, catalog: Catalog, _revision: RevisionInfo) -> str:
    return _ask(catalog, Question(endpoint="GET /sizes/{name}", name=name, params=SizeParams()))


def _read_facts(name: str, catalog: Catalog, _revision: RevisionInfo) -> str:
    return _ask(catalog, Question(endpoint="GET /sizes/{name}/facts", name=name, params=FactSearch(limit=_MOST)))


def _ask(catalog: Catalog, question: Question) -> str:
    return _to_text(answer(catalog, question))


def _to_text(data: object) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


_READERS: Mapping[str, Callable[[str, Catalog, RevisionInfo], str]] = {
    r"vmsizes://revision": _read_revision,
    r"vmsizes://models": _read_models,
    r"vmsizes://models/(?P<name>.+)": _read_model,
    r"vmsizes://sizes/(?P<name>[^/]+)": _read_size,
    r"vmsizes://sizes/(?P<name>[^/]+)/facts": _read_facts,
}
