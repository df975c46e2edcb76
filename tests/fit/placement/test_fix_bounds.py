"""A bound that a fix proposes is the nearest to what is given that fits: the next value does not."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from app.fit.formulas.architecture import Architecture
from app.fit.formulas.quantities import GIB, Assumptions
from app.fit.placement.evaluate import evaluate
from app.fit.placement.fixes import SCALES, FieldChange, FixFinder
from app.fit.placement.machine import Machine
from app.fit.placement.option import PlacementOption
from app.fit.placement.prepare import PreparedRequest, prepare
from tests.fit.placement.factories import (
    LLAMA_8B,
    LLAMA_70B,
    QWEN_235B,
    expect_rejection,
    machine,
    prepare_request,
    prepare_service,
    service,
    serving,
    vm,
)

H100 = machine(gpus=Fraction(1), domain_gpus=1)
L4 = machine(
    gpus=Fraction(1), domain_gpus=1, usable_bytes=22.1 * GIB, bandwidth=300e9, capability="8.9",
    peaks={"fp32": 30e12, "fp16": 121e12, "bf16": 121e12, "fp8": 242e12},
)  # fmt: skip
V100S = machine(
    gpus=Fraction(4), domain_gpus=4, usable_bytes=15.7 * GIB, bandwidth=900e9, capability="7.0",
    memory_bytes=12 * GIB, infiniband=None, network_gbps=32.0,
)  # fmt: skip
QWEN_32B = Architecture(
    layers=64, hidden=5120, heads=40, kv_heads=8, head_dim=128, intermediate=27_648, vocab=152_064
)  # fmt: skip
SERVICES = {
    "users": (LLAMA_8B, service(users=1000), H100, 1),
    "users who think": (LLAMA_8B, service(users=7000, think_time_s=20.0), H100, 2),
    "requests a second": (LLAMA_8B, service(requests_per_second=93.7), H100, 3),
    "requests a day": (LLAMA_8B, service(requests_per_day=12_345_678.0, peak_to_mean=3.0), H100, 2),
    "a slow GPU": (LLAMA_8B, service(requests_per_second=100.0, tpot_ms=40.0), L4, 100),
    "a slow GPU and few VMs": (LLAMA_8B, service(requests_per_second=2.0, tpot_ms=40.0), L4, 2),
    "long prompts": (LLAMA_8B, service(users=30, input_tokens=30_000, ttft_ms=400.0), H100, 20),
    "experts": (QWEN_235B, service(users=300, tpot_ms=9.0), machine(), 4),
    "two targets": (LLAMA_70B, service(users=64, input_tokens=8000, ttft_ms=150.0, tpot_ms=8.0), machine(), 100),
}
LOADS = {
    "sequences": (LLAMA_8B, serving(concurrency=400), H100, 1),
    "a long context": (LLAMA_8B, serving(context_tokens=1_000_000, concurrency=1, dtype="bf16"), H100, 1),
    "memory to load it": (QWEN_32B, serving(context_tokens=131_072, concurrency=128, dtype="fp16"), V100S, 4),
    "memory to load it in 4 bits": (
        QWEN_32B,
        serving(context_tokens=65_536, concurrency=128, dtype="gptq_int4"),
        V100S,
        1,
    ),
    "one VM too few": (LLAMA_8B, serving(context_tokens=65_536, concurrency=200, dtype="fp16"), V100S, 1),
}


def with_changes(prepared: PreparedRequest, changes: tuple[FieldChange, ...]) -> PreparedRequest:
    """Prepare a changed request from the beginning, as a client who follows a fix has it done."""
    request = prepared.request
    for change in changes:
        request = request.with_change(change.part, change.field, change.value)
    return prepare(request, Assumptions())


def fits(prepared: PreparedRequest, on: Machine) -> bool:
    return isinstance(evaluate(vm(), on, prepared), PlacementOption)


def next_value(change: FieldChange) -> float:
    """The next value towards what is given, one step or two digits: at most that."""
    given, scale = float(change.given or 0), SCALES[change.field]
    up = change.value < given
    if scale.step is not None:
        following = float(Decimal(repr(change.value)) + (scale.step if up else -scale.step))
    else:
        following = float(Decimal(repr(change.value)) + Decimal(1).scaleb(Decimal(repr(change.value)).adjusted() - 1))
    following = min(following, given) if up else max(following, given)
    return int(following) if following == int(following) else following


def bounds(prepared: PreparedRequest, on: Machine) -> Iterator[tuple[tuple[FieldChange, ...], int]]:
    """Yield the fixes with each place of a bound in them, after each was checked to fit."""
    for fix in FixFinder(prepared).find_fixes(vm(), on, expect_rejection(prepared, on)):
        assert fits(with_changes(prepared, fix.changes), on), fix.text
        yield from ((fix.changes, place) for place, change in enumerate(fix.changes) if change.given is not None)


def expect_nearest_bounds(prepared: PreparedRequest, on: Machine) -> int:
    """Check all bounds of all fixes, and return how many there are."""
    number = 0
    for changes, place in bounds(prepared, on):
        nearer = replace(changes[place], value=next_value(changes[place]))
        changed = (*changes[:place], nearer, *changes[place + 1 :])
        assert not fits(with_changes(prepared, changed), on), [change.text for change in changes]
        number += 1
    return number


@pytest.mark.parametrize("name", SERVICES)
def test_no_bound_of_a_service_gives_up_more_than_it_must(name: str) -> None:
    shape, level, on, most = SERVICES[name]
    assert expect_nearest_bounds(prepare_service(level, shape, max_nodes=most), on)


@pytest.mark.parametrize("name", LOADS)
def test_no_bound_of_a_load_gives_up_more_than_it_must_with_all_other_changes(name: str) -> None:
    shape, load, on, most = LOADS[name]
    assert expect_nearest_bounds(prepare_request(load, shape, max_nodes=most), on)


@pytest.mark.parametrize(
    ("value", "at_most"), [(93.75, 93), (12_345_678, 12_000_000), (0.0519, 0.051), (9.9, 9.9), (10, 10), (1, 1)]
)
def test_a_rate_has_two_digits(value: float, at_most: float) -> None:
    scale = SCALES["requests_per_second"]
    position = scale.position(value)
    assert scale.value(position) == at_most <= value < scale.value(position + 1)
