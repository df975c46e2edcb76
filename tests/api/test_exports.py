"""An export has the same rows as the whole list, in the same order, in every format."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from types import UnionType
from typing import Any, get_args

import httpx
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # has no type information
import pytest

from app.catalog.fields import FieldKind
from app.catalog.queries.exports import SIZE_EXPORT_COLUMNS
from app.catalog.queries.prices import PRICE_COLUMNS
from app.formats.text import unescape_cell
from app.schemas.sizes import SizeOut, SizePriceOut

SEARCHES = [
    "/sizes?",
    "/sizes?status=any&sort=-gpu_memory_gib,usd_per_hour",
    "/sizes?region=westeurope,eastus&purchase=spot&min_gpu_mem=80&sort=usd_per_hour",
    "/sizes?gpu=A100&sort=-usd_per_gpu_hour",
    "/prices?region=westeurope",
    "/prices?history=true&size=nd40rs_v2,Standard_NC24ads_A100_v4",
    "/prices?gpu=A10,H100*&region=eastus&os=linux",
    "/prices?series=nc_a100_v4&purchase=on_demand&as_of=2026-07-01",
]
READERS: Mapping[FieldKind, Callable[[str], Any]] = {
    "integer": int,
    "number": float,
    "text": unescape_cell,
    "boolean": {"true": True, "false": False}.__getitem__,
    "date": str,
    "list": lambda text: text.split("; "),
}


def items(client: httpx.Client, search: str) -> Iterator[dict[str, Any]]:
    """Yield the items of all pages of a list."""
    cursor: str | None = ""
    while cursor is not None:
        answer = client.get(f"{search}&limit=500&cursor={cursor}")
        assert answer.status_code == 200, answer.text
        page = answer.json()
        yield from page["items"]
        cursor = page["next_cursor"]


def export(client: httpx.Client, search: str, suffix: str) -> httpx.Response:
    path, _, query = search.partition("?")
    answer = client.get(f"{path}.{suffix}?{query}")
    assert answer.status_code == 200, answer.text
    return answer


def exported(client: httpx.Client, search: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of an NDJSON export as they arrive."""
    path, _, query = search.partition("?")
    with client.stream("GET", f"{path}.ndjson?{query}") as answer:
        assert answer.status_code == 200
        yield from map(json.loads, answer.iter_lines())


def from_csv(text: str, columns: Mapping[str, FieldKind]) -> list[dict[str, Any]]:
    """Parse CSV by the kinds of its columns; an empty list is an empty cell, as null is."""
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    return [
        {
            name: READERS[columns[name]](cell) if cell else [] if columns[name] == "list" else None
            for name, cell in row.items()
        }
        for row in rows
    ]


@pytest.mark.parametrize("search", SEARCHES)
def test_an_export_is_the_whole_list_in_every_format(client: httpx.Client, search: str) -> None:
    listed = list(items(client, search))
    columns = SIZE_EXPORT_COLUMNS if search.startswith("/sizes") else PRICE_COLUMNS
    text = export(client, search, "csv").text
    assert from_csv(text, columns) == listed
    assert text.splitlines()[0].split(",") == list(listed[0])
    assert [json.loads(line) for line in export(client, search, "ndjson").content.splitlines()] == listed
    table = pq.read_table(io.BytesIO(export(client, search, "parquet").content))
    rows = [
        {name: value.isoformat() if isinstance(value, date) else value for name, value in row.items()}
        for row in table.to_pylist()
    ]
    assert rows == listed


@pytest.mark.takes_seconds
def test_every_price_of_many_pages_is_listed_once_and_exported_in_that_order(client: httpx.Client) -> None:
    search = "/prices?history=true&region=westeurope,eastus,uksouth"
    total = client.get(f"{search}&limit=1").json()["total"]
    seen = {
        tuple(item.values())[:5]
        for item, same in zip(items(client, search), exported(client, search), strict=True)
        if item == same
    }
    assert len(seen) == total > 10_000


@pytest.mark.first_database
def test_the_columns_of_parquet_have_their_types(client: httpx.Client) -> None:
    schema = pq.read_schema(io.BytesIO(export(client, "/sizes?gpu=A100", "parquet").content))
    types = {name: str(schema.field(name).type) for name in SIZE_EXPORT_COLUMNS}
    assert types["vcpus"] == "int64"
    assert types["usd_per_hour"] == types["memory_gib"] == types["gpu_count"] == "double"
    assert types["retirement_date"] == types["spot_as_of"] == "date32[day]"
    assert types["flags"].startswith("list<")
    assert types["nvlink"] == "bool"
    assert types["name"] == "string"


def kind_of(annotation: Any) -> FieldKind:
    """Return the kind of a field of a response."""
    kinds: Mapping[Any, FieldKind] = {
        str: "text", int: "integer", float: "number", bool: "boolean", date: "date", list[str]: "list"
    }  # fmt: skip
    known = [part for part in get_args(annotation) if part is not type(None)]
    plain = known[0] if isinstance(annotation, UnionType) else annotation
    return kinds.get(plain, "number")


@pytest.mark.parametrize(("shape", "columns"), [(SizeOut, SIZE_EXPORT_COLUMNS), (SizePriceOut, PRICE_COLUMNS)])
def test_the_columns_are_those_of_the_list_in_its_order_and_of_its_types(shape: Any, columns: Any) -> None:
    fields = {
        name: field for name, field in shape.model_fields.items() if name not in ("converted", "adjustment", "estimate")
    }
    listed = {name: kind_of(field.annotation) for name, field in fields.items()}
    assert list(columns) == list(listed)
    assert columns == listed


@pytest.mark.first_database
@pytest.mark.parametrize("form", ["csv", "ndjson", "parquet"])
def test_fields_choose_the_columns_and_their_order(client: httpx.Client, form: str) -> None:
    answer = export(client, "/sizes?fields=vcpus,name&fields=flags&name=nd40rs_v2", form)
    first: Mapping[str, Callable[[], Any]] = {
        "csv": lambda: next(csv.reader(io.StringIO(answer.text))),
        "ndjson": lambda: list(json.loads(answer.content)),
        "parquet": lambda: pq.read_schema(io.BytesIO(answer.content)).names,
    }
    assert first[form]() == ["vcpus", "name", "flags"]


REJECTED = [
    ("/sizes.csv?fields=vcpu", "/query/fields", "did you mean vcpus?"),
    ("/sizes.csv?fields=name,name", "/query/fields", "once"),
    ("/sizes.parquet?fields=size", "/query/fields", "no such column"),
    ("/sizes.ndjson?region=westeurop", "/query/region", "did you mean westeurope"),
    ("/sizes.csv?sort=prize", "/query/sort", "allowed are"),
    ("/sizes.csv?limit=5", "/query/limit", "no such parameter"),
    ("/prices.csv?size=nd40rs_v3", "/query/size", "ND40rs_v2"),
    ("/prices.parquet?series=nosuch", "/query/series", "no such series"),
    ("/prices.ndjson?as_of=yesterday", "/query/as_of", "as_of"),
    ("/prices?gpus=A100", "/query/gpus", "did you mean gpu?"),
    ("/prices?cursor=abc", "/query/cursor", "next_cursor"),
]


@pytest.mark.first_database
@pytest.mark.parametrize(("search", "pointer", "expected"), REJECTED)
def test_an_export_is_rejected_before_anything_is_sent(
    client: httpx.Client, search: str, pointer: str, expected: str
) -> None:
    answer = client.get(search)
    assert answer.status_code == (400 if pointer == "/query/cursor" else 422)
    assert answer.headers["content-type"].startswith("application/problem+json")
    (error,) = answer.json()["errors"]
    assert error["pointer"] == pointer
    assert expected in error["detail"]


@pytest.mark.parametrize("search", ["/sizes?q=nosuchsize", "/prices?gpu=M60&os=windows&region=mexicocentral"])
def test_no_match_is_a_file_without_rows(client: httpx.Client, search: str) -> None:
    assert len(export(client, search, "csv").content.splitlines()) == 1
    assert export(client, search, "ndjson").content == b""
    table = pq.read_table(io.BytesIO(export(client, search, "parquet").content))
    assert table.num_rows == 0
    assert table.column_names == list(SIZE_EXPORT_COLUMNS if "sizes" in search else PRICE_COLUMNS)


@pytest.mark.first_database
def test_an_export_is_named_and_typed(client: httpx.Client) -> None:
    expected = {
        "csv": "text/csv; charset=utf-8",
        "ndjson": "application/x-ndjson",
        "parquet": "application/octet-stream",
    }
    for form, media_type in expected.items():
        answer = export(client, "/sizes?gpu=A100", form)
        assert answer.headers["content-disposition"] == f'attachment; filename="sizes.{form}"'
        assert answer.headers["content-type"] == media_type


@pytest.mark.first_database
def test_csv_follows_rfc_4180(client: httpx.Client) -> None:
    content = export(client, "/sizes?fields=name,flags,cpu_model,nvlink", "csv").content
    assert content.endswith(b"\r\n")
    assert content.count(b"\n") == content.count(b"\r\n")
    assert not content.startswith(b"\xef\xbb\xbf")


@pytest.mark.first_database
def test_a_range_of_a_parquet_file_can_be_requested(client: httpx.Client) -> None:
    whole = client.get("/sizes.parquet?gpu=A100")
    etag = {"if-range": whole.headers["etag"]}
    part = client.get("/sizes.parquet?gpu=A100", headers={"range": "bytes=-4", **etag})
    assert part.status_code == 206
    assert part.content == whole.content[-4:] == b"PAR1"
    assert (
        part.headers["content-range"] == f"bytes {len(whole.content) - 4}-{len(whole.content) - 1}/{len(whole.content)}"
    )


@pytest.mark.first_database
@pytest.mark.parametrize(
    ("asked", "status", "kind"),
    [
        ({"range": "bytes=99999999-"}, 416, "range-not-satisfiable"),
        ({"range": "bytes=9-3"}, 400, "bad-request"),
        ({"range": "bytes=0-3", "if-match": '"nope"'}, 412, "precondition-failed"),
        ({"if-match": '"nope"'}, 412, "precondition-failed"),
        ({"if-match": "W/{etag}"}, 412, "precondition-failed"),
        ({"if-match": '"nope"', "if-none-match": "{etag}"}, 412, "precondition-failed"),
    ],
)
def test_a_range_that_cannot_be_satisfied_is_a_problem(
    client: httpx.Client, asked: dict[str, str], status: int, kind: str
) -> None:
    path = "/sizes.parquet?gpu=A100"
    whole = client.get(path)
    etag = whole.headers["etag"]
    headers = {name: value.replace("{etag}", etag) for name, value in asked.items()}
    refused = client.get(path, headers={**headers, "x-request-id": "mine"})
    assert (refused.status_code, refused.headers["content-type"]) == (status, "application/problem+json")
    assert (refused.json()["type"], refused.json()["request_id"]) == (f"/problems/{kind}", "mine")
    assert refused.headers["cache-control"] == "no-store"
    expected = f"bytes */{len(whole.content)}" if status == 416 else None
    assert refused.headers.get("content-range") == expected


@pytest.mark.first_database
@pytest.mark.parametrize("asked", ["bytes=0-3", "bytes=99999999-", "bytes=9-3"])
def test_head_ignores_a_range(client: httpx.Client, asked: str) -> None:
    path = "/sizes.parquet?gpu=A100"
    length = client.get(path).headers["content-length"]
    answer = client.head(path, headers={"range": asked})
    assert (answer.status_code, answer.headers["content-length"]) == (200, length)


@pytest.mark.first_database
def test_a_range_is_sent_if_its_condition_holds(client: httpx.Client) -> None:
    path = "/sizes.parquet?gpu=A100"
    etag = client.get(path).headers["etag"]
    for needed in (etag, f'"other", {etag}', "*"):
        part = client.get(path, headers={"range": "bytes=0-3", "if-match": needed})
        assert (part.status_code, part.content) == (206, b"PAR1")
    both = client.get(path, headers={"if-match": etag, "if-none-match": etag})
    assert both.status_code == 304
    satisfiable = client.get(path, headers={"range": "bytes=0-3,999999999-"})
    assert (satisfiable.status_code, satisfiable.content) == (206, b"PAR1")
    other_unit = client.get(path, headers={"range": "rows=0-3"})
    assert (other_unit.status_code, other_unit.content[:4]) == (200, b"PAR1")


@pytest.mark.first_database
def test_a_parquet_file_has_one_strong_etag_with_200_and_304(client: httpx.Client) -> None:
    path = "/sizes.parquet?gpu=A100"
    etag = client.get(path).headers["etag"]
    assert etag.startswith('"')
    for mark in (etag, f"W/{etag}", "*"):
        confirmed = client.get(path, headers={"if-none-match": mark})
        assert (confirmed.status_code, confirmed.headers["etag"]) == (304, etag)
    assert client.head(path).headers["etag"] == etag


@pytest.mark.first_database
def test_equal_queries_share_a_parquet_file(client: httpx.Client) -> None:
    one = client.get("/sizes.parquet?gpu=A100&os=linux")
    other = client.get("/sizes.parquet?gpu=a100")
    assert one.headers["etag"] == other.headers["etag"]
    assert not one.headers["etag"].startswith("W/")
    again = client.get("/sizes.parquet?gpu=a100", headers={"range": "bytes=0-3", "if-range": one.headers["etag"]})
    assert (again.status_code, again.content) == (206, b"PAR1")
    assert one.headers["etag"] == other.headers["etag"] != client.get("/sizes.parquet?gpu=h100").headers["etag"]


@pytest.mark.first_database
def test_prices_of_a_size_are_those_of_the_list_without_its_name(client: httpx.Client) -> None:
    for query in ("", "history=true", "region=eastus&os=linux"):
        of_one = list(items(client, f"/sizes/nd40rs_v2/prices?{query}"))
        of_all = list(items(client, f"/prices?size=ND40rs_v2&{query}"))
        assert of_one == [{name: value for name, value in item.items() if name != "size"} for item in of_all]
        assert of_one


@pytest.mark.takes_seconds
def test_prices_in_force_are_those_that_were_seen_last(client: httpx.Client) -> None:
    regions = "eastus,eastus2,westus2,westus3,westeurope,northeurope,uksouth,japaneast,centralindia"
    of = f"region={regions}&os=linux&as_of=2026-07-01"
    last: dict[tuple[Any, ...], str] = {}
    for item in exported(client, f"/prices?{of}&history=true"):
        key = tuple(item[name] for name in ("size", "region", "os", "purchase"))
        last[key] = max(item["seen_until"], last.get(key, ""))
    in_force = {
        tuple(item[name] for name in ("size", "region", "os", "purchase")): item["seen_until"]
        for item in exported(client, f"/prices?{of}")
    }
    assert in_force == {key: last[key] for key in in_force}
    gone = [day for key, day in last.items() if key not in in_force]
    assert len(gone) > 100
    assert max(gone) <= "2025-05-16"  # after which three complete lists lack the price


@pytest.mark.first_database
def test_no_spreadsheet_takes_a_fraction_for_a_day(client: httpx.Client) -> None:
    lines = export(client, "/sizes?gpu=A10&fields=name,gpu_fraction", "csv").text.splitlines()
    assert "Standard_NV12ads_A10_v5,'1/3" in lines
    assert client.get("/sizes/nv12ads_a10_v5").json()["gpu_fraction"] == "1/3"


@pytest.mark.takes_seconds
def test_sizes_json_has_the_prices_of_the_list_on_every_database(client: httpx.Client) -> None:
    sizes = {size["name"]: size for size in client.get("/files/azure/sizes.json").json()["sizes"]}
    for size in client.get("/sizes?provider=azure&region=westeurope&limit=100").json()["items"]:
        prices = sizes[size["name"]]["prices"].get("westeurope", {}).get("linux", {})
        assert prices.get("on_demand", {}).get("usd_per_hour") == size["usd_per_hour"]
