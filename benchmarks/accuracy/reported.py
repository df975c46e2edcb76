"""Families of serving runs that vendors, cookbooks and issues report, in reported.csv: few of each model and GPU.

Requests come one by one, or with random lengths, so that their prompts seldom wait for each other. A row is a figure of
one run, with the body of POST /estimate that asks for it.
"""

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from app.fit.estimator.serving_speed import is_amd
from benchmarks.accuracy.estimates import estimate, setup_of, to_point
from benchmarks.accuracy.points import Family, Point
from benchmarks.accuracy.serving import left_out

TABLE = Path(__file__).with_suffix(".csv")
FIGURES = {"tpot": "inference.decode.expected_step", "ttft": "inference.ttft"}
"""The figure of an estimate that a figure of a run is compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """A figure of a reported run: the time per output token or to the first token, ms, and its request."""

    figure: Literal["tpot", "ttft"]
    title: str
    gpu: str
    engine: str
    body: dict[str, Any]
    measured_ms: float
    source: str

    @property
    def labels(self) -> dict[str, str | int | float]:
        """What tables of runs are broken down by."""
        return {
            "model": str(self.body.get("model", self.title.split(" ")[0])),
            "gpu": self.gpu,
            "engine": self.engine,
            "source": self.source.split(" ")[0].rstrip(","),
        }


@lru_cache(maxsize=1)
def reported_runs() -> tuple[ReportedRun, ...]:
    """Read the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(
            ReportedRun(
                figure="tpot" if row["figure"] == "tpot" else "ttft",
                title=row["title"],
                gpu=row["gpu"],
                engine=row["engine"],
                body=json.loads(row["request"]),
                measured_ms=float(row["measured_ms"]),
                source=row["source"],
            )
            for row in csv.DictReader(file)
        )


def on_amd(run: ReportedRun) -> bool:
    """Whether a run is on GPUs of AMD."""
    return is_amd(setup_of(run.body).gpus)


def _points(figure: str, belongs: Callable[[ReportedRun], bool]) -> Callable[[], Iterator[Point]]:
    def points() -> Iterator[Point]:
        for run in reported_runs():
            if run.figure == figure and belongs(run):
                yield to_point(estimate(run.body), FIGURES[figure], run.measured_ms, run.labels)

    return points


SOURCE = (
    "SGLang's cookbook and pull requests, AccelMark, recipes and issues of vLLM, ROCm/aiter, Tenstorrent's inference "
    "server, Vultr's inference cookbook: benchmarks/accuracy/reported.csv"
)
LICENSE = "Apache-2.0; MIT; facts"

DECODE_STEP_REPORTED = Family(
    id="decode_step_reported",
    title="Time per output token of reported runs, to which the host's part alone is fitted",
    figure=FIGURES["tpot"],
    unit="ms",
    source=SOURCE,
    license=LICENSE,
    points=_points("tpot", lambda run: not on_amd(run)),
    leave_one_out=left_out(0, "reported"),
)
DECODE_STEP_AMD = Family(
    id="decode_step_amd",
    title="Time per output token on GPUs of AMD",
    figure=FIGURES["tpot"],
    unit="ms",
    source=SOURCE,
    license=LICENSE,
    points=_points("tpot", on_amd),
    leave_one_out=left_out(0, "amd"),
)
TTFT = Family(
    id="ttft",
    title="Time to the first token",
    figure=FIGURES["ttft"],
    unit="ms",
    source=SOURCE,
    license=LICENSE,
    points=_points("ttft", lambda _: True),
    leave_one_out=left_out(1, "steady"),
)
