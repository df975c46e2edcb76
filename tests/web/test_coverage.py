"""The page of coverage: its JSON is of the same sizes."""

import re
from html import unescape
from urllib.parse import urljoin

import httpx
import pytest

from tests.web.test_size_page import get


@pytest.mark.parametrize("query", ["", "?provider=azure&gpus=none", "?category=gpu_accelerated"])
def test_the_json_has_the_filters_of_the_page(client: httpx.Client, query: str) -> None:
    page = get(client, f"/ui/coverage{query}")
    (url,) = re.findall('href="([^"]+)">Coverage as JSON', page)
    answer = client.get(urljoin("/ui/coverage", unescape(url))).json()
    assert f"<h1>How much is known about {answer['total']:,} sizes</h1>" in page
