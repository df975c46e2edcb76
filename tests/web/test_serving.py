"""Pages over HTTP: clean URLs, errors at their fields, hostile names, caching, assets."""

import re

import httpx
import pytest

from app.http.headers import MAX_URL_BYTES
from app.http.middleware import CacheMiddleware
from app.ingest.run import ingest
from app.web.serving import PAGES, PRICE_NAMES
from tests.databases import writable
from tests.factories import NOW, price, reading, size
from tests.servers import open_client, server

HTML = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
HOSTILE = 'Standard_<script>alert("1")</script>&amp;'


def test_prices_have_the_same_defaults_on_all_pages_that_have_a_bar_of_them() -> None:
    fields = [page.load_params().model_fields for page in PAGES]
    priced = [one for one in fields if "os" in one and one["os"].default]
    for name in PRICE_NAMES:
        assert len({one[name].default or None for one in priced if name in one}) == 1, name


def test_a_form_with_empty_and_default_values_leads_to_the_url_without_them(client: httpx.Client) -> None:
    answer = client.get("/?q=&gpu=H100&gpu=A100&min_vcpus=&os=linux&unit=hour&limit=50", headers=HTML)
    assert (answer.status_code, answer.headers["location"]) == (303, "?gpu=a100,h100")
    assert client.get("/?q=&os=linux", headers=HTML).headers["location"] == "./"
    assert client.get("/?gpu=a100,h100", headers=HTML).status_code == 200


def test_a_long_value_is_cut_but_in_its_field(client: httpx.Client) -> None:
    value = "x" * 3000
    page = client.get(f"/?q={value}", headers=HTML, follow_redirects=True).text
    assert len(re.findall("x{61,}", page)) == 1
    assert f'value="{value}"' in page
    assert f"{'x' * 60}…" not in client.get("/?q=abc&min_vcpus=8", headers=HTML).text
    assert len(re.findall("x{61,}", client.get(f"/?series={'x' * 90}", headers=HTML, follow_redirects=True).text)) == 1


def test_an_invalid_value_is_said_in_words_at_its_field_above_the_list_by_the_others(client: httpx.Client) -> None:
    page = client.get("/?min_vcpus=lots&gpu=h1000&min_memory=64", headers=HTML)
    assert page.status_code == 422
    assert 'value="lots"' in page.text
    assert 'aria-invalid="true" aria-describedby="min_vcpus-error"' in page.text
    assert '<a href="#min_vcpus">min vcpus: “lots”: expected a whole number</a>' in page.text
    assert re.search("“h1000”: no GPU of the catalog is called h1000; did you mean H100[^;,]*<", page.text)
    assert "GET /gpus" not in page.text
    assert "no such region; a code is written like westeurope" in client.get("/?region=nowhere", headers=HTML).text
    valid = client.get("/?min_memory=64", headers=HTML)
    headings = [re.findall("<h1>.*?</h1>", answer.text) for answer in (page, valid)]
    assert headings[0] == headings[1] != ["<h1>0 sizes</h1>"]
    assert 'id="min_memory" name="min_memory" type="text" inputmode="decimal" value="64"' in page.text


def test_an_unknown_parameter_is_an_error_page_with_the_nearest_name(client: httpx.Client) -> None:
    page = client.get("/?min_vcpu=4", headers=HTML)
    assert page.status_code == 422
    assert "did you mean min_vcpus?" in page.text


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_of_many_errors_the_first_ten_are_listed(client: httpx.Client, method: str) -> None:
    fields = {f"unknown{number}": "1" for number in range(900)}
    params = dict([*fields.items()][:300])
    get = method == "GET"
    page = (
        client.get("/ui/fit", params=params, headers=HTML) if get else client.post("/ui/fit", data=fields, headers=HTML)
    )
    assert page.status_code == 422
    assert re.findall(r"<li>unknown(\d+)=1: ", page.text) == [str(number) for number in range(10)]
    assert f"and {290 if get else 890} more errors, which are not listed" in page.text
    assert page.text.count("allowed are") == 1
    assert len(page.content) < 20_000


def test_a_form_of_too_many_fields_is_refused_before_it_is_read(client: httpx.Client) -> None:
    page = client.post("/ui/fit", content="&" * 1_000, headers=HTML)
    assert page.status_code == 422
    assert "The request has 1,001 parameters; at most 1,000 are allowed." in page.text
    assert client.post("/ui/fit", content="&" * 999, headers=HTML).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "says"),
    [
        ("GET", f"/?q={'x' * 50_000}", 414, f"at most {MAX_URL_BYTES:,} are allowed"),
        ("POST", "/ui/fit", 413, "at most 1,048,576 are allowed"),
    ],
)
def test_a_browser_gets_a_page_for_what_the_service_refuses_before_any_page(
    client: httpx.Client, method: str, path: str, status: int, says: str
) -> None:
    content = b"q=" + b"x" * 9_000_000 if method == "POST" else None
    page = client.request(method, path, content=content, headers=HTML)
    assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert says in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    program = client.request(method, path, content=content)
    assert program.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/ui/nothing", "/ui/sizes/a/b/c"])
def test_a_page_that_does_not_exist_says_so_in_html(client: httpx.Client, path: str) -> None:
    page = client.get(path, headers=HTML)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    style = re.search(r'href="([^"]+\.css)"', page.text)
    assert style is not None
    assert client.get(httpx.URL(f"http://x{path}").join(style[1]).path).status_code == 200


def test_a_program_that_sends_parameters_to_the_landing_page_is_told_that_it_has_none(client: httpx.Client) -> None:
    assert client.get("/?gpu=H100").status_code == 422


def test_a_page_is_cached_revalidated_and_encoded_as_answers_of_the_api_are(client: httpx.Client) -> None:
    first, second = (client.get("/?gpu=A100&limit=5", headers=HTML) for _ in range(2))
    assert "hit" in second.headers["cache-status"]
    assert first.text == second.text
    assert second.headers["content-encoding"] in {"br", "zstd", "gzip"}
    assert "default-src 'none'" in second.headers["content-security-policy"]
    again = client.get("/?gpu=A100&limit=5", headers={**HTML, "if-none-match": second.headers["etag"]})
    assert again.status_code == 304
    assert again.headers["vary"] == second.headers["vary"] == "accept, accept-encoding, origin"


def test_every_asset_of_a_page_is_immutable_and_found(client: httpx.Client) -> None:
    page = client.get("/", headers=HTML).text
    urls = set(re.findall(r'(?:href|src)="\./(assets/[^"]+)"', page))
    assert {url.rpartition(".")[2] for url in urls} >= {"css", "svg"}
    for url in urls:
        answer = client.get(f"/{url}")
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert client.get("/assets/style-000000000000.css").status_code == 404


def test_a_name_from_a_feed_is_text_and_nothing_else(service: CacheMiddleware) -> None:
    hostile = [*size(HOSTILE, vcpus=8), *size("Standard_Good", vcpus=8)]
    ingest(writable(service), reading(hostile, regions=["eastus"], prices=[price(HOSTILE, "3.5")]), now=NOW)
    with server(service) as url, open_client(url) as client:
        page = client.get("/", headers=HTML).text
    assert "<script>alert" not in page
    assert "Standard_&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;&amp;amp;" in page


@pytest.mark.parametrize(
    ("accept", "is_page"),
    [
        ("text/html,application/xhtml+xml,*/*;q=0.8", True),
        ("application/json, text/html;q=0.1", False),
        ("*/*, text/html; q=0.9", False),
        ("text/html;charset=utf-8;q=0.5, application/json;q=0.4, */*", True),
        ("text/html;q=0", False),
        ("text/html;q=nan, */*;q=0.1", True),
        ("*/*", False),
        ("TEXT/HTML, */*;Q=0.8", True),
        ("text/*", True),
        ("text/html;q=0, text/*", False),
        ("text/html;\tq=0", False),
        ("application/vnd.text/html", False),
        ("text/html;q=0.5, application/json;q=1.5", False),
    ],
)
def test_the_first_page_is_html_where_that_weighs_no_less_than_json(
    client: httpx.Client, accept: str, is_page: bool
) -> None:
    kind = client.get("/", headers={"accept": accept}).headers["content-type"]
    assert kind.startswith("text/html" if is_page else "application/json"), kind
