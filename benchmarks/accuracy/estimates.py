"""Computes the estimate for a body of POST /estimate without a server or a database."""

import csv
from collections.abc import Mapping
from functools import lru_cache, reduce
from typing import Any

from app.catalog.names import model_keys
from app.catalog.presets import Preset, split_names
from app.catalog.queries.lookups import ModelsByKey, get_model_row
from app.fit.estimator.estimate import serving_setup
from app.fit.estimator.serving import ServingSetup
from app.fit.estimator.workload import InferenceWorkload
from app.fit.formulas.quantities import Assumptions, Figure
from app.fit.results import Estimate
from app.schemas.fit_request import EstimateIn
from app.services.fit import estimate as estimate_body
from app.services.fit import resolve_architecture, to_estimated_gpus, to_workload
from app.settings import PROJECT
from benchmarks.accuracy.points import Point


@lru_cache(maxsize=1)
def presets() -> ModelsByKey:
    """Read the presets of the seeds by the key of each of their names."""
    found: dict[str, Mapping[str, Any]] = {}
    with (PROJECT / "seeds" / "models.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            given = {name: value for name, value in row.items() if value and name in Preset.model_fields}
            preset = Preset.model_validate({**given, "source_id": row["source"]}).model_dump()
            names = (preset["id"], preset["name"], preset["hf_repo"] or "", *split_names(row["aliases"]))
            found |= dict.fromkeys(model_keys(names), preset)
    return found


def setup_of(body: Mapping[str, Any]) -> ServingSetup:
    """Return the setup of a body of POST /estimate about serving."""
    asked, assumptions = EstimateIn.model_validate(body), Assumptions()
    shape = resolve_architecture(asked, lambda name: get_model_row(presets(), name), assumptions)
    workload = to_workload(asked)
    if not isinstance(workload, InferenceWorkload):
        raise TypeError("the body is about training")
    return serving_setup(shape, workload, to_estimated_gpus(asked), assumptions)


def estimate(body: Mapping[str, Any]) -> Estimate:
    """Return the estimate for a body of POST /estimate; raises BadWorkload where it is refused."""
    return estimate_body(EstimateIn.model_validate(body), presets())


def to_point(answer: Estimate, path: str, measured: float, labels: Mapping[str, str | int | float]) -> Point:
    """Return a measurement with the figure at a dotted path that is estimated for it, and in what that departs."""
    (low, mid, high), evidence = figure_range(answer, path), figure_at(answer, path).evidence
    outside = evidence.outside if evidence is not None else ()
    return Point(measured=measured, low=low, mid=mid, high=high, labels=labels, outside=outside)


def figure_at(answer: Estimate, path: str) -> Figure:
    """Return the figure at a dotted path."""
    figure: Any = reduce(getattr, path.split("."), answer)
    if not isinstance(figure, Figure):
        raise TypeError(f"no figure at {path}: {figure!r}")
    return figure


def figure_range(answer: Estimate, path: str) -> tuple[float, float, float]:
    """Return low, mid and high of the figure at a dotted path; of a value, three times the same."""
    figure = figure_at(answer, path)
    ends = (figure.low, figure.mid, figure.high) if figure.value is None else (figure.value,) * 3
    low, mid, high = (float(end) for end in ends if end is not None)
    return low, mid, high
