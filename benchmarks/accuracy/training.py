"""Families of training: rates of published runs, GPU-hours of whole runs, and measured memory."""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from pathlib import Path
from typing import Any

from app.fit.formulas.training_speed import KNOWN_GPUS, PRECISION_DTYPES, RATE_SPREAD, KnownGpu, Precision
from benchmarks.accuracy.estimates import estimate, to_point
from benchmarks.accuracy.points import Family, LeftOut, Point

FOLDER = Path(__file__).parent
GPUS: Mapping[str, KnownGpu] = {gpu.name: gpu for gpu in KNOWN_GPUS}
FITTED_SOURCE = "Megatron-Bridge"
"""The source of the rates that the constants are fitted to; the other rates only test them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRate:
    """One published rate; `params` describe a model that is no preset.

    Without a sequence one of the default length is estimated, without a global batch a usual one. The constants are
    fitted as if nothing were recomputed.
    """

    model: str
    params: int | None
    task: str
    gpu: str
    gpus: int
    precision: Precision
    sequence_tokens: int | None
    global_batch: int | None
    tokens_per_s_per_gpu: float
    source: str

    @property
    def fitted(self) -> bool:
        """Whether the constants are fitted to it."""
        return self.source.startswith(FITTED_SOURCE)

    def body(self) -> dict[str, Any]:
        """Return the body of POST /estimate for it."""
        training: dict[str, Any] = {"precision": self.precision, "method": "lora" if self.task == "lora" else "full"}
        if self.sequence_tokens is not None:
            training["sequence_tokens"] = self.sequence_tokens
        if self.global_batch is not None:
            training["global_batch"] = self.global_batch
        if self.fitted:
            training["recompute"] = "none"
        gpu = GPUS[self.gpu]
        return {
            **({"model": self.model} if self.params is None else {"architecture": {"params": self.params}}),
            "training": training,
            "gpus": {
                "count": self.gpus,
                "peak_tflops": gpu.peaks[PRECISION_DTYPES[self.precision]],
                "bandwidth_gb_per_s": gpu.bandwidth_gb_per_s,
            },
        }


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


@lru_cache(maxsize=1)
def training_rates() -> tuple[TrainingRate, ...]:
    """Read training_rates.csv."""
    return tuple(
        TrainingRate(
            model=row["model"],
            params=int(row["params"]) if row["params"] else None,
            task=row["task"],
            gpu=row["gpu"],
            gpus=int(row["gpus"]),
            precision=row["precision"],  # type: ignore[arg-type]  # a precision's name
            sequence_tokens=int(row["sequence_tokens"]) if row["sequence_tokens"] else None,
            global_batch=int(row["global_batch"]) if row["global_batch"] else None,
            tokens_per_s_per_gpu=float(row["tokens_per_s_per_gpu"]),
            source=row["source"],
        )
        for row in _rows("training_rates.csv")
    )


def _rate_points() -> Iterator[Point]:
    for rate in training_rates():
        labels = {
            "model": rate.model or f"{rate.params or 0:.2g} parameters",
            "gpu": rate.gpu,
            "precision": rate.precision,
            "task": rate.task,
            "source": rate.source,
        }
        measured = rate.tokens_per_s_per_gpu * rate.gpus
        yield to_point(estimate(rate.body()), "training.compute.tokens_per_s", measured, labels)


def read_runs() -> tuple[dict[str, str], ...]:
    """Read the whole runs of training_runs.csv."""
    return tuple(_rows("training_runs.csv"))


def _asked_points(name: str, figure: str) -> Iterator[Point]:
    """Yield the points of a table with the body of each request as JSON."""
    for row in _rows(name):
        labels = {"title": row["title"], "source": row["source"]}
        yield to_point(estimate(json.loads(row["request"])), figure, float(row["measured"]), labels)


def _leave_one_out() -> LeftOut:
    from benchmarks.calibrate_training import leave_one_out, median_error  # noqa: PLC0415  # it imports this module

    found = leave_one_out("model")
    inside = sum(RATE_SPREAD.low <= exp(-error) <= RATE_SPREAD.high for _, error in found)
    return LeftOut(median_error(found), "model", len(found), inside / len(found), RATE_SPREAD.high / RATE_SPREAD.low)


TRAINING_RATE = Family(
    id="training_rate",
    title="Tokens per second of training",
    figure="training.compute.tokens_per_s",
    unit="tokens/s",
    source="NVIDIA-NeMo/Megatron-Bridge, docs/performance-summary.md and its archive; a few of MLPerf Training v5.1, "
    "torchtune, torchtitan, Olmo 3 and SmolLM3",
    license="Apache-2.0; BSD-3-Clause",
    points=_rate_points,
    leave_one_out=_leave_one_out,
)
TRAINING_HOURS = Family(
    id="training_gpu_hours",
    title="GPU-hours of a whole training",
    figure="training.compute.gpu_hours",
    unit="GPU-hours",
    source="model cards of Llama 3 to 4, technical reports of LLaMA, Llama 2 and DeepSeek-V3, Olmo 3, SmolLM3, Apertus",
    license="facts",
    points=lambda: _asked_points("training_runs.csv", "training.compute.gpu_hours"),
)
TRAINING_MEMORY = Family(
    id="training_memory",
    title="GPU memory of training",
    figure="training.memory_per_gpu.need",
    unit="GiB",
    source="torchtune README, torchtitan benchmarks, Unsloth's requirements, LLaMA-Factory wiki",
    license="BSD-3-Clause; Apache-2.0; facts",
    points=lambda: _asked_points("training_memory.csv", "training.memory_per_gpu.need"),
)
