"""Factories of machines and requests. The default VM has eight H100; a test names only what it is about."""

from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from app.fit.estimator.workload import InferenceWorkload, ServiceLevel, TrainingWorkload
from app.fit.formulas.architecture import Architecture
from app.fit.formulas.quantities import GIB, Assumptions
from app.fit.placement.evaluate import evaluate
from app.fit.placement.machine import Machine
from app.fit.placement.option import PlacementOption, explain
from app.fit.placement.prepare import Constraints, PlacementRequest, PreparedRequest, Pricing, prepare
from app.fit.verdict import Rejection, Vm

LLAMA_70B = Architecture(
    layers=80, hidden=8192, heads=64, kv_heads=8, head_dim=128, intermediate=28672, vocab=128256
)  # fmt: skip
LLAMA_8B = Architecture(
    layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, intermediate=14336, vocab=128256
)  # fmt: skip
QWEN_235B = Architecture(
    layers=94, hidden=4096, heads=64, kv_heads=4, head_dim=128, vocab=151_936, experts=128, experts_per_token=8,
    moe_intermediate=1536, moe_layers=94, fp8_block=128,
)  # fmt: skip
TODAY = date(2026, 9, 1)


def machine(**facts: Any) -> Machine:
    defaults: dict[str, Any] = {
        "gpus": Fraction(8),
        "usable_bytes": 79.6 * GIB,
        "bandwidth": 3.35e12,
        "peaks": {"fp32": 67e12, "fp16": 989e12, "bf16": 989e12, "fp8": 1979e12},
        "capability": "9.0",
        "domain_gpus": 8,
        "infiniband": True,
        "network_gbps": 400.0,
        "memory_bytes": 1900 * GIB,
        "disk_bytes": 28_000 * GIB,
        "vcpus": 96,
    }
    return Machine(**defaults | facts)


def vm(name: str = "a", **facts: Any) -> Vm:
    prices = {"on_demand": Decimal("98.32"), "spot": Decimal(30)}
    defaults: dict[str, Any] = {"status": "current", "verified": True, "region": "eastus", "usd_per_hour": prices}
    return Vm(name=name, **defaults | facts)


def serving(**load: Any) -> InferenceWorkload:
    return InferenceWorkload(**{"context_tokens": 8192, "concurrency": 32} | load)


def training(**job: Any) -> TrainingWorkload:
    return TrainingWorkload(**{"sequence_tokens": 4096, "tokens": 1e9} | job)


def service(**level: Any) -> ServiceLevel:
    rate = {} if {"requests_per_second", "requests_per_day"} & level.keys() else {"users": 64}
    defaults: dict[str, Any] = {"input_tokens": 2000, "output_tokens": 300, "ttft_ms": 1000.0, "tpot_ms": 40.0, **rate}
    return ServiceLevel(**defaults | level)


def prepare_request(
    use: InferenceWorkload | TrainingWorkload,
    shape: Architecture = LLAMA_70B,
    level: Any = None,
    **constraints: Any,
) -> PreparedRequest:
    pricing = Pricing(today=TODAY)
    request = PlacementRequest(
        architecture=shape, workload=use, serving=level, constraints=Constraints(**constraints), pricing=pricing
    )
    return prepare(request, Assumptions())


def prepare_service(
    level: ServiceLevel, shape: Architecture = LLAMA_70B, use: InferenceWorkload | None = None, **constraints: Any
) -> PreparedRequest:
    return prepare_request(use or InferenceWorkload(), shape, level, **{"max_nodes": 100, **constraints})


def expect_option(prepared: PreparedRequest, on: Machine | None = None, of: Vm | None = None) -> PlacementOption:
    verdict = evaluate(of or vm(), on or machine(), prepared)
    assert isinstance(verdict, PlacementOption), verdict
    return verdict


def expect_rejection(prepared: PreparedRequest, on: Machine | None = None, of: Vm | None = None) -> Rejection:
    verdict = evaluate(of or vm(), on or machine(), prepared)
    assert isinstance(verdict, Rejection), verdict
    return verdict


def facts_of(verdict: PlacementOption | Rejection) -> Any:
    """Return all that answers say of a verdict: an option is equal to no other."""
    if isinstance(verdict, Rejection):
        return verdict
    names = ("vm", "machine", "attempt", "speed", "costs", "headrooms", "warnings", "interruptions")
    return explain(verdict), verdict.prepared.request.pricing, *(getattr(verdict, name) for name in names)


def codes(rejection: Rejection) -> set[str]:
    return {failure.code for failure in rejection.failures}
