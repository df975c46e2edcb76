"""Any body is answered or rejected with a message; numbers are finite and ranges in order."""

from math import isfinite
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from sqlalchemy import Engine
from sqlmodel import Session

from app.catalog.queries.snapshot import Catalog, load_catalog, load_snapshot
from app.errors import BadWorkload
from app.schemas.fit_request import FitIn
from app.services.fit import plan_fit
from tests.conftest import TODAY
from tests.services.test_estimate import dtypes, flags, many, maybe, serving, shapes, some, training

nodes = st.sampled_from([1, 2, 7, 64, 10_000])
usd = st.floats(0, 1e7).map(lambda amount: round(amount, 2))
constraints = maybe(
    regions=st.lists(st.sampled_from(["eastus", "westeurope"]), max_size=2),
    available_in=st.lists(st.sampled_from(["eastus", "westus2"]), max_size=2),
    gpu=st.lists(st.sampled_from(["A100", "*80GB*", "mi*"]), max_size=2), min_nodes=nodes, max_nodes=nodes,
    utilization=st.floats(0.01, 1), tp_in_nvlink=flags, require_infiniband=flags, allow_preview=flags,
    allow_retiring=flags, allow_legacy=flags, verified_only=flags, checkpoint_on_local_disk=flags,
    budget_usd_per_month=usd, budget_usd_per_job=usd, max_hours=st.floats(0.01, 1e6),
)  # fmt: skip
pricing = maybe(
    purchases=st.lists(st.sampled_from(["on_demand", "spot"]), min_size=1, max_size=2), hours=st.integers(1, 9999),
    os=st.sampled_from(["linux", "windows"]), as_of=st.sampled_from(["2024-06-01", "2026-08-01", "2026-09-01"]),
)  # fmt: skip
hardware = maybe(
    gpu=st.sampled_from(["H100 SXM", "A100", "GB200", "RTX 3090"]), gpus=many, memory_gib=st.floats(0.01, 1e6),
    usable_gib=st.floats(0.01, 1e6), bandwidth_gb_per_s=st.floats(0.01, 1e6), peak_tflops=st.floats(0.01, 1e6),
    compute_capability=st.sampled_from(["3.7", "8.0", "gfx942"]), scale_up_domain_gpus=many, infiniband=flags,
    host_memory_gib=st.floats(0.01, 1e6), local_disk_gib=st.floats(0.01, 1e6), vcpus=some, usd_per_hour=usd,
)  # fmt: skip
models = st.sampled_from(["llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "gpt-2-1.5b", "gemma-3-27b"])
amounts = maybe(min_gpu_mem=st.floats(0, 1e4), min_gpus=st.integers(0, 64), infiniband=flags, min_vcpus=some)
bodies = maybe(
    architecture=shapes, constraints=constraints, pricing=pricing, include=st.just(["assumptions", "workload"]),
    sort=st.sampled_from(["cost_per_hour", "cost_per_job", "cost_per_1m_tokens", "time", "headroom", "nodes"]),
)  # fmt: skip
uses = st.one_of(
    st.fixed_dictionaries({"inference": serving}),
    st.fixed_dictionaries({"training": training}),
    st.fixed_dictionaries({"resources": amounts}),
)


pytestmark = pytest.mark.one_database  # one kind of database: answers do not depend on where the rows were stored


def numbers(part: Any) -> list[float]:
    if isinstance(part, dict):
        return [number for value in part.values() for number in numbers(value)]
    if isinstance(part, list):
        return [number for value in part for number in numbers(value)]
    return [float(part)] if isinstance(part, int | float) else []


def ranges(part: Any) -> list[tuple[float, float, float]]:
    if isinstance(part, dict) and part.get("mid") is not None:
        return [(part["low"], part["mid"], part["high"])]
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return [one for value in inner for one in ranges(value)]


@pytest.mark.takes_seconds
@settings(max_examples=3 * settings().max_examples, deadline=None, suppress_health_check=list(HealthCheck))
@given(bodies, uses, st.none() | models, st.none() | hardware)
def test_every_body_is_answered_or_rejected_with_a_message(
    seeded_engine: Engine, body: dict[str, Any], use: dict[str, Any], model: str | None, machine: dict[str, Any] | None
) -> None:
    asked = body | use | ({"model": model} if model else {}) | ({"hardware": machine} if machine is not None else {})
    if model:
        asked.pop("architecture", None)
    with Session(seeded_engine) as session:
        try:
            fit = plan_fit(load_catalog(session, TODAY), FitIn.model_validate(asked))
        except (ValidationError, BadWorkload):
            event("refused")
            return
    event("something fits" if fit.fits else "nothing fits")
    shown = fit.model_dump(mode="json", by_alias=True)
    assert all(isfinite(number) for number in numbers(shown))
    assert all(low <= mid <= high for low, mid, high in ranges(shown))
    assert fit.fits is (fit.total > 0)
    assert all(miss["failures"] for miss in shown["nearest_misses"])


@pytest.mark.takes_seconds
@settings(max_examples=settings().max_examples // 3, deadline=None, suppress_health_check=list(HealthCheck))
@given(models, serving, dtypes)
def test_a_request_has_one_answer(seeded_engine: Engine, model: str, load: dict[str, Any], dtype: str) -> None:
    asked = {"model": model, "inference": load | {"dtype": dtype}, "include": ["rejected", "assumptions"]}
    with Session(seeded_engine) as session:
        known = load_snapshot(session)
        try:
            body = FitIn.model_validate(asked)
            first, second = (plan_fit(Catalog(session, known, TODAY), body).model_dump_json() for _ in range(2))
        except (ValidationError, BadWorkload):
            return
    assert first == second
