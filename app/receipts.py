"""Receipts: what answers rest on, so that anyone with the catalog can compute them again.

A receipt has the revision of the catalog, the day, the questions with a digest of each answer, and the facts and prices
of the sizes that the answers name, each with its source. `check_receipt` asks again and says what differs.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

import app.fit
from app.catalog.queries.params import SizeParams, as_set
from app.catalog.queries.prices import PriceSearch, find_prices
from app.catalog.queries.sizes import find_size
from app.catalog.queries.snapshot import Catalog
from app.catalog.revisions import latest_revision
from app.catalog.statements import Statement
from app.db.statements import BoundStatement
from app.errors import VmsizesError
from app.questions import Question, answer, parse_question

FORMAT = 1
"""The version of the format of receipts."""

Asked = Sequence[tuple[Question, Mapping[str, Any]]]

_FACT_COLUMNS = ("size", "field", "value", "source_id")
_PRICE_COLUMNS = ("region", "os", "purchase", "usd_per_hour", "valid_from", "source_id")
_MOST = 500


def make_receipt(catalog: Catalog, asked: Asked, *, full: bool = True) -> dict[str, Any]:
    """Return the receipt of answers as JSON data; one that is not `full` has only the digest of facts and prices."""
    body = {
        "receipt": FORMAT,
        **_origin(catalog),
        "formulas": _formulas_of(question for question, _ in asked),
        "day": catalog.today.isoformat(),
        "questions": [question.to_json() | {"answer_sha256": _digest_of_answer(result)} for question, result in asked],
        "rests_on": _rests_on(catalog, asked, full=full),
    }
    return body | {"sha256": digest_of(body)}


def _origin(catalog: Catalog) -> dict[str, Any]:
    latest = latest_revision(catalog) or {"number": None, "digest": None}
    return {"program": version("vmsizes"), "revision": latest["number"], "digest": latest["digest"]}


def other_origin(catalog: Catalog, receipt: Mapping[str, Any]) -> list[str]:
    """Return a line where the program or the revision is another one, which may give an equal answer."""
    now = _origin(catalog)
    return [
        f"{name}: {receipt.get(name)} in the receipt, {now[name]} now"
        for name in ("program", "revision")
        if receipt.get(name) != now[name]
    ]


def check_receipt(catalog: Catalog, receipt: Mapping[str, Any], digest: str) -> list[str]:
    """Ask the questions of a receipt again; return what differs, a line each, and none if all is equal.

    The catalog must be that of the day of the receipt. `digest` is that of its content as `compute_digest` sums it up
    now, so a changed row is found even where the catalog still has the digest of its revision.
    """
    differences = []
    if receipt.get("receipt") != FORMAT:
        return [f"receipt: is of format {receipt.get('receipt')!r}, and {FORMAT} can be checked"]
    if receipt.get("sha256") != digest_of({name: value for name, value in receipt.items() if name != "sha256"}):
        differences.append("sha256: the receipt was altered after it was written")
    if receipt.get("digest") != digest:
        differences.append(f"digest: the receipt is of a catalog with {receipt.get('digest')}, this one has {digest}")
    asked, wrong = _ask_again(catalog, receipt.get("questions", []))
    differences += wrong
    if receipt.get("formulas") != _formulas_of(question for question, _ in asked):
        differences.append(f"formulas: of program {receipt.get('program')}, this is {version('vmsizes')}")
    before = receipt.get("rests_on", {})
    now = _rests_on(catalog, asked, full="facts" in before)
    return differences + [line for name in now | before for line in _changes(name, before.get(name), now.get(name))]


def digest_of(data: Any) -> str:
    """Return the SHA-256 of JSON data in canonical form: sorted keys, no blanks."""
    return hashlib.sha256(orjson.dumps(data, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _digest_of_answer(result: Mapping[str, Any]) -> str:
    """Return the digest of an answer without its cursor, which names the revision."""
    return digest_of({name: value for name, value in result.items() if name != "next_cursor"})


@cache
def formulas_digest() -> str:
    """Return the SHA-256 of the source of `app.fit`: the formulas and constants of every estimate."""
    digest = hashlib.sha256()
    folder = Path(app.fit.__path__[0])
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _formulas_of(questions: Iterable[Question]) -> str | None:
    """Return the digest of the formulas if any question needs them; other answers are the same with all formulas."""
    return formulas_digest() if any(question.endpoint.endswith("/fit") for question in questions) else None


def _ask_again(catalog: Catalog, questions: Iterable[Any]) -> tuple[list[tuple[Question, dict[str, Any]]], list[str]]:
    asked, wrong = [], []
    for number, data in enumerate(questions, 1):
        try:
            question = parse_question(data)
            result = answer(catalog, *question)
        except (VmsizesError, ValidationError, AttributeError) as error:
            wrong.append(f"question {number}: cannot be asked: {error}")
            continue
        asked.append((question, result))
        if _digest_of_answer(result) != data.get("answer_sha256"):
            wrong.append(f"question {number} ({question.endpoint}): the answer is another one")
    return asked, wrong


def _rests_on(catalog: Catalog, asked: Asked, *, full: bool) -> dict[str, Any]:
    """Return the facts and prices behind answers: their number, sources and digest, and if `full` each of them.

    The sources are also those of exchange rates, which the answers state themselves.
    """
    named = (name for question, result in asked for name in (*_names(result), *_own_name(catalog, question)))
    facts = _facts(catalog, set(named))
    priced = {tuple(price.items()) for question, result in asked for price in _prices(catalog, question, result)}
    listed = {"facts": facts, "prices": [dict(price) for price in sorted(priced, key=str)]}
    rates = [rate for _, result in asked if (rate := result.get("exchange_rate")) is not None]
    sources = sorted({item["source_id"] for items in (*listed.values(), rates) for item in items})
    summary = {"fact_count": len(facts), "price_count": len(priced), "sources": sources, "sha256": digest_of(listed)}
    return summary | listed if full else summary


def _facts(catalog: Catalog, names: Iterable[str]) -> list[dict[str, Any]]:
    """Return the accepted facts of sizes."""
    rows = catalog.fetch(BoundStatement(_ACCEPTED, {"names": orjson.dumps(sorted(names)).decode()}))
    return sorted(
        (dict(zip(_FACT_COLUMNS, row, strict=True)) for row in rows), key=lambda entry: str(list(entry.values()))
    )


_ACCEPTED = Statement(
    lambda sql: (
        f"""
        select size.name, fact.field, coalesce(fact.corrected_value, fact.value), fact.source_id
        from fact join size on size.key = fact.subject
        where fact.kind = 'size' and fact.verdict = 'accepted' and {sql.is_listed("size.name", "names")}"""
    )
)


def _prices(catalog: Catalog, question: Question, result: Any) -> Iterable[dict[str, Any]]:
    """Yield the prices that are in force on the day of a question, of the sizes and regions that its answer names."""
    pricing = getattr(question.params, "pricing", question.params)
    day = {name: value for name in ("as_of", "known_at") if isinstance(value := getattr(pricing, name, None), date)}
    regions: dict[str, set[str]] = {}
    for name, region in _all_places(catalog, question, result):
        regions.setdefault(name, set()).add(region)
    for name in sorted(regions):
        search = PriceSearch(os=getattr(pricing, "os", None), limit=_MOST, **day)
        search = search.model_copy(update={"region": as_set(tuple(regions[name]))})  # any number: no client asks this
        listing = find_prices(catalog, name, search)
        for item in listing.items:
            yield {"size": name} | {column: item[column] for column in _PRICE_COLUMNS}


def _all_places(catalog: Catalog, question: Question, result: Any) -> set[tuple[str, str]]:
    """Return the sizes with the regions that a question or its answer names."""
    places = set(_places(result))
    for name in _own_name(catalog, question):
        asked = getattr(question.params, "region", ())
        regions = {asked} if isinstance(asked, str) else set(asked)
        regions |= {item["region"] for item in result.get("items", ()) if "region" in item}
        places |= {(name, region) for region in regions}
    return places


def _own_name(catalog: Catalog, question: Question) -> list[str]:
    """Return the full name of the size in the path of a question; none of a path without a size."""
    if question.name is None or "/sizes/" not in question.endpoint:
        return []
    return [orjson.loads(find_size(catalog, question.name, SizeParams()))["name"]]


def _names(part: Any) -> Iterable[str]:
    """Yield the names of sizes in an answer: those of items, options and misses, and of a comparison."""
    if isinstance(part, dict):
        for key in ("size", "name"):
            if isinstance(part.get(key), str):
                yield part[key]
        for key, value in part.items():
            if key == "sizes" and isinstance(value, list):
                yield from (name for name in value if isinstance(name, str))
            else:
                yield from _names(value)
    elif isinstance(part, list):
        for item in part:
            yield from _names(item)


def _places(part: Any) -> Iterable[tuple[str, str]]:
    """Yield each size in an answer with the region whose prices it states."""
    if isinstance(part, dict):
        name, region = part.get("size") or part.get("name"), part.get("region")
        if isinstance(name, str) and isinstance(region, str):
            yield name, region
        if part.get("field") == "region":
            yield from ((cell["size"], cell["value"]) for cell in part["values"] if cell["value"])
        for value in part.values():
            yield from _places(value)
    elif isinstance(part, list):
        for item in part:
            yield from _places(item)


def _changes(name: str, before: Any, now: Any) -> Iterable[str]:
    """Yield a line for each fact or price that is not as before, and one for another part that differs."""
    if not isinstance(before, list) or not all(isinstance(item, dict) for item in [*before, *(now or [])]):
        if before != now:
            yield f"rests_on.{name}: {before} in the receipt, {now} now"
        return
    then, today = ({orjson.dumps(item, option=orjson.OPT_SORT_KEYS) for item in items} for items in (before, now or []))
    yield from (f"rests_on.{name}: no longer {line.decode()}" for line in sorted(then - today))
    yield from (f"rests_on.{name}: now {line.decode()}" for line in sorted(today - then))
