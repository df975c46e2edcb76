"""Hostile requests by Hypothesis: what links, forms and agents send, with hostile values and broken bytes.

An input is a request as it is sent, so that a kept one can be sent again: `nc 127.0.0.1 8000 < request`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import strategies as st

from app.mcp.server import TOOLS
from app.web.serving import PAGES
from tests.fuzz.inputs import Input, changed_objects, mutated, tokens

Pairs = Sequence[tuple[str, str]]

_CONFIG = (
    '{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,'
    '"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256}'
)
_INVENTORY = "size,region,count\nf8s_v2,eastus,20\nnc6s_v3,West Europe,2\n"
QUERIES: Mapping[str, Sequence[Pairs]] = {
    "/": ([("q", "h100 80 GB in eastus")], [("gpu", "A100"), ("sort", "-vcpus"), ("currency", "EUR"), ("limit", "50")]),
    "/ui/sizes/{name}": ([("region", "eastus"), ("unit", "month"), ("currency", "EUR")],),
    "/ui/compare": ([("name", "nc24ads_a100_v4,nc40ads_h100_v5"), ("baseline", "nc24ads_a100_v4")],),
    "/ui/fit": (
        [("model", "llama-3.3-70b"), ("concurrency", "16"), ("context_tokens", "8192"), ("region", "eastus")],
        [("use", "service"), ("model", "qwen3-32b"), ("users", "50"), ("input_tokens", "1000"), ("tpot_ms", "50")],
        [("use", "training"), ("model", "llama-3.1-8b"), ("method", "lora"), ("tokens", "1e8")],
        [("by", "resources"), ("min_gpus", "1/3"), ("min_gpu_mem", "160"), ("max_nodes", "3"), ("name", "*v[45]")],
        [("by", "config"), ("config", _CONFIG), ("context_tokens", "4096"), ("concurrency", "4")],
    ),
    "/ui/changes": ([("since", "2026-01-01"), ("kind", "price_up"), ("min_percent", "5")],),
    "/ui/conflicts": ([("subject", "nd96isr_h100_v5"), ("field", "gpu_memory_gib")],),
    "/ui/retirements": ([("gpu", "V100"), ("past", "true"), ("region", "eastus")],),
    "/ui/retirements/plan": ([("inventory", _INVENTORY), ("max_successors", "20")],),
    "/ui/retirements/plan.csv": ([("inventory", _INVENTORY), ("os", "windows")],),
    "/ui/preflight": (
        [("plan", _INVENTORY), ("usage", '[{"name": {"value": "cores"}, "limit": 9}]'), ("region", "eastus")],
    ),
    "/ui/explore": ([("x", "vcpus"), ("y", "memory"), ("min_gpus", "1"), ("as_of", "2025-03-31")],),
}
"""Queries of pages as their links have them."""

CALLS: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("find_sizes", {"gpu": "A100", "region": "eastus", "features": "nvlink", "min_gpu_mem": "80 GB", "limit": 50}),
    ("explain_size", {"size": "nd96isr_h100_v5", "region": "eastus, uksouth"}),
    ("fit_workload", {"model": "llama-3.1-70b", "users": 32, "context": "8k", "max_nodes": 4}),
    ("fit_workload", {"model": "llama-3.1-8b", "train": "lora", "tokens": "1B"}),
    ("fit_workload", {"min_gpu_mem": 640, "min_gpus": "1/2"}),
    ("compare_sizes", {"sizes": "nc24ads_a100_v4, nc40ads_h100_v5", "baseline": "nc40ads_h100_v5"}),
    ("preflight", {"plan": _INVENTORY, "usage": '[{"name": {"value": "cores"}, "limit": 9}]', "region": "eastus"}),
    ("price_history", {"size": "d4s_v5", "since": "2025-01-01", "known_at": "2026-09-01"}),
)
_WORDS = ("a100", "*A*", "*?" * 59, "nd40rs_v2", "eastus", "spot", "windows", "true", "any", "2026-01-01", "1/6", "3")
_values = st.one_of(st.sampled_from(_WORDS), st.sampled_from(_WORDS), tokens)


def _request(path: str, target: bytes, headers: Mapping[str, str], body: bytes | None = None) -> Input:
    method = "GET" if body is None else "POST"
    sent = {"host": "127.0.0.1", "connection": "close", **headers}
    if body is not None:
        sent["content-length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items()).encode()
    line = method.encode() + b" " + target + b" HTTP/1.1\r\n"
    return Input(f"{method} {path}", "request", line + head + b"\r\n" + (body or b""))


@st.composite
def _query(draw: st.DrawFn, path: str, fields: Sequence[str]) -> bytes:
    """Return the parameters of a page: some of a link, some replaced, others added, a few with broken bytes."""
    pairs = list(draw(st.sampled_from([*QUERIES.get(path, ()), []])))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(pairs)))
        if at < len(pairs) and draw(st.booleans()):
            name, value = pairs[at]
            middle = draw(st.integers(0, len(value)))
            pairs[at] = (name, draw(st.sampled_from(("", value[:middle]))) + draw(_values) + value[middle:])
        else:
            known = bool(fields) and draw(st.integers(0, 7)) > 0
            pairs.insert(at, (draw(st.sampled_from(fields) if known else tokens), draw(_values)))
    query = urlencode(pairs, errors="surrogatepass").encode()
    return draw(mutated(query)) if draw(st.integers(0, 7)) == 0 else query


@st.composite
def pages(draw: st.DrawFn) -> Input:
    """A page by its URL."""
    page = draw(st.sampled_from(PAGES))
    name = draw(st.one_of(st.sampled_from(("standard_nd40rs_v2", "D4s v5")), _values))
    target = page.path.replace("{name}", quote(name, safe="", errors="surrogatepass"))
    query = draw(_query(page.path, sorted(page.load_params().model_fields)))
    return _request(page.path, target.encode() + b"?" + query, {"accept": "text/html"})


@st.composite
def forms(draw: st.DrawFn) -> Input:
    """A form of a page."""
    page = draw(st.sampled_from([page for page in PAGES if page.posts]))
    body = draw(_query(page.path, sorted(page.load_params().model_fields)))
    headers = {"accept": "text/html", "content-type": "application/x-www-form-urlencoded"}
    return _request(page.path, page.path.encode(), headers, body)


@st.composite
def calls(draw: st.DrawFn) -> Input:
    """A call of a tool."""
    name, given = draw(st.sampled_from(CALLS))
    arguments = dict(given)
    for _ in range(draw(st.integers(0, 3))):
        arguments[draw(st.sampled_from(sorted(TOOLS[name].arguments)))] = draw(_values)
    params: object = {"name": name, "arguments": arguments}
    if draw(st.booleans()):
        (params,) = draw(changed_objects([{"name": name, "arguments": arguments}]))
    message: object = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    body = json.dumps(message).encode()
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    return _request("/mcp", b"/mcp", headers, draw(mutated(body)) if draw(st.integers(0, 7)) == 0 else body)


REQUESTS: dict[str, Callable[[], st.SearchStrategy[Input]]] = {"pages": pages, "forms": forms, "tools": calls}
"""What is asked, by the name of the strategy that writes it."""
