"""What errors say: the field, the value and what is allowed, in plain English, whoever found the error."""

from typing import Any

import httpx
import pytest
from pydantic_core._pydantic_core import list_all_errors

from app.validation import explain
from tests.command_line import run_command

pytestmark = pytest.mark.one_database  # requests are refused before a database is asked

LLAMA = {"model": "llama-3.1-70b", "inference": {"context_tokens": 8192}}
OF_PYDANTIC = ("Input should", "Value error", "tuple", "after validation", "Assertion", "extract fields", "literal")


@pytest.mark.parametrize(
    ("query", "pointer", "detail"),
    [
        ("/sizes?limit=0", "/query/limit", "limit=0: must be at least 1"),
        ("/sizes?limit=501", "/query/limit", "limit=501: must be at most 500"),
        ("/sizes?limit=x", "/query/limit", "limit=x: expected a whole number"),
        ("/sizes?limit=1_0", "/query/limit", "limit=1_0: expected a whole number"),
        ("/sizes?min_vcpus=1_000", "/query/min_vcpus", "min_vcpus=1_000: expected a whole number"),
        ("/sizes?max_usd_per_hour=1_0.5", "/query/max_usd_per_hour", "max_usd_per_hour=1_0.5: expected a number"),
        ("/sizes?min_gpu_memory_gib=1_0", "/query/min_gpu_memory_gib", "min_gpu_memory_gib=1_0: expected a number"),
        ("/sizes?country=Germany", "/query/country", "must be a country code of two letters, such as DE"),
        ("/fit?min_gpus=1&hours=0", "/query/hours", "hours=0: must be greater than 0"),
        ("/fit?min_gpus=1&hours=1e7", "/query/hours", "hours=1e7: must be at most 1,000,000"),
        ("/sizes?min_memory=x", "/query/min_memory", "min_memory=x: expected a number"),
        ("/sizes?min_memory=inf", "/query/min_memory", "min_memory=inf: expected a finite number"),
        ("/sizes?max_memory=1e13", "/query/max_memory", "max_memory=1e13: must be at most 1e+12"),
        ("/sizes?min_vcpus=3000000000", "/query/min_vcpus", "min_vcpus=3000000000: must be at most 2,000,000,000"),
        ("/sizes?nvlink=perhaps", "/query/nvlink", "nvlink=perhaps: expected true or false"),
        ("/sizes?os=Linux", "/query/os", "os=Linux: did you mean linux? allowed are linux, windows"),
        ("/sizes?q=%01", "/query/q", "q=\x01: must not hold control characters"),
        (
            "/sizes?status=Current",
            "/query/status",
            "status=Current: did you mean current? allowed are preview, current, retiring, withdrawn, retired, any",
        ),
        ("/compare?size=nd40rs_v2", "/query/size", "size=nd40rs_v2: at least 2 values are needed"),
        ("/compare", "/query/size", "size: is required"),
        ("/prices?as_of=2026-13-01", "/query/as_of", "as_of=2026-13-01: must be a date such as 2026-09-01"),
        ("/fit?hours_per_month=745", "/query/hours_per_month", "hours_per_month=745: must be at most 744"),
        ("/sizes?gpu=" + "x" * 121, "/query/gpu", "gpu=" + "x" * 121 + ": at most 120 characters are allowed"),
        ("/sizes?gpu=" + ",".join(map(str, range(61))), "/query/gpu", "at most 60 values are allowed"),
        ("/sizes?country=" + "DE," * 61, "/query/country", "at most 60 values are allowed"),
        ("/prices?provider=" + "aws," * 61, "/query/provider", "at most 60 values are allowed"),
        ("/fit?continent=" + "europe," * 61, "/query/continent", "at most 60 values are allowed"),
        ("/sizes?category=" + "gpu_accelerated," * 61, "/query/category", "at most 60 values are allowed"),
        ("/sizes?status=" + "any," * 61, "/query/status", "at most 60 values are allowed"),
        ("/changes?kind=" + "price_up," * 61, "/query/kind", "at most 60 values are allowed"),
        ("/disks?type=" + "premium_ssd," * 61, "/query/type", "at most 60 values are allowed"),
    ],
)  # fmt: skip
def test_a_query_is_told_the_field_the_value_and_what_is_allowed(
    client: httpx.Client, query: str, pointer: str, detail: str
) -> None:
    (error,) = client.get(query).json()["errors"]
    assert error["pointer"] == pointer
    assert error["detail"].endswith(detail)
    assert not [words for words in OF_PYDANTIC if words in error["detail"]]


@pytest.mark.parametrize(
    ("body", "pointer", "detail"),
    [
        ([], "/body", "the body: expected a JSON object"),
        ("x", "/body", "the body: expected a JSON object"),
        ({**LLAMA, "inference": []}, "/body/inference", "inference: expected a JSON object"),
        ({**LLAMA, "constraints": {"gpu": "A100"}}, "/body/constraints/gpu", "constraints.gpu=A100: expected a list"),
        (
            {**LLAMA, "constraints": {"regions": ["eastus", {}]}},
            "/body/constraints/regions/1",
            "constraints.regions: expected a string",
        ),
        (
            {**LLAMA, "constraints": {"gpu_vendor": ["AMD"]}},
            "/body/constraints/gpu_vendor",
            'constraints.gpu_vendor=["AMD"]: expected a string',
        ),
        ({**LLAMA, "limit": 0}, "/body/limit", "limit=0: must be at least 1"),
        ({**LLAMA, "sort": 3}, "/body/sort", "sort=3: expected a string in quotes"),
        (
            {**LLAMA, "sort": "cost"},
            "/body/sort",
            "allowed are cost_per_hour, cost_per_job, cost_per_1m_tokens, time, headroom, waste, nodes",
        ),
    ],
)
def test_a_body_is_told_the_field_the_value_and_what_is_allowed(
    client: httpx.Client, body: Any, pointer: str, detail: str
) -> None:
    (error,) = client.post("/fit", json=body).json()["errors"]
    assert error["pointer"] == pointer
    assert error["detail"].endswith(detail)
    assert not [words for words in OF_PYDANTIC if words in error["detail"]]


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        (b'{"inference": {"concurrency": 1e400}}', 422, "inference.concurrency: expected a finite number"),
        (b"\xff", 400, "the body is not valid JSON: it is not in UTF-8"),
        (b"[" * 100_000, 400, "the body is not valid JSON: it is nested too deeply"),
        (b"[" * 20_000, 400, "the body is not valid JSON: it is nested too deeply"),
        (b"{bad", 400, "the body is not valid JSON: Expecting property name enclosed in double quotes at character 1"),
    ],
)
def test_a_body_that_cannot_be_read_is_told_why(client: httpx.Client, body: bytes, status: int, detail: str) -> None:
    answer = client.post("/fit", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["detail"]) == (status, detail)
    (error,) = answer.json()["errors"]
    assert (error["pointer"].startswith("/body"), error["detail"]) == (True, detail)


@pytest.mark.parametrize("known", list_all_errors(), ids=lambda known: known["type"])
def test_no_type_of_error_speaks_of_python(known: dict[str, Any]) -> None:
    error = {"type": known["type"], "loc": ("query", "x"), "input": "x", "msg": known["example_message_python"]}
    text = explain(error | {"ctx": known.get("example_context") or {}})
    assert text
    assert not [words for words in OF_PYDANTIC if words in text]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["compare", "nc24ads_a100_v4"], "at least 2 values are needed"),
        (["search", "--status", "Current"], "did you mean current?"),
        (["search", "--limit", "0"], "--limit=0: must be at least 1"),
        (["search", "--min-memory", "x"], "--min-memory=x: expected a number"),
    ],
)
def test_the_command_line_says_the_same(seeded_url: str, arguments: list[str], told: str) -> None:
    done = run_command(seeded_url, *arguments)
    said = " ".join(done.stderr.split())
    assert (done.returncode, told in said) == (2, True), said
    assert not [words for words in (*OF_PYDANTIC, "['") if words in said]


@pytest.mark.parametrize("count", [61, 2_000])
def test_a_list_that_is_too_long_is_one_error_whatever_is_in_it(client: httpx.Client, count: int) -> None:
    answer = client.post("/fit", json={**LLAMA, "constraints": {"series": [1] * count}})
    (error,) = answer.json()["errors"]
    values = f"={', '.join('1' * count)}" if count == 61 else ""
    expected = f"constraints.series{values}: at most 60 values are allowed"
    assert error == {"pointer": "/body/constraints/series", "detail": expected}
