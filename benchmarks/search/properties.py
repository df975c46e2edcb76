"""What must hold of every estimate: of one by itself, and of two whose requests differ in one field."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import pairwise
from math import isfinite
from random import Random
from typing import Any, NamedTuple

from app.fit.formulas.quantities import Figure
from app.fit.results import Estimate
from benchmarks.search.bodies import Body

TOLERANCE = 1 + 1e-6
"""Relative tolerance of doubles that are computed in another order."""


class Violation(NamedTuple):
    """A property that does not hold, and the figures that show it."""

    rule: str
    shown: str


def figures(answer: Any, path: str = "") -> Iterator[tuple[str, Figure]]:
    """Yield all figures of an answer with their paths."""
    if isinstance(answer, Figure):
        yield path, answer
    elif is_dataclass(answer):
        for field in fields(answer):
            yield from figures(getattr(answer, field.name), f"{path}.{field.name}".lstrip("."))


def middle(answer: Any, path: str) -> float | None:
    """Return the value or the middle of the figure at a path; a plain number as it is; None where it is absent."""
    for name in path.split("."):
        answer = getattr(answer, name, None)
    if isinstance(answer, Figure):
        found = answer.value if answer.value is not None else answer.mid
        return None if found is None else float(found)
    return float(answer) if isinstance(answer, int | float) else None


def end(answer: Any, path: str, name: str) -> float | None:
    """Return the low or high end of the figure at a path, or its value."""
    for part in path.split("."):
        answer = getattr(answer, part, None)
    if not isinstance(answer, Figure):
        return None
    found = answer.value if answer.value is not None else getattr(answer, name)
    return None if found is None else float(found)


def check_ranges(answer: Any) -> Iterator[Violation]:
    """Every figure has a finite value, or a range in order that contains its middle."""
    for path, figure in figures(answer):
        ends = [figure.value] if figure.value is not None else [figure.low, figure.mid, figure.high]
        numbers = [float(one) for one in ends if one is not None]
        if len(numbers) != len(ends) or not all(isfinite(one) and one >= 0 for one in numbers):
            yield Violation("ranges are finite and not negative", f"{path} {ends}")
        elif any(b * TOLERANCE < a for a, b in pairwise(numbers)):
            yield Violation("ranges contain their middle and are not inverted", f"{path} {ends}")


def check_serving(body: Body, answer: Estimate) -> Iterator[Violation]:
    """Check that no more tokens are generated than sequences are open, and that nothing is faster than physics allow.

    The bounds are computed here, from the request and the parameters alone: weights and cache are read once, 2 FLOPs a
    parameter and token, one message of two bytes a value for each all-reduce, one hop for each stage.
    """
    served, gpus = body["inference"], body["gpus"]
    figures_of, parallel = answer.inference, answer.inference and answer.inference.memory_per_gpu
    if figures_of is None or parallel is None or figures_of.decode is None or "serving" in body:
        return
    sequences, decode = served["concurrency"], figures_of.decode
    for rate, step in (("tokens_per_s", "step"), ("expected_tokens_per_s", "expected_step")):
        product = (middle(decode, rate) or 0) * (middle(decode, step) or 0) / 1e3
        if product > sequences * TOLERANCE:
            yield Violation("rate x step <= sequences", f"{rate} x {step} = {product} of {sequences}")
    least = _least_step_ms(body, answer)
    for path, name in (("decode.expected_step", "low"), ("decode.step", "low")):
        found = end(figures_of, path, name) or 0.0
        bound = least["all"] if path == "decode.expected_step" else 0.0
        if found * TOLERANCE < bound:
            yield Violation("no step is below its bound", f"{found} ms of {least}")
    if (first_low := end(figures_of, "ttft", "low")) is not None:
        prompt, stage = _prompt(served), gpus["peak_tflops"] * 1e12 * _gpus_of_copy(served)
        bound = 2e3 * _computed(answer) * prompt / stage
        if first_low * TOLERANCE < bound:
            yield Violation("no first token is below its bound", f"{first_low} ms, {bound}")
    first, alone = middle(figures_of, "ttft"), middle(figures_of, "prefill")
    if first is not None and alone is not None and first * TOLERANCE < alone * 1e3:
        yield Violation("the first token is not before its prompt is read", f"{first} ms, prefill {alone} s")


def _gpus_of_copy(served: Body) -> int:
    stage = served["tensor_parallel"] * served.get("data_parallel_attention", 1)
    return int(stage * served.get("pipeline_parallel", 1))


def _prompt(served: Body) -> int:
    return int(served.get("prompt_tokens", served.get("context_tokens", 3) * 2 // 3 - 1))


def _computed(answer: Estimate) -> float:
    """Return the parameters that a token is multiplied with: all active ones but the input embedding."""
    shape = answer.architecture
    embedding = (shape.vocab or 0) * (shape.hidden or 0) * (1 if not shape.tied_embeddings else 0)
    active = middle(answer, "parameters.active") or 0.0
    return max(0.0, active - embedding) * 0.98


def _least_step_ms(body: Body, answer: Estimate) -> dict[str, float]:
    served, gpus, shape = body["inference"], body["gpus"], answer.architecture
    tensor, stages = served["tensor_parallel"], served.get("pipeline_parallel", 1)
    groups = served.get("data_parallel_attention", 1)
    copies = gpus["count"] / _gpus_of_copy(served)
    batch = max(1.0, served["concurrency"] / copies / stages / groups)
    total, active = (middle(answer, f"parameters.{name}") or 1.0 for name in ("total", "active"))
    weights = (middle(answer, "inference.weights") or 0.0) * 2**30
    accepted = served.get("speculative", {}).get("accepted_tokens_per_step", 0.0)
    bandwidth = gpus["bandwidth_gb_per_s"] * 1e9
    # Experts may be narrower than the rest, so a token's share of the bytes is only known of dense models.
    dense = total == active and "speculative" not in served and not shape.tied_embeddings
    read = weights * _computed(answer) / total / tensor / bandwidth if dense else 0.0
    flops = 2 * _computed(answer) * batch / (gpus["peak_tflops"] * 1e12 * tensor * groups)
    link = gpus.get("link_gb_per_s") or (64.0 if gpus["link"] == "pcie" else 1800.0)
    message = 2 * (shape.layers or 0) * (shape.hidden or 0) * 2 * batch / (link / 2 * 1e9)
    sent = message if tensor > 1 and groups == 1 else 0.0
    bounds = {"read": read, "flops": flops, "link": sent}
    return {"all": 1e3 * max(bounds.values()) / (1 + accepted), **{name: 1e3 * one for name, one in bounds.items()}}


def check_service(answer: Estimate) -> Iterator[Violation]:
    """Check a service: Little's law, the peak is borne, and the mean takes no more replicas than the peak."""
    found = answer.serving
    if found is None or not found.meets_targets:
        return
    parts = found.disaggregation
    if parts is not None and parts.prefill_replicas + parts.decode_replicas != found.replicas:
        yield Violation("replicas are those of both kinds", f"{parts} of {found.replicas}")
    if parts is not None and not 0 < parts.prefill_busy < 1:
        yield Violation("replicas are busy for a share of the time", f"{parts.prefill_busy}")
    rate, peak = middle(found, "requests_per_s"), middle(found, "peak_requests_per_s")
    mean = middle(found, "mean_requests_per_s")
    if rate is not None and peak is not None and peak > rate * (1 + 1e-6) and answer.serving:
        yield Violation("the replicas sustain the peak", f"{rate} of {peak} requests/s")
    if peak is not None and mean is not None and mean > peak * TOLERANCE:
        yield Violation("the mean is not above the peak", f"{mean} of {peak} requests/s")
    if (found.replicas_at_mean or 0) > (found.replicas or 0):
        yield Violation("the mean takes no more replicas", f"{found.replicas_at_mean} of {found.replicas}")
    if found.concurrency_per_replica > found.max_concurrency_per_replica:
        yield Violation("a replica has no more requests than it may", f"{found.concurrency_per_replica}")


def check_training(body: Body, answer: Estimate) -> Iterator[Violation]:
    """Check that no training computes more than the peak of its GPUs."""
    if answer.training is None:
        return
    rate = end(answer, "training.compute.tokens_per_s", "high")
    peak = body["gpus"]["peak_tflops"] * 1e12 * body["gpus"]["count"]
    per_token = 6 if body["training"]["method"] == "full" else 4
    # A peak of 16 bits may be used in a narrower type, with up to four times as many FLOPs.
    narrow = {"fp8": 2, "fp8_block": 2, "mxfp8": 2, "nvfp4": 6}.get(body["training"].get("precision", ""), 1)
    if rate is not None and rate * per_token * _computed(answer) > peak * max(1, narrow) * TOLERANCE:
        yield Violation("no training computes more than the peak", f"{rate} tokens/s")


class Change(NamedTuple):
    """A changed request, and the figures that may not get smaller, or larger, by it."""

    name: str
    body: Body
    not_smaller: tuple[str, ...]
    not_larger: tuple[str, ...]


SLOW = ("inference.decode.expected_step", "inference.decode.step", "inference.ttft", "inference.prefill")
RATE = ("inference.decode.expected_tokens_per_s", "inference.decode.tokens_per_s")
MEMORY = ("inference.memory_per_gpu.need", "inference.weights")
REPLICAS = ("serving.replicas",)
CAPACITY = ("serving.max_concurrency_per_replica",)
TRAINED = ("training.compute.tokens_per_s",)
HOURS = ("training.compute.gpu_hours", "training.compute.days")
TRAINING_MEMORY = ("training.memory_per_gpu.need",)


def changes(body: Body, random: Random) -> Iterator[Change]:
    """Yield the request with more work, more load, larger models, and better GPUs, each with what follows."""
    if "training" in body:
        yield from _training_changes(body, random)
        return
    if body.get("serving", {}).get("disaggregated"):
        # How many requests a replica has is chosen with how long prompts wait: no capacity that only grows.
        for change in _service_and_gpu_changes(body, random):
            yield change._replace(
                not_smaller=tuple(path for path in change.not_smaller if path not in CAPACITY),
                not_larger=tuple(path for path in change.not_larger if path not in CAPACITY),
            )
        return
    yield from _model_changes(body, random)
    yield from _gpu_changes(body, random)
    yield from _service_changes(body, random) if "serving" in body else _load_changes(body, random)


def _service_and_gpu_changes(body: Body, random: Random) -> Iterator[Change]:
    yield from _model_changes(body, random)
    yield from _gpu_changes(body, random)
    yield from _service_changes(body, random)


def _with(body: Body, part: str, **changed: Any) -> Body:
    return body | {part: body[part] | changed}


def _grown(value: float, random: Random, most: float = 4.0) -> int:
    return max(int(value) + 1, round(value * random.uniform(1.0, most)))


def _load_changes(body: Body, random: Random) -> Iterator[Change]:
    served = body["inference"]
    more = _with(body, "inference", concurrency=_grown(served["concurrency"], random))
    yield Change("more sequences", more, (*SLOW[:3], *MEMORY, *RATE), ())
    for name in ("context_tokens", "prompt_tokens"):
        if name in served:
            # A third of a context is output. More of it would have fewer prompts read beside each step.
            output = served.get("output_tokens") or max(1, served[name] // 3)
            grown = {name: _grown(served[name], random), "allow_longer_context": True}
            longer = _with(body, "inference", **grown | ({"output_tokens": output} if name == "context_tokens" else {}))
            yield Change(f"more {name}", longer, (*SLOW, *MEMORY), RATE)
    copies = _with(body, "gpus", count=body["gpus"]["count"] * 2)
    yield Change("twice the copies", copies, RATE, (*SLOW[:3], *MEMORY))


def _service_changes(body: Body, random: Random) -> Iterator[Change]:
    level = body["serving"]
    rate = next(name for name in ("users", "requests_per_second", "requests_per_day") if name in level)
    more = level[rate] * random.uniform(1, 4)
    busier = _with(body, "serving", **{rate: round(more + 1) if rate == "users" else more})
    yield Change("more load", busier, REPLICAS, ())
    for name in ("input_tokens", "output_tokens"):
        longer = _with(body, "serving", **{name: _grown(level[name], random)})
        load = REPLICAS if name == "input_tokens" and rate != "users" else ()
        yield Change(f"more {name}", longer, load, CAPACITY if name == "input_tokens" else ())
    for name in ("ttft_ms", "tpot_ms"):
        if name in level:
            stricter = _with(body, "serving", **{name: level[name] * random.uniform(0.3, 1)})
            yield Change(f"a stricter {name}", stricter, REPLICAS, CAPACITY)


def _model_changes(body: Body, random: Random) -> Iterator[Change]:
    shape = body.get("architecture", {})
    for name in ("params", "layers", "intermediate", "vocab", "experts", "moe_intermediate", "kv_heads"):
        if name not in shape or (name == "kv_heads" and shape["heads"] % (2 * shape["kv_heads"])):
            continue
        value = 2 * shape[name] if name in {"kv_heads", "experts"} else _grown(shape[name], random, 2.0)
        value += -value % 8 if name in {"intermediate", "moe_intermediate"} else 0
        larger = _with(body, "architecture", **{name: value})
        slower = SLOW if name != "vocab" else ()
        if "serving" in body:
            yield Change(f"more {name}", larger, REPLICAS if "users" not in body["serving"] else (), CAPACITY)
        else:
            # A stage holds whole layers: of more layers, those of the draft are a smaller part.
            rounded = name == "layers" and "pipeline_parallel" in body["inference"]
            yield Change(f"more {name}", larger, (*slower, *(() if rounded else MEMORY)), ())


def _gpu_changes(body: Body, random: Random) -> Iterator[Change]:
    gpus, service = body["gpus"], "serving" in body
    fewer = REPLICAS if service and "users" not in body["serving"] else ()
    for name in ("bandwidth_gb_per_s", "peak_tflops", "usable_gib"):
        better = _with(body, "gpus", **{name: gpus[name] * random.uniform(1, 4)})
        more: tuple[str, ...] = CAPACITY if service else ("inference.memory_per_gpu.max_concurrency",)
        if name != "usable_gib" and not service:
            more = RATE
        slow = () if service or name == "usable_gib" else SLOW
        yield Change(f"more {name}", better, more, (*fewer, *slow))
    if gpus["link"] == "pcie":
        linked = _with(body, "gpus", link="nvlink")
        yield Change("nvlink", linked, CAPACITY if service else RATE, fewer if service else SLOW)
    link = gpus.get("link_gb_per_s", 64.0 if gpus["link"] == "pcie" else 900.0)
    slow_link = _with(body, "gpus", link_gb_per_s=link / 2)
    fast_link = _with(body, "gpus", link_gb_per_s=link)
    if not service and fast_link == body:
        yield Change("a slower link", slow_link, SLOW, RATE)


def _training_changes(body: Body, random: Random) -> Iterator[Change]:
    job, gpus = body["training"], body["gpus"]
    for name in ("peak_tflops", "bandwidth_gb_per_s"):
        if name in gpus:
            better = _with(body, "gpus", **{name: gpus[name] * random.uniform(1, 4)})
            yield Change(f"more {name}", better, TRAINED, HOURS)
    more_gpus = _with(body, "gpus", count=gpus["count"] * random.choice((2, 3, 4)))
    # The second GPU adds buffers of collectives.
    memory = TRAINING_MEMORY if gpus["count"] > 1 else ()
    yield Change("more GPUs", more_gpus, TRAINED, ("training.compute.days", *memory))
    longer = _with(body, "training", sequence_tokens=_grown(job["sequence_tokens"], random))
    yield Change("longer sequences", longer, TRAINING_MEMORY, ())
    # A step takes some time whatever its tokens, so that fewer and larger steps may take less.
    steps, odd = divmod(job.get("global_batch", 1), 2)
    if not odd:
        as_many = _with(body, "training", sequence_tokens=2 * job["sequence_tokens"], global_batch=steps)
        yield Change("longer sequences in as many steps", as_many, HOURS, TRAINED)
    batch = _with(body, "training", micro_batch=job.get("micro_batch", 1) * 2)
    yield Change("a larger micro-batch", batch, TRAINING_MEMORY, ())
    more_tokens = _with(body, "training", tokens=job["tokens"] * 2)
    yield Change("more tokens", more_tokens, HOURS, ())
    for change in _model_changes(body | {"inference": {}}, random):
        larger = {name: value for name, value in change.body.items() if name != "inference"}
        slower = () if change.name == "more experts" else (*HOURS, *TRAINING_MEMORY)
        yield Change(change.name, larger, slower, () if change.name == "more experts" else TRAINED)
