"""Families of memory: KV caches that engines report, weights of checkpoints, parameters of configurations."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from statistics import median
from typing import Any

from app.fit.formulas.memory import GRAPHS, GRAPHS_UTILIZATION, SERVING_RUNTIME, SERVING_RUNTIME_SHARE
from app.fit.formulas.memory import TENSOR_RANK_BUFFERS as BUFFERS
from app.fit.formulas.quantities import GIB
from app.settings import PROJECT
from benchmarks.accuracy.estimates import estimate, figure_range
from benchmarks.accuracy.points import Family, LeftOut, Point

HERE = PROJECT / "benchmarks" / "accuracy"
PAGE = 16
"""Tokens of a page of vLLM; a sequence of one page makes max_concurrency the number of pages."""

MODELS: Mapping[str, Mapping[str, Any]] = {
    "minimax-m2": {
        "architecture": {
            "layers": 62, "hidden": 3072, "heads": 48, "kv_heads": 8, "head_dim": 128, "vocab": 200_064,
            "experts": 256, "experts_per_token": 8, "moe_intermediate": 1536, "qk_norm": "all_heads",
        }
    },
    "granite-4.0-micro": {
        "architecture": {
            "layers": 40, "hidden": 2560, "heads": 40, "kv_heads": 8, "head_dim": 64, "intermediate": 8192,
            "vocab": 100_352, "tied_embeddings": True,
        }
    },
}  # fmt: skip
"""Models of the tables that are no presets, by the figures of their config.json."""


def _read(name: str) -> list[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _model(name: str) -> Mapping[str, Any]:
    return MODELS.get(name) or {"model": name}


def _log_body(log: Mapping[str, str]) -> dict[str, Any]:
    tensor, pipeline = int(log["tensor_parallel"]), int(log["pipeline_parallel"])
    return {
        **_model(log["model"]),
        "inference": {
            "dtype": log["dtype"], "context_tokens": PAGE, "block_tokens": PAGE,
            "utilization": float(log["utilization"]), "max_batched_tokens": int(log["max_batched_tokens"]),
            "tensor_parallel": tensor, "pipeline_parallel": pipeline,
        },
        "gpus": {"count": tensor * pipeline, "usable_gib": float(log["usable_gib"])},
    }  # fmt: skip


def _capacity_points() -> Iterator[Point]:
    for log in _read("kv_capacity.csv"):
        pages = figure_range(estimate(_log_body(log)), "inference.memory_per_gpu.max_concurrency")
        low, mid, high = (PAGE * count for count in pages)
        labels = {name: log[name] for name in ("log", "model", "dtype", "tensor_parallel", "usable_gib")}
        yield Point(measured=float(log["kv_tokens"]), low=low, mid=mid, high=high, labels=labels)


@lru_cache(maxsize=1)
def _residuals() -> tuple[tuple[float, float, bool, bool, float], ...]:
    """Return, of each log, the overhead that would be exact, the memory of the GPU and of the KV cache, all in GiB."""
    found = []
    for log in _read("kv_capacity.csv"):
        answer = estimate(_log_body(log))
        each = figure_range(answer, "inference.kv_cache.per_token")[1] / GIB
        used = figure_range(answer, "inference.memory_per_gpu.need")[1]
        overhead = figure_range(answer, "inference.memory_per_gpu.overhead")[1]
        cache = figure_range(answer, "inference.memory_per_gpu.kv_cache")[1]
        budget = figure_range(answer, "inference.memory_per_gpu.budget")[1]
        kept = cache / PAGE * float(log["kv_tokens"]) or each
        usable = float(log["usable_gib"])
        split = int(log["tensor_parallel"]) > 1
        graphs = float(log["utilization"]) == GRAPHS_UTILIZATION
        found.append((budget - (used - overhead - cache) - kept, usable, split, graphs, kept))
    return tuple(found)


Constants = tuple[float, float, float, float]
"""GiB of the runtime, share of the GPU's memory, GiB of the buffers of tensor ranks, GiB of CUDA graphs."""


def _difference(constants: Constants, log: tuple[float, float, bool, bool, float]) -> float:
    """Return by how much of the KV cache the overhead is estimated too high."""
    base, share, buffers, graphs = constants
    overhead, usable, split, captured, kept = log
    return (base + share * usable + buffers * split + graphs * captured - overhead) / kept


def _leave_one_out() -> LeftOut:
    """Fit the constants without each log: the least mean error of the best 85 %, on a grid around the recorded."""
    scales = (0.5, 0.75, 1.0, 1.25, 1.5)
    mids = (SERVING_RUNTIME.mid / GIB, SERVING_RUNTIME_SHARE.mid, BUFFERS.mid / GIB, GRAPHS.mid / GIB)
    grid: list[Constants] = [
        (mids[0] * a, mids[1] * b, mids[2] * c, mids[3] * d) for a, b, c, d in product(scales, repeat=4)
    ]
    logs = _residuals()
    differences = [[_difference(constants, log) for log in logs] for constants in grid]

    def left_out(number: int) -> float:
        def of_others(row: list[float]) -> float:
            return _trimmed([abs(one) for other, one in enumerate(row) if other != number])

        return min(differences, key=of_others)[number]

    found, points = [left_out(number) for number in range(len(logs))], list(_capacity_points())
    inside = sum(
        point.low / point.mid <= 1 / (1 - one) <= point.high / point.mid
        for one, point in zip(found, points, strict=True)
    )
    width = median(point.high / point.low for point in points)
    return LeftOut(median(map(abs, found)), "the log", len(logs), inside / len(logs), width)


def _trimmed(errors: Sequence[float]) -> float:
    best = sorted(errors)[: int(0.85 * len(errors))]
    return sum(best) / len(best)


KV_CAPACITY = Family(
    id="kv_capacity",
    title="KV cache that an engine has",
    figure="inference.memory_per_gpu.max_concurrency",
    unit="tokens",
    source="start-up logs of vLLM and SGLang in public issues and READMEs: benchmarks/accuracy/kv_capacity.csv",
    license="facts",
    points=_capacity_points,
    leave_one_out=_leave_one_out,
)


def _checkpoint_points() -> Iterator[Point]:
    for row in _read("checkpoints.csv"):
        serving = {name: value for name, value in (("dtype", row["dtype"] or None),) if value is not None}
        tensor = int(row["tensor_parallel"])
        body = {**_model(row["model"]), "inference": {**serving, "context_tokens": 1, "tensor_parallel": tensor}}
        low, mid, high = figure_range(estimate({**body, "gpus": {"count": tensor}}), "inference.memory_per_gpu.weights")
        labels = {name: row[name] for name in ("model", "dtype")}
        yield Point(measured=float(row["gib"]), low=low, mid=mid, high=high, labels=labels)


CHECKPOINT_WEIGHTS = Family(
    id="checkpoint_weights",
    title="Weights of a checkpoint",
    figure="inference.memory_per_gpu.weights",
    unit="GiB",
    source="start-up logs of vLLM, model cards and repositories: benchmarks/accuracy/checkpoints.csv",
    license="facts",
    points=_checkpoint_points,
)


def _config_points() -> Iterator[Point]:
    models = json.loads((HERE / "released_models.json").read_text(encoding="utf-8"))
    for model in models:
        answer = estimate({"config": model["config"], "inference": {"context_tokens": 1}})
        low, mid, high = figure_range(answer, "parameters.total")
        published = 0 if "params" in model else model["published"]
        yield Point(
            measured=float(published or model["params"]),
            low=low,
            mid=mid,
            high=high,
            labels={"model": model["name"]},
            rounded_by=_half_of_last_digit(published),
        )


def _half_of_last_digit(number: int) -> float:
    """Return half of the unit of the last digit that is not 0: 50,000,000,000 of 2,800,000,000,000."""
    text = str(number)
    return 10 ** (len(text) - len(text.rstrip("0"))) / 2 if number else 0.0


def _standard_decoder_points() -> Iterator[Point]:
    for row in json.loads((HERE / "standard_decoders.json").read_text(encoding="utf-8")):
        config = {**row["config"], "model_type": "unknown"}
        answer = estimate({"config": config, "inference": {"context_tokens": 1}})
        low, mid, high = figure_range(answer, "parameters.total")
        yield Point(measured=float(row["params"]), low=low, mid=mid, high=high, labels={"type": row["type"]})


STANDARD_DECODERS = Family(
    id="standard_decoder",
    title="Parameters of a configuration of unknown type",
    figure="parameters.total",
    unit="parameters",
    source="the default configuration of each type of decoder in transformers 5.23 that can be read without its type, "
    "counted on the meta device: benchmarks/accuracy/standard_decoders.json",
    license="Apache-2.0",
    points=_standard_decoder_points,
)


CONFIG_PARAMETERS = Family(
    id="config_parameters",
    title="Parameters of a configuration",
    figure="parameters.total",
    unit="parameters",
    source="transformers 5.23 on the meta device; where it has no such model, the vendor's rounded number",
    license="facts",
    points=_config_points,
)
