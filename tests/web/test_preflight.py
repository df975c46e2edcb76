"""The page of a preflight: a plan and quotas, pasted or uploaded, and the answer of the API; nothing is kept."""

import json
from html import unescape

import httpx
import pytest

HTML = {"accept": "text/html"}
PAGE = "/ui/preflight"
PLAN = "id,size,region,count\ntrain,Standard_NC24ads_A100_v4,westeurope,4\nweb,d8s_v5,westeurope,1\n"
USAGE = json.dumps(
    [
        {"currentValue": "0", "limit": str(limit), "name": {"value": name, "localizedValue": f"{name} vCPUs"}}
        for name, limit in (
            *(("cores", 350), ("virtualMachines", 25000)),
            *(("StandardNCADSA100v4Family", 48), ("standardDSv5Family", 100)),
        )
    ]
)


def answered(client: httpx.Client) -> list[str]:
    """What the page has of the answer to the plan and the quotas."""
    body = {"plan": PLAN, "usage": [{"region": "westeurope", "text": USAGE}]}
    (quota, *_) = client.post("/preflight", json=body).json()["quotas"]
    return ["The plan does not fit", quota["title"], quota["request"], quota["command"], "train, 4 ×", ">48<", ">96<"]


def test_a_pasted_and_an_uploaded_plan_are_answered_as_by_the_api_and_kept_nowhere(client: httpx.Client) -> None:
    empty = {"region": "westeurope", "skus": ""}
    pasted = {"data": {"plan": PLAN, "usage": USAGE, **empty}}
    # As a browser sends a form whose files were chosen: the text of the same name is empty, and stands first.
    parts = [(name, (None, "")) for name in ("plan", "usage")] + [
        (name, (None, value)) for name, value in empty.items()
    ]
    uploaded = {
        "files": [
            *parts,
            ("plan", ("plan.csv", PLAN.encode(), "text/csv")),
            ("usage", ("usage.json", USAGE.encode("utf-16"), "application/json")),
            ("skus", ("", b"", "application/octet-stream")),
        ]
    }
    for form in (pasted, uploaded):
        answer = client.post(PAGE, headers=HTML, **form)
        assert answer.status_code == 200, answer.text
        text = unescape(answer.text)
        assert [told for told in answered(client) if told not in text] == []
        assert answer.headers["cache-control"] == "no-store"
    shown = client.get(PAGE, params={"plan": "size,region\nd8s_v5,westeurope"}, headers=HTML)
    assert (shown.headers["cache-control"], "stored" in shown.headers.get("cache-status", "")) == ("no-store", False)
    assert "Whether the plan fits is unknown" in shown.text
    assert shown.text.count("unknown whether enough is left of ") == 1
    assert "unknown: " not in shown.text


def test_the_form_and_its_menu_need_no_script(client: httpx.Client) -> None:
    text = client.get(PAGE, headers=HTML).text
    assert 'enctype="multipart/form-data"' in text
    assert text.count('<input type="file"') == 3
    assert f'href="../{PAGE[1:]}"' in client.get("/ui/retirements", headers=HTML).text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"plan": "size,region\n,westeurope"}, ">line 2: column 'size': '': must not be blank"),
        ({"plan": "size,region\nd8s_v5,westeurope", "usage": "[1"}, "is not JSON"),
        ({"plan": "size,region\nd8s_v5,westeurope", "usage": USAGE}, "has no region"),
        ({"plan": "size,region\nd8s_v5,westeurope", "region": "westeurop"}, "did you mean westeurope?"),
    ],
)
def test_what_cannot_be_read_is_told_at_its_field(client: httpx.Client, given: dict[str, str], said: str) -> None:
    answer = client.post(PAGE, data=given, headers=HTML)
    assert answer.status_code == 422
    assert said in unescape(answer.text)
    assert f'id="{[*given][-1]}-error"' in answer.text


def test_a_form_is_bounded(client: httpx.Client) -> None:
    parts = [(f"plan{number}", (None, "x")) for number in range(1_100)]
    assert client.post(PAGE, files=parts, headers=HTML).status_code == 422
    assert client.post(PAGE, data={"plan": "x" * 1_100_000}, headers=HTML).status_code == 413
