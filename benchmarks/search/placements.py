"""What must hold of every placement: options are possible, fixes fix, and less work never makes a size fail."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

from app.errors import BadWorkload
from app.fit.formulas.quantities import GIB, Assumptions, InvalidWorkload
from app.fit.placement.evaluate import evaluate
from app.fit.placement.fixes import FixFinder
from app.fit.placement.jobs import ServingJob
from app.fit.placement.machine import Machine
from app.fit.placement.option import PlacementOption, cost_figures, per_gpu_memory, service_figures, speed_figures
from app.fit.placement.prepare import PreparedRequest, prepare
from app.fit.verdict import Rejection, Vm
from app.schemas.fit_request import FitIn
from app.services.fit import to_request
from benchmarks.accuracy.estimates import presets
from benchmarks.search.bodies import MODELS, Body
from benchmarks.search.properties import TOLERANCE, Violation, check_ranges

TODAY = date(2026, 9, 1)


def _machine(
    gpus: Fraction, usable_gib: float, bandwidth: float, peaks: tuple[float, ...], capability: str, **more: object
) -> Machine:
    names = ("fp32", "fp16", "bf16", "fp8", "int8", "fp4")
    facts = {
        "domain_gpus": max(1, int(gpus)),
        "infiniband": False,
        "memory_bytes": 220 * GIB * max(1, int(gpus)),
        "disk_bytes": 28_000 * GIB,
        "vcpus": 96,
        **more,
    }
    return Machine(
        gpus=gpus,
        usable_bytes=usable_gib * GIB,
        bandwidth=bandwidth * 1e9,
        peaks={name: one * 1e12 for name, one in zip(names, peaks, strict=False) if one},
        capability=capability,
        **facts,  # type: ignore[arg-type]  # fields of Machine
    )


MACHINES = {
    "8 x H100": _machine(Fraction(8), 79.2, 3350, (67, 989, 989, 1979, 1979), "9.0", infiniband=True),
    "8 x H200": _machine(Fraction(8), 139.8, 4800, (67, 989, 989, 1979, 1979), "9.0", infiniband=True),
    "8 x MI300X": _machine(Fraction(8), 191.5, 5300, (163, 1307, 1307, 2614, 2614), "gfx942", infiniband=True),
    "4 x GB300": _machine(
        Fraction(4), 276, 8000, (80, 2500, 2500, 5000, 330, 15_000), "10.3", infiniband=True, domain_gpus=72,
        domain_vms=18,
    ),
    "4 x A100": _machine(Fraction(4), 79.15, 1935, (19.5, 312, 312, 0, 624), "8.0"),
    "2 x H100 NVL": _machine(Fraction(2), 93.1, 3938, (60, 835, 835, 1671, 1671), "9.0"),
    "4 x A10 over PCIe": _machine(Fraction(4), 22.07, 600, (31.2, 125, 125, 0, 250), "8.6", domain_gpus=1),
    "a third of an A10": _machine(Fraction(1, 3), 7.5, 200, (10.4, 41.7, 41.7, 0, 83.3), "8.6"),
    "1 x T4": _machine(Fraction(1), 14.6, 320, (8.1, 65, 0, 0, 130), "7.5"),
}  # fmt: skip
"""VMs like those that are sold, by GPU: usable GiB, GB/s, dense TFLOP/s, compute capability, links and networks."""


def random_placement(random: Random) -> Body:
    """Return a random body of POST /fit: a load, a service or a training."""
    kind, model = random.choice(("load", "load", "service", "training")), random.choice(MODELS)
    body: Body = {"model": model, "constraints": {"max_nodes": random.choice((1, 1, 2, 4, 8, 32))}}
    if kind == "training":
        job = {
            "method": random.choice(("full", "lora", "qlora")),
            "sequence_tokens": random.choice((512, 2048, 4096)),
            "micro_batch": random.choice((1, 2, 4)),
            "recompute": random.choice(("none", "selective", "full")),
            "zero_stage": random.choice((None, None, 0, 2, 3)),
            "offload": random.choice(("none", "none", "optimizer", "all")),
            "tokens": 10 ** random.randint(7, 12),
        }
        return body | {"training": job}
    served: Body = {"dtype": random.choice(("bf16", "fp16", "fp8", "int8", "awq_int4", "nvfp4"))}
    served |= {"tensor_parallel": random.choice((2, 4, 8))} if random.random() < 0.2 else {}
    served |= {"pipeline_parallel": 2} if random.random() < 0.1 else {}
    if kind == "service":
        level: Body = {
            "input_tokens": random.choice((128, 1000, 4000)),
            "output_tokens": random.choice((64, 300, 1000)),
            **random.choice(({"users": random.choice((1, 30, 500))}, {"requests_per_second": random.choice((0.2, 5))})),
        }
        level |= {"ttft_ms": random.choice((300, 1000, 5000))} if random.random() < 0.6 else {}
        level |= {"tpot_ms": random.choice((15, 30, 80))} if random.random() < 0.6 else {}
        return body | {"inference": served, "serving": level}
    served |= {"context_tokens": random.choice((512, 2048, 8192)), "concurrency": random.choice((1, 7, 50, 300))}
    return body | {"inference": served}


def check_placement(random: Random) -> Iterator[tuple[str, list[Violation], Body]]:
    """Yield the checks of one random request on three machines: what was checked, what breaks it, the request."""
    body = random_placement(random)
    try:
        prepared = _prepared(body)
        easier = _prepared(_easier(body, random))
    except (InvalidWorkload, BadWorkload):
        return
    for name in random.sample(sorted(MACHINES), 3):
        machine, shown = MACHINES[name], {**body, "machine": name}
        vm = _vm(name)
        verdict = evaluate(vm, machine, prepared)
        if isinstance(verdict, Rejection):
            yield "fixes", list(_check_fixes(prepared, vm, verdict, machine, random)), shown
        else:
            yield "an option", list(_check_option(prepared, verdict)), shown
            again = evaluate(_vm(name), machine, easier)
            failures = again.failures if isinstance(again, Rejection) else ()
            lost = [Violation("less work never makes a size fail", str(one)) for one in failures]
            yield "less work", lost, shown
            if isinstance(again, PlacementOption):
                more = again.attempt.nodes > verdict.attempt.nodes
                nodes = f"{verdict.attempt.nodes} -> {again.attempt.nodes} VMs"
                yield "fewer VMs", [Violation("less work never takes more VMs", nodes)] if more else [], shown


def _vm(name: str) -> Vm:
    prices = {"on_demand": Decimal("98.32"), "spot": Decimal(30)}
    return Vm(name=name, status="current", verified=True, region="eastus", usd_per_hour=prices)


def _prepared(body: Body) -> PreparedRequest:
    assumptions = Assumptions()
    return prepare(to_request(FitIn.model_validate(body), presets(), assumptions, TODAY), assumptions)


def _easier(body: Body, random: Random) -> Body:
    """Return the request with less of something: sequences, tokens, users, or a narrower micro-batch."""
    part = "serving" if "serving" in body else "training" if "training" in body else "inference"
    names = ("concurrency", "context_tokens", "sequence_tokens", "micro_batch", "users", "input_tokens")
    name = random.choice([name for name in names if name in body[part]])
    return body | {part: body[part] | {name: max(1, int(body[part][name] * random.uniform(0.2, 0.95)))}}


def _check_fixes(
    prepared: PreparedRequest, vm: Vm, verdict: Rejection, machine: Machine, random: Random
) -> Iterator[Violation]:
    fixes = list(FixFinder(prepared).find_fixes(vm, machine, verdict))
    for fix in random.sample(fixes, min(2, len(fixes))):
        request = prepared.request
        for change in fix.changes:
            request = request.with_change(change.part, change.field, change.value)
        again = evaluate(vm, machine, prepare(request, Assumptions()))
        if isinstance(again, Rejection):
            yield Violation("a size fits after its fix", f"{fix.text}: {again.failures}")


def _check_option(prepared: PreparedRequest, option: PlacementOption) -> Iterator[Violation]:
    """Check that an option holds the model, generates no more than its sequences, and has figures in order."""
    attempt, job = option.attempt, prepared.job
    if attempt.required_bytes > attempt.budget_bytes * TOLERANCE:
        yield Violation("an option has the memory", f"{attempt.required_bytes} of {attempt.budget_bytes} bytes")
    if attempt.nodes > prepared.limits.usable_nodes(option.machine):
        yield Violation("an option has no more VMs than allowed", f"{attempt.nodes}")
    shown: list[Any] = [*per_gpu_memory(option), speed_figures(option), cost_figures(option, "on_demand")]
    if isinstance(job, ServingJob):
        shown.append(service_figures(option))
        speed = option.speed
        if speed is not None and speed.step_s is not None:
            sequences = job.serving_on(option.machine, attempt).concurrency
            product = speed.tokens_per_s.mid * speed.step_s.mid
            bound = (speed.max_tokens_per_s or 0.0) * (speed.min_step_s or 0.0)
            if max(product, bound) > sequences * TOLERANCE:
                yield Violation("rate x step <= sequences", f"{product} of {sequences}")
            if speed.step_s.low * TOLERANCE < (speed.min_step_s or 0.0):
                yield Violation("no step is below its bound", f"{speed.step_s} {speed.min_step_s}")
    for figures in shown:
        yield from check_ranges(figures)
