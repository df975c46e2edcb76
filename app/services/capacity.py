"""What one VM of a size holds: language models by precision, with the longest context and the most users."""

from bisect import bisect
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from math import floor
from typing import Any

from app.catalog.queries.candidates import machines_query
from app.catalog.queries.lookups import get_size_keys
from app.catalog.queries.params import SizeSelection
from app.catalog.queries.snapshot import Catalog, computing
from app.db.statements import to_dicts
from app.fit.estimator.workload import InferenceWorkload
from app.fit.formulas.memory import KvCache, Parallelism, kv_bytes_per_sequence
from app.fit.formulas.quantities import Assumptions
from app.fit.placement.evaluate import CheckContext, find_failures
from app.fit.placement.jobs import ServingJob
from app.fit.placement.layouts import SearchLimits
from app.fit.placement.machine import Machine
from app.fit.placement.prepare import PlacementRequest, PreparedRequest, Pricing, prepare
from app.services.fit import to_architecture, to_machine

PRECISIONS: Mapping[str, str | None] = {"released": None, "fp16": "fp16", "fp8": "fp8", "int4": "int4"}
"""The precisions of weights; None is that of the release."""

USERS_CONTEXT = 8192
"""The context of each of the most users, tokens; that of the model where it is made for less."""

_ONE_VM = SearchLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a VM holds of a model in a precision.

    `context_tokens` is the longest context of one user, `users` the most at once with USERS_CONTEXT each; both are None
    with the `reason` where the model cannot be served. `bounded` where the model's maximum bounds the context.
    """

    dtype: str | None
    context_tokens: int | None = None
    bounded: bool = False
    users: int | None = None
    tensor_parallel: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCapacity:
    """A model, and what a VM holds of it by precision."""

    id: str
    name: str
    params: int | None
    by_precision: Mapping[str, Capacity]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeCapacity:
    """What one VM of a size holds; `models` from the greatest to the least."""

    size: str
    gpus: float | None
    usable_gib: float | None
    models: tuple[ModelCapacity, ...]


@computing
def find_capacity(catalog: Catalog, name: str) -> SizeCapacity:
    """Compute which models one VM of a size serves; raises NotFound for the size."""
    (key,) = get_size_keys(catalog, (name,), catalog.snapshot.series)
    query = machines_query(SizeSelection(name=(key,), status=("any",)), (), today=catalog.today, rules=())
    (row,) = [candidate for candidate in to_dicts(query, catalog.fetch(query)) if candidate["key"] == key]
    machine = to_machine(row)
    # An embedding model, a speech model or one of images has no context and no users.
    by_name = map(_Row, catalog.snapshot.models.values())
    models = {model["id"]: model for model in by_name if _prepare_architecture(model).kind == "decoder"}.values()
    capacities = (
        ModelCapacity(
            id=model["id"],
            name=model["name"],
            params=model["params"],
            by_precision={
                name: measure_capacity(_prepare(model, dtype), machine) for name, dtype in PRECISIONS.items()
            },
        )
        for model in sorted(models, key=lambda model: (-(model["params"] or 0), model["id"]))
    )
    return SizeCapacity(
        size=row["name"],
        gpus=float(machine.gpus) if machine.gpus is not None else None,
        usable_gib=machine.usable_bytes / 2**30 if machine.usable_bytes is not None else None,
        models=tuple(capacities) if machine.gpus else (),
    )


class _Row(dict[str, Any]):
    """The row of a model, which is hashed by its content: a model may change with the catalog."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash((self["id"], self["params"]))


_prepare_architecture = lru_cache(maxsize=512)(to_architecture)


@lru_cache(maxsize=2048)
def _prepare(model: _Row, dtype: str | None) -> PreparedRequest:
    """Prepare serving a model; the same for all sizes, so it is computed once."""
    most = model["max_context_tokens"] or USERS_CONTEXT
    request = PlacementRequest(
        architecture=_prepare_architecture(model),
        workload=InferenceWorkload(dtype=dtype, context_tokens=min(USERS_CONTEXT, most), concurrency=1),
        pricing=Pricing(purchases=("on_demand",), today=date.min),
    )
    return prepare(request, Assumptions())


def measure_capacity(prepared: PreparedRequest, machine: Machine) -> Capacity:
    """Return what one VM holds of a prepared model; `prepared` is of one user."""
    job = prepared.job
    if not isinstance(job, ServingJob):
        raise TypeError("only serving has users")
    failures = list(
        find_failures(CheckContext(prepared=prepared, machine=machine, attempt=job.find_attempt(machine, _ONE_VM)))
    )
    others = [failure for failure in failures if failure.code != "GPU_MEMORY_PER_GPU"]
    longest = None if others else _longest_context(job, machine)
    if longest is None:
        return Capacity(dtype=job.dtype, reason=(others or failures)[0].detail if failures else "no context fits")
    context, bounded, parallelism = longest
    return Capacity(
        dtype=job.dtype,
        context_tokens=context,
        bounded=bounded,
        users=job.max_sequences(machine, _ONE_VM, groups=False),
        tensor_parallel=parallelism.tensor,
    )


def _longest_context(job: ServingJob, machine: Machine) -> tuple[int, bool, Parallelism] | None:
    """Return the longest context of one user, whether the model bounds it, and the layout; None where none fits."""
    cache, most = job.served.cache, job.model.shape.max_positions
    if cache is None:
        return None
    best: tuple[int, bool, Parallelism] | None = None
    for parallelism, _, free in job.rooms(machine, _ONE_VM, groups=False):
        if best is not None and (best[1] or kv_bytes_per_sequence(cache, best[0] + 1, parallelism) > free):
            continue
        context = _tokens_within(cache, parallelism, free, most)
        if context:
            best = context, context == most, parallelism
    return best


def _tokens_within(cache: KvCache, parallelism: Parallelism, free: float, most: int | None) -> int:
    """Return how many tokens of one sequence fit into `free` bytes, at most `most`; found by halving."""
    if most is not None and kv_bytes_per_sequence(cache, most, parallelism) <= free:
        return most
    page = cache.block_tokens
    pages = range(1, (most or _UNBOUNDED) // page + 1)
    return floor(page * bisect(pages, free, key=lambda count: kv_bytes_per_sequence(cache, count * page, parallelism)))


_UNBOUNDED = 2**24
"""Tokens from which a context counts as unbounded, where the model's maximum is unknown."""
