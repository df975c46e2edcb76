"""Random questions by one seed: requests of operations, pages and tools, and commands."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from benchmarks.search.bodies import random_body
from tests.golden.values import CURRENCIES, DAYS, DISKS, LATE_DAYS, WORDS, Values

Pairs = list[tuple[str, str]]

CONSTRAINTS: Mapping[str, tuple[float, list[Any]]] = {
    "regions": (0.5, [["eastus"], ["westeurope"], ["eastus", "westus2"]]),
    "available_in": (0.1, [["eastus"], ["eastus", "westeurope"]]),
    "gpu": (0.2, [["A100"], ["H100", "H200"], ["*A10*"], ["T4"], ["MI300X"]]),
    "gpu_vendor": (0.1, ["NVIDIA", "AMD"]),
    "max_nodes": (0.6, [2, 4, 16]),
    "min_nodes": (0.1, [2]),
    "utilization": (0.1, [0.5, 0.8]),
    "tp_in_nvlink": (0.15, [True]),
    "require_infiniband": (0.2, [True, False]),
    "allow_preview": (0.2, [False]),
    "allow_retiring": (0.2, [False]),
    "allow_legacy": (0.2, [True]),
    "verified_only": (0.2, [True]),
    "checkpoint_on_local_disk": (0.3, [True]),
    "budget_usd_per_month": (0.3, [3000, 20_000, 200_000.5]),
}
PRICING: Mapping[str, tuple[float, list[Any]]] = {
    "purchases": (0.4, [["spot"], ["spot", "on_demand"], ["reserved_1y", "on_demand"], ["savings_3y"]]),
    "os": (0.1, ["windows"]),
    "hours_per_month": (0.2, [100]),
    "hours": (0.3, [24, 500.5]),
    "currency": (0.1, ["EUR"]),
}
CONFIG = (
    '{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,'
    '"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256}'
)
FIT_FORMS: tuple[Pairs, ...] = (
    [("model", "llama-3.3-70b"), ("concurrency", "16"), ("context_tokens", "8192"), ("region", "eastus")],
    [
        ("use", "service"),
        ("model", "qwen3-32b"),
        ("users", "50"),
        ("input_tokens", "1000"),
        ("output_tokens", "300"),
        ("ttft_ms", "1000"),
        ("tpot_ms", "50"),
        ("region", "westeurope"),
        ("currency", "EUR"),
    ],
    [
        ("use", "training"),
        ("model", "llama-3.1-8b"),
        ("method", "lora"),
        ("tokens", "100000000"),
        ("sequence_tokens", "2048"),
    ],
    [("by", "resources"), ("min_gpus", "2"), ("min_gpu_mem", "160"), ("region", "eastus"), ("sort", "cost_per_hour")],
    [("by", "resources"), ("min_vcpus", "64"), ("max_nodes", "3"), ("purchase", "spot"), ("limit", "5")],
    [("by", "config"), ("config", CONFIG), ("context_tokens", "4096"), ("concurrency", "4")],
)
PLAN_FORMS: tuple[Pairs, ...] = (
    [
        ("inventory", "size,region,count\nf8s_v2,eastus,20\nnc6s_v3,westeurope,2\nb2s,eastus,5"),
        ("purchase", "on_demand"),
    ],
    [
        ("inventory", "size;region\nd4s_v3;uksouth\ne8s_v3;eastus\nnv12s_v3;westus2"),
        ("max_successors", "5"),
        ("os", "windows"),
    ],
    [("inventory", "size,region\nd4s_v9,eastus"), ("purchase", "reserved_1y")],
)
SHOWN: tuple[dict[str, Any], ...] = (
    {"name": "unit", "in": "query", "schema": {"enum": ["hour", "month", "year"]}},
    {"name": "as_of", "in": "query", "schema": {"type": "string", "format": "date"}},
    {"name": "currency", "in": "query", "schema": {"type": "string"}},
)
"""Parameters of pages beside those of the operation that answers the like."""
PAGES: Mapping[str, str] = {
    "/": "/sizes", "/ui/explore": "/facets", "/ui/compare": "/compare", "/ui/changes": "/changes",
    "/ui/conflicts": "/conflicts", "/ui/retirements": "/retirements", "/ui/sizes/{name}": "/sizes/{name}/cost",
    "/ui/sizes/{name}/models": "/sizes/{name}", "/ui/sizes/{name}.md": "/sizes/{name}",
}  # fmt: skip
"""Pages, and the operations whose parameters they take, by and large."""


def with_pages(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document that describes pages like operations."""
    paths = dict(document["paths"])
    for page, path in PAGES.items():
        parameters = [
            {**one, "name": "name"} if page == "/ui/compare" and one.get("name") == "size" else one
            for one in document["paths"][path]["get"]["parameters"]
        ]
        paths[page] = {"get": {"parameters": [*parameters, *SHOWN]}}
    return {**document, "paths": paths}


OF_AN_OPERATION = 560
OF_A_PAGE = 220
OF_A_TOOL = 300
OF_A_COMMAND = 45
EXPORTS = 110
"""How many questions are asked of each; of files, which take long, fewer with a body and the rest by HEAD."""
MISTAKES = 0.15
WALKED_TO_THE_END = 0.04


@dataclass(frozen=True, slots=True)
class Question:
    """A request, or a command: `target` is then its arguments as JSON."""

    group: str
    target: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    pages: int = 0
    """How many further pages of the list are asked by the cursor of each answer."""


def value_of(rng: Random, name: str, schema: Mapping[str, Any], values: Values) -> str:  # noqa: PLR0911  # a table of kinds
    """Return a valid value of a parameter, or one that is nearly so."""
    if "enum" in schema:
        return str(rng.choice(schema["enum"]))
    named = {
        "region": "region", "available_in": "region", "gpu": "gpu", "series": "series", "series_id": "series",
        "model": "model", "model_id": "model",
    }  # fmt: skip
    if name in named:
        return rng.choice(values.names[named[name]])
    if name in {"size", "baseline", "subject"} or (name == "name" and rng.random() < 0.4):
        return values.size(rng)
    if name == "name":
        return values.pattern(rng)
    words = {"q": WORDS, "currency": CURRENCIES, "disk": DISKS}
    if name in words:
        return rng.choice(words[name])
    if schema.get("format") == "date" or name in {"since", "until", "after", "before"}:
        return rng.choice((*DAYS, *LATE_DAYS)) if name in {"after", "before", "until"} else rng.choice(DAYS)
    if schema.get("type") == "boolean":
        return rng.choice(("true", "false"))
    return values.number(rng, name) if schema.get("type") in {"number", "integer"} else rng.choice(WORDS)


class Operation:
    """An operation of the OpenAPI document: makes valid targets of it, and mistaken ones."""

    def __init__(
        self, document: Mapping[str, Any], path: str, values: Values, sorts: Sequence[str], fields: Sequence[str]
    ):
        self._document, self.path, self._values, self._sorts, self._fields = document, path, values, sorts, fields
        parameters = [self._resolved(one) for one in document["paths"][path]["get"].get("parameters", ())]
        self._query = [one for one in parameters if one["in"] == "query" and one["name"] != "cursor"]
        self._path = [one for one in parameters if one["in"] == "path"]

    def target(self, rng: Random) -> str:
        """Return a target with few parameters, or one with a mistake."""
        pairs = self._pairs(rng)
        if rng.random() < MISTAKES:
            pairs = self._mistaken(rng, pairs)
        return self._path_of(rng) + (f"?{urlencode(pairs)}" if pairs else "")

    def _pairs(self, rng: Random) -> Pairs:
        required = [one for one in self._query if one.get("required")]
        count = min(len(self._query), rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 7)))
        chosen = {one["name"]: one for one in (*required, *rng.sample(self._query, count))}
        if "limit" not in chosen and rng.random() < 0.6:
            chosen |= {one["name"]: one for one in self._query if one["name"] == "limit"}
        return [pair for one in chosen.values() for pair in self._values_of(rng, one)]

    def _values_of(self, rng: Random, parameter: Mapping[str, Any]) -> Pairs:
        name, schema = parameter["name"], self._resolved(parameter["schema"])
        if name == "sort":
            keys = rng.sample(self._sorts, rng.choice((1, 1, 1, 2, 3))) if "items" in schema else None
            keys = keys or [rng.choice(schema["enum"]) if "enum" in schema else rng.choice(self._sorts)]
            return [(name, ",".join(rng.choice(("", "-")) + key if "items" in schema else key for key in keys))]
        if name == "fields":
            return [(name, ",".join(rng.sample(self._fields, rng.randint(1, 6))))]
        if "items" in schema:
            items = self._resolved(schema["items"])
            several = [value_of(rng, name, items, self._values) for _ in range(rng.choice((1, 1, 2, 3)))]
            several = (
                several if name != "size" or self.path != "/compare" else [self._values.size(rng) for _ in range(3)]
            )
            return [(name, ",".join(several))] if rng.random() < 0.7 else [(name, one) for one in several]
        return [(name, value_of(rng, name, schema, self._values))]

    def _mistaken(self, rng: Random, pairs: Pairs) -> Pairs:
        name = rng.choice([one["name"] for one in self._query] or ["limit"])
        near = rng.choice(self._values.names["size"])[:-1]
        wrong: Sequence[Pairs] = (
            [(name + "s", "1")],
            [(name[:-1], "1")],
            [(name, "")],
            [(name, "nonsense")],
            [(name, "-1"), (name, "1e999")],
            [("limit", "501"), ("region", "eastuss")],
            [("cursor", "WyJ4IiwgInkiXQ")],
            [("name", near), ("gpu", "H10")],
            [("as_of", "2026-13-01")],
            [("since", "2026-08-01"), ("until", "2024-01-01")],
            [("offset", "10"), ("page", "2"), ("spot", "true")],
            [(name, "\x00")],
        )
        return [*pairs, *rng.choice(wrong)]

    def _path_of(self, rng: Random) -> str:
        path = self.path
        for parameter in self._path:
            name = parameter["name"]
            value = self._values.size(rng) if name == "name" else value_of(rng, name, {}, self._values)
            value = value[:-1] if rng.random() < 0.06 else value
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        return path

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            kind, name = schema["$ref"].split("/")[-2:]
            schema = self._document["components"][kind][name]
        return schema


def requests_of(operation: Operation, rng: Random, *, count: int, export: bool = False) -> Iterator[Question]:
    """Make GET requests of an operation: also as HEAD, in other encodings, with conditions, and walked."""
    group = f"GET {operation.path}"
    for number_of_it in range(count):
        target, chance = operation.target(rng), rng.random()
        if (export and number_of_it >= EXPORTS) or chance < 0.06:
            yield Question(group, target, "HEAD")
        elif chance < 0.16:
            yield Question(
                group, target, headers={"accept-encoding": rng.choice(("gzip", "br", "zstd", "gzip, br;q=0.5"))}
            )
        elif chance < 0.22:
            yield Question(group, target, headers={"if-none-match": "*"})
        elif chance < 0.26:
            yield Question(group, target, headers={"if-none-match": 'W/"other"', "accept": "text/csv"})
        elif chance < 0.30 and export:
            yield Question(group, target, headers={"range": rng.choice(("bytes=0-99", "bytes=-50", "bytes=5-1,7-9"))})
        else:
            yield Question(group, target, pages=200 if rng.random() < WALKED_TO_THE_END else rng.choice((0, 0, 1, 2)))


def bodies(rng: Random, values: Values, path: str, examples: Sequence[Any], count: int) -> Iterator[Question]:
    """Make POST requests of an operation: the document's examples, random ones, and mistaken ones."""
    for index in range(count):
        body = examples[index] if index < len(examples) else _body_of(rng, values, path, examples)
        if index >= len(examples) and rng.random() < MISTAKES:
            body = _mistaken_body(rng, body)
        yield Question(
            f"POST {path}",
            path,
            "POST",
            {"content-type": "application/json"},
            orjson.dumps(body).decode(),
            pages=rng.choice((0, 2)),
        )


def _chosen(rng: Random, table: Mapping[str, tuple[float, list[Any]]]) -> dict[str, Any]:
    return {name: rng.choice(choices) for name, (share, choices) in table.items() if rng.random() < share}


def _body_of(rng: Random, values: Values, path: str, examples: Sequence[Any]) -> Any:
    if path == "/retirements":
        lines = [
            {"size": values.size(rng), "count": rng.choice((1, 2, 20)), "region": rng.choice(values.names["region"])}
            for _ in range(rng.choice((1, 2, 5, 12)))
        ]
        options: Mapping[str, tuple[float, list[Any]]] = {
            "purchase": (0.3, ["spot", "reserved_1y", "on_demand"]),
            "os": (0.2, ["windows"]),
            "keep": (0.3, [["vcpus"], ["vcpus", "memory_gib"], ["vcpus", "memory_gib", "generation"]]),
            "max_successors": (0.4, [1, 3, 20]),
            "currency": (0.2, ["EUR"]),
        }
        return {"items": lines, **_chosen(rng, options)}
    if path not in {"/fit", "/estimate"}:
        return rng.choice(examples)
    body = random_body(rng)
    if rng.random() < 0.4 and "model" in body:
        body["model"] = rng.choice(values.names["model"])
    if path == "/estimate":
        return body
    del body["gpus"]
    if rng.random() < 0.2:
        body = {"resources": {"min_gpus": rng.choice((1, 2, 8)), "min_gpu_mem": rng.choice((16, 80, 320))}}
    constraints, pricing = _chosen(rng, CONSTRAINTS), _chosen(rng, PRICING)
    if rng.random() < 0.3:
        constraints["name"] = [values.pattern(rng)]
    body |= {"constraints": constraints, "pricing": pricing, "limit": rng.choice((1, 3, 10, 50))}
    if rng.random() < 0.3:
        body["include"] = ["rejected"]
    if rng.random() < 0.4:
        body["sort"] = rng.choice(("cost_per_hour", "headroom", "nodes", "time", "cost_per_1m_tokens"))
    return body


def _mistaken_body(rng: Random, body: Any) -> Any:
    if not isinstance(body, dict) or not body:
        return []
    name = rng.choice(sorted(body))
    changed: Sequence[Any] = (
        {**body, "unknown": 1},
        {**body, name + "s": body[name]},
        {**body, name: None},
        {**body, name: "nonsense"},
        {**body, name: -1},
        {key: value for key, value in body.items() if key != name},
        {**body, "model": "llama-9"},
    )
    return rng.choice(changed)


def forms(rng: Random, group: str, path: str, examples: Sequence[Pairs], count: int) -> Iterator[Question]:
    """Make POST requests of a page: forms as they are sent, with fields changed and left out."""
    for _ in range(count):
        pairs = [(name, value) for name, value in rng.choice(examples) if rng.random() < 0.9]
        if rng.random() < MISTAKES:
            pairs.append((rng.choice(("unknown", "limit", "region")), rng.choice(("", "x", "-1"))))
        kind = {"content-type": "application/x-www-form-urlencoded"}
        yield Question(group, path, "POST", kind, urlencode(pairs))


def calls(rng: Random, tool: Mapping[str, Any], values: Values, count: int) -> Iterator[Question]:
    """Make calls of a tool for agents by its schema."""
    properties: Mapping[str, Any] = tool["inputSchema"]["properties"]
    required = tool["inputSchema"].get("required", ())
    for index in range(count):
        names = {*required, *rng.sample(sorted(properties), min(len(properties), rng.choice((0, 1, 2, 3, 4))))}
        arguments = {name: _argument(rng, name, properties[name], values) for name in sorted(names)}
        if rng.random() < MISTAKES:
            arguments |= rng.choice(({"unknown": 1}, {"gpu": "H10"}, {"region": "us-east-1"}, {"limit": 0}))
        body = {
            "jsonrpc": "2.0",
            "id": index,
            "method": "tools/call",
            "params": {"name": tool["name"], "arguments": arguments},
        }
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        yield Question(f"MCP {tool['name']}", "/mcp", "POST", headers, orjson.dumps(body).decode())


def _argument(rng: Random, name: str, schema: Mapping[str, Any], values: Values) -> Any:
    kinds = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    chosen = rng.choice(kinds)
    if chosen.get("type") == "array":
        return [_argument(rng, name.removesuffix("s"), chosen["items"], values) for _ in range(rng.choice((1, 2, 3)))]
    if "enum" in chosen:
        return rng.choice(chosen["enum"])
    if chosen.get("type") == "boolean":
        return rng.random() < 0.5
    text = value_of(rng, name, chosen, values) if name != "since" else rng.choice(DAYS)
    if chosen.get("type") == "integer":
        return int(float(text)) if text.replace(".", "").isdigit() else 1
    if chosen.get("type") == "number":
        return float(text) if "/" not in text else 0.5
    return text


COMMANDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "search": (
        ("{gpu}",),
        (),
        ("--min-gpu-mem", "80"),
        ("--name", "{pattern}"),
        ("--sort", "usd_per_hour"),
        ("--series", "{series}"),
    ),
    "show": (("{size}",), ("{size}", "--facts"), ("{size}", "--prices"), ("{size}", "--as-of", "2025-03-31")),
    "fit": (
        ("{model}",),
        ("{model}", "--context", "8k", "--concurrency", "8"),
        ("--min-gpus", "1"),
        ("{model}", "--users", "20"),
        ("{model}", "--train", "--tokens", "100M", "--sequence", "2k"),
        ("--min-vcpus", "64", "--max-nodes", "2"),
    ),
    "estimate": (
        ("{model}",),
        ("{model}", "--context", "32k"),
        ("{model}", "--train", "--method", "lora", "--sequence", "2k"),
    ),
    "accuracy": ((),),
    "history": (("{size}", "--region", "eastus"), ("{size}", "--region", "{region}", "--purchase", "spot")),
    "similar": (("{size}",), ("{size}", "--region", "{region}")),
    "compare": (("{size}", "{size}"), ("{size}", "{size}", "{size}", "--region", "{region}")),
    "retirements": ((), ("--limit", "5"), ("--after", "2027-01-01")),
    "cost": (
        ("{size}", "--region", "{region}"),
        ("{size}", "--disk", "premium_ssd:1024"),
        ("{size}", "--count", "3", "--os", "windows"),
    ),
    "changes": ((), ("--kind", "price_up"), ("--size", "{size}")),
    "conflicts": ((), ("--subject", "{size}"), ("--field", "gpu_memory_gib")),
    "refused-prices": ((), ("--limit", "3")),
    "models": ((), ("--limit", "5")),
    "sources": ((),),
    "revisions": ((),),
    "export": (("sizes", "--gpu", "{gpu}"), ("gpus",), ("regions",), ("series",), ("models",)),
}
"""Commands that only read, with arguments; `{size}` and the like are replaced."""


def commands(rng: Random, values: Values, count: int) -> Iterator[Question]:
    """Make `count` commands of each kind, for a terminal of 80 columns, as JSON and as CSV."""
    for command, shapes in COMMANDS.items():
        for _ in range(count if len(shapes) > 1 else count // 5):
            arguments = [command, *(_filled(rng, word, values) for word in rng.choice(shapes))]
            arguments += rng.choice(((), (), (), ("--json",), ("--csv",), ("--wide",), ("--nonsense",)))
            yield Question(f"vmsizes {command}", orjson.dumps(arguments).decode())


def _filled(rng: Random, word: str, values: Values) -> str:
    if word == "{size}":
        return values.size(rng)
    if word == "{pattern}":
        return values.pattern(rng)
    return rng.choice(values.names[word[1:-1]]) if word.startswith("{") else word
