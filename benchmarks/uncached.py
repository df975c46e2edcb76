"""Questions that differ and are not cached, one after another: the CPU time that a worker takes for each."""

import http.client
import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import Any
from urllib.parse import urlencode

from benchmarks.catalogs import REGIONS, Scale, name_of
from benchmarks.questions import SORTS, facets_query
from benchmarks.servers import RESPONSE_TIMEOUT, Server

MODELS = (
    *("llama-3.1-8b", "llama-3.1-70b", "qwen2.5-32b", "mixtral-8x7b", "gpt-oss-120b", "mistral-small-24b"),
    *("qwen3-32b", "gemma-3-27b", "phi-4", "llama-3.1-405b"),
)
SEEDED_REGIONS = ("eastus", "westeurope", "swedencentral", "japaneast", "uksouth", "westus3")
SHARE = 0.2
"""How often a question has each of the filters."""
FIRST_PAST_DAY, PAST_DAYS = date(2026, 3, 1), 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request, and the status that it is answered with."""

    target: str
    body: dict[str, Any] | None = None
    status: int = 200


QuestionFactory = Callable[[Random, Scale], Question]


def facets(rng: Random, _scale: Scale) -> Question:
    """Build a question for the facets of a random selection."""
    return Question(target=f"/facets?{facets_query(rng)}")


def fit_of_amounts(rng: Random, _scale: Scale) -> Question:
    """Build a question for the sizes that have some memory of GPUs in a region."""
    return Question(target=f"/fit?region={rng.choice(REGIONS)}&min_gpu_mem={rng.randint(1, 2000)}")


def fit_of_model(rng: Random, _scale: Scale) -> Question:
    """Build a question for the sizes of the seeds that serve a model, in one region or in all."""
    load = {"context_tokens": 1024 * rng.randint(2, 16), "concurrency": rng.randint(1, 128)}
    body: dict[str, Any] = {"model": rng.choice(MODELS), "inference": load}
    if rng.random() < 0.7:
        body["constraints"] = {"regions": [rng.choice(SEEDED_REGIONS)]}
    return Question(target="/fit", body=body)


def fit_of_layers(rng: Random, _scale: Scale) -> Question:
    """Build a question for the sizes that serve a model of random depth, in a region: a catalog needs no models."""
    architecture = {"layers": rng.randint(16, 120), "hidden": 8192, "heads": 64, "kv_heads": 8}
    architecture |= {"intermediate": 28672, "vocab": 128256}
    load = {"context_tokens": 1024 * rng.randint(2, 16), "concurrency": rng.randint(1, 128)}
    constraints = {"regions": [rng.choice(REGIONS)]}
    return Question(target="/fit", body={"architecture": architecture, "inference": load, "constraints": constraints})


def seeded_list(rng: Random, _scale: Scale) -> Question:
    """Build a question for a list of the sizes of the seeds by some filters."""
    return Question(target=f"/sizes?{_seeded_filters(rng)}&sort={rng.choice(SORTS)}&limit={rng.choice((20, 50))}")


def seeded_list_of_a_day(rng: Random, _scale: Scale) -> Question:
    """Build a question for such a list at the prices of a past day."""
    target = f"/sizes?{_seeded_filters(rng)}&as_of={_day(rng)}&sort={rng.choice(SORTS)}"
    return Question(target=target)


def seeded_facets(rng: Random, _scale: Scale) -> Question:
    """Build a question for the facets of such a list."""
    return Question(target=f"/facets?{_seeded_filters(rng)}")


def seeded_facets_of_a_day(rng: Random, _scale: Scale) -> Question:
    """Build a question for the facets of such a list at the prices of a past day."""
    return Question(target=f"/facets?{_seeded_filters(rng)}&as_of={_day(rng)}")


def seeded_fit_of_amounts(rng: Random, _scale: Scale) -> Question:
    """Build a question for the sizes of the seeds that have some memory of GPUs in a region."""
    return Question(target=f"/fit?region={rng.choice(SEEDED_REGIONS)}&min_gpu_mem={rng.randint(1, 2000)}")


def _seeded_filters(rng: Random) -> str:
    """Return filters of sizes, of which one at least is a figure that other questions hardly have."""
    asked = {"region": rng.choice(SEEDED_REGIONS), "max_usd_per_hour": str(round(rng.uniform(1, 100), 2))}
    choices: dict[str, tuple[object, ...]] = {
        "gpu": ("H100", "A100", "H200,MI300X"), "min_vcpus": (4, 8, 16, 48), "min_memory": (16, 64, 256),
        "min_gpu_mem": (16, 24, 80, 320), "arch": ("x64", "arm64"), "premium_storage": ("true",), "os": ("windows",),
        "purchase": ("spot",), "status": ("any", "preview,current"), "q": ("standard", "large", "nvidia"),
    }  # fmt: skip
    for name, values in choices.items():
        if rng.random() < SHARE:
            asked[name] = str(rng.choice(values))
    return urlencode(asked)


def _day(rng: Random) -> date:
    return FIRST_PAST_DAY + timedelta(days=rng.randrange(PAST_DAYS))


def similar(rng: Random, scale: Scale) -> Question:
    """Build a question for the neighbours of a size, in the cheapest region or in one or two."""
    regions = rng.sample(REGIONS, rng.randint(0, 2))
    asked = f"?region={','.join(regions)}" if regions else ""
    return Question(target=f"/sizes/{name_of(rng.randrange(scale.sizes))}/similar{asked}")


def unknown_name(rng: Random, scale: Scale) -> Question:
    """Build a question for a size that does not exist, whose name is like those of others."""
    return Question(target=f"/sizes/{name_of(rng.randrange(scale.sizes))}{rng.randint(100, 999)}", status=404)


def cpu_milliseconds(server: Server, questions: list[Question]) -> float:
    """Ask each question over one connection; return the CPU time of the worker for each, in milliseconds.

    Raises RuntimeError where one is answered with another status than expected.
    """
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=RESPONSE_TIMEOUT)) as connection:
        before = server.cpu_seconds()
        for question in questions:
            body = None if question.body is None else json.dumps(question.body)
            method, headers = ("GET", {}) if body is None else ("POST", {"Content-Type": "application/json"})
            connection.request(method, question.target, body=body, headers=headers)
            response = connection.getresponse()
            said = response.read()
            if response.status != question.status:
                raise RuntimeError(f"{response.status} to {question.target}: {said[:300]!r}")
        used = server.cpu_seconds() - before
    return 1000 * used / len(questions)
