"""HTTP semantics of every endpoint: headers, methods, CORS, bodies, problems."""

import gzip
import json
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import httpx
import pytest

from app.http.middleware import CacheMiddleware
from app.main import create_asgi_app
from app.settings import Settings
from tests.api.bodies import LLAMA
from tests.servers import open_client, server

pytestmark = pytest.mark.first_database

JSON = {"content-type": "application/json"}
MIB = 1024 * 1024
PATHS = ["/sizes", "/sizes/nd40rs_v2", "/fit", "/gpus", "/healthz", "/readyz", "/openapi.json", "/docs", "/metrics"]


@pytest.fixture
def own(service: CacheMiddleware) -> Iterator[httpx.Client]:
    with server(service) as url, open_client(url) as client:
        yield client


def link(answer: httpx.Response, rel: str) -> str | None:
    return answer.links.get(rel, {}).get("url")


@pytest.mark.parametrize("path", [*PATHS, "/nothing", "/sizes?limit=0"])
def test_every_response_has_an_id_a_link_to_the_document_and_nosniff(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.headers["x-request-id"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert link(answer, "service-desc") == "/openapi.json"


DATA = [
    *("/sizes", "/sizes?limit=0", "/sizes.csv", "/prices.parquet?limit=1", "/sizes/nope", "/", "/nothing", "/llms.txt"),
    *("/healthz", "/readyz", "/metrics", "/openapi.json", "/problems", "/docs/page.js", "/docs/assets/none"),
]


@pytest.mark.parametrize("path", DATA)
def test_a_browser_that_opens_data_runs_loads_and_frames_nothing(client: httpx.Client, path: str) -> None:
    for _ in range(2):  # the second time from the response cache
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none';")
        assert "frame-ancestors 'none'" in policy
        assert "'self'" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "cross-origin"
        assert "strict-transport-security" not in headers


@pytest.mark.parametrize("path", ["/", "/ui/sizes/nd40rs_v2", "/ui/nothing", "/ui/sizes/nope", "/ui/fit", "/docs"])
def test_a_page_loads_from_its_own_origin_and_is_framed_by_nobody(client: httpx.Client, path: str) -> None:
    for _ in range(2):
        headers = client.get(path, headers={"accept": "text/html"}).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"


def test_each_security_header_is_sent_once(client: httpx.Client) -> None:
    for path in [*DATA, "/docs", "/ui/sizes/nd40rs_v2"]:
        names = [name for name, _ in client.get(path).headers.multi_items()]
        assert len([name for name in names if name == "content-security-policy"]) == 1
        assert len([name for name in names if name == "referrer-policy"]) == 1


def test_https_alone_is_asked_for_where_it_is_set(seeded_url: str) -> None:
    service = create_asgi_app(Settings(_env_file=None, database_url=seeded_url, hsts_seconds=300))
    with server(service) as url, open_client(url) as client:
        for path in ("/sizes?limit=1", "/sizes?limit=1", "/healthz", "/nothing", "/docs"):
            assert client.get(path).headers["strict-transport-security"] == "max-age=300"


@pytest.mark.parametrize("path", ["/sizes", "/gpus", "/healthz", "/nothing", "/sizes?limit=0"])
def test_a_valid_request_id_is_returned_and_an_invalid_one_replaced(client: httpx.Client, path: str) -> None:
    for _ in range(2):
        assert client.get(path, headers={"x-request-id": "trace_1-A"}).headers["x-request-id"] == "trace_1-A"
    for none in ("", "a b", "x" * 129, "<script>"):
        made = [client.get(path, headers={"x-request-id": none}).headers["x-request-id"] for _ in range(2)]
        assert none not in made
        assert made[0] != made[1]


def test_a_problem_names_the_request(client: httpx.Client) -> None:
    answer = client.get("/sizes/nope", headers={"x-request-id": "mine"})
    assert answer.json()["request_id"] == answer.headers["x-request-id"] == "mine"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", [*PATHS, "/nothing", "/sizes/nope"])
def test_head_is_get_without_the_body(client: httpx.Client, path: str) -> None:
    whole, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    same = ("content-type", "etag", "vary", "cache-control", "link")
    assert [head.headers.get(name) for name in same] == [whole.headers.get(name) for name in same]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/sizes", "GET, HEAD, OPTIONS"),
        ("/sizes/nd40rs_v2", "GET, HEAD, OPTIONS"),
        ("/fit", "GET, HEAD, POST, OPTIONS"),
        ("/estimate", "POST, OPTIONS"),
        ("/retirements", "GET, HEAD, POST, OPTIONS"),
        ("/openapi.json", "GET, HEAD, OPTIONS"),
        ("/healthz", "GET, HEAD, OPTIONS"),
    ],
)
def test_allow_lists_the_methods_of_a_path(client: httpx.Client, path: str, allowed: str) -> None:
    options = client.options(path)
    assert (options.status_code, options.headers["allow"], options.content) == (204, allowed, b"")
    refused = client.delete(path)
    assert (refused.status_code, refused.headers["allow"]) == (405, allowed)
    assert refused.json()["detail"] == f"DELETE is not allowed for {path}; allowed are {allowed}."


def test_unknown_paths_and_trailing_slashes_are_not_found(client: httpx.Client) -> None:
    assert client.options("/nothing").status_code == 404
    assert client.get("/sizes/").status_code == 404


@pytest.mark.parametrize("path", ["/sizes", "/sizes?limit=0", "/nothing", "/healthz"])
def test_other_origins_may_read_every_response_errors_too(client: httpx.Client, path: str) -> None:
    for _ in range(2):
        answer = client.get(path, headers={"origin": "https://dashboard.example"})
        assert answer.headers["access-control-allow-origin"] == "*"
        assert {"ETag", "Link", "X-Request-ID"} <= set(answer.headers["access-control-expose-headers"].split(", "))
        assert "access-control-allow-credentials" not in answer.headers
        assert answer.headers["vary"].lower().split(", ").count("origin") == 1


@pytest.mark.parametrize("path", ["/sizes", "/openapi.json", "/openapi-3.0.json", "/docs", "/docs/page.js"])
def test_a_stored_response_is_none_for_another_origin(client: httpx.Client, path: str) -> None:
    assert "origin" in client.get(path).headers["vary"].lower().split(", ")


def test_a_preflight_allows_methods_and_headers(client: httpx.Client) -> None:
    asked = {
        "origin": "https://dashboard.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type, x-request-id",
    }
    answer = client.options("/fit", headers=asked)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-methods"] == "GET, HEAD, POST, OPTIONS"
    assert answer.headers["access-control-allow-headers"] == "content-type, x-request-id"
    assert answer.headers["access-control-max-age"] == "86400"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/sizes", "GET, HEAD, OPTIONS"),
        ("/estimate", "POST, OPTIONS"),
        ("/nothing", "GET, HEAD, OPTIONS"),
        ("/sizes.parquet", "GET, HEAD, OPTIONS"),
    ],
)
def test_a_preflight_for_another_method_is_a_problem(client: httpx.Client, path: str, allowed: str) -> None:
    asked = {"origin": "https://dashboard.example", "x-request-id": "mine"}
    granted = client.options(path, headers={**asked, "access-control-request-method": allowed.partition(",")[0]})
    assert (granted.status_code, granted.headers["access-control-allow-methods"]) == (204, allowed)
    refused = client.options(path, headers={**asked, "access-control-request-method": "DELETE"})
    assert (refused.status_code, refused.headers["content-type"]) == (400, "application/problem+json")
    assert (refused.json()["request_id"], refused.headers["x-request-id"]) == ("mine", "mine")
    assert f"cannot send DELETE to {path}; allowed are {allowed}" in refused.json()["detail"]
    assert refused.headers["access-control-allow-methods"] == allowed
    assert "origin" in refused.headers["vary"].lower()


def test_other_origins_may_read_range_headers(client: httpx.Client) -> None:
    asked = {"origin": "https://dashboard.example", "range": "bytes=0-3"}
    part = client.get("/sizes.parquet?gpu=A100", headers=asked)
    assert part.status_code == 206
    assert {"Content-Range", "Accept-Ranges", "ETag"} <= set(part.headers["access-control-expose-headers"].split(", "))


@pytest.mark.parametrize("path", ["/openapi.json", "/openapi-3.0.json"])
def test_the_document_is_compressed_for_whoever_takes_it(client: httpx.Client, path: str) -> None:
    plain = client.get(path, headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    for encoding in ("br", "zstd", "gzip"):
        with client.stream("GET", path, headers={"accept-encoding": encoding}) as answer:
            assert answer.headers["content-encoding"] == encoding
            assert "accept-encoding" in answer.headers["vary"]
            assert answer.headers["etag"] == plain.headers["etag"]
            assert len(b"".join(answer.iter_raw())) < len(plain.content) / 5
        assert client.get(path, headers={"accept-encoding": encoding}).json() == plain.json()
        same = {"accept-encoding": encoding, "if-none-match": plain.headers["etag"]}
        assert client.get(path, headers=same).status_code == 304


def test_a_crash_is_a_problem_that_other_origins_may_read(
    service: CacheMiddleware, own: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down() -> date:
        raise RuntimeError("no calendar")

    assert own.get("/gpus").status_code == 200
    monkeypatch.setattr(service.app.state.executor, "today", break_down)
    crashed = own.get("/sizes", headers={"origin": "https://dashboard.example", "x-request-id": "mine"})
    assert (crashed.status_code, crashed.headers["content-type"]) == (500, "application/problem+json")
    assert crashed.headers["access-control-allow-origin"] == "*"
    assert crashed.json()["request_id"] == "mine"
    assert "calendar" not in crashed.text


def chunks(size: int) -> Iterator[bytes]:
    for _ in range(size // 65536):
        yield b" " * 65536


@pytest.mark.parametrize(
    "make", [lambda: b" " * 3 * MIB, lambda: chunks(3 * MIB)], ids=["with its length", "in chunks"]
)
def test_an_oversized_body_is_rejected(client: httpx.Client, make: Callable[[], Any]) -> None:
    answer = client.post("/retirements", content=make(), headers=JSON)
    assert (answer.status_code, answer.json()["type"]) == (413, "/problems/too-long")
    assert answer.json()["detail"].endswith("at most 1,048,576 are allowed.")


def test_a_body_at_the_limit_is_accepted(client: httpx.Client) -> None:
    body = json.dumps(LLAMA)
    assert client.post("/fit", content=body + " " * (8 * MIB - len(body)), headers=JSON).status_code == 200
    assert client.post("/fit", content=body + " " * (8 * MIB - len(body) + 1), headers=JSON).status_code == 413


def test_a_compressed_body_is_refused_with_the_coding_that_is_read(client: httpx.Client) -> None:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    for path in ("/fit", "/estimate", "/retirements"):
        answer = client.post(path, content=gzip.compress(b"{}"), headers=headers)
        assert (answer.status_code, answer.headers["accept-encoding"]) == (415, "identity")
        assert answer.json()["detail"] == "Content-Encoding says gzip; send the body without compression."
    plain = client.post("/fit", content=b"{", headers={**headers, "content-encoding": "identity"})
    assert plain.status_code == 400


@pytest.mark.parametrize("kind", [None, "text/plain", "application/xml", "multipart/form-data"])
def test_another_media_type_is_rejected_naming_json(client: httpx.Client, kind: str | None) -> None:
    headers = {"content-type": kind} if kind else {}
    answer = client.post("/fit", content=json.dumps(LLAMA), headers=headers)
    assert (answer.status_code, answer.headers["accept-post"]) == (415, "application/json")
    assert "send application/json" in answer.json()["detail"]


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON", "application/x+json"])
def test_every_json_media_type_is_accepted(client: httpx.Client, kind: str) -> None:
    assert client.post("/fit", content=json.dumps(LLAMA), headers={"content-type": kind}).status_code == 200


def test_a_media_type_that_only_starts_like_json_is_rejected_cached_or_not(client: httpx.Client) -> None:
    body = json.dumps({**LLAMA, "limit": 3})
    wrong = {"content-type": "application/jsonx"}
    assert client.post("/fit", content=body, headers=wrong).status_code == 415
    assert client.post("/fit", content=body, headers=JSON).status_code == 200
    assert client.post("/fit", content=body, headers=JSON).headers["cache-status"].startswith("vmsizes; hit")
    assert client.post("/fit", content=body, headers=wrong).status_code == 415


@pytest.mark.parametrize("spaces", [0, 100_000], ids=["a short body", "a long one"])
@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ('{"model": "llama-3.1-70b", "model": "llama-3.1-8b", "inference": {}}', ["/body/model"]),
        (
            '{"model": "llama-3.1-70b", "inference": {"dtype": "bf16", "dtype": "bf16"}, "limit": 1, "limit": 2}',
            ["/body/limit", "/body/inference/dtype"],
        ),
        ('[{"a": 1}, {"a~/": 1, "a~/": 2}]', ["/body/1/a~0~1"]),
    ],
)
def test_a_duplicate_key_is_rejected_with_its_pointer(
    client: httpx.Client, body: str, pointers: list[str], spaces: int
) -> None:
    for _ in range(2):
        answer = client.post("/fit", content=body + " " * spaces, headers=JSON)
        assert (answer.status_code, answer.json()["type"]) == (422, "/problems/bad-parameter")
        assert [error["pointer"] for error in answer.json()["errors"]] == pointers
        assert "the key is given more than once" in answer.json()["detail"]


def test_at_most_ten_duplicate_keys_are_listed(client: httpx.Client) -> None:
    body = "{" + ",".join(f'"k{number}": 1, "k{number}": 2' for number in range(5_000)) + "}"
    answer = client.post("/fit", content=body, headers=JSON)
    assert (answer.status_code, len(answer.json()["errors"])) == (422, 10)


@pytest.mark.parametrize("body", ["{", "", "{'a': 1}", "[" * 100_000, b"\xff\xfe"])
def test_invalid_json_is_rejected(client: httpx.Client, body: str | bytes) -> None:
    answer = client.post("/fit", content=body, headers=JSON)
    assert answer.status_code == (400 if body else 422)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("body", "pointer", "said"),
    [
        ({"inference": {"context_tokens": True}}, "/body/inference/context_tokens", "expected a number"),
        ({"inference": {"context_tokens": "8192"}}, "/body/inference/context_tokens", "expected a number"),
        ({"inference": {"concurrency": 1.5}}, "/body/inference/concurrency", "expected a whole number"),
        ({"inference": {}, "pricing": {"hours": "3"}}, "/body/pricing/hours", "expected a number"),
        ({"inference": {}, "pricing": {"as_of": 20260101}}, "/body/pricing/as_of", "expected a string"),
        ({"inference": {}, "pricing": {"as_of": "1767225600"}}, "/body/pricing/as_of", "a date such as"),
        ({"inference": {}, "constraints": {"verified_only": 1}}, "/body/constraints/verified_only", "true or false"),
        ({"inference": {}, "constraints": {"tp_in_nvlink": "yes"}}, "/body/constraints/tp_in_nvlink", "true"),
        ({"inference": {}, "limit": True}, "/body/limit", "expected a number"),
        ({"inference": {"context/tokens~": 1}}, "/body/inference/context~1tokens~0", "there is no such field"),
    ],
)
def test_a_value_of_another_type_is_rejected_with_its_pointer(
    client: httpx.Client, body: dict[str, Any], pointer: str, said: str
) -> None:
    answer = client.post("/fit", json={"model": "llama-3.1-70b", **body})
    assert answer.status_code == 422
    assert [(error["pointer"], said in error["detail"]) for error in answer.json()["errors"]] == [(pointer, True)]


def test_an_empty_list_is_no_single_value(client: httpx.Client) -> None:
    answer = client.post("/fit", json={"resources": {"gpudirect_rdma": []}})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/body/resources/gpudirect_rdma")


def test_an_empty_name_is_one_of_a_parameter_or_a_field(client: httpx.Client) -> None:
    (error,) = client.get("/sizes?=5").json()["errors"]
    assert error["pointer"] == "/query/"
    assert error["detail"].startswith('""=5: there is no such parameter')
    (error,) = client.post("/fit", json={"": 5}).json()["errors"]
    assert error["pointer"] == "/body/"
    assert error["detail"].startswith('""=5: there is no such field')


@pytest.mark.parametrize("spaces", [0, 300_000])
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_nan_is_rejected_in_a_body(client: httpx.Client, number: str, spaces: int) -> None:
    body = f'{{"model": "llama-3.1-70b", "inference": {{"context_tokens": {number}}}}}{" " * spaces}'
    answer = client.post("/fit", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["type"]) == (400, "/problems/bad-request")
    detail = f"the body is not valid JSON: {number} is not a JSON number"
    assert answer.json()["errors"] == [{"pointer": "/body", "detail": detail}]


def test_a_text_may_say_nan(client: httpx.Client) -> None:
    body = {"resources": {"min_gpus": 1}, "constraints": {"name": ["NaN"]}}
    assert client.post("/fit", json=body).json()["total"] == 0


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_a_config_with_nan_is_refused_also_after_one_with_null(client: httpx.Client, value: str) -> None:
    config = '{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, '
    config += '"intermediate_size": 128, "vocab_size": 1000, "num_key_value_heads": %s}'
    statuses = [
        client.post("/estimate", content='{"config": %s, "inference": {}}' % (config % text), headers=JSON).status_code
        for text in ("null", value)
    ]
    assert statuses == [200, 400]


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("/sizes?limti=3", 422, "bad-parameter"),
        ("/sizes?limit=0", 422, "bad-parameter"),
        ("/sizes?region=mars", 422, "unknown-value"),
        ("/sizes?sort=colour", 422, "unknown-value"),
        ("/sizes?cursor=x", 400, "bad-cursor"),
        ("/sizes/nope", 404, "not-found"),
        ("/nothing", 404, "not-found"),
    ],
)
def test_the_type_of_a_problem_can_be_looked_up(client: httpx.Client, path: str, status: int, kind: str) -> None:
    told = client.get(path).json()
    assert (told["status"], told["type"]) == (status, f"/problems/{kind}")
    explained = client.get(told["type"]).json()
    assert {name: explained[name] for name in ("type", "title", "status")} == {
        name: told[name] for name in ("type", "title", "status")
    }
    assert explained["meaning"]
    assert explained["remedy"]


@pytest.mark.parametrize(
    "body", [{}, {"model": "llama-3.1-70b"}, {**LLAMA, "architecture": {"params": 8}}, {"inference": {}}]
)
def test_a_contradictory_body_is_reported(client: httpx.Client, body: dict[str, Any]) -> None:
    told = client.post("/fit", json=body).json()
    assert (told["status"], told["type"]) == (422, "/problems/contradiction")


def test_the_path_that_was_asked_is_told_as_a_uri(client: httpx.Client) -> None:
    told = client.get("/sizes/%C3%A9%20%22x%22").json()["instance"]
    assert told == "/sizes/%C3%A9%20%22x%22"


def test_a_day_is_written_as_a_date(client: httpx.Client) -> None:
    assert client.get("/sizes/nd40rs_v2/prices?as_of=2026-09-01").status_code == 200
    assert client.get("/sizes/nd40rs_v2/prices?as_of=1767225600").status_code == 422
